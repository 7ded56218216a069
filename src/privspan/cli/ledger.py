"""``privspan ledger``: what has been spent, and what may be."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privspan.cli import _console
from privspan.cli._groups import LimitDelta, LimitEpsilon
from privspan.cli._options import Delta, Epsilon, Json, fraction, option
from privspan.cli._style import Command, Group
from privspan.cli.exits import Complaint, ExitCode

if TYPE_CHECKING:
    from privspan.ledger import Account, Entry, Pot

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


@commands.command("pot", cls=Command)
def pot(
    ledger: LedgerFile,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    dataset: Annotated[str, option("--dataset", "The data set.", "NAME")],
    epsilon: Epsilon,
    delta: Delta,
    aside: Annotated[
        Decimal | None, fraction("--aside", "1e-7", "How much of delta is for what fits set aside; half by default.")
    ] = None,
) -> None:
    """Open a pot: a share of the limit in which the fits of `fit --pot NAME` compose.

    A data set with a limit is one such pot by itself. This is for several.

    Example:

    privspan ledger pot budget.json year --dataset people --epsilon 3 --delta 1e-6
    """
    from privspan.ledger import Ledger

    book = Ledger(ledger)
    book.open_pot(dataset, name, epsilon, delta, aside=delta / 2 if aside is None else aside)
    _print(dataset, book.account(dataset))


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
    from privspan.ledger.accounts import REST
    from privspan.ledger.words import sentences, short

    _console.print_lines(name, style="bold")
    columns: dict[str, list[str]] = {
        "begun (UTC)": [entry.since[:16].replace("T", " ") for entry in account.entries],
        ">epsilon": [short(entry.epsilon) for entry in account.entries],
        ">delta": [short(entry.delta) for entry in account.entries],
        "for one": [entry.unit for entry in account.entries],
        "part": [entry.part or "" for entry in account.entries],
        "pot": ["" if entry.pot in (None, REST) else str(entry.pot) for entry in account.entries],
        "state": [entry.state for entry in account.entries],
        "what": [entry.what for entry in account.entries],
    }
    shown = {head: cells for head, cells in columns.items() if head not in ("part", "pot") or any(cells)}
    if account.entries:
        _console.print_table(tuple(shown), list(zip(*shown.values(), strict=True)))
    else:
        _console.print_lines("Nothing has been spent.")
    _console.print_lines(*sentences(account), "")


def _as_json(account: Account) -> dict[str, object]:
    """Return the account in JSON numbers; the sums are rounded up, what is left down."""
    spent, limits = account.spent, {"epsilon": account.limit_epsilon, "delta": account.limit_delta}
    last = account.entries[-1] if account.entries else None
    return {
        "spent": {"epsilon": spent.epsilon, "delta": spent.delta, "mu": spent.mu, "delta_aside": spent.delta_aside},
        "limit": {name: None if value is None else float(value) for name, value in limits.items()},
        "left": dict(zip(("epsilon", "delta"), account.left, strict=True)),
        "more_like_the_last": None if last is None else account.more_like(last),
        "plain": account.plain,
        "pots": [_in_numbers(pot) for pot in account.pots],
        "entries": [_in_numbers(entry) for entry in account.entries],
    }


def _in_numbers(one: Entry | Pot) -> dict[str, object]:
    amounts = {name: float(getattr(one, name)) for name in ("epsilon", "delta", "aside")}
    return {**vars(one), **amounts}
