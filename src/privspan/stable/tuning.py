"""Every tuned number of stable leverage and of the course that chooses it: any other value is as private.

Shares and levels: fitted on normal records, benchmarks/scripts/stable_accuracy.py; the choice:
benchmarks/scripts/one_algorithm.py, on data sets that its cells do not report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from privspan.privacy.coin import USUAL_SCORE

Weights: TypeAlias = tuple[float, float, float, float, float, float]  # of the steps, in their order


@dataclass(frozen=True)
class Allowance:
    """What the plan leaves room for."""

    movers: float  # share of the items that may lie on the ramp
    tail_factor: float  # the tail may be this much longer than the released scale
    tail_spectrum: float  # λ_{k+1} that may occur beyond that of a normal tail, in units of the ridge
    signal_margin: float  # share of the items by which λ_k may fall short
    usual: float = USUAL_SCORE  # typical data go on with a chance of Φ of it


@dataclass(frozen=True)
class StableTuning:
    """Of the shares of steps, of levels, of scales, and of the choice between courses."""

    # Room of plans
    tight: Allowance = Allowance(movers=0.004, tail_factor=1.12, tail_spectrum=0.03, signal_margin=0.01)  # alike
    robust: Allowance = Allowance(movers=0.02, tail_factor=2.2, tail_spectrum=0.12, signal_margin=0.015)  # long tails
    groups: Allowance = Allowance(movers=0.05, tail_factor=1.5, tail_spectrum=0.05, signal_margin=0.03)  # of blocks
    even_score: float = 1.5  # `usual` where no tail is long: a margin is then reached by far, or not at all
    long_tail: float = 1.2  # × the released length: a longer tail counts as long
    signal_quantile: float = 2.0  # standard deviations of its noise that are taken off the released strength
    group_strength: float = 0.97  # λ_k of the sum of t block projectors, over t

    # Shares of mu² of scales, as (least, most, size): (size / n mu)², within the two
    norms: tuple[float, float, float] = (0.002, 0.1, 61.0)  # for the length of norms
    tail_lengths: tuple[float, float, float] = (0.004, 0.15, 20.3)  # for that of tails, with size × (k + 1)
    group_tails: tuple[float, float, float] = (0.004, 0.2, 34.0)  # the same of groups, whose number is n here

    # Shares of mu², from which the plan takes those with the least noise
    test_deltas: tuple[float, ...] = (0.1, 0.3)  # of delta, for the test
    ideal: float = 1e-3  # the tail of the records that the shares are planned for
    abstaining: Weights = (0.1, 0.15, 0.05, 0.1, 0.35, 0.25)  # of all steps where no plan answers
    abstaining_groups: Weights = (0.0, 0.2, 0.0, 0.0, 0.4, 0.4)  # the same of groups
    least_noise: float = 0.1  # for the noise, at least
    least_noise_groups: float = 0.08  # the same of groups
    strength_noise: float = 1.1  # × 1 / mu: the noise of a released strength, rounding included
    long_movers: tuple[float, float, float] = (0.01, 0.08, 0.02)  # room: at no long tail, per share of them, at most
    long_factor: tuple[float, float, float] = (1.25, 9.0, 3.2)  # the same for how much longer tails may be
    even_tails: float = 2.3  # over √d, relatively: how much the lengths of even normal tails differ
    full: float = 0.97  # of the level at which a record of the usual tail lies: full weight begins there
    fewest_movers: int = 4  # on the ramp, however few the records
    clear_target: float = 10.0  # beyond the margins must the strength be, or there is no plan
    rotation: float = 1e-3  # of delta, or of what is set aside: the error of a rotation costs next to nothing
    long_known: float = 0.035  # standard deviation of the share of long groups
    most_long: float = 0.05  # for that, at most
    quantiles: tuple[float, ...] = (0.25, 0.35, 0.45, 0.55)  # of norms, at which rows are made short
    signals: tuple[float, ...] = (0.005, 0.01, 0.02, 0.04, 0.07, 0.1)  # for the strength
    tests: tuple[float, ...] = tuple(float(weight) for weight in np.arange(0.04, 0.62, 0.03))  # for the test
    after_yes: tuple[tuple[float, ...], ...] = ((0.76, 0.84, 0.92), (0.68, 0.6))  # of what is left, in this order

    # The choice
    test: float = 0.05  # of delta, set aside for the test, whether or not there will be one
    worth_it: float = 0.9  # of the adaptive algorithm's error: a look may fail, and takes up to a minute
    worth_it_large: float = 1.0  # where passes over the table take longer than that anyhow
    large: float = 5e8  # cells, from which on they do
    sure: float = 4.0  # standard deviations between all groups short, or none, and the half that the probe asks for
    least_probe: float = 0.001  # of mu²; less would hardly be missed
    most_probe: float = 0.02  # of mu²
    moments: tuple[float, float, float] = (0.002, 0.04, 0.1)  # of mu², for a second moment: least, most; its error
    tails: tuple[float, float] = (1e-5, 0.3)  # energies between which the longest that pays off is looked for
    look_tests: tuple[float, ...] = (0.03, 0.045, 0.06, 0.1, 0.15, 0.2, 0.27, 0.35, 0.42, 0.5, 0.58)  # as `tests`
    noises: tuple[float, ...] = (0.04, 0.1, 0.2, 0.3, 0.45, 0.6)  # of what is left then, for the noise of the look
    signal_size: float = 40.0  # (this k / n mu)² of mu²: the strength is known within a few per cent of n / k
    least_signal: float = 0.005  # of mu², for it
    most_signal: float = 0.08  # of mu², for it
    quantile: float = 0.3  # of norms, at which rows are made short
    thrifty_quantile: float = 0.15  # the same where the strength is scarce
    sampled: float = 0.75  # × √(k/m): how far the least of k eigenvalues of a sample falls short
    weakest: float = 0.05  # of the usual strength, at which a weaker one is planned for
    tail_steps: float = 1.25  # ratio that ends the search for the longest tail
    least_left: float = 0.1  # of mu², after a test, or there is no plan
    least_rounds: float = 0.05  # of mu², for rounds, or there are none
    few: float = 350.0  # mu times rows, below which the strength is what is scarce
    thrift: float = 0.7  # × what scales get elsewhere: there
    tail_read: float = 0.95  # a released tail over the typical one
    norm_edge: float = 2.0 ** (1 / 8)  # a released norm is the upper edge of its bin: half a bin more
    long_error: float = 0.09  # a share of long tails known no better than this is not asked for
    caution: float = 1.0  # standard deviations of its noise to take off the released strength
    risk: float = 0.012  # weight of the error after a no, in planning
    unlucky: float = 1.5  # standard deviations the strength may fall short and still leave a plan, with few rows
    fewest_groups: int = 10  # with fewer a scale is mostly noise
    useful: float = 0.4  # a look that promises no better error is not worth the risk
    fewest_columns: int = 50  # with fewer, noise that does not grow with their number gains little
    rounds: int = 3  # of the rounds that follow, for predictions
    by_rounds: float = 1.05  # × the formula, the measured error of rounds
    by_adaptive: float = 1.05  # × the formula, that of the adaptive algorithm
    whole: float = 0.97  # of mu, for a course without a test: nearly nothing is lost by the others
    after_no: float = 0.5  # of what is left, after *no*
    little_after_no: float = 0.2  # the same where it is of no use anyway
    before_step: float = 1.02  # steps of a share before the test, so that few plans are made
    most_before: float = 0.6  # of mu²: with more before it, accounting together gains nothing
    short_tail: float = 1e-3  # for which chances are planned
    better: float = 0.97  # of the error when the test is a Gaussian step, or that is done
    longest_tail: float = 0.04  # of a scaled record, beyond which the test is rarely passed
    longer: float = 1.5  # × the released tail of scaled rows, the residuals of unit rows at most, for planning
    least_eigenvalue: float = 0.05  # × the mean one, along the basis

    # Scales that are read off histograms
    tail_longer: float = 0.35  # of the lengths near the peak are longer than where the released one is read off
    tail_caution: float = 0.5  # of a bin by which it is then made longer: too short means an abstention


STABLE = StableTuning()
