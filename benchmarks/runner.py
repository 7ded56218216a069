"""Run cells, each in a process of its own, with a time limit and a look at the memory it took.

Processes are forked from a server that has the library imported and nothing else, so a cell starts in milliseconds,
begins with an empty heap, and can be killed without harm to the others.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any

from benchmarks.cells import (
    ABSTAINED,
    FAILED,
    NOT_APPLICABLE,
    NOT_AVAILABLE,
    OK,
    OUT_OF_TIME,
    AbstainedError,
    Cell,
    NotApplicableError,
    NotAvailableError,
    Outcome,
)

_START_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


@dataclass
class _Running:
    process: Any
    cell: Cell
    deadline: float


def run_cells(cells: Iterable[Cell], *, jobs: int, limit: float) -> Iterator[tuple[Cell, Outcome]]:
    """Run the cells, `jobs` at a time, and yield each with its outcome when it has ended.

    Parameters
    ----------
    cells : iterable of Cell
        Of any suites.
    jobs : int
        How many run at once.
    limit : float
        Seconds after which a cell is killed.
    """
    context = multiprocessing.get_context(_START_METHOD)
    if _START_METHOD == "forkserver":
        context.set_forkserver_preload(["benchmarks.suites"])
    waiting, running = deque(cells), dict[Any, _Running]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                receiver, one = _start(context, waiting.popleft(), limit)
                running[receiver] = one
            patience = max(0.0, min(one.deadline for one in running.values()) - time.monotonic())
            ended = connection.wait(list(running), timeout=patience)
            for receiver in [*ended, *_expired(running, ended)]:
                one = running.pop(receiver)
                yield one.cell, _finish(one, receiver, limit)
    finally:
        for one in running.values():
            one.process.kill()


def _start(context: Any, cell: Cell, limit: float) -> tuple[Any, _Running]:
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(cell, sender), daemon=True)
    process.start()
    sender.close()  # so that the death of the process is seen as the end of the pipe
    return receiver, _Running(process, cell, time.monotonic() + limit)


def _expired(running: dict[Any, _Running], ended: list[Any]) -> list[Any]:
    now = time.monotonic()
    return [receiver for receiver, one in running.items() if one.deadline <= now and receiver not in ended]


def _finish(one: _Running, receiver: Any, limit: float) -> Outcome:
    """Take the outcome of a process that sent it, died, or ran out of time."""
    try:
        if receiver.poll():
            outcome: Outcome = receiver.recv()
        else:
            one.process.kill()
            outcome = Outcome(OUT_OF_TIME, note=f"stopped after {limit:g} s")
    except EOFError:
        one.process.join()
        outcome = Outcome(FAILED, note=f"the process ended with code {one.process.exitcode}")
    receiver.close()
    one.process.join()
    return outcome


def _work(cell: Cell, sender: Any) -> None:
    """Measure one cell; the body of a worker process."""
    from benchmarks.suites import SUITES

    with suppress(BrokenPipeError):  # the main process is gone: nobody wants the outcome
        sender.send(outcome_of(cell, SUITES[cell.suite].measure))


def outcome_of(cell: Cell, measure: Callable[[Cell], tuple[dict[str, Any], float]]) -> Outcome:
    """Measure a cell in this process and put whatever happens into an outcome."""
    try:
        values, seconds = measure(cell)
    except AbstainedError as abstention:
        return Outcome(ABSTAINED, seconds=abstention.seconds, memory_mb=peak_memory_mb())
    except NotApplicableError as reason:
        return Outcome(NOT_APPLICABLE, note=str(reason))
    except NotAvailableError as reason:
        return Outcome(NOT_AVAILABLE, note=str(reason))
    except TimeoutError as reason:
        return Outcome(OUT_OF_TIME, note=str(reason))
    except Exception as error:  # a cell that fails is a result, and the others go on
        return Outcome(FAILED, note=f"{type(error).__name__}: {error}")
    return Outcome(OK, values, seconds, peak_memory_mb())


def peak_memory_mb() -> float | None:
    """Return the largest memory that this process has held so far; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
