"""``privspan compare``: two releases of the same columns side by side, and how far apart they are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privspan.cli import _console
from privspan.cli._options import Json
from privspan.cli._progress import activity
from privspan.cli.exits import Complaint
from privspan.cli.read import load

if TYPE_CHECKING:
    from privspan.ledger.release_file import SavedRelease
    from privspan.subspace import Subspace

_COLUMNS_SHOWN = 5
_DISTANCES = (
    (1e-9, "the same, up to rounding."),
    (0.05, "nearly the same."),
    (0.2, "close."),
    (0.5, "similar, with a direction that has moved noticeably."),
    (0.95, "different: a direction of one is mostly missing from the other."),
    (math.inf, "at a right angle, or nearly: a direction of one is absent from the other."),
)


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A file that `privspan fit` wrote.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one, of the same columns.")],
    json: Json = False,
) -> None:
    """Compare two subspaces: side by side, the angles between them, in words.

    Both are public already, so comparing them costs nothing.

    Example:

    privspan compare january.npz february.npz
    """
    import numpy as np

    with activity("Comparing"):
        both = load(first), load(second)
        a, b = (saved.subspace for saved in both)
        _refuse_other_columns(a, b)
        degrees = np.degrees(a.angles(b)).tolist()
        distance = a.distance(b)
        moved = _moved_columns(a, b)
    if json:
        found = {"distance": distance, "angles_in_degrees": degrees, "dimensions": [a.dimension, b.dimension]}
        _console.print_json({**found, "moved_columns": dict(moved)})
        return
    _console.print_lines(f"{first} and {second}: {_in_words(distance, a.dimension, b.dimension)}")
    _print_sides(both, (str(first), str(second)))
    rows = [(str(number), f"{angle:.3g}°") for number, angle in enumerate(degrees, start=1)]
    _console.print_bars((">", ">principal angle"), rows, [angle / 90.0 for angle in degrees], "0° to 90°")
    scale = "0 is the same, 1 has a right angle"
    _console.print_lines(f"Distance {distance:.3g}, the sine of the largest angle: {scale}.")
    if distance > _DISTANCES[0][0]:
        rows = [(name, f"{value:.2g}") for name, value in moved]
        _console.print_bars(("columns that moved most", ">by"), rows, [value for _, value in moved], "0 to 1")


def _refuse_other_columns(a: Subspace, b: Subspace) -> None:
    if a.ambient_dimension != b.ambient_dimension:
        counts = f"{a.ambient_dimension:,} and {b.ambient_dimension:,}"
        raise Complaint(f"the two have {counts} columns; fit both on the same columns, with --columns.")
    if a.names and b.names and a.names != b.names:
        raise Complaint("the two have different columns, or another order; fit both with the same --columns.")


def _in_words(distance: float, first: int, second: int) -> str:
    if first != second:
        return f"of {first} and {second} dimensions, so their distance is 1 by definition."
    return next(words for bound, words in _DISTANCES if distance <= bound)


def _moved_columns(a: Subspace, b: Subspace) -> list[tuple[str, float]]:
    """Return the columns whose shadows on the two differ most, and by how much: |(P_a − P_b) e_j|, from 0 to 1."""
    import numpy as np

    from privspan.cli._describe import names_of

    # Within the span of both, so that equal subspaces differ by nothing but rounding and no d × d matrix is made.
    frame, corner = np.linalg.qr(np.hstack([a.basis, b.basis]))  # (d, r), (r, k_a + k_b)
    from_a, from_b = corner[:, : a.dimension], corner[:, a.dimension :]
    by = np.linalg.norm(frame @ (from_a @ from_a.T - from_b @ from_b.T), axis=1)  # (d,)
    names = names_of(a if a.names else b)
    return [
        (names[column], float(min(by[column], 1.0))) for column in np.argsort(-by, kind="stable")[:_COLUMNS_SHOWN]
    ]


def _print_sides(both: tuple[SavedRelease, SavedRelease], heads: tuple[str, str]) -> None:
    """Write what each of the two says of itself, side by side; what neither tells is left out."""
    sides = [_facts(saved) for saved in both]
    known = [fact for fact in sides[0] if any(side[fact] for side in sides)]
    _console.print_table(("", *heads), [(fact, *(side[fact] or "—" for side in sides)) for fact in known])


def _facts(saved: SavedRelease) -> dict[str, str | None]:
    from privspan.privacy.reading import Reading

    release = saved.release
    quality = None if release is None else Reading(release).captured
    facts: dict[str, str | None] = {
        "dimensions": str(saved.subspace.dimension),
        "captured": None,
        "privacy": None,
        "made from": saved.record.source if saved.record else None,
    }
    if quality is not None:
        facts["captured"] = f"{quality[0]} ({quality[1]})".replace("\u00a0", " ")
    if release is not None:
        facts["privacy"] = str(release.cost) if release.private else "NONE: a seed was given"
    return facts
