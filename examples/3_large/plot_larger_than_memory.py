"""
What if the table does not fit in memory?
=========================================

Open the file instead of loading it. Rows are read in pieces, so a table of any length needs the memory of a few
pieces only.
"""

# %%
# The file has 100,000 people and 50 columns, near a subspace of three dimensions. ``open_rows`` reads only its first
# bytes. You can pass the result to any function. Parquet, Arrow, Zarr and AnnData files work the same way.
import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import privspan as ps

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "people.npy"
    people, truth = ps.datasets.gaussian_subspace(100_000, 50, 3, gamma_w=0.1, rng=0)
    np.save(path, people.astype(np.float32))

    rows = ps.rows.open_rows(path)
    release = ps.private_subspace(rows, 3, method="adaptive", epsilon=0.5, delta=1e-7)
    print(rows)
    print(f"error {release.subspace.distance(truth):.2g} (0 is perfect, 1 is useless)")
    del rows

# %%
# To measure the memory we need larger tables than this page should write to disk. These tables are not stored: each
# row is generated when it is read. They have 200 columns of ±1 near a subspace of four dimensions, and up to 1.6 GB
# of numbers.
sizes, tables, needs = [60_000, 250_000, 700_000, 1_000_000], [], []
for n in sizes:
    endless, _ = ps.datasets.sign_subspace(n, 200, 4, rng=0)
    tracemalloc.start()
    ps.private_subspace(endless, 4, method="adaptive", epsilon=0.5, delta=1e-7)
    needs.append(tracemalloc.get_traced_memory()[1] / 1e6)
    tracemalloc.stop()
    tables.append(n * 200 * 8 / 1e6)

# %%
# Rows of up to one gigabyte are kept between passes, because that is faster. Larger tables are read again in each
# pass, and the memory no longer depends on the length of the table.
figure, axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
places = np.arange(len(sizes))
axes.bar(places - 0.2, tables, 0.38, color="0.8", label="the table, in float64")
bars = axes.bar(places + 0.2, needs, 0.38, color="C0", label="what the run needed")
axes.bar_label(bars, fmt="%.0f MB")
axes.axhline(2**30 / 1e6, color="0.5", lw=1, ls="--")
axes.set(xticks=places, xticklabels=[f"{n:,} people" for n in sizes], ylabel="MB", title="200 columns")
axes.legend(frameon=False)
plt.show()
