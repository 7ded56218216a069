"""Arithmetic on privacy parameters whose rounding direction is known.

A budget is a real number and a float is a rational one, so sums, shares and square roots are computed
exactly (or bracketed) with fractions and rounded once, in the direction that keeps the promise: what is
spent is rounded up, what may be spent is rounded down.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from privspan._lib.errors import ParameterError

UNIT_ROUNDOFF = 2.0**-53
"""The largest relative error of one float64 operation that rounds to nearest."""

_SMALLEST = 1e-300  # where a search for a small number begins: far above what underflows


SINGLE_ROUNDOFF = 2.0**-24
"""The same of float32."""


def relative_error(operations: float, roundoff: float = UNIT_ROUNDOFF) -> float:
    """Return gamma_m = m u / (1 - m u), rounded up: the relative error of m float64 operations in any order.

    Higham, *Accuracy and Stability of Numerical Algorithms*, lemma 3.1.  Another roundoff u is for another type.
    """
    rounded = operations * roundoff
    if rounded >= 0.5:
        raise ParameterError("{operations} must be below half the number that makes an error of 1: 2**52 in float64.")
    return rounded / (1.0 - rounded) * (1.0 + 2.0**-50)


def down(value: Fraction) -> float:
    """Return the largest float that is at most `value`."""
    try:
        nearest = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -math.inf
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def up(value: Fraction) -> float:
    """Return the smallest float that is at least `value`."""
    return 0.0 - down(-value)  # not minus zero


def sqrt_down(value: Fraction) -> float:
    """Return a float at most the square root of `value`, and within one unit in the last place of it."""
    return down(_sqrt_bracket(value)[0])


def sqrt_up(value: Fraction) -> float:
    """Return a float at least the square root of `value`, and within one unit in the last place of it."""
    return up(_sqrt_bracket(value)[1])


def _sqrt_bracket(value: Fraction) -> tuple[Fraction, Fraction]:
    """Return rationals around the square root, 64 bits tight, equal when the root is exact."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    shift = max(0, 65 - exponent // 2)
    scaled = value * 4**shift
    root = math.isqrt(math.floor(scaled))
    excess = 0 if root * root == scaled else 1
    return Fraction(root, 2**shift), Fraction(root + excess, 2**shift)


def tighten(passes: Callable[[float], bool], good: float, bad: float, tight: float = 2.0**-50) -> float:
    """Move `good` towards `bad` by bisection, keeping it on the passing side, up to a relative distance of `tight`.

    Both are positive, in either order.  The returned number passed the test itself (or is the `good` given), so that
    safety never rests on the test being monotone; only tightness does.
    """
    while abs(bad - good) > tight * good:
        middle = math.sqrt(good) * math.sqrt(bad)
        if not min(good, bad) < middle < max(good, bad):
            break
        if passes(middle):
            good = middle
        else:
            bad = middle
    return good


def least_passing(passes: Callable[[float], bool]) -> float:
    """Return about the smallest number, zero or above, that passes a test which large enough numbers pass.

    The returned number passed itself; it is infinite only where no float passes.
    """
    if passes(0.0):
        return 0.0
    good, bad = 1.0, _SMALLEST
    while not passes(good):
        good, bad = 2.0 * good, good
        if math.isinf(good):
            return good
    return tighten(passes, good, bad)


quiet_numpy = partial(np.errstate, all="ignore")
"""A context in which NumPy neither raises nor warns, whatever a row holds.

With ``np.seterr(all="raise")`` an underflow in one person's row would otherwise end a call, and the end of a call is
seen by everybody.
"""
