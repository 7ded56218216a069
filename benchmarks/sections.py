"""What the results page says about each suite: a sentence or two and a small table, all from the stored lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.cells import ABSTAINED, FAILED, NOT_APPLICABLE, OUT_OF_TIME
from benchmarks.contest import far_corner, lost_tables, real_text
from benchmarks.methods import METHODS
from benchmarks.suites import accuracy, peers
from benchmarks.summary import (
    TIE,
    USELESS,
    Group,
    best,
    is_ours,
    is_prior,
    label,
    markdown_table,
    shown,
    where,
)
from privspan.baselines._common import WIDEST_MATRIX


@dataclass(frozen=True)
class Section:
    """A title, and what turns the groups of a suite into text."""

    title: str
    text: Callable[[list[Group]], str]


def _named(one: Group | None) -> str:
    return "–" if one is None else f"{shown(one.error)} ({label(one.method)})"


def _settings(some: list[Group]) -> list[dict[str, str]]:
    return [dict(pairs) for pairs in dict.fromkeys(tuple(one.setting.items()) for one in some)]


def _contest(some: list[Group], axis: str, title: str) -> str:
    """Return a table of our best, the best prior system and their ratio along one number of the setting."""
    lines = []
    for setting in sorted(_settings(some), key=lambda one: float(one[axis])):
        here = where(some, **setting)
        ours, prior = best(here, is_ours), best(here, is_prior)
        ratio = shown(prior.error / ours.error) if ours and prior and ours.error and prior.error else "–"
        lines.append([f"{float(setting[axis]):,g}", _named(ours), _named(prior), ratio])
    return markdown_table([title, "ours, best", "prior, best", "prior / ours"], lines)


def _growth(some: list[Group]) -> str:
    one = some[0].setting
    sizes = f"tail energy {one['gamma_w']}, k = {one['k']}"
    intro = f"{int(one['n']):,} records stay the same while the columns grow; {sizes}."
    chosen = "Few records and a short tail: what stable leverage is made for; an ordinary setting comes below."
    limits = "Most prior systems form a d × d matrix and end at 2,048 columns."
    return f"{intro} {chosen} {limits}\n\n{_contest(some, 'd', 'columns')}"


def _accuracy(some: list[Group]) -> str:
    base = where(some, **accuracy.BASE) or where(some, **some[0].setting)
    setting = base[0].setting
    ordinary = (
        f"One ordinary setting: {int(setting['n']):,} records, {setting['d']} columns, k = {setting['k']}, "
        f"tail energy {setting['gamma_w']}, ε = {setting['epsilon']}. Every method in it:\n\n"
    )
    ranked = sorted((one for one in base if one.error is not None), key=lambda one: (one.error, one.method))
    lines = [
        [label(one.method), "ours" if METHODS[one.method].ours else "prior", shown(one.error), _abstained(one)]
        for one in ranked
    ]
    table = markdown_table(["method", "", "error", "abstained"], lines)
    records = where(some, **{key: value for key, value in setting.items() if key != "n"})
    more = f"\nWith more or fewer records:\n\n{_contest(records, 'n', 'records')}"
    return f"{ordinary}{table}{more}{_shapes(some, dict(setting))}\nThe same against the tail and the budget:\n"


def _abstained(one: Group) -> str:
    return f"{one.count(ABSTAINED)} of {one.ran}" if one.count(ABSTAINED) else ""


def _shapes(some: list[Group], base: dict[str, str]) -> str:
    """Return what unfriendly data does, in the ordinary setting."""
    unfriendly = [one for one in some if {**one.setting, "data": base["data"]} == base]
    kinds = list(dict.fromkeys(one.setting["data"] for one in unfriendly))
    if len(kinds) == 1:
        return ""
    lines = []
    for kind in kinds:
        here = where(unfriendly, data=kind)
        adaptive = best(here, lambda method: method == "adaptive")
        lines.append([kind, shown(adaptive.error if adaptive else None), _named(best(here, is_prior))])
    table = markdown_table(["data", "ours, adaptive", "prior, best"], lines)
    said = "decaying spectra, heavy tails (one random factor per record), and 5 % of the records spoilt on purpose"
    return f"\nIn the same setting, {said} ({{func}}`privspan.datasets.with_outliers`):\n\n{table}"


def _map(some: list[Group]) -> str:
    wins: dict[str, int] = {}
    useless = 0
    for setting in _settings(some):
        winner = best(where(some, **setting), lambda method: True)
        if winner is None or winner.error is None or winner.error >= USELESS:
            useless += 1
        else:
            wins[label(winner.method)] = wins.get(label(winner.method), 0) + 1
    told = ", ".join(f"{name} {count}" for name, count in sorted(wins.items(), key=lambda item: -item[1]))
    total = useless + sum(wins.values())
    return (
        f"{total} settings with d = {int(some[0].setting['d']):,}; the number in a field is the error of the best "
        f"method. Fields won: {told or 'none'}; in {useless} every method had a useless error.\n"
    )


def _theorems(some: list[Group]) -> str:
    lines = []
    for one in some:
        successes, promised = one.numbers("success"), one.numbers("promised")
        sizes = [f"{int(one.setting[name]):,}" for name in ("n", "d", "k")]
        kept = f"{int(sum(successes))} of {len(one.rows)}"
        lines.append([label(one.method), *sizes, kept, f"{promised[0]:.3f}" if promised else "–"])
    intro = "How often the answer was within the distance that the theorem names, and how often it promises to be."
    return f"{intro}\n\n{markdown_table(['algorithm', 'n', 'd', 'k', 'kept', 'promised'], lines)}"


def _peers(some: list[Group]) -> str:
    lines = []
    for setting in sorted(_settings(some), key=lambda one: int(one["d"])):
        here = {one.method: one for one in where(some, **setting)}
        methods = ("adaptive", "analyze_gauss", "diffprivlib", "opendp")
        lines.append([setting["d"], *(_peer_cell(here.get(method)) for method in methods)])
    header = ["columns", "adaptive", "Analyze Gauss", label("diffprivlib"), label("opendp")]
    said = (
        f"{peers.ROWS:,} records of length 1, k = {peers.DIMENSION}, ε = 1: error, and seconds in brackets. "
        "diffprivlib and OpenDP promise pure ε-privacy, a stronger promise than the (ε, δ) of the first two. "
        "They draw eigenvectors by rejection, whose time grows steeply with d; "
        f"a run is stopped after {peers.LIMIT:g} s."
    )
    return f"{said}\n\n{markdown_table(header, lines)}"


def _peer_cell(one: Group | None) -> str:
    if one is None:
        return "–"
    if one.count(OUT_OF_TIME) * 2 > len(one.rows):
        return f"stopped at {peers.LIMIT:g} s"
    if one.median("error") is None:
        return one.rows[0]["status"]
    return f"{shown(one.median('error'))} ({shown(one.median('seconds'))} s)"


def _downstream(some: list[Group]) -> str:
    methods = list(dict.fromkeys(one.method for one in some))
    lines = []
    for setting in sorted(_settings(some), key=lambda one: int(one["d"])):
        here = {one.method: one for one in where(some, **setting)}
        errors = [shown(here[method].error) if method in here else "–" for method in methods]
        lines.append([f"{int(setting['d']):,}", *errors])
    n, k = int(some[0].setting["n"]), some[0].setting["k"]
    said = (
        f"{n:,} records near {k} sign vectors (Tsfadia 2024), ε = 1 in all. Half of μ² learns a subspace, half the "
        "mean inside it; the Gaussian mechanism spends everything on all coordinates. Error over the length of the "
        f"mean. Analyze Gauss with a gap forms a d × d matrix and is not run beyond {WIDEST_MATRIX:,} columns."
    )
    return f"{said}\n\n{markdown_table(['columns', *map(label, methods)], lines)}"


def _speed(some: list[Group]) -> str:
    methods = list(dict.fromkeys(one.method for one in some))
    lines = []
    for setting in _settings(some):
        here = {one.method: one for one in where(some, **setting)}
        cells = [_time_and_memory(here.get(method)) for method in methods]
        lines.append([f"{int(setting['n']):,} × {int(setting['d']):,}", *cells])
    said = (
        "Seconds on one thread and, in brackets, the largest memory of the process in MB, the table itself included."
    )
    return f"{said}\n\n{markdown_table(['records × columns', *map(label, methods)], lines)}"


def _time_and_memory(one: Group | None) -> str:
    """Return seconds and memory, of abstentions too: they cost the same."""
    ran = [] if one is None else [row for row in one.rows if row["seconds"]]
    if not ran:
        return "–"
    seconds = sorted(float(row["seconds"]) for row in ran)[len(ran) // 2]
    memory = max((float(row["memory_mb"]) for row in ran if row["memory_mb"]), default=None)
    return f"{shown(seconds)} ({'–' if memory is None else f'{memory:,.0f}'})"


SECTIONS = {
    "growth": Section("Error against the number of columns", _growth),
    "map": Section("Which method wins where", _map),
    "accuracy": Section("An ordinary setting, and around it", _accuracy),
    "theorems": Section("Do the theorems keep their word?", _theorems),
    "real": Section("Real tables", real_text),
    "peers": Section("Other libraries", _peers),
    "downstream": Section("A mean inside the subspace", _downstream),
    "speed": Section("Time and memory", _speed),
}
"""The sections of the page by suite, in order."""


# ---- Where we lose ----------------------------------------------------------------------------------------------


def losses(stored: dict[str, list[Group]]) -> str:
    """Return the frank part: every setting in which a prior system beat ours, and what ours cannot do.

    Parameters
    ----------
    stored : dict
        Groups by suite.
    """
    contests = [stored[name] for name in ("accuracy", "growth", "map") if name in stored]
    told = [
        _lost_settings(contests),
        *_wrong_choices(contests),
        *_abstentions(contests),
        *lost_tables(stored.get("real", [])),
        *far_corner(stored.get("real", []), stored.get("map", [])),
    ]
    return "## Where we lose\n\n" + "\n".join(part for part in told if part)


def _lost_settings(contests: list[list[Group]]) -> str:
    lines, settings = [], 0
    for some in contests:
        for setting in _settings(some):
            here = where(some, **setting)
            ours, prior = best(here, is_ours), best(here, is_prior)
            settings += 1
            if not (ours and prior and ours.error and prior.error) or min(ours.error, prior.error) >= USELESS:
                continue
            if ours.error > TIE * prior.error:
                lines.append([*setting.values(), _named(ours), _named(prior)])
    said = (
        f"Of the {settings} settings above, a prior system was better than every method of ours by more than "
        f"{TIE - 1:.0%} in {len(lines)} (settings in which every method was useless are not counted)"
    )
    if not lines:
        return f"{said}.\n"
    return f"{said}:\n\n{markdown_table([*accuracy.SETTINGS, 'ours, best', 'prior, best'], lines)}"


def _wrong_choices(contests: list[list[Group]]) -> list[str]:
    """Say how often "auto", which does not know the tail, took a method that another of ours beat clearly."""
    ratios = []
    for some in contests:
        for setting in _settings(some):
            here = where(some, **setting)
            auto, ours = best(here, lambda method: method == "auto"), best(here, is_ours)
            if auto and ours and auto.error and ours.error and ours.error < USELESS:
                ratios.append(auto.error / ours.error)
    bad = [ratio for ratio in ratios if ratio > 2.0]
    if not bad:
        return []
    told = f"in {len(bad)} of {len(ratios)} settings its error was more than twice that of our best method"
    return [
        f"* **private_subspace (auto)** is not told how short the tail is, and plays safe: {told}, at worst "
        f"{shown(max(bad))} times. Tell it `gamma` where it is public knowledge, or name the method."
    ]


def _abstentions(contests: list[list[Group]]) -> list[str]:
    """Say how often each of our methods gave no answer or was not run at all."""
    told = []
    for method in filter(is_ours, METHODS):
        mine = [one for some in contests for one in some if one.method == method]
        ran, silent = sum(one.ran for one in mine), sum(one.count(ABSTAINED) for one in mine)
        refused, stopped, failed = (
            sum(one.count(status) for one in mine) for status in (NOT_APPLICABLE, OUT_OF_TIME, FAILED)
        )
        others = (
            (refused, "were refused by its documented limits"),
            (stopped, "were stopped by the time limit"),
            (failed, "failed"),
        )
        if silent or any(count for count, _ in others):
            more = "".join(f"; {count} more {what}" for count, what in others if count)
            told.append(f"* **{label(method)}**: {silent} of {ran} runs abstained{more}.")
    return told
