"""What a release tells, for whoever shows it: a report, a plot, a card in a notebook, a command.

Plain post-processing of released and public values; nothing here sees data or adds noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan._lib.in_words import number, share_with_noise
from privspan.subspace import Subspace

Array = NDArray[np.float64]

_WORTH_TELLING = 0.5  # of the best variance: a lower bound below this says next to nothing

PERSONS = "replace-one-person"
"""Neighbours of which one person, with all of their rows, is another."""


class Step(Protocol):
    """What is read of a `Part` of a cost."""

    @property
    def name(self) -> str:
        """What it paid for."""

    @property
    def epsilon(self) -> float:
        """What it cost."""

    @property
    def mu(self) -> float | None:
        """The same for a Gaussian step."""


class Cost(Protocol):
    """What is read of a `PrivacyCost`."""

    @property
    def epsilon(self) -> float:
        """In all."""

    @property
    def delta(self) -> float:
        """In all."""

    @property
    def mu(self) -> float | None:
        """Of the Gaussian part."""

    @property
    def epsilon_aside(self) -> float:
        """Beside the Gaussian part."""

    @property
    def delta_aside(self) -> float:
        """Beside the Gaussian part."""

    @property
    def neighbours(self) -> str:
        """For which neighbours."""

    @property
    def parts(self) -> Sequence[Step]:
        """Step by step."""


class Released(Protocol):
    """What is read of a `Release`, which is made above this module."""

    @property
    def cost(self) -> Cost:
        """What it cost."""

    @property
    def method(self) -> str:
        """The name of the method."""

    @property
    def private(self) -> bool:
        """Whether no seed was given."""

    @property
    def subspace(self) -> Subspace | None:
        """What was learnt."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """Public parameters and released values that describe the run."""

    @property
    def extras(self) -> Mapping[str, object]:
        """Released values beyond the subspace."""


@dataclass(frozen=True)
class Reading:
    """A release, and names for its columns if it has none of its own."""

    release: Released
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or not all(isinstance(name, str) for name in self.columns or ()):
            raise ParameterTypeError("{columns} must be a sequence of str.")
        if self.columns is not None and self.d not in (None, len(self.columns)):
            raise ParameterError(
                "{columns} must hold {d} names, one per column; got {got}.", d=self.d, got=len(self.columns)
            )

    @cached_property
    def d(self) -> int | None:
        """The number of columns, where anything tells it."""
        found = self.release.subspace
        return self._public("d") if found is None else found.ambient_dimension

    @cached_property
    def k(self) -> int | None:
        """The dimension that was found or asked for."""
        found = self.release.subspace
        return self._public("k") if found is None else found.dimension

    @property
    def n(self) -> int | None:
        """How many rows took part, or persons."""
        return self._public("n")

    @property
    def by_persons(self) -> bool:
        """Whether the promise is for persons with several rows."""
        return self.release.cost.neighbours == PERSONS

    @property
    def by_pairs(self) -> bool:
        """Whether differences of pairs of rows took the place of centred rows."""
        return self.release.parameters.get("centring") == "pair differences"

    @property
    def unit(self) -> str:
        """What n counts."""
        return "persons" if self.by_persons else "rows"

    @property
    def stands_out(self) -> int | None:
        """How many components, from the first on, can be distinguished from noise; None if not known."""
        found = self.released("stands_out")
        return None if found is None else int(found[0])

    @property
    def told(self) -> int | None:
        """How many directions can be distinguished from noise, without saying which; None if not known."""
        found = self.release.parameters.get("stands_out") if self.stands_out is None else self.stands_out
        return found if isinstance(found, int) else None

    def is_noise(self, component: int) -> bool:
        """Whether a component cannot be distinguished from noise."""
        return self.stands_out is not None and component >= self.stands_out

    @property
    def captured(self) -> tuple[str, str] | None:
        """Which share of the variance of the best components these hold, and its noise: 98 % and ± 4 %."""
        value, error = self.released("captured_variance"), self.released("captured_variance_std")
        return None if value is None or error is None else share_with_noise(float(value[0]), float(error[0]))

    def captured_of(self, best: str) -> str:
        """Say how much of the variance these hold, in which rows; an empty string where that is not known."""
        if self.captured is None:
            return ""
        meant = self.rows_meant and f", {self.rows_meant}"
        return "about {} ({}) of the variance that the best {} would{}".format(*self.captured, best, meant)

    @property
    def nothing_stands_out(self) -> bool:
        """Whether no component of a PCA can be distinguished from noise: then there is no captured share."""
        return self.stands_out == 0

    @property
    def rows_meant(self) -> str:
        """In which rows, as they were looked at, variances were measured; an empty string where that is not told."""
        if self.estimates:
            return f"by {self.estimates}"
        course, clip = self.release.parameters.get("course"), self.released("clip")
        if course in ("pairs", "centre not found"):
            return "in differences of rows, scaled to one length"
        if course == "one look":
            return "in rows scaled to one length"
        if clip is None or course is None:
            return ""
        counted = self._clipped_rows()
        return f"in rows clipped at length {number(float(clip[0]))}{counted and f' ({counted})'}"

    @property
    def rows_in_short(self) -> str:
        """The rows that variances are of, for a name; an empty string where that is not told."""
        if self.released("clip") is None or self.estimates:
            return "" if self.estimates else self.rows_meant.removeprefix("in ")
        return "clipped differences of rows" if self.by_pairs else "clipped rows"

    def _clipped_rows(self) -> str:
        """Say how many rows were clipped, as far as noise allows."""
        count, std = self.released("rows_shortened"), self.released("rows_shortened_std")
        if count is None or std is None or self.n is None:
            return ""
        seen = count[0] > 2.0 * std[0]
        about = "about" if seen else "at most about"
        rows = float(f"{count[0] if seen else count[0] + 2.0 * std[0]:.2g}")
        return f"{about} {number(rows)} of {number(self.n)} {self.unit}"

    @property
    def whole_rows(self) -> str:
        """What is known of what was clipped off; an empty string where nothing was."""
        bound, furthest = self.released("captured_variance_at_least"), self.released("longest_counted")
        if self.captured is None or self.k == self.d or self.released("clip") is None or self.estimates:
            return ""
        if bound is None or furthest is None or bound[0] < _WORTH_TELLING:
            return "How much variance lies beyond that length cannot be bounded from what is released."
        held, longest = f"{math.floor(100.0 * bound[0])}\u00a0%", number(float(furthest[0]))
        return (
            f"With rows clipped at length {longest} only it would be at least {held}; what lies beyond is not seen."
        )

    @property
    def own_error(self) -> float | None:
        """What the run itself expects the error of the subspace to be, due to noise; None if it does not tell."""
        error = self.release.parameters.get("expected_error")
        return error if isinstance(error, float) and self.release.subspace is not None else None

    @property
    def mean_is(self) -> str:
        """Whether the mean that is released was "measured", is "public", or "absent"."""
        if self.released("mean") is None or self.release.parameters.get("centring") == "none":
            return "absent"
        if self.released("mean_std") is not None:
            return "measured"
        public = self.release.parameters.get("centring") in ("public centre", "standardised columns")
        return "public" if public else "absent"

    @property
    def without_units(self) -> list[int]:
        """Columns, by position, whose centre or unit is not known, as standardised columns may be."""
        return self._places("without_units")

    @property
    def mostly_one_value(self) -> list[int]:
        """Columns, by position, that hold one value in most cells."""
        return self._places("mostly_one_value")

    @property
    def not_seen(self) -> list[int]:
        """Columns, by position, in which nothing could be distinguished from noise."""
        return self._places("not_seen")

    def _places(self, parameter: str) -> list[int]:
        told = self.release.parameters.get(parameter, ())
        names = list(self.names)
        return [one if isinstance(one, int) else names.index(one) for one in told] if isinstance(told, tuple) else []

    @property
    def estimates(self) -> str:
        """What the variances are of, where columns are standardised; else an empty string."""
        told = self.release.parameters.get("estimates")
        return told if isinstance(told, str) else ""

    @property
    def is_standardised(self) -> bool:
        """Whether all columns have variance 1 in what was released."""
        return self.release.parameters.get("scale") is True

    @property
    def is_exact(self) -> bool:
        """Whether an exact subspace was found."""
        return self.release.subspace is not None and self.release.subspace.exact is not None

    @property
    def is_pca(self) -> bool:
        """Whether the basis is ordered by variance; otherwise it is one of many."""
        return "explained_variance_ratio" in self.release.extras or "explained_variance" in self.release.extras

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of the columns: those given, those of the subspace, or their numbers."""
        given = self.columns or (self.release.subspace and self.release.subspace.names)
        return given or [f"column {i + 1}" for i in range(self.d or 0)]

    def released(self, name: str) -> Array | None:
        """Return a released array of finite numbers; None if there is no such thing."""
        values = self._numbers(name)
        return values if values is not None and np.all(np.isfinite(values)) else None

    def loading_std(self, component: int) -> Array | None:
        """Return the standard errors of the loadings of a component; None if they are not told, or it is noise."""
        errors = self._numbers("components_std")  # (k, d)
        if errors is None or self.is_noise(component) or not np.all(np.isfinite(errors[component])):
            return None
        return np.asarray(errors[component])

    def _numbers(self, name: str) -> Array | None:
        if name not in self.release.extras:
            return None
        return np.atleast_1d(np.asarray(self.release.extras[name], dtype=np.float64))

    def _public(self, name: str) -> int | None:
        value = self.release.parameters.get(name)
        return int(value) if isinstance(value, int | np.integer) else None


def which_stand_out(found: int, k: int) -> str:
    """Say how many of k components, which come by falling variance, can be distinguished from noise."""
    if found >= k:
        return "It stands out of the noise." if k == 1 else "All of them stand out of the noise."
    if found == 0:
        return "It cannot be distinguished from noise." if k == 1 else "None of them can be distinguished from noise."
    first = "The first stands" if found == 1 else f"The first {found} stand"
    others = "the other" if k - found == 1 else f"the other {k - found}"
    return f"{first} out of the noise; {others} cannot be distinguished from noise."


_IN_PLAIN_WORDS = {
    "clipped look": "covariance, long rows clipped",
    "second look": "covariance, second measurement",
    "unit look": "covariance of rows scaled to length 1",
    "clip": "length to clip at",
    "centre": "search for the centre",
    "first length": "first estimate of row length",
    "length": "typical row length",
    "mean square": "mean squared length",
    "near a subspace?": "test: near a subspace?",
    "signs of pairs": "comparison of pairs of rows",
    "winsorised look": "covariance, extreme cells clipped",
    **{f"range {stage}": "ranges of the columns" for stage in range(1, 9)},
}  # what steps are called for those who read of them in a report or a picture


def plain_step(name: str) -> str:
    """Return what a step is called for readers; before a colon stands what it is a step of."""
    *of, step = name.split(": ")
    return ": ".join([*of, _IN_PLAIN_WORDS.get(step, step)])


def budget_shares(cost: Cost, most: int | None = None) -> list[tuple[str, float]]:
    """Return the share of each step in what was spent, largest first.

    Gaussian steps share by mu², steps of another kind have their part of epsilon, and the Gaussian ones what is left
    of it.  Steps with one name before a colon count as one, if there are several such names; of more than `most` the
    smallest are put together.
    """
    several = len({part.name.split(":")[0] for part in cost.parts}) > 1
    plain = math.fsum(part.epsilon for part in cost.parts if part.mu is None)
    squares = math.fsum(part.mu**2 for part in cost.parts if part.mu is not None)
    whole = plain if squares == 0.0 else max(cost.epsilon, plain)
    sums: dict[str, float] = {}
    for part in cost.parts:
        name = part.name.split(":")[0] if several else part.name.split(":")[-1].strip()
        spent = part.epsilon if part.mu is None else (whole - plain) * part.mu**2 / squares
        name = _IN_PLAIN_WORDS.get(name, name)
        sums[name] = sums.get(name, 0.0) + spent
    ranked = sorted(((name, value) for name, value in sums.items() if value > 0), key=lambda item: -item[1])
    if most is not None and len(ranked) > most:
        ranked = [*ranked[: most - 1], ("other steps", math.fsum(value for _, value in ranked[most - 1 :]))]
    return [(name, value / math.fsum(value for _, value in ranked)) for name, value in ranked]
