"""A saved release in words and in JSON: what it is, what it cost, how it was made, what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from privspan._lib.frozen import plain
from privspan._lib.in_words import with_noise
from privspan._lib.record import Record
from privspan.cli import _console
from privspan.ledger.release_file import SavedRelease
from privspan.privacy import Release
from privspan.privacy.reading import which_stand_out
from privspan.privacy.rotated import Rotated, said
from privspan.report.appendix import by_column
from privspan.report.released import standardised, unmeasured
from privspan.report.subject import Subject
from privspan.report.words import gaps, one_column, shortened_rows
from privspan.subspace import Subspace

_RELATIONS_SHOWN = 12
_COLUMNS_SHOWN = 12


def print_saved(saved: SavedRelease, path: Path, loadings: int, turned: Rotated | None = None) -> None:
    """Describe it for people."""
    subspace = saved.subspace
    told = None if saved.release is None else Subject(saved.release)
    private = subspace.exact is None and (told is None or told.mean_is == "measured")
    through = ", through a private mean" if subspace.offset is not None and private else ""
    kind = "exact, " if subspace.exact is not None else ""
    size = f"{kind}{subspace.dimension} of {subspace.ambient_dimension:,} dimensions{through}"
    _console.print_lines(f"{path}: {size}", "", style="bold")
    _console.print_pairs(_facts(saved))
    if subspace.exact is not None:
        _print_relations(subspace)
    else:
        _print_components(saved, loadings)
        _print_rotated(turned, loadings)
        _print_columns(saved)


def _facts(saved: SavedRelease) -> list[tuple[str, str]]:
    release, plan = saved.release, saved.plan
    if release is None:
        return [("made", "not recorded: this file holds a subspace only")]
    promise = str(release.cost) if release.private else "NONE: a seed was given, so the noise can be repeated"
    centring = release.parameters.get("centring")
    centred = {"none": "", "standardised columns": "", "public centre": ", about a public centre"}.get(
        str(centring or "none"), f", centred by {centring}"
    )
    facts = [*_quality(release), ("privacy", promise), ("method", f"{release.method}{centred}")]
    if saved.record is not None:
        facts += _circumstances(saved.record)
    ratio = release.extras.get("explained_variance_ratio")
    if isinstance(ratio, np.ndarray):
        facts.append(("explained", f"{min(1.0, float(ratio.sum())):.0%} of the variance (private estimate)"))
    if plan is not None and plan.captured is not None:
        facts.append(("planned", f"to capture about {plan.captured:.0%}, as on real tables of this size"))
    elif plan is not None:
        below = f"9 of 10 below {plan.error_90:.2g}"
        facts.append(("planned", f"error about {plan.error:.2g} ({below}), for ideal data"))
    return facts


def _circumstances(record: Record) -> list[tuple[str, str]]:
    """Return from what, when, by whom and for what the release was made."""
    told = {"made from": record.source, "made on": record.date, "made by": record.by, "purpose": record.purpose}
    return [(name, value) for name, value in told.items() if value]


def _quality(release: Release) -> list[tuple[str, str]]:
    """Return what the release says of itself: what was captured, what is noise, what was not seen or not measured."""
    subject, facts = Subject(release), []
    quality, shortened = subject.captured, shortened_rows(release)
    if quality is not None and subject.k == subject.d:
        facts.append(("captured", "all of the variance: there are as many components as columns"))
    elif quality is not None:
        whole = f". {subject.whole_rows}" if subject.whole_rows else ""
        facts.append(("captured", f"{subject.captured_of(str(subject.k))}{whole}".replace("\u00a0", " ")))
    if subject.stands_out is not None and subject.k is not None:
        facts.append(
            ("stand out", f"{subject.stands_out} of {subject.k}. {which_stand_out(subject.stands_out, subject.k)}")
        )
    if shortened is not None:
        facts.append(("clipped", shortened))
    missing_cells = gaps(release, subject.names)
    if missing_cells is not None:
        facts.append(("gaps", missing_cells))
    one = one_column(subject)
    if one is not None:
        facts.append(("note", one))
    if subject.estimates:
        facts += [("standardised", sentence) for sentence in standardised(subject)]
    missing = unmeasured(subject)
    if missing:
        facts.append(("not measured", f"{'; '.join(missing)} (too few rows at this budget)"))
    return facts


def _print_components(saved: SavedRelease, loadings: int) -> None:
    spectrum = _spectrum(saved)
    known = () if not any(spectrum) else tuple(f">{name}" for name in spectrum[0])
    rows = []
    for index, leading in enumerate(_largest(saved, loadings)):
        noise = "noise: " if saved.release is not None and Subject(saved.release).is_noise(index) else ""
        words = noise + "  ".join(f"{_loading(value, std)} {name}" for name, value, std in leading)
        rows.append((str(index + 1), *spectrum[index].values(), words))
    _console.print_table((">", *known, "largest loadings"), rows)


def _print_rotated(turned: Rotated | None, loadings: int) -> None:
    if turned is None:
        return
    rows = []
    for factor in range(turned.loadings.shape[1]):
        words = "  ".join(f"{said(value, std)} {name}" for name, value, std in turned.leading(factor, loadings))
        rows.append((str(factor + 1), said(turned.variances[factor], turned.variances_std[factor]), words))
    _console.print_table((">factor", ">variance", f"largest loadings, rotated by {turned.criterion}"), rows)
    _console.print_lines(*(f"factors {pair}" for pair in turned.between()), *filter(None, [turned.about]))


def _spectrum(saved: SavedRelease) -> list[dict[str, str]]:
    """Return variance, with its noise where that is told, and share of every component, as far as measured."""
    extras = {} if saved.release is None else saved.release.extras
    ratios, variances = extras.get("explained_variance_ratio"), extras.get("explained_variance")
    noise: Any = extras.get("explained_variance_std")
    shown: list[dict[str, str]] = [{} for _ in range(saved.subspace.dimension)]
    if isinstance(variances, np.ndarray):
        for i, (one, value) in enumerate(zip(shown, variances, strict=True)):
            one["variance"] = f"{value:.4g}" if noise is None else with_noise(value, noise[i])
    if isinstance(ratios, np.ndarray):
        for one, value in zip(shown, ratios, strict=True):
            one["share"] = f"{value:.1%}"
    return shown


def _print_columns(saved: SavedRelease) -> None:
    """Write means and units with their noise, of the first columns."""
    if saved.release is None:
        return
    subject = Subject(saved.release)
    known = by_column(subject)
    if not known:
        return
    rows = list(zip(names_of(saved.subspace), *known.values(), strict=True))
    _console.print_table(("column", *(f">{name}" for name in known)), rows[:_COLUMNS_SHOWN])
    if len(rows) > _COLUMNS_SHOWN:
        _console.print_lines(f"… and {len(rows) - _COLUMNS_SHOWN:,} more columns: --json lists all.")


def _largest(saved: SavedRelease, loadings: int) -> list[list[tuple[str, float, float | None]]]:
    """Return the largest loadings of every component: name of the column, loading, its error where that is told."""
    basis, names = saved.subspace.basis, names_of(saved.subspace)
    orders = np.argsort(-np.abs(basis), axis=0, kind="stable")[:loadings].T  # (k, loadings)
    found = []
    for index, order in enumerate(orders):
        errors = None if saved.release is None else Subject(saved.release).loading_std(index)
        told = [None] * len(basis) if errors is None else errors.tolist()
        found.append([(names[i], float(basis[i, index]), told[i]) for i in order])
    return found


def _loading(value: float, error: float | None) -> str:
    return f"{value:+.2f}".replace("-", "−") if not error else with_noise(value, error)


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


def as_json(saved: SavedRelease, loadings: int, turned: Rotated | None = None) -> dict[str, object]:
    """Describe it for programs."""
    subspace = saved.subspace
    subject = None if saved.release is None else Subject(saved.release)
    components = [
        {
            "noise": subject is not None and subject.is_noise(index),
            "loadings": [{"column": name, "loading": value, "std": std} for name, value, std in leading],
        }
        for index, leading in enumerate(_largest(saved, loadings))
    ]
    return {
        "subspace": subspace.summary(),
        "columns": list(names_of(subspace)),
        "mean": _mean(saved, subject),
        "components": components,
        "rotated": None if turned is None else turned.to_dict(),
        "relations": None if subspace.exact is None else relations_of(subspace),
        "release": None if saved.release is None else saved.release.to_dict(),
        "plan": plain(saved.plan),
        "record": plain(saved.record),
    }


def _mean(saved: SavedRelease, subject: Subject | None) -> object:
    """Return the mean in the units of the table; None if there is none, or it was not measured."""
    if subject is None or subject.released("mean") is None:
        return plain(saved.subspace.offset)
    return None if subject.mean_is == "absent" else plain(subject.released("mean"))
