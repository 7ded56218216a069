"""The public numbers that a forecast goes by, and what follows from them alone.

A tail that is not known is supposed; the budget is told as the mu of Gaussian differential privacy, with and without
the part of delta that a test of stable leverage takes.  Everything here is a function of public numbers.
Derivations: docs/explanation/planning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from scipy.special import ndtri

from privspan.planner.tuning import PLANNER
from privspan.privacy import delta_from_mu, mu_from_budget
from privspan.stable import choice
from privspan.stable.tuning import STABLE

USELESS = 0.5
"""A predicted error that is shown as useless, from here on: half of a direction, or more, would be noise."""

CROWDED = USELESS
"""The bar on kappa = (√d + √k) k / (μ n), the error of one noisy sum, beyond which only a short tail would help."""

_MOST_NEWTON_STEPS = 20  # bound of a search


@dataclass(frozen=True)
class Setting:
    """The public numbers that a forecast goes by."""

    n: int
    d: int
    k: int
    epsilon: float
    delta: float
    gamma: float
    assumed: bool
    mu: float
    mu_beside_test: float  # of what the test of the stable methods leaves of delta
    center: bool = False
    about: bool = False  # whether there is a public centre
    joint: bool = False  # whether the one algorithm may account for its test and noise together

    def on_pairs(self) -> Setting:
        """Return the setting of a named method in a private PCA: half of the rows, a share of the budget."""
        share = math.sqrt(PLANNER.by_pairs)
        mu, beside_test = self.mu * share, self.mu_beside_test * share
        return replace(self, n=self.n // 2, mu=mu, mu_beside_test=beside_test, center=False, joint=False)

    @property
    def tail(self) -> float:
        """The tail energy over a signal direction's, sqrt(E ||e||²)."""
        return self.gamma * math.sqrt(self.d - self.k)

    @property
    def public(self) -> choice.Public:
        """The same numbers for the choice that the course makes; what is set aside for its test is public too."""
        aside = STABLE.test * self.delta
        whole = mu_from_budget(self.epsilon, self.delta)  # `self.mu` may be a share of it
        mu = mu_beside_test(whole, self.epsilon, self.delta, STABLE.test) * (self.mu / whole)
        public = choice.public_numbers(self.n, self.d, self.k, mu, aside, copied=False)
        if not self.joint:
            return public
        gamma = None if self.assumed else self.gamma
        return choice.accounted_together(public, self.epsilon, self.delta, gamma) or public

    @property
    def may_look(self) -> bool:
        """Whether the course could begin with stable leverage."""
        return self.n >= self.k and choice.may_pay(self.public, None if self.assumed else self.gamma)

    @property
    def look(self) -> choice.LookPlan:
        """What a course that begins with stable leverage is expected to do."""
        found = choice.forecast(self.public, self.tail)
        assert found is not None
        return found

    @property
    def size(self) -> float:
        """The typical largest singular value of a (d - k, k) normal matrix."""
        return math.sqrt(self.d - self.k) + math.sqrt(self.k)

    @property
    def sampling(self) -> float:
        """The error that PCA without noise would make: (√(d − k) + √k) γ / √n, for signal variance 1."""
        if self.d == self.k:
            return 0.0
        return self.gamma * math.sqrt(1.0 + self.gamma**2) * self.size / math.sqrt(self.n)


@lru_cache(maxsize=256)
def mu_beside_test(mu: float, epsilon: float, delta: float, share: float) -> float:
    """Return the mu that goes with epsilon and the rest of delta, given that of the whole, to about the last digit.

    A forecast promises nothing, so Newton's method may do what a search with a known direction does elsewhere.
    """
    target = float(ndtri((1.0 - share) * delta))
    for _ in range(_MOST_NEWTON_STEPS):
        # The slope of delta in mu is the normal density at eps/mu - mu/2; its quantile is all but linear in mu.
        quantile, near = float(ndtri(delta_from_mu(mu, epsilon))), epsilon / mu - mu / 2.0
        mu, last = mu + (target - quantile) * math.exp(0.5 * (near * near - quantile * quantile)), mu
        if abs(mu - last) <= 1e-15 * mu:
            break
    return mu
