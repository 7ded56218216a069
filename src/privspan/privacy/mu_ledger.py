"""What may be spent: a `Budget`, and its account for many Gaussian steps, shares of mu² that never sum above one.

Steps may be chosen from what earlier steps released, sizes and noise levels included; what counts is that the
squares of all mu spent never exceed the square of the whole.  `MuLedger` keeps that sum as an exact fraction and
refuses to hand out a mu that would break it.  Proof: docs/explanation/everyday-pca.md, lemma 2.

A course with a private test is (mu, delta')-approximate GDP: Gaussian but for outcomes of total mass delta'.  That
delta' is set aside when the ledger is opened, before any step and whatever the test will say, and mu is that of the
rest of delta.  Proof: docs/explanation/one-algorithm.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan._lib.rounding import down, sqrt_down, sqrt_up
from privspan.privacy.cost import NEIGHBOURS, Part, PrivacyCost, keep_floats
from privspan.privacy.gdp import compose_mu, delta_from_mu, epsilon_from_mu, mu_from_budget, mu_from_epsilon

_SLIP = 1e-9  # relative excess of parts over a budget that rounding alone can explain


@dataclass(frozen=True)
class Budget:
    """The epsilon and delta that an algorithm may spend.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> rest, reserved = Budget(1.0, 1e-6).reserve_delta(0.25)
    >>> rest.delta, reserved
    (7.5e-07, 2.5e-07)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        checks.budget(self.epsilon, self.delta)
        keep_floats(self, "epsilon", "delta")

    @classmethod
    def for_mu(cls, mu: float, delta: float) -> Budget:
        """Return a budget that mu-GDP implies and that keeps this very mu, to tell a share of mu as a budget.

        Its epsilon is rounded up, so the mu of ``Budget(epsilon, delta)`` made anew may be larger in the last digits.
        Its delta is the one given, or less where hardly any epsilon, or none, would be needed beside that.
        """
        epsilon = epsilon_from_mu(mu, delta)
        budget = cls(epsilon, delta) if epsilon > mu / 8.0 else cls(mu, delta_from_mu(mu, mu))
        vars(budget)["mu"] = float(mu)
        return budget

    @cached_property
    def mu(self) -> float:
        """The largest mu such that mu-GDP implies this budget, rounded down."""
        return mu_from_budget(self.epsilon, self.delta)

    def reserve_delta(self, fraction: float) -> tuple[Budget, float]:
        """Set a fraction of delta aside, for failure probabilities and the like.

        Parameters
        ----------
        fraction : float
            From 0 (nothing is reserved) to below 1.

        Returns
        -------
        rest : Budget
            The same epsilon with the rest of delta.
        reserved : float
            The reserved delta; ``rest.delta + reserved <= delta`` as real numbers.
        """
        if fraction != 0:
            checks.probability(fraction=fraction)
        reserved = down(Fraction(self.delta) * Fraction(float(fraction)))
        return Budget(self.epsilon, down(Fraction(self.delta) - Fraction(reserved))), reserved

    def less(self, epsilon: float) -> Budget:
        """Return the budget that remains, with all of delta, after a step has spent this epsilon."""
        return Budget(left_of(self.epsilon, epsilon), self.delta) if epsilon else self

    def split(self, weights: Sequence[float]) -> tuple[Budget, ...]:
        """Split both epsilon and delta in proportion to the weights (basic composition).

        Returns
        -------
        tuple of Budget
            One per weight; the sums of their epsilons and deltas never exceed this budget, as real numbers.
        """
        if len(weights) == 0:
            raise ParameterError("{weights} must hold at least one weight; got none.")
        for weight in weights:
            checks.positive(weights=weight)
        exact = [Fraction(float(weight)) for weight in weights]
        shares = [weight / sum(exact) for weight in exact]
        epsilon, delta = Fraction(self.epsilon), Fraction(self.delta)
        return tuple(Budget(down(share * epsilon), down(share * delta)) for share in shares)

    def cost(self, *parts: Part, aside: tuple[float, float] | None = None, empty: float = 1.0) -> PrivacyCost:
        """Return the cost of an algorithm that spent this budget in these parts.

        The parts may spend less.  Parts that together spend more are a mistake in the algorithm and refused:
        epsilons and deltas add, except those of the Gaussian parts, whose mus compose.

        An algorithm that is Gaussian but for an epsilon and a delta `aside` has the mu of the rest of the budget,
        whatever its parts have spent of it: how much that is may depend on results, and is then no promise.  `empty`
        is the share of that mu² that an empty place can tell, at most.
        """
        gaussian, epsilons, deltas = [], [], []
        for part in parts:
            if part.mu is None:
                epsilons.append(part.epsilon)
                deltas.append(part.delta)
            else:
                gaussian.append(part.mu)
        epsilon_left = self.epsilon * (1 + _SLIP) - math.fsum(epsilons)
        delta_left = self.delta * (1 + _SLIP) - math.fsum(deltas)
        fits = epsilon_left >= 0 and delta_left >= 0
        if fits and gaussian:
            fits = delta_from_mu(compose_mu(*gaussian), epsilon_left) <= delta_left * (1 + _SLIP)
        if not fits:
            template = "the parts cost more than the budget ({epsilon!r}, {delta!r}) allows."
            raise ParameterError(template, epsilon=self.epsilon, delta=self.delta)
        if aside is None:
            return PrivacyCost(self.epsilon, self.delta, NEIGHBOURS, parts)
        epsilon, delta = aside
        rest = self.less(epsilon)
        if delta:
            rest = Budget(rest.epsilon, down(Fraction(rest.delta) - Fraction(delta)))
        told = sqrt_up(Fraction(rest.mu) ** 2 * Fraction(empty))
        return PrivacyCost(self.epsilon, self.delta, NEIGHBOURS, parts, rest.mu, epsilon, delta, told)


def left_of(total: float, part: float) -> float:
    """Return what is left of an epsilon or delta, rounded down: both never exceed the total as real numbers."""
    return total - part if part == 0.0 else math.nextafter(total - part, 0.0)


class MuLedger:
    """What is left of a mu-GDP budget, or of the share `mu` of it if others have the rest.

    `prefix` is put before the names of the steps in the cost.  `test_share` is the fraction of delta that is set
    aside for a test that may go on wrongly; a given `mu` must then be a share of the mu that goes with the rest.
    `empty` is the share of mu² that all steps together may tell of a place that is left empty, whatever they are: a
    promise for zero-out neighbours (docs/explanation/zero-out.md).
    """

    def __init__(
        self,
        budget: Budget,
        mu: float | None = None,
        prefix: str = "",
        *,
        test_share: float = 0.0,
        empty: float = 1.0,
    ) -> None:
        self.budget = budget
        # A budget that keeps a mu of its own keeps it where nothing is set aside.
        self._rest, self.set_aside = budget.reserve_delta(test_share) if test_share else (budget, 0.0)
        self._mu, self._prefix, self.empty = mu, prefix, empty
        self._spent = self._told = Fraction(0)  # shares of mu²: of all steps, and what an empty place tells by them
        self._shares: list[tuple[str, float]] = []
        self._steps: list[Part] = []

    @property
    def mu(self) -> float:
        """The whole."""
        return self._rest.mu if self._mu is None else self._mu

    @property
    def left(self) -> float:
        """Share of mu² that has not been spent, rounded down."""
        return max(0.0, down(1 - self._spent))

    @property
    def shares(self) -> tuple[tuple[str, float], ...]:
        """Name and share of every step so far."""
        return tuple(self._shares)

    def spend(self, name: str, share: float, gain: float = 1.0) -> float:
        """Take a share of mu² and return the mu of the step, rounded down.

        `gain` is that of an empty place over a replacement.  ``RuntimeError`` if the shares would sum above one, or
        above what was promised for zero-out: a fault of the program, found before anything is released.
        """
        if not (0.0 < share <= 1.0 and Fraction(share) <= 1 - self._spent):  # also for NaN
            raise RuntimeError(f"The privacy budget does not allow the step {name!r}: its shares would exceed one.")
        told = self._told + Fraction(share) / Fraction(gain) ** 2
        if told > Fraction(self.empty):
            raise RuntimeError(f"The step {name!r} would exceed the zero-out cost that was promised.")
        mu = sqrt_down(Fraction(self.mu) ** 2 * Fraction(share))
        self._spent += Fraction(share)
        self._told = told
        self._shares.append((name, share))
        self._steps.append(Part.gaussian(self._prefix + name, mu, self._rest.delta))
        return mu

    def nested(self, name: str, share: float) -> MuLedger:
        """Take a share of mu² for steps that keep a ledger of their own."""
        return self.sharing(self.spend(name, share))

    def sharing(self, mu: float, prefix: str = "") -> MuLedger:
        """Return a ledger for a part `mu` of this one, with the very delta that this one has set aside."""
        other = MuLedger(self.budget, mu, prefix)
        other._rest, other.set_aside = self._rest, self.set_aside
        return other

    def cost(self) -> PrivacyCost:
        """Return the price of the whole run, with one entry per step; the budget checks the sum once more."""
        whole = self._mu is None  # else this is a share of mu, and the budget that of the whole
        return self.budget.cost(*self.parts, aside=(0.0, self.set_aside) if whole else None, empty=self.empty)

    def promise(self, vote: float = 0.0) -> tuple[float, float]:
        """Return what a run with all of this, and a vote of that epsilon beside, is: mu and delta set aside."""
        return (self.mu if vote == 0.0 else compose_mu(self.mu, mu_from_epsilon(vote))), self.set_aside

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the steps so far have spent, and what was set aside, whether or not there was a test."""
        aside = Part(self._prefix + "chance to go on wrongly", 0.0, self.set_aside)
        return (*self._steps, *((aside,) if self.set_aside else ()))
