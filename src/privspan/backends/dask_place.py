"""Partitions in Dask: on the workers of the current ``distributed.Client``, or in Dask's default scheduler.

What is sent is pure and draws nothing at random, so a task that is run twice, or again after its worker died, returns
the same bits, and the total is that of one run.  Private noise is drawn by the caller, after the total has arrived.
Inside a task BLAS has one thread: workers already share the cores, and the bits of a product may depend on the
number of threads.
"""

from __future__ import annotations

import os
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import dask
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from threadpoolctl import ThreadpoolController

from privspan._lib.rounding import quiet_numpy
from privspan._lib.watch import is_watched, rows_seen, unwatched
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.place import Part, Place

_FAN_IN = 8  # totals that are added at a time


class DaskPlace(Place):
    """Runs functions next to the partitions of a Dask collection; a part is a ``dask.delayed.Delayed``.

    The collection is kept alive as long as its partitions are of use: one that is let go takes what it persisted with
    it.  The limits are those of each worker.
    """

    def __init__(self, collection: object = None, limits: Limits = LIMITS) -> None:
        self._collection, self._limits = collection, limits

    @property
    def kept_bytes(self) -> int:
        """How much may be kept between passes: a gibibyte per worker."""
        client = current_client()
        workers = 1 if client is None else len(client.ncores())
        return self._limits.kept_bytes * max(workers, 1)

    def send(self, values: Sequence[Any]) -> list[Part]:
        """Return the values themselves: Dask takes them as arguments."""
        return list(values)

    def map(self, function: Callable[..., Any], *parts: Sequence[Part]) -> list[Part]:
        """Return one task per partition; the function, with the arrays it holds, is one value that all share.

        All tasks are one layer of the graph: as many layers as tasks would take long to put together.
        """
        name = f"privspan-{uuid.uuid4().hex}"
        layer: dict[str, object] = {f"{name}-sent": _Sent(function)}
        behind = {part.key: part for row in parts for part in row if isinstance(part, Delayed)}
        for number, row in enumerate(zip(*parts, strict=True)):
            given = (part.key if isinstance(part, Delayed) else _Given(part) for part in row)
            layer[f"{name}-{number}"] = (_run, f"{name}-sent", *given)
        graph = HighLevelGraph.from_collections(name, layer, dependencies=list(behind.values()))
        return [Delayed(f"{name}-{number}", graph, layer=name) for number in range(len(layer) - 1)]

    def hold(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Part]:
        """Compute the parts and keep them on the workers, or in memory if there are none."""
        with _working():
            held = list(dask.persist(*parts))
            _await(held, lengths)
        return held

    def keep(self, parts: Sequence[Part], lengths: Sequence[int], columns: int) -> list[Part]:
        """Keep rows that took long to bring together; workers write to their disks what does not fit."""
        has_workers = current_client() is not None
        return self.hold(parts, lengths) if has_workers else super().keep(parts, lengths, columns)

    def fetch(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Any]:
        """Compute the parts and bring them here."""
        if is_watched():
            parts = self.hold(parts, lengths)
        with _working():
            return list(dask.compute(*parts))

    def merge(self, parts: Sequence[Part], lengths: Sequence[int], merge: Callable[[list[Any]], Any]) -> Any:
        """Add a few at a time, on the workers, until one is left."""
        if is_watched():
            parts = self.hold(parts, lengths)
        run = dask.delayed(_merge, pure=False, traverse=False)
        while len(parts) > 1:
            # Not in a list: Dask would forget what is persisted behind its entries.
            parts = [run(merge, *parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
        with _working():
            return dask.compute(parts[0])[0]


class _Sent:
    """A function on its way: not callable, so that Dask keeps it as a value."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.home = os.getpid()


class _Given:
    """An argument on its way, which Dask does not look into."""

    def __init__(self, value: object) -> None:
        self.value = value


def _run(sent: _Sent, *arguments: Any) -> Any:
    arguments = tuple(given.value if isinstance(given, _Given) else given for given in arguments)
    if sent.home != os.getpid():
        _one_blas_thread_for_good()
    with unwatched(), quiet_numpy():  # a worker has an error state of its own
        return sent.function(*arguments)


def _merge(merge: Callable[[list[Any]], Any], *values: Any) -> Any:
    with quiet_numpy():
        return merge(list(values))


@lru_cache(maxsize=1)
def _one_blas_thread_for_good() -> object:
    """Keep BLAS to one thread in a worker process, which is what Dask's nannies ask for as well."""
    return ThreadpoolController().limit(limits=1, user_api="blas")


def current_client() -> Any:
    """Return the ``distributed.Client`` in use, or None."""
    if "distributed" not in sys.modules:  # then nobody can have made one
        return None
    try:
        return sys.modules["distributed"].default_client()
    except ValueError:
        return None


def _await(held: Sequence[Part], lengths: Sequence[int]) -> None:
    """Wait until all is done, and tell whoever watches of each partition."""
    if current_client() is None:  # then all is done
        rows_seen(sum(lengths))
        return
    distributed = sys.modules["distributed"]
    rows_of = {distributed.futures_of(part)[0]: length for part, length in zip(held, lengths, strict=True)}
    for future in distributed.as_completed(rows_of):
        rows_seen(rows_of[future])


@contextmanager
def _working() -> Iterator[None]:
    """Keep BLAS to one thread for tasks in this process; do not warn of the graph when long directions travel."""
    with warnings.catch_warnings(), ThreadpoolController().limit(limits=1, user_api="blas"):
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        yield
