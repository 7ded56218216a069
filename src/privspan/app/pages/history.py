"""The ledger: what has been spent on every table, and what is left."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from privspan._lib.errors import PrivspanError
from privspan.app.desk import desk_of, page
from privspan.app.pages.budget import in_words
from privspan.app.words import told
from privspan.ledger.words import short


def show(request: Request) -> Response:
    """Show every data set of the ledger."""
    desk = desk_of(request)
    try:
        accounts = desk.ledger.accounts()
    except (PrivspanError, OSError) as error:
        return page(request, "broken.html", 422, words=told(error))
    books = [
        (
            _name(name, desk.folder.root),
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
        for name, account in accounts.items()
    ]
    return page(request, "history.html", books=books, ledger=desk.ledger_name)


def _name(dataset: str, root: Path) -> str:
    """Return the name of a data set as it is shown: a file below the folder by its path there."""
    path = Path(dataset)
    return path.relative_to(root).as_posix() if path.is_absolute() and path.is_relative_to(root) else dataset
