"""The block stage: right bases, and a block never depends on a record outside it, to the last bit."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sources import limited

from privspan.blocks import bases as blocks
from privspan.blocks.bases import block_bases, block_spectra
from privspan.rows.dealing import public_order
from privspan.rows.door import open_table
from privspan.rows.limits import LIMITS


def sine(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.linalg.norm(second - first @ (first.T @ second), 2))


def changed_blocks(before: blocks.BlockBases, after: blocks.BlockBases) -> np.ndarray:
    same = (before.bases == after.bases).all(axis=(1, 2)) & (before.votes == after.votes)
    return np.flatnonzero(~same)


@pytest.mark.parametrize(("m", "d", "k"), [(6, 40, 3), (5, 5, 5), (30, 8, 3), (1, 7, 1), (12, 300, 10)])
def test_agrees_with_svd(m, d, k):
    X = np.random.default_rng(m).standard_normal((7 * m + m // 2, d)) * np.geomspace(1, 1e-3, d)
    result = block_bases(open_table(X), k, m)
    assert result.votes.all()
    assert len(result.votes) == 7
    for j in range(7):
        truth = np.linalg.svd(X[j * m : (j + 1) * m], full_matrices=False)[2][:k].T
        assert sine(truth, result.bases[j]) < 1e-9
        assert np.abs(result.bases[j].T @ result.bases[j] - np.eye(k)).max() < 1e-14


@pytest.mark.parametrize("gap", [0.3, 1e-2, 1e-6])
def test_subspace_iteration_agrees_with_svd(gap):
    """Long and wide blocks: three passes leave an error far below the statistical one, the tail over the signal."""
    X = np.random.default_rng(0).standard_normal((480, 200)) * np.where(np.arange(200) < 3, 1.0, gap / 10)
    result = block_bases(open_table(X), 3, 120)
    assert result.votes.all()
    for j in range(4):
        truth = np.linalg.svd(X[j * 120 : (j + 1) * 120], full_matrices=False)[2][:3].T
        assert sine(truth, result.bases[j]) < max(1e-14, gap**5)


@pytest.mark.parametrize("shape", ["wide", "tall", "large"])
def test_accurate_for_badly_conditioned_signals(shape):
    """Singular values 9e5 : ... : 1 with a tail of 1e-6: the Gram route keeps nine digits."""
    m, d, k = {"wide": (8, 400, 3), "tall": (400, 40, 3), "large": (200, 300, 3)}[shape]
    rng = np.random.default_rng(2)
    basis = np.linalg.qr(rng.standard_normal((d, k)))[0]
    signal = np.linalg.qr(rng.standard_normal((m, k)))[0] * [9e5, 1e3, 1.0]
    result = block_bases(open_table(signal @ basis.T), k, m)
    assert result.votes.all()
    assert sine(basis, result.bases[0]) < 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint8])
def test_other_dtypes_are_computed_in_float64(dtype):
    X = np.random.default_rng(0).integers(0, 100, (60, 9)).astype(dtype)
    assert changed_blocks(block_bases(open_table(X), 2, 6), block_bases(open_table(X.astype(float)), 2, 6)).size == 0


def test_order_deals_every_row_once():
    order = public_order(50, np.random.default_rng(1))
    assert sorted(order) == list(range(50))
    X = np.random.default_rng(0).standard_normal((50, 9))
    assert (
        changed_blocks(block_bases(open_table(X), 2, 6, order=order), block_bases(open_table(X[order]), 2, 6)).size
        == 0
    )


BAD_ROWS = {
    "nan": lambda row: np.full_like(row, np.nan),
    "one inf": lambda row: np.where(np.arange(row.size) == 3, np.inf, row),
    "zero": np.zeros_like,
    "huge": lambda row: row * 1e300,
    "tiny": lambda row: row * 1e-300,
    "largest": lambda row: np.full_like(row, np.finfo(float).max),
}


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(("m", "d"), [(6, 33), (4, 1000), (20, 7), (100, 110)])
@pytest.mark.parametrize("bad", BAD_ROWS)
def test_one_record_changes_one_block_bitwise(bad, m, d, shuffled):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((m * (37 if m < 50 else 5) + 1, d))
    order = public_order(len(X), rng) if shuffled else None
    before = block_bases(open_table(X), 3, m, order=order)
    for row in (0, m + 1, len(X) - 1):
        other = X.copy()
        other[row] = BAD_ROWS[bad](X[row])
        changed = changed_blocks(before, block_bases(open_table(other), 3, m, order=order))
        place = row if order is None else int(np.flatnonzero(order == row)[0])
        assert set(changed) <= {place // m}


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(2, 9), d=st.integers(2, 40), blocks_before=st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_a_block_is_the_same_alone_and_in_any_batch(seed, m, d, blocks_before):
    rng = np.random.default_rng(seed)
    k = min(2, m, d)
    X = rng.standard_normal(((blocks_before + 3) * m, d))
    together = block_bases(open_table(X), k, m)
    rows = slice(blocks_before * m, (blocks_before + 1) * m)
    alone = block_bases(open_table(X[rows].copy()), k, m)
    assert np.array_equal(together.bases[blocks_before], alone.bases[0])


def test_chunk_length_does_not_matter():
    X = np.random.default_rng(3).standard_normal((300, 21))
    whole = block_bases(open_table(X), 3, 6)
    assert changed_blocks(whole, block_bases(open_table(limited(X, blocks_bytes=3 * 6 * 21 * 8)), 3, 6)).size == 0


def test_the_bitwise_test_catches_a_record_in_two_blocks():
    """Planted fault: overlapping blocks. The comparison used above must see two blocks move."""
    X = np.random.default_rng(3).standard_normal((60, 21))
    other = X.copy()
    other[7] = 1.0
    overlapping = np.arange(60)
    overlapping[20] = 7  # row 7 is dealt into blocks 1 and 3
    changed = changed_blocks(
        block_bases(open_table(X), 3, 6, order=overlapping), block_bases(open_table(other), 3, 6, order=overlapping)
    )
    assert list(changed) == [1, 3]


def test_blocks_without_a_subspace_do_not_vote():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((42, 20))
    X[0:6] = 0.0  # block 0: zero
    X[6:12] = 3.25  # block 1: constant rows, rank 1
    X[12:18] = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 20))  # block 2: rank 2 < k
    X[18:22] = np.nan  # block 3: two rows left
    X[24:27] = np.inf  # block 4: three rows left
    result = block_bases(open_table(X), 3, 6)
    assert list(result.votes) == [False, False, False, False, True, True, True]
    assert not result.bases[:4].any()


@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize(("m", "d"), [(6, 50), (12, 5000), (300, 80), (200, 300)])
def test_rank_deficiency_is_recognised_in_floats(rank, m, d):
    rng = np.random.default_rng(rank)
    X = rng.standard_normal((m * 20, rank)) @ rng.standard_normal((rank, d))
    assert not block_bases(open_table(X), rank + 1, m).votes.any()
    assert block_bases(open_table(X), rank, m).votes.all()


@pytest.mark.parametrize("exponent", [-1040, -700, -301, 301, 700, 1000])
def test_scale_does_not_matter(exponent):
    X = np.random.default_rng(0).standard_normal((12, 9))
    scaled = np.ldexp(X, exponent)
    result = block_bases(open_table(scaled), 3, 6)
    assert result.votes.all()
    if exponent > -1000:  # below, the entries themselves lose digits
        assert sine(block_bases(open_table(X), 3, 6).bases[0], result.bases[0]) < 1e-12


def test_a_failed_decomposition_silences_its_own_block_only(monkeypatch):
    X = np.random.default_rng(0).standard_normal((60, 9))
    before = block_bases(open_table(X), 3, 6)
    marked = X[24:30] @ X[24:30].T
    genuine = np.linalg.eigh

    def failing(matrices):
        hit = np.isclose(matrices.reshape(-1, 6, 6), marked).all(axis=(1, 2))
        if hit.any():
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
        return genuine(matrices)

    monkeypatch.setattr(np.linalg, "eigh", failing)
    after = block_bases(open_table(X), 3, 6)
    assert list(changed_blocks(before, after)) == [4]
    assert not after.votes[4]
    assert not after.bases[4].any()


def test_spectra_match_svd_and_ignore_bad_rows():
    X = np.random.default_rng(0).standard_normal((40, 30))
    X[9] = np.nan
    X[16:24] = 0.0
    squares, votes = block_spectra(open_table(X), 4, 8)
    assert list(votes) == [True, True, False, True, True]
    clean = np.nan_to_num(X[8:16])
    expected = np.linalg.svd(clean, compute_uv=False)[:4] ** 2
    np.testing.assert_allclose(squares[1], expected / expected[0], rtol=1e-12)
    assert not squares[2].any()


def test_memory_stays_near_the_output():
    X = np.random.default_rng(0).standard_normal((4000, 1000)).astype(np.float32)
    order = public_order(4000, np.random.default_rng(0))
    tracemalloc.start()
    result = block_bases(open_table(X), 2, 20, order=order)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < result.bases.nbytes + 4 * LIMITS.blocks_bytes


def test_spectra_of_sparse_blocks_are_those_of_dense_ones_and_each_is_its_own() -> None:
    """Narrow blocks, empty rows, cells stored twice and values that are not finite included."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((60, 40)) * (rng.random((60, 40)) < 0.1)
    dense[7], dense[23, 3] = 0.0, np.inf
    table = sparse.csr_array(dense)
    twice = sparse.csr_array(
        (np.tile(table.data / 2, 2), (np.tile(table.tocoo().row, 2), np.tile(table.tocoo().col, 2))), shape=(60, 40)
    )
    order = rng.permutation(60)
    wanted = block_spectra(open_table(dense), 4, 10, order=order)
    for given_table in (table, twice.tocsr()):
        squares, votes = block_spectra(open_table(given_table), 4, 10, order=order)
        np.testing.assert_allclose(squares, wanted[0], atol=1e-12)
        np.testing.assert_array_equal(votes, wanted[1])
    other = table.copy()
    other.data[0] *= 1e200
    before, after = block_spectra(open_table(table), 4, 10)[0], block_spectra(open_table(other), 4, 10)[0]
    np.testing.assert_array_equal(before[1:], after[1:])
    assert (before[0] != after[0]).any()
