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
from privspan.privacy import Budget, Part, PrivacyCost


class MuLedger:
    """What is left of a mu-GDP budget, or of the share `mu` of it if others have the rest.

    `prefix` is put before the names of the steps in the cost.  `test_share` is the fraction of delta that is set
    aside for a test that may go on wrongly; a given `mu` must then be a share of the mu that goes with the rest.
    """

    def __init__(self, budget: Budget, mu: float | None = None, prefix: str = "", *, test_share: float = 0.0) -> None:
        self.budget = budget
        # A budget that keeps a mu of its own keeps it where nothing is set aside.
        self._rest, self.set_aside = budget.reserve_delta(test_share) if test_share else (budget, 0.0)
        self._mu, self._prefix = mu, prefix
        self._spent = Fraction(0)  # share of mu²
        self._steps: list[tuple[str, float, float]] = []

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
        return tuple((name, share) for name, share, _ in self._steps)

    def spend(self, name: str, share: float) -> float:
        """Take a share of mu² and return the mu of the step, rounded down.

        ``RuntimeError`` if the shares would sum above one: a fault of the program, found before anything is released.
        """
        if not (0.0 < share <= 1.0 and Fraction(share) <= 1 - self._spent):  # also for NaN
            raise RuntimeError(f"The privacy budget does not allow the step {name!r}: its shares would exceed one.")
        mu = sqrt_down(Fraction(self.mu) ** 2 * Fraction(share))
        self._spent += Fraction(share)
        self._steps.append((name, share, mu))
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
        """Return the price of the whole run, with one entry per step; the budget checks the sum once more.

        What was set aside is part of it whether or not there was a test.
        """
        aside = Part(self._prefix + "chance to go on wrongly", 0.0, self.set_aside)
        return self.budget.cost(*self.steps(), *((aside,) if self.set_aside else ()))

    def steps(self) -> tuple[Part, ...]:
        """Return what the steps so far have spent, without what was set aside."""
        return tuple(Part.gaussian(self._prefix + name, mu, self._rest.delta) for name, _, mu in self._steps)
