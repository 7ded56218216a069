"""Gaussian noise whose law is exact, from random bits and integers alone.

`rounded_normal` draws ``floor(scale * N + 1/2)`` for a continuous standard normal N.  No floating-point error
and no library function enters its law.  `add_gaussian` rounds a vector to a grid and adds such noise, so that
what comes out is the rounding of a real Gaussian mechanism: plain post-processing of it.

The normal is drawn in strips (Karney, "Sampling exactly from the normal distribution", 2016, with 64 strips
per unit instead of one): ``N = ±(k + x) / 64`` with k of weight ``exp(-k² / 2·64²)``, x uniform on [0, 1),
and the pair kept with probability ``exp(-x(2k + x) / 2·64²)``, which is 99.4 % on average.

Every step asks whether a uniform number, known by its first digits, lies below some bound.  `_propose`
answers in float64 for whole arrays and says which answers it cannot vouch for (about one in a million at the
usual scale).  `_settle` answers those from the same digits with integers, and draws further digits where the
first do not decide.  Proofs: ``docs/explanation/gaussian-noise.md``.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privspan._lib.checks import integer_at_least, positive
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan._lib.rounding import sqrt_up
from privspan.privacy.randomness import BitSource

_STRIPS_PER_UNIT = 64  # memory and time of the table; the law is exact for any
_EXPONENT_SHIFT = 13  # exact: 2 * 64² = 2**13, the divisor in both exponents

# First digits: one word holds the sign, the selector of the strip and the height; another the position x.
_SELECTOR_BITS = 31
_HEIGHT_BITS = 32
_GUIDE_BITS = 14  # of the selector's bits, those that look the strip up directly


class Guards(NamedTuple):
    """Widths within which a float64 answer is not trusted; larger ones are as right, and only slower."""

    accept: float
    rounding: float  # per unit of scale + 1


GUARDS = Guards(accept=2.0**-21, rounding=2.0**-48)  # lemmas 3 and 4 of the proof note

_CHUNK = 1 << 16  # draws at a time: the working set stays in the processor's cache
_MAX_ROUNDS = 100  # rejections in a row: chance below 2**-700
_MAX_EXTENSIONS = 50  # further words for one decision: chance below 2**-2000
_MAX_SCALE = 2.0**55  # float64 holds such integers and their rounding
_MAX_STEPS = 2.0**61  # of 64-bit integers, with room for the noise: bound
_GRID_RANGE = (2.0**-960, 2.0**900)  # float64: what is multiplied with a grid neither underflows nor overflows


def grid_for(sigma: float) -> float:
    """Return the power of two ``g`` with ``2**20 <= sigma / g < 2**21``.

    Examples
    --------
    >>> grid_for(1.0) == 2.0**-20
    True
    """
    positive(sigma=sigma)
    grid = math.ldexp(1.0, math.frexp(sigma)[1] - 21)
    if not _GRID_RANGE[0] <= grid <= _GRID_RANGE[1]:
        raise ParameterError("{sigma} must be between 2**-940 and 2**921; got {got!r}.", got=sigma)
    return grid


def rounding_charge(dimension: int, grid: float) -> float:
    """Return ``sqrt(dimension) * grid``, rounded up: what rounding to the grid adds to the sensitivity.

    Rounding moves a coordinate by at most half a step, so two vectors part by at most one step in each.
    Proof: ``docs/explanation/gaussian-noise.md``.

    Examples
    --------
    >>> rounding_charge(4, 0.5)
    1.0
    """
    integer_at_least(1, dimension=dimension)
    _check_grid(grid)
    return sqrt_up(Fraction(dimension)) * grid  # exact: the grid is a power of two


def add_gaussian(
    values: NDArray[np.float64], sigma: float, bits: BitSource, *, grid: float | None = None
) -> NDArray[np.float64]:
    """Round `values` to a grid and add Gaussian noise of standard deviation `sigma` to each of them.

    Parameters
    ----------
    values : ndarray of float64, any shape
        The statistic to protect.  It is rounded to the nearest multiple of `grid` (ties to even) and held
        within 2**61 steps of zero; NaN counts as zero.
    sigma : float
        Standard deviation of the noise.
    bits : BitSource
        Source of the noise, ``open_streams().noise``.
    grid : float, optional
        Spacing of the output, a power of two with ``sigma / grid <= 2**55``.  Default ``grid_for(sigma)``.

    Returns
    -------
    ndarray of float64
        Multiples of `grid`, of the shape of `values`.  A result of more than 2**53 steps is rounded to the
        nearest float64, and one beyond 2**61 steps is held there.

    Guarantee
    ---------
    Neighbours: replace-one.  If the values of neighbouring inputs have ``D`` coordinates and differ by at
    most ``sensitivity`` in Euclidean norm, the output is mu-GDP with
    ``mu = (sensitivity + rounding_charge(D, grid)) / sigma``, and so (epsilon, delta)-DP for every pair that
    `privspan.privacy` derives from mu.  Nothing is approximated and nothing is added to delta.  Assumed:
    `bits` is private, and the bound holds for the float64 values as they are handed in (errors of their
    computation are the caller's to charge).  Running time is not covered.
    Proof: ``docs/explanation/gaussian-noise.md``.
    """
    if getattr(values, "dtype", None) != np.float64:  # a float32 sum has lost more than the charge covers
        raise ParameterTypeError("{values} must be a float64 array.")
    positive(sigma=sigma)
    grid = grid_for(sigma) if grid is None else grid
    _check_grid(grid)
    scale = float(sigma) / float(grid)  # exact: the grid is a power of two
    flat = np.asarray(values).reshape(-1)  # (size,), also for subclasses that stay two-dimensional
    noisy = np.empty(flat.size)
    for start in range(0, flat.size, _CHUNK):
        steps = _to_steps(flat[start : start + _CHUNK], grid)
        steps += rounded_normal(steps.size, scale, bits)
        noisy[start : start + _CHUNK] = np.clip(steps, -int(_MAX_STEPS), int(_MAX_STEPS)) * grid
    return noisy.reshape(values.shape)


def rounded_normal(
    size: int | tuple[int, ...], scale: float, bits: BitSource, guards: Guards = GUARDS
) -> NDArray[np.int64]:
    """Draw ``floor(scale * N + 1/2)`` for independent standard normals N, with exactly this law.

    Parameters
    ----------
    size : int or tuple of int
        Shape of the result.
    scale : float
        Standard deviation before rounding, at most 2**55; taken as the exact number that the float is.
        Up to about 2**35 the speed does not depend on it.  Above, more and more draws need the integer path,
        and from 2**47 on all do, which is two hundred times slower.
    bits : BitSource
        Source of the random bits.
    guards : Guards
        When integers decide.

    Returns
    -------
    ndarray of int64
        The draws.  A draw beyond 2**62 in size, more than 127 standard deviations out, is held there.

    Notes
    -----
    See ``docs/explanation/gaussian-noise.md`` for the proof that the law is exact.
    """
    positive(scale=scale)
    if scale > _MAX_SCALE:
        raise ParameterError("{scale} must be at most 2**55; got {got!r}. Choose a coarser grid.", got=scale)
    drawn = np.empty(size, dtype=np.int64)
    flat = drawn.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        _fill(flat[start : start + _CHUNK], float(scale), bits, guards)
    return drawn


def _check_grid(grid: float) -> None:
    """Refuse a grid that is not a power of two, for which the scaling of values would not be exact."""
    positive(grid=grid)
    if math.frexp(grid)[0] != 0.5 or not _GRID_RANGE[0] <= grid <= _GRID_RANGE[1]:
        raise ParameterError("{grid} must be a power of two between 2**-960 and 2**900; got {got!r}.", got=grid)


def _to_steps(values: NDArray[np.float64], grid: float) -> NDArray[np.int64]:
    """Round to whole steps of the grid, within 2**61; never raises, whatever the values are."""
    with np.errstate(all="ignore"):  # an overflow is saturated, an underflow rounds to zero
        steps = np.rint(values / grid)
    steps[np.isnan(steps)] = 0.0
    return np.clip(steps, -_MAX_STEPS, _MAX_STEPS).astype(np.int64)


def _fill(drawn: NDArray[np.int64], scale: float, bits: BitSource, guards: Guards) -> None:
    """Fill a one-dimensional array with draws: propose for all, repeat where the proposal was rejected."""
    pending = np.arange(drawn.size)
    for _ in range(_MAX_ROUNDS):
        words = bits.uint64((2, pending.size))
        proposal, accepted, undecided = _propose(words, scale, guards)
        for index in np.flatnonzero(undecided):
            settled = _settle(int(words[0, index]), int(words[1, index]), scale, bits)
            accepted[index] = settled is not None
            proposal[index] = settled or 0
        drawn[pending[accepted]] = proposal[accepted]
        pending = pending[~accepted]
        if pending.size == 0:
            return
    raise RuntimeError("The random source is broken: 100 proposals in a row were rejected.")


# ---- The fast path: float64, whole arrays, with proven guard widths ----------------------------------------


def _propose(
    words: NDArray[np.uint64], scale: float, guards: Guards
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Turn two words per draw into a proposal, whether it is accepted, and whether float64 cannot tell."""
    first, second = words  # (n,), (n,)
    strip, split = _strips((first >> np.uint64(_HEIGHT_BITS)).astype(np.int64) & ((1 << _SELECTOR_BITS) - 1))
    height = (first & np.uint64((1 << _HEIGHT_BITS) - 1)).astype(np.float64) * 2.0**-_HEIGHT_BITS
    position = (second >> np.uint64(11)).astype(np.float64) * 2.0**-53  # the first 53 digits of x, exactly

    margin = _taylor_exp(position * (2.0 * strip + position) * 2.0**-_EXPONENT_SHIFT) - height
    shifted = (strip + position) * (scale / _STRIPS_PER_UNIT) + 0.5
    magnitude = np.floor(shifted)
    undecided = np.abs(margin) <= guards.accept
    undecided |= np.abs(shifted - magnitude - 0.5) >= 0.5 - guards.rounding * (scale + 1.0)
    undecided[split] = True
    negative = (first >> np.uint64(63)).astype(np.bool_)
    return np.where(negative, -magnitude, magnitude).astype(np.int64), margin > 0.0, undecided


def _strips(selector: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Look up the strip of each selector, and say at which places the selector does not determine it."""
    starts, guide = _strip_table()
    strip = guide[selector >> (_SELECTOR_BITS - _GUIDE_BITS)]
    shared = np.flatnonzero(strip < 0.0)  # 2 % of them: several strips meet in this cell of the guide
    found = np.searchsorted(starts, selector[shared], side="right") - 1
    strip[shared] = found
    return strip, shared[starts[found] == selector[shared]]


@cache
def _strip_table() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the selector in which each strip starts, and the strip (or -1) of each cell of the guide."""
    lower, _ = _cumulative_bounds(128)
    exact = [bound >> (128 - _SELECTOR_BITS) for bound in lower]
    starts = np.array(exact[: exact.index((1 << _SELECTOR_BITS) - 1) + 1], dtype=np.int64)  # (k_max + 1,)
    shift = _SELECTOR_BITS - _GUIDE_BITS
    cells = np.arange(1 << _GUIDE_BITS) << shift
    guide = (np.searchsorted(starts, cells, side="right") - 1).astype(np.float64)
    guide[starts >> shift] = -1.0
    return starts, guide


def _taylor_exp(exponent: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exp(-exponent) for 0 <= exponent <= 1/8, with an error below 2**-21.9 (lemma 3)."""
    series = 1.0 - exponent * 0.25
    series = 1.0 - exponent * series * (1.0 / 3.0)
    series = 1.0 - exponent * series * 0.5
    return 1.0 - exponent * series


# ---- The exact path: integers, one draw at a time, digits on demand ----------------------------------------


@dataclass
class _Digits:
    """The first `length` binary digits of a uniform number in [0, 1), as the integer `value`."""

    value: int
    length: int

    def extend(self, bits: BitSource) -> None:
        """Draw 64 further digits."""
        self.value = self.value << 64 | int.from_bytes(bits.bytes(8), "little")
        self.length += 64


def _settle(first: int, second: int, scale: float, bits: BitSource) -> int | None:
    """Decide one draw from its two words and as many further digits as that takes; None if it is rejected."""
    height = _Digits(first & ((1 << _HEIGHT_BITS) - 1), _HEIGHT_BITS)
    selector = _Digits(first >> _HEIGHT_BITS & ((1 << _SELECTOR_BITS) - 1), _SELECTOR_BITS)
    position = _Digits(second, 64)
    strip = _ask(lambda: _strip_of(selector), [selector], bits)
    if not _ask(lambda: _is_accepted(strip, position, height), [position, height], bits):
        return None
    magnitude = _ask(lambda: _rounded(strip, position, scale), [position], bits)
    return min(magnitude, 1 << 62) * (-1 if first >> 63 else 1)


def _ask(question: Callable[[], int | None], digits: list[_Digits], bits: BitSource) -> int:
    """Return the answer that holds whatever the undrawn digits are; draw more of them while there is none."""
    for _ in range(_MAX_EXTENSIONS):
        answer = question()
        if answer is not None:
            return answer
        for each in digits:
            each.extend(bits)
    raise RuntimeError("The random source is broken: 50 further words did not settle a draw.")


def _strip_of(selector: _Digits) -> int | None:
    """Return the strip k with P(strip < k) <= selector < P(strip < k + 1)."""
    lower, upper = _cumulative_bounds(selector.length + 97)
    strip = bisect_right(upper, selector.value << 97) - 1
    known = strip + 1 < len(lower) and (selector.value + 1) << 97 <= lower[strip + 1]
    return strip if known else None


def _is_accepted(strip: int, position: _Digits, height: _Digits) -> bool | None:
    """Return whether the height lies below exp(-x(2k + x) / 2·64²)."""
    origin = strip << (position.length + 1)  # 2k, in units of the last digit of x
    left, right = position.value, position.value + 1  # x lies in [left, right) in the same units
    shift = 2 * position.length + _EXPONENT_SHIFT
    precision = position.length + 64
    lower, _ = _exp_bounds(right * (origin + right), shift, precision)
    _, upper = _exp_bounds(left * (origin + left), shift, precision)
    if (height.value + 1) << (precision - height.length) <= lower:
        return True
    return False if height.value << (precision - height.length) >= upper else None


def _rounded(strip: int, position: _Digits, scale: float) -> int | None:
    """Return floor(scale * (k + x) / 64 + 1/2)."""
    numerator, denominator = scale.as_integer_ratio()
    divisor = (2 * _STRIPS_PER_UNIT * denominator) << position.length
    left = 2 * numerator * ((strip << position.length) + position.value) + divisor // 2
    right = left + 2 * numerator  # what is floored lies in [left / divisor, right / divisor)
    return left // divisor if left // divisor == (right - 1) // divisor else None


@cache
def _cumulative_bounds(precision: int) -> tuple[list[int], list[int]]:
    """Return integers around ``2**precision * P(strip < k)`` for k = 0, 1, ..., to the last digits (lemma 2).

    The weights follow from w_{k+1} = w_k r_k and r_{k+1} = r_k exp(-2 / 2·64²), with bounds rounded outwards.
    """
    one = 1 << precision
    step = _exp_bounds(2, _EXPONENT_SHIFT, precision)
    ratio = _exp_bounds(1, _EXPONENT_SHIFT, precision)
    weight, total = (one, one), (0, 0)
    sums = [total]
    while weight[1] > 64:
        total = (total[0] + weight[0], total[1] + weight[1])
        sums.append(total)
        weight = _multiply(weight, ratio, precision)
        ratio = _multiply(ratio, step, precision)
    # The weights from j on sum to at most w_j (1 + 64² / j), by comparison with an integral.
    whole = total[1] + weight[1] * (2 + _STRIPS_PER_UNIT**2 // (len(sums) - 1))
    upper = [-((-high << precision) // total[0]) for _, high in sums]
    return [(low << precision) // whole for low, _ in sums], upper


def _multiply(left: tuple[int, int], right: tuple[int, int], precision: int) -> tuple[int, int]:
    """Multiply two non-negative fixed-point numbers given by bounds, rounding outwards."""
    return left[0] * right[0] >> precision, (left[1] * right[1] >> precision) + 1


def _exp_bounds(numerator: int, shift: int, precision: int) -> tuple[int, int]:
    """Return integers around ``2**precision * exp(-numerator / 2**shift)``, by its series (lemma 1)."""
    halvings = max(0, numerator.bit_length() - shift)  # the series needs an argument below 1
    shift += halvings
    total = term = 1 << precision
    count = 0
    while term:
        count += 1
        term = term * numerator // (count << shift)
        total += -term if count % 2 else term
    error = 2 * count + 2
    bounds = max(total - error, 0), min(total + error, 1 << precision)
    for _ in range(halvings):
        bounds = _multiply(bounds, bounds, precision)
    return bounds
