"""Rows of length at most one: exact rational checks, hostile values, sparse duplicates, locality."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from privspan import NotPrivateWarning, PrivatePCA
from privspan.rows import open_rows
from privspan.rows.door import open_table
from privspan.rows.limits import Limits
from privspan.rows.scaling import scaled_rows
from privspan.rows.unit import CHUNK_ROWS, Rows, piece_rows

ANY_FLOAT = st.floats(width=64, allow_nan=True, allow_infinity=True, allow_subnormal=True)


def exact_square(row):
    return sum((Fraction(float(value)) ** 2 for value in row), Fraction(0))


@given(arrays(np.float64, (3, 5), elements=ANY_FLOAT))
def test_no_row_is_longer_than_one(X):
    for row, clean in zip(X, scaled_rows(X), strict=True):
        assert exact_square(clean) <= 1
        present = np.where(np.isfinite(row), row, 0.0)  # a gap counts as 0
        np.testing.assert_allclose(clean, scaled_rows(present[None])[0], rtol=1e-13)
        if not present.any():
            assert not clean.any()
        else:
            assert exact_square(clean) > 1 - Fraction(1, 10**13)


@given(arrays(np.float32, (3, 7), elements=st.floats(width=32, allow_nan=True, allow_infinity=True)))
def test_float32_rows_are_not_longer_either(X):
    assert all(exact_square(row) <= 1 for row in scaled_rows(X))


@given(arrays(np.float64, (3, 5), elements=ANY_FLOAT), st.floats(1e-300, 1e300))
def test_clipped_rows_are_at_most_one_and_keep_short_lengths(X, clip):
    for row, clean in zip(X, scaled_rows(X, clip=clip), strict=True):
        assert exact_square(clean) <= 1
        if np.isfinite(row).all() and exact_square(row) < Fraction(clip) ** 2:
            expected = [float(Fraction(float(value)) / Fraction(clip)) for value in row]
            np.testing.assert_allclose(clean, expected, rtol=1e-12, atol=1e-300)


def test_plain_division_would_fail_here():
    # The squares underflow, so x / ||x|| is not a unit row; and half of all float32 rows exceed one.
    X = np.full((1, 3), 2.0**-540)
    assert exact_square((X / max(np.sqrt((X**2).sum()), 2.0**-545))[0]) > 1
    assert exact_square(scaled_rows(X)[0]) <= 1


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1.0, 1e150, 1.7e308])
def test_direction_is_kept_at_every_scale(scale):
    X = np.array([[1.0, -1.0, 0.0, 1.0]]) * scale
    np.testing.assert_allclose(scaled_rows(X), [[3**-0.5, -(3**-0.5), 0.0, 3**-0.5]], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float16, np.float32])
def test_storage_types(dtype):
    X = np.array([[1, 0, 1], [0, 0, 0]]).astype(dtype)
    np.testing.assert_allclose(scaled_rows(X), [[2**-0.5, 0, 2**-0.5], [0, 0, 0]], rtol=1e-12)
    np.testing.assert_allclose(
        scaled_rows(sparse.csr_array(X.astype(np.float32))).toarray(), scaled_rows(X), rtol=1e-12
    )


def test_duplicate_entries_are_summed_before_the_length_is_taken():
    data, columns = np.full(100, 0.5, dtype=np.float32), np.zeros(100, dtype=np.int32)
    X = sparse.csr_array((data, columns, np.array([0, 100])), shape=(1, 4))
    X.has_canonical_format = True  # a stale promise must not be believed
    clean = scaled_rows(X)
    assert clean.nnz == 1
    assert exact_square(clean.data) <= 1
    np.testing.assert_allclose(clean.toarray(), [[1.0, 0.0, 0.0, 0.0]], rtol=1e-12)
    assert X.nnz == 100  # the input is left alone


@given(arrays(np.float64, (4, 6), elements=ANY_FLOAT))
def test_sparse_and_dense_agree(X):
    stored = sparse.csr_array((X.ravel(), np.tile(np.arange(6), 4), np.arange(0, 25, 6)), shape=(4, 6))
    clean = scaled_rows(stored)
    assert all(exact_square(row) <= 1 for row in clean.toarray())
    np.testing.assert_allclose(clean.toarray(), scaled_rows(X), rtol=1e-12, atol=1e-300)


def test_a_row_depends_on_nothing_but_itself():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 33))
    other = X.copy()
    other[17] = [np.inf, *[1e300] * 32]
    unchanged = np.arange(50) != 17
    assert np.array_equal(scaled_rows(X)[unchanged], scaled_rows(other)[unchanged])


def test_pieces_follow_row_numbers_and_come_again_unchanged():
    X = np.random.default_rng(0).standard_normal((2 * CHUNK_ROWS + 5, 2))
    rows = Rows(X)
    first = [(numbers, chunk.copy()) for numbers, chunk in rows.pieces()]
    assert [numbers.stop - numbers.start for numbers, _ in first] == [CHUNK_ROWS, CHUNK_ROWS, 5]
    for (numbers, chunk), (again, kept) in zip(first, rows.pieces(), strict=True):
        assert numbers == again
        assert np.array_equal(chunk, kept)
        np.testing.assert_array_equal(chunk, scaled_rows(X[numbers]))
    np.testing.assert_allclose(rows.squared_lengths(), 1.0, rtol=1e-12)


def test_lengths_are_taken_in_a_pass_that_is_made_anyway():
    class Counted(Rows):
        passes = 0

        def pieces(self):
            self.passes += 1
            return super().pieces()

    X = np.random.default_rng(0).standard_normal((CHUNK_ROWS + 7, 3))
    alone = Rows(X).squared_lengths()
    rows = Counted(X)
    rows.map_rows(lambda piece: piece[:, 0])
    np.testing.assert_array_equal(rows.squared_lengths(), alone)
    assert rows.passes == 1


def test_pieces_of_long_rows_stay_small():
    assert piece_rows(20) == CHUNK_ROWS
    assert piece_rows(1_000) * 1_000 <= 2**17  # 1 MiB: what the caches near a processor hold
    assert piece_rows(20_000) == 128
    assert piece_rows(1_000_000) * 1_000_000 <= 2**24
    assert piece_rows(10**9) == 16


def test_large_data_are_not_kept():
    rows = Rows(np.ones((10, 2)), limits=Limits(kept_bytes=0))
    assert next(rows.pieces())[1] is not next(rows.pieces())[1]


def test_refusals_name_public_facts_only():
    with pytest.raises(TypeError, match="dtype complex"):
        open_table(sparse.csr_array(np.ones((2, 2), dtype=complex)))
    with pytest.raises(ValueError, match="at least 3"):
        open_table(sparse.csr_array(np.ones((2, 2))), min_rows=3)
    assert open_table(sparse.coo_array(np.eye(2))).unwrapped().format == "csr"


def test_a_function_of_pieces_is_added_up_to_chunks():
    n = 2 * CHUNK_ROWS + 3
    rows = Rows(np.ones((n, 1), dtype=np.float32), limits=Limits(piece_entries=64, enough_piece_rows=1))
    known = np.arange(n, dtype=np.float64)
    calls = []

    def part(piece, mine):
        calls.append(len(piece))
        return np.array([float(len(piece)), mine.sum()])

    sums = list(rows.map_chunks(part, known))
    assert max(calls) == piece_rows(1, rows.limits) < CHUNK_ROWS
    ends = [0, CHUNK_ROWS, 2 * CHUNK_ROWS, n]
    assert [tuple(total) for total in sums] == [
        (stop - start, known[start:stop].sum()) for start, stop in itertools.pairwise(ends)
    ]
    np.testing.assert_array_equal(rows.map_rows(lambda piece: piece[:, 0] > 0.5), np.ones(n, dtype=bool))


# ---- Sparse tables that store a cell several times ---------------------------------------------------------------


def duplicated_rows(rng, n=60, d=5, stored=24):
    """Rows that store cells many times, in the order of their columns, with cancellation."""
    data = rng.standard_normal((n, stored)) * 10.0 ** rng.integers(-3, 17, (n, stored))
    return data, np.sort(rng.integers(0, d, (n, stored)), axis=1)


def as_csr(data, columns, d=5):
    n, stored = data.shape
    return sparse.csr_array((data.ravel(), columns.ravel(), np.arange(0, n * stored + 1, stored)), shape=(n, d))


def as_coo(data, columns, d=5):
    return sparse.coo_array(
        (data.ravel(), (np.repeat(np.arange(len(data)), data.shape[1]), columns.ravel())), (len(data), d)
    )


@pytest.mark.parametrize("build", [as_csr, as_coo])
@pytest.mark.parametrize("seed", range(20))
def test_how_one_record_is_stored_changes_no_bit_of_another(build, seed):
    """SciPy's own conversions sort all rows as soon as one is unsorted, and add duplicates in another order then."""
    rng = np.random.default_rng(seed)
    data, columns = duplicated_rows(rng)
    other_columns = columns.copy()
    record = int(rng.integers(60))
    other_columns[record] = rng.permutation(columns[record])
    tables = (build(data, columns), build(data, other_columns))
    first, second = (scaled_rows(open_table(table).unwrapped()).toarray() for table in tables)
    others = np.arange(60) != record
    assert np.array_equal(first[others], second[others])
    alone = np.vstack([scaled_rows(as_csr(data[i : i + 1], columns[i : i + 1])).toarray() for i in range(60)])
    assert np.array_equal(first, alone)


def test_the_test_above_would_notice():
    """The planted fault is SciPy's ``sum_duplicates``, which this package used to call."""
    changed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data, columns = duplicated_rows(rng)
        unsorted = columns.copy()
        unsorted[0] = columns[0][::-1]
        tables = [as_csr(data, columns), as_csr(data, unsorted)]
        for table in tables:
            table.sum_duplicates()
        changed += not np.array_equal(tables[0].toarray()[1:], tables[1].toarray()[1:])
    assert changed > 0


@pytest.mark.parametrize("layout", ["coo", "csc", "bsr", "lil", "dok", "dia"])
def test_every_sparse_layout_is_the_same_table(layout):
    X = sparse.random_array((30, 8), density=0.3, rng=np.random.default_rng(0), format=layout)
    expected = scaled_rows(sparse.csr_array(X.toarray())).toarray()
    assert np.array_equal(scaled_rows(open_table(X).unwrapped()).toarray(), expected)


def test_small_integers_that_are_stored_twice_do_not_wrap():
    X = sparse.coo_array((np.array([100, 100, 1], dtype=np.int8), ([0, 0, 0], [0, 0, 1])), (1, 2))
    np.testing.assert_allclose(scaled_rows(open_table(X).unwrapped(), clip=1000.0).toarray(), [[0.2, 0.001]])


def test_estimators_and_files_keep_entries_in_their_order(tmp_path):
    data, columns = duplicated_rows(np.random.default_rng(3), n=200)
    csr, coo = as_csr(data, columns), as_coo(data, columns)
    sparse.save_npz(tmp_path / "people.npz", coo)

    def components(X):
        with pytest.warns(NotPrivateWarning):
            return PrivatePCA(2, epsilon=5.0, delta=1e-6, random_state=0).fit(X).components_

    assert np.array_equal(components(csr), components(coo))
    assert np.array_equal(components(csr), components(open_rows(tmp_path / "people.npz")))
