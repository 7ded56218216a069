"""``make demo``: the main job on generated and bundled data, with something to read and something to look at."""

from __future__ import annotations

import argparse
import time
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privspan as ps
from privspan.planner_exact import plan_exact

EPSILON, DELTA = 1.0, 1e-6
PEOPLE, COLUMNS, DIMENSION = 60, 10_000, 3


def main(arguments: list[str] | None = None) -> None:
    """Run the demonstration and save its picture."""
    parser = argparse.ArgumentParser(prog="privspan-demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for the picture")
    folder = parser.parse_args(arguments).output
    print(f"privspan {ps.__version__}: every answer below is ({EPSILON:g}, {DELTA:g})-differentially private.\n")
    people_in_many_dimensions()
    release = flights()
    close_to_a_subspace()
    everyday_pca()
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "exact.png"
    draw(release, picture)
    print(f"A picture of the first two is in {picture}.")


def people_in_many_dimensions() -> None:
    """Sixty people in ten thousand dimensions."""
    rng = np.random.default_rng(2021)
    truth = rng.integers(-50, 51, (DIMENSION, COLUMNS))
    X = rng.integers(-50, 51, (PEOPLE, DIMENSION)) @ truth  # (60, 10000)
    print(f"1. {PEOPLE} people, {COLUMNS:,} columns. Everyone lies in one {DIMENSION}-dimensional subspace.")
    start = time.perf_counter()
    release = ps.exact_subspace(X, DIMENSION, epsilon=EPSILON, delta=DELTA)
    seconds = time.perf_counter() - start
    if release.subspace is None:
        print("   The private step abstained, which happens less than once in a million runs.\n")
        return
    wanted = ps.Subspace.from_spanning(truth.T.astype(float))
    print(f"   Found it in {seconds:.1f} s; distance to the true one {release.subspace.distance(wanted):.0e}.")
    print(f"   Cost {release.cost}; method {release.method}.\n")


def flights() -> ps.Release:
    """A real table with a constant and a derived column."""
    names, table = bundled_flights()
    n, d = table.shape
    print(f"2. {n:,} flights out of New York in 2013, {d} columns ({', '.join(names)}).")
    print("   Which exact relations hold between the columns?")
    release = ps.exact_subspace(table, d - 2, epsilon=EPSILON, delta=DELTA, affine=True, names=names)
    if release.subspace is None:
        print("   The private step abstained.\n")
        return release
    for relation in release.subspace.relations():
        print(f"   * {relation.describe(names)}")
    blocks, size = release.parameters["blocks"], release.parameters["block_size"]
    print(f"   Cost {release.cost}; {blocks} blocks of {size} flights voted.\n")
    return release


def close_to_a_subspace() -> None:
    """People who lie close to a subspace, not in it: stable leverage against noise on the covariance."""
    n, d = 2_000, 2_000
    X, truth = ps.datasets.gaussian_subspace(n, d, DIMENSION, gamma_w=1e-3, rng=7)
    print(f"3. {n:,} people, {d:,} columns, everyone a thousandth away from a {DIMENSION}-dimensional subspace.")
    for name, algorithm in (("stable leverage", ps.stable_subspace), ("Analyze Gauss", ps.baselines.analyze_gauss)):
        found = algorithm(X, DIMENSION, epsilon=EPSILON, delta=DELTA).subspace
        said = "abstained" if found is None else f"error {found.distance(truth):.3f} (0 is perfect, 1 is useless)"
        print(f"   {name + ':':17}{said}")
    print()


def everyday_pca() -> None:
    """A PCA as scikit-learn users know it."""
    n, d = 20_000, 100
    X, truth = ps.datasets.gaussian_subspace(n, d, DIMENSION, gamma_w=0.3, condition=4.0, rng=7)
    model = ps.PrivatePCA(DIMENSION, epsilon=EPSILON, delta=DELTA).fit(X + 1.0)
    shares = ", ".join(f"{share:.0%}" for share in model.explained_variance_ratio_)
    print(f"4. PrivatePCA on {n:,} people, {d} columns, not centred, no bound given.")
    print(f"   Planned error {model.plan_.error:.3f}, actual error {model.subspace_.distance(truth):.3f}.")
    print(f"   Variance explained by its components: {shares}. Cost {model.release_.cost}.\n")


def bundled_flights() -> tuple[list[str], NDArray[np.int64]]:
    """1,500 flights of the public nycflights table: column names and whole numbers."""
    text = resources.files("privspan").joinpath("data/flights.csv").read_text(encoding="utf-8").splitlines()
    return text[0].split(","), np.loadtxt(text[1:], dtype=np.int64, delimiter=",")


def draw(release: ps.Release, picture: Path) -> None:
    """Left: how many people are enough. Right: the relations that were found."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    draw_sample_size(left)
    draw_relations(right, release)
    figure.savefig(picture, dpi=150)
    plt.close(figure)


def draw_sample_size(axes: Any) -> None:
    """Chance of an answer against the number of people, the same for any number of columns."""
    people = np.arange(6, 181, 2)
    for method, label in (("gap-max", "method 'gap-max'"), ("votes", "method 'votes'")):
        plans = [
            plan_exact(int(n), DIMENSION, epsilon=EPSILON, delta=DELTA, method=method)  # type: ignore[arg-type]
            for n in people
        ]
        axes.plot(people, [plan.release_probability for plan in plans], label=label, lw=2)
    axes.axvline(PEOPLE, color="0.6", ls=":")
    axes.annotate(f"this demo: {PEOPLE} people", (PEOPLE + 2, 1.07), color="0.35")
    axes.set(xlabel="people", ylabel="chance of an answer", ylim=(-0.03, 1.17))
    axes.set_title(f"{DIMENSION} dimensions out of any number of columns\n(ε = {EPSILON:g}, δ = {DELTA:g})")
    axes.legend(frameon=False, loc="center right")


def draw_relations(axes: Any, release: ps.Release) -> None:
    """Coefficients of every relation, one row each."""
    if release.subspace is None:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "abstained", ha="center")
        return
    names = [*(release.subspace.names or ()), "1"]
    relations = release.subspace.relations()
    table = np.array([[*relation.coefficients, relation.constant] for relation in relations], dtype=float)
    axes.imshow(np.sign(table), cmap="coolwarm", vmin=-1.6, vmax=1.6, aspect="auto")
    for (i, j), value in np.ndenumerate(table):
        if value:
            axes.text(j, i, f"{value:g}", ha="center", va="center", fontsize=8)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axes.set_yticks(range(len(relations)), [relation.describe(names[:-1]) for relation in relations])
    axes.set_title("exact relations in the flight table\n(each row of numbers, times the columns, is 0)")


if __name__ == "__main__":
    main()
