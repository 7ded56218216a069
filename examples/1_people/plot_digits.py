"""
What do private components look like?
=====================================

Each of 1,797 people wrote a digit, 8 × 8 grey values. The components of such a table are pictures themselves, so one
can see what noise does to them, and whether the fit says so.
"""

# %%
# Without privacy, and with a small, a middling and a large budget.
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
# A component that does not stand out of the noise is a guess; ``stands_out_`` says how many do. Those are framed. A
# sign means nothing, so each picture is turned to agree with the one above.
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
figure.suptitle("five components; framed: told from noise, by the fit's own account")
plt.show()

# %%
# What the fits say of themselves, and what is true (which only we know, because the digits are public).
total = PCA(components).fit(digits).explained_variance_.sum()
for name, model in list(models.items())[1:]:
    true = np.trace(model.components_ @ np.cov(digits.T) @ model.components_.T) / total
    said = f"{model.captured_variance_:.0%} ± {model.captured_variance_std_:.0%}"
    print(f"{name:<8} says it captured {said:<12} it did capture {true:.0%}")
