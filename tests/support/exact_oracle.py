"""Slow, independent implementations of the exact case: definitions written out, over the rationals.

Nothing here shares code with the library. `printed_algorithm` is Algorithm 1 of the paper as printed, which is
not private (docs/explanation/errata.md): the negative control of the audits.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np


def rref(rows):
    """Reduced row echelon form over the rationals, as a hashable tuple of rows."""
    return _rref(tuple(map(tuple, rows)))


@lru_cache(maxsize=2**15)  # definitions ask for the same few forms over and over
def _rref(rows):
    table = [[Fraction(entry) for entry in row] for row in rows]
    lead, width = 0, len(table[0]) if table else 0
    for column in range(width):
        pivot = next((i for i in range(lead, len(table)) if table[i][column]), None)
        if pivot is None:
            continue
        table[lead], table[pivot] = table[pivot], table[lead]
        table[lead] = [entry / table[lead][column] for entry in table[lead]]
        for i in range(len(table)):
            if i != lead:
                factor = table[i][column]
                table[i] = [a - factor * b for a, b in zip(table[i], table[lead], strict=True)]
        lead += 1
    return tuple(tuple(row) for row in table[:lead])


def count_inside(X, basis):
    return sum(len(rref([*basis, row])) == len(basis) for row in X)


def spanned(X, dimension):
    """Every subspace of that dimension spanned by records."""
    forms = {rref(choice) for choice in itertools.combinations(X, dimension)} if dimension else {()}
    return {form for form in forms if len(form) == dimension}


def score(X, form):
    """|X in s| minus the most records in a proper subspace; proper subspaces spanned by records are enough."""
    inside = [row for row in X if len(rref([*form, row])) == len(form)]
    proper = [t for smaller in range(len(form)) for t in spanned(inside, smaller)]
    return len(inside) - max(count_inside(inside, t) for t in proper)


def scores(X, k):
    return {form: score(X, form) for form in spanned(X, k)}


def majority(X, k):
    """Winner and margin of the majority rule, from the definition."""
    found = scores(X, k)
    if not found:
        return None, 0
    best = max(found, key=found.__getitem__)
    margin = max(0, found[best] - math.ceil(len(X) / 2))
    return (best if margin else None), margin


def gap(X, k):
    """Winner and margin of the gap rule, from the definition."""
    found = sorted(scores(X, k).items(), key=lambda item: -item[1])
    if not found:
        return None, 0
    second = found[1][1] if len(found) > 1 else 0
    margin = math.ceil(max(0, found[0][1] - second - 1) / 2)
    return (found[0][0] if margin else None), margin


def truncated_laplace(rng, sensitivity, epsilon, delta, size):
    """The paper's continuous truncated Laplace distribution."""
    scale = sensitivity / epsilon
    bound = scale * math.log(1 + (math.exp(epsilon) - 1) / (2 * delta))
    uniform = rng.random(size)
    magnitude = -scale * np.log1p(-uniform * (1 - math.exp(-bound / scale)))
    return rng.choice([-1, 1], size) * magnitude


def printed_algorithm(found, *, epsilon, delta, ell, rng):
    """Algorithm 1 of the paper as printed, given the scores of its candidates. NOT private."""
    candidates = [None, *found]
    values = np.array([ell + 4 * math.log(1 / delta) / epsilon + 1, *found.values()])
    second = np.sort(values)[-2]
    noisy = np.maximum(0, values - second - 1) + truncated_laplace(rng, 2, epsilon, delta, len(values))
    return candidates[int(np.argmax(noisy))]
