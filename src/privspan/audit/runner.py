"""Running audits: which there are, one at a time or spread over processes.

`run_audit` is the door. A single audit is a `Task`, a name and a place in its registry, so that it can be sent to
another process by name alone.
"""

from __future__ import annotations

import itertools
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from privspan._lib import checks
from privspan.audit.cases import registered
from privspan.audit.domains import DELTA, DOMAINS, EPSILON
from privspan.audit.releases import released_numbers
from privspan.audit.results import AuditResult, Kind
from privspan.audit.sampled import scalar_audit
from privspan.audit.samplers import FALSE_ALARM, SAMPLERS
from privspan.privacy.randomness import RandomLike, open_streams

DEFAULT_RUNS = 2000
_FEWEST_RUNS = 4


@dataclass(frozen=True)
class Task:
    """One audit to be run.

    Attributes
    ----------
    kind : {"exact", "sampler", "sampled"}
    name, case : str
        The mechanism, and the domain, law or pair of neighbours.
    """

    kind: Kind
    name: str
    case: str


def tasks(name: str | None = None) -> list[Task]:
    """List the audits of a mechanism, of a kind ("exact", "sampler", "sampled"), or all of them.

    Examples
    --------
    >>> [task.case for task in tasks("choose_dimension")]
    ['tie', 'zero row, huge row', 'NaN row, unit row']
    """
    found = [
        *(Task("exact", *domain) for domain in DOMAINS),
        *(Task("sampler", sampler.name, sampler.case) for sampler in SAMPLERS),
        *(Task("sampled", case.name, pair) for case in registered().values() for pair in case.pairs),
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
        A mechanism, such as "analyze_gauss" or "exact_subspace (gap)", or a kind: "exact", "sampler", "sampled".
        Without a variant in brackets all variants are run.
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
        raise ValueError(f"`name` must be one of exact, sampler, sampled, {known}; got {name!r}.")
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
    """Run one audit.

    Parameters
    ----------
    task : Task
        From `tasks`.
    runs, seed
        As for `run_audit`.
    """
    start = time.process_time()
    run = {"exact": _run_exact, "sampler": _run_sampler, "sampled": _run_sampled}[task.kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds, and of tables too small to be of use
        seen = run(task, runs, seed)
    return AuditResult(task.name, task.kind, task.case, *seen, time.process_time() - start)


# Epsilon, delta, what was found, whether that refutes them, how often, where, and the chance of a false alarm.
_Seen = tuple[float | None, float | None, float, bool, int, str, float]


def _run_exact(task: Task, runs: int, seed: int | None) -> _Seen:
    audit = DOMAINS[task.name, task.case]()
    worst = "none" if audit.worst is None else f"{audit.worst[0]} and {audit.worst[1]}"
    return EPSILON, DELTA, float(audit.delta), audit.delta > DELTA, audit.pairs, worst, 0.0


def _run_sampler(task: Task, runs: int, seed: int | None) -> _Seen:
    sampler = next(each for each in SAMPLERS if (each.name, each.case) == (task.name, task.case))
    draws = max(sampler.fewest_draws, min(sampler.draws, sampler.draws * runs // DEFAULT_RUNS))
    p_value = sampler.p_value(draws, open_streams(_seed(task, seed, 0)))
    return None, None, p_value, p_value < FALSE_ALARM, draws, sampler.test, FALSE_ALARM


def _run_sampled(task: Task, runs: int, seed: int | None) -> _Seen:
    case = registered()[task.name]

    def on(side: int) -> Callable[[], dict[str, float]]:
        table, count = case.pairs[task.case][side], itertools.count()
        return lambda: released_numbers(case.run(table.copy(), _seed(task, seed, side, next(count))))

    epsilon, delta = case.epsilon, case.delta
    runs = max(_FEWEST_RUNS, int(runs * case.share))
    audit = scalar_audit(on(0), on(1), epsilon=epsilon, delta=delta, runs=runs, confidence=1.0 - FALSE_ALARM)
    return epsilon, delta, audit.epsilon_lower, audit.refuted, audit.runs, str(audit.event), FALSE_ALARM


def _seed(task: Task, seed: int | None, *numbers: int) -> RandomLike:
    """None stays None; a seed is made different for every task, side and run."""
    if seed is None:
        return None
    return np.random.SeedSequence([seed, zlib.crc32(repr(task).encode()), *numbers])
