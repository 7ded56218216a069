"""A release as a card in a notebook: what was found, how far to trust it, what it cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privspan._lib import card
from privspan._lib.in_words import number, share, with_noise
from privspan._lib.markup import Html, join
from privspan.privacy.reading import Reading, Released, which_stand_out
from privspan.subspace import Subspace

Array = NDArray[np.float64]

_MOST_COMPONENTS = 8  # on a card
_MOST_LOADINGS = 3  # of a component on a card
_MOST_COLUMNS = 12  # on a card
_MOST_RELATIONS = 8  # on a card
_MOST_CELLS = 40_000  # of all relations together: beyond, a notebook would have to wait for them


def release_pieces(release: Released, columns: Sequence[str] | None = None) -> list[Html]:
    """Return what a card says of a release: quality, privacy, and its components or relations."""
    reading = Reading(release, columns)
    pieces = [*warnings_of(release.private), _sentence(reading), _facts(reading)]
    if release.subspace is None:
        return pieces
    if release.subspace.exact is not None:
        return [*pieces, *relation_pieces(release.subspace)]
    return [*pieces, _components(reading, release.subspace.basis)]


def warnings_of(private: bool) -> list[Html]:
    """Return the words that a result with a seed needs."""
    return [] if private else [card.alarm("Not private: a seed was given, so the noise can be drawn again.")]


def cost_fact(epsilon: float, delta: float, private: bool) -> tuple[str, str]:
    """Return what was promised, as a fact."""
    promise = f"ε = {number(epsilon)}, δ = {number(delta)}"
    return "privacy", promise if private else f"none (would be {promise})"


def column_table(names: Sequence[str] | None, columns: dict[str, tuple[Array, Array]]) -> list[Html]:
    """Return numbers with their noise, one line per column of the data, as many as a card can hold."""
    d = len(next(iter(columns.values()))[0])
    shown = names or [f"column {i + 1}" for i in range(d)]
    lines = [
        (shown[i], *(_with_error(values[i], noise[i]) for values, noise in columns.values()))
        for i in range(min(d, _MOST_COLUMNS))
    ]
    more = [card.aside(f"… and {number(d - _MOST_COLUMNS)} more.")] if d > _MOST_COLUMNS else []
    return [card.table(("column", *columns), lines), *more]


def _with_error(value: float, noise: float) -> str:
    if not np.isfinite(value) or not np.isfinite(noise):
        return "not measured"
    return with_noise(float(value), float(noise))


def _sentence(reading: Reading) -> Html:
    if reading.release.subspace is None:
        return card.alarm("Abstained: nothing was released. The budget is spent all the same.")
    k = reading.k or 0
    said = []
    if reading.captured is not None and k < (reading.d or 0):
        said.append(f"Captures {reading.captured_of(str(k))}.")
        said += [reading.whole_rows] if reading.whole_rows else []
    if reading.stands_out is not None:
        said.append(which_stand_out(reading.stands_out, k))
    elif reading.told is not None and reading.told < k:
        said.append(f"Only {reading.told} of the {k} stand out of the noise.")
    return card.sentence(" ".join(said)) if said else join()


def _facts(reading: Reading) -> Html:
    release = reading.release
    shown = [cost_fact(release.cost.epsilon, release.cost.delta, release.private)]
    if reading.k is not None and reading.d is not None:
        what = "dimensions asked for" if release.subspace is None else "dimensions"
        shown.insert(0, (what, f"{number(reading.k)} of {number(reading.d)}"))
    if reading.n is not None:
        shown.append(("learnt from", f"{number(reading.n)} {reading.unit}"))
    return card.facts([*shown, ("method", release.method)])


def relation_pieces(subspace: Subspace) -> list[Html]:
    """Return exact relations in words, as many as a card can hold."""
    missing = subspace.ambient_dimension - subspace.dimension
    if missing * subspace.ambient_dimension > _MOST_CELLS:
        return [card.sentence(f"{number(missing)} independent relations hold; relations() lists them.")]
    relations = subspace.describe_relations()
    if not relations:
        return [card.sentence("No relation holds between the columns.")]
    lines = [card.sentence(text) for text in relations[:_MOST_RELATIONS]]
    more = len(relations) - len(lines)
    return [*lines, card.aside(f"… and {number(more)} more relations.")] if more > 0 else lines


def _components(reading: Reading, basis: Array) -> Html:
    """Return the components with their share, their variance and their largest loadings, each with its error."""
    ratios, variances = reading.released("explained_variance_ratio"), reading.released("explained_variance")
    noise = reading.released("explained_variance_std")
    heads, lines = ["component"], []
    heads += ["share"] if ratios is not None else []
    heads += ["variance"] if variances is not None else []
    for i in range(min(basis.shape[1], _MOST_COMPONENTS)):
        cells = [] if ratios is None else [share(float(ratios[i]))]
        if variances is not None:
            cells.append(with_noise(float(variances[i]), 0.0 if noise is None else float(noise[i])))
        lines.append((str(i + 1), *cells, _leading(reading, basis[:, i], i)))
    return card.table((*heads, "largest loadings"), lines, words=True)


def _leading(reading: Reading, loadings: Array, component: int) -> str:
    """Return the largest loadings of a component in words, with their errors, or that it is noise."""
    if reading.is_noise(component):
        return "noise: nothing can be read into it"
    errors = reading.loading_std(component)
    order = np.argsort(-np.abs(loadings), kind="stable")[:_MOST_LOADINGS]
    return ", ".join(
        f"{reading.names[i]} {with_noise(float(loadings[i]), 0.0 if errors is None else float(errors[i]))}"
        for i in order
    )
