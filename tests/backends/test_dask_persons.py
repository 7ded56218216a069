"""Persons with several rows on Dask: the release that the same table in memory gives, bit for bit."""

import os
import signal
import sys
import warnings
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import pairwise

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from person_neighbours import STRANGERS, crowd, neighbours, people_of, spent_between
from spread import cuts, spread
from threadpoolctl import threadpool_limits

import privspan as ps
from privspan._lib.watch import watching_rows
from privspan.backends.dask_place import DaskPlace
from privspan.estimators import PrivatePCA, PrivateStandardScaler, PrivateSubspace
from privspan.ledger import Ledger
from privspan.privacy import PERSONS, Budget
from privspan.privacy.persons import by_person
from privspan.rows import partitioned
from privspan.rows.limits import Limits

distributed = pytest.importorskip("distributed")
frames = pytest.importorskip("dask.dataframe")

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SEEDED = {**BUDGET, "rng": 3}
NAMES = list("abcdef")


@pytest.fixture(autouse=True)
def one_thread():
    """One of BLAS, as on the workers, and none of Dask."""
    with threadpool_limits(1, user_api="blas"), dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def clinic():
    """Rows of 1,500 persons, one of whom has 500 and some of whom have one; some rows are without an id."""
    people = people_of(1499, 6, seed=5)
    people = crowd([*people, np.random.default_rng(0).standard_normal((500, 6))])
    ids = people.ids.copy()
    ids[::97] = None
    people.rows[5, 2], people.rows[40] = np.nan, np.inf
    return people.rows, ids


@pytest.fixture(scope="module")
def table(clinic):
    """The same rows as a frame whose partitions end anywhere, two of them without a row."""
    return on_dask(pd.DataFrame(clinic[0], columns=NAMES).assign(patient=clinic[1]))


def on_dask(frame):
    edges = np.cumsum([0, *cuts(len(frame))])
    parts = [frame.iloc[start:stop] for start, stop in pairwise(edges)]
    return frames.from_delayed([dask.delayed(part) for part in parts], meta=frame.iloc[:0], verify_meta=False)


def fitted(estimator, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vars(estimator.fit(*arguments, **options))


PLANE = ps.Subspace(np.eye(6, 2))
TARGETS = {"norm_bound": 9.0, "target_bound": 5.0}
NEAR = {"epsilon": 30.0, "delta": 1e-2, "rng": 3}

FUNCTIONS = {
    "pca": lambda X, y, p: ps.private_pca(X, 2, person=p, **SEEDED),
    "pca, choosing k": lambda X, y, p: ps.private_pca(X, "auto", person=p, **SEEDED),
    "pca, scaled": lambda X, y, p: ps.private_pca(X, 2, scale=True, person=p, **SEEDED),
    "pca, robust": lambda X, y, p: ps.private_pca(X, 2, robust=True, person=p, **SEEDED),
    "pca, rows of zeros": lambda X, y, p: ps.private_pca(X, 2, missing="zero-row", person=p, **SEEDED),
    "pca, not centred": lambda X, y, p: ps.private_pca(X, 2, center=False, person=p, max_rows=3, **SEEDED),
    "pca, one row each": lambda X, y, p: ps.private_pca(X, 2, person=p, max_rows=1, **SEEDED),
    "pca, little epsilon": lambda X, y, p: ps.private_pca(X, 2, person=p, **{**SEEDED, "epsilon": 0.02}),
    "pca, analyze-gauss": lambda X, y, p: ps.private_pca(X, 2, method="analyze-gauss", person=p, **SEEDED),
    "pca, units": lambda X, y, p: ps.private_pca(X, 2, units=np.arange(1.0, 7.0), person=p, **SEEDED),
    "subspace": lambda X, y, p: ps.private_subspace(X, 2, person=p, **SEEDED),
    "subspace, adaptive": lambda X, y, p: ps.private_subspace(X, 2, method="adaptive", person=p, **SEEDED),
    "subspace, blocks": lambda X, y, p: ps.approximate_subspace(X, 2, block_size=11, person=p, **NEAR),
    "subspace, blocks, choosing k": lambda X, y, p: ps.approximate_subspace(
        X, "auto", max_components=3, block_size=11, person=p, max_rows=2, **NEAR
    ),
    "subspace, boosted": lambda X, y, p: ps.boosted_subspace(X, 1, alpha=0.5, beta=0.3, person=p, **NEAR),
    "subspace, exact": lambda X, y, p: ps.exact_subspace(X, 5, person=p, **SEEDED),
    "mean": lambda X, y, p: ps.private_mean(X, person=p, **SEEDED),
    "mean in a plane": lambda X, y, p: ps.private_mean(X, subspace=PLANE, person=p, **SEEDED),
    "scales": lambda X, y, p: ps.private_scales(X, person=p, max_rows=5, **SEEDED),
    "score map": lambda X, y, p: ps.private_score_map(X, PLANE, person=p, **SEEDED),
    "score map of classes": lambda X, y, p: ps.private_score_map(
        X, PLANE, classes=y, labels=[0, 1], person=p, **SEEDED
    ),
    "regression": lambda X, y, p: ps.private_regression(X, y, person=p, **TARGETS, **SEEDED),
    "classifier": lambda X, y, p: ps.private_classifier(X, y, classes=[0, 1], person=p, **SEEDED),
    "PrivatePCA": lambda X, y, p: fitted(PrivatePCA(2, random_state=1, **BUDGET), X, person=p),
    "PrivateSubspace": lambda X, y, p: fitted(PrivateSubspace(2, random_state=1, **BUDGET), X, person=p),
    "PrivateStandardScaler": lambda X, y, p: fitted(PrivateStandardScaler(random_state=1, **BUDGET), X, person=p),
}


def told(result):
    """All that a result holds, to the last bit."""
    if isinstance(result, np.ndarray):
        return result.tobytes()
    if isinstance(result, dict):
        return {name: told(value) for name, value in result.items()}
    if hasattr(result, "basis"):
        return told(result.basis), told(result.offset)
    if hasattr(result, "__dataclass_fields__"):
        return {name: told(getattr(result, name)) for name in result.__dataclass_fields__}
    return repr(result)


QUICK_FRAMES = ("pca", "subspace, blocks", "mean", "score map of classes", "classifier", "PrivatePCA")


@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
@pytest.mark.filterwarnings("ignore::privspan.privacy.WeakPrivacyWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_release_is_that_of_the_table_in_memory(name, clinic):
    rows, ids = clinic
    y = (np.nan_to_num(rows[:, 0]) > 3.0).astype(float)
    X, person = spread(rows, ids)
    home = told(FUNCTIONS[name](rows, y, ids))
    assert told(FUNCTIONS[name](X, y, person)) == home
    if name in QUICK_FRAMES:
        targets = da.from_array(y, chunks=(cuts(len(y)),))
        assert told(FUNCTIONS[name](X, targets, ids)) == home


@pytest.mark.filterwarnings("ignore::privspan.privacy.WeakPrivacyWarning")
@pytest.mark.parametrize("name", QUICK_FRAMES)
def test_a_frame_with_a_column_of_ids(name, clinic, table):
    rows, ids = clinic
    y = (np.nan_to_num(rows[:, 0]) > 3.0).astype(float)
    home = FUNCTIONS[name](pd.DataFrame(rows, columns=NAMES).assign(patient=ids), y, "patient")
    assert told(FUNCTIONS[name](table, y, "patient")) == told(home)


@pytest.mark.filterwarnings("ignore::privspan.privacy.WeakPrivacyWarning")
def test_stable_leverage_looks_at_one_row_of_each_person():
    rng = np.random.default_rng(0)
    owners = rng.permutation(np.repeat(np.arange(900), rng.integers(1, 4, 900)))
    rows = rng.standard_normal((len(owners), 2)) @ np.linalg.qr(rng.standard_normal((40, 2)))[0].T
    rows += 1e-4 * rng.standard_normal(rows.shape)
    X, person = spread(rows, owners)
    home, away = (ps.stable_subspace(T, 2, person=p, **SEEDED) for T, p in ((rows, owners), (X, person)))
    assert told(away) == told(home)
    assert not away.abstained
    home, away = (ps.private_subspace(T, 2, person=p, **SEEDED) for T, p in ((rows, owners), (X, person)))
    assert told(away) == told(home)


def test_more_persons_than_a_chunk_in_many_partitions():
    """Sums, pairs and looks of several chunks each; a wide table is looked at direction by direction."""
    rng = np.random.default_rng(0)
    owners = rng.permutation(np.repeat(np.arange(6000), rng.integers(1, 4, 6000)))
    for d, k in ((5, 2), (300, 3)):
        rows = rng.standard_normal((6000, k))[owners] @ rng.standard_normal((k, d))
        rows += rng.standard_normal(rows.shape)
        X, person = spread(rows, owners, (len(owners) - 5000, 2500, 0, 2500))
        for options in ({}, {"robust": True}):
            numbers = {"max_rows": 4, **options, **SEEDED}
            home, away = (ps.private_pca(T, k, person=p, **numbers) for T, p in ((rows, owners), (X, person)))
            assert told(away) == told(home)


def test_slots_that_are_not_kept_are_brought_together_in_every_pass(clinic):
    rows, ids = clinic
    table, _ = spread(rows, ids)
    nothing_kept = replace(partitioned(table), place=DaskPlace(table, Limits(kept_bytes=0)))
    away = ps.private_pca(nothing_kept, 2, person=ids, **SEEDED)
    assert told(away) == told(ps.private_pca(rows, 2, person=ids, **SEEDED))


def test_numbers_of_rows_need_not_be_known(clinic):
    """They are private, and nothing depends on them: a filtered array has chunks of unknown size."""
    rows, ids = clinic
    more, owners = np.vstack([rows, np.full((500, 6), 7.0)]), np.append(ids, ["left out"] * 500)
    order = np.random.default_rng(0).permutation(len(more))
    X, person = spread(more[order], owners[order])
    wanted = person != "left out"
    X, person = X[wanted], person[wanted]
    assert np.isnan(X.shape[0])
    kept = owners[order] != "left out"
    home = ps.private_mean(more[order][kept], person=owners[order][kept], **SEEDED)
    assert told(ps.private_mean(X, person=person, **SEEDED)) == told(home)
    y = X[:, 1]
    away = ps.private_regression(X[:, 1:], y, person=person, **TARGETS, **SEEDED)
    home = ps.private_regression(
        more[order][kept][:, 1:], more[order][kept][:, 1], person=owners[order][kept], **TARGETS, **SEEDED
    )
    assert told(away) == told(home)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_what_transform_takes_may_have_the_ids_or_not(clinic, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PrivatePCA(2, random_state=1, **BUDGET).fit(table, person="patient")
    assert model.feature_names_in_.tolist() == NAMES
    assert model.release_.cost.neighbours == PERSONS
    assert model.release_.parameters["n"] == len({*clinic[1]} - {None}) + sum(one is None for one in clinic[1])
    assert np.array_equal(model.transform(table), model.transform(table[NAMES]), equal_nan=True)


def test_a_parquet_dataset_whose_column_of_ids_is_read_in_fewer_partitions(tmp_path):
    """Dask puts files together where few columns are wanted, so a column has other partitions than the table."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((900, 6)), columns=NAMES).assign(patient=rng.integers(300, size=900))
    for number in range(9):
        frame[100 * number : 100 * number + 100].to_parquet(tmp_path / f"part-{number}.parquet")
    read = frames.read_parquet(tmp_path)
    assert len(read["patient"].to_delayed()) < len(read.to_delayed())
    home, away = (ps.private_mean(T, person="patient", **SEEDED) for T in (frame, read))
    assert told(away) == told(home)


def test_declared_types_of_a_frame_are_known_as_in_memory():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((900, 2)), columns=["a", "b"])
    frame = frame.assign(smoker=rng.random(900) < 0.3, visits=rng.integers(0, 9, 900), patient=np.arange(900) // 3)
    home, away = (ps.private_scales(T, person="patient", **SEEDED) for T in (frame, on_dask(frame)))
    assert told(away) == told(home)
    assert home.scale[2] < 0.6  # a column of booleans has bounds


def test_a_ledger_charges_for_persons(clinic, table, tmp_path):
    X, person = spread(*clinic)
    for number, (given, whose) in enumerate(((table, "patient"), (X, person))):
        path = tmp_path / f"{number}.json"
        page = Ledger(path).page("clinic", limit_epsilon="2", limit_delta="1e-5")
        ps.private_mean(given, person=whose, ledger=page, **BUDGET)
        assert ("patient", "person")[number] in path.read_text()
        assert "array-" not in path.read_text()


# ---- What one person may change ------------------------------------------------------------------------------------

RUNS = {
    "mean": lambda X, p, rng: ps.private_mean(X, person=p, **BUDGET, rng=rng),
    "pca": lambda X, p, rng: ps.private_pca(X, 2, person=p, max_rows=4, **BUDGET, rng=rng),
    "pairs": lambda X, p, rng: ps.private_pca(X, 2, person=p, robust=True, **BUDGET, rng=rng),
    "scales": lambda X, p, rng: ps.private_scales(X, person=p, **BUDGET, rng=rng),
}
SLOW = {"pairs": pytest.mark.slow, "scales": pytest.mark.slow}


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in RUNS])
@pytest.mark.parametrize("which", STRANGERS)
def test_replacing_a_person_costs_no_more_than_mu(name, which):
    """With one row or five hundred, under another id, in other partitions, which are then of other lengths."""

    def run(rows, ids, rng):
        return RUNS[name](*spread(rows, ids), rng)

    spent, one, other = spent_between(run, neighbours(1200, 6, which))
    assert spent <= Budget(**BUDGET).mu ** 2 * (1.0 + 1e-9)
    assert told(one) == told(other)


def test_nobody_else_is_touched():
    slots = []
    for people in neighbours(60, 3):
        with people.coupled():
            found = by_person(*spread(people.rows, people.ids), 4, 0).values()
            parts = found.place.fetch(found.parts, found.lengths)
            slots.append(np.concatenate([part.slots for part in parts]).reshape(60, 4, 3))
    assert np.flatnonzero((slots[0] != slots[1]).any(axis=(1, 2))).size == 1


def test_the_number_of_rows_shows_nowhere():
    """Neither in what is released nor in how many rows are told of."""
    shown = []
    for people in neighbours(1500, 4):
        passes = []
        with people.coupled(), watching_rows(passes.append):
            release = ps.private_pca(spread(people.rows, people.ids)[0], 2, person=people.ids, **SEEDED)
        shown.append((release.parameters["n"], sum(passes), release.cost))
    assert shown[0] == shown[1]


def test_rows_that_come_in_another_order_the_next_time_are_never_taken_for_those_of_others():
    """As after a shuffle whose tasks end in any order: whose they are was found out before."""
    rows, ids = np.arange(40.0).reshape(20, 2), np.arange(20) // 2
    frame = pd.DataFrame(rows, columns=["a", "b"]).assign(patient=ids)
    times = []

    def another_order(part):
        times.append(None)
        return part if len(times) <= 2 else part.iloc[::-1]  # when counted, and when ids are read

    unsteady = frames.from_delayed([dask.delayed(another_order)(frame)], meta=frame.iloc[:0], verify_meta=False)
    with pytest.raises(ValueError, match="the same rows whenever it is computed"):
        ps.private_mean(unsteady, person="patient", **SEEDED)
    steady = ps.private_mean(unsteady.persist(), person="patient", **SEEDED)
    assert told(steady) == told(ps.private_mean(frame.iloc[::-1], person="patient", **SEEDED))


REFUSALS = {
    "one id per row": lambda X, p: ps.private_mean(X, person=p[:-1], **BUDGET),
    "one id per row of the table": lambda X, p: ps.private_mean(X, person=np.arange(976), **BUDGET),
    "one id per row, in the partitions": lambda X, p: ps.private_mean(X, person=p.rechunk(50), **BUDGET),
    "one-dimensional": lambda X, p: ps.private_mean(X, person=p[:, None], **BUDGET),
    "no column of ids|no column names": lambda X, p: ps.private_mean(X, person="patient", **BUDGET),
    "no column named": lambda X, p: ps.private_mean(X.to_dask_dataframe(), person="patient", **BUDGET),
    "partitions of the same lengths": lambda X, p: ps.private_regression(
        X, X[:, 0].rechunk(50), person=p, **TARGETS, **BUDGET
    ),
    "one entry per row": lambda X, p: ps.private_regression(X, np.ones(976), person=p, **TARGETS, **BUDGET),
    "with at least one row and one column": lambda X, p: ps.private_mean(X[:0], person=p[:0], **BUDGET),
    "real|booleans": lambda X, p: ps.private_mean(X.astype(complex), person=p, **BUDGET),
}


@pytest.mark.parametrize("words", REFUSALS)
def test_refusals_are_one_sentence_and_do_not_say_how_many_rows_there_are(words):
    rng = np.random.default_rng(0)
    X, person = spread(rng.standard_normal((977, 3)), rng.integers(300, size=977))
    with pytest.raises((ValueError, TypeError), match=words) as refusal:
        REFUSALS[words](X, person)
    assert "97" not in str(refusal.value)
    assert str(refusal.value).endswith(".")


def test_baselines_and_functions_without_persons_say_so():
    X, person = spread(np.ones((20, 3)), np.arange(20))
    with pytest.raises(TypeError, match="person"):
        ps.baselines.mod_sulq(X, 1, person=person, **BUDGET)


# ---- On a cluster --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def by_value():
    """As workers cannot import the tests."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@contextmanager
def workers():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with distributed.LocalCluster(processes=True, **options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def client():
    with workers() as client:
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privspan.privacy.WeakPrivacyWarning")
@pytest.mark.parametrize("name", QUICK_FRAMES)
def test_workers_give_the_release_of_the_table_in_memory(name, client, clinic, table):
    """Processes of their own, whose hashes of text differ."""
    rows, ids = clinic
    y = (np.nan_to_num(rows[:, 0]) > 3.0).astype(float)
    home = FUNCTIONS[name](pd.DataFrame(rows, columns=NAMES).assign(patient=ids), y, "patient")
    with dask.config.set(scheduler=None):
        assert told(FUNCTIONS[name](table, y, "patient")) == told(home)


@pytest.mark.slow
@pytest.mark.parametrize("pass_of", ["ids", "rows"])
def test_a_worker_killed_in_the_middle_changes_nothing(client, clinic, tmp_path, pass_of):
    """While ids meet, or while rows are brought together; what it held is made again."""
    rows, ids = clinic
    calls = tmp_path / "calls"
    X, person = spread(rows, ids)

    def dies_once(chunk, block_info=None):
        if block_info[0]["chunk-location"][0] == 3:
            with calls.open("a") as file:
                file.write("x")
            if len(calls.read_text()) == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        return chunk

    if pass_of == "ids":
        person = person.map_blocks(dies_once, dtype=person.dtype, meta=np.empty(0, dtype=object))
    else:
        X = X.map_blocks(dies_once, dtype=float, meta=np.empty((0, 0)))
    before = set(client.scheduler_info()["workers"])
    with dask.config.set(scheduler=None):
        away = ps.private_pca(X, 2, person=person, **SEEDED)
    assert len(calls.read_text()) > 1
    client.wait_for_workers(2, timeout=30)
    assert set(client.scheduler_info()["workers"]) != before  # somebody did die
    assert told(away) == told(ps.private_pca(rows, 2, person=ids, **SEEDED))


def dies_once(module, name, flag):
    """After its second call a function of the package ends its worker, but only one in all."""
    held, calls = import_module(module), []
    real = getattr(held, name)

    def deadly(*arguments, **options):
        made = real(*arguments, **options)
        calls.append(None)
        if len(calls) == 2 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    setattr(held, name, deadly)


STEPS = ["partitioned_ids._by_bucket", "partitioned_ids._met", "spread_persons._asked", "spread_persons._sent"]
STEPS += ["exchange._bundled", "spread_persons._paired", "partitioned_rows._opened", "partitioned_rows._folded_part"]


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_worker_killed_in_any_step_changes_nothing(clinic, tmp_path, step):
    rows, ids = clinic
    module, _, name = f"privspan.rows.{step}".rpartition(".")
    flag, robust = tmp_path / "died", {"robust": True, **SEEDED}
    X, person = spread(rows, ids)
    with workers() as client, dask.config.set(scheduler=None):
        client.run(dies_once, module, name, flag)
        away = ps.private_pca(X, 2, person=person, **robust)
    assert flag.exists()
    assert told(away) == told(ps.private_pca(rows, 2, person=ids, **robust))


@pytest.mark.slow
def test_slots_that_die_with_their_worker_are_made_again(client, clinic):
    rows, ids = clinic
    with dask.config.set(scheduler=None):
        table = by_person(*spread(rows, ids), 4, 0)
        victim = next(iter(client.scheduler_info()["workers"]))
        os.kill(client.run(os.getpid, workers=[victim])[victim], signal.SIGKILL)
        found = np.concatenate(table.spread.place.fetch(table.spread.parts, table.spread.lengths))
    assert np.array_equal(found, by_person(rows, ids, 4, 0).slots[:], equal_nan=True)
    client.wait_for_workers(2, timeout=30)
