"""How much error would stable leverage save if its coin and its noise were accounted together?

The coin counts as a Gaussian step of its own. Here its chances are chosen one after the other, as large as the joint
(epsilon, delta) curve of scales, coin and noise allows; see "Limits" in docs/explanation/stable-leverage.md.

python benchmarks/scripts/coin_room.py [--quick]
"""

import math
import sys

import numpy as np
from scipy.special import log_ndtr, ndtr

from privspan.privacy import mu_from_budget
from privspan.stable import plan

K, HIGHEST, USUAL, MOST_STEPS = 3, float(ndtr(3.0)), float(ndtr(2.0)), 200
LOSSES = np.linspace(-8.0, 8.0, 801)
EDGES = np.concatenate([[-np.inf], (LOSSES[1:] + LOSSES[:-1]) / 2, [np.inf]])
WEIGHTS = np.diff(ndtr(EDGES))


def hockey_stick(mu, epsilon):
    """Delta of a Gaussian step, elementwise."""
    epsilon = np.asarray(epsilon)
    return np.maximum(ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2)), 0.0)


def of_two_chances(yes, other, epsilon, mu_before, mu_after):
    """Delta of steps with `mu_before`, a coin with these chances, and one with `mu_after` after *yes*."""
    after_yes = yes * hockey_stick(math.hypot(mu_before, mu_after), epsilon - math.log(yes / other))
    return float(after_yes + (1 - yes) * hockey_stick(mu_before, epsilon - math.log((1 - yes) / (1 - other))))


def chances_up_to(delta, epsilon, mu_before, mu_after):
    """Chances at margin 1, 2, …, each as large as neighbouring margins allow; None if they hardly grow."""
    found = [0.9 * delta]
    while found[-1] < HIGHEST:
        last = found[-1]
        low, high = math.log(last / (1 - last)), math.log(HIGHEST / (1 - HIGHEST))
        start = low
        for _ in range(22):
            middle = (low + high) / 2
            chance = 1 / (1 + math.exp(-middle))
            pairs = ((chance, last), (last, chance))
            fits = max(of_two_chances(*pair, epsilon, mu_before, mu_after) for pair in pairs) <= delta
            low, high = (middle, high) if fits else (low, middle)
        if low - start < 1e-4 or len(found) == MOST_STEPS:
            return None
        found.append(1 / (1 + math.exp(-low)) if high < math.log(HIGHEST / (1 - HIGHEST)) else HIGHEST)
    return np.array(found)


def of_all_margins(chances, epsilon, mu_before, mu_after):
    """Delta of the same when released values may decide which margins the neighbours have: E sup, by a fine sum."""
    left = epsilon - mu_before * (mu_before / 2 + LOSSES)
    yes, other = (
        np.concatenate([chances[1:], chances[:-1], chances[-1:]]),
        np.concatenate([chances[:-1], chances[1:]]),
    )
    yes, other = yes[:, None], np.append(other, chances[-1])[:, None]
    both = yes * hockey_stick(mu_after, left - np.log(yes / other)) + np.maximum(
        1 - yes - np.exp(left) * (1 - other), 0
    )
    first = chances[0] + np.maximum(1 - chances[0] - np.exp(left), 0)  # margins 1 and 0
    return float(WEIGHTS @ np.maximum(both.max(axis=0), first))


def best_chances(epsilon, delta, mu_before, mu_after):
    """The steepest coin for which scales, coin and noise together are (epsilon, delta)-private."""
    low, high, best = math.log(0.05), 0.0, None
    for _ in range(7):
        middle = (low + high) / 2
        chances = chances_up_to(math.exp(middle) * delta, epsilon, mu_before, mu_after)
        if chances is not None and of_all_margins(chances, epsilon, mu_before, mu_after) > 0.999 * delta:
            high = middle
            continue
        low, best = middle, chances if chances is not None else best
    return best


def errors(n, epsilon, delta):
    """Noise in an entry of the basis at a tail of 1e-3, as it is planned and with the coin accounted jointly."""
    shares = dict(plan._test_shares(epsilon, delta))
    now, split = min(
        (plan.split_of_mu(n, K, mu, share, share * delta) for share, mu in shares.items()), key=lambda one: one[0]
    )
    mu = shares[split.delta_test]
    mu_before = mu * math.sqrt(split.scale + split.tail + split.long + split.signal)
    norm, strength_share = plan.normal_scales(K, split.norm_quantile)
    strength, least = plan.usual_strength(n, strength_share, mu, split.signal), math.inf
    for share in (0.5, 0.6, 0.68, 0.76, 0.84, 0.9):
        mu_after = share * math.sqrt(mu_from_budget(epsilon, delta) ** 2 - mu_before**2)
        chances = best_chances(epsilon, delta, mu_before, mu_after)
        if chances is not None:
            margins = 1 + int(np.argmax(chances >= USUAL)), len(chances)
            levels = plan.plan_levels(n, n, strength, 1e-3 / norm, margins, plan.STABLE.tight)
            least = least if levels is None else min(least, levels.sensitivity() / mu_after)
    return now, least


def main(budgets, sizes):
    print("epsilon  delta      n    error now   accounted jointly   ratio")
    for epsilon, delta in budgets:
        for n in sizes:
            now, jointly = errors(n, epsilon, delta)
            print(f"{epsilon:7} {delta:6.0e} {n:6} {now:12.2e} {jointly:19.2e} {jointly / now:7.2f}", flush=True)


if __name__ == "__main__":
    if "--quick" in sys.argv:
        main([(1.0, 1e-6)], [2_000])
    else:
        main([(0.5, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (4.0, 1e-6)], [1_000, 2_000, 4_000])
