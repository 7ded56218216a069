"""The register of planted faults, and the audits that several families of them share."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from privspan.audit import run_task, scalar_audit, tasks
from privspan.audit.releases import released_numbers
from privspan.audit.tables import moment_pairs

EPSILON, DELTA = 1.0, 0.1
SMALL_DELTA = 0.01
FEW, MANY = 60, 600  # runs on each table: enough for a leak that is certain, and for one that is a matter of size
TIE = moment_pairs()["tie"]

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Fault:
    """What is wrong, what that breaks, how to plant it and which audit finds it."""

    name: str
    plant: Plant
    caught: Callable[[], bool]


FAULTS: dict[str, Fault] = {}


def fault(name: str, caught: Callable[[], bool]) -> Callable[[Plant], Plant]:
    """Register the decorated function, which plants the fault."""

    def keep(plant: Plant) -> Plant:
        FAULTS[name] = Fault(name, plant, caught)
        return plant

    return keep


# ---- Audits ----------------------------------------------------------------------------------------------------


def refuted(
    run: Callable[..., Any], pair: Any, *, runs: int = FEW, epsilon: float = EPSILON, delta: float = DELTA
) -> bool:
    """Audit ``run(table, rng=seed)`` on two tables, seeded, at 99 % confidence."""
    seeds = itertools.count()

    def on(table: Any) -> Callable[[], dict[str, float]]:
        return lambda: numbers(run(table, rng=next(seeds)))

    audit = scalar_audit(on(pair[0]), on(pair[1]), epsilon=epsilon, delta=delta, runs=runs, confidence=0.99)
    return audit.refuted


def numbers(released: Any) -> dict[str, float]:
    return released if isinstance(released, dict) else released_numbers(released)


def algorithm_refuted(algorithm: Callable[..., Any], pair: Any, *arguments: Any, **options: Any) -> bool:
    """Audit an algorithm that is called with epsilon and delta."""
    runs = options.pop("runs", FEW)

    def run(table: Any, rng: int) -> Any:
        return algorithm(table, *arguments, epsilon=EPSILON, delta=DELTA, rng=rng, **options)

    return refuted(run, pair, runs=runs)


def task_refuted(name: str, runs: int = 2000) -> bool:
    """Run the registered exact audits or sampler tests of that name."""
    return any(run_task(task, runs, 0).refuted for task in tasks(name) if task.kind != "sampled")
