"""The privacy sheet: what is promised and what is not, point by point, and an entry for a registry of deployments.

The points are those that NIST SP 800-226 asks for: unit, relation, epsilon and delta in words, what is public, what
is not protected, arithmetic, small groups, review.
"""

from __future__ import annotations

import json
import math

from privspan._lib.in_words import number
from privspan._lib.markup import Html, element, folded, join, listed, note, points
from privspan._lib.version import __version__
from privspan.privacy import PrivacyCost
from privspan.report.subject import Subject
from privspan.report.words import MOST_NAMED, NOT_RECORDED, about_method

_FAMILY = 4  # people in the example of a small group


def section(subject: Subject) -> Html:
    """Return the sheet, and the entry to paste."""
    said: dict[str, str | list[str]] = {
        "Unit": _unit(subject),
        "Relation": _relation(subject),
        "Who sees the rows": "Whoever ran the program. Noise is added once, to the results (the central model).",
        "What it rests on": _rests_on(subject),
        "What it does not rest on": "The data. Outliers, copies and missing values may change the result, never the "
        f"promise. Accuracy is another matter. {about_method(subject.release.method).accuracy}",
        "Not protected": _not_protected(subject),
        "Small groups": _small_groups(subject),
        "Several releases": _several(subject.release.cost),
        "Arithmetic": "Noise is drawn in whole numbers on a grid, exactly, from the operating system's random bits. "
        "What rounding in floating point can add to a sum is bounded, and covered by the noise.",
        "Reviewed by": subject.record.reviewed_by or NOT_RECORDED,
    }
    shown = {name: listed(value) if isinstance(value, list) else value for name, value in said.items()}
    entry = element("pre", element("code", json.dumps(registry_entry(subject), indent=1, ensure_ascii=False)))
    pasted = folded("Entry for a registry of deployments (JSON)", entry)
    return join(element("h2", "Privacy sheet"), points(shown), *_claims(subject), pasted)


def registry_entry(subject: Subject) -> dict[str, object]:
    """Return what registries of deployments ask for; numbers of the claims are rounded up."""
    record, release = subject.record, subject.release
    return {
        "deployment": record.source or NOT_RECORDED,
        "curator": record.by or NOT_RECORDED,
        "intended_use": record.purpose or NOT_RECORDED,
        "date": record.date,
        "privacy_model": "central",
        "unit_of_privacy": "person" if subject.by_persons else "row",
        "neighbouring_relation": release.cost.neighbours,
        "data_product": about_method(release.method).title,
        "columns": list(subject.names) if len(subject.names) <= MOST_NAMED else f"{len(subject.names):,}",
        "columns_left_out": dict(record.left_out),
        "spent_on_the_data_set": list(record.ledger) or NOT_RECORDED,
        "implementation": f"privspan {__version__}",
        "proof": f"docs/explanation/{about_method(release.method).page}.md of privspan",
        "reviewed_by": record.reviewed_by or NOT_RECORDED,
        "claims": release.sheet()["claims"],
    }


def _unit(subject: Subject) -> str:
    if subject.by_persons:
        return "One person, with all of their rows. The ids say truly which rows are of one person."
    return "One row. Each person is one row; someone with several rows is protected for each of them only."


def _relation(subject: Subject) -> str:
    others = "and so are the columns, their names and types, and every parameter below."
    changes = f"hardly changes what may come out ({subject.release.cost.neighbours} neighbours)"
    if subject.by_persons:
        return (
            f"What is hidden is any one person: replacing them, with all of their rows, {changes}. The number of "
            f"persons is public, {others} How many rows they have, alone or together, is not."
        )
    hidden = f"What is hidden is any one record: replacing it by any other {changes}."
    return f"{hidden} The number of rows is public, {others}"


def _rests_on(subject: Subject) -> list[str]:
    return [
        "Names, bounds, centres and units that were given for the columns were not chosen by looking at the values.",
        "No seed was given, and the operating system's random numbers are good."
        if subject.release.private
        else "No seed: this does not hold here.",
        f"The proof (docs/explanation/{about_method(subject.release.method).page}.md of privspan) and that the "
        "program follows it.",
    ]


def _not_protected(subject: Subject) -> list[str]:
    ends = [
        "Rows. Projections, scores and reconstruction errors of people's rows reveal those rows.",
        "Facts about everyone. This page would say nearly the same without you.",
        "What running time, memory use or access to the machine may show.",
    ]
    if subject.release.subspace is not None and not subject.is_exact:
        ends.append(
            "The numbers carry noise: a loading that is not several times its ±, and the order of similar "
            "components, mean nothing."
        )
    return ends


def _small_groups(subject: Subject) -> str:
    cost, counted = subject.release.cost, "people" if subject.by_persons else "rows"
    delta = min(1.0, _FAMILY * math.exp(min((_FAMILY - 1) * cost.epsilon, 700.0)) * cost.delta)
    together = (
        f"Several {counted} together have less protection: {_FAMILY} of them, say a family, have "
        f"ε = {number(_FAMILY * cost.epsilon)} and δ = {number(delta, 2)}."
        if delta < 1.0
        else f"Several {counted} together have less protection: for {_FAMILY} of them, say a family, nothing is left."
    )
    return (
        f"{together} And what only a small group has in common is mostly lost in the noise: the results describe the "
        "majority."
    )


def _several(cost: PrivacyCost) -> str:
    twice = cost + cost
    same = f"ε = {number(twice.epsilon, 3)}, δ = {number(twice.delta, 2)}"
    return (
        f"Costs add up. Running this again on the same people makes it {same}, and trying ten settings to keep the "
        "best costs ten runs. A ledger keeps the sum."
    )


def _claims(subject: Subject) -> list[Html]:
    """Write the claims for other accountants: what `release.sheet()` says, in words."""
    claims: list[dict[str, str]] = subject.release.sheet()["claims"]  # type: ignore[assignment]
    lines, labels = [], ("relation", "kind")
    for claim in claims:
        numbers = ", ".join(f"{name.replace('_', ' ')} {claim[name]}" for name in claim if name not in labels)
        lines.append(f"{claim['relation']}, {claim['kind']}: {numbers}")
    if not lines:
        return []
    words = "For other accountants, every number rounded up. Zero-out compares a record with an empty place: it is "
    return [note(f"{words}the weaker promise, for comparison with accounts that are kept that way."), listed(lines)]
