"""Looks whose factors are multiplied into thin products, against exact arithmetic on the rows they stand for."""

from fractions import Fraction

import numpy as np

from privspan.rows.arrays import as_source
from privspan.rows.derived import SingleShiftedRows
from privspan.rows.unit import Rows
from privspan.sums.lazy_gauss import UnitGram
from privspan.sums.looks import AugmentedGram


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
    exactly = np.array([[Fraction(float(value)) for value in row] for row in computed])
    return float(((exactly - np.array(exact)) ** 2).sum()) ** 0.5


def errors_over_charges(seed, n=24, d=4, b=2):
    """Return the largest error of a look, whole or in a block of directions, over what is charged for it."""
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
        for products, exact, asked in ((source.products(None), moment, 0), (source.products(directions), image, b)):
            (chunk,) = products
            charge = source.chunk_error(asked)
            off = distance(chunk, exact)
            worst = max(worst, off / charge if charge else np.inf if off else 0.0)
    return worst


def single_rows(X, centre, clip=None):
    """Return the rows of a float32 table about a centre, made in float32."""
    return Rows(SingleShiftedRows(as_source(X), centre), clip=clip)


def single_errors_over_charges(seed, n=200, d=5, b=3):
    """Return by how much more than the real rows do a replacement moves a look in float32, over what is charged.

    Other rows are as they were to the last bit, and so are their inner products: the charge relies on it.
    """
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) + 30.0).astype(np.float32)
    other, number = X.copy(), int(rng.integers(n))
    other[number] = rng.standard_normal(d) * 10.0 ** rng.integers(-3, 6)
    centre, f, a = rng.standard_normal(d) + 30.0, rng.random(n), 13.0 / 64.0
    block = np.linalg.qr(rng.standard_normal((d + 1, b)))[0]
    columns = np.array([[Fraction(float(entry)) for entry in column] for column in block.T]).T
    changes, moments = [], []
    for table in (X, other):
        rows = single_rows(table, centre)
        source = AugmentedGram(rows, [f])
        (chunk,) = source.products(block)
        own = [Fraction(float(f[number])) * entry for entry in folded_rows(rows)[number]]
        changes.append(chunk)
        moments.append(np.array(exact_moment([[*own, Fraction(a)]])) @ columns)
    computed = np.array([[Fraction(float(value)) for value in row] for row in changes[0]]) - np.array(
        [[Fraction(float(value)) for value in row] for row in changes[1]]
    )
    off = float(((computed - (moments[0] - moments[1])) ** 2).sum()) ** 0.5
    return off / (2.0 * source.chunk_error(b))
