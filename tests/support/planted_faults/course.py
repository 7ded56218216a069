"""Faults in the one algorithm for every tail."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest
from runs import seeded
from sources import limited

from planted_faults.registry import fault
from privspan.audit.replay import spent_by
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget, compose_mu, delta_from_mu
from privspan.privacy.mu_ledger import MuLedger
from privspan.rows.door import open_table
from privspan.stable import course

COURSE = {"epsilon": 4.0, "delta": 1e-4}


@cache
def course_table() -> Any:
    return gaussian_subspace(600, 200, 2, gamma_w=1e-3, rng=0)[0]


def by_course(table: Any, rng: Any = 4) -> Any:
    run = seeded(rng, **COURSE, test_share=course.delta_share(open_table(table), 2, Budget(**COURSE)))
    return course.course_within(run, open_table(table), 2)


def overspent_after_no() -> bool:
    """Add up every mu that any ledger hands out on the way to a *no* and beyond, and the deltas of the test."""
    mus, deltas, spend = [], [], MuLedger.spend

    def noted(self, name, share, gain=1.0):
        mus.append(spend(self, name, share, gain))
        return mus[-1]

    def no(self, plan, coin):
        deltas.append(coin.delta)

    with mock.patch.object(MuLedger, "spend", noted), mock.patch.object(course.StableRecords, "certified", no):
        by_course(course_table())
    assert deltas, "there was no test"
    return delta_from_mu(compose_mu(*mus), COURSE["epsilon"]) + sum(deltas) > COURSE["delta"] * (1 + 1e-9)


@fault("a fall-back with a budget of its own", overspent_after_no)
def fresh_budget(patch):
    genuine = course.adaptive_within

    def afresh(run, *arguments, **options):
        return genuine(run.within(MuLedger(Budget(**COURSE))), *arguments, **options)

    patch.setattr(course, "adaptive_within", afresh)


@fault("a fall-back that has the share of the test too", overspent_after_no)
def refunded_test(patch):
    genuine = course.adaptive_within

    def refunded(run, *arguments, **options):
        run.account._spent -= Fraction(dict(run.account.shares)["test"])
        return genuine(run, *arguments, **options)

    patch.setattr(course, "adaptive_within", refunded)
    patch.setattr(MuLedger, "cost", lambda self: self.budget.cost())  # which would refuse the sum


@fault("a delta that is set aside after yes only", overspent_after_no)
def late_delta(patch):
    patch.setattr(MuLedger, "mu", property(lambda self: self.budget.mu))
    patch.setattr(MuLedger, "cost", lambda self: self.budget.cost())


def path_depends_on_more_than_releases() -> bool:
    """Replay the released numbers of a run on a neighbour with one short group fewer: half of them, or just less."""
    with pytest.MonkeyPatch.context() as patch:
        counts = itertools.cycle([100, 99])  # of 200 groups
        patch.setattr(course, "unit_tail_squares", lambda rows, groups: np.repeat([0.0, 1.0], next(split(counts))))
        try:
            spent_by(by_course, course_table(), course_table(), seed=4, answer=True)
        except (AssertionError, IndexError):
            return True
    return False


def split(counts: Any) -> Any:
    for short in counts:
        yield [short, 200 - short]


@fault("a branch that an unreleased number decides", path_depends_on_more_than_releases)
def bare_branch(patch):
    genuine = course.StableSteps.tails_are_short

    def decided(self):
        counted, squares = [], course.unit_tail_squares
        with mock.patch.object(course, "unit_tail_squares", lambda *a: counted.append(squares(*a)) or counted[0]):
            genuine(self)
        return np.count_nonzero(counted[0] < 0.5) >= 100

    patch.setattr(course.StableSteps, "tails_are_short", decided)


def others_are_seen() -> bool:
    """Change a row outside the draw: with the same noise, nothing that stable leverage releases may change."""
    X, seen, drawn, genuine = course_table(), [], [], course._drawn_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(course, "_drawn_rows", lambda *a: drawn.append(genuine(*a)) or drawn[-1])
        patch.setattr(course, "_localised", lambda look, *_: seen.append(look.released))
        patch.setattr(course, "_adaptively", lambda look, *_: seen.append(look.released))
        by_course(limited(X, drawn_rows=400))
        outside = np.flatnonzero(~np.isin(X[:, 0], drawn[0][:][:, 0]))[0]
        changed = X.copy()
        changed[outside] = 1e6 * np.arange(X.shape[1])
        by_course(limited(changed, drawn_rows=400))
    return seen[0] != seen[1]


@fault("rows outside the draw in the stable look", others_are_seen)
def longest_rows(patch):
    def longest(source, public, generator):
        order = np.argsort(np.linalg.norm(source[:], axis=1))
        return source.draw(np.sort(order[-public.rows :])).here()

    patch.setattr(course, "_drawn_rows", longest)
