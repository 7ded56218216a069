"""What a release costs: `Part` of one step, `PrivacyCost` of all, and how costs add up and are told elsewhere.

All guarantees of this package are (epsilon, delta)-differential privacy for **replace-one** neighbours: two
tables with the same public number of rows that differ in one row.  A `Budget` (`privspan.privacy.mu_ledger`) is what
an algorithm may spend, a `PrivacyCost` what it has spent, and a `Release` (`privspan.privacy.release`) is the only
thing that leaves it.

Arithmetic on budgets is exact in fractions and rounded once: shares down, sums up.  So "never exceeds"
below is meant for the floats as the real numbers they are.  Proofs: docs/explanation/accounting.md; what
the promise covers: docs/explanation/promise.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privspan._lib import checks
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan._lib.rounding import down, sqrt_up, up
from privspan.privacy import exports
from privspan.privacy.gdp import delta_from_mu, epsilon_from_mu, mu_from_epsilon
from privspan.privacy.reading import PERSONS

NEIGHBOURS = "replace-one"

ZERO_OUT = {NEIGHBOURS: "zero-out", PERSONS: "zero-out-person"}
"""What the neighbours are called if a place is left empty, by what they are called if it is filled by another."""


@dataclass(frozen=True)
class Part:
    """The share of one step of an algorithm.

    Parameters
    ----------
    name : str
        What the step does, in words.
    epsilon, delta : float
        Its cost on its own; either may be zero.  With `Part.gaussian`, epsilon is computed from mu and delta when it
        is first read, rounded up: it is for information, and only mu counts.
    mu : float, optional
        Its share of mu, if it is a Gaussian step: these compose in mu, more tightly than in epsilon.
    """

    name: str
    epsilon: float
    delta: float
    mu: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ParameterTypeError(
                "{name} must be a str; got an object of type {kind}.", kind=type(self.name).__name__
            )
        _check_cost(self.epsilon, self.delta)
        keep_floats(self, "epsilon", "delta")
        if self.mu is not None:
            checks.positive(mu=self.mu)
            keep_floats(self, "mu")

    @classmethod
    def gaussian(cls, name: str, mu: float, delta: float) -> Part:
        """Return the share of a Gaussian step, which costs the epsilon that mu-GDP implies at this delta."""
        part = cls(name, 0.0, delta, mu)
        del vars(part)["epsilon"]
        return part

    if not TYPE_CHECKING:  # to a type checker `epsilon` is a field like the others

        def __getattr__(self, name: str) -> float:
            if name != "epsilon" or "mu" not in vars(self):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            # Threads that read it first at the same time find the same number, and each stores it whole.
            return vars(self).setdefault(name, epsilon_from_mu(self.mu, self.delta))


@dataclass(frozen=True)
class PrivacyCost:
    """The privacy cost of a release: (epsilon, delta), the neighbours that it is for, and its parts.

    Parameters
    ----------
    epsilon : float
        Zero or above.
    delta : float
        From 0 to 1.
    neighbours : str, default="replace-one"
        The relation the guarantee is for.  Costs for different relations do not add.
    parts : tuple of Part, default=()
        The steps, for information; the totals are the other numbers.
    mu : float, optional
        For a Gaussian release: it is mu-GDP, composed with a part that is (`epsilon_aside`, `delta_aside`)-DP.  Sums
        of such costs are tighter than those of epsilon and delta.
    epsilon_aside, delta_aside : float, default=0
        The cost in addition to mu: of a vote, or for the probability that a private test passes wrongly.
    empty_mu : float, optional
        The mu for zero-out neighbours, where a record is left empty instead of replaced: at most mu, and mu by
        default.  See docs/explanation/zero-out.md.

    Guarantee
    ---------
    ``first + second`` is the cost of publishing both results of two algorithms run on the same table, the
    second possibly chosen after seeing the first's result, with budgets that were fixed beforehand (sequential
    composition, rounded up; replace-one neighbours; each algorithm must satisfy its own cost).  Gaussian costs add
    in mu², what is beside them and all other costs add in epsilon and delta.  The sum is read at the largest delta of
    the Gaussian costs beside all that was set aside; `epsilon_at` reads it at another.
    See docs/explanation/accounting.md.

    Examples
    --------
    >>> from privspan.privacy import mu_from_budget
    >>> once = PrivacyCost(1.0, 1e-6)
    >>> print(once)
    (1, 1e-06)-DP, replace-one
    >>> print(once + once)
    (2, 2e-06)-DP, replace-one

    Two Gaussian fits cost less, and can be read at any delta:

    >>> fit = PrivacyCost(1.0, 1e-6, mu=mu_from_budget(1.0, 1e-6))
    >>> print(f"{(fit + fit).epsilon:.3f}, {(fit + fit).epsilon_at(1e-5):.3f}")
    1.455, 1.277
    """

    epsilon: float
    delta: float
    neighbours: str = NEIGHBOURS
    parts: tuple[Part, ...] = ()
    mu: float | None = None
    epsilon_aside: float = 0.0
    delta_aside: float = 0.0
    empty_mu: float | None = None

    def __post_init__(self) -> None:
        _check_cost(self.epsilon, self.delta)
        if not isinstance(self.neighbours, str):
            raise ParameterTypeError(
                "{neighbours} must be a str; got an object of type {kind}.", kind=type(self.neighbours).__name__
            )
        keep_floats(self, "epsilon", "delta", "epsilon_aside", "delta_aside")
        object.__setattr__(self, "parts", tuple(self.parts))
        for part in self.parts:
            if not isinstance(part, Part):
                raise ParameterTypeError("{parts} must hold Part objects only.")
        if self.mu is not None:
            checks.positive(mu=self.mu, empty_mu=self.mu if self.empty_mu is None else self.empty_mu)
            object.__setattr__(self, "empty_mu", min(self.mu, self.empty_mu or self.mu))
            keep_floats(self, "mu", "empty_mu")
        checks.non_negative(epsilon_aside=self.epsilon_aside, delta_aside=self.delta_aside)

    @classmethod
    def together(
        cls,
        square: Fraction,
        epsilon_aside: Fraction,
        delta_aside: Fraction,
        delta_rest: Fraction,
        neighbours: str = NEIGHBOURS,
        parts: tuple[Part, ...] = (),
        empty: Fraction | None = None,
    ) -> PrivacyCost:
        """Return the cost of mu² = `square` beside (`epsilon_aside`, `delta_aside`), read at that and `delta_rest`.

        Without mu, `delta_rest` is ignored.  `empty` is the square of `empty_mu`.
        """
        aside = up(epsilon_aside), min(1.0, up(delta_aside))
        if square == 0:
            return cls(*aside, neighbours, parts)
        mu, rest = sqrt_up(square), down(delta_rest)
        epsilon = up(epsilon_aside + Fraction(_read_epsilon(mu, rest))) if rest > 0.0 else math.inf
        delta = min(1.0, up(delta_aside + delta_rest))
        if math.isinf(epsilon):
            raise ParameterError("{delta_rest} must be above 0, or no epsilon would do.")
        return cls(epsilon, delta, neighbours, parts, mu, *aside, None if empty is None else sqrt_up(empty))

    def __add__(self, other: PrivacyCost) -> PrivacyCost:
        if not isinstance(other, PrivacyCost):
            return NotImplemented
        self._same_neighbours(other)
        square, epsilon, delta = (
            Fraction(one) + Fraction(two) for one, two in zip(self._exactly(), other._exactly(), strict=True)
        )
        rest = max(self._delta_rest(), other._delta_rest())
        empty = sum((Fraction(cost.empty_mu or 0.0) ** 2 for cost in (self, other)), Fraction(0))
        return PrivacyCost.together(square, epsilon, delta, rest, self.neighbours, self.parts + other.parts, empty)

    def parallel(self, other: PrivacyCost) -> PrivacyCost:
        """Return the cost of two algorithms run on disjoint parts of the table: the larger of each.

        Guarantee
        ---------
        Holds for replace-one neighbours when it is public, by position, which row belongs to which part.
        Parts chosen by a value in the row do not qualify: replacing that row then changes two parts, and
        the costs add. The `parts` of both are listed; they do not add up to the total.
        See docs/explanation/accounting.md.
        """
        self._same_neighbours(other)
        epsilon, delta = max(self.epsilon, other.epsilon), max(self.delta, other.delta)
        known: dict[str, float] = {}
        if self.mu is not None or other.mu is not None:
            square, *aside = map(max, self._exactly(), other._exactly())
            known = {"mu": sqrt_up(square), "epsilon_aside": up(aside[0]), "delta_aside": up(aside[1])}
            known["empty_mu"] = max(cost.empty_mu or 0.0 for cost in (self, other))
        return PrivacyCost(epsilon, delta, self.neighbours, self.parts + other.parts, **known)

    def epsilon_at(self, delta: float) -> float:
        """Return an epsilon for which the release is (epsilon, `delta`)-DP, rounded up; infinite if none is known."""
        checks.probability(delta=delta)
        if self.mu is None:
            return self.epsilon if delta >= self.delta else math.inf
        rest = down(Fraction(float(delta)) - Fraction(self.delta_aside))
        if rest <= 0.0:
            return math.inf
        return up(Fraction(self.epsilon_aside) + Fraction(_read_epsilon(self.mu, rest)))

    def delta_at(self, epsilon: float) -> float:
        """Return a delta for which the release is (`epsilon`, delta)-DP, rounded up; 1 if none is known."""
        checks.non_negative(epsilon=epsilon)
        if self.mu is None:
            return self.delta if epsilon >= self.epsilon else 1.0
        rest = down(Fraction(float(epsilon)) - Fraction(self.epsilon_aside))
        if rest < 0.0:
            return 1.0
        return min(1.0, up(Fraction(self.delta_aside) + Fraction(delta_from_mu(self.mu, rest))))

    def zero_out(self) -> PrivacyCost:
        """Return the same release's cost for zero-out: a record's place is left empty, in place of replacing it.

        Guarantee
        ---------
        For zero-out neighbours: one record, or one person with all of their rows, against an empty place, which adds
        nothing.  It says less than the promise for replacing, at a smaller epsilon.
        See docs/explanation/zero-out.md.
        """
        neighbours = ZERO_OUT.get(self.neighbours, self.neighbours)
        if self.mu is None:
            return replace(self, neighbours=neighbours)
        told = replace(self, mu=self.empty_mu, neighbours=neighbours, parts=())
        return replace(told, epsilon=min(self.epsilon, told.epsilon_at(self.delta)))

    def in_mu(self) -> tuple[float, float]:
        """Return mu and delta' such that the release is (mu, delta')-approximate GDP, rounded up.

        What is not known to be Gaussian has the mu of its epsilon, `privspan.privacy.gdp.mu_from_epsilon`.
        """
        square, epsilon, delta = self._exactly()
        square += Fraction(mu_from_epsilon(up(epsilon))) ** 2
        return sqrt_up(square), up(delta)

    def to_dict(self) -> dict[str, Any]:
        """Return the cost as a dictionary that JSON can hold; `from_dict` reads it back unchanged."""
        return asdict(self) | {"parts": [asdict(part) for part in self.parts]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyCost:
        """Return the cost that `to_dict` wrote; ``ValueError`` for anything else."""
        try:
            parts = tuple(Part(**part) for part in values["parts"])
            known = (values[name] for name in ("mu", "epsilon_aside", "delta_aside", "empty_mu"))
            return cls(values["epsilon"], values["delta"], values["neighbours"], parts, *known)
        except (KeyError, TypeError, AttributeError) as error:
            raise ParameterError("{values} must be what PrivacyCost.to_dict wrote; {error!s}.", error=error) from None

    def to_pld(self, *, interval: float = 1e-4) -> Any:
        """Return a privacy loss distribution of the package dp_accounting that dominates this cost.

        It is that of N(mu, 1) against N(0, 1), beside what was set aside; without mu it knows nothing but
        (epsilon, delta).  Composing several of them in dp_accounting is optimal composition.

        Parameters
        ----------
        interval : float, default=1e-4
            Grid of the privacy loss, rounded up to it.  Only distributions with equal grids compose.

        Returns
        -------
        dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution

        Guarantee
        ---------
        For the neighbours of this cost, with what was set aside as in lemma A of docs/explanation/pots.md.
        """
        return exports.to_pld(self, interval)

    def to_dp_event(self, accountant: str) -> object:
        """Return the event of the package dp_accounting that tells one of its accountants of this cost.

        For replacing a record no event is right in both of them: the Rényi accountant ignores the relation of
        neighbours, and for the other a Gaussian event means one added or removed row.  So there is one for each,
        which the other refuses.  For zero-out, ``cost.zero_out().to_dp_event(…)``, a Gaussian event is right in both.

        Parameters
        ----------
        accountant : {"pld", "rdp"}
            "pld" for ``PLDAccountant(NeighboringRelation.REPLACE_ONE)``, which by default has another relation and
            refuses the event; "rdp" for ``RdpAccountant``.  For zero-out, and for it alone, either with
            ``NeighboringRelation.REPLACE_SPECIAL``.

        Returns
        -------
        dp_accounting.DpEvent
            What it says at a delta is true at that and `delta_aside` (without mu: `delta`) more, for which there is
            no event.  If the unit is a person, so is a record of the accountant.
        """
        return exports.to_dp_event(self, accountant)

    def __str__(self) -> str:
        return f"({self.epsilon:.12g}, {self.delta:.12g})-DP, {self.neighbours}"

    def _same_neighbours(self, other: PrivacyCost) -> None:
        if self.neighbours != other.neighbours:
            both = f"{self.neighbours!r} and {other.neighbours!r}"
            raise ParameterError("costs must be for the same neighbours to compose; got {both}.", both=both)

    def _exactly(self) -> tuple[Fraction, Fraction, Fraction]:
        """Return mu², and the epsilon and delta beside it."""
        if self.mu is None:
            return Fraction(0), Fraction(self.epsilon), Fraction(self.delta)
        return Fraction(self.mu) ** 2, Fraction(self.epsilon_aside), Fraction(self.delta_aside)

    def _delta_rest(self) -> Fraction:
        """Return the delta at which mu is read: beside what was set aside, or again as much if that is all of it."""
        if self.mu is None:
            return Fraction(0)
        return Fraction(self.delta) - Fraction(self.delta_aside) or Fraction(self.delta)


def _read_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of mu-GDP at a delta, however small; at 1 any epsilon would do."""
    return epsilon_from_mu(mu, delta) if delta < 1.0 else 0.0


def keep_floats(frozen: object, *names: str) -> None:
    """Make these fields floats: a budget may be given as any real numbers."""
    for name in names:
        object.__setattr__(frozen, name, float(getattr(frozen, name)))


def _check_cost(epsilon: float, delta: float) -> None:
    checks.non_negative(epsilon=epsilon, delta=delta)
    if delta > 1:
        raise ParameterError("{delta} must be at most 1; got {got!r}.", got=float(delta))
