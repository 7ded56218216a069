"""Checks of a privacy claim that anyone can run: by enumeration, by replay and by attack.

An exact audit takes the output distributions on two neighbouring inputs and returns the smallest delta for which
they satisfy the definition at a given epsilon. A replay records the private steps of one run and repeats them on a
neighbour, which tells without sampling how much of the claim that pair uses up. A sampled audit runs the mechanism on
both inputs many times and returns a lower bound on epsilon, or on the mu of Gaussian differential privacy, that holds
with stated confidence: a claim below that bound is refuted. A sampler test compares draws of noise with their exact
law. Audits can refute, never prove; the proofs are in the explanation
pages of the documentation.

`run_audit` runs them on the mechanisms of this package: every public algorithm and every baseline, end to end, on the
worst pairs of neighbours known, at an epsilon and delta large enough to see what is spent.
"""

from privspan.audit.exact import Distribution, ExactAudit, exact_delta, tightest_delta
from privspan.audit.registry import Case, register, registered
from privspan.audit.releases import released_numbers
from privspan.audit.replay import ReplayError, Transcript
from privspan.audit.results import AuditResult, summary
from privspan.audit.runner import Task, run_audit, run_task, tasks
from privspan.audit.sampled import SampledAudit, sampled_audit, scalar_audit
from privspan.audit.samplers import FALSE_ALARM, SAMPLERS, Sampler, chi_square
from privspan.audit.tables import Pair

__all__ = [
    "FALSE_ALARM",
    "SAMPLERS",
    "AuditResult",
    "Case",
    "Distribution",
    "ExactAudit",
    "Pair",
    "ReplayError",
    "SampledAudit",
    "Sampler",
    "Task",
    "Transcript",
    "chi_square",
    "exact_delta",
    "register",
    "registered",
    "released_numbers",
    "run_audit",
    "run_task",
    "sampled_audit",
    "scalar_audit",
    "summary",
    "tasks",
    "tightest_delta",
]
