"""Faults with several rows a person."""

from __future__ import annotations

import itertools
import math
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from person_neighbours import neighbours, spent_between
from scipy import sparse
from spread import spread

from planted_faults.registry import fault, refuted
from privspan import private_mean, private_subspace
from privspan._lib import identity
from privspan._lib.words import word_of
from privspan.audit.replay import ReplayError
from privspan.privacy import call, mu_from_budget, persons
from privspan.rows import ids, open_rows, partitioned_ids
from privspan.rows import unit as unit_rows
from privspan.rows.door import open_table
from privspan.rows.persons import Belongings, PersonTable
from privspan.rows.source import as_source
from privspan.sums import lifts, looks


def persons_refuted() -> bool:
    """Replay a mean and a subspace on data sets that differ in a person, with 1 row or with 500."""
    pair = neighbours(300, 3)
    return replay_refuted(mean_of_persons, pair) or replay_refuted(subspace_of_persons, pair)


def replay_refuted(run: Callable[..., Any], pair: Any) -> bool:
    try:
        spent, one, other = spent_between(run, pair)
    except ReplayError:
        return True
    told = [repr((made, getattr(made, "parameters", None))) for made in (one, other)]
    return spent > mu_from_budget(1.0, 1e-6) ** 2 * (1 + 1e-9) or told[0] != told[1]


def mean_of_persons(rows, ids, rng=0):
    return private_mean(rows, person=ids, norm_bound=5.0, epsilon=1.0, delta=1e-6, rng=rng)


def subspace_of_persons(rows, ids, rng=0):
    return private_subspace(rows, 1, person=ids, method="analyze-gauss", epsilon=1.0, delta=1e-6, rng=rng)


def places_refuted() -> bool:
    """Audit where somebody else stands, when the first of three persons becomes one with another id."""
    rows = np.arange(3.0)[:, None]
    pair = np.array(["a", "b", "c"]), np.array(["z", "b", "c"])

    def place(ids, rng):
        return {"place": float(np.argmax(persons.by_person(rows, ids, 1, rng).slots[:][:, 0] == 1.0))}

    return refuted(place, pair)


def any_ids_refuted() -> bool:
    """Compare means with equal noise, of persons whose ids are UUIDs and one of whom has 1 row or 500."""
    means = []
    for people in neighbours(300, 3):
        ids = [uuid.uuid5(uuid.NAMESPACE_OID, one) for one in people.ids]
        means.append(mean_of_persons(people.rows, ids).mean)
    return bool(np.linalg.norm(means[0] - means[1]) > 2 * 5.0 / 300)


@fault("ids that are neither text nor numbers taken for missing", any_ids_refuted)
def missing_ids(patch):
    patch.setattr(identity, "key_of", word_of)


def long_ids_refuted() -> bool:
    """Count the persons of a file in which the id of one is another long number."""
    counts = set()
    with tempfile.TemporaryDirectory() as folder:
        for last in (5, 2**53 + 1):
            path = Path(folder) / f"{last}.parquet"
            pq.write_table(pa.table({"patient": [2**53, last], "age": [1.0, 2.0]}), path)
            counts.add(len(persons.by_person(open_rows(path), "patient", 1, 0)))
    return len(counts) > 1


@fault("ids of a file read as floats", long_ids_refuted)
def ids_as_floats(patch):
    def split(source, column):
        return source, np.unique(source[:][:, source.names.index(column)], return_inverse=True)[1]

    patch.setattr(ids, "_split_source", split)


@fault("persons in the order of their ids", places_refuted)
def order_of_ids(patch):
    def by_code(codes):
        order = np.argsort(codes, kind="stable")
        return Belongings(order, np.arange(len(codes)), np.ones(len(codes), dtype=np.intp))

    patch.setattr(persons, "belongings", by_code)
    patch.setattr(persons, "secret_order", lambda n, bits: np.arange(n))


def touched_chunks(rows: Any, others: Any) -> int:
    """Return how many chunks of persons differ between two tables."""
    sums_of = [list(open_table(table).rows().map_chunks(lambda piece: piece.sum(axis=0))) for table in (rows, others)]
    return sum(not np.array_equal(*pair) for pair in zip(*sums_of, strict=True))


def borders_refuted() -> bool:
    """Replace each of some persons: more than one chunk changes."""
    rows, width = np.ones((3 * 3000, 2)), 3
    changed = []
    for person in (0, 1023, 1024, 1365, 2730, 2999):
        other = rows.copy()
        other[person * width : (person + 1) * width] = [1.0, -1.0]
        tables = (PersonTable(as_source(table), width, np.arange(9000), table, 9000) for table in (rows, other))
        changed.append(touched_chunks(*tables))
    return max(changed) > 1


@fault("chunks of persons cut by rows", borders_refuted)
def cut_by_rows(patch):
    patch.setattr(unit_rows, "whole_persons", lambda rows, grain: rows)


def others_refuted() -> bool:
    """Compare the slots of everybody else, one by one."""
    slots = []
    for people in neighbours(60, 2):
        with people.coupled():
            slots.append(persons.by_person(people.rows, people.ids, 4, 0).slots[:].reshape(60, -1))
    return bool(np.count_nonzero((slots[0] != slots[1]).any(axis=1)) > 1)


@fault("a draw for each row of a person", others_refuted)
def draws_that_shift(patch):
    sound = persons.slotted

    def shifting(table, declared, owned, places, draws, width):
        drawn = np.random.default_rng(0).random(len(owned.order))
        ends = np.cumsum(owned.counts[places])
        return sound(table, declared, owned, places, drawn[ends - 1], width)

    patch.setattr(persons, "slotted", shifting)


@fault("rows of a person added up", persons_refuted)
def not_averaged(patch):
    patch.setattr(unit_rows, "_averaged", lambda function, width, *piece: function(*piece))


def lift_refuted() -> bool:
    """Look at a person of 400 rows, one of which a look shortens to nothing."""
    width, square = 400, looks.CONSTANT**2
    rows = np.eye(width, width + 1) * math.sqrt(1.0 - square**2)
    rows[0], rows[:, -1] = 0.0, np.where(np.arange(width), -square, 1.0)
    opened = open_table(PersonTable(as_source(rows), width, np.arange(width), rows, width)).rows()
    factors = unit_rows.PersonValues((np.arange(width) > 0).astype(float), width)
    gram = looks.AugmentedGram(opened, [factors], lift=lifts.person_lift(opened, looks.CONSTANT))
    (total,) = gram.products(None)
    return bool(np.linalg.norm(total) > gram.size)


@fault("a lift for rows that nothing shortens", lift_refuted)
def lift_of_unit_rows(patch):
    patch.setattr(lifts, "_largest", lambda inner, square: inner)


@fault("as many slots as somebody has rows", persons_refuted)
def slots_for_the_longest(patch):
    sound = persons.slotted

    def as_needed(table, declared, owned, places, draws, width):
        return sound(table, declared, owned, places, draws, min(width, int(owned.counts.max())))

    patch.setattr(persons, "slotted", as_needed)


@fault("rows counted in place of persons", persons_refuted)
def number_of_rows(patch):
    sound = persons.for_persons

    def counting(release, table):
        told = sound(release, table)
        return replace(told, parameters={**told.parameters, "n": table.read}) if hasattr(told, "parameters") else told

    patch.setattr(call, "for_persons", counting)


# ---- In partitions -------------------------------------------------------------------------------------------------


def spread_refuted() -> bool:
    """Replay a mean on Dask arrays that differ in a person, with 1 row or with 500."""
    return replay_refuted(lambda rows, ids, rng=0: mean_of_persons(*spread(rows, ids), rng), neighbours(300, 3))


@fault("ids that are sent to a bucket of each partition's own", spread_refuted)
def never_met(patch):
    sent = itertools.count()
    patch.setattr(partitioned_ids, "scattered", lambda key: next(sent))


def others_spread_refuted() -> bool:
    """Compare the slots of everybody else, in partitions."""
    slots = []
    for people in neighbours(60, 2):
        with people.coupled():
            found = persons.by_person(*spread(people.rows, people.ids), 4, 0).values()
            parts = found.place.fetch(found.parts, found.lengths)
            slots.append(np.concatenate([part.slots for part in parts]).reshape(60, -1))
    return bool(np.count_nonzero((slots[0] != slots[1]).any(axis=1)) > 1)


@fault("draws that persons in partitions take along", others_spread_refuted)
def draws_of_persons(patch):
    sound = persons.spread_persons
    patch.setattr(
        persons, "spread_persons", lambda found, places, draws, width: sound(found, places, draws[places], width)
    )


# ---- Sparse rows ---------------------------------------------------------------------------------------------------


def sparse_lift_refuted() -> bool:
    """Look at a person of eight equal sparse rows."""
    rows = sparse.csr_array(np.ones((8, 4)))
    opened = PersonTable(as_source(rows), 8, np.arange(8), rows, 8).rows()
    gram = looks.AugmentedGram(opened, lift=lifts.person_lift(opened, looks.CONSTANT))
    (total,) = gram.products(None)
    return bool(np.linalg.norm(total) > gram.size)


@fault("sparse rows lifted as if they were at right angles", sparse_lift_refuted)
def right_angles(patch):
    patch.setattr(lifts, "inner_products", lambda rows, width: np.tile(np.eye(width), (rows.shape[0] // width, 1, 1)))
