"""Several rows a person: the promise for replacing a person with all of their rows.

What says whose row is whose is resolved here, once for a call (`privspan.privacy.call.Call.persons`), into a
`privspan.rows.persons.PersonTable`, and the release says for whom it promises.  Persons stand in a uniformly
random, secret order: by their ids, or by where they first appear, one person's ids and rows would move the others.
Proofs: docs/explanation/several-rows.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.privacy.randomness import BitSource, Child, RandomLike, open_streams, secret_order
from privspan.privacy.reading import PERSONS
from privspan.privacy.release import Release
from privspan.rows import id_codes, in_partitions, split_ids
from privspan.rows.columns import column_names
from privspan.rows.door import as_table
from privspan.rows.partitioned_ids import partitioned_ids
from privspan.rows.persons import PersonTable, belongings, slotted
from privspan.rows.source import as_source
from privspan.rows.spread_persons import spread_persons
from privspan.rows.table import Table

MOST_ROWS = 8
"""Rows of one person that are looked at, unless another number is given: the default that signatures have shown."""

_WIDEST = 1024  # then no border of a chunk is inside a person: docs/explanation/several-rows.md, "Borders"


def by_person(X: Any, person: Any, max_rows: int, rng: RandomLike) -> PersonTable:
    """Return a table of persons, each with `max_rows` rows, in a secret order.

    `person` says whose each row of `X` is: ids, equal for rows of one person, or the name of the column that holds
    them.  A row without an id is a person of its own.  Of those who have more rows some are drawn, of those who have
    fewer some are looked at several times.  The `rng` is that of the call; the order is drawn apart from its noise.

    Guarantee
    ---------
    Not private by itself.  Two data sets of as many persons, one of whom is replaced with all of their rows, become
    tables that differ in the rows of one person, at the same place, for orders and draws that are coupled.  So what
    is private for replacing one person of a `PersonTable` is private for replacing one person.
    Proof: docs/explanation/several-rows.md, lemma 1.
    """
    checks.integer_at_least(1, max_rows=max_rows)
    if max_rows > _WIDEST:
        raise ParameterError("{max_rows} must be at most {widest}; got {got}.", widest=_WIDEST, got=int(max_rows))
    bits = open_streams(rng).child(Child.ORDER).noise  # nothing is charged yet: an order releases nothing
    if in_partitions(X):
        found = partitioned_ids(X, person)
        return spread_persons(found, *_places(sum(map(len, found.persons)), bits), int(max_rows))
    declared, codes = split_ids(X, person) if isinstance(person, str) else (X, None)
    table = as_source(_checked(declared).here())
    table.names = None if (names := column_names(declared)) is None else tuple(names)
    owned = belongings(id_codes(person, table.shape[0]) if codes is None else codes)
    return slotted(table, declared, owned, *_places(owned.persons, bits), int(max_rows))


def _places(n: int, bits: BitSource) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Draw an order of n persons, and for each place in it a number from 0 to 1, 1 excluded."""
    places, draws = secret_order(n, bits), bits.uint64(n) / 2.0**64  # (persons,) each
    return places, np.minimum(draws, 1.0 - 2.0**-53)


def _checked(X: Any) -> Table:
    """Return a table as its rows are read; a refusal does not quote how many there are, as others may."""
    try:
        return as_table(X)
    except ValueError:
        raise ParameterError("{X} must be two-dimensional, with at least one row and one column.") from None


def for_persons(release: Any, persons: Table) -> Any:
    """Return a release, or whatever has a cost, that promises for persons instead of rows."""
    changes: dict[str, Any] = {"cost": replace(release.cost, neighbours=PERSONS)}
    if isinstance(release, Release):
        changes["parameters"] = {**release.parameters, "max_rows": persons.width}
    return replace(release, **changes)
