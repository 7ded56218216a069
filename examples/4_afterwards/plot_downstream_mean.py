"""
What is a subspace good for afterwards? A private mean
======================================================

The noise of a private mean grows with the number of columns. If the records lie near a low-dimensional subspace, you
can spend half of the budget on that subspace. The other half then has to hide one record in a few coordinates only.
We compare this with a mean of all columns, at the same total budget.
"""

# %%
# Records lie near a three-dimensional subspace that also contains their mean. Nearly all rows have a length of at
# most 4.
import matplotlib.pyplot as plt
import numpy as np

from privspan import Budget, private_mean, private_subspace
from privspan.datasets import gaussian_subspace
from privspan.privacy import share_mu

n, k, bound = 4_000, 3, 4.0
budget = Budget(3.0, 1e-6)
columns = [50, 100, 200, 400, 800]

# %%
# ``share_mu`` divides the budget so that the two steps together cost the whole budget. A seed makes the figure
# repeatable. Leave ``rng`` out when the records are real.
without, within = [], []
for d in columns:
    X, truth = gaussian_subspace(n, d, k, gamma_w=0.05, rng=0)
    X += truth.basis.sum(axis=1)
    centre = X.mean(axis=0)

    plain = private_mean(X, epsilon=budget.epsilon, delta=budget.delta, norm_bound=bound, rng=1)
    without.append(np.linalg.norm(plain.mean - centre) / np.linalg.norm(centre))

    first, second = (Budget.for_mu(mu, budget.delta) for mu in share_mu(budget.mu, 0.5, 0.5))
    learnt = private_subspace(X, k, epsilon=first.epsilon, delta=first.delta, method="adaptive", rng=2)
    projected = private_mean(
        X, subspace=learnt.subspace, epsilon=second.epsilon, delta=second.delta, norm_bound=bound, rng=3
    )
    within.append(np.linalg.norm(projected.mean - centre) / np.linalg.norm(centre))

# %%
# Without the subspace the error grows like the square root of the number of columns. With the subspace it hardly
# grows.
figure, axes = plt.subplots(figsize=(6, 4))
axes.loglog(columns, without, "o-", label="mean of all coordinates")
axes.loglog(columns, within, "o-", label="subspace first, then its coordinates")
axes.set(xlabel="columns d", ylabel="error / length of the mean", title=f"n = {n:,}, k = {k}, epsilon = 3 in total")
axes.legend()
figure.tight_layout()
plt.show()
