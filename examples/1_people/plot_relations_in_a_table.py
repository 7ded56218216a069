"""
Which columns follow from others, exactly?
==========================================

A table of flights has twelve columns of whole numbers, and some of them follow from others. Which? The answer is
exact, has no noise, and is differentially private: it is released completely or not at all.
"""

# %%
# The bundled table: 1,500 flights out of New York in 2013, one per row.
import matplotlib.pyplot as plt
import numpy as np

import privspan as ps
from privspan.demo import bundled_flights
from privspan.exact.plan import plan_exact

names, table = bundled_flights()
print(table.shape, *names)

# %%
# Ten of the twelve columns are free, we guess. ``affine=True`` also finds constants.
release = ps.exact_subspace(table, 10, epsilon=1.0, delta=1e-6, affine=True, names=names)
for relation in release.subspace.describe_relations():
    print(relation)
print(release.cost)

# %%
# The subspace is now public. You can use it to find records that break a relation. The list of these records is *not*
# private.
broken = table[:3].copy()
broken[1, names.index("minute")] += 7
off = np.linalg.norm(broken - release.subspace.project(broken), axis=1)
print(off.round(3))

# %%
# How many rows would have been enough? The probability of an answer does not depend on the number of columns. It
# depends on the number of free dimensions.
rows = np.arange(10, 601, 10)
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for k in (2, 5, 10):
    plans = [plan_exact(int(n), k, epsilon=1.0, delta=1e-6, method="votes") for n in rows]
    axes.plot(rows, [plan.release_probability for plan in plans], lw=2, label=f"{k} free dimensions")
axes.set(xlabel="rows", ylabel="probability of an answer", title="Exact subspace by votes, ε = 1, δ = 1e-6")
axes.legend(frameon=False)
plt.show()
