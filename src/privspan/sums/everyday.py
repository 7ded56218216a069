"""Private PCA of an everyday table: find the centre, choose a clip, look, judge.

Which course is taken depends on n mu and z = 2 sqrt(d) / (n mu), which are public, and on whether a centre is found:

* *pairs*: little data, or a centre that was not found.  Differences of pairs of rows need none; one look at them.
* *one look*: about the centre, at unit rows.  For z above 1/20, where two would share too little, and where the clip
  turns out so short that clipped rows would be unit rows once more.
* *clipped look*: at rows clipped where noise and bias balance, where long rows count as they do in PCA.  As n mu
  grows this becomes PCA.  It has most of what is left, and all of it if it turns out clear.
* *two looks*: otherwise, and at unit rows too, where weak directions show; mixed where that may pay, as the judge
  finds best.

Every step is Gaussian and takes its share of mu² from one account.  Proofs: docs/explanation/everyday-tables.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib.rounding import relative_error
from privspan.privacy.randomness import open_streams
from privspan.privacy.run import Run
from privspan.rows.about import WIDEST_DENSE
from privspan.rows.partitioned_rows import AnyRows, PerRow, known_chunks, per_row
from privspan.rows.table import Table
from privspan.rows.unit import CHUNK_ROWS
from privspan.sums.centre import (
    Centre,
    first_length,
    found_centre,
    mean_step,
    most_of_lengths,
    noise_ratio,
    polished_centre,
    seen_from,
    unmeasured,
)
from privspan.sums.early_gram import ClippedGram, fits_early
from privspan.sums.everyday_tuning import EVERYDAY, EverydayTuning
from privspan.sums.gaps import gap_share
from privspan.sums.grid import SUMS, SumBounds, gaussian_sum, look_gain, most_share
from privspan.sums.judge import Verdict, is_clear, judged_mixture, leading
from privspan.sums.lazy_looks import LookedAt, lazy_looks
from privspan.sums.lengths import Radius, bisected_radius
from privspan.sums.lifts import Lift, person_lift, released_weight
from privspan.sums.looks import CONSTANT, AugmentedGram, released_looks
from privspan.sums.pairs import pair_differences
from privspan.sums.pca_result import Noisy, PCAResult, share_errors
from privspan.sums.variance import size_noise, typical_length

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Scale:
    """What turns sums of scaled rows into variances, and its relative error."""

    value: float
    error: float


@dataclass(frozen=True)
class _LiftedRows:
    """Unit rows, the lift of persons where there is one, and what stands for the number of rows in a look."""

    rows: AnyRows
    lift: Lift | None
    count: float
    count_std: float = 0.0


class EverydayCourse:
    """One run: a rough centre first, then looks about it, unless something else is released in their place.

    Parameters
    ----------
    source : Table
        At least two rows.  A gap counts as the centre, and as no difference in a pair.
    k : int
        Number of directions, at most d.
    run : Run
        All that is left is spent; at least half of it must be.
    tuning : EverydayTuning, optional

    Guarantee
    ---------
    Gaussian steps whose shares the account counts: mu-GDP for its mu, for replace-one neighbours and
    every data set; n, d, k and where the search starts are public.  What is released in place of looks spends from
    the same account and has a guarantee of its own.  Proof: docs/explanation/everyday-tables.md.
    """

    def __init__(self, source: Table, k: int, run: Run, tuning: EverydayTuning = EVERYDAY) -> None:
        self._source, self._k, self.run, self._tuning = source, int(k), run, tuning
        self._n, self._d = source.shape
        self._data = self._n * run.account.mu
        self._z = noise_ratio(self._n, self._d, run.account.mu)
        self._wide = self._d > WIDEST_DENSE
        self._gain = look_gain(CONSTANT, source.width)

    def rough_centre(self, around: Array | None, search: bool) -> Centre | None:
        """Return where looks are to begin, perhaps not `located`; None for differences of pairs, which need none.

        Parameters
        ----------
        around : (d,) array or None
            Public: where a search starts, or the centre itself.  With public bounds of the columns, the middle of
            each; `privspan.rows.table.Table.in_units` makes half of its range the unit.
        search : bool
            Whether to search, as far as that can be afforded (`searches`): the middle of a range often is far off.
        """
        if search and searches(self._n, self._d, self.run.account.mu, self._tuning):
            few = self._source.some(
                _rows_of_draw(self._d, self.run.account.mu, self._tuning), self.run.streams.public
            )
            return replace(found_centre(few, self.run, around, self._tuning), among=few)
        if around is None:
            return None
        enough = self._data >= self._tuning.least_data
        return first_length(self._source, around, self.run, self._tuning) if enough else unmeasured(around)

    def looked(self, centre: Centre | None) -> PCAResult:
        """Release principal directions, variances and the mean, with all that is left: the course that is right."""
        if centre is not None and centre.among is not None:
            centre = self._polished(centre, centre.among)
        if centre is None or not centre.located:
            return self._by_pairs(centre)
        if self._z <= self._tuning.two_looks and centre.measured:
            return self._clipped(centre)
        return self._one_look(centre)

    # ---- The centre -----------------------------------------------------------------------------------------

    def _polished(self, centre: Centre, few: Table) -> Centre:
        """Make a centre better that was found among a few rows, and see all rows from there."""
        if centre.located:
            centre = polished_centre(few, centre, self.run, tuning=self._tuning)
        if few is self._source:
            return centre
        early = centre.located and self._z <= self._tuning.two_looks and not self._wide
        early = early and fits_early(self._n, self._d, self._source.limits)
        return seen_from(centre, self._source, early=early, tuning=self._tuning)

    # ---- About a centre -------------------------------------------------------------------------------------

    def _clipped(self, centre: Centre) -> PCAResult:
        """Look at clipped rows, and at unit rows too; at these alone if most rows would be clipped, or are alike."""
        clip = balancing_clip(centre, self._n, self._d, self.run, self._tuning)
        if self._d >= self._tuning.many_columns and clip.radius <= self._tuning.alike * centre.length:
            return self._one_look(centre)
        assert centre.rows is not None
        rows, early, factors = self._lifted(centre.rows, CONSTANT), None, None
        if centre.early is None:
            factors = per_row(lambda lengths: np.minimum(lengths / clip.radius, 1.0), centre.lengths)
        else:
            early = ClippedGram(centre.early, clip.radius, CONSTANT)
        typical = (centre.length / clip.radius) ** 2  # of these squares
        total = self._sum_of_squares(factors, rows.lift, typical) if self._wide else None
        unit = self._tuning.unit if self._d >= self._tuning.many_columns else self._tuning.unit_of_few
        mus = [self.run.account.spend("clipped look", (1.0 - unit) * self.run.account.left, self._gain)]
        mus += [self.run.account.spend("second look", self.run.account.left, self._gain)]
        seen = self._looked(rows, mus, factors, total, shortened=clip.longer, early=early)
        mean = Noisy(centre.vector(self._d) + seen.mean * clip.radius, seen.mean_noise * clip.radius)
        scale = _Scale(clip.radius**2 / rows.count, rows.count_std / rows.count)
        course = "two looks" if seen.unit else "clipped look"
        return self._outcome(course, seen, scale, mean, centre, clip, filled=centre.vector(self._d))

    def _one_look(self, centre: Centre) -> PCAResult:
        """Look at unit rows, and measure how long they are."""
        mean_square, error = self._mean_square(centre) if centre.measured else (math.nan, 0.0)
        about = self._source.rows(centre.centre, keep=False, single=True) if centre.rows is None else centre.rows
        rows = self._lifted(about, CONSTANT)
        mu = self.run.account.spend("unit look", self.run.account.left, self._gain)
        seen = self._looked(rows, [mu])
        length = centre.length if centre.measured else 0.0
        std = seen.mean_noise * length if centre.measured else math.inf
        scale = _Scale(mean_square / seen.verdict.total, error)
        mean = Noisy(centre.vector(self._d) + seen.mean * length, std)
        return self._outcome("one look", seen, scale, mean, centre, filled=centre.vector(self._d))

    def _mean_square(self, centre: Centre) -> tuple[float, float]:
        """Release the mean squared length of the rows, clipped at twice the typical one, and its relative noise."""
        radius = self._tuning.total_clip * centre.length
        total, std = self._sum_of_squares(per_row(lambda lengths: np.minimum(lengths / radius, 1.0), centre.lengths))
        return total * radius**2 / self._n, std / total

    def _lifted(self, rows: AnyRows, constant: float) -> _LiftedRows:
        """Find the lift of persons with several rows, and release what stands for the number of rows then.

        Rows of a wide table, which is seen several times, are kept.
        """
        rows = rows.kept() if self._wide else rows
        lift = person_lift(rows, constant) if rows.width > 1 else None
        if lift is None or (constant == 0.0 and not self._wide):  # whole looks without a mean need no number
            return _LiftedRows(rows, lift, float(rows.shape[0]))
        mu = self.run.account.spend("weight of persons", self._tuning.weight)
        return _LiftedRows(rows, lift, *released_weight(lift, rows.shape[0], mu, self.run))

    def _sum_of_squares(self, factors: PerRow, lift: Lift | None = None, typical: float = 1.0) -> tuple[float, float]:
        """Release the sum of the squares of one number per record, each from 0 to 1; at least its noise, and that.

        The noise is a twelfth of the sum if the squares are as `typical`, as far as that is cheap.
        """
        if lift is not None:
            root = math.sqrt(lift.most)
            lifted = per_row(lambda f, s: np.minimum(f * (s / root), 1.0), factors, lift.factors)
            total, std = self._sum_of_squares(lifted, typical=typical / lift.most)
            return total * lift.most, std * lift.most
        share = min(self._tuning.total, (self._tuning.total_data / (typical * self._data)) ** 2)
        mu = self.run.account.spend("mean square", share)
        bounds = SumBounds(1.0, 1.01 * CHUNK_ROWS * relative_error(CHUNK_ROWS + 1), 1, 1.1 * self._n)
        noisy, sigma = gaussian_sum(known_chunks(_sum_of_squares, factors), (1,), bounds, mu, self.run)
        return max(float(noisy[0]), sigma), sigma

    def _looked(
        self,
        lifted: _LiftedRows,
        mus: list[float],
        factors: PerRow | None = None,
        total: tuple[float, float] | None = None,
        shortened: float = 0.0,
        constant: float = CONSTANT,
        early: ClippedGram | None = None,
    ) -> LookedAt:
        """Look at rows, clipped ones if there are factors: at whole matrices, or where it matters.

        Most of the second moment of clipped rows may be known, `early`.
        A second mu is for clipped rows once more if that is enough, and for unit rows otherwise.
        """
        rows, lift, count = lifted.rows, lifted.lift, lifted.count
        if self._wide:
            size, std = (count, 0.0) if total is None else total
            numbers: dict[str, Any] = {"constant": constant, "lift": lift, "count": count, "shortened": shortened}
            numbers |= {"total": size, "total_std": std, "tuning": self._tuning}
            return lazy_looks(rows, factors, mus, self._k, self.run, **numbers)
        gram = AugmentedGram(rows, [factors], constant, lift) if early is None else early
        looks = released_looks(gram, mus, self.run, constant, count)
        look, unit = next(looks), None
        if len(mus) == 2:
            values = leading(look.moment, self._k)[0][: self._k]
            if is_clear(values, look.noise, self._d, shortened, self._tuning):
                look = next(looks)
            else:
                of_units = AugmentedGram(rows, constant=constant, lift=lift)
                unit = next(released_looks(of_units, mus[1:], self.run, constant, count))
        verdict = judged_mixture(look, unit, self._k, self.run.streams.public, self._tuning)
        passes, both = (1, False) if unit is None else (2, True)
        return LookedAt(verdict, look.mean, look.mean_noise, passes, look.moment, both)

    # ---- By pairs -------------------------------------------------------------------------------------------

    def _by_pairs(self, failed: Centre | None) -> PCAResult:
        """Look at differences of pairs; the mean is that of the search, or bought by itself."""
        centre, mean_std = self._mean() if failed is None else (failed, failed.error / math.sqrt(self._d))
        pairs = pair_differences(self._source, open_streams(self.run.streams.public).public)
        total, error = self._scale(pairs) if failed is None else (math.nan, 0.0)
        rows = self._lifted(pairs.rows(keep=False), 0.0)
        mu = self.run.account.spend("unit look", self.run.account.left, self._gain)
        seen = self._looked(rows, [mu], constant=0.0)
        course, scale = "pairs" if failed is None else "centre not found", _Scale(total / seen.verdict.total, error)
        filled = np.zeros(self._d) if failed is None else None  # after a search, by the centres on the way
        return self._outcome(course, seen, scale, Noisy(centre.vector(self._d), mean_std), centre, filled=filled)

    def _mean(self) -> tuple[Centre, float]:
        """Release the mean of rows shortened to their typical length about zero, where there is data enough."""
        if self._data < self._tuning.least_data:
            return unmeasured(None), math.inf
        about_zero = first_length(self._source, None, self.run, self._tuning)
        mu = self.run.account.spend("mean", self._tuning.mean, SUMS)
        mean, std = mean_step(self._source, about_zero, mu, self.run)
        return replace(unmeasured(None), centre=mean, passes=2), std

    def _scale(self, pairs: Table) -> tuple[float, float]:
        """Release the typical squared length of differences, halved, and its relative noise."""
        if self._data < self._tuning.least_scale:
            return math.nan, 0.0
        mu = self.run.account.spend("scale", (self._tuning.scale / self._data) ** 2)
        return typical_length(pairs, mu, self.run) ** 2 / 2.0, 2.0 * size_noise(pairs.shape[0], mu)

    # ---- All courses ----------------------------------------------------------------------------------------

    def _outcome(
        self,
        course: str,
        seen: LookedAt,
        scale: _Scale,
        mean: Noisy[Array],
        centre: Centre,
        clip: Radius | None = None,
        *,
        filled: Array | None = None,
    ) -> PCAResult:
        """Put together what was released; `scale` turns sums of scaled rows into variances in the table's units."""
        verdict, shares = seen.verdict, self.run.account.shares
        values, std = verdict.variances, verdict.variances_std
        total = max(verdict.total, float(values.sum()))  # each has noise of its own
        errors = np.hypot(std, values * scale.error)
        total_error = math.hypot(
            0.0 if clip is None else verdict.total_std, total * scale.error
        )  # else it was measured
        ratios_std = share_errors(values, std, total, verdict.total_std, within=seen.moment is not None)
        passes = math.ceil(centre.passes + seen.passes + int("scale" in dict(shares)))  # the last: lengths of pairs
        about = {"k": self._k, "course": course, **centre.told}
        about |= {"weight_of_unit_rows": verdict.weight, "passes": passes}
        if course in ("pairs", "centre not found"):
            about["centring"] = "pair differences"
        return PCAResult(
            basis=verdict.basis,
            ratios=Noisy(values / total, ratios_std),
            variances=Noisy(values * scale.value, errors * scale.value),
            total=Noisy(total * scale.value, total_error * scale.value),
            course=course,
            mean=mean,
            components_std=verdict.loadings_std,
            captured=verdict.captured,
            stands_out=verdict.stands_out,
            clip=None if clip is None else clip.radius,
            shortened=None if clip is None else Noisy(clip.longer, clip.longer_std),
            at_least=None if clip is None else self._at_least(verdict, scale.value, clip),
            filled=filled,
            moment=seen.moment if seen.moment is None or math.isnan(scale.value) else seen.moment * scale.value,
            shares=shares,
            about=about,
        )

    def _at_least(self, verdict: Verdict, scale: float, clip: Radius) -> tuple[float, float] | None:
        """Bound what is captured of rows clipped further out: all that lies between may lead elsewhere."""
        between = clip.most_beyond()
        if between is None:
            return None
        beyond, furthest = between
        seen = max(verdict.captured.value - 2.0 * float(verdict.captured.std), 0.0)
        best = float(verdict.variances.sum()) * scale / max(verdict.captured.value, 1e-9)
        return (seen * best / (best + beyond / self._n) if best > 0.0 else 0.0), furthest


def balancing_clip(centre: Centre, n: int, d: int, run: Run, tuning: EverydayTuning = EVERYDAY) -> Radius:
    """Release the radius at which noise and bias balance: about kappa sqrt(d) / mu rows are longer.

    Guarantee
    ---------
    Gaussian with the share it takes from the account.  Proof: docs/explanation/everyday-tables.md, lemma 1.
    """
    steps, share = _clip_steps(n, d, run.account.mu, tuning)
    wanted = max(tuning.kappa * math.sqrt(d), 3.0 * math.sqrt(steps / share)) / run.account.mu
    mu = run.account.spend("clip", share)
    shortest, far = centre.length / math.sqrt(2.0), tuning.far_rows * wanted
    return bisected_radius(centre.lengths, wanted, shortest, steps, mu, run, far=far, per_octave=4)


def _sum_of_squares(factors: Array) -> Array:
    return np.array([factors @ factors])


# ---- What public numbers tell beforehand ---------------------------------------------------------------------------


def searches(n: int, d: int, mu: float, tuning: EverydayTuning = EVERYDAY) -> bool:
    """Tell from public numbers whether a search for the centre can be afforded."""
    return n * mu >= tuning.least_data and noise_ratio(n, d, mu) <= tuning.most_noise


def expected_share(
    n: int, d: int, mu: float, about: bool = False, tuning: EverydayTuning = EVERYDAY
) -> tuple[str, float]:
    """Return the course that a table is expected to take, and about which share of mu² its looks will have.

    Two locating rounds and one that polishes are what most tables take; `about` tells of a public centre.  A
    forecast, which promises nothing.
    """
    data, z = n * mu, noise_ratio(n, d, mu)
    if not searches(n, d, mu, tuning) and about:
        return "public centre", 0.9 if data >= tuning.least_data else 1.0
    if not searches(n, d, mu, tuning):
        return "pairs", 1.0 - (tuning.mean + 0.06 if data >= tuning.least_data else 0.0)
    search = (25.0 / data) ** 2 + 2.0 * max((z / 0.4) ** 2, 0.002) + max(0.6 * z, 0.005)
    if z > tuning.two_looks:
        return "one look", 1.0 - min(search, 0.3) - tuning.total
    return "two looks", 1.0 - min(search, 0.3) - min(tuning.most_clip, 45.0 / (tuning.kappa**2 * d))


def empty_share(source: Table, mu: float, gaps: int, tuning: EverydayTuning = EVERYDAY) -> float:
    """Return the share of mu² that an empty place can tell, from public numbers: docs/explanation/zero-out.md.

    Lengths, clips, gaps and weights are counts, or like them; centres and looks have a gain.  Not for runs that may
    go on near a subspace.
    """
    n, d = source.shape
    data, plain = n * mu, gap_share(n, gaps, mu)
    if source.width > 1:
        plain += tuning.weight
    if data >= tuning.least_data:
        first, rounds = most_of_lengths(min(n, _rows_of_draw(d, mu, tuning)), d, mu, tuning)
        total = tuning.total if d > WIDEST_DENSE else min(tuning.total, (tuning.total_data / data) ** 2)
        scale = (tuning.scale / data) ** 2 if data >= tuning.least_scale else 0.0
        plain += first + max(rounds + _clip_steps(n, d, mu, tuning)[1] + total, scale)
    return most_share(plain, look_gain(CONSTANT, source.width))


def _clip_steps(n: int, d: int, mu: float, tuning: EverydayTuning) -> tuple[int, float]:
    """Return the number of counts for a clip, and their share of mu²."""
    steps = 1 + math.ceil(math.log2(math.log2(n * mu)))  # radii up to about length sqrt(n mu)
    # With less than the most, the noise of a count is a third of the rows that are to be longer.
    return steps, min(tuning.most_clip, 9.0 * steps / (tuning.kappa**2 * d))


def _rows_of_draw(d: int, mu: float, tuning: EverydayTuning) -> int:
    """Return how many rows of a public draw tell the centre as well as all rows would.

    So many that a round for .2 % of mu², the least there is, has noise of .14 typical lengths: what is left of that
    after two of them is little to the looks.
    """
    return max(tuning.few_rows, math.ceil(tuning.few * math.sqrt(d) / mu))
