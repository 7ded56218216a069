"""The ledger: what has been spent on every table, and what is left."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from privspan.app.desk import desk_of, page
from privspan.app.pages.budget import in_words
from privspan.app.pages.start import is_example
from privspan.ledger.words import short


def show(request: Request) -> Response:
    """Show every data set of the ledger."""
    desk = desk_of(request)
    books = [
        (
            _name(name, desk.folder.root),
            is_example(desk, Path(name)),
            in_words(account),
            [
                (
                    one.since[:16].replace("T", " "),
                    short(one.epsilon),
                    short(one.delta),
                    one.unit,
                    one.state,
                    one.what,
                )
                for one in account.entries
            ],
        )
        for name, account in desk.ledger.accounts().items()
    ]
    return page(request, "history.html", books=books, ledger=desk.ledger_name)


def _name(dataset: str, root: Path) -> str:
    """Return the name of a data set as it is shown: a file below the folder by its path there."""
    path = Path(dataset)
    return path.relative_to(root).as_posix() if path.is_absolute() and path.is_relative_to(root) else dataset
