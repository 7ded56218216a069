"""
What do private components look like?
=====================================

The table has 1,797 handwritten digits of 8 × 8 grey values, which we treat as one per person. Its components are
pictures too, so you can see what noise does to them, and whether the fit says so.
"""

# %%
# We fit without privacy, and with a large, a medium and a small budget.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

import privspan as ps

digits = ps.datasets.load("digits").values
components = 5
models = {"no privacy": PCA(components).fit(digits)}
for epsilon in (10.0, 3.0, 1.0):
    models[f"ε = {epsilon:g}"] = ps.PrivatePCA(components, epsilon=epsilon, delta=1e-6).fit(digits)

# %%
# ``stands_out_`` says how many components stand out of the noise. These are framed; the others may be only noise.
# The sign of a component means nothing, so each picture gets the sign that agrees with the one without privacy.
figure, panels = plt.subplots(len(models), components, figsize=(7, 6), layout="constrained")
for row, (name, model) in zip(panels, models.items(), strict=True):
    found = getattr(model, "stands_out_", components)
    for number, axes in enumerate(row):
        picture = model.components_[number]
        picture = picture * np.sign(picture @ models["no privacy"].components_[number])
        axes.imshow(picture.reshape(8, 8), cmap="RdBu", vmin=-0.4, vmax=0.4)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(visible=number < found, color="C2", linewidth=3)
    row[0].set_ylabel(name)
figure.suptitle("five components; framed: stands out of the noise, according to the fit")
plt.show()

# %%
# The captured variance that the fits report, and the true one. We know the true one because the digits are public.
total = PCA(components).fit(digits).explained_variance_.sum()
for name, model in list(models.items())[1:]:
    true = np.trace(model.components_ @ np.cov(digits.T) @ model.components_.T) / total
    said = f"{model.captured_variance_:.0%} ± {model.captured_variance_std_:.0%}"
    print(f"{name:<8} reported {said:<12} true {true:.0%}")
