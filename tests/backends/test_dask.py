"""Dask tables: the same bits as the same partitions at home, whatever happens to the workers."""

import io
import os
import pickle
import signal
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from runs import seeded
from scipy import sparse
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import privspan as ps
from privspan import NotPrivateWarning, PrivatePCA
from privspan._lib.watch import watching_rows
from privspan.approximate import approximate_subspace
from privspan.backends import dask_place, show_progress
from privspan.backends.dask_place import DaskPlace
from privspan.blocks.bases import block_bases
from privspan.blocks.rank import choose_dimension
from privspan.datasets import gaussian_subspace
from privspan.privacy.randomness import BitSource, open_streams
from privspan.rows import GatheredRows, arrays, partition_rows, partitioned, partitions
from privspan.rows.dealing import PartitionOrders
from privspan.rows.door import open_table
from privspan.rows.limits import Limits
from privspan.rows.partitioned_rows import folded
from privspan.rows.place import LocalPlace
from privspan.rows.shifting import less
from privspan.rows.unit import CHUNK_ROWS
from privspan.sums.grid import GridSum
from privspan.sums.lazy_gauss import UnitGram
from privspan.sums.mean import private_mean
from privspan.sums.pairs import pair_differences
from privspan.sums.score_map import private_score_map
from privspan.sums.variance import explained_variance

distributed = pytest.importorskip("distributed")

EPSILON_DELTA = {"epsilon": 1.0, "delta": 1e-6}
LENGTHS = (5000, 1, 0, 2600, 399)  # more than a chunk, a single row, nothing, less than a chunk
N = sum(LENGTHS)


@pytest.fixture(scope="module")
def client():
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import the tests
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any free port: the usual one may be taken
            silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As on the workers: the bits of a product may depend on the number of threads."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="module")
def data():
    X, truth = gaussian_subspace(N, 30, 2, gamma_w=0.1, rng=0)
    X[17], X[5001, 3], X[N - 1] = np.nan, np.inf, 1e200
    return X, truth


def on_dask(X, lengths=LENGTHS):
    return da.from_array(X, chunks=(tuple(lengths), (X.shape[1],)))


def both(function, X, lengths=LENGTHS):
    return function(partition_rows(X, lengths)), function(on_dask(X, lengths))


# ---- The same bits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "adaptive", "analyze-gauss"])
def test_subspaces_are_those_of_the_same_partitions_at_home(client, data, method):
    X, truth = data
    home, away = both(lambda T: ps.private_subspace(T, 2, method=method, rng=1, **EPSILON_DELTA), X)
    assert np.array_equal(home.subspace.basis, away.subspace.basis)
    assert home.cost == away.cost
    assert home.parameters == away.parameters
    assert away.subspace.distance(truth) < 0.2


def test_wide_tables_are_looked_at_block_by_block_of_directions(client):
    X, truth = gaussian_subspace(4500, 300, 3, gamma_w=0.1, rng=3)
    home, away = both(lambda T: ps.private_subspace(T, 3, method="adaptive", rng=4, **EPSILON_DELTA), X, (4200, 300))
    assert np.array_equal(home.subspace.basis, away.subspace.basis)
    assert away.subspace.distance(truth) < 0.1


def test_weak_directions_are_looked_for_on_the_workers_too(client):
    scale = np.concatenate([[1.0, 1.0, 0.12], np.full(17, 0.01)])
    X = np.random.default_rng(5).standard_normal((6000, 20)) * scale
    home, away = both(lambda T: ps.private_subspace(T, 3, method="adaptive", rng=6, **EPSILON_DELTA), X, (3000, 3000))
    assert all("preconditioned look" in dict(one.parameters["shares"]) for one in (home, away))
    assert np.array_equal(home.subspace.basis, away.subspace.basis)


def test_sums_over_partitions_that_are_whole_chunks_are_those_of_the_plain_table(data):
    X, _ = data
    plain = ps.private_subspace(X, 2, method="adaptive", rng=1, **EPSILON_DELTA)
    cut = partition_rows(X, (CHUNK_ROWS, N - CHUNK_ROWS))
    assert np.array_equal(
        plain.subspace.basis, ps.private_subspace(cut, 2, method="adaptive", rng=1, **EPSILON_DELTA).subspace.basis
    )


@pytest.mark.parametrize("aggregate", ["stable", "histogram"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_blocks_and_the_choice_of_k(client, aggregate, shuffle):
    X, truth = gaussian_subspace(N, 12, 2, gamma_w=1e-4, rng=2)
    size = 20 if aggregate == "stable" else None

    def run(T):
        return approximate_subspace(
            T,
            "auto",
            max_components=4,
            block_size=size,
            aggregate=aggregate,
            shuffle=shuffle,
            rng=5,
            epsilon=8.0,
            delta=1e-4,
        )

    home, away = both(run, X)
    assert home.extras == away.extras == {"n_components": 2}
    assert home.parameters == away.parameters
    assert np.array_equal(home.subspace.basis, away.subspace.basis)
    assert away.subspace.distance(truth) < 0.1


@pytest.mark.parametrize(
    ("k", "options"),
    [
        ("auto", {}),
        (2, {"robust": True}),
        pytest.param(2, {"scale": True}, marks=pytest.mark.slow),  # pairs and sums, as the others have them
        (2, {"center": False}),
        pytest.param("auto", {"center": False}, marks=pytest.mark.slow),
    ],
)
def test_private_pca(client, data, k, options):
    X, truth = data
    X = np.where(np.isfinite(X).all(axis=1)[:, None], X, np.nan) + (0.5 if options != {"center": False} else 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        home, away = both(lambda T: PrivatePCA(k, random_state=1, **EPSILON_DELTA, **options).fit(T), X)
    assert away.n_features_in_ == 30
    assert away.n_components_ == 2
    for name in ("components_", "explained_variance_", "mean_"):
        assert np.array_equal(getattr(home, name), getattr(away, name), equal_nan=True), name
    if "scale" not in options:  # the truth is in the units of the table
        assert away.subspace_.distance(truth) < 0.3


def test_mean_and_variances(client, data):
    X, truth = data
    for subspace in (None, truth):
        home, away = both(lambda T, V=subspace: private_mean(T, subspace=V, rng=1, **EPSILON_DELTA), X)
        assert np.array_equal(home.mean, away.mean)
        assert home.norm_bound == away.norm_bound
    home, away = both(lambda T: explained_variance(T, truth, rng=1, **EPSILON_DELTA), X)
    assert np.array_equal(home.extras["explained_variance"], away.extras["explained_variance"])
    assert home.extras["total_variance"] == away.extras["total_variance"]


def test_a_score_map(client, data):
    X, truth = data
    home, away = both(lambda T: private_score_map(T, truth, rng=1, **EPSILON_DELTA), X)
    assert np.array_equal(home.counts, away.counts)
    assert home.outside == away.outside


@pytest.mark.parametrize("options", [{"method": "analyze-gauss"}, {"method": "approximate", "block_size": 60}])
def test_a_partition_of_nan_counts_as_rows_of_zeros(client, data, options):
    releases = []
    for value in (np.nan, 0.0):
        X = data[0].copy()
        X[5001:7601] = value  # the whole third partition that holds rows
        release = ps.private_subspace(on_dask(X), 2, epsilon=4.0, delta=1e-6, rng=1, **options)
        releases.append((release.parameters, None if release.abstained else release.subspace.basis.tobytes()))
    assert releases[0] == releases[1]


def test_an_array_that_the_workers_hold_already_is_used_as_it_is(client, data):
    """So are its targets and whose rows they are: what `persist()` leaves of a graph are futures."""
    X, owners = data[0][:, :3], np.arange(N) // 3
    y = np.nan_to_num(X[:, 0])
    bounds = {"norm_bound": 5.0, "target_bound": 5.0, "rng": 1, **EPSILON_DELTA}
    table, targets = on_dask(X), da.from_array(y, chunks=(LENGTHS,))
    person = da.from_array(owners, chunks=(LENGTHS,))
    wanted = [ps.private_regression(table, targets, person=whose, **bounds) for whose in (None, person)]
    held = [array.persist() for array in (table, targets, person)]
    found = [ps.private_regression(*held[:2], person=whose, **bounds) for whose in (None, held[2])]
    for one, other in zip(wanted, found, strict=True):
        assert one.coefficients.tobytes() == other.coefficients.tobytes()


class CountingClient(distributed.Client):
    """Counts how often it is asked for something."""

    asked = 0

    def get(self, *arguments, **options):
        self.asked += 1
        return super().get(*arguments, **options)

    def persist(self, *arguments, **options):
        self.asked += 1
        return super().persist(*arguments, **options)


def test_a_client_that_is_not_the_default_one_is_used_inside_its_block(client, data):
    X, _ = data
    wanted = ps.private_subspace(on_dask(X), 2, method="adaptive", rng=1, **EPSILON_DELTA)
    with CountingClient(client.scheduler.address, set_as_default=False) as other:
        assert dask_place.current_client() is client
        with other.as_current():
            assert dask_place.current_client() is other
            found = ps.private_subspace(on_dask(X), 2, method="adaptive", rng=1, **EPSILON_DELTA)
        assert other.asked > 2
    assert np.array_equal(found.subspace.basis, wanted.subspace.basis)


def test_without_a_client_the_default_scheduler_does_the_same(data):
    X, _ = data
    home, away = both(lambda T: ps.private_subspace(T, 2, method="adaptive", rng=1, **EPSILON_DELTA), X)
    assert np.array_equal(home.subspace.basis, away.subspace.basis)


def nothing_kept(collection):
    """A Dask collection whose workers keep no rows between passes."""
    return replace(partitioned(collection), place=DaskPlace(collection, Limits(kept_bytes=0)))


def test_rows_too_many_to_be_kept_are_cleaned_in_every_pass(client, data):
    X, _ = data
    kept = ps.private_subspace(on_dask(X), 2, method="adaptive", rng=1, **EPSILON_DELTA)
    again = ps.private_subspace(nothing_kept(on_dask(X)), 2, method="adaptive", rng=1, **EPSILON_DELTA)
    assert np.array_equal(kept.subspace.basis, again.subspace.basis)


# ---- Methods that need the rows themselves ----------------------------------------------------------------------

INTEGER_TABLE = np.random.default_rng(8).integers(-9, 9, (90, 2)) @ np.array([[1, 0, 2], [0, 1, -1]])
SMALL = (40, 30, 20)


def same_at_home(function, X, lengths):
    """Equal to the source of the same partitions at home, to the last bit."""
    home, away = both(function, X, lengths)
    if home.subspace is None:
        assert away.subspace is None
    else:
        assert np.array_equal(home.subspace.basis, away.subspace.basis)
    assert home.cost == away.cost
    return away


def test_stable_leverage_of_a_dask_table(client):
    X, truth = gaussian_subspace(900, 200, 2, gamma_w=1e-4, rng=2)
    away = same_at_home(lambda T: ps.stable_subspace(T, 2, rng=3, **EPSILON_DELTA), X, (500, 300, 100))
    plain = ps.stable_subspace(X, 2, rng=3, **EPSILON_DELTA)
    assert np.array_equal(away.subspace.basis, plain.subspace.basis)
    assert away.subspace.distance(truth) < 0.1


def test_exact_subspace_of_a_dask_table(client):
    away = same_at_home(lambda T: ps.exact_subspace(T, 2, rng=3, **EPSILON_DELTA), INTEGER_TABLE, SMALL)
    assert len(away.subspace.relations()) == 1  # the third column is made of the others


def test_boosted_subspace_of_a_dask_table(client):
    X, truth = gaussian_subspace(9000, 10, 1, gamma_w=1e-4, rng=2)

    def run(T):
        return ps.boosted_subspace(T, 1, alpha=0.5, beta=0.3, epsilon=4.0, delta=1e-4, rng=5)

    assert same_at_home(run, X, (5000, 4000)).subspace.distance(truth) < 0.5


MANY_PASSES = {"k_dp_pca"}  # its own tests have a Dask table of another scheduler
BASELINES = [
    pytest.param(name, marks=pytest.mark.slow) if name in MANY_PASSES else name for name in ps.baselines.__all__
]


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_takes_a_dask_table(client, name):
    X, _ = gaussian_subspace(120, 4, 1, gamma_w=1e-3, rng=2)
    same_at_home(lambda T: getattr(ps.baselines, name)(T, 1, rng=3, **EPSILON_DELTA), X, (70, 50))


def test_only_one_partition_is_here_at_a_time_and_only_the_columns_asked_for():
    X = np.arange(60.0).reshape(12, 5)
    fetched = []

    class Watched(LocalPlace):
        def fetch(self, parts, lengths):
            found = super().fetch(parts, lengths)
            fetched.append(sum(part.size for part in found))
            return found

    rows = GatheredRows(replace(partition_rows(X, (5, 4, 3)), place=Watched()))
    assert np.array_equal(rows[2:11], X[2:11])
    assert fetched == [25, 20, 15]
    assert np.array_equal(rows.take_columns(slice(1, 3)), X[:, 1:3])
    assert fetched[3:] == [24]


def test_a_partition_that_is_a_memory_map_is_paired_and_shifted_like_any_other(tmp_path):
    """A task that is run again elsewhere gets the same rows as an array: nothing may depend on where they are."""
    X = np.random.default_rng(0).standard_normal((300, 4))
    np.save(tmp_path / "part.npy", X)
    mapped = np.load(tmp_path / "part.npy", mmap_mode="r")
    as_it_is, as_map = (partition_rows(table, (200, 100)) for table in (X, mapped))
    for one, other in zip(as_it_is.parts, as_map.parts, strict=True):
        large = arrays.mapped_rows(other(), Limits(freely_read_bytes=0))
        assert isinstance(large, arrays.MappedRows)
        for same in (other(), large):
            assert np.array_equal(partitions._pairs_within(less, one(), 5), partitions._pairs_within(less, same, 5))
    for function in (lambda T: pair_differences(T, open_streams(3).public), lambda T: open_table(T).less(np.ones(4))):
        for one, other in zip(function(as_it_is).parts, function(as_map).parts, strict=True):
            assert type(other()) is np.ndarray
            assert np.array_equal(one(), other())


# ---- Regression: a target beside every row ----------------------------------------------------------------------


def regression(T, y, **options):
    bounds = {"norm_bound": 5.0, "target_bound": 5.0}
    return ps.private_regression(T, y, rng=4, **bounds, **EPSILON_DELTA, **options)


def test_regression(client, data):
    X, truth = data
    y = X[:, 0] - 2 * X[:, 1]
    y[40] = np.nan
    home = regression(partition_rows(X, LENGTHS), y)
    for targets in (y, da.from_array(y, chunks=(LENGTHS,))):
        assert np.array_equal(home.coefficients, regression(on_dask(X), targets).coefficients)
    plain = regression(X, y)
    assert np.allclose(home.coefficients, plain.coefficients, atol=1e-9)
    inside = regression(on_dask(X), y, subspace=truth)
    assert np.allclose(truth.basis @ (truth.basis.T @ inside.coefficients), inside.coefficients)


def test_regression_on_a_dataframe(client):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(
        pandas.DataFrame(np.random.default_rng(3).standard_normal((600, 3)), columns=["a", "b", "user_id"]),
        npartitions=3,
    )
    X, y = frame[["a", "b"]], frame["user_id"]
    at_home = partition_rows(X.compute().to_numpy(), [len(part) for part in X.partitions])
    home = regression(at_home, y.compute().to_numpy())
    assert np.array_equal(home.coefficients, regression(X, y).coefficients)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (lambda y: da.from_array(y, chunks=20), "partitions of the same lengths"),
        (lambda y: y[:30], r"shape \(40,\)"),
        (lambda y: y.astype(str), "booleans, integers or floats"),
        (lambda y: np.ma.masked_less(y, 2.0), "masked array"),
        (lambda y: [list(y), 1.0], "NumPy cannot convert"),
        (lambda y: da.from_array(y[:, None], chunks=(10, 1)), "one-dimensional"),
        (lambda y: da.from_array(y.astype(np.longdouble), chunks=10), "at most 64 bits"),
        (lambda y: da.from_array(y.astype(complex), chunks=10), "at most 64 bits"),
        (lambda y: da.ma.masked_less(da.from_array(y, chunks=10), 2.0), "plain NumPy arrays"),
        (lambda y: da.from_array(y, chunks=10).map_blocks(lambda c: c[:3], dtype=float), "A partition of `y`"),
    ],
)
def test_targets_that_do_not_fit_are_refused(targets, message):
    X = da.from_array(np.ones((40, 2)), chunks=(10, 2))
    with pytest.raises((TypeError, ValueError), match=message) as refused:
        regression(X, targets(np.ones(40)))
    assert "`y`" in str(refused.value)


# ---- One record, one block, one chunk ------------------------------------------------------------------------------


class Collected:
    """Takes in sums of chunks without adding them."""

    def __init__(self):
        self.sums = []

    def add(self, chunk_sum):
        self.sums.append(chunk_sum)

    def plus(self, other):
        both = Collected()
        both.sums = self.sums + other.sums
        return both


@pytest.mark.parametrize("row", [4095, 4096, 5000, N - 1])
def test_a_replacement_changes_one_chunk_and_one_block(client, data, row):
    X, _ = data
    Y = X.copy()
    Y[row] = np.arange(30.0) - 7.0
    chunks, blocks = [], []
    for table in (
        open_table(on_dask(X)),
        open_table(on_dask(Y)),
    ):
        chunks.append(folded(UnitGram(open_table(table).rows()).products(None), Collected).sums)
        blocks.append(block_bases(open_table(table), 2, 9, order=open_table(table).order(np.random.default_rng(1))))
    assert len(chunks[0]) == 5  # 4096 + 904, 1, 2600, 399
    assert sum(not np.array_equal(a, b) for a, b in zip(*chunks, strict=True)) == 1
    assert len(blocks[0].votes) == sum(length // 9 for length in LENGTHS)
    changed = (blocks[0].bases != blocks[1].bases).any(axis=(1, 2))
    assert changed.sum() <= 1  # none if the record is in a tail


def test_blocks_are_formed_inside_partitions_and_tails_are_dropped(client):
    numbers = np.arange(40.0)
    X = np.column_stack([np.cos(numbers), np.sin(numbers)])
    table = open_table(on_dask(X, (13, 4, 23)))
    found = block_bases(open_table(table), 1, 5)
    expected = [block_bases(open_table(X[start : start + 5]), 1, 5).bases[0] for start in (0, 5, 17, 22, 27, 32)]
    assert open_table(table).blocks(5) == 6
    assert np.array_equal(found.bases, np.array(expected))
    shuffled = block_bases(open_table(table), 1, 5, order=PartitionOrders((1, 2, 3)))
    inside = [X[:13][np.random.default_rng(1).permutation(13)], X[17:][np.random.default_rng(3).permutation(23)]]
    assert np.array_equal(
        shuffled.bases, np.concatenate([block_bases(open_table(part), 1, 5).bases for part in inside])
    )


def test_pairs_are_drawn_inside_partitions(client):
    X = np.repeat([[0.0], [100.0], [10_000.0]], [5, 1, 8], axis=0) + np.arange(14)[:, None]
    away = pair_differences(open_table(on_dask(X, (5, 1, 8))), open_streams(1).public)
    assert away.shape == (6, 1)
    differences = np.concatenate(away.place.fetch(away.parts, away.lengths))
    assert (np.abs(differences) < 14).all()
    assert (differences != 0).all()


# ---- Faults --------------------------------------------------------------------------------------------------------


def test_a_worker_killed_in_the_middle_changes_nothing(client, data, tmp_path):
    X, _ = data
    calls = str(tmp_path / "calls")

    def dies_in_the_fourth_pass(chunk, block_info=None):
        if block_info[0]["chunk-location"][0] == 3:
            with Path(calls).open("a") as file:
                file.write("x")
            if len(Path(calls).read_text()) == 4:
                os.kill(os.getpid(), signal.SIGKILL)
        return chunk

    mortal = on_dask(X).map_blocks(dies_in_the_fourth_pass, dtype=float, meta=np.empty((0, 0)))
    before = set(client.scheduler_info()["workers"])
    away = ps.private_subspace(nothing_kept(mortal), 2, method="adaptive", rng=1, **EPSILON_DELTA)
    assert len(Path(calls).read_text()) > 5  # it went on
    client.wait_for_workers(2, timeout=30)
    assert set(client.scheduler_info()["workers"]) != before  # somebody did die
    home = ps.private_subspace(partition_rows(X, LENGTHS), 2, method="adaptive", rng=1, **EPSILON_DELTA)
    assert np.array_equal(home.subspace.basis, away.subspace.basis)
    assert home.cost == away.cost  # each share was spent, and its noise drawn, once


def test_kept_rows_that_die_with_their_worker_are_made_again(client, data):
    X, _ = data
    rows = open_table(on_dask(X)).rows()
    view = rows.map_rows(lambda piece: piece[:, :2])
    sums = rows.map_chunks(lambda piece, known: piece.T @ known, view)
    first = folded(sums, lambda: GridSum((30, 2), 2.0**-30)).total()
    victim = next(iter(client.scheduler_info()["workers"]))
    pid = client.run(os.getpid, workers=[victim])[victim]
    os.kill(pid, signal.SIGKILL)
    assert np.array_equal(folded(sums, lambda: GridSum((30, 2), 2.0**-30)).total(), first)
    client.wait_for_workers(2, timeout=30)


def test_a_task_run_again_gives_the_same_bits_and_leaves_its_arguments_alone(data):
    X, _ = data
    place = partition_rows(X, LENGTHS).place
    table = partition_rows(X, LENGTHS)
    rows = place.fetch(place.hold(open_table(table).rows()._rows, LENGTHS), LENGTHS)
    products = UnitGram(open_table(table).rows()).products(np.eye(30)[:, :3])
    kept = [piece.copy() for one in rows for _, piece in one.pieces()]

    def fold(one):
        total = GridSum((30, 3), 2.0**-30)
        for chunk in products.chunks(one):
            total.add(chunk)
        return total

    folds = [fold(one) for one in rows]
    assert [pickle.dumps(fold(one)) for one in rows] == [pickle.dumps(one) for one in folds]
    before = [pickle.dumps(one) for one in folds]
    totals = [folds[0].plus(folds[1]).plus(folds[2]).total() for _ in range(2)]
    assert np.array_equal(*totals)
    assert [pickle.dumps(one) for one in folds] == before
    assert all(map(np.array_equal, kept, [piece for one in rows for _, piece in one.pieces()]))


def test_noise_never_leaves_and_rows_are_never_fetched(client, data, monkeypatch):
    X, _ = data

    def forbidden(*_):
        raise AssertionError("this must stay where it is")

    class NothingFetched(DaskPlace):
        fetch = forbidden

    monkeypatch.setattr(BitSource, "__reduce_ex__", forbidden)
    table = on_dask(X)
    table = replace(partitioned(table), place=NothingFetched(table))
    assert ps.private_subspace(table, 2, method="adaptive", **EPSILON_DELTA).private
    with pytest.raises(AssertionError, match="must stay"):
        pickle.dumps(open_streams().noise)
    with pytest.raises(TypeError, match="does not travel"):
        pickle.dumps(seeded())


def blas_threads(*_):
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def two_blas_threads():
    """Undo, on a worker, what Dask and earlier tests have set."""
    dask_place._one_blas_thread_for_good.cache_clear()
    for library in ThreadpoolController().lib_controllers:
        give_up_control = getattr(library, "clear_controlling_thread", lambda force: None)
        give_up_control(force=True)
        library.set_num_threads(2)
        give_up_control(force=True)
    return blas_threads()


def test_blas_has_one_thread_in_tasks_and_as_many_as_before_afterwards(client):
    assert all(2 in found for found in client.run(two_blas_threads).values())
    place = DaskPlace()
    assert place.fetch(place.map(blas_threads, place.send([0, 1, 2])), (1, 1, 1)) == [{1}] * 3
    with threadpool_limits(2, user_api="blas"), dask.config.set(scheduler="threads"):
        assert place.fetch(place.map(blas_threads, place.send(range(8))), (1,) * 8) == [{1}] * 8
        assert blas_threads() == {2}


# ---- What is taken, and what is refused ----------------------------------------------------------------------------


def test_dataframes(client):
    pandas = pytest.importorskip("pandas")
    import dask.dataframe as dd

    X, truth = gaussian_subspace(3000, 4, 1, gamma_w=0.1, rng=1)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    frame["user_id"] = range(3000)
    frame["word"] = "x"
    frame.loc[5, "b"] = np.nan
    away = dd.from_pandas(frame, npartitions=3)
    table = open_table(away)
    assert table.names == ("a", "b", "c", "d", "user_id")  # of which fits warn, as of any frame's
    assert [column.name for column in table.left_out] == ["word"]
    away, table = away.drop(columns="user_id"), open_table(away.drop(columns="user_id"))
    assert table.shape == (3000, 4)
    plain = frame[list("abcd")].to_numpy()
    home = ps.private_subspace(partition_rows(plain, table.lengths), 1, method="adaptive", rng=2, **EPSILON_DELTA)
    found = ps.private_subspace(away, 1, method="adaptive", rng=2, **EPSILON_DELTA)
    assert np.array_equal(home.subspace.basis, found.subspace.basis)
    assert found.subspace.distance(truth) < 0.3
    model = PrivatePCA(1, **EPSILON_DELTA).fit(away)
    assert model.feature_names_in_.tolist() == list("abcd")


def test_integers_and_small_floats(client):
    for dtype in (np.int32, np.float32):
        X = (np.random.default_rng(0).standard_normal((500, 3)) * 3).astype(dtype)
        home, away = both(
            lambda T: ps.private_subspace(T, 1, method="adaptive", rng=1, **EPSILON_DELTA), X, (200, 300)
        )
        assert np.array_equal(home.subspace.basis, away.subspace.basis)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (lambda A: A[A[:, 0] > 0], "known size"),
        (lambda A: A.rechunk({1: 2}), "whole rows"),
        (lambda A: A[:, 0], "two-dimensional"),
        (lambda A: A.astype(complex), "booleans, integers or floats"),
        (lambda A: A[:0], "at least 1 row"),
        (lambda A: da.ma.masked_less(A, 2.0), "plain NumPy arrays"),
        (lambda A: dask.delayed(A), "Dask array or a Dask dataframe"),
    ],
)
def test_tables_that_cannot_be_used_are_refused_in_one_sentence(table, message):
    A = da.from_array(np.ones((20, 4)), chunks=(10, 4))
    with pytest.raises((TypeError, ValueError), match=message) as refused:
        ps.private_subspace(table(A), 1, method="adaptive", **EPSILON_DELTA)
    assert str(refused.value).count("\n") == 0
    assert str(refused.value).endswith(".")


def test_partitions_smaller_than_a_block_are_refused_before_any_budget_is_spent():
    A = da.from_array(np.ones((400, 4)), chunks=(5, 4))
    with pytest.raises(ValueError, match="two blocks of 7 rows"):
        approximate_subspace(A, 1, **EPSILON_DELTA)
    with pytest.raises(ValueError, match="a partition of at least"):
        choose_dimension(open_table(A), 3, epsilon=1.0, run=seeded(0), block_size=6)


@pytest.mark.parametrize("other", [lambda chunk: chunk[:3], sparse.csr_array, np.ndarray.tolist])
def test_a_chunk_of_another_shape_or_kind_than_promised_is_refused(client, other):
    liar = da.from_array(np.ones((20, 4)), chunks=(10, 4)).map_blocks(other, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match="as its metadata say"):
        ps.private_subspace(liar, 1, method="adaptive", **EPSILON_DELTA)


def test_progress_counts_partitions_as_they_are_done(client, data):
    X, _ = data
    seen = []
    with watching_rows(seen.append):
        private_mean(on_dask(X), norm_bound=5.0, **EPSILON_DELTA)
    assert sorted(seen[:4]) == sorted(length for length in LENGTHS if length)
    assert sum(seen) == 2 * N  # cleaned once, summed once
    shown = io.StringIO()
    with show_progress(shown):
        private_mean(on_dask(X), norm_bound=5.0, **EPSILON_DELTA)
    assert shown.getvalue().endswith(f"\r{2 * N:,} rows looked at\n")
