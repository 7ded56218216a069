"""The end of the page: how to run it again, every released number, and the versions."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping

import numpy as np
import scipy
from numpy.typing import NDArray

from privspan._lib.frozen import plain
from privspan._lib.in_words import number, with_noise
from privspan._lib.markup import Html, element, folded, join, note, row
from privspan._lib.version import __version__
from privspan.report.subject import Subject
from privspan.report.words import program, to_give_again, without_numbers

_MOST_VALUES = 12
_NOT_FINITE = (None, "nan", "inf", "-inf")  # as `plain` writes it
# Which have a table of their own:
_BY_COLUMN = ("mean", "mean_std", "scale", "scale_std", "low", "high", "components_std", "column_weights")


def reproduce(subject: Subject) -> Html:
    """Show the command or the code that runs the method again, with the schema that it needs."""
    title = element("h2", "How to reproduce it")
    if subject.record.command is not None:
        return join(title, *_typed(subject, subject.record.command))
    code = program(subject.release, subject.k)
    if code is None:
        return join()
    rows = "rows of persons, ids holds their ids" if subject.by_persons else "one row per person"
    words = f"Here table is an array or data frame with {rows}, and names lists its columns. "
    words += _again(subject)
    pieces = [title, element("p", words), element("pre", element("code", code))]
    public = to_give_again(subject.release)
    if public is not None:
        pieces.append(note(public))
    return join(*pieces)


def _typed(subject: Subject, command: str) -> list[Html]:
    """Show the command as it was typed, and the schema file that it names."""
    asks = {word.partition("=")[0] for word in shlex.split(command)} & {"--query", "--table"}
    if asks:
        words = "Run this with the URL of the database in the variable PRIVSPAN_DATABASE"
        words += ", in a folder that holds the schema. " if subject.record.schema else ". "
    else:
        words = f"Run this in a folder that holds the table{' and the schema' if subject.record.schema else ''}. "
    pieces = [element("p", words + _again(subject)), element("pre", element("code", command))]
    if subject.record.schema is not None:
        lines = subject.record.schema.splitlines(keepends=True)
        declared = "".join(line for line in lines if not line.startswith("#"))  # notes of whoever keeps the data
        schema = element("pre", element("code", declared.lstrip("\n")))
        pieces += [element("p", "The schema, which declares the types of the columns:"), schema]
    return pieces


def _again(subject: Subject) -> str:
    """Say what another run on the same table gives."""
    if subject.is_exact:
        return "Another run finds the same subspace, or abstains; every run spends the budget again."
    if subject.release.abstained:
        return "Another run may answer or abstain again; every run spends the budget again."
    return "The noise is fresh each time, so the numbers will differ a little; every run spends the budget again."


def numbers(subject: Subject) -> Html:
    """List everything that was released, in tables; loadings by name for those who cannot see the pictures."""
    settings = {name: value for name, value in subject.release.parameters.items() if name != "declared"}
    pieces = [element("h2", "Every number"), _values("Parameters and settings", settings)]
    others = {name: value for name, value in subject.release.extras.items() if name not in _BY_COLUMN}
    if others:
        pieces.append(_values("Released values", others, none="not measured"))
    pieces.append(_columns(subject))
    if subject.release.subspace is not None:
        pieces.append(_loadings(subject, subject.release.subspace.basis[:, :_MOST_VALUES]))
    return join(*pieces)


def _values(title: str, values: Mapping[str, object], none: str = "–") -> Html:
    rows = [
        element("tr", element("td", name.replace("_", " ")), element("td", _written(value, none)))
        for name, value in values.items()
    ]
    return folded(title, element("table", *rows))


def _written(value: object, none: str) -> str:
    simple = plain(value)
    if simple in _NOT_FINITE:
        return none
    if isinstance(simple, bool):
        return "yes" if simple else "no"
    if isinstance(simple, int | float):
        return number(simple, 4)
    if isinstance(simple, list):
        if not simple:
            return "none"
        more = ", …" if len(simple) > _MOST_VALUES else ""
        return ", ".join(_written(item, none) for item in simple[:_MOST_VALUES]) + more
    return str(simple)


def _columns(subject: Subject) -> Html:
    """List mean and unit of every column, with their noise."""
    shown = by_column(subject)
    if not shown:
        return join()
    sizes = np.abs(subject.released("scale" if subject.mean_is == "absent" else "mean"))  # type: ignore[arg-type]
    order = np.sort(np.argsort(-sizes, kind="stable")[: 4 * _MOST_VALUES])
    rows = [row(subject.names[i], *(cells[i] for cells in shown.values())) for i in order]
    which = "" if len(order) == len(sizes) else f" (the {len(order)} largest of {number(len(sizes))})"
    table = element("table", row("column", *shown, kind="th"), *rows)
    return folded(f"{' and '.join(shown).capitalize()} by column{which}", element("div", table, class_="scroll"))


def by_column(subject: Subject) -> dict[str, list[str]]:
    """Return what is known of every column, in words, under what it is: a mean or centre, and a unit."""
    shown = {}
    if subject.mean_is != "absent":
        scaled = subject.release.parameters.get("course") == "one look"
        rows = "rows scaled to one length" if scaled else "clipped rows"
        measured = f"private mean of {'the winsorised column' if subject.estimates else rows}"
        shown["public centre" if subject.mean_is == "public" else measured] = _noisy(subject, "mean")
    if subject.released("scale") is not None:
        shown["standard deviation" if subject.estimates else "unit"] = _noisy(subject, "scale")
    unknown = {*subject.without_units, *without_numbers(subject.release)}
    return {
        title: ["not known" if place in unknown else cell for place, cell in enumerate(cells)]
        for title, cells in shown.items()
    }


def _noisy(subject: Subject, name: str) -> list[str]:
    """Return released numbers with their noise, where that is told."""
    values, noise = subject.released(name), subject.released(f"{name}_std")
    assert values is not None
    told = np.zeros_like(values) if noise is None else noise
    return [with_noise(value, std) for value, std in zip(values, told, strict=True)]


def _loadings(subject: Subject, basis: NDArray[np.float64]) -> Html:  # (d, few)
    order = np.sort(np.argsort(-(basis**2).sum(axis=1), kind="stable")[: 4 * _MOST_VALUES])
    heads = row("column", *(str(i + 1) for i in range(basis.shape[1])), kind="th")
    errors = [subject.loading_std(j) for j in range(basis.shape[1])]
    rows = [row(subject.names[i], *(_loading(basis[i, j], errors[j], i) for j in range(len(errors)))) for i in order]
    which = "" if len(order) == len(basis) else f" (the {len(order)} columns of {number(len(basis))} that weigh most)"
    table = element("div", element("table", heads, *rows), class_="scroll")
    words = "± is the standard error that the noise gives a loading."
    told = [note(words)] if any(error is not None for error in errors) else []
    return folded(f"Loadings by column and component{which}", table, *told)


def _loading(value: float, errors: NDArray[np.float64] | None, column: int) -> str:
    if errors is not None and errors[column] > 0.0:
        return with_noise(float(value), float(errors[column]))
    return f"{value + 0.0:.4g}".replace("-", "−")  # a zero has no sign


def footer() -> Html:
    """Name the versions that the page was written with."""
    libraries = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    words = "This page holds public and released values only; it loads nothing and runs no script."
    return element("footer", element("p", f"Written by privspan {__version__} with {libraries}. {words}"))
