"""
How many people do I need?
==========================

Ask before you collect: a plan is made from public numbers alone and costs no privacy. Does it keep its word on a real
table? We know the answer for the 32,735 flights out of New York, because they are public: what do we find with fewer?
"""

# %%
# Twelve columns in round units, about a standard deviation each (a public table may be looked at for that).
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
# The plan, and the question turned round: how many rows does an error of 0.2 take?
plan = ps.plan(len(table), 12, k, epsilon=epsilon, delta=delta, center=True)
print(f"{len(table):,} rows: predicted error {plan.error:.2g}")
print(f"for an error of 0.2: about {plan.needed_n(0.2):,} rows")

# %%
# A plan is for ideal data: bell-shaped, and with little besides the components. Flights are neither: some are a day
# late, and their fourth component is not much smaller than the third. Whoever knows the latter tells the plan, with
# ``gamma`` (we read it off all flights, which are public; with private data that would be a leak).
#
# And what happens: samples of the flights, three of each size. The variance that is captured, out of what the best
# three components of all flights hold, is what most uses of a PCA live on; it comes well before the last direction
# is right.
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
