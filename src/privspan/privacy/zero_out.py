"""Zero-out: what a release promises where a record's place is left empty, rather than filled by another record.

An empty place adds nothing to a sum, votes for no bin and makes its pair or group empty; the number of places is
public, as always.  Against a replacement it moves sums half as far and second moments less far by sqrt(2), at the
noise that is there anyway: a step of mu for replace-one neighbours has mu / gain for these.  Counts have a gain of 1.

How far a run gets may depend on results, so the sum of (mu / gain)² along it promises nothing.  What does is a bound
for every way that the run may take, fixed before the first of them: at most a share `plain` of mu² goes to steps
without a gain, and all others have the one that is named.  Proofs: docs/explanation/zero-out.md.
"""

from __future__ import annotations

import math

_KEPT = 0.99  # of a gain: rounding is charged for either relation, and counts for more in the smaller one
_ROUND = 1.0 - 2.0**-48  # rounding: more than these operations can be off

ROOT_HALF = math.nextafter(math.sqrt(0.5), 1.0)
"""What a positive semidefinite matrix of norm 1 is, over what two of them differ by; rounded up: lemma 1."""


def gain(sensitivity: float, empty: float) -> float:
    """Return the gain of a sum that a replacement moves by `sensitivity`, and an empty place by `empty`: at least 1.

    `privspan.sums.grid.noise_level` sees to it that what rounding adds to both does not take it away.
    """
    return max(1.0, _KEPT * _ROUND * (sensitivity / empty))


MOMENTS = gain(1.0, ROOT_HALF)
"""Of second moments and of histograms: sqrt(2), but for rounding."""

SUMS = gain(2.0, 1.0)
"""Of sums of vectors: 2, but for rounding."""


def look_gain(constant: float, most: float = 1.0) -> float:
    """Return the gain of second moments of rows with a constant, which is left where a place is empty.

    `most` bounds the squared factor by which a person with several rows is lifted.
    """
    size = 1.0 + constant * constant
    return gain(size, look_empty(constant, most))


def look_empty(constant: float, most: float = 1.0) -> float:
    """Return how far an empty place moves them, where a replacement does by 1 + constant²; rounded up."""
    square = constant * constant
    both = math.hypot(1.0 + square, most * square)
    return min(1.0 + square, ROOT_HALF * both * (2.0 - _ROUND))


def most_share(plain: float, gain: float) -> float:
    """Return the share of mu² that an empty place can tell, at most; rounded up.

    For runs with at most a share `plain` of mu² in steps without a gain, and no less than this `gain` in all others.
    """
    plain = min(1.0, plain)
    return min(1.0, (plain + (1.0 - plain) / gain**2) * (1.0 + 1e-9))
