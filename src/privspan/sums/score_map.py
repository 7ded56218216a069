"""A private picture of the scores of people: a noisy histogram over two components.

Each record is counted in one cell of a grid that public or released numbers fix, or in the one cell for all that lies
off the grid.  A replacement takes one from a cell and adds one to another, so the counts move by at most sqrt(2), and
noise of standard deviation sqrt(2)/mu in every cell is enough, however many cells there are.  Smoothing the counts,
cutting them at zero and drawing points from them is post-processing.
Proof: docs/explanation/score-map.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from privspan._lib import checks
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan.privacy import PrivacyCost, Release
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Run
from privspan.rows.labels import class_words, label_codes, labels_of
from privspan.rows.partitioned_rows import PerRow, known_chunks, per_row
from privspan.rows.table import Table
from privspan.subspace import Subspace
from privspan.sums.grid import MOMENTS, SumBounds, gaussian_sum, most_share
from privspan.sums.variance import check_columns, typical_length

Array = NDArray[np.float64]

_NORMAL = 0.53  # geometric mean of |z| for a normal z, in standard deviations: exactly exp(-(log 2 + 0.5772) / 2)
_LARGEST_SIDE = 1024  # memory: of a map, whatever the user says


@dataclass(frozen=True)
class MapTuning:
    """Of a map of scores; chosen by hand, and benchmarks/scripts/score_map.py measures what the maps show."""

    reach: float = 3.0  # standard deviations from the centre to the border: one normal person in 200 is outside
    spread: float = 0.05  # share of mu², for each spread that nobody has released yet
    fewest: int = 8  # cells along an axis, unless the user says otherwise: with fewer there is no picture
    most: int = 64  # the same: more would be smoothed away again
    widths: tuple[float, ...] = (0.0, *(2.0 ** (step / 2) for step in range(-1, 7)))  # of the kernel, in cells


MAP = MapTuning()


@dataclass(frozen=True)
class ScoreMap:
    """A released histogram of scores, and what it cost.

    Attributes
    ----------
    counts : (rows, columns) array
        Noisy counts, read-only.  They are unbiased, so some are negative.  The first axis is the first component.
    edges : pair of arrays
        Borders of the cells along either component, in the units that ``transform`` has.
    outside : float
        Noisy count of the records off the grid, those without a finite score among them.
    noise : float
        Standard deviation of the noise in every count.
    n : int
        How many records there are, which is public.
    components : pair of int
        Which components these are, from 0.
    cost : PrivacyCost
    private : bool
        False when a seed was given, here or for the release that gave the components.
    labels : tuple
        The classes, if people were counted by class: `of` returns the map of each. `counts` are then their sums, with
        the noise of all of them; people without a class are counted as `outside`.
    class_counts : (classes, rows, columns) array or None
        Noisy counts by class, read-only.
    """

    counts: Array
    edges: tuple[Array, Array]
    outside: float
    noise: float
    n: int
    components: tuple[int, int]
    cost: PrivacyCost
    private: bool
    labels: tuple[object, ...] = ()
    class_counts: Array | None = None

    def __repr__(self) -> str:
        cells = " × ".join(map(str, self.counts.shape))
        first, second = (component + 1 for component in self.components)
        promise = str(self.cost) if self.private else "not private: a seed was given"
        return (
            f"ScoreMap({cells} cells, components {first} and {second}, {self.n:,} records, "
            f"each count ± {self.noise:.2g} (noise), {promise})"
        )

    def of(self, label: object) -> ScoreMap:
        """Return the map of one class; its `n` is an estimate.  Post-processing.

        Parameters
        ----------
        label : one of `labels`
        """
        if self.class_counts is None or label not in self.labels:
            known = ", ".join(map(str, self.labels)) or "none"
            raise ParameterError("{label} must be one of the labels of this map: {known}.", known=known)
        place = self.labels.index(label)
        people = _nearest_counts(self.class_counts, min(max(self.n - self.outside, 0.0), self.n))[place].sum()
        noise = self.noise / math.sqrt(len(self.labels))
        own = {"counts": self.class_counts[place], "outside": 0.0, "noise": noise, "n": round(float(people))}
        return replace(self, **own, labels=(), class_counts=None)

    def smoothed(self, width: float | None = None) -> Array:
        """Return the counts smoothed by a Gaussian kernel, without negative counts.

        They are not negative and sum to the number of records that are not `outside`.  Post-processing: it
        costs nothing, and every width may be tried.

        Parameters
        ----------
        width : float, optional
            Standard deviation of the kernel, in cells.  By default the one with the least estimated error (Stein's
            estimate, from the released counts and the size of the noise).

        Returns
        -------
        (rows, columns) array
        """
        if width is None:
            width = min(MAP.widths, key=self._estimated_error)
        checks.non_negative(width=width)
        return _nearest_counts(_blurred(self.counts, float(width)), min(max(self.n - self.outside, 0.0), self.n))

    def sample(self, size: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw artificial points from the smoothed map, uniform within cells, for a scatter plot.  Post-processing.

        Parameters
        ----------
        size : int
            How many points.
        rng : None, int or Generator
            A seed is safe here: this noise protects nobody's data.

        Returns
        -------
        (size, 2) array
        """
        checks.integer_at_least(0, size=size)
        weights = self.smoothed().ravel()
        if not weights.any():
            raise ParameterError(
                "There is nothing to sample from: all records seem to be outside the grid; give other {ranges}."
            )
        generator = np.random.default_rng(rng)
        cells = generator.choice(len(weights), size=int(size), p=weights / weights.sum())
        places = np.unravel_index(cells, self.counts.shape)
        low = np.column_stack([edge[at] for edge, at in zip(self.edges, places, strict=True)])  # (size, 2)
        sides = np.array([edge[1] - edge[0] for edge in self.edges])
        return np.asarray(low + sides * generator.random((int(size), 2)))

    def _estimated_error(self, width: float) -> float:
        """Return Stein's estimate of the squared error of a width, up to a constant.

        A count has the variance of the noise and, as a count of people who might be others, about its own size.
        """
        variance = self.noise**2 * self.counts.size + self.n
        impulse = np.zeros_like(self.counts)
        middle = impulse.shape[0] // 2, impulse.shape[1] // 2
        impulse[middle] = 1.0
        own_weight = float(_blurred(impulse, width)[middle])
        return float(((self.counts - _blurred(self.counts, width)) ** 2).sum()) + 2.0 * own_weight * variance


def _blurred(counts: Array, width: float) -> Array:
    return counts if width == 0.0 else np.asarray(gaussian_filter(counts, width, mode="constant", truncate=4.0))


def _nearest_counts(counts: Array, total: float) -> Array:
    """Return the nearest array that is nowhere negative and has this sum: all less one number, cut at zero."""
    if total <= 0.0:
        return np.zeros_like(counts)
    falling = np.sort(counts, axis=None)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)  # what to take off if so many stay positive
    return np.asarray(np.maximum(counts - excess[np.flatnonzero(falling > excess)[-1]], 0.0))


def private_score_map(
    X: object,
    subspace: Subspace | Release,
    *,
    epsilon: float,
    delta: float,
    components: tuple[int, int] = (0, 1),
    bins: int | tuple[int, int] | None = None,
    ranges: Sequence[tuple[float, float]] | None = None,
    classes: object = None,
    labels: Sequence[object] | None = None,
    person: object = None,
    rng: RandomLike = None,
    ledger: LedgerLike = None,
) -> ScoreMap:
    """Release a histogram of people's scores on two components: a scatter plot that may be shown.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, data frame, RowSource, or Dask array or dataframe
        One person per row.  A gap counts as the released centre, or as 0 without one, as it does in ``transform``.  A
        row off the grid, or with a score that is not finite, is counted as `outside`.
    subspace : Release, Subspace or fitted estimator
        Public, or released at its own cost.  The scale and centre of a `Release` are used, so the scores are those of
        ``PrivatePCA.transform``.
    epsilon, delta : float
        Privacy budget, in addition to that of the subspace.
    components : pair of int, default=(0, 1)
        Which components, from 0.
    bins : int or pair of int, optional
        Cells along either component.  By default √(n mu), from 8 to 64: a typical count is then above its noise.
    ranges : pair of (low, high), optional
        Public ends of the grid along either component; never read off the data.  By default three standard deviations
        about the centre, from the variances of the release.  Where it has none, spreads are measured for a tenth of
        mu².
    classes : (n,) array, list, series, or Dask array or series of numbers, optional
        The class of each row, text or whole numbers: people are then counted by class, at no further cost, and
        ``ScoreMap.of`` has the map of each. A row of no class, or of one that is not among the labels, is `outside`.
    labels : sequence, optional
        The classes: public, two or more; needed with `classes`.
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids.  One row of each person is then drawn and counted; the guarantee is for persons, n their
        number.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    ScoreMap

    Guarantee
    ---------
    (epsilon, delta)-differential privacy, and mu-GDP with the mu of that budget, for replace-one neighbours and every
    data set; n, d and all parameters are public, and the subspace is public or was released at its own cost.
    Assumed: each person is one row, and the products of a matrix library compute every output row from its own input
    row.  Proof: docs/explanation/score-map.md.

    Examples
    --------
    >>> import numpy as np
    >>> import privspan as ps
    >>> sides = np.random.default_rng(0).choice([-1.0, 1.0], size=(20_000, 1)) * [5.0, 0.0, 0.0]
    >>> X = sides + np.random.default_rng(1).standard_normal((20_000, 3))
    >>> release = ps.private_pca(X, 2, epsilon=1.0, delta=1e-6, rng=0)
    >>> picture = ps.private_score_map(X, release, epsilon=1.0, delta=1e-6, rng=0)
    >>> along = picture.smoothed().sum(axis=1)  # over the second component
    >>> bool(along[len(along) // 2] < 0.1 * along.max())  # two clusters, and nobody between them
    True
    """
    with Call("private_score_map", epsilon, delta, rng, ledger, X, person) as call:
        if (classes is None) is not (labels is None):
            raise ParameterError("{classes}, the class of each row, and {labels}, their list, go together.")
        words = () if labels is None else class_words(labels, name="labels")
        codes = None if classes is None else label_codes(classes, words, name="classes")
        table = call.open(call.persons(X, person, 1))
        source = table.one_each()
        if codes is not None:
            codes = labels_of(table, codes, words, name="classes")
            codes = getattr(codes, "slots", codes)  # of persons, one row each
        view = _view(subspace, components)
        check_columns(source, view.subspace)
        sides = None if bins is None else _sides(bins)
        ends = None if ranges is None else _ends(ranges)
        measured = 0.0 if ends is not None or view.spreads is not None else 2.0 * MAP.spread
        run = call.begin(gaussian=True, empty=most_share(measured, MOMENTS))
        return call.finish(score_map_within(run, source, view, sides, ends, codes, tuple(labels or ())))


def score_map_within(
    run: Run,
    source: Table,
    view: _View,
    sides: tuple[int, int] | None,
    ends: Sequence[tuple[float, float]] | None,
    classes: PerRow | None = None,
    labels: tuple[object, ...] = (),
) -> ScoreMap:
    """Do what `private_score_map` does for the mu of a run: docs/explanation/score-map.md."""
    scores = _scores(source, view)  # (n, 2)
    if ends is None:
        ends = [(-half, half) for half in _half_widths(scores, view.spreads, run)]
    mu = run.account.spend("counts", run.account.left, MOMENTS)
    count, n = max(len(labels), 1), source.shape[0]
    sides = _usual_sides(n, mu / count) if sides is None else sides
    edges = [np.linspace(*end, side + 1) for end, side in zip(ends, sides, strict=True)]
    noisy, sigma = cell_counts(scores.values(), edges, mu, run, classes, count)
    by_class = noisy[:-1].reshape(count, *sides)
    counts = by_class.sum(axis=0)
    for array in (counts, by_class, *edges):
        array.flags.writeable = False
    private, both, noise = run.private and view.private, (edges[0], edges[1]), sigma * math.sqrt(count)
    whole = counts, both, float(noisy[-1]), noise, n, view.components, run.account.cost(), private
    return ScoreMap(*whole, labels, by_class if labels else None)


def cell_counts(
    scores: PerRow, edges: Sequence[Array], mu: float, run: Run, classes: PerRow | None = None, labels: int = 1
) -> tuple[Array, float]:
    """Release how many records fall into each cell, row by row, and last how many into none; also the noise.

    With classes, from 0 on and below 0 for none, there is a cell for each pair of a class and a cell.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours, for scores that are each a function of its own record and for borders that are
    public or released.  Proof: docs/explanation/score-map.md, lemma 1.
    """
    each = math.prod(len(edge) - 1 for edge in edges)
    count = labels * each + 1
    cells = per_row(partial(cells_of, edges=edges), scores)  # (n,)
    if classes is not None:
        cells = per_row(partial(_of_classes, each=each, labels=labels), cells, classes)
    sums = known_chunks(partial(_counted, count=count), cells)
    return gaussian_sum(sums, (count,), count_bounds(len(scores), count), mu, run)


def count_bounds(n: int, count: int) -> SumBounds:
    """Return what one record can do to the counts: one cell loses, one gains.  Float64 counts without an error."""
    return SumBounds(math.nextafter(math.sqrt(2.0), 2.0), 0.0, count, 1.0 * n, empty=1.0)


def cells_of(scores: Array, edges: Sequence[Array]) -> NDArray[np.intp]:
    """Return the number of the cell that holds each record, and the number of cells where none does; (rows,).

    A cell has its lower border, and the last one along an axis its upper border too.  By comparisons alone: each
    number depends on the scores of its own record, and on no arithmetic with them.
    """
    cells, inside, sides = (
        np.zeros(len(scores), np.intp),
        np.ones(len(scores), bool),
        [len(edge) - 1 for edge in edges],
    )
    for along, edge, side in zip(scores.T, edges, sides, strict=True):
        at = np.searchsorted(edge, along, side="right") - 1  # NaN comes after all others
        at = np.where(along == edge[-1], side - 1, at)
        inside &= (at >= 0) & (at < side)
        cells = cells * side + at
    return np.where(inside, cells, math.prod(sides))


def _of_classes(cells: NDArray[np.intp], classes: Array, each: int, labels: int) -> NDArray[np.intp]:
    """Return the cells of the grids of all classes, one after the other; the last for what is in no cell or class."""
    known = (classes >= 0.0) & (cells < each)
    return np.where(known, classes.astype(np.intp) * each + cells, labels * each)


def _counted(cells: NDArray[np.intp], count: int) -> Array:
    return np.bincount(cells, minlength=count).astype(np.float64)


# ---- The scores, as `transform` has them ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _View:
    """Two components, the units of the columns, and what is known of the spread along them."""

    subspace: Subspace
    components: tuple[int, int]
    units: Array | None  # (d,)
    ends: tuple[Array, Array] | None  # (d,) each: where cells are cut off
    spreads: Array | None  # (2,)
    private: bool


def _view(given: Any, components: Any) -> _View:
    """Return what is looked at, or refuse it: from public and released numbers alone."""
    made = getattr(given, "release_", given)
    whole = made.subspace if isinstance(made, Release) else made
    if isinstance(made, Release) and whole is None:
        raise ParameterError("{subspace} must be a release with a subspace; this one abstained.")
    if not isinstance(whole, Subspace):
        raise ParameterTypeError("{subspace} must be a Release or a Subspace; got {kind}.", kind=type(made).__name__)
    first, second = _components(components, whole.dimension)
    two = [first, second]
    extras = made.extras if isinstance(made, Release) else {}
    if isinstance(made, Release) and made.parameters.get("without_units"):
        raise ParameterError(
            "{subspace} must have a centre and a scale for every column; this release lacks some. Fit again with "
            "public {bounds}, more rows or a larger epsilon."
        )
    units: Any = extras.get("scale")
    ends: Any = (extras["low"], extras["high"]) if "low" in extras else None
    variances: Any = extras.get("explained_variance")
    spreads = None if variances is None else np.sqrt(np.asarray(variances, dtype=np.float64)[two])
    if spreads is not None and not (np.isfinite(spreads) & (spreads > 0.0)).all():
        spreads = None  # what was too small to measure there is measured here
    private = made.private if isinstance(made, Release) else True
    return _View(Subspace(whole.basis[:, two], offset=whole.offset), (first, second), units, ends, spreads, private)


def _components(components: Any, k: int) -> tuple[int, int]:
    if not isinstance(components, Sequence) or len(components) != 2:
        raise ParameterTypeError("{components} must be two numbers of components, as in (0, 1).")
    for component in components:
        checks.integer_at_least(0, components=component)
    first, second = map(int, components)
    if first == second or max(first, second) >= k:
        template = "{components} must be two different ones of {k}, numbered from 0; got {first} and {second}."
        raise ParameterError(template, k=k, first=first, second=second)
    return first, second


def _sides(bins: Any) -> tuple[int, int]:
    both = tuple(bins) if isinstance(bins, Sequence) else (bins, bins)
    if len(both) != 2:
        raise ParameterTypeError("{bins} must be an integer, or two of them.")
    for side in both:
        checks.integer_at_least(1, bins=side)
        if side > _LARGEST_SIDE:
            raise ParameterError(
                "{bins} must be at most {largest_side}; got {got}.", largest_side=_LARGEST_SIDE, got=int(side)
            )
    return int(both[0]), int(both[1])


def _usual_sides(n: int, mu: float) -> tuple[int, int]:
    side = max(MAP.fewest, min(MAP.most, round(math.sqrt(n * mu))))
    return side, side


def _ends(ranges: Any) -> list[tuple[float, float]]:
    try:
        ends = np.asarray(ranges, dtype=np.float64)
    except (TypeError, ValueError):
        ends = np.empty(0)
    if ends.shape != (2, 2):
        raise ParameterTypeError("{ranges} must be two pairs of numbers, as in ((-1, 1), (-2, 2)).")
    if not (np.isfinite(ends) & (np.abs(ends) <= 2.0**500)).all() or not (ends[:, 0] < ends[:, 1]).all():
        raise ParameterError("{ranges} must be two pairs of finite numbers, the lower one first.")
    return [(float(low), float(high)) for low, high in ends]


def _scores(source: Table, view: _View) -> Table:
    """Return the scores of every record, in its units and from its centre, each from its own row; (n, 2)."""
    rows = source if view.ends is None else source.cut_off(*view.ends)
    rows = rows if view.units is None else rows.in_units(view.units)
    return rows.coordinates(view.subspace.basis, view.subspace.offset).held()


def _half_widths(scores: Table, spreads: Array | None, run: Run) -> list[float]:
    """Return how far the grid reaches along either component; spreads that are not known yet are measured."""
    if spreads is not None:
        return [MAP.reach * float(spread) for spread in spreads]
    mus = [run.account.spend(f"spread {axis}", MAP.spread) for axis in (1, 2)]
    return [
        MAP.reach / _NORMAL * typical_length(scores.then(partial(_one_of, axis=axis), columns=1), mu, run)
        for axis, mu in enumerate(mus)
    ]


def _one_of(scores: Array, axis: int) -> Array:
    return scores[:, axis : axis + 1]
