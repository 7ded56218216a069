"""What a release costs and what it holds: `Budget`, `PrivacyCost`, `Release`.

All guarantees of this package are (epsilon, delta)-differential privacy for **replace-one** neighbours: two
tables with the same public number of rows that differ in one row.  A `Budget` is what an algorithm may
spend, a `PrivacyCost` what it has spent, and a `Release` is the only thing that leaves it.

Arithmetic on budgets is exact in fractions and rounded once: shares down, sums up.  So "never exceeds"
below is meant for the floats as the real numbers they are.  Proofs: docs/explanation/accounting.md; what
the promise covers: docs/explanation/promise.md.

The conversions between (epsilon, delta), Gaussian and concentrated differential privacy live in
`privspan.privacy.gdp` and `privspan.privacy.zcdp` and are offered here too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspan._lib import checks
from privspan._lib.card import card
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan._lib.frozen import FrozenMapping, plain
from privspan._lib.record import Record
from privspan._lib.rounding import down, sqrt_up, up
from privspan.privacy import exports
from privspan.privacy.gdp import compose_mu, delta_from_mu, epsilon_from_mu, mu_from_budget, mu_from_epsilon
from privspan.privacy.reading import PERSONS, Reading
from privspan.privacy.release_card import release_pieces
from privspan.privacy.rotated import Rotated, rotated
from privspan.privacy.sheet import sheet
from privspan.subspace import Subspace
from privspan.subspace.rotation import Criterion

NEIGHBOURS = "replace-one"

ZERO_OUT = {NEIGHBOURS: "zero-out", PERSONS: "zero-out-person"}
"""What the neighbours are called if a place is left empty, by what they are called if it is filled by another."""

_SLIP = 1e-9  # relative excess of parts over a budget that rounding alone can explain


class WeakPrivacyWarning(UserWarning):
    """The guarantee is weak: epsilon is above 10, or delta is above 1/100 or above one over the number of rows."""


class IdentifierWarning(UserWarning):
    """A column of a data frame is named like an identifier, and is used like any other number."""


class UselessPlanWarning(UserWarning):
    """The predicted error is too large for a useful result; the message says how many rows are needed."""


class AbstentionWarning(UserWarning):
    """The private step abstained: the fitted subspace is a placeholder that does not depend on the data."""


class NotPrivateWarning(UserWarning):
    """A seed was given: the noise can be reproduced, so the result is not private."""


class TransformedRowsWarning(NotPrivateWarning):
    """Transformed rows were passed on. They are not private, and neither is a model fitted to them."""


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
        _keep_floats(self, "epsilon", "delta")
        if self.mu is not None:
            checks.positive(mu=self.mu)
            _keep_floats(self, "mu")

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
        _keep_floats(self, "epsilon", "delta", "epsilon_aside", "delta_aside")
        object.__setattr__(self, "parts", tuple(self.parts))
        for part in self.parts:
            if not isinstance(part, Part):
                raise ParameterTypeError("{parts} must hold Part objects only.")
        if self.mu is not None:
            checks.positive(mu=self.mu, empty_mu=self.mu if self.empty_mu is None else self.empty_mu)
            object.__setattr__(self, "empty_mu", min(self.mu, self.empty_mu or self.mu))
            _keep_floats(self, "mu", "empty_mu")
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
        return (
            Fraction(0)
            if self.mu is None
            else Fraction(self.delta) - Fraction(self.delta_aside) or Fraction(self.delta)
        )


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
        _keep_floats(self, "epsilon", "delta")

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
        return Budget(left_of(self.epsilon, epsilon), self.delta)

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
        rest = self.less(epsilon) if epsilon else self
        if delta:
            rest = Budget(rest.epsilon, down(Fraction(rest.delta) - Fraction(delta)))
        told = sqrt_up(Fraction(rest.mu) ** 2 * Fraction(empty))
        return PrivacyCost(self.epsilon, self.delta, NEIGHBOURS, parts, rest.mu, epsilon, delta, told)


@dataclass(frozen=True, repr=False)
class Release:
    """The result of a private algorithm: everything that may be published, and nothing else.

    Parameters
    ----------
    subspace : Subspace or None
        The subspace found; None when the algorithm abstained.
    cost : PrivacyCost
        The privacy cost, the same whether it abstained or not.
    method : str
        The name of the method.
    parameters : mapping
        Public parameters and released values that describe the run.  Copied and read-only.
    private : bool, default=True
        False when a seed was given: the noise can then be reproduced, and there is no guarantee.
    extras : mapping, optional
        Released values beyond the subspace.  Copied and read-only.
    """

    subspace: Subspace | None
    cost: PrivacyCost
    method: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    private: bool = True
    extras: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.subspace is None or isinstance(self.subspace, Subspace)):
            raise ParameterTypeError(
                "{subspace} must be a Subspace or None; got {kind}.", kind=type(self.subspace).__name__
            )
        if not isinstance(self.cost, PrivacyCost):
            raise ParameterTypeError("{cost} must be a PrivacyCost; got {kind}.", kind=type(self.cost).__name__)
        if not isinstance(self.method, str):
            raise ParameterTypeError("{method} must be a str; got {kind}.", kind=type(self.method).__name__)
        if not isinstance(self.private, bool):  # "false" and NaN are true, and would promise what nobody did
            raise ParameterTypeError("{private} must be True or False; got {kind}.", kind=type(self.private).__name__)
        object.__setattr__(self, "parameters", FrozenMapping(self.parameters))
        object.__setattr__(self, "extras", FrozenMapping(self.extras))

    @property
    def abstained(self) -> bool:
        """Whether the algorithm released no subspace.  It cost the full budget all the same."""
        return self.subspace is None

    @property
    def headline(self) -> str:
        """The estimated quality of the release in a few words; empty where it has no estimate."""
        reading = Reading(self)
        if reading.nothing_stands_out:
            return "finds nothing that stands out of the noise"
        if reading.captured is None or reading.stands_out is None:
            return ""
        if reading.k == reading.d:
            return "holds all of the variance: there are as many components as columns"
        said = "captures about {} ({})".format(*reading.captured).replace("\u00a0%", "%")
        said += (
            f" of the variance that the best components would{', ' * bool(reading.rows_meant)}{reading.rows_meant}"
        )
        if reading.stands_out == reading.k:
            return said
        return f"{said}; {reading.stands_out} of {reading.k} components stand out of the noise, the rest is noise"

    def to_dict(self) -> dict[str, Any]:
        """Return a description of the release as a dictionary for JSON.

        The subspace is summarised by its dimensions; `save` stores it whole.
        """
        return {
            "method": self.method,
            "abstained": self.abstained,
            "private": self.private,
            "subspace": None if self.subspace is None else self.subspace.summary(),
            "cost": self.cost.to_dict(),
            "parameters": plain(self.parameters),
            "extras": plain(self.extras),
        }

    def rotate(
        self, criterion: Criterion = "varimax", *, kaiser: bool = True, columns: Sequence[str] | None = None
    ) -> Rotated:
        """Rotate the components that stand out of the noise to simple structure: few large loadings on each factor.

        Post-processing: it costs nothing, and every criterion may be tried.  The factors are sorted by falling
        variance, each with its largest loading positive.

        Parameters
        ----------
        criterion : {"varimax", "quartimax", "promax", "oblimin"}, default="varimax"
            The first two keep the factors uncorrelated, the others allow correlation.
        kaiser : bool, default=True
            Whether all columns have the same weight, as if each had a communality of 1 (in promax only for its
            varimax). Columns that are mostly noise then count as well; ``False`` weights columns by communality.
        columns : sequence of str, optional
            Names of the columns, if the release has none.

        Returns
        -------
        Rotated
            Loadings, variances, correlations of factors and communalities, with their errors.

        Examples
        --------
        >>> from privspan.datasets import gaussian_subspace
        >>> import privspan as ps
        >>> X, _ = gaussian_subspace(5_000, 8, 2, gamma_w=0.1, rng=0)
        >>> ps.private_pca(X, 2, epsilon=1.0, delta=1e-6, rng=0).rotate("promax")
        Rotated(promax, 2 factors of 8 columns, private=False)
        """
        return rotated(self, criterion, kaiser=kaiser, columns=columns)

    def sheet(self) -> dict[str, object]:
        """Return the guarantee, its unit and what is public as a dictionary for JSON, for other tools to compose.

        Numbers are decimals, rounded up.  A release made with a seed has no claims.

        Examples
        --------
        >>> sheet = Release(None, PrivacyCost(1.0, 1e-6), "exact", {"n": 100}).sheet()
        >>> sheet["claims"][0]
        {'relation': 'replace-one', 'kind': 'approximate-dp', 'epsilon': '1', 'delta': '0.000001'}
        >>> sheet["unit"], sheet["public"]
        ('row', {'n': 100})
        """
        return sheet(self, self.cost, self.cost.zero_out())

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        plan: Any = None,
        record: Record | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write the release to one ``.npz`` file, with everything that ``privspan show`` prints, and return its path.

        Parameters
        ----------
        path
            The suffix ``.npz`` is added to a name that has none.
        plan : Plan, optional
            The prediction made before, such as the ``plan_`` of :class:`privspan.PrivatePCA`.
        record : Record, optional
            When, by whom, for what and from which columns it was made: :class:`privspan.report.Record`.
        overwrite : bool, default=False
            Whether to replace a file of that name; ``FileExistsError`` if not.

        Examples
        --------
        >>> import numpy as np, privspan as ps, tempfile
        >>> X = np.arange(1, 101)[:, None] * np.array([[1, 2, 3]])
        >>> release = ps.exact_subspace(X, 1, epsilon=1.0, delta=1e-6, rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = ps.Release.load(release.save(f"{folder}/line"))
        >>> again == release
        True
        """
        saved: Path = _files().save_release(path, self, plan=plan, record=record, overwrite=overwrite)
        return saved

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Release:
        """Read a release that `save` or ``privspan fit`` wrote; nothing in the file is ever executed.

        ``ValueError`` for a file that is damaged, of another kind, or written by `Subspace.save`, which stores no
        cost. :func:`privspan.ledger.release_file.load_release` reads the plan and the record too.
        """
        release: Release | None = _files().load_release(path).release
        if release is None:
            raise ParameterError(
                "{file!r} holds a subspace without its privacy cost; read it with Subspace.load.", file=str(path)
            )
        return release

    def __repr__(self) -> str:
        found = "abstained" if self.subspace is None else repr(self.subspace)
        extras = f", extras: {', '.join(self.extras)}" if self.extras else ""
        said = f"{self.headline}, " if self.headline else ""
        return f"<Release {self.method!r}: {said}{found}, {self.cost}, private={self.private}{extras}>"

    def _repr_html_(self) -> str:
        """Show it as a card in a notebook."""
        return card("Release", *release_pieces(self))

    def __str__(self) -> str:
        found = "nothing (abstained)" if self.subspace is None else str(self.subspace)
        promise = str(self.cost) if self.private else f"none: a seed was given (would be {self.cost})"
        details = [f"  {name}: {plain(value)}" for name, value in self.parameters.items()]
        lines = [self.headline] if self.headline else []
        lines += [f"released: {found}", f"method: {self.method}", f"privacy: {promise}"]
        return "\n".join([*lines, "parameters:", *details] if details else lines)


def _files() -> Any:
    """Return the module that knows the files of releases: rooms above this one, which know every method by name."""
    return import_module("privspan.ledger.release_file")


def left_of(total: float, part: float) -> float:
    """Return what is left of an epsilon or delta, rounded down: both never exceed the total as real numbers."""
    return total - part if part == 0.0 else math.nextafter(total - part, 0.0)


def _read_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of mu-GDP at a delta, however small; at 1 any epsilon would do."""
    return epsilon_from_mu(mu, delta) if delta < 1.0 else 0.0


def _keep_floats(frozen: object, *names: str) -> None:
    for name in names:
        object.__setattr__(frozen, name, float(getattr(frozen, name)))


def _check_cost(epsilon: float, delta: float) -> None:
    checks.non_negative(epsilon=epsilon, delta=delta)
    if delta > 1:
        raise ParameterError("{delta} must be at most 1; got {got!r}.", got=float(delta))
