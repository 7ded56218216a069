"""One algorithm for every tail: it looks how long tails are, chooses, and never abstains.

Steps: (1) ask in private whether most tails are short enough for stable leverage to pay off; (2) if so, release the
scales that it needs and plan; (3) its test; (4) after *yes* its basis with noise, made from at most 5,000 rows that
the public stream draws; (5) the (k, k) second moment of all unit rows along that basis; (6) localised rounds on all
rows with what is left. Wherever stable leverage is not promising, or its test says *no*, the adaptive algorithm gets
all that has not been spent. Every decision rests on public and released numbers, the delta of the test is set aside
before the first step on every path, and one account of mu pays for all of them.
Proof: docs/explanation/one-algorithm.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.rounding import down
from privspan.privacy import Budget, Release
from privspan.privacy.call import Call
from privspan.privacy.coin import Coin, GaussianCoin
from privspan.privacy.joint import JointLedger
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import Child
from privspan.privacy.run import Learn, Run
from privspan.rows.table import LocalTable, Table
from privspan.stable import choice
from privspan.stable.plan import allowance_for, certified_plan
from privspan.stable.records import StableRecords, public_groups, unit_tail_squares
from privspan.stable.scales import released_share
from privspan.stable.steepest import accepted
from privspan.stable.tuning import STABLE
from privspan.subspace import Subspace
from privspan.sums.adaptive import adaptive_within
from privspan.sums.adaptive_tuning import LEAN
from privspan.sums.estimate import Estimate
from privspan.sums.rounds import localised_rounds
from privspan.sums.variance import second_moments

Array = NDArray[np.float64]

LABELS = ("auto (adaptive)", "auto (stable look)", "auto (stable look, rounds)")
"""What `Release.method` says of the three ways that the course can go."""


def course_within(run: Run, source: Table, k: int, gamma: float | None = None, *, constant: bool = False) -> Release:
    """Learn the leading k-dimensional subspace by the course above, for the mu of a run.

    The account of the run is that of `single_account`, or was opened with the `test_share` that `delta_share`
    returns. With nothing set aside, or where the public numbers say that stable leverage cannot pay off, this is
    `adaptive_within`, bit for bit. With `gamma` the probe is saved. `constant` says that the last column is one,
    public or released: its direction is known from the first look on, and needs no precision of its own in the
    last round.

    Guarantee
    ---------
    (mu, set_aside)-approximate GDP for replace-one neighbours and every data set, mu and set_aside those of the
    account; with a `JointLedger` (epsilon, delta)-DP for its budget. n, d and all parameters are public. Assumed:
    what `adaptive_subspace` and `stable_subspace` assume.
    Proof: docs/explanation/one-algorithm.md.
    """
    public, account = _public(source, int(k), run.account.mu, run.account.set_aside), run.account
    if isinstance(account, JointLedger):
        public = replace(public, joint=account.joint)
    elif not account.set_aside or not choice.may_pay(public, gamma):
        return adaptive_within(run, source, k, constant=constant)
    # Streams of their own, so that the adaptive course draws the same noise with the same seed as it does alone.
    look = StableSteps(source, public, run.on(Child.LOOK), constant)
    if gamma is None and not look.tails_are_short():
        return _adaptively(look, source, run, "tails are too long for stable leverage to pay off")
    found = look.stable_basis()
    if found is None:
        return _adaptively(look, source, run, "stable leverage was not certain of its answer")
    return _localised(look, found, source, run)


def prepare_auto(call: Call, X: object, k: int, budget: Budget, gamma: float | None = None) -> Learn:
    """Refuse what the course refuses, from public facts alone; its run has the `test_share` of `delta_share`."""
    source = call.open(X)
    checks.dimension(k=k, d=source.shape[1], n=source.shape[0])
    return partial(course_within, source=source, k=k, gamma=gamma)


def delta_share(source: Table, k: int, budget: Budget, mu_share: float = 1.0, gamma: float | None = None) -> float:
    """Return the fraction of delta to set aside for a course that gets a share of mu²: public numbers only.

    Zero where stable leverage could not pay off, so that nothing is paid for what cannot come.
    """
    rest, aside = budget.reserve_delta(STABLE.test)
    public = _public(source, int(k), rest.mu * math.sqrt(mu_share), aside)
    return STABLE.test if _deltas(aside)[1] > 0.0 and choice.may_pay(public, gamma) else 0.0


def single_account(
    source: Table, k: int, budget: Budget, gamma: float | None = None, *, joint: bool = True
) -> MuLedger:
    """Return the account of a call that is the course and nothing else: public numbers only.

    If it may be `joint` and that pays, test and noise are accounted together: it has an epsilon and a delta then, and
    no mu that could be composed with others.
    """
    share = delta_share(source, k, budget, gamma=gamma)
    account = MuLedger(budget, test_share=share)
    if joint:
        rest, aside = budget.reserve_delta(STABLE.test)
        public = _public(source, int(k), rest.mu, aside)
        together = choice.accounted_together(public, budget.epsilon, budget.delta, gamma)
        if together is not None and together.joint is not None:
            found = accepted(budget.epsilon, budget.delta, together.joint)
            account = account if found is None else JointLedger(budget, found)
    return account


def _public(source: Table, k: int, mu: float, set_aside: float) -> choice.Public:
    n, d = source.shape
    copied, limits = _is_copied(source), source.limits
    return choice.public_numbers(n, d, k, mu, _deltas(set_aside)[0], copied=copied, limits=limits)


def _is_copied(source: Table) -> bool:
    return source.is_sparse or not source.local


def _deltas(set_aside: float) -> tuple[float, float]:
    """Divide what was set aside between the test and the rotation; as real numbers they add up to no more."""
    rotation = set_aside * STABLE.rotation
    return down(Fraction(set_aside) - Fraction(rotation)), rotation


@dataclass(frozen=True)
class _Found:
    """A released basis (d, k), the noise in each of its entries, and what was released and decided besides."""

    basis: Array
    std: float
    tail: float  # released length of a typical tail
    rounds: bool  # whether rounds are to follow


class StableSteps:
    """The steps that stable leverage takes on the rows that were drawn, and what they released."""

    def __init__(self, source: Table, public: choice.Public, run: Run, constant: bool) -> None:
        self.public, self.run, self.constant = public, run, constant
        self._rows = _drawn_rows(source, public, run.streams.public)
        self.released: dict[str, object] = {"rows_looked_at": public.rows}

    def tails_are_short(self) -> bool:
        """Step 1: release the share of groups of k + 1 rows with a tail for which stable leverage pays off.

        Guarantee
        ---------
        Gaussian with the mu of its share, for replace-one neighbours: groups are disjoint and public, so a record
        moves the count by at most 1. Proof: docs/explanation/one-algorithm.md, lemma 4.
        """
        course = choice.course_for(self.public)
        groups = public_groups(self.public.rows, self.public.k, self.run.streams.public)
        bar = choice.group_length(self.public.k, course.longest)
        squares = unit_tail_squares(self._rows, groups)  # (groups,), each from its own records
        short = int(np.count_nonzero(squares < bar * bar))
        mu = self.run.account.spend("probe of the tails", course.probe)
        # What is taken off there to be cautious is put back here.
        share = released_share(short, len(groups), mu, self.run) + 1.0 / (mu * len(groups))
        self.released |= {"short_tail": bar, "share_of_short_tails": share}
        return share >= 0.5

    def stable_basis(self) -> _Found | None:
        """Steps 2 to 4: a basis with its noise, or None where stable leverage does not pay off or says no."""
        public, run, scales = self.public, self.run, choice.scales_for(self.public)
        delta_test, delta_rotation = _deltas(run.account.set_aside)
        records = StableRecords(self._rows, public.k, run)
        log_scale = records.release_scale(run.account.spend("norm scale", scales.norm), scales.quantile)
        tail = records.release_tail(run.account.spend("tail length", scales.tail))
        self.released |= {"log2_norm_scale": log_scale, "tail_length": tail}
        long = None
        if scales.long:
            long = records.release_long_share(tail, run.account.spend("long tails", scales.long))
            self.released["long_share"] = long
        strength = records.release_strength(run.account.spend("signal strength", scales.signal))
        strength = choice.bolder_strength(public, scales, strength)
        self.released["signal_strength"] = strength
        room = allowance_for("auto", long)
        look = choice.plan_released(public, scales, strength, tail, run.account.left, room)
        if look is None:
            return None
        account = run.account
        coin: Coin
        if isinstance(account, JointLedger):
            coin, delta_rotation = account.toss(), account.joint.rotation
        else:
            coin = GaussianCoin(account.spend("test", look.test), delta_test)
        plan = certified_plan(public.rows, public.d, strength, tail, coin, room)
        passed = None if plan is None else records.certified(plan, coin)
        if isinstance(account, JointLedger):
            account.answered(passed is not None)
        if passed is None:
            return None
        # Only now: noise that is not drawn is not spent.
        mu_noise = run.account.spend("noise of the look", look.noise if look.rounds else run.account.left)
        noisy = records.noisy_basis(passed, mu_noise, delta_rotation)
        return _Found(noisy.basis, noisy.std, tail, look.rounds)


def _drawn_rows(source: Table, public: choice.Public, generator: np.random.Generator) -> LocalTable:
    """Return the rows that the public stream draws, dense, one of each person: others are not even read."""
    source = source.one_each()
    if public.rows == public.n and not _is_copied(source):
        return source.here()
    numbers = np.sort(generator.permutation(public.n)[: public.rows])
    return source.draw(numbers, dense=True).here()


def _localised(look: StableSteps, found: _Found, source: Table, run: Run) -> Release:
    """Steps 5 and 6: rounds on all rows from the released basis, if they are to follow."""
    public = look.public
    span = Subspace.from_spanning(found.basis)
    if not found.rounds:
        error = found.std * (math.sqrt(public.d) + math.sqrt(public.k))
        return _release(look, span, LABELS[1], "stable leverage on the rows looked at", error, run.private)
    mu = run.account.spend("spread along the basis", choice.moment_share(public.n, public.k, run.account.mu))
    inside, _, _ = second_moments(source.rows(), span.basis, mu, run)
    start = _start(span.basis, inside / public.n, found.std)
    estimate = localised_rounds(source, start, look.public.tuning.longer * found.tail, run, constant=look.constant)
    error = estimate.error_but_last if look.constant else estimate.error
    course = "stable leverage on the rows looked at, then localised rounds on all rows"
    return _release(look, Subspace.from_spanning(estimate.basis), LABELS[2], course, error, run.private)


def _start(basis: Array, moment: Array, std: float) -> Estimate:
    """Describe the released basis (d, k), turned to the eigenvectors of the released second moment along it."""
    k = len(moment)
    values, turn = np.linalg.eigh(moment)
    values = np.maximum(values[::-1], STABLE.least_eigenvalue * max(float(values.mean()), 0.1 / k))
    return Estimate(basis @ turn[:, ::-1], np.eye(k) / std**2, values / max(float(values.sum()), 1.0))


def _adaptively(look: StableSteps, source: Table, run: Run, why: str) -> Release:
    """Run the adaptive algorithm with everything that has not been spent."""
    release = adaptive_within(run, source, look.public.k, tuning=LEAN, constant=look.constant)
    course = f"{release.parameters['course']}; {why}"
    parameters = {**release.parameters, **look.released, "course": course}
    return replace(release, method=LABELS[0], parameters=parameters)


def _release(look: StableSteps, subspace: Subspace, label: str, course: str, error: float, private: bool) -> Release:
    public, account = look.public, look.run.account
    parameters = {
        "n": public.n,
        "d": public.d,
        "k": public.k,
        "course": course,
        **look.released,
        "stands_out": public.k,
        "expected_error": min(1.0, error),
        "shares": account.shares,
    }
    return Release(subspace, account.cost(), label, parameters, private)
