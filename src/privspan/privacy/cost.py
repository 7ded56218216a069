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
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspan._lib import checks
from privspan._lib.card import card
from privspan._lib.frozen import FrozenMapping, plain
from privspan._lib.rounding import down, up
from privspan.privacy.gdp import compose_mu, delta_from_mu, epsilon_from_mu, mu_from_budget
from privspan.privacy.release_card import release_pieces
from privspan.subspace import Subspace

NEIGHBOURS = "replace-one"

_SLIP = 1e-9  # relative excess of parts over a budget that rounding alone can explain


class AbstentionWarning(UserWarning):
    """The private step abstained: the fitted subspace is a placeholder that does not depend on the data."""


class NotPrivateWarning(UserWarning):
    """A seed was given, so the noise can be repeated and the result is not private."""


class TransformedRowsWarning(NotPrivateWarning):
    """Rows have been transformed and handed on: these are not private, nor is what learns from them."""


@dataclass(frozen=True)
class Part:
    """The share of one step of an algorithm.

    Parameters
    ----------
    name : str
        What the step does, for people.
    epsilon, delta : float
        What it costs on its own; zero is allowed for either.  With `Part.gaussian`, epsilon is that of mu and delta,
        rounded up, and searched for when it is first read: it is for reading, and only mu counts.
    mu : float, optional
        Its Gaussian share, when it is a Gaussian step: those compose in mu, more tightly than in epsilon.
    """

    name: str
    epsilon: float
    delta: float
    mu: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"`name` must be a str; got an object of type {type(self.name).__name__}.")
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
    """What a release has cost: (epsilon, delta), for which neighbours, and in which parts.

    Parameters
    ----------
    epsilon : float
        Zero or above.
    delta : float
        From 0 to 1.
    neighbours : str, default="replace-one"
        The relation the guarantee is for.  Costs for different relations do not add.
    parts : tuple of Part, default=()
        The steps, for reading; the totals are `epsilon` and `delta`.

    Guarantee
    ---------
    ``first + second`` is the cost of publishing both results of two algorithms run on the same table, the
    second possibly chosen after seeing the first's result (basic sequential composition, rounded up;
    replace-one neighbours; each algorithm must satisfy its own cost).  See docs/explanation/accounting.md.

    Examples
    --------
    >>> once = PrivacyCost(1.0, 1e-6)
    >>> print(once)
    (1, 1e-06)-DP, replace-one
    >>> print(once + once)
    (2, 2e-06)-DP, replace-one
    """

    epsilon: float
    delta: float
    neighbours: str = NEIGHBOURS
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        _check_cost(self.epsilon, self.delta)
        if not isinstance(self.neighbours, str):
            raise TypeError(f"`neighbours` must be a str; got an object of type {type(self.neighbours).__name__}.")
        _keep_floats(self, "epsilon", "delta")
        object.__setattr__(self, "parts", tuple(self.parts))
        if not all(isinstance(part, Part) for part in self.parts):
            raise TypeError("`parts` must hold Part objects only.")

    def __add__(self, other: PrivacyCost) -> PrivacyCost:
        if not isinstance(other, PrivacyCost):
            return NotImplemented
        self._same_neighbours(other)
        epsilon = up(Fraction(self.epsilon) + Fraction(other.epsilon))
        delta = min(1.0, up(Fraction(self.delta) + Fraction(other.delta)))
        return PrivacyCost(epsilon, delta, self.neighbours, self.parts + other.parts)

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
        return PrivacyCost(epsilon, delta, self.neighbours, self.parts + other.parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the cost as a dictionary that JSON can hold; `from_dict` reads it back unchanged."""
        return asdict(self) | {"parts": [asdict(part) for part in self.parts]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyCost:
        """Return the cost that `to_dict` wrote; ``ValueError`` for anything else."""
        try:
            parts = tuple(Part(**part) for part in values["parts"])
            return cls(values["epsilon"], values["delta"], values["neighbours"], parts)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"`values` must be what PrivacyCost.to_dict wrote; {error!s}.") from None

    def to_pld(self, *, interval: float = 1e-4) -> Any:
        """Return a privacy loss distribution of the package dp_accounting that dominates this cost.

        It knows nothing but (epsilon, delta); composing several of them in dp_accounting is optimal
        composition, which is tighter than ``+`` for many releases.

        Parameters
        ----------
        interval : float, default=1e-4
            Grid of the privacy loss, rounded up to it.  Only distributions with equal grids compose.

        Returns
        -------
        dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        """
        checks.positive(interval=interval)
        try:
            from dp_accounting.pld import common, privacy_loss_distribution
        except ImportError:
            needed = "the package dp-accounting: pip install dp-accounting"
            raise ImportError(f"PrivacyCost.to_pld needs {needed}") from None
        parameters = common.DifferentialPrivacyParameters(self.epsilon, self.delta)
        return privacy_loss_distribution.from_privacy_parameters(parameters, interval)

    def __str__(self) -> str:
        return f"({self.epsilon:.12g}, {self.delta:.12g})-DP, {self.neighbours}"

    def _same_neighbours(self, other: PrivacyCost) -> None:
        if self.neighbours != other.neighbours:
            both = f"{self.neighbours!r} and {other.neighbours!r}"
            raise ValueError(f"costs must be for the same neighbours to compose; got {both}.")


@dataclass(frozen=True)
class Budget:
    """What an algorithm may spend.

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
        """Return what is left, with all of delta, once a step has spent this epsilon."""
        return Budget(left_of(self.epsilon, epsilon), self.delta)

    def split(self, weights: Sequence[float]) -> tuple[Budget, ...]:
        """Split both epsilon and delta in proportion to the weights (basic composition).

        Returns
        -------
        tuple of Budget
            One per weight; the sums of their epsilons and deltas never exceed this budget, as real numbers.
        """
        if len(weights) == 0:
            raise ValueError("`weights` must hold at least one weight; got none.")
        for weight in weights:
            checks.positive(weights=weight)
        exact = [Fraction(float(weight)) for weight in weights]
        shares = [weight / sum(exact) for weight in exact]
        epsilon, delta = Fraction(self.epsilon), Fraction(self.delta)
        return tuple(Budget(down(share * epsilon), down(share * delta)) for share in shares)

    def cost(self, *parts: Part) -> PrivacyCost:
        """Return the cost of an algorithm that spent this budget in these parts.

        The parts may spend less.  Parts that together spend more are a mistake in the algorithm and refused:
        epsilons and deltas add, except those of the Gaussian parts, whose mus compose.
        """
        gaussian = [part.mu for part in parts if part.mu is not None]
        epsilon_left = self.epsilon * (1 + _SLIP) - math.fsum(part.epsilon for part in parts if part.mu is None)
        delta_left = self.delta * (1 + _SLIP) - math.fsum(part.delta for part in parts if part.mu is None)
        fits = epsilon_left >= 0 and delta_left >= 0
        if fits and gaussian:
            fits = delta_from_mu(compose_mu(*gaussian), epsilon_left) <= delta_left * (1 + _SLIP)
        if not fits:
            raise ValueError(f"the parts cost more than the budget ({self.epsilon!r}, {self.delta!r}) allows.")
        return PrivacyCost(self.epsilon, self.delta, NEIGHBOURS, parts)


@dataclass(frozen=True, repr=False)
class Release:
    """The result of a private algorithm: everything that may leave it, and nothing else.

    Parameters
    ----------
    subspace : Subspace or None
        What was learned; None when the algorithm abstained.
    cost : PrivacyCost
        What it cost, whether it abstained or not.
    method : str
        How it was made.
    parameters : mapping
        Public parameters and released values that describe the run.  Copied and read-only.
    private : bool, default=True
        False when a seed was given: then the noise is known, and nothing is promised.
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
            raise TypeError(f"`subspace` must be a Subspace or None; got {type(self.subspace).__name__}.")
        if not isinstance(self.cost, PrivacyCost):
            raise TypeError(f"`cost` must be a PrivacyCost; got {type(self.cost).__name__}.")
        if not isinstance(self.method, str):
            raise TypeError(f"`method` must be a str; got {type(self.method).__name__}.")
        if not isinstance(self.private, bool):  # "false" and NaN are true, and would promise what nobody did
            raise TypeError(f"`private` must be True or False; got {type(self.private).__name__}.")
        object.__setattr__(self, "parameters", FrozenMapping(self.parameters))
        object.__setattr__(self, "extras", FrozenMapping(self.extras))

    @property
    def abstained(self) -> bool:
        """Whether the algorithm released no subspace.  It cost the full budget all the same."""
        return self.subspace is None

    @property
    def headline(self) -> str:
        """What the release says of its own quality, in a few words; empty where it does not."""
        captured, error = (self.extras.get(f"captured_variance{end}") for end in ("", "_std"))
        if not (isinstance(captured, float) and isinstance(error, float)):
            return ""
        digits = 0 if error >= 0.01 else 1
        said = f"captures about {captured:.{digits}%} (± {error:.{digits}%})"
        said += f" of the variance that the best components would{_of_what(self.parameters)}"
        found, k = self.extras.get("found"), 0 if self.subspace is None else self.subspace.dimension
        return said if found == k else f"{said}; {found} of {k} components stand out of the noise, the rest is noise"

    def to_dict(self) -> dict[str, Any]:
        """Return what describes the release as a dictionary that JSON can hold.

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

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        plan: Any = None,
        source: str | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write the release to one ``.npz`` file, with all that ``privspan show`` tells, and return its path.

        Parameters
        ----------
        path
            The suffix ``.npz`` is added to a name that has none.
        plan : Plan, optional
            What had been predicted, such as the ``plan_`` of :class:`privspan.PrivatePCA`.
        source : str, optional
            Name of the table, as public as the file itself.
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
        saved: Path = _files().save_release(path, self, plan=plan, source=source, overwrite=overwrite)
        return saved

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Release:
        """Read a release that `save` or ``privspan fit`` wrote; nothing in the file is ever executed.

        ``ValueError`` for a file that is damaged, of another kind, or of `Subspace.save`, which tells no cost.
        :func:`privspan.ledger.release_file.load_release` reads the plan and the source too.
        """
        release: Release | None = _files().load_release(path).release
        if release is None:
            raise ValueError(f"{str(path)!r} holds a subspace and does not tell its cost; read it by Subspace.load.")
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


def _of_what(parameters: Mapping[str, object]) -> str:
    """Say what the variance is of where columns are standardised."""
    told = parameters.get("estimates")
    return f" (of {told})" if isinstance(told, str) else ""


def _files() -> Any:
    """Return the module that knows the files of releases: rooms above this one, which know every method by name."""
    return import_module("privspan.ledger.release_file")


def left_of(total: float, part: float) -> float:
    """Return what is left of an epsilon or delta, rounded down: both never exceed the total as real numbers."""
    return total - part if part == 0.0 else math.nextafter(total - part, 0.0)


def _keep_floats(frozen: object, *names: str) -> None:
    for name in names:
        object.__setattr__(frozen, name, float(getattr(frozen, name)))


def _check_cost(epsilon: float, delta: float) -> None:
    checks.non_negative(epsilon=epsilon, delta=delta)
    if delta > 1:
        raise ValueError(f"`delta` must be at most 1; got {float(delta)!r}.")
