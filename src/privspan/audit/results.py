"""What an audit reports, in one shape for all four kinds, ready for JSON."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy
import scipy

from privspan._lib.version import __version__

Kind = Literal["exact", "sampler", "sampled", "replayed"]
Measure = Literal["epsilon", "mu", "delta", "p-value"]


@dataclass(frozen=True)
class AuditResult:
    """One line of the report.

    Attributes
    ----------
    name : str
        The mechanism.
    kind : {"exact", "sampler", "sampled", "replayed"}
        How it was audited.
    case : str
        The pair of neighbours, the domain that was enumerated, or the law that was tested.
    epsilon, delta : float or None
        The claim; None for samplers, whose claim is their law.
    measure : {"epsilon", "mu", "delta", "p-value"}
        What was found: an epsilon at the claimed delta; a mu, where everything that is spent is Gaussian; of an exact
        audit the delta at the claimed epsilon; of a sampler the p-value.
    claimed : float or None
        The same of the claim; None for samplers.
    found : float
        Exact: the tightest delta. Sampled: a lower bound. Replayed: what the pair uses up. Sampler: the p-value.
    refuted : bool
        Whether the claim is wrong, up to `false_alarm`.
    runs : int
        Pairs enumerated, runs on each input, or draws.
    event : str
        Sampled: what told the inputs apart best. Exact: the worst pair. Sampler: the test. Replayed: why no pair that
        is known uses all of the claim up, where that is so.
    false_alarm : float
        Chance that a true claim is refuted; 0 for exact audits and replays.
    seconds : float
        Processor time taken.
    """

    name: str
    kind: Kind
    case: str
    epsilon: float | None
    delta: float | None
    measure: Measure
    claimed: float | None
    found: float
    refuted: bool
    runs: int
    event: str
    false_alarm: float
    seconds: float

    @property
    def certified(self) -> float | None:
        """Part of the claim that is certain to be spent, 1 if all of it; None for samplers."""
        return None if self.claimed is None else self.found / self.claimed

    def to_dict(self) -> dict[str, object]:
        """Return the result as a dictionary that JSON can hold."""
        return {**asdict(self), "certified": self.certified}


def summary(results: Sequence[AuditResult]) -> dict[str, object]:
    """Put results together for a file: how many, how many refuted, and the chance of any false alarm.

    Examples
    --------
    >>> summary([])["audits"]
    0
    """
    return {
        "audits": len(results),
        "refuted": sum(result.refuted for result in results),
        "false_alarm": sum(result.false_alarm for result in results),
        "seconds": sum(result.seconds for result in results),
        "results": [result.to_dict() for result in results],
    }


def run_facts(*, runs: int, seed: int | None) -> dict[str, object]:
    """Tell what a run was made with and when, and of the machine only what its kind is.

    Examples
    --------
    >>> sorted(run_facts(runs=2000, seed=None))
    ['date', 'machine', 'python', 'runs', 'seed', 'system', 'versions']
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "runs": runs,
        "seed": seed,
        "system": platform.system(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": {"privspan": __version__, "numpy": numpy.__version__, "scipy": scipy.__version__},
    }
