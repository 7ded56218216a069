"""A private linear classifier: multinomial logistic regression by a few full gradient steps with Gaussian noise.

Every row counts about a private mean, at unit length and with a constant: z = (u, a).  Its residual g is what is
missing from the probabilities that the weights so far give to its label, shortened to a known length.  A step
releases the sum of z gᵀ with noise, and moves the weights by that over a noisy second moment of the rows, as Newton's
method would: so six steps are enough, and mu² is shared evenly among them.
Proof: docs/explanation/private-classifier.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.card import card, facts, sentence
from privspan._lib.rounding import relative_error
from privspan.privacy import PrivacyCost, UselessPlanWarning
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.privacy.release_card import cost_fact, warnings_of
from privspan.privacy.run import Run
from privspan.rows.door import open_table
from privspan.rows.labels import class_words, label_codes, labels_of
from privspan.rows.partitioned_rows import PerRow
from privspan.rows.scaling import Piece
from privspan.rows.table import Missing, Table
from privspan.rows.unit import CHUNK_ROWS
from privspan.subspace import Subspace
from privspan.sums.grid import SumBounds, gaussian_sum, gaussian_symmetric, grid_total, noise_level, upper_triangle
from privspan.sums.looks import CONSTANT
from privspan.sums.mean import mean_within
from privspan.sums.variance import check_columns, typical_length

Array = NDArray[np.float64]

LONGEST = 0.8  # of a residual, in lemma 1: it is at most sqrt(2) by itself
_ROUND = 1.0 - 2.0**-30  # more than the float64 error of the length of a residual
_SIZE = 1.0 + CONSTANT * CONSTANT  # the squared length of (u, a), exact in binary
_ROOT_SIZE = math.nextafter(math.sqrt(_SIZE), 2.0)  # the length of (u, a), rounded up: lemma 1


@dataclass(frozen=True)
class ClassifierTuning:
    """Shares and steps, fitted on other tables than benchmarks/scripts/classifiers.py reports."""

    mean: float = 0.1  # share of mu²
    moment: float = 0.1  # share of mu²
    length: float = 0.3  # share of the mu² of the mean, for the typical length
    reach: float = 1.2  # × the typical length, where rows are clipped for the mean
    steps: int = 6  # more have more noise each, fewer end too early
    widest: int = 512  # columns up to which there is a second moment
    curvature: float = 0.3  # of n, beyond: the largest eigenvalue that is likely
    ridge: float = 0.5  # × the noise of a step along all columns together
    useless: float = 1.0  # rows per noise, below which a classifier is hardly better than chance
    rough: float = 10.0  # the same, below which it is rough
    close: float = 60.0  # the same, from which it is nearly as good as without privacy


CLASSIFIER = ClassifierTuning()


@dataclass(frozen=True, repr=False)
class PrivateClassifier:
    """A released classifier and what it cost.

    Attributes
    ----------
    classes : tuple
        The labels, as they were given.
    weights : (k + 1, classes) array
        Read-only. Scores of a row are (u, a) times these, u being the row (or its coordinates in the subspace) less
        `centre`, at unit length, and a a constant.
    centre : (k,) array
        Private mean of the rows, or of their coordinates.
    subspace : Subspace or None
    noise : float
        Standard deviation of the noise in the sum of a step.
    outlook : str
        What to expect, from public numbers alone: see `classifier_outlook`.
    cost : PrivacyCost
    private : bool
        False when a seed was given.
    """

    classes: tuple[object, ...]
    weights: Array
    centre: Array
    subspace: Subspace | None
    noise: float
    outlook: str
    cost: PrivacyCost
    private: bool

    def probabilities(self, X: object) -> Array:
        """Return how likely each class is for each row, (n, classes). Not private where the rows are."""
        source: Table = open_table(X, accept_sparse=False).here()
        check_columns(source, self.subspace)
        d = self.centre.shape[0] if self.subspace is None else self.subspace.ambient_dimension
        checks.columns(source, d)
        with np.errstate(all="ignore"):
            source = (
                source if self.subspace is None else source.coordinates(self.subspace.basis, self.subspace.offset)
            )
            rows = source.rows(self.centre, keep=False)
            return np.asarray(rows.map_rows(partial(_probabilities, weights=self.weights)))

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the likeliest label of each row, (n,). Not private where the rows are."""
        labels: NDArray[np.generic] = np.asarray(self.classes)
        return np.asarray(labels[self.probabilities(X).argmax(axis=1)])

    def __repr__(self) -> str:
        k = f"{len(self.centre)} columns" if self.subspace is None else f"{len(self.centre)} dimensions"
        return f"PrivateClassifier({len(self.classes)} classes, {k}, {self.cost}, private={self.private})"

    def _repr_html_(self) -> str:
        """Show it as a card in a notebook."""
        known = [cost_fact(self.cost.epsilon, self.cost.delta, self.private)]
        known += [("classes", ", ".join(map(str, self.classes))), ("noise of a step", f"{self.noise:.2g}")]
        return card("PrivateClassifier", *warnings_of(self.private), facts(known), sentence(self.outlook))


def private_classifier(
    X: object,
    y: object,
    *,
    classes: Sequence[object],
    epsilon: float,
    delta: float,
    subspace: Subspace | None = None,
    person: object = None,
    max_rows: int = MOST_ROWS,
    missing: Missing = "fill",
    rng: RandomLike = None,
    ledger: LedgerLike = None,
) -> PrivateClassifier:
    """Release a linear classifier of the rows of X: multinomial logistic regression.

    Rows are centred at a private mean and scaled to unit length, so no bounds on the values are needed; columns in
    very different units should be standardised first.

    Parameters
    ----------
    X : (n, d) array, memory map, data frame, RowSource, or Dask array or dataframe
        One person per row.
    y : (n,) array, list, series, or Dask array or series of numbers
        The label of each row, text or whole numbers. A row with another label than those of `classes` counts for the
        mean and for the spread of the rows only.
    classes : sequence
        The labels: public, two or more, and not read off the data.
    epsilon, delta : float
        Privacy budget.
    subspace : Subspace, optional
        Public, or released at its own cost. Only the k coordinates in it are used.
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids.  The guarantee is then for persons, and n is their number: docs/explanation/several-rows.md.
    max_rows : int, default=8
        With `person`: the most rows that are used of one person.
    missing : {"fill", "zero-row"}, default="fill"
        How a gap (a missing or non-finite cell) is treated: it counts as the mean, or as the offset of the subspace;
        or it makes its whole record a row of zeros.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    PrivateClassifier

    Warns
    -----
    UselessPlanWarning
        If public numbers show that there are too few rows.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy, and mu-GDP with the mu of that budget, for replace-one neighbours (a row
    and its label together) and every data set; n, d, the classes and all parameters are public.  Assumed: float64
    arithmetic, and that the products of a matrix library compute every output row from its own input row.  With
    `person`, for replacing one person.  Proof: docs/explanation/private-classifier.md,
    docs/explanation/several-rows.md.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat(["ill", "well"], 5_000)
    >>> X = np.random.default_rng(0).standard_normal((10_000, 3)) + (y == "ill")[:, None]
    >>> made = private_classifier(X, y, classes=["ill", "well"], epsilon=1.0, delta=1e-6, rng=0)
    >>> bool((made.predict(X) == y).mean() > 0.78)
    True
    """
    with Call("private_classifier", epsilon, delta, rng, ledger, X, person) as call:
        words = class_words(classes)
        codes, table = label_codes(y, words), call.persons(X, person, max_rows)
        source = call.open(table, accept_sparse=False).with_gaps(missing)
        check_columns(source, subspace)
        labels = labels_of(source, codes, words)
        n, k = int(source.shape[0]), int(source.shape[1]) if subspace is None else subspace.dimension
        rows_per_noise = _rows_per_noise(n, k, len(words), call.budget.mu)
        if rows_per_noise < CLASSIFIER.useless:
            call.warn(_said(rows_per_noise), UselessPlanWarning)
        run = call.begin(gaussian=True)
        return call.finish(classifier_within(run, source, labels, subspace, tuple(classes)))


def classifier_within(
    run: Run,
    source: Table,
    labels: PerRow,
    subspace: Subspace | None,
    classes: tuple[object, ...],
    tuning: ClassifierTuning = CLASSIFIER,
) -> PrivateClassifier:
    """Do what `private_classifier` does for the mu of a run: docs/explanation/private-classifier.md."""
    if subspace is not None:
        source = source.coordinates(subspace.basis, subspace.offset)  # (n, k)
    n, k = (int(size) for size in source.shape)
    outlook = _said(_rows_per_noise(n, k, len(classes), run.account.mu))
    centre = np.zeros(k)
    if subspace is None or subspace.offset is None:
        centre = _mean_of(source, run.nested("mean", tuning.mean), tuning)
    rows = source.rows(centre)
    step = partial(
        _eased, noise=0.0, values=np.full(k + 1, tuning.curvature * n), axes=np.eye(k + 1), ridge=tuning.ridge
    )
    if k <= tuning.widest:
        level = noise_level(moment_bounds(n, k), run.account.spend("second moment", tuning.moment))
        total = grid_total(rows.map_chunks(_moment), (k + 1, k + 1), level.grid)
        values, axes = np.linalg.eigh(gaussian_symmetric(total, level, run))
        step = partial(_eased, noise=level.sigma, values=values, axes=axes, ridge=tuning.ridge)
    weights, kept, bounds = np.zeros((k + 1, len(classes))), [], residual_bounds(n, k, len(classes))
    share, sigma = run.account.left / tuning.steps * (1.0 - 2.0**-40), 0.0
    for number in range(tuning.steps):
        mu = run.account.spend(f"step {number + 1}", share)
        sums = rows.map_chunks(partial(_products, weights=weights), labels)
        total, sigma = gaussian_sum(sums, weights.shape, bounds, mu, run)
        total -= total.mean(axis=1, keepdims=True)  # residuals sum to 0, and so may their noise
        weights = weights + len(classes) * step(total, sigma)
        kept.append(weights)
    weights = np.mean(kept[tuning.steps // 2 :], axis=0)
    for array in (weights, centre):
        array.flags.writeable = False
    return PrivateClassifier(classes, weights, centre, subspace, sigma, outlook, run.account.cost(), run.private)


def _mean_of(source: Table, run: Run, tuning: ClassifierTuning) -> Array:
    """Return a private mean of rows of like length, nearer to zero where noise is all that it holds."""
    reach = tuning.reach * typical_length(source, run.account.spend("typical length", tuning.length), run)
    found = mean_within(run, source, None, reach)
    square = float(found.mean @ found.mean)
    return found.mean * max(0.0, 1.0 - found.noise**2 * len(found.mean) / square) if square > 0.0 else found.mean


def moment_bounds(n: int, k: int) -> SumBounds:
    """Return what one record can do to the second moment of the rows (u, a), over sqrt(2)."""
    error = 1.1 * CHUNK_ROWS * relative_error(CHUNK_ROWS + 4) * _SIZE
    return SumBounds(_SIZE, error, upper_triangle(k + 1), 1.1 * _SIZE * n)


def residual_bounds(n: int, k: int, classes: int) -> SumBounds:
    """Return what one record can do to the sum of z gᵀ: lemma 1 of docs/explanation/private-classifier.md."""
    one = LONGEST * _ROOT_SIZE  # of one record
    error = 1.1 * CHUNK_ROWS * relative_error(CHUNK_ROWS + 4) * one
    return SumBounds(2.0 * math.nextafter(one, 2.0), error, (k + 1) * classes, 1.1 * one * n)


def classifier_outlook(n: int, columns: int, classes: int, *, epsilon: float, delta: float) -> str:
    """Say what to expect of `private_classifier`, from public numbers alone: it needs no data and costs nothing.

    Parameters
    ----------
    n, columns, classes : int
        Rows, columns (or dimensions of the subspace) and classes.
    epsilon, delta : float
        Privacy budget.

    Examples
    --------
    >>> classifier_outlook(40_000, 100, 2, epsilon=1.0, delta=1e-6)
    'Nearly as good as without privacy, on most tables.'
    """
    with Call("classifier_outlook", epsilon, delta) as call:
        return _said(_rows_per_noise(int(n), int(columns), int(classes), call.budget.mu))


def _rows_per_noise(n: int, k: int, classes: int, mu: float, tuning: ClassifierTuning = CLASSIFIER) -> float:
    """Return n over the noise of a step in all weights together."""
    share = (1.0 - tuning.mean - tuning.moment) / tuning.steps
    return n * mu * math.sqrt(share) / (2.0 * LONGEST * math.sqrt((k + 1) * (classes - 1)))


def _said(rows_per_noise: float, tuning: ClassifierTuning = CLASSIFIER) -> str:
    if rows_per_noise < tuning.useless:
        return (
            "Hardly better than chance: the noise outweighs the rows. Fewer columns, or a larger epsilon, would help."
        )
    if rows_per_noise < tuning.rough:
        return "Rough: only classes that lie far apart are distinguished."
    if rows_per_noise < tuning.close:
        return "Somewhat worse than without privacy; classes that lie close together suffer most."
    return "Nearly as good as without privacy, on most tables."


# ---- One step ----------------------------------------------------------------------------------------------------


def residuals(scores: Array, labels: Array) -> Array:
    """Return what is missing from the probabilities of each row, no longer than `LONGEST`; 0 without a label."""
    missing = -_softmax(scores)
    known = np.flatnonzero(labels >= 0.0)
    missing[known, labels[known].astype(np.intp)] += 1.0
    lengths = np.sqrt((missing * missing).sum(axis=1))
    missing *= np.minimum(1.0, LONGEST * _ROUND / np.maximum(lengths, LONGEST * _ROUND))[:, None]
    missing[labels < 0.0] = 0.0
    return missing


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _probabilities(piece: Piece, weights: Array) -> Array:
    return _softmax(piece @ weights[:-1] + CONSTANT * weights[-1])


def _moment(piece: Piece) -> Array:
    rows = np.column_stack([piece, np.full(len(piece), CONSTANT)])
    return np.asarray(rows.T @ rows)


def _products(piece: Piece, labels: Array, weights: Array) -> Array:
    """Return the sum of z gᵀ over the rows of a piece, (k + 1, classes)."""
    missing = residuals(piece @ weights[:-1] + CONSTANT * weights[-1], labels)
    return np.vstack([piece.T @ missing, CONSTANT * missing.sum(axis=0)])


def _eased(total: Array, sigma: float, *, noise: float, values: Array, axes: Array, ridge: float) -> Array:
    """Divide by the second moment, trusting no eigenvalue below its noise, with a ridge for the noise of the sum."""
    root = math.sqrt(len(values))
    eased = np.maximum(values, noise * root) + ridge * sigma * root
    return np.asarray((axes / eased) @ (axes.T @ total))
