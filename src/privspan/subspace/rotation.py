"""Rotations to simple structure: varimax, quartimax, promax and oblimin, on plain arrays.

Components of one span are one basis of many.  A rotation takes the one in which few columns have large loadings on
each factor.  Orthogonal ones are found by turning pairs of factors (Kaiser 1958), oblique ones by powers of a varimax
(Hendrickson, White 1964) or by gradient projection (Jennrich 2002).
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Criterion = Literal["varimax", "quartimax", "promax", "oblimin"]
CRITERIA: tuple[str, ...] = get_args(Criterion)

_ORTHOMAX = {"varimax": 1.0, "quartimax": 0.0, "promax": 1.0, "oblimin": 1.0}  # the last two begin with a varimax
_POWER = 4  # of promax, exactly as in R
_STARTS = 8  # at a time, against local optima: the best of the axes as they are and of turned ones
_STEPS = 1_000  # at most, against endless time; a few dozen are usual
_STILL = 1e-8  # radians: a turn that rounding could make


def turn_to(loadings: Array, criterion: Criterion, *, kaiser: bool = True, start: Array | None = None) -> Array:
    """Return the matrix (k, k) that loadings (d, k) are to be multiplied by.

    With `kaiser` rows count as if all had length 1.  `start` (k, k) is where to begin, and the only place: a turn
    that is nearly right, orthogonal for the orthogonal part.
    """
    lengths = np.linalg.norm(loadings, axis=1) if kaiser else np.ones(len(loadings))
    rows = loadings / np.where(lengths > 0.0, lengths, 1.0)[:, None]  # (d, k)
    turn = _orthomax(rows, _ORTHOMAX[criterion], start)
    if criterion == "promax":
        return turn @ _powered(loadings @ turn)
    return turn @ _oblimin(rows @ turn) if criterion == "oblimin" else turn


def correlations(turn: Array) -> Array:
    """Return the correlations of the factors that belong to a turn; (k, k)."""
    return np.asarray(np.linalg.inv(turn.T @ turn))


def fixed(loadings: Array, turn: Array) -> Array:
    """Return the turn with factors by falling variance, the largest loading of each positive."""
    pattern = loadings @ turn
    order = np.argsort(-factor_variances(pattern, correlations(turn)), kind="stable")
    largest = pattern[np.abs(pattern).argmax(axis=0), np.arange(pattern.shape[1])]
    return np.asarray((turn * np.where(largest < 0.0, -1.0, 1.0))[:, order])


def factor_variances(pattern: Array, between: Array) -> Array:
    """Return what each factor explains, (k,); all together the variance of the components."""
    return np.asarray(((pattern @ between) * pattern).sum(axis=0))


def _orthomax(rows: Array, gamma: float, start: Array | None) -> Array:
    """Return an orthogonal turn (k, k) where the criterion is largest; from a start, the nearest such."""
    k, public = rows.shape[1], np.random.default_rng(0)
    starts = np.linalg.qr(public.standard_normal((_STARTS, k, k)))[0] if start is None else start[None]
    if start is None:
        starts[0] = np.eye(k)
    turns = np.array([_climbed(rows @ turn, turn, gamma) for turn in starts])
    squares = (rows @ turns) ** 2  # (starts, d, k)
    heights = (squares**2).sum(axis=(1, 2)) - gamma / len(rows) * (squares.sum(axis=1) ** 2).sum(axis=1)
    return np.asarray(turns[int(np.argmax(heights > heights.max() - 1e-9 * abs(heights.max())))])


def _climbed(pattern: Array, turn: Array, gamma: float) -> Array:
    """Turn pairs of factors, each to where the criterion is largest, until none turns any more."""
    both = np.vstack([pattern, turn]).T.copy()  # (k, d + k): a factor and what it is made of
    k, d = both.shape[0], len(pattern)
    for _ in range(_STEPS):
        largest = 0.0
        for i in range(k):
            for j in range(i + 1, k):
                x, y = both[i, :d], both[j, :d]
                u, v = x * x - y * y, 2.0 * x * y
                a, b = float(u.sum()), float(v.sum())
                sine = 2.0 * float(u @ v) - 2.0 * gamma * a * b / d
                cosine = float(u @ u - v @ v) - gamma * (a * a - b * b) / d
                angle = math.atan2(sine, cosine) / 4.0 if math.hypot(sine, cosine) > 0.0 else 0.0
                largest = max(largest, abs(angle))
                first, second = math.cos(angle), math.sin(angle)
                both[i], both[j] = first * both[i] + second * both[j], first * both[j] - second * both[i]
        if largest < _STILL:
            break
    return both[:, d:].T


def _powered(pattern: Array) -> Array:
    """Return what a varimax is multiplied by so that it comes near its own powers."""
    target = pattern * np.abs(pattern) ** (_POWER - 1)
    turn = np.linalg.lstsq(pattern, target, rcond=None)[0]
    return np.asarray(turn * np.sqrt(np.diagonal(np.linalg.inv(turn.T @ turn))))


def _oblimin(rows: Array) -> Array:
    """Return the turn (k, k) of the direct quartimin: products of squared loadings of two factors are smallest."""
    k = rows.shape[1]
    axes, step = np.eye(k), 1.0  # columns of length 1; the pattern is rows @ inv(axes).T

    def at(axes: Array) -> tuple[float, Array, Array]:
        turn: Array = np.asarray(np.linalg.inv(axes).T, np.float64)
        pattern = rows @ turn
        others = pattern**2 @ (1.0 - np.eye(k))
        return float((pattern**2 * others).sum() / 4.0), -(turn @ (pattern * others).T @ pattern), turn

    height, slope, turn = at(axes)
    for _ in range(_STEPS):
        along = slope - axes * (axes * slope).sum(axis=0)
        size = float((along**2).sum())
        if size <= 1e-14:
            break
        step *= 2.0
        for _ in range(20):
            tried = axes - step * along
            tried /= np.linalg.norm(tried, axis=0)
            reached = at(tried)
            if reached[0] < height - 0.5 * size * step:
                break
            step /= 2.0
        else:
            break
        axes, (height, slope, turn) = tried, reached
    return turn
