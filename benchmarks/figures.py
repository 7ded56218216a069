"""One picture per suite, each for one glance: ours in colour, prior systems in grey, useless answers shaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.contest import Contest, Score, contests
from benchmarks.suites import accuracy, peers
from benchmarks.summary import TIE, USELESS, Group, best, is_ours, is_prior, label, where

COLOURS = {
    "adaptive": "tab:blue", "stable": "tab:orange", "approximate": "tab:green", "histogram": "tab:purple",
    "analyze_gauss": "0.35", "analyze_gauss_gap": "tab:brown", "noisy_power": "tab:pink",
    "diffprivlib": "tab:red", "opendp": "tab:olive", "plain": "0.35",
    "sklearn_full": "0.2", "sklearn_randomized": "0.55",
}  # fmt: skip
"""The colour of a method in every figure."""

_ERROR = "error (sine of the largest angle)"


def _subplots(
    columns: int, width: float, height: float = 3.8, *, rows: int = 1, **options: Any
) -> tuple[Any, list[Any]]:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        rows, columns, figsize=(width, height), layout="constrained", squeeze=False, **options
    )
    return figure, list(axes.flat)


def _points(some: Iterable[Group], axis: str, method: str, value: str = "error") -> tuple[list[float], list[float]]:
    """Return what a line shows: the setting and the median, where most runs gave an answer."""
    answered = [
        (float(one.setting[axis]), middle)
        for one in some
        if one.method == method
        and 2 * len(one.numbers(value)) > one.ran
        and (middle := one.median(value)) is not None
    ]
    answered.sort()
    return [x for x, _ in answered], [y for _, y in answered]


def _plain_ticks(axes: Any, numbers: Sequence[int]) -> None:
    """Label a logarithmic axis with the numbers that were measured and nothing else."""
    axes.set_xticks(numbers, [f"{number:,}" for number in numbers])
    axes.minorticks_off()


def _shade(axes: Any, bottom: float) -> None:
    axes.axhspan(USELESS, 1.15, color="tab:red", alpha=0.10, lw=0)
    axes.text(0.02, 0.985, "useless", transform=axes.transAxes, va="top", color="tab:red", fontsize=9)
    axes.set_ylim(bottom, 1.15)


def _error_lines(axes: Any, some: Sequence[Group], axis: str) -> None:
    """Draw the error of every method against one number of the setting."""
    methods = dict.fromkeys(one.method for one in some)
    for method in filter(is_prior, methods):
        axes.plot(*_points(some, axis, method), color="0.8", lw=0.9, zorder=1)
    settings = sorted({float(one.setting[axis]) for one in some})
    at = {x: best([one for one in some if float(one.setting[axis]) == x], is_prior) for x in settings}
    known = [(x, one.error) for x, one in at.items() if one is not None]
    axes.plot(*zip(*known, strict=True), "s--", color="k", ms=4, lw=1.5, label="best prior system", zorder=3)
    axes.plot([], [], color="0.8", label="each prior system")
    for method in filter(is_ours, methods):
        x, y = _points(some, axis, method)
        if x:
            axes.plot(x, y, "o-", color=COLOURS[method], lw=2, ms=5, label=f"ours: {label(method)}", zorder=4)
    axes.set(xscale="log", yscale="log")
    drawn = [y for line in axes.lines for y in line.get_ydata()]
    _shade(axes, min([0.01, *(0.6 * y for y in drawn if y > 0)]))


def growth(some: list[Group]) -> Any:
    """Error against the number of columns."""
    figure, (axes,) = _subplots(1, 7.5, 4.6)
    _error_lines(axes, some, "d")
    one = some[0].setting
    axes.set(
        xlabel="columns d",
        ylabel=_ERROR,
        title=f"{int(one['n']):,} records, k = {one['k']}, ε = {one['epsilon']}, tail energy {one['gamma_w']}",
    )
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


_AXES = {"n": "records n", "gamma_w": "tail energy (1: as long as the signal)", "epsilon": "privacy budget ε"}


def accuracy_lines(some: list[Group]) -> Any:
    """Error against records, tail and budget, the other numbers as in the base setting."""
    base = accuracy.BASE if where(some, **accuracy.BASE) else dict(some[0].setting)
    figure, panels = _subplots(3, 10.5, 4.8)
    for axes, (axis, name) in zip(panels, _AXES.items(), strict=True):
        others = {key: value for key, value in base.items() if key != axis}
        _error_lines(axes, where(some, **others), axis)
        axes.set_xlabel(name)
    bottom = min(axes.get_ylim()[0] for axes in panels)
    for axes in panels:
        axes.set_ylim(bottom=bottom)
    panels[0].set_ylabel(_ERROR)
    fixed = f"n = {int(base['n']):,}, tail energy {base['gamma_w']}, ε = {base['epsilon']}, where not on the axis"
    figure.suptitle(f"d = {base['d']}, k = {base['k']}; {fixed}", fontsize=10)
    handles = {
        text: handle for axes in panels for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), frameon=False, fontsize=9, loc="outside lower center", ncols=3)
    return figure


def winners(some: list[Group]) -> Any:
    """Which method is best, as a map of records against tail."""
    tails = sorted({one.setting["gamma_w"] for one in some}, key=float)
    counts = sorted({one.setting["n"] for one in some}, key=int)
    figure, (axes,) = _subplots(1, 8.5, 4.8)
    seen: dict[str, Any] = {}
    for i, tail in enumerate(tails):
        for j, n in enumerate(counts):
            here = where(some, n=n, gamma_w=tail)
            winner = best(here, lambda method: True)
            if winner is None or winner.error is None:
                continue
            useless = winner.error >= USELESS
            colour = "0.93" if useless else COLOURS[winner.method]
            patch = axes.bar(j, 1, width=1, bottom=i - 0.5, color=colour, alpha=0.75, edgecolor="white", lw=2)
            if not useless:
                seen.setdefault(label(winner.method), patch)
            tied = any(
                one is not winner and one.error is not None and one.error <= TIE * winner.error for one in here
            )
            text = "useless" if useless else f"{winner.error:.2g}{' ≈' if tied else ''}"
            axes.text(j, i, text, ha="center", va="center", fontsize=9)
    axes.set_xticks(range(len(counts)), [f"{int(n):,}" for n in counts])
    axes.set_yticks(range(len(tails)), [f"{float(tail):g}" for tail in tails])
    axes.set(xlabel="records n", ylabel="tail energy", xlim=(-0.5, len(counts) - 0.5), ylim=(-0.5, len(tails) - 0.5))
    one = some[0].setting
    axes.set_title(f"Best method and its error: d = {int(one['d']):,}, k = {one['k']}, ε = {one['epsilon']}")
    axes.legend(
        seen.values(), seen.keys(), loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False,
        title="≈ another within 5 %",
    )  # fmt: skip
    return figure


def promises(some: list[Group]) -> Any:
    """Share of runs that kept the theorem's promise."""
    figure, (left, right) = _subplots(2, 10.5, 3.8)
    exact = where(some, method="exact")
    for index, d in enumerate(dict.fromkeys(one.setting["d"] for one in exact)):
        mine = sorted(where(exact, d=d), key=lambda one: int(one.setting["n"]))
        shares = [float(np.mean(one.numbers("success"))) for one in mine]
        counts = [int(one.setting["n"]) for one in mine]
        left.plot(counts, shares, "o", ms=5 + 5 * index, mfc="none", mew=2, label=f"measured, d = {int(d):,}")
    line = sorted({(int(one.setting["n"]), one.numbers("promised")[0]) for one in exact})
    left.plot(*zip(*line, strict=True), color="0.5", zorder=0, label="promised, any d")
    left.set(
        xlabel="records n", ylabel="share of runs", ylim=(-0.03, 1.08), title="exact_subspace finds the subspace"
    )
    left.legend(frameon=False, loc="lower right")
    others = [one for one in some if one.method != "exact"]
    names = [f"{one.method}\nd = {int(one.setting['d']):,}, k = {one.setting['k']}" for one in others]
    right.barh(names, [float(np.mean(one.numbers("success"))) for one in others], color="tab:blue", alpha=0.6)
    for index, one in enumerate(others):
        promised = one.numbers("promised")[0]
        right.plot([promised, promised], [index - 0.4, index + 0.4], color="k", lw=2)
    right.set(xlabel="share of runs within the promised distance; black: promised", xlim=(0, 1.02))
    right.tick_params(axis="y", labelsize=7)
    right.invert_yaxis()
    return figure


_LEAST_MISSED = 4e-4  # of the variance; less is drawn here


def captured(some: list[Group]) -> Any:
    """Captured variance of the real tables: one line a table, one panel an epsilon, near 1 drawn wide."""
    all_of_them = list(contests(some))
    epsilons = list(dict.fromkeys(one.epsilon for one in all_of_them))
    usual = min(epsilons, key=lambda epsilon: abs(float(epsilon) - 1.0))
    ranked = sorted((one for one in all_of_them if one.epsilon == usual), key=lambda one: one.ours.captured)
    places = {one.table: place for place, one in enumerate(ranked)}
    figure, panels = _subplots(len(epsilons), 2.0 + 2.4 * len(epsilons), 1.6 + 0.2 * len(places), sharey=True)
    for axes, epsilon in zip(panels, epsilons, strict=True):
        here = [one for one in all_of_them if one.epsilon == epsilon and one.table in places]
        _dots(axes, here, [places[one.table] for one in here])
        axes.set(title=f"ε = {float(epsilon):g}", ylim=(-0.7, len(places) - 0.3))
    panels[0].set_yticks(range(len(ranked)), [f"{one.table}  {one.n:,} × {one.d:,}" for one in ranked], fontsize=7.5)
    figure.supxlabel("variance captured, over that of ordinary PCA", fontsize=10)
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*(part[::-1] for part in handles), frameon=False, ncols=3, loc="outside upper center")
    return figure


def _dots(axes: Any, here: list[Contest], y: list[int]) -> None:
    """Draw ours, the best rival and the envelope, by what they miss: logarithmic, and perfect on the right."""

    def missed(scores: Iterable[Score | None]) -> list[float]:
        return [math.nan if one is None else max(1.0 - one.captured, _LEAST_MISSED) for one in scores]

    ours, theirs = missed(one.ours for one in here), missed(one.rival for one in here)
    axes.hlines(y, ours, theirs, color="0.6", lw=1.2, zorder=1)
    envelope = missed(one.envelope for one in here)
    axes.plot(envelope, y, "|", color="0.35", ms=8, mew=1.6, label="envelope, not private", zorder=2)
    axes.plot(theirs, y, "D", mfc="white", mec="#D55E00", ms=4.5, mew=1.4, label="best rival", zorder=3)
    axes.plot(ours, y, "o", color="#0072B2", ms=5, label="private_pca", zorder=4)  # colours after Okabe and Ito
    axes.set(xscale="log", xlim=(1.3, 0.75 * _LEAST_MISSED))
    axes.set_xticks([1.0, 0.1, 0.01, 0.001], ["0", "0.9", "0.99", "0.999"])
    axes.grid(axis="both", color="0.92", zorder=0)
    axes.minorticks_off()


def rivals(some: list[Group]) -> Any:
    """Error and time of the peers against the number of columns."""
    figure, (left, right) = _subplots(2, 10.0, 3.8)
    for method in dict.fromkeys(one.method for one in some):
        options: dict[str, Any] = {"color": COLOURS[method], "lw": 2, "label": label(method)}
        left.loglog(*_points(some, "d", method), "o-", **options)
        right.loglog(*_points(some, "d", method, "seconds"), "o-", **options)
        stopped = [int(one.setting["d"]) for one in some if one.method == method and one.count("time limit")]
        right.plot(stopped, [peers.LIMIT] * len(stopped), "x", color=COLOURS[method], ms=9, mew=2)
    right.axhline(peers.LIMIT, color="0.7", ls=":")
    right.text(0.02, 0.90, "× stopped at the time limit", transform=right.transAxes, va="top", fontsize=9)
    left.set(xlabel="columns d", ylabel=_ERROR, title=f"{peers.ROWS:,} records, k = {peers.DIMENSION}, ε = 1")
    right.set(xlabel="columns d", ylabel="seconds")
    left.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        _plain_ticks(axes, sorted({int(one.setting["d"]) for one in some}))
    return figure


def means(some: list[Group]) -> Any:
    """Error of a private mean against the number of columns."""
    figure, (axes,) = _subplots(1, 7.0, 4.2)
    names = {"plain": "no subspace", "adaptive": "ours: adaptive, then mean"}
    for method in dict.fromkeys(one.method for one in some):
        name = names.get(method, f"{label(method)}, then mean")
        axes.loglog(*_points(some, "d", method), "o-", color=COLOURS[method], lw=2, label=name)
    one = some[0].setting
    axes.set(
        xlabel="columns d",
        ylabel="error of the mean, relative",
        title=f"{int(one['n']):,} sign records, k = {one['k']}, ε = 1, δ = 1e-6",
    )
    axes.legend(frameon=False)
    return figure


def times(some: list[Group]) -> Any:
    """Seconds of every method, one group of bars per shape."""
    shapes = list(dict.fromkeys((one.setting["n"], one.setting["d"]) for one in some))
    methods = list(dict.fromkeys(one.method for one in some))
    figure, (axes,) = _subplots(1, 10.5, 4.2)
    width = 0.85 / len(methods)
    for index, method in enumerate(methods):
        seconds = [_seconds(where(some, method=method, n=n, d=d)) for n, d in shapes]
        places = np.arange(len(shapes)) + (index - (len(methods) - 1) / 2) * width
        axes.bar(places, seconds, width, color=COLOURS[method], label=label(method))
    axes.set_yscale("log")
    axes.set_xticks(range(len(shapes)), [f"{int(n):,}\n× {int(d):,}" for n, d in shapes])
    axes.set(ylabel="seconds, one thread", xlabel="records × columns")
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))  # above all bars
    return figure


def _seconds(some: list[Group]) -> float:
    """Return the median time of the runs that answered or abstained; not a number if there were none."""
    found = [float(row["seconds"]) for one in some for row in one.rows if row["seconds"]]
    return float(np.median(found)) if found else float("nan")


FIGURES: dict[str, Callable[[list[Group]], Any]] = {
    "accuracy": accuracy_lines, "growth": growth, "map": winners, "theorems": promises,
    "real": captured, "peers": rivals, "downstream": means, "speed": times,
}  # fmt: skip
"""From a suite's name to what draws its groups; every one returns a Matplotlib figure."""
