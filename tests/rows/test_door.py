"""The door: whatever is handed in becomes a table, by type and shape alone."""

import numpy as np
import pytest
from scipy import sparse

from privspan.rows import PartitionedTable, RowSource, partition_rows
from privspan.rows.door import given_table, open_table, opened, whose
from privspan.rows.source import as_source

X = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.coo_array, as_source, list], ids=["array", "sparse", "source", "list"]
)
def test_what_is_in_this_process_becomes_a_source_of_the_same_rows(kind):
    table = open_table(kind(X))
    assert isinstance(table, RowSource)
    rows = table[:].toarray() if table.is_sparse else table[:]
    np.testing.assert_array_equal(rows, X)
    assert (table.shape, table.lengths, table.width, table.local, table.drawable) == ((6, 2), (6,), 1, True, True)


def test_an_array_is_lent_and_never_copied():
    assert np.shares_memory(open_table(X).lend(slice(1, 3)), X)
    assert open_table(X).unwrapped() is X


def test_a_table_passes_the_door_as_it_is():
    for table in (as_source(X), partition_rows(X, (4, 2))):
        assert open_table(table) is opened(table) is given_table(table) is table
    assert given_table(X) is None


def test_a_table_in_partitions_is_not_local():
    table = open_table(partition_rows(X, (4, 2)))
    assert isinstance(table, PartitionedTable)
    assert (table.local, table.drawable, table.lengths) == (False, False, (4, 2))


def test_refusals_name_types_and_shapes_only():
    with pytest.raises(ValueError, match="at least 7 row"):
        open_table(as_source(X), min_rows=7)
    with pytest.raises(TypeError, match="dense"):
        open_table(as_source(sparse.csr_array(X)), accept_sparse=False)
    with pytest.raises(TypeError, match="complex"):
        open_table(sparse.csr_array(X.astype(complex)))


def test_the_column_of_persons_is_that_of_the_file_unless_another_is_given():
    source = as_source(X)
    source.person = "who"
    assert (whose(source, None), whose(source, "other"), whose(X, None)) == ("who", "other", None)
    with pytest.raises(TypeError, match="'who'"):
        open_table(source)
