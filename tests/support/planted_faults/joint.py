"""Faults in the account that counts a coin and the noise around it together."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
from joint_truth import delta_from_below

from planted_faults.registry import fault
from privspan.audit import run_task, tasks
from privspan.privacy import joint
from privspan.privacy.coin import COIN_BITS, CoinTable
from privspan.privacy.joint import JointShares
from privspan.stable import plan as stable_plan


def coin_of(*chances: float) -> CoinTable:
    return CoinTable(tuple(int(chance * 2.0**COIN_BITS) for chance in chances))


# One for each part of the account: where first steps tell so much that *no* on the left is what tells most, where
# what follows *no* tells most, and where a bad rotation does.
TABLES = (
    (0.1, JointShares(0.9, 0.05, 0.1, 0.0, coin_of(0.4), 0.0)),
    (1.0, JointShares(0.3, 0.2, 0.8, 0.0, coin_of(1e-4, 3e-4), 0.0)),
    (1.0, JointShares(0.2, 0.2, 0.0, 0.1, coin_of(1e-5, 3e-5, 8e-5), 1e-4)),
)


@cache
def truths() -> list[float]:
    return [delta_from_below(*one) for one in TABLES]


def below_the_truth() -> bool:
    """Compare the bound with 50 digits."""
    bound = getattr(joint.joint_delta, "__wrapped__", joint.joint_delta)  # past its cache
    return any(bound(*one) < truth for one, truth in zip(TABLES, truths(), strict=True))


@fault("no pair of a margin of 0 and one of 1", below_the_truth)
def first_pair_left_out(patch):
    pairs = joint.pairs_of
    patch.setattr(joint, "pairs_of", lambda coin: [(a, b) for a, b in pairs(coin) if a > 0])


@fault("a rotation that is not charged", below_the_truth)
def free_rotation(patch):
    bound = joint.joint_delta.__wrapped__
    patch.setattr(joint, "joint_delta", lambda epsilon, shares: bound(epsilon, replace(shares, rotation=0.0)))


@fault("sums in place of a bound", below_the_truth)
def midpoints(patch):
    def summed(epsilon: float, shares: JointShares) -> float:
        places, step = np.linspace(-8.0, 8.0, 33, retstep=True)
        weights = np.exp(-0.5 * places**2) * step / math.sqrt(math.tau)
        t = epsilon - shares.before**2 / 2 - shares.before * places
        mus = shares.yes, shares.no, shares.otherwise
        return float(weights @ joint.largest_stick(t, shares.coin, *mus)) + shares.rotation

    patch.setattr(joint, "joint_delta", summed)


@fault("nothing counted after no", below_the_truth)
def free_fall_back(patch):
    bound = joint.joint_delta.__wrapped__
    patch.setattr(joint, "joint_delta", lambda epsilon, shares: bound(epsilon, replace(shares, no=0.0)))


def replay_refuted() -> bool:
    """Replay `stable_subspace` where its coin tells most."""
    (task,) = (one for one in tasks("replayed") if one.name == "stable_subspace (accounted together)")
    return run_task(task, 8, 0).refuted


@fault("a table of chances that is changed after it was accepted", replay_refuted)
def changed_table(patch):
    accept = stable_plan.accepted

    def steeper(epsilon, delta, shares):
        found = accept(epsilon, delta, shares).shares
        return SimpleNamespace(shares=replace(found, coin=CoinTable(found.coin.numerators[::2])))

    patch.setattr(stable_plan, "accepted", steeper)
