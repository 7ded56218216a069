"""Tables of persons: slots, borders that are never inside a person, and sums that are averages over slots."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from privspan.blocks.bases import block_spectra
from privspan.privacy.randomness import open_streams
from privspan.rows.door import open_table
from privspan.rows.persons import PersonTable, belongings
from privspan.rows.source import TakenRows, as_source
from privspan.rows.unit import CHUNK_ROWS, Rows, piece_rows, whole_persons
from privspan.rows.windows import WindowedSource, window_edges
from privspan.sums.pairs import pair_differences


def persons(rows, width):
    return PersonTable(as_source(rows), width, np.arange(rows.shape[0]), rows, rows.shape[0])


@given(codes=st.lists(st.integers(-1, 6), min_size=1, max_size=30))
def test_rows_belong_to_whom_their_code_says(codes):
    owned = belongings(np.array(codes))
    assert owned.persons == len(set(codes) - {-1}) + codes.count(-1)
    assert sorted(owned.order.tolist()) == list(range(len(codes)))
    for start, count in zip(owned.starts, owned.counts, strict=True):
        mine = owned.order[start : start + count].tolist()
        assert mine == sorted(mine)  # in table order
        assert len({codes[row] for row in mine}) == 1
        assert count == 1 or codes[mine[0]] >= 0


@given(codes=st.lists(st.integers(-1, 6), min_size=1, max_size=30), seed=st.integers(0, 99))
def test_how_codes_are_numbered_changes_nothing(codes, seed):
    codes = np.array(codes)
    renumbered = np.append(np.random.default_rng(seed).permutation(50)[:7], -1)[codes]
    one, other = belongings(codes), belongings(renumbered)
    for name in ("order", "starts", "counts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@given(grain=st.integers(1, 1024), d=st.integers(1, 10**6))
def test_pieces_and_chunks_hold_whole_persons(grain, d):
    chunk, piece = whole_persons(CHUNK_ROWS, grain), whole_persons(piece_rows(d), grain)
    assert chunk <= CHUNK_ROWS
    assert 2 * chunk > CHUNK_ROWS - grain
    assert chunk % piece == piece % grain == 0


def test_no_border_is_inside_a_person():
    """Seen from the rows: in every piece and every chunk each person has all of their slots."""
    width, n = 7, 1300
    rows = open_table(persons(np.repeat(np.arange(1.0, n + 1), width)[:, None] * np.ones(3), width)).rows()
    for numbers, _ in rows.pieces():
        assert numbers.start % width == numbers.stop % width == 0
    sizes = list(rows.map_chunks(lambda piece: np.array([float(len(piece))])))
    assert sum(sizes) == pytest.approx(n)
    assert len(sizes) == -(-n * width // whole_persons(CHUNK_ROWS, width)) > 1
    for size in sizes:
        assert size[0] == pytest.approx(round(size[0]))


CELLS = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-3, 3)


@given(rows=hnp.arrays(np.float64, (12, 3), elements=CELLS), width=st.sampled_from([1, 2, 3, 4, 6]))
@settings(max_examples=80, deadline=None)
def test_lemma_2_a_sum_over_persons_is_one_of_averages_over_their_rows(rows, width):
    """So it lies in the convex hull of what single rows can do, whatever the function of a row is."""
    table = persons(rows, width)
    for opened, singles in (
        (open_table(table).rows(), Rows(rows)),
        (open_table(table).rows(clip=2.0), Rows(rows, clip=2.0)),
    ):
        units = np.concatenate([piece for _, piece in singles.pieces()])
        (total,) = opened.map_chunks(lambda piece: piece.sum(axis=0))
        means = units.reshape(-1, width, 3).mean(axis=1)
        np.testing.assert_allclose(total, means.sum(axis=0), atol=1e-12)
        assert (np.linalg.norm(means, axis=1) <= 1.0 + 1e-12).all()


def test_sparse_rows_are_averaged_too():
    rows = np.random.default_rng(0).standard_normal((60, 5)) * (np.random.default_rng(1).random((60, 5)) < 0.4)
    (dense,), (thin,) = (
        open_table(persons(table, 4)).rows().map_chunks(lambda piece: np.asarray(piece.sum(axis=0)).ravel())
        for table in (rows, sparse.csr_array(rows))
    )
    np.testing.assert_allclose(thin, dense, atol=1e-12)


class Windows(WindowedSource):
    """Rows of an array, three at a time."""

    def __init__(self, table):
        super().__init__()
        self.table, self.shape, self.dtype = table, table.shape, table.dtype
        self.edges = window_edges(len(table), 3)

    def _load(self, window):
        return self.table[slice(*self.edges[window : window + 2])]


@given(numbers=st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_rows_are_taken_in_any_order_and_more_than_once(numbers):
    table, numbers = np.arange(20.0).reshape(10, 2), np.array(numbers)
    taken = TakenRows(Windows(table), numbers)
    np.testing.assert_array_equal(taken[:], table[numbers])
    np.testing.assert_array_equal(taken[np.arange(len(numbers))[::-1]], table[numbers][::-1])


def test_pairs_are_of_persons_slot_by_slot():
    rows = np.arange(18.0)[:, None] * np.ones(2)  # person i has rows 3 i, 3 i + 1, 3 i + 2
    pairs = pair_differences(persons(rows, 3), open_streams(0).public)
    assert pairs.shape == (3, 2)
    steps = pairs.slots[:][:, 0].reshape(3, 3)
    assert (steps == steps[:, :1]).all()  # the same two persons, each slot with its like
    assert (np.abs(steps) % 3 == 0).all()
    assert (steps != 0).all()


def test_a_block_of_persons_is_the_block_of_all_their_rows():
    rows = np.random.default_rng(0).standard_normal((24, 3))
    order = np.array([5, 0, 3, 1, 4, 2])
    values, votes = block_spectra(open_table(persons(rows, 4)), 3, 2, order=order)
    expected = np.linalg.svd(rows.reshape(6, 4, 3)[order].reshape(3, 8, 3), compute_uv=False) ** 2
    np.testing.assert_allclose(values, expected / expected[:, :1], atol=1e-12)
    assert votes.all()


def test_what_compares_records_gets_one_row_of_each_person():
    rows = np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(open_table(persons(rows, 3)).here()[:], rows[::3])
    table = open_table(persons(rows, 3))
    assert table.shape == (2, 2)
    assert len(table) == 2
    assert "2 persons, 2 columns" in repr(table)
    assert open_table(table).rows().width == 3
