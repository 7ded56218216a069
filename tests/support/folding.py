"""Looks whose factors are multiplied into thin products, against exact arithmetic on the rows they stand for."""

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

from privspan.rows.unit import Rows
from privspan.sums import localised, variance
from privspan.sums.early_gram import ClippedGram, EarlyGram
from privspan.sums.grid import row_bounds, row_sums
from privspan.sums.lazy_gauss import UnitGram
from privspan.sums.localised import INNER_CAP, local_view, record_weights
from privspan.sums.looks import AugmentedGram

OVER_HALF = 0.5 + 2.0**-11  # by more than the lengths of rows are rounded up


def adversarial_table(rng, n, d):
    """Rows of lengths from 1e-120 to 1e120, far from zero in some columns, some repeated with opposite signs."""
    X = (rng.standard_normal((n, d)) + 100.0 * (rng.random(d) < 0.3)) * 10.0 ** rng.integers(-120, 120, (n, 1))
    X[1::2] = -np.nextafter(X[: n - 1 : 2], np.inf)[: len(X[1::2])]  # sums cancel, all but the last bits
    return X


def folded_rows(rows):
    """Return the real vectors, factor times row, that `Rows.map_folded` sums over, as lists of fractions."""
    found = []

    def noted(piece, factors):
        for row, factor in zip(piece, factors, strict=True):
            found.append([Fraction(float(factor)) * Fraction(float(entry)) for entry in row])
        return np.zeros(1)

    list(rows.map_folded(noted))
    return found


def exact_moment(vectors):
    """Return the sum of the outer products of vectors of fractions."""
    d = len(vectors[0])
    return [[sum(vector[i] * vector[j] for vector in vectors) for j in range(d)] for i in range(d)]


def distance(computed, exact):
    """Return the Frobenius norm of the difference of an array and a matrix of fractions, in float64."""
    return float(((exactly(computed) - np.array(exact)) ** 2).sum()) ** 0.5


def in_turn(source, directions):
    """Return the products of one chunk with directions that are asked for in two passes: they share one charge."""
    half = directions.shape[1] // 2
    return np.hstack([*source.products(directions[:, :half]), *source.products(directions[:, half:])])


def errors_over_charges(seed, n=24, d=4, b=4):
    """Return the largest error of a look, whole or in some directions, over what is charged for it."""
    rng = np.random.default_rng(seed)
    rows, f, a = Rows(adversarial_table(rng, n, d)), rng.random(n), 13.0 / 64.0
    vectors = folded_rows(rows)
    block = np.linalg.qr(rng.standard_normal((d + 1, b)))[0]
    worst = 0.0
    for source, lifted in (
        (UnitGram(rows), vectors),
        (AugmentedGram(rows, [None]), [[*vector, Fraction(a)] for vector in vectors]),
        (
            AugmentedGram(rows, [f]),
            [
                [*(Fraction(own) * x for x in vector), Fraction(a)]
                for own, vector in zip(f.tolist(), vectors, strict=True)
            ],
        ),
    ):
        moment, directions = exact_moment(lifted), block[: len(lifted[0])]
        columns = [[Fraction(float(entry)) for entry in column] for column in directions.T]
        image = np.array(moment) @ np.array(columns).T
        (whole,) = source.products(None)
        for found, exact, asked in ((whole, moment, 0), (in_turn(source, directions), image, b)):
            charge = source.chunk_error(asked)
            off = distance(found, exact)
            worst = max(worst, off / charge if charge else np.inf if off else 0.0)
    return worst


def single_rows(X, centre, clip=None):
    """Return the rows of a float32 table about a centre, made in float32."""
    return Rows(X, centre=centre, single=True, clip=clip)


def single_errors_over_charges(seed, n=200, d=5, b=3):
    """Return what `change_over_charge` does for a random table, neighbour and block of directions."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) + 30.0).astype(np.float32)
    other, number = X.copy(), int(rng.integers(n))
    other[number] = rng.standard_normal(d) * 10.0 ** rng.integers(-3, 6)
    centre, f = rng.standard_normal(d) + 30.0, rng.random(n)
    return change_over_charge(X, other, number, centre, f, np.linalg.qr(rng.standard_normal((d + 1, b)))[0])


def lost_bits_over_charge(n=128, d=40):
    """Return the same for a row that decides whether half of its piece is lost.

    Half of the rows add a little over one half each, just beyond a power of two, and the others a little less than
    half of its last bit, which float32 drops.  Without the first row the sum stays below that power, its last bit is
    half as large, and the others count.  Random tables come nowhere near this: they round much the same before and
    after a replacement.
    A BLAS may add up a few sums in turn, more of them in wide products, so bits of several sizes and products of two
    widths are tried; tiny ones it may do in another way.
    """
    X = np.zeros((n, d), dtype=np.float32)
    X[:, 0] = 3.0
    other, f = X.copy(), np.full(n, np.sqrt(OVER_HALF))
    other[0] = 7.0 * np.eye(d)[1]
    worst = 0.0
    for in_turn, b in product((1, 2, 4, 8), (4, 10)):
        f[n // 2 :] = np.sqrt(0.4999 * 2.0**-23 * (n // 4) / in_turn)
        worst = max(worst, change_over_charge(X, other, 0, np.zeros(d), f, np.eye(d + 1, b)))
    return worst


def change_over_charge(X, other, number, centre, f, block):
    """Return by how much more than the real rows do a replacement moves a look in float32, over what is charged.

    Other rows are as they were to the last bit, and so are their inner products: the charge relies on it.
    """

    def lifted(vector):
        return [*(Fraction(float(f[number])) * entry for entry in vector), Fraction(13, 64)]

    pair = [single_rows(table, centre) for table in (X, other)]
    return _change_over_charge([AugmentedGram(rows, [f]) for rows in pair], pair, number, lifted, block)


def unit_change_over_charge(seed, n=200, d=5, b=3):
    """Return the same for the second moment of unit rows as they are, a random table and a random replacement."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    other, number = X.copy(), int(rng.integers(n))
    other[number] = rng.standard_normal(d) * 10.0 ** rng.integers(-3, 6)
    pair = [single_rows(table, np.zeros(d)) for table in (X, other)]
    block = np.linalg.qr(rng.standard_normal((d, b)))[0]
    return _change_over_charge([UnitGram(rows) for rows in pair], pair, number, list, block)


def whole_change_over_charge(seed, n=200, d=5):
    """Return the same for that second moment as a whole, which is added up in float32 too."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    other, number = X.copy(), int(rng.integers(n))
    other[number] = rng.standard_normal(d) * 10.0 ** rng.integers(-3, 6)
    return _whole_change_over_charge(X, other, number)


def _half_lost(n, d, in_turn):
    """Return tables that differ in the first row, which decides whether what the second half adds is rounded away."""
    X, half = np.zeros((n, d), dtype=np.float32), n // 2 + 1
    X[:half, 0], X[half:, 1] = 1.0, 1.0
    X[half:, 0] = np.sqrt(0.4999 * 2.0**-23 * (n // 2) / in_turn)
    other = X.copy()
    other[0] = 7.0 * np.eye(d)[2]
    return X, other


def lost_whole_over_charge(n=128, d=40):
    """Return that for a row that decides whether half of its run is lost, as in `lost_bits_over_charge`.

    Unit rows are a little shorter than 1: without the first, those of the first half add up to less than 64.
    """
    worst = 0.0
    for in_turn in (1, 2, 4, 8):
        X, other = _half_lost(n, d, in_turn)
        worst = max(worst, _whole_change_over_charge(X, other, 0))
    return worst


def _whole_change_over_charge(X, other, number):
    pair = [single_rows(table, np.zeros(X.shape[1])) for table in (X, other)]
    sources = [UnitGram(rows) for rows in pair]
    wholes = [exactly(whole) for source in sources for whole in source.products(None)]
    moments = [np.array(exact_moment([folded_rows(rows)[number]])) for rows in pair]
    off = wholes[0] - wholes[1] - (moments[0] - moments[1])
    return float((off**2).sum()) ** 0.5 / (2.0 * sources[0].chunk_error(X.shape[1]))


def single_whole_over_charge(seed, n=60, d=4):
    """Return the error of a whole look at rows of float32, which is formed in float64, over what it is charged."""
    rng = np.random.default_rng(seed)
    X, f, a = (rng.standard_normal((n, d)) + 30.0).astype(np.float32), rng.random(n), 13.0 / 64.0
    rows = single_rows(X, rng.standard_normal(d) + 30.0)
    source = AugmentedGram(rows, [f])
    (whole,) = source.products(None)
    vectors = [
        [*(Fraction(own) * x for x in vector), Fraction(a)]
        for own, vector in zip(f.tolist(), folded_rows(rows), strict=True)
    ]
    return distance(whole, exact_moment(vectors)) / source.chunk_error(0)


def _change_over_charge(sources, pair, number, lifted, block):
    columns = exactly(block)
    changes = [exactly(in_turn(source, block)) for source in sources]
    moments = [np.array(exact_moment([lifted(folded_rows(rows)[number])])) @ columns for rows in pair]
    off = changes[0] - changes[1] - (moments[0] - moments[1])
    return float((off**2).sum()) ** 0.5 / (2.0 * sources[0].chunk_error(block.shape[1]))


def single_moments_over_charge(seed, d=40, k=3):
    """Return by how much variances along a subspace are off for one row of float32, over what that is charged."""
    rng = np.random.default_rng(seed)
    rows = single_rows(rng.standard_normal((1, d)).astype(np.float32), np.zeros(d), clip=7.0)
    basis = np.linalg.qr(rng.standard_normal((d, k)))[0]
    (found,), (vector,) = variance.moment_sums(rows, basis), folded_rows(rows)
    inside = np.array(vector) @ exactly(basis)
    exact = np.zeros((k, k + 1), dtype=object)
    exact[:, :k], exact[0, k] = np.outer(inside, inside), sum(x * x for x in vector) - sum(inside * inside)
    return distance(found, exact) / variance.moment_error(rows, basis)


def mean_change_over_charge(X, other, number, centre, clip):
    """Return by how much more than the real rows do a replacement moves a sum of rows in float32, over the charge."""
    sums, own = [], []
    for table in (X, other):
        rows = single_rows(table, centre, clip)
        (chunk,) = row_sums(rows)
        sums.append(exactly(chunk[None])[0])
        own.append(np.array(folded_rows(rows)[number]))
    off = sums[0] - sums[1] - (own[0] - own[1])
    charge = row_bounds(*rows.shape, rows.rounding, rows.single).chunk_error
    return float((off**2).sum()) ** 0.5 / (2.0 * charge)


def random_means_over_charge(seed, n=200, d=5):
    """Return that for a random table and neighbour."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) + 30.0).astype(np.float32)
    other, number = X.copy(), int(rng.integers(n))
    other[number] = rng.standard_normal(d) * 10.0 ** rng.integers(-3, 6)
    return mean_change_over_charge(X, other, number, rng.standard_normal(d) + 30.0, 2.0)


def lost_means_over_charge(n=128, d=40):
    """Return that for a row that decides whether half of its run is lost, as in `lost_bits_over_charge`."""
    worst = 0.0
    for in_turn in (1, 2, 4, 8):
        X = np.zeros((n, d), dtype=np.float32)
        X[:, 0] = 3.0 * OVER_HALF
        X[n // 2 :, 0] = 3.0 * 0.4999 * 2.0**-23 * (n // 4) / in_turn
        other = X.copy()
        other[0] = 7.0 * np.eye(d)[1]
        worst = max(worst, mean_change_over_charge(X, other, 0, np.zeros(d), 3.0))
    return worst


def cross_change_over_charge(X, other, number, basis, whitening, clip):
    """Return the same for the sum of residuals of a localised round, which adds up float32 in that type."""
    sums, own, weigh = [], [], partial(record_weights, clip=clip, cap=INNER_CAP)
    for table in (X, other):
        rows = single_rows(table, np.zeros(X.shape[1]))
        view = local_view(rows, basis)
        ((cross, _),) = localised._both_sums(rows, view, whitening, weigh, single=True)
        z, off = view.coordinates[number], view.off[number : number + 1]
        residual = np.array(folded_rows(rows)[number]) - exactly(basis) @ exactly(z[None])[0]
        weight = Fraction(float(weigh(off, (z * whitening)[None])[0]))
        own.append(np.multiply.outer(residual, weight * exactly((z * whitening)[None])[0]))
        sums.append(exactly(cross))
    off = sums[0] - sums[1] - (own[0] - own[1])
    charge = localised.cross_bounds(*X.shape, basis.shape[1], clip, single=True).chunk_error
    return float((off**2).sum()) ** 0.5 / (2.0 * charge)


def random_cross_over_charge(seed, n=200, d=5, k=2):
    """Return that for a random table and neighbour."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 6, (n, 1))).astype(np.float32)
    other, number = X.copy(), int(rng.integers(n))
    other[number] = rng.standard_normal(d) * 10.0 ** rng.integers(-3, 6)
    basis, whitening = np.linalg.qr(rng.standard_normal((d, k)))[0], np.exp(rng.standard_normal(k))
    return cross_change_over_charge(X, other, number, basis, whitening, 0.3)


def lost_cross_over_charge(n=32, d=40):
    """Return that for a row that decides whether half of its run is lost, as in `lost_whole_over_charge`."""
    worst, basis = 0.0, np.eye(d, 1)
    for in_turn in (1, 2, 4, 8):
        X, other = _half_lost(n, d, in_turn)
        worst = max(worst, cross_change_over_charge(X, other, 0, basis, np.ones(1), 2.0))
    return worst


def exactly(array):
    """Return a matrix of floats as one of fractions."""
    return np.array([[Fraction(float(value)) for value in row] for row in array])


def early_error_over_charge(X, length, radius, a=13.0 / 64.0):
    """Return the error of a moment that began before the clip was known, over what is charged for it."""
    gram = ClippedGram(EarlyGram(Rows(X), length), radius, a)
    (found,) = gram.products()
    vectors = [[*vector, Fraction(a)] for vector in folded_rows(Rows(X, clip=radius))]
    assert all(sum(entry * entry for entry in vector[:-1]) <= 1 for vector in vectors)
    return distance(found, exact_moment(vectors)) / gram.chunk_error()


def read_again_off(n=3_000, d=5):
    """Return by how much rows of float32 that are read again are off those that were summed up, at most."""
    rng = np.random.default_rng(0)
    rows, seen = single_rows(rng.standard_normal((n, d)).astype(np.float32), rng.standard_normal(d)), []

    def noted(piece, squares, start):
        seen.append(piece.copy())
        return np.zeros(1)

    rows.lengths_and_sums(noted, 1_024)
    return float(np.abs(rows.stored(np.arange(n)) - np.concatenate(seen)).max())
