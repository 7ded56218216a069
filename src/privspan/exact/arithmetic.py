"""Rows as integers, and linear algebra on them without a rounding error.

Every finite floating-point number is an integer times a power of two, so every finite row has a multiple that is
an integer row; a subspace contains the one exactly when it contains the other. Ranks and spans of integer rows are
decided here over the rationals, with no tolerance anywhere: a tolerance would undo the sensitivity proofs.

Speed comes from small random primes. Modulo a prime a rank can only drop, never rise, so what is independent
modulo a prime is independent; everything that looks dependent is checked again over the rationals before it
counts. The answers are therefore exact whatever primes are drawn. See ``docs/explanation/exact-case.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import TypeVar

import flint
import numpy as np
from numpy.typing import NDArray

from privspan._lib.arrays import Reals
from privspan.privacy.randomness import BitSource
from privspan.subspace.relations import ExactForm

PRIME_BITS = 31
PRIMES_TO_CHOOSE_FROM = 50_697_537
"""Proof: how many primes lie between 2**30 and 2**31: 105,097,565 - 54,400,028 (OEIS A007053)."""

_CELLS_PER_CHUNK = 1 << 22  # memory
_LIMB = 16  # residues are split into 16-bit limbs, whose products add up exactly in float64
_COLUMNS_PER_PRODUCT = 1 << 20  # exact: 2**20 products of at most 2**32 stay below 2**53
_MAX_PRIMES = 40  # unlucky ones in a row before the slow way is taken, which takes time and no accuracy

_Split = tuple[NDArray[np.uint64], NDArray[np.bool_], NDArray[np.uint16]]  # magnitude, sign and shift
_Result = TypeVar("_Result")


class UnluckyPrime(Exception):
    """The prime hides the structure of the rows; another one is drawn."""


@dataclass(frozen=True)
class IntegerRows:
    """Integer rows: entry (i, j) is ``(-1)**negative * magnitude * 2**shift``."""

    magnitude: NDArray[np.uint64]  # (n, d), as the next two
    negative: NDArray[np.bool_]
    shift: NDArray[np.uint16]
    homogeneous: bool = False  # whether the last column is the constant of an affine problem

    def __len__(self) -> int:
        return int(self.magnitude.shape[0])

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self.magnitude.shape[1])

    def integers(
        self, indices: Sequence[int] | NDArray[np.intp], columns: Sequence[int] | slice = slice(None)
    ) -> list[list[int]]:
        """The named rows, or their named columns, as Python integers."""
        chosen = np.asarray(indices, dtype=np.intp)
        magnitude, negative, shift = (a[chosen][:, columns] for a in (self.magnitude, self.negative, self.shift))
        if not shift.any() and not (magnitude >> np.uint64(62)).any():  # they fit int64: no loop in Python
            whole: list[list[int]] = np.where(negative, -magnitude.view(np.int64), magnitude.view(np.int64)).tolist()
            return whole
        triples = zip(magnitude.tolist(), negative.tolist(), shift.tolist(), strict=True)
        return [[(-m if minus else m) << s for m, minus, s in zip(*row, strict=True)] for row in triples]

    def take(self, indices: NDArray[np.intp] | slice) -> IntegerRows:
        """The named rows as a table of their own."""
        return IntegerRows(self.magnitude[indices], self.negative[indices], self.shift[indices], self.homogeneous)

    def form(self, indices: Sequence[int] | NDArray[np.intp]) -> ExactForm:
        """The span of the named rows."""
        return rational_form(self.integers(indices), homogeneous=self.homogeneous)

    @property
    def bits(self) -> int:
        """How many bits the longest entry has, at most."""
        return int(self.magnitude.max(initial=0)).bit_length() + int(self.shift.max(initial=0))

    def residues(self, prime: int) -> NDArray[np.int64]:
        """Every entry modulo a prime below 2**31, (n, d)."""
        longest = int(self.shift.max(initial=0))
        powers = np.array([pow(2, s, prime) for s in range(longest + 1)], dtype=np.int64)
        out = (self.magnitude % np.uint64(prime)).astype(np.int64) * powers[self.shift] % prime
        return np.where(self.negative, (prime - out) % prime, out)


def integer_rows(
    X: Reals, *, decimals: int | None = None, homogeneous: bool = False, max_bits: int = 256
) -> IntegerRows:
    """Scale every row of real numbers (n, d) to integers, each on its own.

    Row i of the result depends on row i of `X` and on the public arguments only. With `decimals` the rows are those
    of ``round(x * 10**decimals)``. `homogeneous` appends the constant one (in units of the data) as a last column,
    for affine subspaces. A row with an integer longer than `max_bits`, or a value that is not finite, becomes zero.
    """
    width = X.shape[1] + homogeneous
    shape = (X.shape[0], width)
    rows = IntegerRows(np.zeros(shape, np.uint64), np.zeros(shape, np.bool_), np.zeros(shape, np.uint16), homogeneous)
    whole = X.dtype.kind in "iub"
    one = 1.0 if whole or decimals is None else float(10**decimals)
    for part in _chunks(X.shape[0], width):
        values: Reals = X[part] if whole else _rounded(X[part], decimals)
        if homogeneous:
            values = np.column_stack([values, np.full(len(values), one, values.dtype)])
        split = _split_whole(values) if whole else _split_float(values.astype(np.float64, copy=False), max_bits)
        rows.magnitude[part], rows.negative[part], rows.shift[part] = split
    return rows


def _split_whole(values: Reals) -> _Split:
    """The same for booleans or integers of any width, without a shift; int64 never travels through a float."""
    negative = values < 0
    bits = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64).view(np.uint64)
    return np.where(negative, ~bits + np.uint64(1), bits), negative, np.zeros(values.shape, np.uint16)


def _rounded(part: Reals, decimals: int | None) -> NDArray[np.float64]:
    with np.errstate(over="ignore", invalid="ignore"):  # a value that is not finite ends as a zero row
        values = part.astype(np.float64)
        return values if decimals is None else np.rint(values * float(10**decimals))


def _split_float(values: NDArray[np.float64], max_bits: int) -> _Split:
    """Odd magnitude, sign and shift of every entry, the row scaled so that its smallest shift is zero."""
    values = np.where(np.isfinite(values).all(axis=1, keepdims=True), values, 0.0)
    fraction, exponent = np.frexp(np.abs(values))
    magnitude = (fraction * 2.0**53).astype(np.uint64)  # (n, d), 53 bits or zero
    lowest_bit = magnitude & (~magnitude + np.uint64(1))
    zeros = np.frexp(lowest_bit.astype(np.float64))[1] - 1  # trailing zero bits
    present = magnitude > 0
    zeros[~present] = 0
    magnitude >>= zeros.astype(np.uint64)
    bottom = exponent.astype(np.int64) - 53 + zeros  # exponent of the last bit
    top = exponent.astype(np.int64)  # exponent above the first bit
    far = np.iinfo(np.int64).max // 4
    base = np.where(present, bottom, far).min(axis=1, keepdims=True)  # (n, 1)
    length = np.where(present, top, -far).max(axis=1, keepdims=True) - base
    kept = present & (length <= max_bits)
    shift = np.where(kept, bottom - base, 0).astype(np.uint16)
    return np.where(kept, magnitude, np.uint64(0)), kept & (values < 0), shift


def random_prime(bits: BitSource) -> int:
    """A uniformly random prime between 2**30 and 2**31."""
    while True:
        candidate = (1 << (PRIME_BITS - 1)) + bits.below(1 << (PRIME_BITS - 1))
        if flint.fmpz(candidate).is_prime():
            return candidate


Primes = Callable[[BitSource], int]
"""Where primes come from: `random_prime`, but for tests of what unlucky ones do."""


def with_lucky_prime(attempt: Callable[[], _Result], otherwise: Callable[[], _Result]) -> _Result:
    """What the attempt, which draws a prime, gives with the first that is not unlucky; else the slow, sure answer."""
    for _ in range(_MAX_PRIMES):
        with suppress(UnluckyPrime):
            return attempt()
    return otherwise()


def uniform_residues(count: int, prime: int, bits: BitSource) -> NDArray[np.int64]:
    """Exactly uniform residues, by rejection."""
    surplus = np.uint64(64 - prime.bit_length())
    kept = np.empty(0, dtype=np.int64)
    while kept.size < count:
        draws = (bits.uint64(2 * count + 8) >> surplus).astype(np.int64)
        kept = np.concatenate([kept, draws[draws < prime]])
    return kept[:count]


def hashed_rows(rows: IntegerRows, width: int, prime: int, bits: BitSource) -> NDArray[np.int64]:
    """Rows times a uniformly random (d, width) matrix, modulo the prime: (n, width).

    Ranks can only drop on the way, and drop by chance with the probability bounded in :func:`rank_loss_probability`.
    """
    projection = uniform_residues(rows.columns * width, prime, bits).reshape(rows.columns, width)
    out = np.empty((len(rows), width), dtype=np.int64)
    for part in _chunks(len(rows), rows.columns):
        out[part] = matmul_mod(rows.take(part).residues(prime), projection, prime)
    return out


def _chunks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of consecutive rows with a bounded number of cells."""
    step = max(1, _CELLS_PER_CHUNK // columns)
    return (slice(start, start + step) for start in range(0, rows, step))


def matmul_mod(left: NDArray[np.int64], right: NDArray[np.int64], prime: int) -> NDArray[np.int64]:
    """Exact product of residue matrices (n, d) @ (d, w) modulo a prime below 2**31.

    Float64 multiplies the 16-bit limbs without rounding: a sum of 2**20 products of limbs stays below 2**53.
    """
    total = np.zeros((left.shape[0], right.shape[1]), dtype=np.int64)
    low = (1 << _LIMB) - 1
    for start in range(0, left.shape[1], _COLUMNS_PER_PRODUCT):
        a, b = left[:, start : start + _COLUMNS_PER_PRODUCT], right[start : start + _COLUMNS_PER_PRODUCT]
        a_limbs = [(a & low).astype(np.float64), (a >> _LIMB).astype(np.float64)]
        b_limbs = [(b & low).astype(np.float64), (b >> _LIMB).astype(np.float64)]
        for i, a_limb in enumerate(a_limbs):
            for j, b_limb in enumerate(b_limbs):
                product = (a_limb @ b_limb).astype(np.int64) % prime
                total = (total + product * pow(2, _LIMB * (i + j), prime)) % prime
    return total


def inverses_mod(values: NDArray[np.int64], prime: int) -> NDArray[np.int64]:
    """Inverse of every entry modulo the prime, and one for zero: Montgomery's trick on about sqrt(size) runs."""
    length = max(1, math.isqrt(values.size))
    lanes = -(-values.size // length)
    safe: NDArray[np.int64] = np.ones((length, lanes), dtype=np.int64)
    safe.flat[: values.size] = values.flat
    safe[safe == 0] = 1
    running = np.ones((length + 1, lanes), dtype=np.int64)
    for j in range(length):
        running[j + 1] = running[j] * safe[j] % prime
    back = np.array([pow(total, -1, prime) for total in running[-1].tolist()], dtype=np.int64)  # (lanes,)
    out = np.empty_like(safe)
    for j in range(length - 1, -1, -1):
        out[j] = back * running[j] % prime
        back = back * safe[j] % prime
    return out.ravel()[: values.size].reshape(values.shape)


def rank_loss_probability(rank: int, width: int, max_bits: int) -> Fraction:
    """Bound on the probability that fixed integer rows of that rank lose rank in :func:`hashed_rows`.

    Some ``rank x rank`` minor is not zero; by Hadamard it has at most ``rank * (max_bits + log2(rank) / 2)`` bits,
    so at most a thirtieth as many primes above 2**30 divide it. Given a prime that keeps the rank, the map loses
    it when it kills one of the fewer than ``p**rank / (p - 1)`` lines of the span, each with chance ``p**-width``.
    """
    minor_bits = rank * (max_bits + Fraction(rank.bit_length(), 2))
    bad_prime = minor_bits / ((PRIME_BITS - 1) * PRIMES_TO_CHOOSE_FROM)
    smallest = 1 << (PRIME_BITS - 1)
    bad_map = Fraction(smallest, smallest - 1) / Fraction(smallest) ** (width - rank + 1)
    return bad_prime + bad_map


def rational_form(rows: Sequence[Sequence[int]], *, homogeneous: bool = False) -> ExactForm:
    """Canonical reduced row echelon form of the span of integer rows, over the rationals."""
    matrix, denominator, rank = flint.fmpz_mat(rows).rref()
    common = int(denominator)
    numerators, denominators, pivots = [], [], []
    for row in matrix.tolist()[:rank]:
        entries = [int(entry) for entry in row]
        divisor = math.gcd(common, *entries) * (1 if common > 0 else -1)
        numerators.append(tuple(entry // divisor for entry in entries))
        denominators.append(common // divisor)
        pivots.append(next(j for j, entry in enumerate(entries) if entry))
    return ExactForm(tuple(numerators), tuple(denominators), tuple(pivots), homogeneous)


class ExactSpan:
    """Tests whether integer rows lie in the span of a form; exact.

    A row x lies in the span when ``c x`` equals the combination of the rows of the form, times their common
    denominator c, with the pivot entries of x as coefficients. The difference is an integer vector of bounded
    size, so it vanishes when it does so modulo enough fixed primes: their product exceeds the bound.
    """

    def __init__(self, form: ExactForm) -> None:
        self.form = form
        self._pivots = list(form.pivots)
        self._common = math.lcm(*form.denominators)
        self._scaled = [
            [entry * (self._common // denominator) for entry in row]
            for row, denominator in zip(form.numerators, form.denominators, strict=True)
        ]  # (k, d)
        largest = max(max(map(abs, row)) for row in self._scaled)
        self._bits = max(self._common, form.rank * largest).bit_length() + 1
        self._residues: dict[int, NDArray[np.int64]] = {}

    def contains(self, rows: IntegerRows) -> NDArray[np.bool_]:
        """Which rows lie in the span, (n,)."""
        inside = np.ones(len(rows), dtype=np.bool_)
        for prime in _fixed_primes(-(-(self._bits + rows.bits) // (PRIME_BITS - 1))):
            residues = rows.residues(prime)  # (n, d)
            combined = matmul_mod(residues[:, self._pivots], self._scaled_residues(prime), prime)
            inside &= (residues * (self._common % prime) % prime == combined).all(axis=1)
            if not inside.any():
                break
        return inside

    def _scaled_residues(self, prime: int) -> NDArray[np.int64]:
        if prime not in self._residues:
            table = [[entry % prime for entry in row] for row in self._scaled]
            self._residues[prime] = np.array(table, dtype=np.int64)
        return self._residues[prime]


@cache
def _fixed_primes(count: int) -> tuple[int, ...]:
    """The largest primes below 2**31; each exceeds 2**30."""
    odd = range((1 << PRIME_BITS) - 1, 1 << (PRIME_BITS - 1), -2)
    return tuple(islice((candidate for candidate in odd if flint.fmpz(candidate).is_prime()), count))


def exact_rank(rows: Sequence[Sequence[int]]) -> int:
    """Rank of integer rows over the rationals."""
    return int(flint.fmpz_mat(rows).rank()) if rows else 0


def leading_independent(residues: NDArray[np.int64], prime: int, limit: int) -> list[int]:
    """Indices of the first independent rows modulo the prime, at most `limit` of them."""
    return reduced(residues, prime, limit)[0]


def reduced(residues: NDArray[np.int64], prime: int, limit: int) -> tuple[list[int], NDArray[np.int64]]:
    """Indices of the first independent rows modulo the prime, at most `limit`, and all rows modulo their span."""
    rest = residues
    chosen: list[int] = []
    while len(chosen) < limit and (nonzero := np.flatnonzero(rest.any(axis=1))).size:
        chosen.append(int(nonzero[0]))
        rest = eliminate(rest, rest[nonzero[0]], prime)
    return chosen, rest


def eliminate(points: NDArray[np.int64], pivot: NDArray[np.int64], prime: int) -> NDArray[np.int64]:
    """Subtract from every row the multiple of `pivot` that clears the first nonzero coordinate of `pivot`."""
    column = int(np.flatnonzero(pivot)[0])
    factor = points[:, column] * pow(int(pivot[column]), -1, prime) % prime
    return (points - factor[:, None] * pivot % prime) % prime


def span_of_rank(
    rows: IntegerRows,
    indices: NDArray[np.intp],
    rank: int,
    hashed: NDArray[np.int64],
    prime: int,
    guess: ExactSpan | None = None,
) -> ExactSpan | None:
    """Span of the named rows when it has exactly that rank, else ``None``; exact.

    `hashed` holds the hashed rows of the whole table, at least ``rank + 1`` wide. More than `rank` independent
    rows modulo the prime settle the question. Otherwise the independent ones span everything over the rationals
    (checked), or the prime was unlucky and the rationals decide alone. A good `guess` of that rank saves time and
    changes nothing.
    """
    independent = leading_independent(hashed[indices], prime, rank + 1)
    if len(independent) > rank:
        return None
    block = rows.take(indices)
    if len(independent) == rank and guess is not None and guess.contains(block).all():
        return guess
    if independent:
        span = ExactSpan(block.form(independent))
        if span.contains(block).all():
            return span if span.form.rank == rank else None
    everything = range(len(block))
    return ExactSpan(block.form(everything)) if exact_rank(block.integers(everything)) == rank else None
