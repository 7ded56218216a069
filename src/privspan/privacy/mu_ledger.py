"""One budget for many Gaussian steps: shares of mu² that can never sum above one.

Steps may be chosen from what earlier steps released, sizes and noise levels included; what counts is that the
squares of all mu spent never exceed the square of the whole.  `MuLedger` keeps that sum as an exact fraction and
refuses to hand out a mu that would break it.  Proof: docs/explanation/everyday-pca.md, lemma 2.
"""

from __future__ import annotations

from fractions import Fraction

from privspan._lib.rounding import down, sqrt_down
from privspan.privacy import Budget, Part, PrivacyCost


class MuLedger:
    """What is left of a mu-GDP budget, or of the share `mu` of it if others have the rest.

    `prefix` is put before the names of the steps in the cost.
    """

    def __init__(self, budget: Budget, mu: float | None = None, prefix: str = "") -> None:
        self.budget = budget
        self._mu, self._prefix = mu, prefix
        self._spent = Fraction(0)  # share of mu²
        self._steps: list[tuple[str, float, float]] = []

    @property
    def mu(self) -> float:
        """The whole."""
        return self.budget.mu if self._mu is None else self._mu

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

    def cost(self) -> PrivacyCost:
        """Return the price of the whole run, with one entry per step; the budget checks the sum once more."""
        delta = self.budget.delta
        return self.budget.cost(*(Part.gaussian(self._prefix + name, mu, delta) for name, _, mu in self._steps))
