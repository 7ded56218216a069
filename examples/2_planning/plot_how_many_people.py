"""
How many people do I need?
==========================

Ask before you collect data. A plan uses public numbers alone and costs no privacy budget. Is it right for a real
table? The 32,735 flights out of New York are public, so we can compare: how accurate are fits with fewer flights?
"""

# %%
# Twelve columns in round units of about one standard deviation. (We may choose units from this table because it is
# public.)
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

import privspan as ps

flights = ps.datasets.load("flights")
units = {"year": 1, "month": 3, "day": 9, "dep_time": 500, "dep_delay": 40, "arr_time": 500, "arr_delay": 40}
units |= {"flight": 1600, "air_time": 90, "distance": 700, "hour": 5, "minute": 20}
table = flights.values / [units[name] for name in flights.columns]
k, epsilon, delta = 3, 1.0, 1e-6

# %%
# The plan predicts the error. The other way round: how many rows does an error of 0.2 need?
plan = ps.plan(len(table), 12, k, epsilon=epsilon, delta=delta, center=True)
print(f"{len(table):,} rows: predicted error {plan.error:.2g}")
print(f"for an error of 0.2: about {plan.needed_n(0.2):,} rows")

# %%
# A plan is for ideal data: bell-shaped, and with little variance outside the components. Flights are different: some
# are a day late, and the variance of their fourth component is not much smaller than that of the third. If this is
# public knowledge, give it to the plan as ``gamma``. (We computed it from all flights, which are public. With private
# data that would be a leak.)
#
# To measure the accuracy, we draw three samples of flights of each size. We compute the variance that each fit
# captures, as a share of what the best three components of all flights capture. Most uses of a PCA need a large
# captured variance. It takes fewer rows than an accurate third component.
covariance = np.cov(table.T)
best = PCA(k).fit(table).explained_variance_.sum()
sizes = np.array([300, 600, 1_200, 2_500, 5_000, 10_000, 20_000, 32_735])
chosen = np.random.default_rng(0)
captured = []
for n in sizes:
    samples = [table[chosen.choice(len(table), n, replace=False)] for _ in range(3)]
    fits = [ps.PrivatePCA(k, epsilon=epsilon, delta=delta).fit(sample) for sample in samples]
    captured.append([np.trace(fit.components_ @ covariance @ fit.components_.T) / best for fit in fits])
numbers = {"epsilon": epsilon, "delta": delta, "center": True}
ideal = [ps.plan(int(n), 12, k, **numbers).error for n in sizes]
honest = [ps.plan(int(n), 12, k, **numbers, gamma=0.8).error for n in sizes]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
left.loglog(sizes, ideal, "o-", label="little besides three components")
left.loglog(sizes, honest, "s--", label="the fourth nearly as large: gamma=0.8")
left.legend(frameon=False, fontsize=8)
left.axhspan(0.5, 1, color="0.9", zorder=0)
left.annotate("useless", (sizes[-1], 0.7), ha="right", va="center", color="0.4")
left.set(xlabel="rows", ylabel="predicted error", title="planned", ylim=(None, 1.1))
right.semilogx(sizes, captured, "o", color="C0", alpha=0.6)
right.semilogx(sizes, np.median(captured, axis=1), "-", color="C0")
right.set(xlabel="rows", ylabel="share of the best variance captured", title="measured, on samples of flights")
right.set_ylim(None, 1.02)
plt.show()
