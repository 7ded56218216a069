"""Faults in the ledger."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable

import numpy as np

from planted_faults.registry import EPSILON, SMALL_DELTA, fault
from privspan import private_mean
from privspan._lib import strict_json
from privspan._lib.charge import Charge
from privspan.ledger import DamagedLedgerError, Ledger, OverspendError
from privspan.ledger.accounts import Entry
from privspan.rows import RowSource


def overspends(spend_again: Callable[[Ledger], object]) -> bool:
    """Spend a limit of 1 twice, the second time in a way that must be refused."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"{folder}/budget.json")
        ledger.set_limit("people", "1", None)
        try:
            spend_again(ledger)
        except (DamagedLedgerError, OverspendError):
            return False
        return True


def after_a_second_key(ledger: Ledger) -> None:
    ledger.begin("people", "1", "1e-6")
    text = ledger.path.read_text("utf-8").rstrip().removesuffix("}")
    ledger.path.write_text(f'{text}, "datasets": {{}}}}', "utf-8")
    ledger.begin("people", "1", "1e-6")


def under_a_second_name(ledger: Ledger) -> None:
    other = ledger.path.with_name("other.json")
    os.link(ledger.path, other)
    for path in (ledger.path, other):
        Ledger(path).begin("people", "1", "1e-6")


def for_rows_and_persons(ledger: Ledger) -> None:
    X, groups = np.ones((400, 2)), np.arange(400) // 2
    private_mean(X, epsilon=0.25, delta=SMALL_DELTA, ledger=ledger)
    private_mean(X, epsilon=0.25, delta=SMALL_DELTA, groups=groups, ledger=ledger)


@fault("costs for rows and for persons added up", lambda: overspends(for_rows_and_persons))
def added_up(patch):
    patch.setattr(Entry, "promised_to", ("replace-one", "row"))


@fault("the last of two keys wins", lambda: overspends(after_a_second_key))
def last_key_wins(patch):
    patch.setattr(strict_json, "_unique", dict)


@fault("a ledger with two names", lambda: overspends(under_a_second_name))
def two_names(patch):
    patch.setattr(Ledger, "_refuse_second_name", lambda ledger, descriptor: None)


class Struck(RowSource):
    """Rows whose first reader is struck down."""

    shape, dtype = (400, 2), np.dtype(float)

    def _take(self, numbers):
        raise SystemExit


def runs_for_nothing() -> bool:
    """Tell whether a call that has begun to look at the data, and then dies, has spent nothing."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"{folder}/budget.json")
        with contextlib.suppress(SystemExit):
            private_mean(Struck(), epsilon=EPSILON, delta=SMALL_DELTA, ledger=ledger)
        return ledger.account("people").spent.epsilon == 0.0


@fault("a charge written after the run", runs_for_nothing)
def charged_late(patch):
    def finished(self, result):
        begin(self)

    begin = Charge.begin
    patch.setattr(Charge, "begin", lambda self: None)
    patch.setattr(Charge, "finished", finished)
