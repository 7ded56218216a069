"""What algorithms ask of a table gives the same rows whatever kind of table it is."""

import numpy as np
import pytest
from scipy import sparse
from sources import limited

from privspan.rows import partition_rows
from privspan.rows.door import open_table
from privspan.rows.persons import PersonTable
from privspan.rows.source import as_source

X = np.random.default_rng(0).normal(size=(12, 3)) + 1.0
X[2, 1] = np.nan


def kinds():
    persons = PersonTable(as_source(X), 3, np.arange(12), X, 12)
    tables = {"array": open_table(X), "partitions": partition_rows(X, (7, 5)), "persons": persons}
    return tables | {"sparse": open_table(sparse.csr_array(X))}


def all_rows(table):
    """Return every row of every record, wherever it is."""
    if not table.local:
        return np.vstack([part() for part in table.parts])
    rows = getattr(table, "slots", table)[:]
    return rows.toarray() if table.is_sparse else rows


@pytest.mark.parametrize("kind", ["array", "partitions", "persons"])
def test_tables_that_are_made_row_by_row(kind):
    table, centre, basis = kinds()[kind], np.array([1.0, 2.0, 3.0]), np.eye(3)[:, :2]
    filled = np.where(np.isnan(X), centre, X)
    made = {
        "less": (table.less(centre), X - centre),
        "in_units": (table.in_units(centre), X * (1.0 / centre)),
        "cut_off": (table.cut_off(-centre, centre), np.clip(X, -centre, centre)),
        "with_constant": (table.with_constant(centre, 0.5), np.column_stack([X - centre, np.full(12, 0.5)])),
        "coordinates": (table.coordinates(basis, centre), filled @ basis - centre @ basis),
        "with_gaps": (table.with_gaps("zero-row"), np.where(np.isnan(X).any(axis=1, keepdims=True), np.nan, X)),
    }
    for name, (found, expected) in made.items():
        np.testing.assert_array_equal(all_rows(found), expected, err_msg=name)
        assert found.shape == (table.shape[0], expected.shape[1]), name
    assert table.with_gaps("fill") is table


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_short_rows_with_a_constant_are_made_once(kind):
    """In the type of the table; long ones, and more of them than may be kept, whenever they are asked for."""
    table, centre = X.astype(kind), np.array([1.0, 2.0, 3.0])
    wanted = np.column_stack([table - centre.astype(kind), np.full(12, 0.5, kind)])
    for limits, kept in (
        ({}, True),
        ({"slow_to_make": 3}, False),
        ({"kept_bytes": 4 * 12 * wanted.itemsize - 1}, False),
    ):
        made = limited(table, **limits).with_constant(centre, 0.5)
        settled = made.settled()
        assert (settled is made) == (not kept)
        assert settled.limits is made.limits
        assert settled.dtype == kind
        np.testing.assert_array_equal(settled[:], wanted)


@pytest.mark.parametrize("kind", ["array", "partitions", "persons", "sparse"])
def test_sums_are_over_records(kind):
    table = kinds()[kind]

    def of_first(rows):
        return np.asarray(rows[:, [0]].sum(axis=0)).ravel()

    class Sum:
        total = 0.0

        def add(self, part):
            self.total = self.total + part

        def plus(self, other):
            both = Sum()
            both.total = self.total + other.total
            return both

    sums = table.sums(of_first)
    found = sums.fold(Sum).total if hasattr(sums, "fold") else sum(sums)
    assert found == pytest.approx(X[:, 0].sum() / table.width)
    assert (table.count_error > 0.0) == (kind == "persons")


def test_one_row_of_every_record():
    for kind, table in kinds().items():
        here = table.one_each().here()
        assert here.shape == table.shape, kind
        drawn = table.draw(np.array([0, 2]), dense=True)[:]
        np.testing.assert_array_equal(drawn, X[[0, 6]] if kind == "persons" else X[[0, 2]], err_msg=kind)


def test_blocks_stay_within_partitions_and_pairs_halve_them():
    tables = kinds()
    assert [tables[kind].blocks(4) for kind in ("array", "partitions", "persons")] == [3, 2, 1]
    assert [sum(tables[kind].halved().lengths) for kind in ("array", "partitions", "persons")] == [6, 5, 2]
    for kind, table in tables.items():
        assert table.pairs(np.random.default_rng(0), lambda a, b: a - b).lengths == table.halved().lengths, kind
