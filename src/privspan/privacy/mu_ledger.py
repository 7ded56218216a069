"""One budget for many Gaussian steps: shares of mu² that can never sum above one.

Steps may be chosen from what earlier steps released, sizes and noise levels included; what counts is that the
squares of all mu spent never exceed the square of the whole.  `MuLedger` keeps that sum as an exact fraction and
refuses to hand out a mu that would break it.  Proof: docs/explanation/everyday-pca.md, lemma 2.

A course with a private test is (mu, delta')-approximate GDP: Gaussian but for outcomes of total mass delta'.  That
delta' is set aside when the ledger is opened, before any step and whatever the test will say, and mu is that of the
rest of delta.  Proof: docs/explanation/one-algorithm.md.
"""

from __future__ import annotations

from fractions import Fraction

from privspan._lib.rounding import down, sqrt_down
from privspan.privacy import Budget, Part, PrivacyCost, compose_mu, mu_from_epsilon


class MuLedger:
    """What is left of a mu-GDP budget, or of the share `mu` of it if others have the rest.

    `prefix` is put before the names of the steps in the cost.  `test_share` is the fraction of delta that is set
    aside for a test that may go on wrongly; a given `mu` must then be a share of the mu that goes with the rest.
    `empty` is the share of mu² that all steps together may tell of a place that is left empty, whatever they are: a
    promise for zero-out neighbours (`privspan.privacy.zero_out`).
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
