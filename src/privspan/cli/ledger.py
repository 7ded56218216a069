"""``privspan ledger``: what has been spent, and what may be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privspan.cli import _console
from privspan.cli._groups import LimitDelta, LimitEpsilon
from privspan.cli._options import Json, option
from privspan.cli._style import Command, Group
from privspan.cli.exits import Complaint, ExitCode

if TYPE_CHECKING:
    from privspan.ledger import Account

_HELP = """See what has been spent on each data set, and set limits.

Example:

privspan ledger show budget.json
"""
commands = typer.Typer(cls=Group, no_args_is_help=True, add_completion=False, help=_HELP)

LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="The file given to `fit --ledger`.")]


@commands.command("show", cls=Command)
def show(
    ledger: LedgerFile,
    dataset: Annotated[str | None, option("--dataset", "Only this data set.", "NAME")] = None,
    json: Json = False,
) -> None:
    """Show every data set of a ledger: entries, their cost together, what is left.

    Example:

    privspan ledger show budget.json
    """
    from privspan.ledger import Ledger

    if not ledger.is_file():
        message = f"there is no ledger {str(ledger)!r}; `privspan fit … --ledger {ledger}` begins one."
        raise Complaint(message, ExitCode.UNREADABLE)
    accounts = Ledger(ledger).accounts()
    if dataset is not None:
        if dataset not in accounts:
            known = ", ".join(repr(name) for name in accounts)
            raise Complaint(f"the ledger has no data set {dataset!r}; it has {known}.")
        accounts = {dataset: accounts[dataset]}
    if json:
        _console.print_json({name: _as_json(account) for name, account in accounts.items()})
        return
    for name, account in accounts.items():
        _print(name, account)


@commands.command("limit", cls=Command)
def limit(
    ledger: LedgerFile,
    dataset: Annotated[str, option("--dataset", "The data set.", "NAME")],
    epsilon: LimitEpsilon = None,
    delta: LimitDelta = None,
) -> None:
    """Set the limit of a data set on purpose, up or down.

    A fit can only lower it.

    Example:

    privspan ledger limit budget.json --dataset people.csv --limit-epsilon 3
    """
    if epsilon is None and delta is None:
        raise Complaint("say what to set: --limit-epsilon 3 or --limit-delta 1e-5.")
    from privspan.ledger import Ledger

    book = Ledger(ledger)
    book.set_limit(dataset, epsilon, delta)
    _print(dataset, book.account(dataset))


def _print(name: str, account: Account) -> None:
    _console.print_lines(name, style="bold")
    rows = [
        (
            entry.since[:16].replace("T", " "),
            _short(entry.epsilon),
            _short(entry.delta),
            entry.unit,
            entry.state,
            entry.what,
        )
        for entry in account.entries
    ]
    if rows:
        _console.print_table(("begun (UTC)", ">epsilon", ">delta", "for one", "state", "what"), rows)
    else:
        _console.print_lines("Nothing has been spent.")
    spent, (epsilon, delta) = account.spent, account.left
    sums = (
        f"epsilon {_short(spent.epsilon)}{_rest(epsilon, account.limit_epsilon)}",
        f"delta {_short(spent.delta)}{_rest(delta, account.limit_delta)}",
    )
    _console.print_lines(f"Spent together: {'; '.join(sums)}.", "")


def _short(amount: Any) -> str:
    return f"{float(amount):.12g}"


def _rest(left: float | None, limit: Any) -> str:
    return " (no limit)" if left is None else f" of {_short(limit)} ({left:.12g} left)"


def _as_json(account: Account) -> dict[str, Any]:
    """Return the account in JSON numbers; the sums are rounded up, what is left down."""
    limits = {"epsilon": account.limit_epsilon, "delta": account.limit_delta}
    entries = [
        {**vars(entry), "epsilon": float(entry.epsilon), "delta": float(entry.delta)} for entry in account.entries
    ]
    return {
        "spent": {"epsilon": account.spent.epsilon, "delta": account.spent.delta},
        "limit": {name: None if value is None else float(value) for name, value in limits.items()},
        "left": dict(zip(("epsilon", "delta"), account.left, strict=True)),
        "entries": entries,
    }
