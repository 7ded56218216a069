"""How the adaptive algorithm divides its budget, and what error it expects: formulas of public and released numbers.

Nothing here sees data.  `adaptive` and `rounds` take their shares from these functions while they run, with released
values put in; `predicted_error` puts in what is known beforehand.  Errors are medians of the sine of the largest
angle.  Symbols: mu the whole budget, b a share of mu², g² the mean squared length of a unit row off the subspace,
lambda_k the k-th eigenvalue of the mean of x xᵀ over unit rows.
Derivations: docs/explanation/everyday-pca.md, "What it costs".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from privspan.sums.adaptive_tuning import ADAPTIVE, AdaptiveTuning

Array = NDArray[np.float64]


def crowding(n: int, d: int, k: int, mu: float) -> float:
    """Return kappa = (sqrt(d) + sqrt(k)) k / (mu n), the error of Analyze Gauss for rows evenly in a subspace."""
    return (math.sqrt(d) + math.sqrt(k)) * k / (mu * n)


def first_share(n: int, d: int, k: int, mu: float) -> float:
    """Return the share of the first look: enough for an error of about .15, within [.04, .4]."""
    return min(max((crowding(n, d, k, mu) / 0.15) ** 2, 0.04), 0.4)


def probe_share(n: int, mu: float) -> float:
    """Return the share of one question for a typical length: enough to know it within about 5 %, at most .01."""
    return min(max((100.0 / (n * mu)) ** 2, 0.002), 0.01)


def analyze_gauss_error(n: int, d: int, k: int, mu: float, weakest: float) -> float:
    """Return the error of Analyze Gauss, (sqrt(d) + sqrt(k)) / (mu n lambda_k), without the sampling error."""
    return (math.sqrt(d) + math.sqrt(k)) / (mu * n * weakest)


def signal_strength(k: int, gamma_w: float) -> tuple[float, float]:
    """Return (lambda_k, g²) for equal signal variances 1 and tail energy gamma_w², by means of ratios.

    The unit row of a record with signal s = ||z||² has the share s / (s + gamma_w²) inside.
    """
    inside = k / (k + gamma_w**2)
    return inside / k, 1.0 - inside


def round_noise(n: int, d: int, k: int, mu: float, weakest: float) -> float:
    """Return the error of a localised round with the whole budget, per unit of residual length and with clip 1/2."""
    return (math.sqrt(d) + math.sqrt(k)) * math.sqrt(k) / (mu * n * math.sqrt(weakest))


def prior_spread(eigenvalues: Array) -> float:
    """Return how far, relatively, the matrix M may be from its guess by the released eigenvalues.

    Near .1 for equal eigenvalues, where weighting changes little, up to .35 for unequal ones.
    """
    ratio = max(float(eigenvalues.max() / eigenvalues.min()), 1.3) / 1.3
    return 0.1 + 0.25 * min(1.0, math.log(ratio) / math.log(2.5))


@dataclass(frozen=True)
class Setting:
    """What the errors of localised rounds depend on."""

    noise: float  # `round_noise`
    off: float  # g, the length of a residual that is due to the data
    start: float  # error before the first round, as the length it adds to a residual
    spread: float  # relative error of the guess of M, `prior_spread`,
    unit_noise: float  # and of M itself with the whole budget, `inner_unit_noise`
    pull: float  # `weight_pull`


def left_behind(inner_share: float, setting: Setting) -> float:
    """Return the share of the old error that a round leaves behind, however little noise C has.

    The matrix M is known up to the joint error of its prior and of its noise, which has `inner_share` of the budget;
    and weights that depend on residuals pull the slope down.
    """
    return math.sqrt(float(_left_square(np.array(inner_share), setting)))


def _left_square(inner_share: Array, setting: Setting) -> Array:
    joint_square = 1.0 / (1.0 / setting.spread**2 + inner_share / setting.unit_noise**2)
    return np.asarray(joint_square + setting.pull**2)


def inner_part(share: float, setting: Setting, tuning: AdaptiveTuning = ADAPTIVE) -> float:
    """Return the part of a round's share that its matrix M should get, were there no guess of M to lean on."""
    alone = replace(setting, spread=math.inf)
    start = np.array(setting.start)
    return min(tuning.inner_parts, key=lambda part: float(_after_round(np.array(share), start, part, alone)))


def _after_round(share: Array, error: Array, part: float, setting: Setting) -> Array:
    """Return the error after one round that gives `part` of its share to M."""
    square = error * error  # squares all through, and one root: np.hypot takes many times as long
    noise_square = (2.0 * setting.noise) ** 2 * (setting.off**2 + square) / ((1.0 - part) * share)
    return np.asarray(np.sqrt(noise_square + _left_square(part * share, setting) * square))


def weight_pull(d: int, k: int) -> float:
    """Return how much weights 1 / ||r|| shrink a slope, about one part in the number of residual dimensions."""
    return 1.0 / max(d - k, 1)


@dataclass(frozen=True)
class RoundPlan:
    """Shares of the localised rounds to come, and the error they should reach."""

    error: float
    shares: tuple[float, ...]


def plan_rounds(
    setting: Setting, left: float, probe: float, most_rounds: int, tuning: AdaptiveTuning = ADAPTIVE
) -> RoundPlan:
    """Choose how many localised rounds to run, at most `most_rounds`, and how to share `left` of mu² among them.

    A round with share b takes the error e to e' = hypot(2 noise sqrt(off² + e²) / sqrt(b), left_behind(b) e), and
    before the last one the two are averaged by precision.  The shares add up to `left` less `probe`, the price of the
    question, for every round after the first.
    """
    best, best_score = RoundPlan(math.inf, (left,)), math.inf
    for rounds in range(1, most_rounds + 1):
        rest = left - probe * (rounds - 1)
        if rounds > 1 and rest <= 0.02:
            break
        shares = rest * _divisions(rounds, tuning.fractions)  # (choices, rounds)
        error = _error_after(shares, setting, tuning.usual_part, len(tuning.fractions))  # (choices,)
        choice = int(np.argmin(error))
        score = float(error[choice]) * (1.0 + tuning.per_extra_round * (rounds - 1))
        if score < best_score:
            best_score = score
            best = RoundPlan(float(error[choice]), tuple(float(share) for share in shares[choice]))
    return best


def _error_after(shares: Array, setting: Setting, part: float, ways: int) -> Array:
    """Return the error after the rounds, for every row of shares (choices, rounds).

    Rows lie as in `_divisions`, whose choices are so many ways a round: those with the same first shares follow one
    another, so a round is worked out once for all that have come to it in the same way.
    """
    choices, rounds = shares.shape
    error = np.full(1, setting.start)
    for index in range(rounds):
        last = index == rounds - 1
        same = 1 if last else choices // ways ** (index + 1)
        error = np.repeat(error, choices // same // len(error))
        fresh = _after_round(shares[::same, index], error, part, setting)
        error = fresh if last else fresh * error / np.sqrt(fresh * fresh + error * error)
    return error


@cache
def _divisions(rounds: int, choices: tuple[float, ...]) -> Array:
    """Return all ways, on a coarse grid, to divide 1 among the rounds; (choices, rounds)."""
    rest, shares = np.ones(1), np.empty((1, 0))
    for _ in range(rounds - 1):
        parts = np.outer(rest, choices)  # (ways so far, choices)
        shares = np.column_stack([np.repeat(shares, len(choices), axis=0), parts.ravel()])
        rest = (rest[:, None] - parts).ravel()
    return np.column_stack([shares, rest])


def inner_unit_noise(n: int, k: int, mu: float, cap: float) -> float:
    """Return the relative error that the noise puts into M when M has the whole budget."""
    return math.sqrt(k) * cap / mu / (0.7 * n / k)


def lively(mu: float, k: int, d: int) -> float:
    """Return the mu at which the formulas of localised rounds agree with what they do.

    Measured on 80 settings: a little better than the formula for large k and for k near d.
    """
    return mu * math.pow(k, 1 / 15) * math.exp(k / (9 * d))


def predicted_error(n: int, d: int, k: int, mu: float, gamma_w: float) -> float:
    """Predict the median error of the adaptive algorithm for equal signal variances and a flat tail; at most 1.

    `gamma_w` is the tail energy against the signal: sqrt(mean ||e||²) where the signal has variance 1 in every
    direction.

    Examples
    --------
    >>> round(predicted_error(10_000, 1_000, 3, 0.2367, 0.1), 3)
    0.007
    """
    weakest, off_square = signal_strength(k, gamma_w)
    return error_at(n, d, k, mu, weakest, math.sqrt(off_square))


def error_at(n: int, d: int, k: int, mu: float, weakest: float, off: float) -> float:
    """Predict the same for a given lambda_k and g."""
    sampling = sampling_error(n, d, k, weakest, off)
    plain = analyze_gauss_error(n, d, k, mu, weakest)
    share = first_share(n, d, k, mu)
    first = plain / math.sqrt(share)
    direct = _saturated(plain, sampling)
    if first > 0.5 or k == d:
        return direct
    return min(direct, _saturated(rounds_error(n, d, k, mu, weakest, off, first, 1.0 - share), sampling))


def sampling_error(n: int, d: int, k: int, weakest: float, off: float) -> float:
    """Return the error that unit rows without noise would leave, g / sqrt(n lambda_k) (1 + sqrt(k / d))."""
    return off / math.sqrt(n * weakest) * (1.0 + math.sqrt(k / d))


def rounds_error(
    n: int,
    d: int,
    k: int,
    mu: float,
    weakest: float,
    off: float,
    start: float,
    left: float,
    rounds: int = ADAPTIVE.most_rounds,
    lean: float = 1.0,
) -> float:
    """Predict what localised rounds with the share `left` of mu² make of the error `start`, privacy alone.

    `weakest` is lambda_k, `off` is g, and the signal variances are about equal. `lean` is the part of their usual
    share that questions for a length get.
    """
    setting = Setting(
        noise=round_noise(n, d, k, mu, weakest),
        off=off,
        start=start * math.sqrt(k * weakest),
        spread=0.1,
        unit_noise=inner_unit_noise(n, k, mu, 2.0),
        pull=weight_pull(d, k),
    )
    probe = lean * probe_share(n, mu)
    return plan_rounds(setting, left - probe, probe, rounds).error


def _saturated(private: float, sampling: float) -> float:
    """Join private and sampling error and keep the result a sine."""
    return min(1.0, math.hypot(private, sampling))
