"""Faults in the ledger."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from strategies import worst_delta

from planted_faults.registry import EPSILON, SMALL_DELTA, fault
from privspan import private_mean
from privspan._lib import strict_json
from privspan.ledger import DamagedLedgerError, Ledger, OverspendError
from privspan.ledger.accounts import Account, Entry, Pot
from privspan.privacy import delta_from_mu, mu_from_budget
from privspan.privacy.call import Call
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.run import open_run
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
    X, person = np.ones((400, 2)), np.arange(400) // 2
    private_mean(X, epsilon=0.25, delta=SMALL_DELTA, ledger=ledger)
    private_mean(X, epsilon=0.25, delta=SMALL_DELTA, person=person, ledger=ledger)


def on_the_whole_and_a_part(ledger: Ledger) -> None:
    ledger.begin("people", "1", "1e-6")
    ledger.begin("people", "1", "1e-6", part="north")


@fault("costs for rows and for persons added up", lambda: overspends(for_rows_and_persons))
def added_up(patch):
    patch.setattr(Entry, "promised_to", ("replace-one", "row"))


@fault("the last of two keys wins", lambda: overspends(after_a_second_key))
def last_key_wins(patch):
    patch.setattr(strict_json, "_unique", dict)


@fault("a ledger with two names", lambda: overspends(under_a_second_name))
def two_names(patch):
    patch.setattr(Ledger, "_refuse_second_name", lambda ledger, descriptor: None)


def beyond(share: float = 0.5) -> bool:
    """Tell whether spends chosen in view of results get more than the delta that an account promises at epsilon 1."""
    return worst_delta(Account(limit_epsilon=1.0, limit_delta=1e-6), 1.0, share) > 1.001e-6


@fault("a pot that stops when the composed delta is reached", beyond)
def obvious_rule(patch):
    def has_room(account, entry):
        inside = [*(one for one in account.entries if one.pot is not None), entry]
        mu = math.sqrt(sum(one.mu**2 for one in inside))
        return delta_from_mu(mu, 1.0) + sum(float(one.aside) for one in inside) <= 1e-6

    patch.setattr(Account, "_has_room", has_room)


@fault("sums of mu² held against mu", beyond)
def not_squared(patch):
    def room(account, pot, part=None):
        square, aside = exact(account, pot, part)
        mu = Fraction(account.pot(pot).mu)
        return square - mu**2 + mu, aside

    exact = Account.room
    patch.setattr(Account, "room", room)


@fault("the delta of a pot used for noise and set aside once more", beyond)
def spent_twice(patch):
    def of_budget(name, epsilon, delta, aside, since):
        return Pot(name, epsilon, delta, aside, mu_from_budget(float(epsilon), float(delta)), since)

    patch.setattr(Pot, "of_budget", of_budget)


@fault("deltas set aside forgotten", beyond)
def forgotten(patch):
    def has_room(account, entry):
        return exact(account, replace(entry, aside=0.0))

    exact = Account._has_room
    patch.setattr(Account, "_has_room", has_room)


@fault("a part that does not count what was spent on the whole", lambda: overspends(on_the_whole_and_a_part))
def parts_apart(patch):
    def views(account, part=None):
        return [tuple(entry for entry in account.entries if entry.part == part)]

    patch.setattr(Account, "_views", views)


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
    def free(self, account=None, **_):
        return open_run(MuLedger(self.budget) if account is None else account, self._rng)

    def charged(self, result):
        begin(self)
        return result

    begin = Call.begin
    patch.setattr(Call, "begin", free)
    patch.setattr(Call, "finish", charged)
