"""The densest hyperplane of a finite set of integer points, exactly.

Given points that span Q^k, how many of them can lie in one proper subspace? The answer is attained by a hyperplane
spanned by points. All of those are visited in the order of their first independent points, modulo a prime; every
one that would raise the maximum is checked over the rationals before it counts. Points that share a subspace over
the rationals share one modulo every prime, so nothing is missed, whatever the prime: the result is always exact.
See ``docs/explanation/exact-case.md``.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from privspan.exact.arithmetic import (
    Primes,
    UnluckyPrime,
    exact_rank,
    inverses_mod,
    leading_independent,
    matmul_mod,
    random_prime,
    uniform_residues,
    with_lucky_prime,
)
from privspan.privacy.randomness import BitSource

_BRUTE_FORCE_POINTS = 12  # exact: so few that the prime puts together wrongly are counted over the rationals at once
_PAIRS_PER_BATCH = 1 << 21  # memory


def densest_hyperplane(points: list[list[int]], bits: BitSource, primes: Primes = random_prime) -> int:
    """Largest number of points in one proper subspace of the k-dimensional space they span; exact.

    `points` are rows of coordinates (N, k), of rank k; zero rows and repeated rows are allowed. Primes come from
    `bits`: they decide how long the search takes, never what it returns.
    """
    return with_lucky_prime(lambda: _Search(points, bits, primes).run(), lambda: _brute_force(points))


def _brute_force(points: list[list[int]]) -> int:
    """The same maximum from every choice of k - 1 points, over the rationals alone."""
    k = len(points[0])
    nonzero = [row for row in points if any(row)]
    best = 0
    for basis in itertools.combinations(nonzero, min(k - 1, len(nonzero))):
        rank = exact_rank(list(basis))
        best = max(best, sum(exact_rank([*basis, row]) == rank for row in nonzero))
    return best + len(points) - len(nonzero)


class _Search:
    """One run modulo one prime. ``best`` is a count that was verified over the rationals."""

    def __init__(self, points: list[list[int]], bits: BitSource, primes: Primes) -> None:
        self.points = points
        self.prime = primes(bits)
        self.k = len(points[0])
        self.best = 0
        residues = np.array([[entry % self.prime for entry in row] for row in points], dtype=np.int64)  # (N, k)
        mixing = uniform_residues(self.k * self.k, self.prime, bits).reshape(self.k, self.k)
        # Random coordinates, so that no point but zero has a zero first coordinate, except by bad luck.
        self.residues = matmul_mod(residues, mixing, self.prime)

    def run(self) -> int:
        """Visit all hyperplanes; the largest verified count is then the maximum."""
        if len(leading_independent(self.residues, self.prime, self.k)) < self.k:
            raise UnluckyPrime  # a class without a basis of its own would never be visited
        self._descend(self.residues, np.arange(len(self.points)), [])
        return self.best

    def _descend(self, points: NDArray[np.int64], ids: NDArray[np.intp], inside: list[int]) -> None:
        """Visit the hyperplanes through `inside`; `points` (N, r) are the later points in the quotient."""
        zero = ~points.any(axis=1)
        inside = inside + ids[zero].tolist()
        points, ids = points[~zero], ids[~zero]
        if points.shape[1] == 1 or not len(points):
            self._consider(inside)
        elif points.shape[1] == 2:
            self._visit_directions(_slopes(points[:, 0], points[:, 1], self.prime), ids, inside)
        elif points.shape[1] == 3:
            self._visit_pencils(self._normalised(points), ids, inside)
        else:
            points = self._normalised(points)
            for i in range(len(points)):
                if len(inside) + len(points) - i <= self.best:
                    break
                quotient = (points[i + 1 :, 1:] - points[i, 1:]) % self.prime
                self._descend(quotient, ids[i + 1 :], [*inside, int(ids[i])])

    def _normalised(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """Scale every point to first coordinate one."""
        if not points[:, 0].all():
            raise UnluckyPrime
        return points * inverses_mod(points[:, 0], self.prime)[:, None] % self.prime

    def _visit_pencils(self, points: NDArray[np.int64], ids: NDArray[np.intp], inside: list[int]) -> None:
        """The innermost two levels at once: lines of the plane through each point in turn, (N, 3) normalised."""
        size = max(1, _PAIRS_PER_BATCH // len(points))
        for start in range(0, len(points), size):
            if len(inside) + len(points) - start <= self.best:
                break
            first = np.arange(start, min(start + size, len(points)))
            later = np.arange(len(points))[None, start:] > first[:, None]  # (b, N - start)
            across = (points[None, start:, 1] - points[first, None, 1]) % self.prime
            up = (points[None, start:, 2] - points[first, None, 2]) % self.prime
            keys = _slopes(across, up, self.prime)
            keys[~later] = -2
            self._visit_batch(keys, ids, inside, start)

    def _visit_batch(self, keys: NDArray[np.int64], ids: NDArray[np.intp], inside: list[int], start: int) -> None:
        """Rows of `keys` belong to consecutive first points; look closely only where the maximum might rise."""
        ordered = np.sort(keys, axis=1)
        parallel = (keys == -1).sum(axis=1)  # later points on the same line as the first one
        for copies in np.unique(parallel).tolist():
            rows = np.flatnonzero(parallel == copies)
            while True:
                # A row can raise the maximum only with a run of `need` equal directions.
                need = max(1, self.best - len(inside) - copies)
                promising = rows[_has_run(ordered[rows], need)]
                if not promising.size:
                    break
                row = int(promising[0])
                later = keys[row] >= -1
                self._visit_directions(keys[row][later], ids[start:][later], [*inside, int(ids[start + row])])
                rows = rows[rows > row]

    def _visit_directions(self, keys: NDArray[np.int64], ids: NDArray[np.intp], inside: list[int]) -> None:
        """Every class of equal directions, with the points `inside`, is one hyperplane."""
        inside = inside + ids[keys == -1].tolist()
        values, counts = np.unique(keys[keys >= 0], return_counts=True)
        if not values.size:
            self._consider(inside)
        for j in np.argsort(-counts, kind="stable"):
            if len(inside) + int(counts[j]) <= self.best:
                break
            self._consider(inside + ids[keys == values[j]].tolist())

    def _consider(self, members: list[int]) -> None:
        """Count points that share a hyperplane modulo the prime, if they do so over the rationals too."""
        if len(members) <= self.best:
            return
        rows = [self.points[i] for i in members]
        if exact_rank(rows) < self.k:
            self.best = len(members)
        elif len(members) <= _BRUTE_FORCE_POINTS:
            self.best = max(self.best, _brute_force(rows))
        else:
            raise UnluckyPrime


def _has_run(ordered: NDArray[np.int64], need: int) -> NDArray[np.bool_]:
    """Which sorted rows hold at least `need` equal directions, (rows,)."""
    if need > ordered.shape[1]:
        return np.zeros(len(ordered), dtype=np.bool_)
    tail = ordered[:, need - 1 :]
    found: NDArray[np.bool_] = ((tail == ordered[:, : tail.shape[1]]) & (tail >= 0)).any(axis=1)
    return found


def _slopes(across: NDArray[np.int64], up: NDArray[np.int64], prime: int) -> NDArray[np.int64]:
    """Direction of (across, up) as one number: up/across, `prime` for the vertical, -1 for the zero vector."""
    keys = up * inverses_mod(across, prime) % prime
    keys[across == 0] = prime
    keys[(across == 0) & (up == 0)] = -1
    return keys
