"""Tables on disk: the release of the array in memory, one record in one block and one pair, bounded memory."""

import subprocess
import sys
import warnings
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sources import loads_of

import privspan as ps
from privspan.blocks.bases import block_bases
from privspan.datasets import gaussian_subspace
from privspan.privacy.randomness import open_streams
from privspan.rows import DealtRows, RowSource, open_rows
from privspan.rows.dealing import public_order
from privspan.rows.door import open_table
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.unit import CHUNK_ROWS, Rows
from privspan.stable.records import _ScaledRows
from privspan.sums.analyze_gauss import analyze_gauss
from privspan.sums.pairs import pair_differences
from privspan.sums.variance import explained_variance

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
KINDS = ("memmap", "npy", "parquet", "parquet lists", "csr", "npz csr")


@pytest.fixture(scope="module")
def people():
    X, _ = gaussian_subspace(9_000, 12, 2, gamma_w=0.1, rng=0)
    X = X.astype(np.float32)
    X[5] = np.nan
    return X + np.float32(0.5)


def stored(folder, X, kind, limits=LIMITS):
    """The same table, kept in another way."""
    if kind == "memmap":
        mapped = np.memmap(folder / "people.dat", dtype=X.dtype, mode="w+", shape=X.shape)
        mapped[:] = X
        return mapped
    if kind == "csr":
        return sparse.csr_array(X)
    if kind == "npz csr":
        sparse.save_npz(folder / "people.npz", sparse.csr_array(X))
        return open_rows(folder / "people.npz", limits=limits)
    if kind == "npy":
        np.save(folder / "people.npy", X)
        return open_rows(folder / "people.npy", limits=limits)
    if kind == "parquet":
        table = pa.table({f"c{j}": X[:, j] for j in range(X.shape[1])})
    else:
        table = pa.table({"v": pa.FixedSizeListArray.from_arrays(X.ravel(), X.shape[1])})
    pq.write_table(table, folder / "people.parquet", row_group_size=1_700)
    return open_rows(folder / "people.parquet", limits=limits)


def fitted(X, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.NotPrivateWarning)
        return ps.PrivatePCA(2, **BUDGET, random_state=3, **parameters).fit(X)


RUNS = {
    "adaptive": lambda X: ps.private_subspace(X, 2, method="adaptive", **BUDGET, rng=1).subspace.basis,
    "auto": lambda X: ps.private_subspace(X, 2, **BUDGET, rng=1).subspace.basis,
    "analyze-gauss": lambda X: analyze_gauss(X, 2, **BUDGET, rng=1).subspace.basis,
    "mean": lambda X: ps.private_mean(X, **BUDGET, rng=1).mean,
    "map": lambda X: ps.private_score_map(X, ps.Subspace(np.eye(12, 2)), **BUDGET, rng=1).counts,
    "variances": lambda X: explained_variance(X, ps.Subspace(np.eye(12, 2)), **BUDGET, rng=1).subspace.basis,
    "PCA": lambda X: fitted(X).components_,
    "PCA, robust": lambda X: fitted(X, robust=True).mean_,
    "PCA, not centred": lambda X: fitted(X, center=False).components_,
}
DENSE_RUNS = {
    "approximate": lambda X: ps.approximate_subspace(X, 2, epsilon=4.0, delta=1e-6, rng=1).parameters["tail_length"],
    "blocks in order": lambda X: ps.approximate_subspace(
        X, 2, epsilon=4.0, delta=1e-6, rng=1, shuffle=False
    ).parameters["tail_length"],
    "rank": lambda X: ps.approximate_subspace(X, "auto", max_components=4, epsilon=4.0, delta=1e-6, rng=1).extras[
        "n_components"
    ],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("run", RUNS)
def test_equal_seeds_give_equal_releases_however_the_table_is_kept(people, tmp_path, kind, run):
    """Bit for bit for dense tables; sparse products add in another order, so there to rounding."""
    expected = RUNS[run](people)
    got = RUNS[run](stored(tmp_path, people, kind))
    if "csr" in kind:
        # Whether they lie near a subspace is not asked of sparse rows, so another course may be taken there.
        assert run == "PCA" or np.abs(got - expected).max() < 1e-4
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kind", ["memmap", "npy", "parquet", "parquet lists"])
@pytest.mark.parametrize("run", DENSE_RUNS)
def test_the_same_for_blocks(people, tmp_path, kind, run):
    few = people[:2_000]
    np.testing.assert_array_equal(DENSE_RUNS[run](stored(tmp_path, few, kind)), DENSE_RUNS[run](few))


@pytest.mark.parametrize("kind", ["memmap", "npy", "parquet"])
def test_the_same_for_few_records_with_many_columns(tmp_path, kind):
    X, _ = gaussian_subspace(300, 5_000, 2, gamma_w=1e-4, rng=0)
    same = stored(tmp_path, X, kind)
    release, other = (ps.stable_subspace(table, 2, **BUDGET, rng=1) for table in (X, same))
    assert release.parameters == other.parameters
    scaled, again = _ScaledRows(open_table(X)), _ScaledRows(open_table(same))
    np.testing.assert_array_equal(np.hstack([*scaled._stored_slices()]), np.hstack([*again._stored_slices()]))


@pytest.mark.parametrize("kind", ["memmap", "npy", "parquet"])
def test_the_same_for_exact_relations(tmp_path, kind):
    parts = np.random.default_rng(0).integers(0, 100, (80, 2)).astype(np.float64)
    X = np.column_stack([parts, parts.sum(axis=1)])
    release = ps.exact_subspace(stored(tmp_path, X, kind), 2, **BUDGET, rng=0)
    assert [relation.describe() for relation in release.subspace.relations()] == ["x2 = x0 + x1"]
    assert release.subspace.names == (("c0", "c1", "c2") if kind == "parquet" else None)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_boosting_reads_files(people, tmp_path, kind):
    numbers = {"epsilon": 4.0, "delta": 1e-6, "alpha": 0.9, "beta": 0.3, "rng": 2}
    whole, filed = (ps.boosted_subspace(X, 2, **numbers) for X in (people, stored(tmp_path, people, kind)))
    assert whole.parameters == filed.parameters
    assert whole.abstained == filed.abstained


def test_estimators_remember_names_and_transform_sources(people, tmp_path):
    source = stored(tmp_path, people, "parquet")
    model = fitted(source)
    assert list(model.feature_names_in_) == [f"c{j}" for j in range(12)]
    assert model.subspace_.names == source.names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, about arrays without names
        expected = model.transform(people[:100])
    np.testing.assert_allclose(model.transform(source)[:100], expected, atol=1e-6)
    again = fitted(stored(tmp_path, people, "npy"))
    assert not hasattr(again, "feature_names_in_")
    with pytest.raises(TypeError, match="dense"):
        ps.stable_subspace(stored(tmp_path, people, "npz csr"), 2, **BUDGET)


def test_inputs_are_not_modified(people, tmp_path):
    stored(tmp_path, people, "npy")
    before = (tmp_path / "people.npy").read_bytes()
    mapped = np.load(tmp_path / "people.npy", mmap_mode="r+")
    for X in (mapped, open_rows(tmp_path / "people.npy")):
        fitted(X, scale=True)
        block_bases(open_table(X), 2, 9)
    mapped.flush()
    assert (tmp_path / "people.npy").read_bytes() == before


# ---- Chunks without a number --------------------------------------------------------------------------------


LONG_BLOCKS = {
    "long blocks": lambda X: ps.approximate_subspace(X, 2, epsilon=4.0, delta=1e-6, rng=1, block_size=60).parameters[
        "tail_length"
    ]
}


def without_numbers(folder, X, kind):
    """The table with a whole row group of Parquet, or a whole chunk of a map, of NaN; and with zeros there."""
    hole = slice(1_700, 3_400) if kind == "parquet" else slice(CHUNK_ROWS, 2 * CHUNK_ROWS)
    for value in (np.nan, 0.0):
        filled = X.copy()
        filled[hole] = value
        (folder / str(value)).mkdir()
        yield stored(folder / str(value), filled, kind)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
@pytest.mark.parametrize("run", ["adaptive", "analyze-gauss", "mean", "variances", "PCA, not centred", "long blocks"])
def test_a_whole_chunk_of_nan_counts_as_rows_of_zeros(people, tmp_path, kind, run):
    nan, zeros = ((RUNS | LONG_BLOCKS)[run](table) for table in without_numbers(tmp_path, people, kind))
    assert np.isfinite(nan).all()
    np.testing.assert_array_equal(nan, zeros)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_a_whole_chunk_of_nan_is_left_out_of_what_is_centred(people, tmp_path, kind):
    table, _ = without_numbers(tmp_path, people, kind)
    model = fitted(table)
    assert np.isfinite(model.mean_).all()
    assert model.subspace_.distance(fitted(people).subspace_) < 0.1


# ---- Privacy of partitioning --------------------------------------------------------------------------------


WINDOWS_OF_50_ROWS = Limits(window_bytes=50 * 12 * 4)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
@pytest.mark.parametrize("shuffled", [True, False])
def test_one_record_of_a_file_changes_one_block_only(people, tmp_path, kind, shuffled):
    X = people[:415].copy()
    (tmp_path / "before").mkdir()
    before = stored(tmp_path / "before", X, kind, WINDOWS_OF_50_ROWS)
    order = public_order(415, np.random.default_rng(0), edges=open_table(before).edges) if shuffled else None
    bases = block_bases(open_table(before), 2, 7, order=order).bases
    touched = set()
    for record in range(0, 415, 13):
        other = X.copy()
        other[record] = np.random.default_rng(record).standard_normal(12)
        after = block_bases(open_table(stored(tmp_path, other, kind, WINDOWS_OF_50_ROWS)), 2, 7, order=order).bases
        changed = np.flatnonzero((bases != after).any(axis=(1, 2)))
        assert len(changed) <= 1
        touched |= set(changed.tolist())
    assert len(touched) > 20


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_one_record_of_a_file_changes_one_difference_only(people, tmp_path, kind):
    X = people[:301].copy()
    (tmp_path / "before").mkdir()
    before = pair_differences(stored(tmp_path / "before", X, kind, WINDOWS_OF_50_ROWS), open_streams(4).public)
    assert isinstance(before, RowSource)
    assert before.shape == (150, 12)
    changed_by = []
    for record in range(0, 301, 7):
        other = X.copy()
        other[record] += 1.0
        after = pair_differences(stored(tmp_path, other, kind, WINDOWS_OF_50_ROWS), open_streams(4).public)
        differs = (before[:] != after[:]) & ~(np.isnan(before[:]) & np.isnan(after[:]))
        changed_by.append(int(differs.any(axis=1).sum()))
    assert max(changed_by) == 1
    assert sum(changed_by) >= len(changed_by) - 2  # the record left over, and the one that is NaN


def test_order_and_pairs_stay_within_windows(people, tmp_path):
    source = stored(tmp_path, people[:321], "parquet", WINDOWS_OF_50_ROWS)
    order = public_order(321, np.random.default_rng(0), edges=source.edges)
    np.testing.assert_array_equal(np.sort(order), np.arange(321))
    np.testing.assert_array_equal(order // 50, np.arange(321) // 50)
    assert (order != np.arange(321)).mean() > 0.9
    pairs = pair_differences(source, open_streams(0).public)
    windows = pairs._pairs // 50
    assert (windows[:, 0] == windows[:, 1]).all()
    assert len(np.unique(pairs._pairs)) == 320
    assert pairs.edges[0] == 0
    assert pairs.edges[-1] == 160


def test_a_windowed_file_is_read_once_per_pass(people, tmp_path):
    source = stored(tmp_path, people[:1000], "parquet", WINDOWS_OF_50_ROWS)
    loads = loads_of(source)
    for _ in Rows(pair_differences(source, open_streams(0).public)).pieces():
        pass
    assert sorted(loads) == list(range(20))
    loads.clear()
    block_bases(open_table(source), 2, 7, order=public_order(1000, np.random.default_rng(0), edges=source.edges))
    assert loads == list(range(20))


# ---- Large memory maps: a public order that is read nearly forwards ------------------------------------------------


def large_map(folder, X):
    """A file that counts as large, with windows of about 1,000 rows and runs of 16."""
    limits = Limits(freely_read_bytes=0, neighbourhood=16 * 12 * 4, window_bytes=1_000 * 12 * 4)
    return stored(folder, X, "npy", limits)


def test_dealt_rows_are_all_rows_in_runs_from_all_over_the_file(people, tmp_path):
    source = large_map(tmp_path, people[:8_999])
    rows = source.dealt(np.random.default_rng(0))
    numbers = np.concatenate([rows._numbers(window) for window in range(len(rows.edges) - 1)])
    np.testing.assert_array_equal(np.sort(numbers), np.arange(8_999))
    np.testing.assert_array_equal(rows[:], people[numbers])
    np.testing.assert_array_equal(rows[np.array([5, 8_000, 17])], people[numbers[[5, 8_000, 17]]])
    assert rows.edges[-1] == 8_999
    for start, stop in pairwise(rows.edges.tolist()):  # every window is a sample of the whole file
        assert abs(np.mean(numbers[start:stop]) / 8_999 - 0.5) < 0.2
    assert (np.diff(numbers) == 1).mean() > 0.9


@pytest.mark.parametrize("record", [0, 15, 16, 700, 8_998])
def test_one_record_of_a_large_map_is_in_one_block_and_one_pair(people, tmp_path, record):
    other = people[:8_999].copy()
    other[record] += 3.0
    found, pairs = [], []
    for name, X in (("one", people[:8_999]), ("two", other)):
        (tmp_path / name).mkdir()
        source = large_map(tmp_path / name, X)
        table, order = source.deal(np.random.default_rng(1))
        assert isinstance(table, DealtRows)
        found.append(block_bases(open_table(table), 2, 7, order=order).bases)
        pairs.append(pair_differences(source, open_streams(4).public)[:])
    assert int((found[0] != found[1]).any(axis=(1, 2)).sum()) <= 1
    assert int(((pairs[0] != pairs[1]) & ~np.isnan(pairs[0])).any(axis=1).sum()) <= 1


def test_a_large_map_is_read_once_for_all_blocks(people, tmp_path):
    table, order = large_map(tmp_path, people).deal(np.random.default_rng(0))
    loads = loads_of(table)
    block_bases(open_table(table), 2, 7, order=order)
    assert loads == list(range(len(table.edges) - 1))


def test_a_sorted_large_map_is_mixed_well_enough_for_blocks(tmp_path):
    X, truth = gaussian_subspace(9_000, 12, 2, gamma_w=1e-4, rng=3)
    X = X[np.argsort(X @ truth.basis[:, 0])].astype(np.float32)
    source = large_map(tmp_path, X)
    release = ps.approximate_subspace(source, 2, rng=0, **BUDGET)
    assert release.subspace.distance(truth) < 0.05
    variance = np.var(pair_differences(source, open_streams(0).public)[:] @ truth.basis[:, 0])
    assert abs(variance / (2 * np.var(X @ truth.basis[:, 0])) - 1) < 0.1


def test_rows_scattered_over_a_file_are_read_as_they_are(people, tmp_path):
    source = large_map(tmp_path, np.asfortranarray(people))
    assert source.dealt(np.random.default_rng(0)) is source
    numbers = np.random.default_rng(1).permutation(9_000)[:500]
    np.testing.assert_array_equal(source[numbers], people[numbers])
    np.testing.assert_array_equal(source[10:20], people[10:20])


def test_row_numbers_outside_a_map_are_refused(people, tmp_path):
    source = stored(tmp_path, people, "npy")
    for numbers in ([-1], [9_000], [3, 10_000]):
        with pytest.raises(IndexError, match="between 0 and 8999"):
            source[np.array(numbers)]
    assert source[np.array([], dtype=int)].shape == (0, 12)


def test_nothing_is_formed_before_rows_are_asked_for(people, tmp_path):
    source = stored(tmp_path, people, "parquet")
    loads = loads_of(source)
    differences = pair_differences(source, open_streams(0).public)
    shifted = open_table(source).less(np.ones(12))
    assert differences.shape == (4_500, 12)
    assert shifted.shape == (9_000, 12)
    assert shifted.dtype == np.float64
    assert loads == []


PEAK = """
import sys
import numpy as np
import privspan as ps
from privspan.rows import mapped_rows
from privspan.rows.limits import Limits
from privspan.rows.unit import Rows
from privspan.sums.pairs import pair_differences
from pathlib import Path

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

ps.private_mean(np.ones((10, 2)), epsilon=1.0, delta=1e-6)
before = peak()
X = mapped_rows(np.load(sys.argv[1], mmap_mode="r"), Limits(kept_bytes=0))
ps.private_mean(X, epsilon=1.0, delta=1e-6)
for _ in Rows(pair_differences(X, np.random.default_rng(0))).pieces():
    pass
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_a_file_takes_less_memory_than_its_size(tmp_path):
    """100 MB on disk, in pieces of 4 MB: mapped as a whole, with all differences, it would take 150 MB."""
    path = tmp_path / "people.npy"
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(25_000, 1_000))
    for start in range(0, 25_000, 5_000):
        table[start : start + 5_000] = np.random.default_rng(start).standard_normal((5_000, 1_000), dtype=np.float32)
    table.flush()
    del table
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 110.0
