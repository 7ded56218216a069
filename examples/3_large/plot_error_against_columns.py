"""
Do more columns make it worse?
==============================

Noise that hides a person in every entry of a d × d matrix grows with d. Stable leverage adds noise in proportion to
how far one person can move the *subspace*. That is little when everybody lies close to it.
"""

# %%
# The data are a thousand people with 100 to 3,000 columns. They lie near a plane, at a distance of a ten-thousandth.
# Seeds make the figure repeatable. Leave ``rng`` out when the records are real.
import matplotlib.pyplot as plt
import numpy as np

import privspan as ps

n, k, tail = 1_000, 2, 1e-4
columns = [100, 300, 1_000, 3_000]
budget = {"epsilon": 1.0, "delta": 1e-6}

measured = {"stable leverage": [], "Analyze Gauss": []}
for d in columns:
    X, truth = ps.datasets.gaussian_subspace(n, d, k, gamma_w=tail, rng=0)
    for name, method in (("stable leverage", ps.stable_subspace), ("Analyze Gauss", ps.baselines.analyze_gauss)):
        release = method(X, k, **budget, rng=1)
        measured[name].append(np.nan if release.abstained else release.subspace.distance(truth))

# %%
# The errors that the plan predicts, from public numbers alone:
predicted = {"stable leverage": [], "Analyze Gauss": []}
for d in columns:
    plan = ps.plan(n, d, k, **budget, gamma=tail / np.sqrt(d - k))
    by_method = {other.method: other.error for other in plan.alternatives}
    predicted["stable leverage"].append(by_method["stable"])
    predicted["Analyze Gauss"].append(by_method["analyze-gauss"])

# %%
# Dots are measured, lines predicted. At a fixed distance from the plane both errors grow like the square root of the
# number of columns. But stable leverage starts two hundred times lower, and Analyze Gauss ends as noise.
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for name, colour in (("Analyze Gauss", "0.4"), ("stable leverage", "C0")):
    axes.loglog(columns, predicted[name], "-", color=colour, label=f"{name}, predicted")
    axes.loglog(columns, measured[name], "o", color=colour, label=f"{name}, measured")
axes.axhspan(0.5, 1.0, color="0.93")
axes.set(xlabel="columns", ylabel="error (0 is perfect, 1 is useless)", ylim=(None, 1.0))
axes.set_title(f"{k} directions from {n:,} people, ε = 1, δ = 1e-6")
axes.legend(frameon=False, loc="center right")
plt.show()
