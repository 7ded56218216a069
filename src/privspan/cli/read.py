"""``show``, ``report`` and ``relations``: reading what a fit has written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privspan._lib.errors import ParameterError
from privspan.cli import _console
from privspan.cli._options import Json, Overwrite, check_target, option, output_to, whole
from privspan.cli._progress import activity
from privspan.cli.exits import Complaint, ExitCode

if TYPE_CHECKING:
    from privspan.ledger.release_file import SavedRelease
    from privspan.privacy.rotated import Rotated

Rotate = Annotated[
    str | None, option("--rotate", "Rotate the components: varimax, quartimax, promax or oblimin.", "CRITERION")
]
SubspaceFile = Annotated[Path, typer.Argument(metavar="SUBSPACE", help="A file that `privspan fit` wrote.")]


def show(
    subspace: SubspaceFile,
    loadings: Annotated[int, whole("--loadings", "5", "Columns to name.", metavar="COUNT")] = 5,
    rotate: Rotate = None,
    report: Annotated[Path | None, option("--report", "Write the report on it, one .html page.", "FILE")] = None,
    sheet: Annotated[
        bool, option("--sheet", "Print what is promised, for whom and what is public, as JSON for other accountants.")
    ] = False,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Show a subspace: size, cost, how it was made, its directions by column name.

    Example:

    privspan show subspace.npz
    """
    check_target(report, "--report", (".html",), spare={"the subspace": subspace}, overwrite=overwrite)
    saved = load(subspace)
    turned = _rotated(saved, rotate)
    if sheet:
        if saved.release is None:
            raise Complaint("this file holds no privacy cost, so there is no data sheet for it.")
        _console.print_json(saved.release.sheet())
        return
    if report is not None:
        with activity(f"Writing {report}"):
            _write_report(saved, report, overwrite, turned)
    from privspan.cli import _describe

    if json:
        _console.print_json(_describe.as_json(saved, loadings, turned))
    else:
        _describe.print_saved(saved, subspace, loadings, turned)


def report(
    subspace: SubspaceFile,
    output: Annotated[Path | None, output_to("The .html file to write; by default the name of the subspace.")] = None,
    rotate: Rotate = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the report on a saved release: one page for people, offline or in print.

    Example:

    privspan report subspace.npz -o subspace.html
    """
    page = subspace.with_suffix(".html") if output is None else output
    check_target(page, "-o", (".html",), spare={"the subspace": subspace}, overwrite=overwrite)
    with activity(f"Writing {page}"):
        saved = load(subspace)
        _write_report(saved, page, overwrite, _rotated(saved, rotate))


def _rotated(saved: SavedRelease, criterion: str | None) -> Rotated | None:
    """Return the rotation that was asked for."""
    if criterion is None:
        return None
    from privspan.subspace.rotation import CRITERIA

    if saved.release is None:
        raise Complaint("this file holds a subspace only; a rotation needs a release that `privspan fit` wrote.")
    if criterion not in CRITERIA:
        raise Complaint(f"--rotate takes one of {', '.join(CRITERIA)}; got {criterion!r}.")
    return saved.release.rotate(criterion)  # type: ignore[arg-type]


def _write_report(saved: SavedRelease, report: Path, overwrite: bool, turned: Rotated | None) -> None:
    from privspan.report import write_report

    if saved.release is None:
        raise Complaint("this file holds no privacy cost, so there is no report on it.")
    write_report(report, saved.release, plan=saved.plan, record=saved.record, rotated=turned, overwrite=overwrite)
    _console.note(f"Wrote {report}.")


def relations(subspace: SubspaceFile, json: Json = False) -> None:
    """List the exact relations between columns that `fit --exact` found, one a line.

    Example:

    privspan relations subspace.npz
    """
    found = load(subspace).subspace
    if found.exact is None:
        raise Complaint("this subspace is not exact; relations come from: privspan fit FILE --exact …")
    from privspan.cli import _describe

    with activity("Looking for short relations"):
        said = _describe.relations_of(found)
    if not json:
        _console.print_lines(*said)
        return
    names = _describe.names_of(found)
    _console.print_json(
        [
            {"text": text, "terms": {names[column]: factor for column, factor in one.terms}, "constant": one.constant}
            for text, one in zip(said, found.relations(), strict=True)
        ]
    )


def load(path: Path) -> SavedRelease:
    """Read a file of `privspan fit`, or complain."""
    from privspan.ledger.release_file import load_release

    try:
        return load_release(path)
    except FileNotFoundError:
        message = f"there is no file {str(path)!r}; `privspan fit FILE … -o {path.stem}.npz` makes one."
        raise Complaint(message, ExitCode.UNREADABLE) from None
    except IsADirectoryError:
        raise Complaint(f"{str(path)!r} is a folder; name the .npz file in it.", ExitCode.UNREADABLE) from None
    except ParameterError as error:
        raise Complaint(f"{error} Name a file that `privspan fit` wrote.", ExitCode.UNREADABLE) from None
