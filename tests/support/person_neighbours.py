"""Data sets of persons with several rows that differ in one person, and replay of real runs on both.

The proof couples the secret orders of two neighbouring data sets so that everybody else keeps their place
(docs/explanation/several-rows.md, lemma 1).  `Crowd.coupled` does the same: it hands out the order in which this
crowd's persons, whoever comes first in the table, stand at the places that were agreed on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privspan.audit.replay import ReplayError, Transcript
from privspan.privacy import persons
from privspan.rows.persons import belongings

Run = Callable[..., Any]  # of a table and whose its rows are


@dataclass(frozen=True)
class Crowd:
    """A table, whose ids, and which person (0, 1, …) each row is of; persons of neighbours have the same numbers."""

    rows: NDArray[Any]
    ids: NDArray[Any]
    owners: NDArray[np.intp]

    @contextmanager
    def coupled(self) -> Iterator[None]:
        """Put person p of this crowd at the place that p has in every crowd of as many."""
        owned = belongings(self.owners)
        listed = self.owners[owned.order[owned.starts]]  # who is which, as the library counts persons
        agreed = np.random.default_rng(7).permutation(owned.persons)

        def order(n: int, bits: Any) -> NDArray[np.intp]:
            if n != owned.persons:
                raise ReplayError("Persons are not told apart as their rows say.")
            bits.uint64(n)  # as many as the order would take
            return np.argsort(listed)[agreed]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(persons, "secret_order", order)
            yield


def crowd(of_persons: list[NDArray[Any]], *, last_id: object = None, ends: bool = False) -> Crowd:
    """Mix the rows of persons; the last one's id may be another, and their rows may lie at both ends of the table."""
    owners = np.concatenate([np.full(len(rows), person) for person, rows in enumerate(of_persons)])
    keys = np.concatenate([np.random.default_rng(p).random(len(rows)) for p, rows in enumerate(of_persons)])
    last = owners == len(of_persons) - 1
    if ends:
        keys[last] = np.where(np.arange(last.sum()) % 2, 2.0, -1.0)
    order = np.argsort(keys, kind="stable")
    ids = np.array([f"p{owner:05d}" for owner in owners], dtype=object)
    if last_id is not None:
        ids[last] = last_id
    return Crowd(np.concatenate(of_persons)[order], ids[order], owners[order])


def people_of(
    n: int, d: int, *, offset: float = 3.0, seed: int = 0, most: int = 5, uneven: float = 0.0
) -> list[NDArray[np.float64]]:
    """Return the rows of n persons, one to `most` each, spread about a point of the person's own."""
    rng = np.random.default_rng(seed)
    spread = np.linspace(3.0, 0.5, d)
    counts, middles = rng.integers(1, most + 1, n), rng.standard_normal((n, d)) * spread
    middles = offset + middles * np.exp(uneven * np.random.default_rng(seed + 1).standard_normal((n, 1)))
    return [middle + 0.3 * spread * rng.standard_normal((m, d)) for middle, m in zip(middles, counts, strict=True)]


def strangers(d: int, far: float) -> dict[str, NDArray[np.float64]]:
    """Persons who might be the last one: with one row, with 500, all alike, all over the place, broken."""
    rng = np.random.default_rng(1)
    axis = np.eye(d)[:1]
    return {
        "one row": far * axis,
        "five hundred rows": np.repeat(-far * axis, 500, axis=0),
        "all over": far * rng.standard_normal((40, d)),
        "broken": np.array([[np.nan], [np.inf], [1e300], [0.0], [1e-300]]) * np.ones(d),
        "to and fro": far * axis * np.array([1.0, -1.0] * 4)[:, None],
    }


STRANGERS = (("one row", "five hundred rows"), ("all over", "one row"), ("broken", "five hundred rows"))


def neighbours(n: int, d: int, which: tuple[str, str] = STRANGERS[0], **shape: Any) -> tuple[Crowd, Crowd]:
    """Return crowds whose last person is another one: other rows, at the ends of the table, under another id."""
    others = people_of(n - 1, d, **shape)
    last = strangers(d, 1e3 + 2 * shape.get("offset", 3.0))
    first, second = (last[name] for name in which)
    return crowd([*others, first]), crowd([*others, second], last_id=" first of all", ends=True)


def spent_between(run: Run, pair: tuple[Crowd, Crowd]) -> tuple[float, Any, Any]:
    """Replay ``run(rows, person)``; return what the replacement cost, as mu², and both results."""

    def on(people: Crowd, rng: Transcript) -> Any:
        with people.coupled():
            return run(people.rows, people.ids, rng)

    transcript = Transcript()
    spent = transcript.spent_by(on, *pair)
    return spent, *transcript.results
