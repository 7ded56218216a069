"""The end of the page: how to run it again, every released number, and the versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping

import numpy as np
import scipy
from numpy.typing import NDArray

from privspan._lib.frozen import plain
from privspan._lib.version import __version__
from privspan.report.markup import Html, element, folded, join, row
from privspan.report.subject import Subject
from privspan.report.words import command, number, program

_MOST_VALUES = 12


def reproduce(subject: Subject) -> Html:
    """Show the code and the command that run the method again."""
    code, shell = program(subject.release, subject.k), command(subject.release, subject.k)
    if code is None:
        return join()
    words = (
        "Here table is an array or data frame with one row per person, and names lists its columns. The noise is "
        "fresh each time, so the numbers will differ a little, and every run spends the budget again."
    )
    pieces = [element("h2", "How to reproduce it"), element("p", words), element("pre", element("code", code))]
    if shell is not None:
        pieces += [element("p", "Or on the command line:"), element("pre", element("code", shell))]
    return join(*pieces)


def numbers(subject: Subject) -> Html:
    """List everything that was released, in tables; loadings by name for those who cannot see the pictures."""
    pieces = [element("h2", "Every number"), _values("Parameters and settings", subject.release.parameters)]
    if subject.release.extras:
        pieces.append(_values("Released values", subject.release.extras))
    mean = subject.released("mean")
    if mean is not None:
        pieces.append(_mean(subject, mean))
    if subject.release.subspace is not None:
        pieces.append(_loadings(subject, subject.release.subspace.basis[:, :_MOST_VALUES]))
    return join(*pieces)


def _values(title: str, values: Mapping[str, object]) -> Html:
    rows = [
        element("tr", element("td", name.replace("_", " ")), element("td", _written(value)))
        for name, value in values.items()
        if name != "mean"  # has a table of its own, by column
    ]
    return folded(title, element("table", *rows))


def _written(value: object) -> str:
    simple = plain(value)
    if isinstance(simple, bool):
        return "yes" if simple else "no"
    if isinstance(simple, int | float):
        return number(simple, 4)
    if isinstance(simple, list):
        more = ", …" if len(simple) > _MOST_VALUES else ""
        return ", ".join(_written(item) for item in simple[:_MOST_VALUES]) + more
    return "–" if simple is None else str(simple)


def _mean(subject: Subject, mean: NDArray[np.float64]) -> Html:
    order = np.sort(np.argsort(-np.abs(mean), kind="stable")[: 4 * _MOST_VALUES])
    rows = [row(subject.names[i], _four_digits(mean[i])) for i in order]
    which = "" if len(order) == len(mean) else f" (the {len(order)} largest of {number(len(mean))})"
    return folded(f"Private mean by column{which}", element("table", *rows))


def _loadings(subject: Subject, basis: NDArray[np.float64]) -> Html:  # (d, few)
    order = np.sort(np.argsort(-(basis**2).sum(axis=1), kind="stable")[: 4 * _MOST_VALUES])
    heads = row("column", *(str(i + 1) for i in range(basis.shape[1])), kind="th")
    rows = [row(subject.names[i], *map(_four_digits, basis[i])) for i in order]
    which = "" if len(order) == len(basis) else f" (the {len(order)} columns of {number(len(basis))} that weigh most)"
    table = element("div", element("table", heads, *rows), class_="scroll")
    return folded(f"Loadings by column and component{which}", table)


def _four_digits(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def footer() -> Html:
    """Name the versions that the page was written with."""
    libraries = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    words = "This page holds public and released values only; it loads nothing and runs no script."
    return element("footer", element("p", f"Written by privspan {__version__} with {libraries}. {words}"))
