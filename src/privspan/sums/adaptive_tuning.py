"""Every tuned number of the adaptive algorithm: none of them is part of a proof, so any other value is as private.

Fitted on the settings of benchmarks/scripts/adaptive_accuracy.py; `LEAN` on those of
benchmarks/scripts/one_algorithm.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class AdaptiveTuning:
    """Of the first look, of looks for weak directions, of localised rounds and of how these are planned."""

    # The course
    first_passes: int = 6  # over the rows, at most, for the first look and for weak directions
    finish_passes: int = 14  # and for a plain finish
    oversampling: int = 7  # directions of a pass beyond k
    together: int = 4  # a multiple of so many, about: processors multiply them together
    small_look: float = 0.1  # spreads of the noise, residuals that end these: noise turns directions further
    found: float = 0.35  # expected error below which a direction stands out: worse ones mislead rounds
    found_late: float = 0.5  # the same, when nothing could be gained by looking again
    apart: float = 0.5  # of a weak direction's energy the next one has: rounds turn towards it as slowly
    most_looks: int = 3  # for weak directions: each has a share of what is left

    # Planning
    most_rounds: int = 5  # localised ones: further ones gain nothing
    inner_parts: tuple[float, ...] = (0.01, 0.02, 0.035, 0.05, 0.08)  # of a round's share, for its (k, k) matrix M
    usual_part: float = 0.05  # of these, what the planning of rounds supposes
    fractions: tuple[float, ...] = (0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.06, 0.04)  # of what is left, but for the last
    per_extra_round: float = 0.01  # of the error must a further round promise, to be worth its risk
    probe: float = 1.0  # part of its usual share that a question for a typical length gets
    off: float = 1.0  # part that is believed of the first guess at g, which is cautious
    most_off: float = math.inf  # g as far as it has been released

    # Localised rounds
    whitening: float = 0.65  # exponent: between rounds that see weak directions and rounds that follow strong ones
    clip: float = 0.7  # × the geometric mean of ||r|| ||u||: there noise and bias balance
    across: float = 0.6  # of the typical ||u|| / ||r||: records below say more of others than of the basis
    worth_it: float = 1.1  # × the squared error of Analyze Gauss, the most that rounds may promise
    worth_it_hidden: float = 0.85  # the same when structure may hide that the prediction knows nothing about
    hidden: float = 0.5  # of the energy off the subspace, from which on it may
    constant: float = 1.0  # × the mean energy of others, in the whitened coordinates: residuals fall fastest so
    constant_last: float = 0.1  # after the last round nobody asks how well its direction is known
    longer: float = 1.3  # mean over typical squared size ||r||² ||u||²
    longer_beside_constant: float = 1.0  # a constant, which all rows have, makes them more alike
    lowest_weight: float = 0.05  # mean weights of records are taken to be at least this, against noise
    lowest_slope: float = 0.3  # the same of eigenvalues of M against its prior
    lowest_eigenvalue: float = 0.2  # × the least old one: a new eigenvalue may not fall below
    beyond_rounding: float = 64.0  # × what float32 adds to squared residuals: where these are longer, it is nothing
    beyond_sums: float = 256.0  # × what it adds to a sum of residuals: with a clip as long it costs .4 % of the noise
    least_off: float = 0.02  # residual of a unit row, at least: less cannot be told from none

    # Looks for weak directions
    shrunk_clip: float = 0.9  # × the geometric mean of the lengths of x~
    least_weight: float = 0.05  # of the records on average, as above
    small: float = 0.1  # spreads of the noise, residuals that end the search

    # Beside a constant
    least_square: float = 0.5  # × the noise's spread, the constant's own second moment at least
    sure: float = 0.1  # part of a measured mean that is believed at least


ADAPTIVE = AdaptiveTuning()
LEAN = AdaptiveTuning(probe=0.4, off=0.7)
"""Within a course that has other questions to pay for: 4 to 20 % less error than `ADAPTIVE` in eleven settings."""
