"""Every tuned number of everyday private PCA: none of them is part of a proof, so any other value is as private.

Fitted by benchmarks/scripts/everyday_tables.py on its development tables; what is told beside results by half A of
benchmarks/scripts/calibration.py.  n mu is what data there are; z = 2 sqrt(d) / (n mu) is the noise of a look.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Splitting:
    """How noise is split: t², the number of draws, and whether every N comes with its opposite."""

    square: float
    draws: int
    paired: bool = False


@dataclass(frozen=True)
class EverydayTuning:
    """Of the courses, the search for the centre, looks and their judge."""

    # Courses
    most_noise: float = 0.2  # z: with more, a search for the centre costs more than pairs lose
    two_looks: float = 1.0 / 20.0  # z: with more, two looks would share too little
    few_rows: int = 2**14  # of a draw for the search, at least
    few: float = 320.0  # × sqrt(d) / mu: the rows of that draw, whose rounds have noise of .14 typical lengths
    kappa: float = 12.0  # × sqrt(d) / mu rows are left longer than the clip: there noise and bias balance
    most_clip: float = 0.1  # of mu², for the clip: few columns do not pay for more
    far_rows: float = 1.5  # × wanted rows, 4.5 noise deviations: a clip octaves too long spoils everything
    alike: float = 1.2  # typical lengths: a clip up to here leaves little but unit rows, so one look does
    unit: float = 0.4  # of what is left, for the unit look where there are two
    unit_of_few: float = 0.15  # the same with few columns, where weak directions are hardly drowned
    total: float = 0.02  # of mu², at most, for the mean squared length
    total_data: float = 12.0  # and (this / n mu)², which makes its noise a twelfth
    total_clip: float = 2.0  # typical lengths, at which rows are clipped for it
    weight: float = 0.01  # of mu², for the weight of persons with several rows
    mean: float = 0.04  # of mu², for a mean where there was no search
    scale: float = 40.0  # (this / n mu)² of mu² is for the typical length of differences
    least_scale: float = 150.0  # n mu: with less that length would be mostly noise

    # The centre
    least_data: float = 80.0  # n mu of the first length, which then costs 6 % of mu²
    longer: float = 0.4  # of the rows are longer than the typical length
    longer_far: float = 0.5  # the same octaves away, where all are, or none: noise leads astray less often
    first_length: tuple[float, ...] = (20.0, 30.0, 0.03, 0.001)  # n mu, n mu, and shares: see `_length_share`
    later_length: tuple[float, ...] = (12.0, 18.0, 0.01, 0.0005)  # the same for three counts
    first_steps: int = 8  # counts: half octaves from 2^-64 to 2^63.5
    steps: int = 3  # counts: from R/4 to 2.8 R
    fine_columns: int = 24  # from so many on, a centre costs so much more than a count that quarter octaves pay
    contraction: float = 0.4  # noise of a locating round in units of its radius: the search then falls by half
    least_share: float = 0.002  # of mu², of a locating round: a smaller one would only mean more rounds
    slack: float = 0.25  # of a step is doubted, because long rows were shortened
    resolved: float = 1.5  # × its error: at such a typical length the centre is found
    most_locating: float = 0.25  # of mu², before the centre is found: then pairs do better
    most_polishing: int = 3  # rounds: further ones gain nothing
    polishing: tuple[float, ...] = tuple((0.005 * 2.0 ** (np.arange(14) / 2)).tolist())  # shares to choose from
    least_left: float = 0.3  # of mu², after polishing
    adds: float = 2.0  # × the squared error of the centre over the squared spread: noise of looks in its direction
    worth_it: float = 0.97  # of the predicted noise of the looks, or no further round
    as_good: float = 1.005  # × what all rows are expected to do: a draw that does as well is taken, as it is faster
    reach: float = 4.0  # typical lengths of the early Gram: few rows are longer, and rounding is charged its square

    # The judge
    weights: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)  # of unit rows in a mixture: finer ones follow noise
    many_columns: int = 24  # from so many on noise matters more than what rows of one length change of PCA
    steep: float = 4.0  # first variance over the k-th: with few columns, weak directions are not drowned below
    clear: float = 10.0  # × noise sqrt(d), the k-th variance of a clipped look that needs no other beside it
    negligible: float = 0.03  # of the variance along the k directions: what clipped rows may carry then
    stands_out: float = 0.5  # expected error below which a direction counts
    not_noise: float = 4.0  # standard deviations of the total above zero, or nothing stands out
    unseen: float = 0.4  # of what clipped rows show: what they may have off the basis besides
    of_loss: float = 0.3  # of what noise is estimated to lose, its error beside chance: half A of the calibration
    choosing: Splitting = Splitting(0.5, 8)  # the noise that chooses a mixture: rough, and fast
    estimating: Splitting = Splitting(0.1, 60, paired=True)  # the noise that judges it
    estimating_wide: Splitting = Splitting(0.1, 20, paired=True)  # the same where eigenvectors take longer
    wide: int = 64  # columns: there

    # Looks at wide tables
    splitting: Splitting = Splitting(0.1, 1)  # as above, drawn in the directions that are looked at
    oversampling: int = 2  # directions of a pass beyond k
    least_block: int = 12  # directions of a pass: with fewer, hard tables lose
    together: int = 4  # a multiple of so many: processors multiply them together
    early: int = 1  # passes after the first, when it is decided about unit rows
    passes: int = 8  # before the judgement, at most
    finish_passes: int = 5  # and after it
    small: float = 0.2  # spreads of the noise, residuals that end the first: noise turns directions further
    finish_small: float = 0.1  # the same of the last


EVERYDAY = EverydayTuning()
