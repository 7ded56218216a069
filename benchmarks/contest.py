"""Private PCA against its rivals on real tables: who captures more, by how much, and what the page says about it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import mean

from benchmarks.suites import real
from benchmarks.summary import Group, best, label, markdown_table, shown

MARGIN = 0.001
"""Means that are no further apart than this are a tie, however precise they are."""

DIMENSION_FREE = ("stable", "approximate", "histogram")
"""Methods whose error does not grow with the number of columns, where the tail is short enough for them."""

_SIGNS = {1: "**+**", 0: "=", -1: "**−**"}


@dataclass(frozen=True)
class Score:
    """What a method captured on average, and the standard error of that."""

    method: str
    captured: float
    error: float


@dataclass(frozen=True)
class Contest:
    """One table at one epsilon."""

    table: str
    epsilon: str
    k: str
    n: int
    d: int
    tail: float
    near: float  # share of our runs that found most rows near a subspace
    ours: Score
    rivals: tuple[Score, ...]  # that gave an answer
    envelope: Score | None

    @property
    def rival(self) -> Score:
        """The rival that captured most."""
        return max(self.rivals, key=lambda one: one.captured)

    def verdict(self, rival: Score) -> int:
        """Return 1 if ours captured more, -1 if the rival did, 0 within two standard errors of the difference."""
        apart = self.ours.captured - rival.captured
        if abs(apart) <= max(MARGIN, 2.0 * math.hypot(self.ours.error, rival.error)):
            return 0
        return 1 if apart > 0.0 else -1


def contests(some: Iterable[Group]) -> Iterator[Contest]:
    """Yield the contests of the suite "real", in its order."""
    settings: dict[tuple[str, ...], dict[str, Group]] = {}
    for one in some:
        settings.setdefault(tuple(one.setting.values()), {})[one.method] = one
    for here in settings.values():
        scores = {name: score for name, one in here.items() if (score := _score(one)) is not None}
        rivals = tuple(score for name, score in scores.items() if name in real.RIVALS)
        if real.OURS not in scores or not rivals:
            continue
        ours = here[real.OURS]
        n, d, tail, near = (ours.numbers(key)[0] for key in ("n", "d", "tail", "near"))
        name, epsilon, k = (ours.setting[key] for key in ("table", "epsilon", "k"))
        size = (int(n), int(d), tail, near)
        yield Contest(name, epsilon, k, *size, scores[real.OURS], rivals, scores.get(real.ENVELOPE))


def _score(one: Group) -> Score | None:
    captured = one.numbers("captured")
    return Score(one.method, captured[0], one.numbers("standard_error")[0]) if captured else None


# ---- What the page says -----------------------------------------------------------------------------------------


def real_text(some: list[Group]) -> str:
    """Return the section of the page: what was measured, who won, and a table of all means."""
    all_of_them = list(contests(some))
    if not all_of_them:
        return "Nothing to compare yet.\n"
    usual = Counter(one.rival.method for one in all_of_them).most_common(1)[0][0]
    parts = [_measured(all_of_them, some), _won(all_of_them), _how_to_read(usual), _table(all_of_them, usual)]
    return "\n\n".join(parts)


def _measured(all_of_them: list[Contest], some: list[Group]) -> str:
    tables = {one.table for one in all_of_them}
    rows, columns = [one.n for one in all_of_them], [one.d for one in all_of_them]
    runs = [int(number) for one in some for number in one.numbers("runs")]
    repeated = f"{min(runs)} to {max(runs)} runs" if min(runs) < max(runs) else f"{runs[0]} runs"
    return (
        f"{len(tables)} tables of {min(rows):,} to {max(rows):,} rows and {min(columns):,} to {max(columns):,} "
        "columns that come with Python packages, one person per row. The numbers are the share of the variance of as "
        "many ordinary principal components that the private ones capture. Columns were divided by their standard "
        "deviations without privacy, as if the owner knew the units, except in tables called raw and those whose "
        "columns are alike. Every rival gets the centre that `private_pca` finds, at the same cost, and the clip if "
        "that helps it (`benchmarks/centred.py`). The *envelope* is Analyze Gauss about the true mean with the best "
        "possible clip, which nobody knows: no private method of its kind can reach it. Numbers are means of "
        f"{repeated} per method; a difference within two standard errors, or within {MARGIN}, is a tie."
    )


def _won(all_of_them: list[Contest]) -> str:
    best_one = _tally((one, one.rival) for one in all_of_them)
    each = {
        name: _tally((one, score) for one in all_of_them for score in one.rivals if score.method == name)
        for name in real.RIVALS
    }
    silent = {name: len(all_of_them) - sum(tally) for name, tally in each.items()}
    told = "; ".join(
        f"{label(name)} {'–'.join(map(str, tally))}" + (f" (no answer in {silent[name]})" if silent[name] else "")
        for name, tally in sorted(each.items(), key=lambda item: (item[1][0], item[0]))
    )
    wins, ties, lost = best_one
    return (
        f"Against the best rival of each of {len(all_of_them)} settings, chosen afterwards, `private_pca` captures "
        f"**more in {wins}, as much in {ties} and less in {lost}**. Against each alone (won–tied–lost): {told}."
    )


def _tally(pairs: Iterable[tuple[Contest, Score]]) -> tuple[int, int, int]:
    verdicts = Counter(one.verdict(score) for one, score in pairs)
    return verdicts[1], verdicts[0], verdicts[-1]


def _how_to_read(usual: str) -> str:
    signs = f"{_SIGNS[1]} more, {_SIGNS[0]} a tie, {_SIGNS[-1]} less"
    return (
        f"Below: ours, the best rival ({label(usual)} unless it is named), the envelope ({signs}). A star marks "
        "tables on which constants of `private_pca`, and the rivals' kind of rows, were chosen."
    )


def _table(all_of_them: list[Contest], usual: str) -> str:
    epsilons = list(dict.fromkeys(one.epsilon for one in all_of_them))
    lines = []
    for name in dict.fromkeys(one.table for one in all_of_them):
        here = {one.epsilon: one for one in all_of_them if one.table == name}
        first = next(iter(here.values()))
        size = f"{first.n:,} × {first.d:,}"
        star = "*" if name in real.CHOSEN_ON else ""
        cells = [_cell(here[epsilon], usual) if epsilon in here else "–" for epsilon in epsilons]
        lines.append([name + star, size, first.k, *cells])
    means = [_means([one for one in all_of_them if one.epsilon == epsilon]) for epsilon in epsilons]
    lines.append(["**mean**", "", "", *means])
    return markdown_table(["table", "n × d", "k", *(f"ε = {float(epsilon):g}" for epsilon in epsilons)], lines)


def _cell(one: Contest, usual: str) -> str:
    name = "" if one.rival.method == usual else f" {label(one.rival.method)}"
    top = "–" if one.envelope is None else f"{one.envelope.captured:.3f}"
    return f"{one.ours.captured:.3f} {_SIGNS[one.verdict(one.rival)]} {one.rival.captured:.3f}{name}; {top}"


def _means(here: list[Contest]) -> str:
    tops = [one.envelope.captured for one in here if one.envelope is not None]
    ours, theirs = mean(one.ours.captured for one in here), mean(one.rival.captured for one in here)
    return f"{ours:.3f}, {theirs:.3f}; {mean(tops) if tops else math.nan:.3f}"


# ---- Where we lose ----------------------------------------------------------------------------------------------


def lost_tables(some: list[Group]) -> list[str]:
    """Say on which real tables a rival captured more, largest difference first."""
    all_of_them = list(contests(some))
    lost = [one for one in all_of_them if one.verdict(one.rival) < 0]
    lost.sort(key=lambda one: one.ours.captured - one.rival.captured)
    if not lost:
        return []
    told = "; ".join(
        f"{one.table} at ε = {float(one.epsilon):g} ({one.ours.captured:.3f}, {label(one.rival.method)} "
        f"{one.rival.captured:.3f})"
        for one in lost
    )
    return [f"* On **real tables** a rival captured more in {len(lost)} of {len(all_of_them)} settings: {told}."]


def far_corner(some: list[Group], mapped: list[Group]) -> list[str]:
    """Say how far the real tables are from the tails at which methods free of the dimension win the map."""
    all_of_them, corner = list(contests(some)), _corner(mapped)
    if not all_of_them or corner is None:
        return []
    inside = sorted({one.table for one in all_of_them if one.tail <= corner})
    least = min(all_of_them, key=lambda one: one.tail)
    near = sorted({one.table for one in all_of_them if one.near > 0.5})
    where = f"lies in that corner: the shortest tail is {shown(least.tail)}, of {least.table}"
    if inside:
        where = f"but {', '.join(inside)} lies in that corner"
    others = (
        f" (`private_pca` calls {len(near)} near to a subspace, with longer tails: {', '.join(near)}.)"
        if near
        else ""
    )
    return [
        "* **Errors that do not grow with the dimension** need a tail energy of "
        f"{shown(corner)} or less to be the best choice (the map above). None of the real tables {where}.{others}"
    ]


def _corner(mapped: list[Group]) -> float | None:
    """Return the largest tail energy at which a method free of the dimension wins a setting of the map."""
    settings: dict[tuple[str, ...], list[Group]] = {}
    for one in mapped:
        settings.setdefault(tuple(one.setting.values()), []).append(one)
    winners = [best(here, lambda method: True) for here in settings.values()]
    tails = [float(one.setting["gamma_w"]) for one in winners if one and one.method in DIMENSION_FREE]
    return max(tails, default=None)
