"""What the public knows of columns: read once, for all that ask."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from privspan.rows import open_rows
from privspan.rows.columns import column_names, public_columns

NAMES = ["age", "bmi", "smoker"]
FRAME = pd.DataFrame({"age": [30.0, 40.0], "bmi": [20.0, 30.0], "smoker": [True, False]})


def test_names_positions_and_arrays_say_the_same():
    by_name = public_columns(FRAME, 3, bounds={"age": (0, 120)}, units={"bmi": 5}, around={"age": 50})
    by_place = public_columns(FRAME, 3, bounds={0: (0, 120)}, units={1: 5}, around={np.int64(0): 50})
    as_array = public_columns(
        FRAME,
        3,
        bounds=[[0, np.nan, np.nan], [120, np.nan, np.nan]],
        units=[np.nan, 5, np.nan],
        around=[50, np.nan, np.nan],
    )
    for known in (by_name, by_place, as_array):
        np.testing.assert_array_equal(known.low, [0.0, np.nan, 0.0])
        np.testing.assert_array_equal(known.high, [120.0, np.nan, 1.0])
        np.testing.assert_array_equal(known.units, [np.nan, 5.0, np.nan])
        np.testing.assert_array_equal(known.around, [50.0, np.nan, np.nan])
        np.testing.assert_array_equal(known.start, [50.0, 0.0, 0.5])
        np.testing.assert_array_equal(known.half_range, [60.0, np.nan, 0.5])
        np.testing.assert_array_equal(known.boolean, [False, False, True])


def test_one_pair_is_for_all_columns_and_bounds_replace_those_of_booleans():
    known = public_columns(FRAME, 3, bounds=(0, 16))
    np.testing.assert_array_equal(known.half_range, 8.0)
    assert known.bounded.all()
    assert not known.boolean.any()  # somebody who says so may have recoded them


def test_nothing_is_declared_by_default():
    known = public_columns(np.zeros((2, 3)), 3, units=None, around=None)
    assert np.isnan([known.units, known.low, known.high, known.around]).all()
    np.testing.assert_array_equal(known.start, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": {"agee": (0, 1)}}, r"`bounds` must name columns .*by name or by position below 3; got 'agee'"),
        ({"units": {3: 1.0}}, r"`units` must name columns .*; got 3"),
        ({"units": True}, r"`units` must have one number per column, shape \(3,\); got \(\)"),
        ({"units": {True: 1.0}}, r"`units` must name columns .*; got True"),
        ({"bounds": {"age": (2, 1)}}, r"`bounds` must be finite, low < high.* column 'age'"),
        ({"bounds": {"age": (1, 1)}}, r"low < high.* column 'age'"),
        ({"bounds": {"age": (0, np.inf)}}, r"finite.* column 'age'"),
        ({"bounds": {"age": (0, np.nan)}}, r"a pair \(low, high\) of numbers .*'age'"),
        ({"bounds": {"age": 3}}, r"a pair \(low, high\)"),
        ({"bounds": {"age": "old"}}, r"`bounds` must be numbers"),
        ({"bounds": [[0, 1], [0, 1], [0, 1]]}, r"shape \(2, 3\); got shape \(3, 2\)"),
        ({"bounds": [[0, 0, np.nan], [1, 1, 1]]}, r"`bounds` must be finite.* column 'smoker'"),
        ({"units": {"bmi": 0}}, r"`units` must be positive and finite.* column 'bmi'"),
        ({"units": {"bmi": -1}}, r"positive"),
        ({"units": {"bmi": np.nan}}, r"`units` must give a number .*'bmi'"),
        ({"units": [1, np.inf, 1]}, r"positive and finite.* column 'bmi'"),
        ({"units": [1, 1]}, r"one number per column, shape \(3,\); got \(2,\)"),
        ({"around": 3.0}, r"`around` must have one number per column"),
        ({"around": {"bmi": -np.inf}}, r"`around` must be finite.* column 'bmi'"),
        ({"around": [1e300, 0, 0]}, r"with squares in range; not so for column 'age'"),
    ],
)
def test_refusals_are_one_sentence_and_name_the_column(options, message):
    with pytest.raises(ValueError, match=message):
        public_columns(FRAME, 3, **options)


def test_a_name_that_two_columns_have_is_refused():
    with pytest.raises(ValueError, match="several columns of that name"):
        public_columns(None, 2, names=["a", "a"], units={"a": 1.0})
    assert public_columns(None, 2, names=["a", "a"], units={1: 1.0}).scaled.tolist() == [False, True]


def test_tables_tell_names_and_booleans_wherever_they_are(tmp_path):
    far = dd.from_pandas(FRAME, npartitions=1)
    assert column_names(far) == column_names(FRAME) == NAMES
    np.testing.assert_array_equal(public_columns(far, 3).boolean, [False, False, True])
    FRAME.astype(float).to_csv(tmp_path / "people.csv", index=False)
    source = open_rows(tmp_path / "people.csv")
    assert column_names(source) == NAMES
    assert public_columns(source, 3, bounds={"age": (0, 120)}).bounded.tolist() == [True, False, False]
    assert column_names(np.zeros((2, 2))) is None
