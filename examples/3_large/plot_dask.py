"""
Does it matter where the rows are?
==================================

A table may be spread over the machines of a cluster, as a Dask array or dataframe. Rows stay there. Only sums come
back, and the noise is added on your machine. The answer must not depend on which machine computed which sum.
"""

# %%
# 60,000 people and 40 columns, divided into 1, 4 and 12 partitions. The seed lets us compare results bit by bit. It
# makes them *not* private, so leave ``rng`` out when the records are real.
import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import privspan as ps
from privspan.datasets import spiked_subspace

people, truth = spiked_subspace(60_000, 40, 4, gamma_w=0.1, rng=0)
cuts = {"1 partition": 60_000, "4 partitions": 15_000, "12 partitions": 5_000}

# %%
# Compare a run on one machine, in pieces of the same lengths, with a run in Dask: the bits are the same.
releases = {}
with dask.config.set(scheduler="synchronous"):  # on a cluster: Client("tcp://…")
    for name, rows in cuts.items():
        spread = da.from_array(people, chunks=(rows, -1))
        releases[name] = ps.private_subspace(spread, 4, method="adaptive", epsilon=1.0, delta=1e-6, rng=7)
        at_home = ps.rows.partition_rows(people, [rows] * (60_000 // rows))
        same = ps.private_subspace(at_home, 4, method="adaptive", epsilon=1.0, delta=1e-6, rng=7)
        identical = np.array_equal(same.subspace.basis, releases[name].subspace.basis)
        error = releases[name].subspace.distance(truth)
        print(f"{name:<14} error {error:.2g}   the same bits as without Dask: {identical}")

# %%
# The largest angle, in degrees, between the answers for different numbers of partitions, and between them and the
# truth. The same seed gives the same noise, so the partitions change only the rounding, in the tenth digit. The
# distance to the truth is due to the noise of privacy.
names = [*cuts, "the truth"]
found = [*(release.subspace for release in releases.values()), truth]
angles = np.array([[np.degrees(np.arcsin(min(a.distance(b), 1.0))) for b in found] for a in found])
figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
picture = axes.imshow(angles, cmap="Blues", vmin=0)
for i, row in enumerate(angles):
    for j, angle in enumerate(row):
        axes.text(
            j,
            i,
            f"{angle:.0e}°" if angle < 1e-3 else f"{angle:.2g}°",
            ha="center",
            va="center",
            color="white" if angle > angles.max() / 2 else "0.1",
        )
axes.set(xticks=range(len(names)), yticks=range(len(names)), yticklabels=names)
axes.set_xticklabels(names, rotation=25, ha="right")
figure.colorbar(picture, label="largest angle, degrees")
plt.show()
