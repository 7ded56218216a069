"""
Does it matter where the rows are?
==================================

A table may be spread over the machines of a cluster, as a Dask array or dataframe. Rows stay where they are: totals
come back, and the noise is added here. So the answer must not depend on who did the adding.
"""

# %%
# 60,000 people in 40 columns, cut into 1, 4 and 12 partitions. The seed is there to compare results bit by bit, and
# makes them *not* private; leave ``rng`` out when the records are real.
import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import privspan as ps
from privspan.datasets import spiked_subspace

people, truth = spiked_subspace(60_000, 40, 4, gamma_w=0.1, rng=0)
cuts = {"1 partition": 60_000, "4 partitions": 15_000, "12 partitions": 5_000}

# %%
# At home, in pieces of the same lengths, and with Dask: the same bits.
releases = {}
with dask.config.set(scheduler="synchronous"):  # on a cluster: Client("tcp://…")
    for name, rows in cuts.items():
        spread = da.from_array(people, chunks=(rows, -1))
        releases[name] = ps.private_subspace(spread, 4, method="adaptive", epsilon=1.0, delta=1e-6, rng=7)
        at_home = ps.rows.partition_rows(people, [rows] * (60_000 // rows))
        same = ps.private_subspace(at_home, 4, method="adaptive", epsilon=1.0, delta=1e-6, rng=7)
        identical = np.array_equal(same.subspace.basis, releases[name].subspace.basis)
        error = releases[name].subspace.distance(truth)
        print(f"{name:<14} error {error:.2g}   the same bits as at home: {identical}")

# %%
# How far the answers for different cuts lie from one another and from the truth, in degrees of the largest angle.
# One seed is one noise, so the cut changes nothing but rounding, in the tenth digit; what remains is the noise of
# privacy.
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
