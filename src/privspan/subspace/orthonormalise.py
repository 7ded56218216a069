"""Orthonormal floats from integer rows of any size.

The rows of an exact form may hold integers of thousands of digits, differ in scale by hundreds of orders of
magnitude, or be so nearly parallel that rounding them to floats loses a direction.  Rows that are well
conditioned once each is scaled to unit length are orthonormalised in floating point.  The others are made
orthogonal in fixed-point integer arithmetic with as many bits as they turn out to need, and rounded to
floats last.  Both routes are deterministic.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_WELL_CONDITIONED = 1e-3  # smallest singular value of unit rows; float64 is then right to about 1e-13
_SAFE_BITS = 64  # bits of accuracy wanted of the fixed-point route

_Integers = NDArray[np.object_]


def orthonormal_rows(
    rows: Sequence[Sequence[int]], last_divisor: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Run Gram and Schmidt's process on independent integer rows (m, d), accurately.

    That they are independent is the caller's promise.  Returns orthonormal rows (m, d), of which the first i span
    what the first i given ones span, and (d,) what is left of the last row less its projection on the others, divided
    by `last_divisor` (not zero) and saturated at the largest float.
    """
    scales = [max(map(abs, row)) for row in rows]
    unit_rows = _as_floats(rows, scales)  # (m, d), entries in [-1, 1]
    lengths = np.linalg.norm(unit_rows, axis=1)  # (m,), from 1 to sqrt(d)
    q, r = np.linalg.qr((unit_rows / lengths[:, None]).T)  # (d, m), (m, m)
    if np.linalg.svd(r, compute_uv=False)[-1] < _WELL_CONDITIONED:
        return _fixed_point(rows, last_divisor)
    units = q.T * np.sign(np.diag(r))[:, None]
    left = units[-1] * (lengths[-1] * abs(r[-1, -1]))  # (d,), times the scale of the last row
    ratios = (float(value).as_integer_ratio() for value in left)
    return units, np.array([_divide(top * scales[-1], bottom * last_divisor) for top, bottom in ratios])


def _fixed_point(rows: Sequence[Sequence[int]], last_divisor: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    bits = _guard_bits(len(rows), len(rows[0])) + 64
    while (attempt := _gram_schmidt(rows, bits)) is None:
        bits *= 2
    orthogonal, shift = attempt
    floats = _as_floats(orthogonal, [1 << bits] * len(orthogonal))  # (m, d)
    units = floats / np.linalg.norm(floats, axis=1, keepdims=True)
    numerator, denominator = 1 << max(0, -shift), last_divisor << max(0, shift)
    return units, np.array([_divide(int(value) * numerator, denominator) for value in orthogonal[-1]])


def _guard_bits(m: int, d: int) -> int:
    """Return how many bits rounding can spoil, plus the ones wanted.

    Rounding adds up to 2 units to each of d entries for each projection.  A relative error e in an orthogonal row
    moves a projection on it by at most 2e, so the sum of the errors triples with each row; what else makes it grow
    is cancellation, which is counted as it happens.
    """
    return _SAFE_BITS + 2 * m + m.bit_length() + d.bit_length() + 6


def _gram_schmidt(rows: Sequence[Sequence[int]], bits: int) -> tuple[list[_Integers], int] | None:
    """Return orthogonal rows of `bits`-bit integers, and the last one's shift; None if too few.

    The last orthogonal row is ``rows[-1]`` less its projection, times ``2**shift``.
    """
    done: list[tuple[_Integers, int]] = []
    lost = shift = 0  # lost: bits cancelled so far, rounded up, by which errors have grown
    for row in rows:
        rest, shift = _normalised(np.array(row, dtype=object), bits)
        before = int(rest @ rest)
        for unit, square in done:
            factor = (int(rest @ unit) << bits) // square
            rest = rest - ((factor * unit) >> bits)
        after = int(rest @ rest)
        lost += max(0, before.bit_length() - after.bit_length() + 2) // 2
        if after == 0 or lost > bits - _guard_bits(len(rows), len(row)):
            return None
        rest, more = _normalised(rest, bits)
        shift += more
        done.append((rest, int(rest @ rest)))
    return [unit for unit, _ in done], shift


def _normalised(row: _Integers, bits: int) -> tuple[_Integers, int]:
    """Return the row times the power of two that gives its longest entry `bits` bits, and the exponent."""
    shift = bits - max(int(value).bit_length() for value in row)
    return (row << shift if shift >= 0 else row >> -shift), shift


def _as_floats(rows: Sequence[Sequence[int] | _Integers], scales: Sequence[int]) -> NDArray[np.float64]:
    # Python divides integers of any length with one rounding.
    return np.array([[value / scale for value in row] for row, scale in zip(rows, scales, strict=True)])


def _divide(numerator: int, denominator: int) -> float:
    """Return the quotient of integers that may be beyond the range of a float."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.copysign(sys.float_info.max, 1 if (numerator > 0) == (denominator > 0) else -1)
