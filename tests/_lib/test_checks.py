"""Every message, one by one; none of them looks at or repeats data."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from privspan._lib import checks

SECRET = 8675309.25  # stands for a data value: no message may contain it


def refuses(error: type[Exception], message: str):
    """Expect exactly this message."""
    return pytest.raises(error, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize("value", [1, 0.5, 5e-324, np.float32(0.1), np.float64(2), np.int64(3), np.uint8(1)])
def test_positive_accepts_numbers(value):
    checks.positive(epsilon=value)
    checks.non_negative(epsilon=value)


@pytest.mark.parametrize(
    ("value", "error", "got"),
    [
        (0, ValueError, "0"),
        (-1, ValueError, "-1"),
        (-0.0, ValueError, "-0.0"),
        (math.nan, ValueError, "nan"),
        (math.inf, ValueError, "inf"),
        (np.float64("nan"), ValueError, "nan"),
        (np.float32(-2), ValueError, "-2.0"),
        (10**400, ValueError, "an integer of 1329 bits"),
        (True, TypeError, "True"),
        (np.True_, TypeError, "True"),
        (None, TypeError, "None"),
        ("1", TypeError, "'1'"),
        (1j, TypeError, "an object of type complex"),
        (Fraction(1, 3), TypeError, "an object of type Fraction"),
        ([1.0], TypeError, "an object of type list"),
        (np.array(1.0), TypeError, "an object of type ndarray"),
        (np.datetime64("2020-01-01"), TypeError, "an object of type date"),
    ],
)
def test_positive_message(value, error, got):
    with refuses(error, f"`epsilon` must be a positive finite number; got {got}."):
        checks.positive(epsilon=value)


def test_the_first_bad_parameter_is_named():
    with refuses(ValueError, "`beta` must be a positive finite number; got 0."):
        checks.positive(alpha=1, beta=0, gamma=0)


def test_non_negative_message():
    checks.non_negative(delta=0, epsilon=0.0)
    with refuses(ValueError, "`delta` must be a finite number, zero or above; got -1e-09."):
        checks.non_negative(delta=-1e-9)
    with refuses(TypeError, "`delta` must be a finite number, zero or above; got False."):
        checks.non_negative(delta=False)


@pytest.mark.parametrize("value", [0.5, 1e-300, np.float32(0.25), math.nextafter(1.0, 0.0)])
def test_probability_accepts_the_open_interval(value):
    checks.probability(delta=value)


@pytest.mark.parametrize(
    ("value", "error", "got"),
    [
        (0, ValueError, "0"),
        (1, ValueError, "1"),
        (0.0, ValueError, "0.0"),
        (1.0, ValueError, "1.0"),
        (-0.5, ValueError, "-0.5"),
        (math.nan, ValueError, "nan"),
        ("0.5", TypeError, "'0.5'"),
        (True, TypeError, "True"),
    ],
)
def test_probability_message(value, error, got):
    with refuses(error, f"`delta` must be a number strictly between 0 and 1; got {got}."):
        checks.probability(delta=value)


def test_budget_names_the_culprit():
    checks.budget(1, 1e-6)
    with refuses(ValueError, "`epsilon` must be a positive finite number; got 0."):
        checks.budget(0, 1e-6)
    with refuses(ValueError, "`delta` must be a number strictly between 0 and 1; got 0."):
        checks.budget(1, 0)


def test_integer_at_least():
    checks.integer_at_least(2, k=2, n=np.int32(5))
    with refuses(ValueError, "`k` must be an integer, at least 2; got 1."):
        checks.integer_at_least(2, k=1)
    with refuses(ValueError, "`k` must be an integer, at least 0; got -1."):
        checks.integer_at_least(0, k=np.int64(-1))
    with refuses(TypeError, "`k` must be an integer, at least 2; got 3.0."):
        checks.integer_at_least(2, k=3.0)
    with refuses(TypeError, "`k` must be an integer, at least 1; got True."):
        checks.integer_at_least(1, k=True)


def test_dimension():
    checks.dimension(k=3, d=3, n=3)
    checks.dimension(k=3, d=3)
    with refuses(ValueError, "`k` must be an integer, at least 1; got 0."):
        checks.dimension(k=0, d=3, n=5)
    with refuses(TypeError, "`k` must be an integer, at least 1; got None."):
        checks.dimension(k=None, d=3, n=5)
    with refuses(ValueError, "`k` must be at most the number of columns, 3; got 4."):
        checks.dimension(k=4, d=3, n=9)
    with refuses(ValueError, "`k` must be at most the number of rows, 2; got 3."):
        checks.dimension(k=3, d=3, n=2)


def test_one_of():
    checks.one_of(("auto", "votes"), method="votes")
    checks.one_of((None, "auto"), method=None)
    with refuses(ValueError, "`method` must be one of 'auto', 'votes'; got 'vote'."):
        checks.one_of(("auto", "votes"), method="vote")
    with refuses(ValueError, "`flag` must be one of 'a', True; got 1."):
        checks.one_of(("a", True), flag=1)
    with refuses(ValueError, "`method` must be one of 'auto'; got an object of type ndarray."):
        checks.one_of(("auto",), method=np.array(["auto", "votes"]))


def test_a_long_text_is_cut():
    with pytest.raises(ValueError, match=r"got 'a{59}\.\.\.\.$"):
        checks.one_of(("auto",), method="a" * 1000)


@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "u1", "u8", "f2", "f4", "f8", ">f8", ">i4"])
def test_matrix_accepts_every_real_dtype_as_it_is(dtype):
    array = np.ones((3, 2), dtype=dtype)
    result = checks.matrix(array)
    assert result.dtype == array.dtype
    assert np.shares_memory(result, array)


def test_matrix_keeps_layout():
    strided = np.arange(24.0).reshape(4, 6)[::2, ::3]
    assert checks.matrix(strided).strides == strided.strides
    assert checks.matrix(np.asfortranarray(np.ones((3, 2)))).flags.f_contiguous


def test_matrix_never_looks_at_a_value():
    # 8 exabytes of virtual entries: any scan or copy would fail or never end.
    endless = np.broadcast_to(np.float64(SECRET), (10**9, 10**9))
    assert checks.matrix(endless).shape == (10**9, 10**9)


def test_matrix_views_subclasses(tmp_path):
    class Guarded(np.ndarray):
        def __array_ufunc__(self, *args, **kwargs):
            raise AssertionError("a value was looked at")

        __array_function__ = __array_ufunc__
        __getitem__ = __array_ufunc__

    guarded = np.ones((3, 2)).view(Guarded)
    assert type(checks.matrix(guarded)) is np.ndarray
    mapped = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=(5, 2))
    result = checks.matrix(mapped)
    assert type(result) is np.ndarray
    assert np.shares_memory(result, mapped)


def test_matrix_accepts_lists_and_data_frames():
    assert checks.matrix([[1, 2], [3, 4]]).dtype == np.float64
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    np.testing.assert_array_equal(checks.matrix(frame), [[1, 0.5], [2, 1.5]])


@pytest.mark.parametrize(
    ("X", "dtype"),
    [
        (np.array([[SECRET, None]], dtype=object), "object"),
        (np.array([[str(SECRET)]]), "str320"),
        (np.array([[b"a"]]), "bytes8"),
        (np.array([[SECRET + 1j]]), "complex128"),
        (np.array([[np.datetime64("2020-01-01")]]), "datetime64[D]"),
        (np.zeros((2, 2), dtype=[("a", "f8")]), "void64"),
    ],
)
def test_matrix_refuses_other_dtypes(X, dtype):
    what = "an array of booleans, integers or floats of at most 64 bits"
    with refuses(TypeError, f"`X` must be {what}; got dtype {dtype}."):
        checks.matrix(X)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is double here")
def test_matrix_refuses_long_double():
    with pytest.raises(TypeError, match=r"`X` must be an array .* of at most 64 bits; got dtype longdouble|float1"):
        checks.matrix(np.ones((2, 2), dtype=np.longdouble))


def test_matrix_shape_messages():
    what = "two-dimensional (rows are people, columns are features)"
    with refuses(ValueError, f"`X` must be {what}; got 1 dimension(s), shape (3,)."):
        checks.matrix(np.full(3, SECRET))
    with refuses(ValueError, f"`Y` must be {what}; got 3 dimension(s), shape (1, 2, 3)."):
        checks.matrix(np.full((1, 2, 3), SECRET), name="Y")
    with refuses(ValueError, f"`X` must be {what}; got 0 dimension(s), shape ()."):
        checks.matrix(SECRET)
    with refuses(ValueError, "`X` must be of at least 1 row(s) and 1 column; got shape (0, 3)."):
        checks.matrix(np.empty((0, 3)))
    with refuses(ValueError, "`X` must be of at least 1 row(s) and 1 column; got shape (3, 0)."):
        checks.matrix(np.empty((3, 0)))
    with refuses(ValueError, "`X` must be of at least 4 row(s) and 1 column; got shape (3, 2)."):
        checks.matrix(np.empty((3, 2)), min_rows=4)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
def test_matrix_refuses_sparse(kind):
    with pytest.raises(
        TypeError, match=r"^`X` must be a dense array; got a sparse \w+\. Call \.toarray\(\) first\.$"
    ):
        checks.matrix(kind(np.full((2, 2), SECRET)))


def test_matrix_refuses_masked():
    masked = np.ma.masked_array(np.full((2, 2), SECRET), mask=[[True, False], [False, False]])
    with refuses(TypeError, "`X` must be a plain array; got a masked array. Fill the masked cells first."):
        checks.matrix(masked)


@pytest.mark.parametrize("X", [[[SECRET, 1.0], [SECRET]], [[SECRET], [1, 2, 3]], [[SECRET, [0.5]], [1.0, 2.0]]])
def test_matrix_refuses_what_numpy_cannot_convert(X):
    with pytest.raises(TypeError, match=r"^`X` must be a") as caught:
        checks.matrix(X)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    "X", [pd.DataFrame({"a": [str(SECRET)]}), {"a": SECRET}, np.full(3, SECRET), [[SECRET], []], SECRET]
)
def test_no_message_repeats_a_value(X):
    with pytest.raises((TypeError, ValueError)) as caught:
        checks.matrix(X)
    assert "8675309" not in str(caught.value)


@pytest.mark.parametrize("check", [checks.positive, checks.probability, checks.non_negative])
def test_data_in_the_wrong_place_is_not_repeated(check):
    for X in (np.full((2, 2), SECRET), [[SECRET]], pd.DataFrame({"a": [SECRET]})):
        with pytest.raises(TypeError) as caught:
            check(epsilon=X)
        assert "8675309" not in str(caught.value)
