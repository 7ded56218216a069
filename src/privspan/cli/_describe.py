"""A saved release in words and in JSON: what it is, what it cost, how it was made, what it says."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from privspan._lib.frozen import plain
from privspan.cli import _console
from privspan.ledger.release_file import SavedRelease
from privspan.subspace import Subspace

_RELATIONS_SHOWN = 12


def print_saved(saved: SavedRelease, path: Path, loadings: int) -> None:
    """Describe it for people."""
    subspace = saved.subspace
    through = ", through a private mean" if subspace.offset is not None and subspace.exact is None else ""
    kind = "exact, " if subspace.exact is not None else ""
    size = f"{kind}{subspace.dimension} of {subspace.ambient_dimension:,} dimensions{through}"
    _console.print_lines(f"{path}: {size}", "", style="bold")
    _console.print_pairs(_facts(saved))
    if subspace.exact is not None:
        _print_relations(subspace)
    else:
        _print_components(saved, loadings)


def _facts(saved: SavedRelease) -> list[tuple[str, str]]:
    release, plan = saved.release, saved.plan
    if release is None:
        return [("made", "not told by this file: it holds a subspace only")]
    promise = str(release.cost) if release.private else "NONE: a seed was given, so the noise can be repeated"
    centring = release.parameters.get("centring")
    centred = "" if centring in (None, "none") else f", centred by {centring}"
    facts = [("privacy", promise), ("method", f"{release.method}{centred}")]
    if saved.source is not None:
        facts.append(("made from", saved.source))
    if plan is not None:
        facts.append(("predicted", f"error about {plan.error:.2g} (9 of 10 below {plan.error_90:.2g})"))
    ratio = release.extras.get("explained_variance_ratio")
    if isinstance(ratio, np.ndarray):
        facts.append(("explained", f"{float(ratio.sum()):.0%} of the variance (private estimate)"))
    return facts


def _print_components(saved: SavedRelease, loadings: int) -> None:
    spectrum = _spectrum(saved)
    known = () if spectrum is None else (">variance", ">share")
    rows = []
    for index, leading in enumerate(_largest(saved.subspace, loadings)):
        shown = () if spectrum is None else (f"{spectrum[0][index]:.4g}", f"{spectrum[1][index]:.1%}")
        rows.append((str(index + 1), *shown, "  ".join(f"{value:+.2f} {name}" for name, value in leading)))
    _console.print_table((">", *known, "largest loadings"), rows)


def _largest(subspace: Subspace, loadings: int) -> list[list[tuple[str, float]]]:
    """Return the largest loadings of every component, each with the name of its column."""
    names = names_of(subspace)
    orders = np.argsort(-np.abs(subspace.basis), axis=0, kind="stable")[:loadings].T  # (k, loadings)
    axes = zip(orders, subspace.basis.T, strict=True)
    return [[(names[column], float(axis[column])) for column in order] for order, axis in axes]


def _spectrum(saved: SavedRelease) -> tuple[Any, Any] | None:
    extras = {} if saved.release is None else saved.release.extras
    variances, shares = extras.get("explained_variance"), extras.get("explained_variance_ratio")
    return None if variances is None or shares is None else (variances, shares)


def names_of(subspace: Subspace) -> tuple[str, ...]:
    """Return the names of the columns, or their numbers."""
    return subspace.names or tuple(f"column {number}" for number in range(1, subspace.ambient_dimension + 1))


def _print_relations(subspace: Subspace) -> None:
    said = relations_of(subspace)
    head = f"{len(said)} relation(s) hold:" if said else "No relation holds: it is the whole space."
    _console.print_lines("", head)
    _console.print_lines(*(f"  {text}" for text in said[:_RELATIONS_SHOWN]))
    if len(said) > _RELATIONS_SHOWN:
        _console.print_lines(f"  … and {len(said) - _RELATIONS_SHOWN} more: see privspan relations")


def relations_of(subspace: Subspace) -> list[str]:
    """Return the relations of an exact subspace in words."""
    return [relation.describe(names_of(subspace)) for relation in subspace.relations()]


def as_json(saved: SavedRelease, loadings: int) -> dict[str, Any]:
    """Describe it for programs."""
    subspace = saved.subspace
    components = [
        {"loadings": [{"column": name, "loading": value} for name, value in leading]}
        for leading in _largest(subspace, loadings)
    ]
    return {
        "subspace": subspace.summary(),
        "columns": list(names_of(subspace)),
        "mean": plain(subspace.offset),
        "components": components,
        "relations": None if subspace.exact is None else relations_of(subspace),
        "release": None if saved.release is None else saved.release.to_dict(),
        "plan": None if saved.plan is None else plain(asdict(saved.plan)),
        "source": saved.source,
    }
