"""Where the rows are: a private centre by localised rounds.

A mean of rows shortened to the radius R has noise in proportion to R.  So one starts with all rows about zero, and
every round shortens rows to their typical length about the last centre: as long as the centre is further off than
the rows are spread, this falls by half a round or so, whatever the units are.  Once the typical length is no longer
made of the error of the centre, the centre is *located*, and a few polishing rounds are bought as far as they lower
the noise that later looks at the centred rows will have.  How many rounds there are depends on what they release; the
account sees to it that the budget does not.  Proofs: docs/explanation/everyday-tables.md, lemmas 1, 2 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, PerRow
from privspan.rows.table import Table
from privspan.rows.unit import Rows
from privspan.sums.early_gram import EarlyGram
from privspan.sums.everyday_tuning import EVERYDAY, EverydayTuning
from privspan.sums.grid import SUMS, gaussian_sum, row_bounds, row_sums
from privspan.sums.lengths import bisected_radius, lengths_of

Array = NDArray[np.float64]

MOST_ROUNDS = 30
"""Public cap on the number of rounds, which composition asks for: everyday-tables, lemma 5."""

_SHORTEST = 2.0**-64  # of the first radii: with it and so many counts, those of all float64 tables: lemma 1


@dataclass(frozen=True)
class Centre:
    """A centre and what is known about it.

    Attributes
    ----------
    centre : (d,) array or None
        None for zero.
    error : float
        Expected distance from the mean of the shortened rows, over all coordinates.
    length : float
        Typical length of the rows about the centre, 40 % are longer; NaN if it was not measured.
    clip : float
        Rows are shortened to this for the next step.  After a round, the end of the interval whose middle `length`
        is: then rows of one length are all shortened, and the noise of the step is in proportion to theirs.
    lengths : (n,) array or RowValues
        Lengths of all rows about the centre: not released.
    rows : Rows or None
        The rows about the centre, at unit length; None where nothing was measured.
    early : EarlyGram or None
        Their second moment as far as it is known before they are clipped: not released.
    located : bool
        Whether `length` is that of the rows rather than of the error.
    among : Table or None
        The table that it was searched for in: all rows, or those of a public draw; None if it was not searched for.
    rounds : int
    passes : float
        Over the rows, so far.
    """

    centre: Array | None
    error: float
    length: float
    clip: float
    lengths: PerRow
    located: bool
    rows: AnyRows | None = None
    early: EarlyGram | None = None
    among: Table | None = None
    rounds: int = 0
    passes: float = 0.0

    def vector(self, d: int) -> Array:
        """Return the centre as a vector."""
        return np.zeros(d) if self.centre is None else self.centre

    @property
    def measured(self) -> bool:
        """Whether the length is known."""
        return not math.isnan(self.length)

    @property
    def told(self) -> dict[str, object]:
        """What a release says of it."""
        centring = "localised rounds" if self.rounds else "public centre"
        length = self.length if self.measured else None
        return {"centring": centring, "rounds": self.rounds, "typical_length": length}


def unmeasured(centre: Array | None) -> Centre:
    """Return a public centre, or none, about which nothing was measured."""
    return Centre(centre, math.inf, math.nan, math.nan, None, centre is not None)


def noise_ratio(n: int, d: int, mu: float) -> float:
    """Return z = 2 sqrt(d) / (n mu), the size of Analyze Gauss's noise relative to n unit rows."""
    return 2.0 * math.sqrt(d) / (n * mu)


def _length_share(data: float, needed: float, wanted: float, most: float, least: float) -> float:
    """Return the share of mu² of a bisection, where n mu = `data`.

    With (needed / data)² the noise of a count is n/7, and one in a hundred bisections goes wrong; with
    (wanted / data)² it is n/10, and none does.  The latter is taken as far as it costs no more than `most`.
    """
    return max((needed / data) ** 2, min((wanted / data) ** 2, most), least)


def most_of_lengths(n: int, d: int, mu: float, tuning: EverydayTuning = EVERYDAY) -> tuple[float, float]:
    """Return the share of mu² of the first length, and the most that those of all rounds can have."""
    later = _length_share(n * mu, *tuning.later_length) * _steps(d, tuning) / tuning.steps
    return _length_share(n * mu, *tuning.first_length), MOST_ROUNDS * later


def first_length(source: Table, centre: Array | None, run: Run, tuning: EverydayTuning = EVERYDAY) -> Centre:
    """Release the typical length of the rows about zero, or about a public centre.

    Parameters
    ----------
    source : Table
    centre : (d,) array or None
        Public.
    run : Run
    tuning : EverydayTuning, optional

    Guarantee
    ---------
    Gaussian with the share it takes from the account.  Proof: docs/explanation/everyday-tables.md, lemma 1.
    """
    n = source.shape[0]
    mu = run.account.spend("first length", _length_share(n * run.account.mu, *tuning.first_length))
    rows = source.rows(centre, keep=False, single=True)
    lengths = lengths_of(rows)
    wanted, far = tuning.longer * n, tuning.longer_far * n
    answer = bisected_radius(lengths, wanted, _SHORTEST, tuning.first_steps, mu, run, far=far)
    return Centre(centre, 0.0, answer.radius, answer.radius, lengths, centre is not None, rows, passes=1)


def found_centre(source: Table, run: Run, start: Array | None = None, tuning: EverydayTuning = EVERYDAY) -> Centre:
    """Search for the centre of the rows; `polished_centre` makes it better where that pays.

    Parameters
    ----------
    source : Table
    run : Run
        Enough must be left for the search: n mu at least 80 and z at most 1/5.
        Private noise.
    start : (d,) array or None
        Where to start: public; None for zero.
    tuning : EverydayTuning, optional

    Returns
    -------
    Centre
        Perhaps not found.

    Guarantee
    ---------
    Gaussian steps, at most 61, whose shares the account counts.
    Proof: docs/explanation/everyday-tables.md, lemmas 1, 2 and 5.
    """
    most_left = max(run.account.left - tuning.most_locating, tuning.least_left)
    first = first_length(source, start, run, tuning)
    now = replace(first, error=first.length, located=False)
    share, per_length = _locating_share(source, run, tuning), _share_of_length(source, run, tuning)
    while now.rounds < MOST_ROUNDS and not now.located and run.account.left - share - per_length >= most_left:
        now = _round(source, now, share, per_length, run, tuning)
    return now


def polished_centre(
    source: Table, now: Centre, run: Run, adds: float | None = None, tuning: EverydayTuning = EVERYDAY
) -> Centre:
    """Take up to three further rounds from a centre that was found, as far as they lower the noise of looks about it.

    One that is lost on the way is searched for again, as far as that costs no more than half of the first search.
    A squared error of the centre, over the squared spread, is taken to add `adds` times itself to that noise; without
    `adds`, as it does for looks.

    Guarantee
    ---------
    Gaussian steps, those of `found_centre` included at most 61, whose shares the account counts.
    Proof: docs/explanation/everyday-tables.md, lemmas 1, 2 and 5.
    """
    most_left = max(run.account.left - tuning.most_locating / 2.0, tuning.least_left)
    per_length, polished = _share_of_length(source, run, tuning), 0
    while now.rounds < MOST_ROUNDS:
        share = _locating_share(source, run, tuning)
        if now.located:
            share, _ = _polishing(source, now, run, adds, tuning)
            if share == 0.0 or polished == tuning.most_polishing:
                break
            polished += 1
        elif run.account.left - share - per_length < most_left:
            break
        now = _round(source, now, share, per_length, run, tuning)
    return now


def seen_from(centre: Centre, source: Table, *, early: bool, tuning: EverydayTuning = EVERYDAY) -> Centre:
    """Return a centre that was found among some rows with the lengths of all rows about it, in one pass.

    With `early`, which is for dense tables of few columns, that pass begins a look at clipped rows too.
    """
    assert centre.rows is not None
    rows, some = source.rows(centre.centre, keep=False, single=True), centre.rows.shape[0] / source.shape[0]
    passes = centre.passes * some + 1.0
    if not early:
        return replace(centre, rows=rows, lengths=lengths_of(rows), passes=passes)
    begun = EarlyGram(
        cast(Rows, rows), centre.length, tuning.reach
    )  # some rows were drawn, so all are in this process
    return replace(centre, rows=rows, lengths=begun.lengths, early=begun, passes=passes)


def _locating_share(source: Table, run: Run, tuning: EverydayTuning) -> float:
    """Return the share of a round whose noise is a part of its radius that makes the search fall by half."""
    n, d = source.shape
    return max((noise_ratio(n, d, run.account.mu) / tuning.contraction) ** 2, tuning.least_share)


def _share_of_length(source: Table, run: Run, tuning: EverydayTuning) -> float:
    """Return the share of the typical length after a round."""
    n, d = source.shape
    return _length_share(n * run.account.mu, *tuning.later_length) * _steps(d, tuning) / tuning.steps


def _round(source: Table, now: Centre, share: float, per_length: float, run: Run, tuning: EverydayTuning) -> Centre:
    """Take one step to the mean of the shortened rows, and measure their lengths there."""
    n, d = source.shape
    step, std = mean_step(source, now, run.account.spend("centre", share, SUMS), run)
    noise = std * math.sqrt(d)
    doubt = tuning.slack * math.sqrt(max(0.0, float(step @ step) - noise * noise))
    error = math.hypot(noise, doubt)
    weight = now.error**2 / (now.error**2 + error**2)  # precision weighting with the former centre
    centre = source.as_held(weight * step if now.centre is None else now.centre + weight * step)
    rows = source.rows(centre, keep=False, single=True)
    lengths = lengths_of(rows)
    mu = run.account.spend("length", per_length)
    steps = _steps(d, tuning)
    fineness = 2 ** (steps - 2)  # radii per octave: the range stays about the same
    counts = {"far": tuning.longer_far * n, "per_octave": fineness}
    answer = bisected_radius(lengths, tuning.longer * n, now.length / 4.0, steps, mu, run, **counts)
    error = math.sqrt(weight) * error
    # At the short end of what was searched the rows may be shorter still, and the centre not needed that closely yet.
    located = answer.radius >= tuning.resolved * error and not answer.lowest
    rounds, passes = now.rounds + 1, now.passes + 2
    return Centre(centre, error, answer.radius, answer.below, lengths, located, rows, rounds=rounds, passes=passes)


def _steps(d: int, tuning: EverydayTuning) -> int:
    """Return the number of counts of a length after the first."""
    return tuning.steps + 1 if d >= tuning.fine_columns else tuning.steps


def mean_step(source: Table, now: Centre, mu: float, run: Run) -> tuple[Array, float]:
    """Release the mean, about a centre, of the rows shortened to about their typical length, and its noise.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours.  Proof: docs/explanation/everyday-tables.md, lemma 2.
    """
    rows = (source.rows(now.centre, keep=False, single=True) if now.rows is None else now.rows).clipped(now.clip)
    n, d = rows.shape
    total, sigma = gaussian_sum(row_sums(rows), (d,), row_bounds(n, d, rows.rounding, rows.single), mu, run)
    return total * (now.clip / n), sigma * now.clip / n


def as_good_among(
    few: Table, source: Table, now: Centre, run: Run, adds: float, tuning: EverydayTuning = EVERYDAY
) -> bool:
    """Tell whether polishing a centre among a draw of rows is expected to do about as well as among all of them."""
    among_few, among_all = (_polishing(table, now, run, adds, tuning)[1] for table in (few, source))
    return among_few <= tuning.as_good * among_all


def _polishing(
    source: Table, now: Centre, run: Run, adds: float | None, tuning: EverydayTuning
) -> tuple[float, float]:
    """Return the share of the next round that lowers the noise of looks most, and what that is predicted to be then.

    The share is 0 if none lowers it enough.  That noise grows with the squared lengths, 1 + e²/s², and again as much
    for the direction that an error e of the centre adds to the second moment: `adds` is 2.
    """
    n, d = source.shape
    left, adds = run.account.left, tuning.adds if adds is None else adds
    kept = left - _share_of_length(source, run, tuning)
    before, shares = now.error**2, np.array(tuning.polishing)
    spread = now.length**2 - before  # less what the error of the centre adds
    fresh = (now.length * noise_ratio(n, d, run.account.mu)) ** 2 / shares
    after = fresh * before / (before + fresh)
    rest = kept - shares
    noise = (1.0 + adds * after / spread) / np.sqrt(np.maximum(rest, 0.01))
    predicted = np.where(rest > tuning.least_left, noise, np.inf)
    best = int(predicted.argmin())
    as_is = (1.0 + adds * before / spread) / math.sqrt(left)
    worth_it = predicted[best] <= tuning.worth_it * as_is
    return (float(shares[best]), float(predicted[best])) if worth_it else (0.0, as_is)
