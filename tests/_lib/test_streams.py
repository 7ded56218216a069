"""What must be read batch by batch is told by its type alone; frames and columns in memory need not be."""

import dask.dataframe as dd
import narwhals.stable.v1
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from streams import STREAMS, arrow

from privspan._lib.errors import MissingPackageError
from privspan._lib.streams import is_stream, native, pyarrow_needed

TABLE = arrow(np.ones((3, 2)))


@pytest.mark.parametrize("kind", STREAMS)
def test_streams_are_known_by_their_types(kind):
    assert is_stream(native(STREAMS[kind](TABLE)))


@pytest.mark.parametrize(
    "X",
    [
        np.ones((3, 2)),
        [[1.0, 2.0]],
        sparse.csr_array(np.eye(3)),
        TABLE,
        TABLE.to_batches()[0],
        TABLE.column(0),
        TABLE.to_pandas(),
        pd.Series([1.0]),
        pl.from_arrow(TABLE),
        pl.Series([1.0]),
        dd.from_pandas(TABLE.to_pandas(), npartitions=1),
        pa.array([1.0]),
        None,
        "people.csv",
    ],
    ids=lambda X: type(X).__name__,
)
def test_what_is_in_memory_is_none(X):
    assert not is_stream(X)
    assert native(X) is X


def test_a_frame_of_narwhals_is_the_one_that_it_stands_for():
    frame, lazy = pl.from_arrow(TABLE), pl.from_arrow(TABLE).lazy()
    assert native(narwhals.from_native(frame)) is frame
    assert native(narwhals.from_native(lazy)) is lazy
    assert native(narwhals.stable.v1.from_native(frame)) is frame


def test_the_package_that_is_missing_is_named():
    with pytest.raises(MissingPackageError, match="pip install 'privspan"), pyarrow_needed():
        raise ImportError("No module named 'pyarrow'")
