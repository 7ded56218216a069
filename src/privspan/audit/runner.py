"""Running audits: which there are, one at a time or spread over processes.

`run_audit` is the door. A single audit is a `Task`, a name and a place in its registry, so that it can be sent to
another process by name alone.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Literal

import numpy as np

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.audit import cases, replays  # noqa: F401  # they fill the registry
from privspan.audit.domains import DELTA, DOMAINS, EPSILON
from privspan.audit.registry import Case, registered
from privspan.audit.releases import released_numbers
from privspan.audit.replay import Path, ReplayError, Transcript, is_gaussian, replayed_epsilon
from privspan.audit.results import AuditResult, Kind, Measure
from privspan.audit.sampled import scalar_audit
from privspan.audit.samplers import FALSE_ALARM, SAMPLERS
from privspan.privacy import PrivacyCost, mu_from_budget
from privspan.privacy.randomness import RandomLike, open_streams

DEFAULT_RUNS = 2000
_FEWEST_RUNS = 4
_OTHER_PAIRS = 0.5  # largest share of the runs on pairs that are not the best known
_REPLAYS = 3  # transcripts of a replay: a claim is refuted by the worst, and what is used up is that of the least
_SLACK = 1e-6  # relative: float64 adds up the squares


@dataclass(frozen=True)
class Task:
    """One audit to be run.

    Attributes
    ----------
    kind : {"exact", "sampler", "sampled", "replayed"}
    name, case : str
        The mechanism, and the domain, law or pair of neighbours.
    """

    kind: Kind
    name: str
    case: str


def tasks(name: str | None = None) -> list[Task]:
    """List the audits of a mechanism, of a kind ("exact", "sampler", "sampled", "replayed"), or all of them.

    Examples
    --------
    >>> [task.case for task in tasks("choose_dimension")]
    ['tie', 'zero row, huge row', 'NaN row, unit row', 'one ballot of four']
    """
    found = [
        *(Task("exact", *domain) for domain in DOMAINS),
        *(Task("sampler", sampler.name, sampler.case) for sampler in SAMPLERS),
        *(Task("sampled", case.name, pair) for case in registered().values() for pair in case.pairs),
        *(Task("replayed", case.name, pair) for case in registered("replayed").values() for pair in case.pairs),
    ]
    return [task for task in found if name in (None, task.name, task.kind, task.name.partition(" (")[0])]


def run_audit(
    name: str | None = None,
    *,
    runs: int = DEFAULT_RUNS,
    seed: int | None = None,
    workers: int = 1,
    progress: Callable[[AuditResult, int, int], None] | None = None,
) -> list[AuditResult]:
    """Run the audits of one mechanism, of one kind, or all of them.

    Parameters
    ----------
    name : str, optional
        A mechanism, such as "analyze_gauss" or "exact_subspace (gap)", or a kind: "exact", "sampler", "sampled",
        "replayed". Without a variant in brackets all variants are run.
    runs : int, default=2000
        Runs on each input of a sampled audit; slow algorithms take a half or a quarter of it. Samplers are drawn
        from in proportion. Exact audits do not depend on it.
    seed : int, optional
        Makes the audit repeatable. Without it the noise is that of real use, from the operating system.
    workers : int, default=1
        Processes to use.
    progress : callable, optional
        Called with each result, the number of audits done and the number of all.

    Returns
    -------
    list of AuditResult
        In a fixed order, whatever the order in which they ended.

    Raises
    ------
    ValueError
        If nothing has that name.

    Examples
    --------
    >>> (result,) = run_audit("stable_vote")
    >>> result.kind, result.refuted
    ('exact', False)
    """
    checks.integer_at_least(_FEWEST_RUNS, runs=runs)
    checks.integer_at_least(1, workers=workers)
    if seed is not None:
        checks.integer_at_least(0, seed=seed)
    chosen = tasks(name)
    if not chosen:
        known = ", ".join(dict.fromkeys(task.name for task in tasks()))
        raise ParameterError(
            "{name} must be one of exact, sampler, sampled, replayed, {known}; got {got!r}.", known=known, got=name
        )
    finished: dict[Task, AuditResult] = {}
    for task, result in _results(chosen, runs, seed, workers):
        finished[task] = result
        if progress is not None:
            progress(result, len(finished), len(chosen))
    return [finished[task] for task in chosen]


def _results(chosen: Sequence[Task], runs: int, seed: int | None, workers: int) -> Iterator[tuple[Task, AuditResult]]:
    """Yield every task with its result, as they end."""
    if workers == 1 or len(chosen) == 1:
        yield from ((task, run_task(task, runs, seed)) for task in chosen)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        # The sampled ones take longest and come last in the list: started first, they leave no lone straggler.
        futures = {pool.submit(run_task, task, runs, seed): task for task in reversed(chosen)}
        for future in as_completed(futures):
            yield futures[future], future.result()


def run_task(task: Task, runs: int = DEFAULT_RUNS, seed: int | None = None) -> AuditResult:
    """Run one audit of `tasks`, with the `runs` and the `seed` of `run_audit`."""
    start = time.process_time()
    run = {"exact": _run_exact, "sampler": _run_sampler, "sampled": _run_sampled, "replayed": _run_replay}[task.kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds, and of tables too small to be of use
        seen = run(task, runs, seed)
    return AuditResult(task.name, task.kind, task.case, *seen, time.process_time() - start)


# Epsilon, delta, what is measured, its claim, what was found, whether that refutes it, how often, where, false alarm.
_Seen = tuple[float | None, float | None, Measure, float | None, float, bool, int, str, float]


def _run_exact(task: Task, runs: int, seed: int | None) -> _Seen:
    audit = DOMAINS[task.name, task.case]()
    worst = "none" if audit.worst is None else f"{audit.worst[0]} and {audit.worst[1]}"
    return EPSILON, DELTA, "delta", DELTA, float(audit.delta), audit.delta > DELTA, audit.pairs, worst, 0.0


def _run_sampler(task: Task, runs: int, seed: int | None) -> _Seen:
    sampler = next(each for each in SAMPLERS if (each.name, each.case) == (task.name, task.case))
    draws = max(sampler.fewest_draws, min(sampler.draws, sampler.draws * runs // DEFAULT_RUNS))
    p_value = sampler.p_value(draws, open_streams(_seed(task, seed, 0)))
    return None, None, "p-value", None, p_value, p_value < FALSE_ALARM, draws, sampler.test, FALSE_ALARM


def _run_sampled(task: Task, runs: int, seed: int | None) -> _Seen:
    case = registered()[task.name]

    def on(side: int) -> Callable[[], dict[str, float]]:
        table, count = case.pairs[task.case][side], itertools.count()
        return lambda: released_numbers(case.run(table.copy(), _seed(task, seed, side, next(count))))

    share = case.share if task.case == next(iter(case.pairs)) else min(case.share, _OTHER_PAIRS)
    runs = max(_FEWEST_RUNS, int(runs * share))
    measure: Literal["epsilon", "mu"] = "mu" if _spends_mu(case, task) else "epsilon"
    epsilon, delta, sure = case.epsilon, case.delta, 1.0 - FALSE_ALARM
    audit = scalar_audit(on(0), on(1), epsilon=epsilon, delta=delta, runs=runs, confidence=sure, measure=measure)
    claimed, found = epsilon, audit.epsilon_lower
    if measure == "mu":
        claimed, found = mu_from_budget(epsilon, delta), audit.mu_lower
    return epsilon, delta, measure, claimed, found, audit.refuted, audit.runs, str(audit.event), FALSE_ALARM


def _check_results(paths: Sequence[Path]) -> None:
    """Refuse results that differ on the two tables though everything that was released is the same."""
    for path in paths:
        first, second = (released_numbers(result) for result in path.results)
        same = first.keys() == second.keys() and np.array_equal([*first.values()], [*second.values()], equal_nan=True)
        if path.chance > 0.0 and path.other > 0.0 and not same:
            raise ReplayError("a result depends on unreleased values")


def _spends_mu(case: Case, task: Task) -> bool:
    """Tell whether a release says that all it has spent is Gaussian, so that the claim is one about mu."""
    cost = getattr(case.run(case.pairs[task.case][0].copy(), 0), "cost", None)
    return isinstance(cost, PrivacyCost) and bool(cost.parts) and all(part.mu is not None for part in cost.parts)


def _run_replay(task: Task, runs: int, seed: int | None) -> _Seen:
    """Replay a few transcripts; public randomness must be repeatable, so there is a seed in any case."""
    case = registered("replayed")[task.name]
    numbers = range(seed or 0, (seed or 0) + _REPLAYS)
    seen = sorted((_replayed(case, task.case, number) for number in numbers), key=lambda each: each[1] / each[2])
    refuted = seen[-1][1] > seen[-1][2] * (1.0 + _SLACK)
    measure, found, claimed = seen[-1] if refuted else seen[0]
    return case.epsilon, case.delta, measure, claimed, found, refuted, len(seen), case.reason, 0.0


def _replayed(case: Case, pair: str, number: int) -> tuple[Measure, float, float]:
    """Replay one transcript: what is measured, what it uses up, and the claim."""
    mu = mu_from_budget(case.epsilon, case.delta)
    try:
        # The test of stable leverage is to say yes, after which more is spent than after no.
        transcript = Transcript(number, answer=True)
        paths = transcript.paths(lambda table, rng: case.run(table.copy(), rng), *case.pairs[pair])
        _check_results(paths)
    except ReplayError:  # an unreleased value decides: there is no telling how much that gives away
        return "mu", math.inf, mu
    spent = math.sqrt(max(path.spent for path in paths))
    if is_gaussian(paths) or spent > mu * (1.0 + _SLACK):  # which breaks the proof, whatever the exact laws say
        return "mu", spent, mu
    return "epsilon", replayed_epsilon(paths, case.delta), case.epsilon


def _seed(task: Task, seed: int | None, *numbers: int) -> RandomLike:
    """None stays None; a seed is made different for every task, side and run."""
    if seed is None:
        return None
    return np.random.SeedSequence([seed, zlib.crc32(repr(task).encode()), *numbers])
