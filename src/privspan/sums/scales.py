"""A private standard deviation of every column, so that columns in different units can be compared.

From the sizes D of differences of pairs of rows, in which any centre drops out:

1. *votes*: a noisy histogram of log2 D for every column without public bounds; its best window tells the typical D;
2. *second moments* on a ladder of clips B, 2B, 4B, …: the lowest rung sums min(D, B)²/B², every further one what the
   next clip adds.  A rung counts as long as it stands out from its noise; what lies above the last one is continued
   from the last two, so that a column with a long tail gets neither the noise of a clip that nobody needs nor a
   variance without its tail.

Columns with public scales take no part in either.
Proofs: docs/explanation/column-scales.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.rounding import UNIT_ROUNDOFF, relative_error, sqrt_up
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import BitSource, Streams
from privspan.rows import PartitionedTable
from privspan.rows.columns import PublicColumns
from privspan.rows.compressed import summed_rows
from privspan.rows.persons import PersonTable
from privspan.rows.unit import CHUNK_ROWS
from privspan.sums.gaps import Gaps
from privspan.sums.grid import SumBounds, gaussian_sum
from privspan.sums.pairs import pair_differences
from privspan.sums.table_sums import table_sums

Array: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

_FIRST_OCTAVE, _BINS, _HALVES = -60, 80, 3  # bins of three half octaves, from 2**-60 to 2**60
_LEAST_VOTES, _LEAST_MOMENTS = 0.08, 0.2  # shares of mu²
_VOTES, _MORE_VOTES = 24.0, 30.0  # pairs over the noise of a vote: needed, and where that can be had
_MOMENTS, _BOUNDED = 28.0, 14.0  # the same for a moment, and for one with bounds
_LADDER = 52.0  # the same for a ladder; with less there is one rung only: a tail would drown in the noise
_FALSE = 0.001  # most probability that noise alone passes for a vote, in any column of a table
_MOST_SHARE = 0.5  # of mu²; scales that need more are refused
_RUNGS, _BOUNDED_RUNGS = 7, 3  # of a column whose clip was voted for; of one with public bounds, up to these
_FOOT, _ALONE = 1.2, 2.4  # lowest rung, and the only one, in units of the typical difference
_FEW = 0.2  # largest share of the smaller bin of two, for columns of few values
_STEP = Fraction(3, 4)  # largest value of a rung above the lowest
_THERE = 2.0  # standard deviations of noise: least of a lowest rung, for a spread
_LIKELY, _SURE = 1.5, 3.0  # the same of a second rung, which most columns need, and of those above
_UNSEEN = 0.06  # relative error of a scale by what lies above the last rung: measured for normal columns
_FALL = math.exp(-0.5)  # by which the ratio of successive rungs falls, in a log-normal tail with sigma 0.98


class NoSpreadWarning(UserWarning):
    """Columns whose spread could not be told from noise were left as they are."""


@dataclass(frozen=True)
class ColumnScales:
    """Standard deviations of columns, released ones and public ones.

    Attributes
    ----------
    scale : (d,) array
        Infinite where no spread was found: dividing by it leaves the column out.
    std : (d,) array
        Standard error of `scale`, relative to it: its noise, and 6 % for what lies above `clip`, where columns are no
        longer-tailed than normal ones.  0 for public scales.
    found : (d,) array of bool
    clip : (d,) array
        Larger differences were counted as this large; infinite for public scales.
    """

    scale: Array
    std: Array
    found: Bools
    clip: Array

    def of_present_cells(self, gaps: Gaps, public: PublicColumns) -> ColumnScales:
        """Return scales that make up for the pairs in which a cell was missing: post-processing."""
        return replace(self, scale=np.where(public.scaled, self.scale, gaps.scale(self.scale)))


# ---- Public numbers ------------------------------------------------------------------------------------------------


def pair_count(source: Any) -> int:
    """Return how many pairs of rows there will be, from public numbers."""
    lengths = source.lengths if isinstance(source, PartitionedTable) else (source.shape[0],)
    return sum(int(length) // 2 for length in lengths)


def scale_shares(pairs: int, public: PublicColumns, mu: float) -> tuple[float, float]:
    """Return the shares of mu² that the votes and the second moments need, or refuse.

    Parameters
    ----------
    pairs : int
        Differences of rows, `pair_count`.
    public : PublicColumns
        Columns with bounds do not vote, and those with scales are not measured.
    mu : float
        The whole.

    Raises
    ------
    ValueError
        If more than half is needed, or there is no pair.  Public numbers decide, and nothing has been spent.
    """
    unknown = ~public.scaled
    measured, voting = int(unknown.sum()), int((unknown & ~public.bounded).sum())
    if not measured:
        return 0.0, 0.0
    if pairs < 1:
        raise ValueError("`X` must have at least two rows in one of its partitions, for a pair of rows.")
    noise = _noise(pairs, voting, mu)
    moments = max(_LEAST_MOMENTS, ((_MOMENTS if voting else _BOUNDED) * _noise(pairs, measured, mu)) ** 2)
    most = _MOST_SHARE - moments
    votes = max(_LEAST_VOTES, (_VOTES * noise) ** 2, min((_MORE_VOTES * noise) ** 2, most)) if voting else 0.0
    if votes > most:
        needed = f"{votes + moments:.2g} times the budget (as mu²), and half of it is the most that they may"
        raise ValueError(
            f"Private scales of {measured} column(s) from {pairs} pair(s) of rows would take {needed}. Give public "
            "`bounds=` for the columns, or public units (`scale={…}`), or use more rows or a larger epsilon."
        )
    return votes, moments


def scale_share(n: int, d: int, mu: float) -> float:
    """Return the share of mu² that the scales of d columns need of which nothing is public, or refuse."""
    unknown, none = np.full(d, np.nan), np.zeros(d, dtype=bool)
    return sum(scale_shares(n // 2, PublicColumns(unknown, unknown, none, unknown, unknown, none), mu))


def _noise(pairs: int, columns: int, mu: float) -> float:
    """Return z, the noise of one number per column relative to the number of pairs."""
    return math.sqrt(columns) / (pairs * mu)


# ---- Release -------------------------------------------------------------------------------------------------------


def scales_within(
    ledger: MuLedger, source: Any, public: PublicColumns, streams: Streams, gaps: Gaps | None = None
) -> ColumnScales:
    """Do what `column_scales` does for the shares that `scale_shares` asks for: docs/explanation/column-scales.md.

    With released `gaps` the scales are those of the present cells.
    """
    votes, moments = scale_shares(pair_count(source), public, ledger.mu)
    found = column_scales(source, ledger, streams, public, votes=votes, moments=moments)
    return found if gaps is None else found.of_present_cells(gaps, public)


def column_scales(
    X: Any, ledger: MuLedger, streams: Streams, public: PublicColumns, *, votes: float, moments: float
) -> ColumnScales:
    """Release the standard deviation of every column that has no public one.

    Parameters
    ----------
    X : (n, d) array, CSR matrix, RowSource or PartitionedTable
        At least two rows.  A gap in a row makes a difference of 0 of its column.
    ledger : MuLedger
        Two steps are spent; one if all columns without scales have bounds; none if all have scales.
    streams : Streams
    public : PublicColumns
    votes, moments : float
        Shares of mu², at least those of `scale_shares`.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours, mu² being what is spent from the ledger; n, d and what `public` holds are
    public.  Proof: docs/explanation/column-scales.md.
    """
    given, known = public.scaled, public.bounded
    if given.all():
        return ColumnScales(public.scale, np.zeros_like(public.scale), given, np.full_like(public.scale, np.inf))
    differences = pair_differences(X, streams.public)
    pairs, voting = int(differences.shape[0]), ~given & ~known
    ladder = moments >= (_LADDER * _noise(pairs, int((~given).sum()), ledger.mu)) ** 2
    rungs = np.where(public.boolean, 1, np.where(known, _BOUNDED_RUNGS, _RUNGS if ladder else 1))
    rungs[given] = 0
    lowest = np.where(given, 1.0, 2.0 * public.half_range / 2.0 ** (rungs - 1))  # (d,)
    found = known | given
    if voting.any():
        mu = ledger.spend("votes for scales", votes)
        lowest[voting], found[voting] = _voted_clips(differences, voting, ladder, mu, streams.noise)
    mu = ledger.spend("second moments of columns", moments)
    sums, sigma = _ladder_sums(differences, lowest, rungs, mu, streams.noise)  # (rungs, d)
    found &= given | (sums[0] >= _THERE * sigma)  # behind a vote that noise won there is nothing
    measured = _measured(sums, sigma, lowest, rungs, found, known, pairs)
    return ColumnScales(
        np.where(given, public.scale, measured.scale),
        np.where(given, 0.0, np.where(public.boolean, measured.std, np.hypot(measured.std, _UNSEEN))),
        found,
        np.where(given, np.inf, measured.clip),
    )


def _voted_clips(differences: Any, voting: Bools, ladder: bool, mu: float, bits: BitSource) -> tuple[Array, Bools]:
    """Release the lowest clip (or the only one) of the voting columns, and whether there is any; (voting,) each."""
    pairs, columns = int(differences.shape[0]), int(voting.sum())
    # One difference leaves one bin of every column and enters another. Counts of a chunk are exact, but for averages.
    error = math.sqrt(columns * _BINS) * CHUNK_ROWS * UNIT_ROUNDOFF if isinstance(differences, PersonTable) else 0.0
    change = SumBounds(vote_sensitivity(columns), error, columns * _BINS, 1.1 * pairs)
    counting = table_sums(partial(_of_sizes, partial(vote_counts, voting=voting)), differences)
    counts, sigma = gaussian_sum(counting, (columns, _BINS), change, mu, bits)
    return clips_from_votes(counts, sigma, ladder)


def clips_from_votes(counts: Array, sigma: float, ladder: bool) -> tuple[Array, Bools]:
    """Read the released votes: lowest clips, or only ones, and whether there are any; (columns,) each.

    A column of few values, such as 0 and 1, has its votes in one bin, most others in two, with the noise of both.
    """
    windows = counts[:, :-1] + counts[:, 1:]
    best, each = windows.argmax(axis=1), np.arange(len(counts))  # (columns,)
    least = math.sqrt(2.0 * math.log(2 * counts.size / _FALSE)) * sigma
    seen = (counts.max(axis=1) >= least) | (windows[each, best] >= math.sqrt(2.0) * least)
    one, other = (np.maximum(counts[each, best + side], 0.0) for side in (0, 1))
    upper = other / np.maximum(one + other, 1e-9)  # share of the upper bin
    clips = _edge(best + 0.5 + upper) * (_FOOT if ladder else _ALONE)
    alone = np.abs(upper - 0.5) >= 0.5 - _FEW
    only = best + (upper > 0.5)  # the bin that has them all; its whole width is to be had
    return np.where(alone, _edge(only if ladder else only + 1), clips), seen


def _edge(bins: NDArray[Any]) -> Array:
    """Return the difference at which a bin begins; fractions are places within a bin."""
    return np.asarray(2.0 ** (_FIRST_OCTAVE + _HALVES / 2.0 * bins))


def _ladder_sums(
    differences: Any, lowest: Array, rungs: NDArray[np.intp], mu: float, bits: BitSource
) -> tuple[Array, float]:
    """Release what every rung of every column adds, in units of the square of its clip; (rungs, d)."""
    (pairs, d), most = (int(size) for size in differences.shape), int(rungs.max())
    entries = int(rungs.sum())
    # Rungs are sums of numbers from 0 to 1: gamma times their number, for every entry.
    error = 1.01 * math.sqrt(entries) * CHUNK_ROWS * relative_error(CHUNK_ROWS)
    change = SumBounds(ladder_sensitivity(rungs), error, entries, 1.1 * pairs)
    adding = table_sums(partial(_of_sizes, partial(rung_sums, lowest=lowest, rungs=rungs)), differences)
    return gaussian_sum(adding, (most, d), change, mu, bits)


def _measured(
    sums: Array, sigma: float, lowest: Array, rungs: NDArray[np.intp], found: Bools, known: Bools, pairs: int
) -> ColumnScales:
    """Turn the released rungs into standard deviations: post-processing."""
    number = np.arange(len(sums))[:, None]  # (rungs, 1)
    squares = (lowest * 2.0**number) ** 2  # (rungs, d), of the clips
    least = np.where((number == 1) | known, _LIKELY, _SURE) * sigma
    counted = np.logical_and.accumulate((number == 0) | ((sums >= least) & (number < rungs)), axis=0)
    added = np.where(counted, np.maximum(sums, np.where(number == 0, sigma, 0.0)) * squares, 0.0)
    last, each = counted.sum(axis=0) - 1, np.arange(len(lowest))  # (d,)
    before = added[np.maximum(last - 1, 0), each]
    total = added.sum(axis=0) + np.where((last >= 2) & ~known, _beyond(added[last, each], before), 0.0)
    noise = sigma * np.sqrt(np.where(counted, squares**2, 0.0).sum(axis=0))
    scale = np.where(found, np.sqrt(total / (2.0 * pairs)), np.inf)
    return ColumnScales(scale, np.where(found, noise / (2.0 * total), np.inf), found, lowest * 2.0**last)


def _beyond(last: Array, before: Array) -> Array:
    """Return what lies above the last rung, if the ratio of successive rungs keeps falling; (d,)."""
    ratio = np.minimum(last / before, 1.0)
    more = np.zeros_like(last)
    for _ in range(_RUNGS):
        ratio = ratio * _FALL
        last = last * ratio
        more += last
    return more


# ---- What one difference amounts to --------------------------------------------------------------------------------


def vote_sensitivity(columns: int) -> float:
    """Return sqrt(2 columns), rounded up: what one difference can do to the votes (lemma 1)."""
    return sqrt_up(Fraction(2 * columns))


def ladder_sensitivity(rungs: NDArray[np.intp]) -> float:
    """Bound what one difference can do to all rungs of all columns that have any, rounded up (lemma 2)."""
    lowest = int((rungs > 0).sum())
    return sqrt_up(lowest + _STEP**2 * (int(rungs.sum()) - lowest))


def vote_counts(sizes: Array, columns: NDArray[np.intp] | None, d: int, *, voting: Bools) -> Array:
    """Count the differences in every bin of the voting columns, those below all bins left out; (voting, bins)."""
    # Exponent and one comparison: both are exact, which a logarithm is not (its last bit may depend on where in the
    # array an entry stands).
    fraction, exponent = np.frexp(sizes)
    halves = 2 * (exponent - 1) + (fraction >= math.sqrt(0.5))
    bins = np.minimum((halves - 2 * _FIRST_OCTAVE) // _HALVES, _BINS - 1)
    where = bins + _BINS * (np.arange(d) if columns is None else columns)
    counts = np.bincount(where[(sizes > 0.0) & (bins >= 0)], minlength=d * _BINS)
    return counts.reshape(d, _BINS)[voting].astype(np.float64)


def rung_sums(
    sizes: Array, columns: NDArray[np.intp] | None, d: int, *, lowest: Array, rungs: NDArray[np.intp]
) -> Array:
    """Sum what every rung of every column adds: min(D, B)²/B² and (min(D, 2B)² - min(D, B)²)/(2B)²; (rungs, d)."""
    most = int(rungs.max())
    in_clips = sizes / (lowest if columns is None else lowest[columns])
    sums = np.zeros((most, d))
    for number in range(most):
        share = np.minimum(np.ldexp(in_clips, -number), 1.0) ** 2
        added = np.maximum(share, 0.25) - 0.25 if number else share  # from 0 to 3/4, or to 1
        sums[number] = added.sum(axis=0) if columns is None else np.bincount(columns, weights=added, minlength=d)
    sums[np.arange(most)[:, None] >= rungs] = 0.0
    return sums


def _of_sizes(function: Callable[..., Array], rows: Any) -> Array:
    return function(*_sizes(rows), int(rows.shape[1]))


def _sizes(rows: Any) -> tuple[Array, NDArray[np.intp] | None]:
    """Return absolute values, gaps as zeros: (rows, d), or those stored and their columns."""
    if not sparse.issparse(rows):
        sizes = np.abs(np.asarray(rows, dtype=np.float64))
        return np.where(np.isfinite(sizes), sizes, 0.0), None
    stored = summed_rows(rows)
    return np.where(np.isfinite(stored.data), np.abs(stored.data), 0.0), stored.indices.astype(np.intp)
