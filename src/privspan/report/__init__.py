"""A report on a release: one HTML file that a colleague can read, on a phone, offline or in print.

It says what was released, what it cost and what that means in plain words, which assumptions it rests on, how
accurate it should be, and how to run it again.  It is a function of its arguments, public and released values, and so
costs no privacy: post-processing of a release is as private as the release.  See docs/explanation/promise.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import resources
from string import Template

from privspan._lib.markup import Html, join
from privspan._lib.record import Record
from privspan._lib.version import __version__
from privspan._lib.whole_file import whole_file
from privspan.planner import Plan
from privspan.privacy import Release
from privspan.privacy.rotated import Rotated
from privspan.report import accuracy, appendix, circumstances, promise, released, sheet
from privspan.report.subject import Subject

__all__ = ["Record", "report_html", "write_report"]


def report_html(
    release: Release,
    *,
    plan: Plan | None = None,
    title: str | None = None,
    columns: Sequence[str] | None = None,
    record: Record | None = None,
    rotated: Rotated | None = None,
) -> str:
    """Return the report on a release as one self-contained HTML page.

    Parameters
    ----------
    release : Release
        What a private function returned, or the ``release_`` of an estimator.
    plan : Plan, optional
        What was predicted, for the section on accuracy; the ``plan_`` of :class:`privspan.PrivatePCA`.
    title : str, optional
        Headline; by default it says what was released.
    columns : sequence of str, optional
        Names of the columns; by default those of the release, or their numbers.
    record : Record, optional
        Where the table came from, by whom and for what the release was made, and more: see :class:`Record`.  Shown
        unchanged, so give public information only.  By default the report is dated today and says that the rest was
        not recorded.
    rotated : Rotated, optional
        The result of ``release.rotate``, shown after the components.

    Returns
    -------
    str
        The page: no script, no link to anything outside, light or dark as the reader's screen is.

    Guarantee
    ---------
    The page is a function of its arguments alone, so it is as private as the release: it costs nothing more
    (post-processing, replace-one neighbours).  Assumed: the other arguments were not read off the data.
    See docs/explanation/promise.md.

    Examples
    --------
    >>> import numpy as np
    >>> import privspan as ps
    >>> people = np.random.default_rng(0).integers(1, 100, (90, 2))
    >>> table = np.column_stack([people, people.sum(axis=1)])
    >>> release = ps.exact_subspace(table, 2, epsilon=1.0, delta=1e-6)
    >>> page = ps.report.report_html(release, columns=["rent", "food", "total"])
    >>> "total = rent + food" in page
    True
    """
    subject = Subject(release, columns, plan, Record() if record is None else record, rotated)
    headline = title if title is not None else released.headline(subject)
    body = (
        released.opening(subject, headline),
        released.facts(subject),
        circumstances.section(subject),
        released.section(subject),
        promise.cost(subject),
        accuracy.section(subject),
        sheet.section(subject),
        appendix.reproduce(subject),
        appendix.numbers(subject),
        appendix.footer(),
    )
    files = resources.files(__name__)
    style = files.joinpath("style.css").read_text(encoding="utf-8")
    page = Template(files.joinpath("page.html").read_text(encoding="utf-8"))
    return page.substitute(title=join(headline), version=__version__, style=Html(style), body=join(*body))


def write_report(
    path: str | os.PathLike[str],
    release: Release,
    *,
    plan: Plan | None = None,
    title: str | None = None,
    columns: Sequence[str] | None = None,
    record: Record | None = None,
    rotated: Rotated | None = None,
    overwrite: bool = True,
) -> None:
    """Write the report on a release to a file, whole or not at all.

    Parameters
    ----------
    path : str or path-like
        File to write.
    release, plan, title, columns, record, rotated
        As in :func:`report_html`.
    overwrite : bool, default=True
        Whether to replace a file of that name; ``FileExistsError`` if not.

    Guarantee
    ---------
    As private as the release, like :func:`report_html`.  See docs/explanation/promise.md.
    """
    page = report_html(release, plan=plan, title=title, columns=columns, record=record, rotated=rotated)
    with whole_file(path, overwrite=overwrite) as handle:
        handle.write(page.encode("utf-8"))
