"""How many people get their own region of ancestry, read off private components of the 1000 Genomes?

2,000 people of the table are the study, the other 504 are newcomers on whom all is graded; every run draws them anew.
One budget, delta = 1e-6 in all, pays for components (a half), means of the regions and a map of the scores (a quarter
each).  *Means* gives a newcomer the region of the nearest private mean; the regions of the study are private too.
*Clusters* uses no regions: points drawn from the private map are put into five clusters, which are matched with the
regions one to one so that most newcomers are right.  The rivals are Analyze Gauss on differences of pairs and on rows
about the middle of the range, the same without privacy, and private means of all columns with the whole budget.
The course was chosen on seeds from 1000 on, and is reported on those from 0 on.
Writes ``benchmarks/results/ancestry.csv`` and two pictures in ``docs/_static``; ten minutes, with ``--quick`` one.
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from privspan import PrivatePCA, ScoreMap, Subspace, private_mean, private_score_map
from privspan.baselines import analyze_gauss
from privspan.datasets import load
from privspan.privacy.randomness import open_streams
from privspan.sums.mean import pair_differences

ROOT = Path(__file__).parents[2]
RESULTS, PICTURES = ROOT / "benchmarks" / "results" / "ancestry.csv", ROOT / "docs" / "_static"
EPSILONS, DELTA, STUDY = (0.3, 1.0, 3.0), 1e-6, 2000
REACH = 8.0  # public: √(127/2), were every marker as variable as random mating allows
SMALLEST_SHARE = 0.02  # of a region: noise must not divide by zero
COLUMNS = ("method", "k", "epsilon", "way", "accuracy", "standard_error", "runs")
OURS, PAIRS, MIDDLE = "PrivatePCA", "Analyze Gauss, pairs", "Analyze Gauss, middle"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#000000")  # Okabe and Ito
MARKS = "os^Dv"

Array = NDArray[Any]

TABLE = load("ancestry")
ROWS = TABLE.values - 1.0  # (2504, 127), from -1 to 1
REGIONS, LABELS = np.unique(TABLE.labels, return_inverse=True)


def drawn(seed: int) -> tuple[Array, Array]:
    """Return who is in the study and who is a newcomer, by a public order."""
    order = np.random.default_rng(seed).permutation(len(ROWS))
    return order[:STUDY], order[STUDY:]


def by_pca(X: Array, k: int, epsilon: float, seed: int) -> Subspace:
    model = PrivatePCA(k, epsilon=epsilon, delta=DELTA / 2, bounds=(-1, 1), random_state=seed).fit(X)
    return model.subspace_


def by_pairs(X: Array, k: int, epsilon: float, seed: int) -> Subspace:
    pairs = pair_differences(X, open_streams(seed).public)
    return analyze_gauss(pairs, k, epsilon=epsilon, delta=DELTA / 2, rng=seed).subspace


def about_the_middle(X: Array, k: int, epsilon: float, seed: int) -> Subspace:
    return analyze_gauss(X, k, epsilon=epsilon, delta=DELTA / 2, rng=seed).subspace


PRIVATE: dict[str, Callable[[Array, int, float, int], Subspace]] = {
    OURS: by_pca,
    PAIRS: by_pairs,
    MIDDLE: about_the_middle,
}


def scores_in(subspace: Subspace, X: Array) -> Array:
    """Return the coordinates of rows in a subspace, from its offset; (n, k)."""
    return (X if subspace.offset is None else X - subspace.offset) @ subspace.basis


def by_region(scores: Array, labels: Array) -> Array:
    """Give everybody one row with their scores, and a constant, at their own region: (n, 5 (k + 1))."""
    wide = np.zeros((len(scores), len(REGIONS), scores.shape[1] + 1))
    wide[np.arange(len(scores)), labels] = np.column_stack([scores, np.full(len(scores), REACH / 2)])
    return wide.reshape(len(scores), -1)


def region_means(scores: Array, labels: Array, epsilon: float, delta: float, seed: int) -> Array:
    """Release the mean scores of every region, from one private mean; (5, k)."""
    wide = by_region(scores, labels)
    mean = private_mean(wide, epsilon=epsilon, delta=delta, norm_bound=REACH, rng=seed).mean.reshape(len(REGIONS), -1)
    shares = np.maximum(mean[:, -1] / (REACH / 2), SMALLEST_SHARE)
    return np.asarray(mean[:, :-1] / shares[:, None])


def right_by_means(means: Array, scores: Array, labels: Array) -> float:
    nearest = np.linalg.norm(scores[:, None] - means[None], axis=2).argmin(axis=1)
    return float((nearest == labels).mean())


def right_by_clusters(points: Array, scores: Array, labels: Array) -> float:
    """Return how many people sit in the cluster of their region, clusters being matched with regions."""
    cluster = KMeans(len(REGIONS), n_init=5, random_state=0).fit(points).predict(scores)
    together = np.zeros((len(REGIONS), len(REGIONS)))
    np.add.at(together, (cluster, labels), 1)
    return float(together[linear_sum_assignment(-together)].sum() / len(scores))


def mapped(X: Array, subspace: Subspace, epsilon: float, seed: int) -> ScoreMap:
    ends = (-REACH, REACH)
    return private_score_map(X, subspace, epsilon=epsilon, delta=DELTA / 4, ranges=(ends, ends), rng=seed)


def private_run(method: str, k: int, epsilon: float, seed: int) -> Iterator[tuple[str, float]]:
    """Yield how many newcomers are right, by means and, in two components, by clusters."""
    study, fresh = drawn(seed)
    subspace = PRIVATE[method](ROWS[study], k, epsilon / 2, seed)
    inside, new = (scores_in(subspace, ROWS[who]) for who in (study, fresh))
    means = region_means(inside, LABELS[study], epsilon / 4, DELTA / 4, seed + 500)
    yield "means", right_by_means(means, new, LABELS[fresh])
    if k == 2:
        picture = mapped(ROWS[study], subspace, epsilon / 4, seed + 700)
        if picture.smoothed().any():
            yield "clusters", right_by_clusters(picture.sample(4000, seed), new, LABELS[fresh])
        else:
            yield "clusters", float((LABELS[fresh] == np.bincount(LABELS[fresh]).argmax()).mean())  # one cluster


def all_columns(epsilon: float, seed: int) -> Iterator[tuple[str, float]]:
    study, fresh = drawn(seed)
    means = region_means(ROWS[study], LABELS[study], epsilon, DELTA, seed + 500)
    yield "means", right_by_means(means, ROWS[fresh], LABELS[fresh])


def exact_means(scores: Array, labels: Array) -> Array:
    return np.array([scores[labels == region].mean(axis=0) for region in range(len(REGIONS))])


def without_privacy(k: int | None, seed: int) -> Iterator[tuple[str, float]]:
    """Do the same with ordinary PCA and exact means, or with all columns."""
    study, fresh = drawn(seed)
    model = None if k is None else PCA(k).fit(ROWS[study])
    inside, new = (ROWS[who] if model is None else model.transform(ROWS[who]) for who in (study, fresh))
    yield "means", right_by_means(exact_means(inside, LABELS[study]), new, LABELS[fresh])
    if k == 2:
        yield "clusters", right_by_clusters(inside, new, LABELS[fresh])


def cases() -> Iterator[tuple[str, str, float, Callable[[int], Iterator[tuple[str, float]]]]]:
    """Yield method, k and epsilon, and what runs it with a seed."""
    for k in (2, 4, None):
        name = "all" if k is None else str(k)
        yield "not private", name, math.inf, lambda seed, k=k: without_privacy(k, seed)
    for epsilon in EPSILONS:
        yield "means of all columns", "all", epsilon, lambda seed, e=epsilon: all_columns(e, seed)
        for method in PRIVATE:
            for k in (2, 4):
                yield method, str(k), epsilon, lambda seed, m=method, k=k, e=epsilon: private_run(m, k, e, seed)


def measured(runs: int) -> list[dict[str, Any]]:
    rows = []
    for method, k, epsilon, run in cases():
        found: dict[str, list[float]] = {}
        for seed in range(runs):
            for way, share in run(seed):
                found.setdefault(way, []).append(share)
        for way, shares in found.items():
            error = float(np.std(shares, ddof=1)) / math.sqrt(runs)
            told = (method, k, f"{epsilon:g}", way, f"{np.mean(shares):.4f}", f"{error:.4f}", runs)
            rows.append(dict(zip(COLUMNS, told, strict=True)))
            print(
                f"{method:<22} k {k:>3}  epsilon {epsilon:<4g} {way:<9} {np.mean(shares):.3f} ± {error:.3f}",
                flush=True,
            )
    return rows


def draw_accuracy(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw accuracy against epsilon, means above and clusters below."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 1, figsize=(5.2, 8.0), sharex=True, layout="constrained")
    styles = {
        (OURS, "2"): ("#0072b2", "o", "-", "PrivatePCA, k = 2"),
        (OURS, "4"): ("#0072b2", "D", "--", "PrivatePCA, k = 4"),
        (PAIRS, "2"): ("#d55e00", "s", "-", "Analyze Gauss, pairs, k = 2"),
        (MIDDLE, "4"): ("#009e73", "^", "--", "Analyze Gauss, middle, k = 4"),
        (MIDDLE, "2"): ("#009e73", "v", "-", "Analyze Gauss, middle, k = 2"),
        ("means of all columns", "all"): ("#000000", "x", ":", "no components: 127 means"),
    }
    titles = {"means": "nearest private mean (uses regions)", "clusters": "clusters of the private map (no regions)"}
    for axes, (way, title) in zip(panels, titles.items(), strict=True):
        for (method, k), (colour, mark, line, label) in styles.items():
            here = [row for row in rows if (row["method"], row["k"], row["way"]) == (method, k, way)]
            if here:
                x, y, bars = ([float(row[key]) for row in here] for key in ("epsilon", "accuracy", "standard_error"))
                axes.errorbar(x, y, yerr=bars, color=colour, marker=mark, ls=line, capsize=3, label=label)
        for row in rows:
            if row["method"] == "not private" and row["way"] == way and row["k"] != "all":
                axes.axhline(float(row["accuracy"]), color="0.55", lw=1)
                axes.text(
                    0.28, float(row["accuracy"]) + 0.008, f"not private, k = {row['k']}", color="0.35", fontsize=9
                )
        axes.axhline(0.2, color="0.55", lw=1, ls=":")
        axes.text(0.5, 0.155, "chance", color="0.35", fontsize=9)
        axes.set(xscale="log", xticks=EPSILONS, xticklabels=[f"{e:g}" for e in EPSILONS], ylim=(0.12, 1.03))
        axes.minorticks_off()
        axes.set_title(title, fontsize=11)
        axes.set_ylabel("newcomers with their own region")
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.legend(fontsize=8.5, loc="lower right", frameon=False, bbox_to_anchor=(1.0, 0.06))
    panels[1].set_xlabel("ε for everything that is released")
    figure.savefig(path, dpi=150)


def draw_maps(path: Path, seed: int = 0) -> None:
    """Draw scores by ordinary PCA, which stay with their owner, above private maps with their means."""
    import matplotlib.pyplot as plt

    figure, (first, *others) = plt.subplots(3, 1, figsize=(5.2, 12.6), layout="constrained")
    _draw_people(first, drawn(seed)[0])
    for axes, epsilon in zip(others, EPSILONS[1:], strict=True):
        _draw_release(axes, drawn(seed)[0], epsilon, seed)
    for axes in (first, *others):
        axes.set(xlim=(-8.5, 8.5), ylim=(-8.5, 8.5), xlabel="component 1", ylabel="component 2")
    figure.savefig(path, dpi=150)


def _draw_people(axes: Any, study: Array) -> None:
    scores = PCA(2).fit_transform(ROWS[study])
    scores = scores * np.sign(exact_means(scores, LABELS[study])[0])  # Africa at the upper right
    for region, colour, mark in zip(range(len(REGIONS)), COLOURS, MARKS, strict=True):
        own = scores[LABELS[study] == region]
        axes.scatter(*own.T, s=9, color=colour, marker=mark, alpha=0.55, lw=0, label=REGIONS[region])
    axes.legend(frameon=False, ncols=5, loc="upper center", markerscale=2, columnspacing=0.8, handletextpad=0.1)
    axes.set_title("NOT RELEASED: one point per person, ordinary PCA", fontsize=11)


def _draw_release(axes: Any, study: Array, epsilon: float, seed: int) -> None:
    from privspan.plot import score_map

    subspace = by_pca(ROWS[study], 2, epsilon / 2, seed)
    means = region_means(scores_in(subspace, ROWS[study]), LABELS[study], epsilon / 4, DELTA / 4, seed + 500)
    signs = np.sign(means[0])  # of released numbers: turning the map costs nothing
    turned = Subspace(subspace.basis * signs, offset=subspace.offset)
    score_map(mapped(ROWS[study], turned, epsilon / 4, seed + 700), ax=axes)
    axes.figure.axes[-1].set_ylabel("people per cell")  # the colour bar
    box = {"fc": "white", "ec": "none", "alpha": 0.8, "pad": 1}
    for name, mean, colour, mark in zip(REGIONS, means * signs, COLOURS, MARKS, strict=True):
        axes.plot(*mean, mark, color=colour, ms=9, mec="white", mew=1.5)
        axes.annotate(name, mean, xytext=(7, 6), textcoords="offset points", weight="bold", bbox=box)
    axes.set_title(f"RELEASED: private map and means, ε = {epsilon:g} in all", fontsize=11)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="two runs of each; nothing is written")
    parser.add_argument("--pictures-only", action="store_true", help="draw again from the stored results")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.quick:
        measured(2)
        return
    if not arguments.pictures_only:
        rows = measured(arguments.runs)
        with RESULTS.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    with RESULTS.open() as file:
        draw_accuracy(list(csv.DictReader(file)), PICTURES / "ancestry-accuracy.png")
    draw_maps(PICTURES / "ancestry-map.png")


if __name__ == "__main__":
    main()
