"""The door of every algorithm: whatever NumPy can view as numbers, and tables of other packages, become a `Table`."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from privspan._lib import checks
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan._lib.streams import is_stream, native, pyarrow_needed
from privspan.rows.arrays import mapped_rows
from privspan.rows.categories import Categories, encoded
from privspan.rows.compressed import compressed_rows
from privspan.rows.partitions import partitioned
from privspan.rows.source import RowSource, as_source
from privspan.rows.table import Table
from privspan.rows.unit import is_sparse


def open_table(X: Any, *, min_rows: int = 1, accept_sparse: bool = True) -> Table:
    """Return `X` as a table (n, d), by type and shape alone.

    It takes anything NumPy can view as numbers, memory maps (which are read in pieces), SciPy's sparse tables,
    sources of rows, Arrow streams (which are read to their end), and Dask tables.  The dtype follows from the
    declared types of `X`: arrays, sparse tables and sources keep theirs, all else is float32 or float64.
    """
    X = X if isinstance(X, Table) else opened(taken(X))
    if isinstance(X, RowSource) and X.person is not None:  # whose rows would count as persons each
        raise ParameterTypeError(
            "{X} was opened with persons of several rows, in column {column!r}, which this does not take. Make "
            "one row per person of the file, or open it without {person}.",
            column=X.person,
        )
    return as_table(X, min_rows=min_rows, accept_sparse=accept_sparse)


def as_table(X: object, *, min_rows: int = 1, accept_sparse: bool = True) -> Table:
    """Do the same with a table that is no longer another package's; how many rows it has is told to nobody."""
    if not (isinstance(X, Table) or (accept_sparse and sparse.issparse(X))):
        array = checks.matrix(X, min_rows=min_rows)
        return as_source(array if array.base is None else mapped_rows(array))  # what owns its cells is in no file
    given: Any = X
    if is_sparse(given) and not accept_sparse:
        raise ParameterTypeError("{X} must be dense for this method; got a sparse table.")
    if given.dtype.kind not in "biuf" or given.dtype.itemsize > 8:
        what = "a matrix of booleans, integers or floats of at most 64 bits"
        raise ParameterTypeError("{X} must be {what}; got dtype {dtype}.", what=what, dtype=given.dtype.name)
    if given.ndim != 2 or given.shape[0] < min_rows or given.shape[1] < 1:
        template = "{X} must be of at least {min_rows} row(s) and 1 column; got shape {shape}."
        raise ParameterError(template, min_rows=min_rows, shape=given.shape)
    return X if isinstance(X, Table) else as_source(compressed_rows(X))


def taken(X: Any, person: Any = None, categories: Categories | None = None, *, ids_needed: bool = True) -> Any:
    """Return what is read once as rows that can be read again, with categories as columns of 0 and 1; others as is.

    `person` may name a column of ids, which is then not among the numbers; of a stream it may be absent unless
    `ids_needed`.
    """
    X, column = native(X), person if isinstance(person, str) else None
    if not is_stream(X):
        return X if categories is None else encoded(X, categories, person=column)
    with pyarrow_needed():
        from privspan.rows.files.stream import fitted_stream
    return fitted_stream(X, person=column, categories=categories, ids_needed=ids_needed)


def whose(X: Any, person: Any) -> Any:
    """Return the ids that were given, or else the column of persons that a file was opened with."""
    return X.person if person is None and isinstance(X, RowSource) else person


def opened(X: Any) -> Any:
    """Return a table of another package's making as a `Table`, and everything else as it is."""
    return partitioned(X) if type(X).__module__.startswith("dask") else X


def given_table(X: object) -> Table | None:
    """Return what is a table already, and None for everything else."""
    return X if isinstance(X, Table) else None
