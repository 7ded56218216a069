"""Several rows a person: replacing a person with all of their rows, on whole runs; containers, ids, refusals."""

import re
import uuid
import warnings
from dataclasses import fields, replace
from datetime import date
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from person_neighbours import STRANGERS, Crowd, crowd, neighbours, people_of, spent_between
from scipy import sparse, stats

import privspan
from privspan import (
    Subspace,
    private_mean,
    private_pca,
    private_regression,
    private_scales,
    private_score_map,
    private_subspace,
)
from privspan._lib.watch import watching_rows
from privspan.estimators import PrivatePCA, PrivateStandardScaler
from privspan.privacy import PERSONS, Budget, Release, mu_from_budget
from privspan.privacy.persons import by_person
from privspan.privacy.randomness import open_streams, secret_order
from privspan.rows import open_rows
from privspan.sums.adaptive import adaptive_subspace

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
MU_SQUARE = Budget(**BUDGET).mu ** 2
SEED = 3


def same(one, other):
    """Tell whether two results are equal in all that they release."""
    if isinstance(one, Release):
        told = all(
            repr(getattr(one, name)) == repr(getattr(other, name)) for name in ("parameters", "extras", "cost")
        )
        return told and np.array_equal(one.subspace.basis, other.subspace.basis)
    return all(repr(getattr(one, field.name)) == repr(getattr(other, field.name)) for field in fields(one))


# ---- Whole runs on neighbours --------------------------------------------------------------------------------------


def quick_or_slow(name, quick):
    return name if name in quick else pytest.param(name, marks=pytest.mark.slow)


COURSES = {
    "pairs": (150, 6, {}),
    "centre not found": (600, 6, {"offset": 1e9, "epsilon": 0.7}),
    "one look": (1500, 12, {"epsilon": 0.3}),
    "two looks": (1500, 6, {}),
    "ranks": (1500, 6, {"scale": "ranks"}),
    "deviations": (1500, 6, {"scale": "deviations"}),
    "two looks, sparse": (1500, 6, {"kind": sparse.csr_array}),
    "two looks, wide": (3300, 300, {"most": 2, "uneven": 0.8}),
    "pairs, wide": (500, 300, {"most": 2}),
}


@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
@pytest.mark.parametrize(
    "name", [quick_or_slow(name, ("pairs", "two looks", "two looks, sparse")) for name in COURSES]
)
def test_replacing_a_person_costs_no_more_than_mu_on_any_course_of_pca(name):
    n, d, options = COURSES[name]
    shape = {name: options[name] for name in ("most", "offset", "uneven") if name in options}
    budget = {**BUDGET, "epsilon": options.get("epsilon", 1.0)}

    def run(rows, ids, rng):
        scale, kind = options.get("scale", False), options.get("kind", np.asarray)
        return private_pca(kind(rows), 2, person=ids, max_rows=4, scale=scale, **budget, rng=rng)

    costs = []
    for which in STRANGERS[1:2] if "wide" in name else STRANGERS:
        spent, one, other = spent_between(run, neighbours(n, d, which, **shape))
        assert one.parameters["course"] == name.partition(",")[0]
        assert same(one, other), "something that is released depends on more than the released sums"
        costs.append(spent / mu_from_budget(**budget) ** 2)
    assert max(costs) <= 1.0 + 1e-9
    assert max(costs) > 0.2  # these strangers are bad enough to tell


def near_a_plane(n, d):
    """Neighbours near a plane; the last person leans to one side of it, or 500 times to the other."""
    rng = np.random.default_rng(0)
    plane = np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    rows = rng.standard_normal((2 * n - 2, 2)) @ plane + 0.01 * rng.standard_normal((2 * n - 2, d)) + 3.0
    others, along, aside = np.split(rows, n - 1), 3.0 + 1.5 * plane[:1], 0.03 * np.eye(d)[:1]
    many = np.repeat(along - aside, 500, axis=0)
    return crowd([*others, along + aside]), crowd([*others, many], last_id=12, ends=True)


def test_replacing_a_person_costs_no_more_than_mu_near_a_subspace():
    run = partial(private_pca, k=2, max_rows=2, **BUDGET)
    spent, one, other = spent_between(lambda rows, ids, rng: run(rows, person=ids, rng=rng), near_a_plane(4000, 24))
    assert one.parameters["course"] == "near a subspace"
    assert same(one, other)
    assert 0.5 * MU_SQUARE < spent <= MU_SQUARE * (1 + 1e-9)


def regression(rows, ids, rng):
    targets = np.nan_to_num(rows[:, 0], posinf=0.0)
    return private_regression(rows[:, 1:], targets, person=ids, norm_bound=10.0, target_bound=5.0, **BUDGET, rng=rng)


PLANE = Subspace(np.eye(6, 2))
OTHERS = {
    "mean": lambda rows, ids, rng: private_mean(rows, person=ids, **BUDGET, rng=rng),
    "mean, bounded": lambda rows, ids, rng: private_mean(rows, person=ids, norm_bound=10.0, **BUDGET, rng=rng),
    "mean, width 3": lambda rows, ids, rng: private_mean(
        rows, person=ids, max_rows=3, norm_bound=9.0, **BUDGET, rng=rng
    ),
    "scales": lambda rows, ids, rng: private_scales(rows, person=ids, max_rows=5, **BUDGET, rng=rng),
    "regression": regression,
    "subspace": lambda rows, ids, rng: private_subspace(rows, 2, person=ids, **BUDGET, rng=rng),
    "adaptive": lambda rows, ids, rng: private_subspace(rows, 2, person=ids, method="adaptive", **BUDGET, rng=rng),
    "analyze-gauss": lambda rows, ids, rng: private_subspace(
        rows, 2, person=ids, method="analyze-gauss", max_rows=7, **BUDGET, rng=rng
    ),
    "score map": lambda rows, ids, rng: private_score_map(rows, PLANE, person=ids, **BUDGET, rng=rng),
    "score map, grid given": lambda rows, ids, rng: private_score_map(
        rows, PLANE, person=ids, bins=7, ranges=((-9, 9), (-9, 9)), **BUDGET, rng=rng
    ),
    "robust PCA": lambda rows, ids, rng: private_pca(rows, 2, person=ids, robust=True, **BUDGET, rng=rng),
    "scaler": lambda rows, ids, rng: silently(PrivateStandardScaler(**BUDGET, random_state=rng), rows, ids),
}


def silently(estimator, rows, ids):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(rows, person=ids).release_


@pytest.mark.parametrize(
    "name", [quick_or_slow(name, ("mean", "scales", "regression", "subspace")) for name in OTHERS]
)
def test_replacing_a_person_costs_no_more_than_mu_elsewhere(name):
    costs = []
    for which in STRANGERS:
        spent, one, other = spent_between(OTHERS[name], neighbours(1200, 6, which))
        assert same(one, other)
        assert one.cost.neighbours == PERSONS
        costs.append(spent / MU_SQUARE)
    assert max(costs) <= 1.0 + 1e-9
    assert max(costs) > 0.05


def test_nobody_else_is_touched():
    """All but the slots of one person are the same numbers at the same places."""
    pair = neighbours(40, 3, ("one row", "five hundred rows"))
    slots = []
    for people in pair:
        with people.coupled():
            slots.append(by_person(people.rows, people.ids, 4, SEED).slots[:].reshape(40, 4, 3))
    differ = np.flatnonzero((slots[0] != slots[1]).any(axis=(1, 2)))
    assert len(differ) == 1


# ---- The order -----------------------------------------------------------------------------------------------------


def test_every_order_is_as_likely_as_any_other():
    bits, seen = open_streams(5).noise, {}
    for _ in range(4800):
        order = tuple(secret_order(4, bits).tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 24
    assert stats.chisquare(list(seen.values())).pvalue > 1e-6


def test_equal_keys_are_drawn_again():
    class Repeating:
        def __init__(self):
            self.drawn = [np.array([5, 1, 5], dtype=np.uint64), np.array([5, 2**64 - 1, 0], dtype=np.uint64)]

        def uint64(self, n):
            return self.drawn.pop(0)

    assert secret_order(3, Repeating()).tolist() == [2, 0, 1]


@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=12),
    width=st.sampled_from([1, 2, 3, 5, 8, 100]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=80, deadline=None)
def test_a_person_has_as_many_slots_as_any_other_and_nothing_but_their_own_rows(counts, width, seed):
    people = crowd([np.full((m, 1), float(person)) for person, m in enumerate(counts)])
    table = by_person(people.rows, people.ids, width, seed)
    owners = table.slots[:].reshape(len(counts), width)
    assert table.shape == (len(counts), 1)
    assert (owners == owners[:, :1]).all()
    assert sorted(owners[:, 0]) == list(range(len(counts)))
    np.testing.assert_array_equal(table.one_each()[:][:, 0], owners[:, 0])


def test_rows_are_taken_evenly():
    """Whoever has few rows is represented by all of them, whoever has many by any of them, alike."""
    few = by_person(np.arange(3.0)[:, None], np.zeros(3), 8, 0).slots[:].ravel()
    assert {2, 3} == set(np.bincount(few.astype(int)).tolist())
    for seed in range(20):  # as many rows as slots: each is taken once
        exactly = by_person(np.arange(8.0)[:, None], np.zeros(8), 8, seed).slots[:].ravel()
        assert sorted(exactly) == list(range(8))
    firsts = [by_person(np.arange(5.0)[:, None], np.zeros(5), 3, seed).slots[:].ravel() for seed in range(500)]
    assert stats.chisquare(np.bincount(np.array(firsts)[:, 0].astype(int))).pvalue > 1e-6
    assert all(len(set(chosen)) == 3 for chosen in firsts)


# ---- Ids and containers --------------------------------------------------------------------------------------------

PEOPLE = people_of(300, 4, seed=5)
NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def clinic():
    people = crowd(PEOPLE)
    return people.rows, np.array([int(word[1:]) for word in people.ids])


def containers(rows, ids, folder):
    frame = pd.DataFrame(rows, columns=NAMES).assign(patient=ids)
    frame.to_csv(folder / "visits.csv", index=False, float_format="%.17g")
    frame.to_parquet(folder / "visits.parquet")
    np.save(folder / "rows.npy", rows)
    return {
        "pandas": (frame, "patient"),
        "pandas, text ids": (frame.assign(patient=ids.astype(str)), "patient"),
        "pandas, categories": (frame.assign(patient=pd.Categorical(ids)), "patient"),
        "polars": (pl.from_pandas(frame), "patient"),
        "Arrow": (pa.Table.from_pandas(frame), "patient"),
        "CSV": (open_rows(folder / "visits.csv", person="patient"), None),
        "Parquet": (open_rows(folder / "visits.parquet", person="patient"), "patient"),
        "Parquet, ids as numbers": (open_rows(folder / "visits.parquet"), "patient"),
        "memory map": (np.load(folder / "rows.npy", mmap_mode="r"), ids.tolist()),
        "ids by themselves": (rows, pd.Series(ids)),
        "lists": (rows.tolist(), pl.Series(ids)),
    }


def test_all_containers_give_the_same_release(clinic, tmp_path):
    rows, ids = clinic
    expected = private_pca(rows, 2, person=ids, **BUDGET, rng=SEED)
    assert expected.parameters["n"] == 300
    for name, (table, person) in containers(rows, ids, tmp_path).items():
        found = private_pca(table, 2, person=person, **BUDGET, rng=SEED)
        np.testing.assert_array_equal(found.subspace.basis, expected.subspace.basis, err_msg=name)
        assert repr(found.parameters) == repr(expected.parameters), name
        assert found.cost.neighbours == PERSONS, name
    thin = private_pca(sparse.csr_array(rows), 2, person=ids, center=False, **BUDGET, rng=SEED)
    assert thin.parameters["n"] == 300


def test_ids_say_who_is_one_person_and_nothing_else(clinic):
    """Another name, type or sorting of ids changes no bit; only who is whose does."""
    rows, ids = clinic
    renamed = np.array([f"{(7 * one) % 307:x}" for one in ids])
    first, second = (private_mean(rows, person=person, **BUDGET, rng=SEED).mean for person in (ids, renamed))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, private_mean(rows, person=ids // 2, **BUDGET, rng=SEED).mean)


IDS = {
    "UUID": lambda owner: uuid.UUID(int=owner),
    "Decimal": lambda owner: Decimal(owner) / 8,
    "date": date.fromordinal,
    "tuple": lambda owner: ("clinic", owner),
    "float": lambda owner: owner + 0.5,
    "bytes": lambda owner: b"%d\0" % owner,
    "empty": lambda owner: "" if owner == 400 else f"p{owner}",
    "infinite": lambda owner: float("inf") if owner == 400 else float(owner),
    "period": lambda owner: pd.Period(ordinal=owner, freq="D"),
}


@pytest.mark.parametrize("kind", IDS)
def test_many_rows_of_one_person_move_a_mean_by_one_person(kind):
    """400 persons, the last of whom has 400 equal rows: as rows, these would be half of all."""
    rows = np.append(np.random.default_rng(0).standard_normal(399), np.full(400, 50.0))[:, None]
    owners = [IDS[kind](owner) for owner in [*range(1, 400), *[400] * 400]]
    few, many = (
        private_mean(rows[:count], person=person, norm_bound=50.0, **BUDGET, rng=SEED)
        for count, person in ((400, owners[:400]), (799, owners))
    )
    assert abs(few.mean[0] - many.mean[0]) < 1e-6
    for person in (pd.Series(owners), pd.Categorical(owners)) if kind != "tuple" else (pd.Series(owners),):
        assert by_person(rows, person, 1, SEED).shape == (400, 1)


def test_a_row_without_an_id_is_a_person_of_its_own():
    ids = pd.array(["a", None, "a", None, "b"])
    assert by_person(np.zeros((5, 2)), ids, 3, 0).shape == (4, 2)


def test_names_and_public_numbers_are_those_of_the_columns_that_are_left(clinic):
    rows, ids = clinic
    frame = pd.DataFrame(rows, columns=NAMES)
    frame.insert(1, "patient", ids)
    public = {"units": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 1.0}, "around": {"a": 3.0}}
    release = private_pca(frame, 2, person="patient", **public, **BUDGET, rng=SEED)
    alone = private_pca(frame[NAMES], 2, person=ids, **public, **BUDGET, rng=SEED)
    np.testing.assert_array_equal(release.subspace.basis, alone.subspace.basis)
    with pytest.raises(ValueError, match="patient"):
        private_pca(frame, 2, person="patient", units={"patient": 1.0}, **BUDGET)


def test_estimators_take_groups_and_leave_the_ids_out(clinic):
    rows, ids = clinic
    frame = pd.DataFrame(rows, columns=NAMES).assign(patient=ids)
    with pytest.warns(privspan.NotPrivateWarning):
        by_ids = PrivatePCA(2, **BUDGET, random_state=SEED).fit(frame[NAMES], person=ids)
    with pytest.warns(privspan.NotPrivateWarning):
        by_name = PrivatePCA(2, **BUDGET, random_state=SEED).fit(frame, person="patient")
    np.testing.assert_array_equal(by_ids.components_, by_name.components_)
    assert by_name.release_.cost.neighbours == PERSONS
    assert by_name.release_.parameters["n"] == 300
    assert list(by_name.feature_names_in_) == NAMES
    np.testing.assert_array_equal(by_name.transform(frame), by_ids.transform(frame[NAMES]))
    np.testing.assert_array_equal(by_name.transform(frame[NAMES]), by_ids.transform(frame[NAMES]))


def test_an_estimator_takes_a_file_that_names_its_persons(clinic, tmp_path):
    rows, ids = clinic
    tables = containers(rows, ids, tmp_path)
    with pytest.warns(privspan.NotPrivateWarning):
        fitted = PrivatePCA(2, **BUDGET, random_state=SEED).fit(tables["CSV"][0])
    assert fitted.release_.cost.neighbours == PERSONS
    assert fitted.release_.parameters["n"] == 300


def test_one_row_each_is_the_same_promise_with_the_same_numbers():
    """With one row a person, persons are rows in another order: the same noise and the same sums."""
    rows = np.random.default_rng(0).standard_normal((500, 3))
    plain = private_mean(rows, norm_bound=3.0, **BUDGET, rng=SEED)
    grouped = private_mean(rows, norm_bound=3.0, person=np.arange(500), max_rows=1, **BUDGET, rng=SEED)
    np.testing.assert_allclose(grouped.mean, plain.mean, atol=1e-12)
    assert grouped.noise == plain.noise


# ---- What is told --------------------------------------------------------------------------------------------------


def with_more_rows(people: Crowd) -> Crowd:
    """The last person has another 977 rows."""
    last = np.flatnonzero(people.owners == people.owners.max())[:1]
    more = np.repeat(last, 977)
    parts = (np.concatenate([array, array[more]]) for array in (people.rows, people.ids, people.owners))
    return Crowd(*parts)


@pytest.mark.parametrize(
    "options", [{}, {"scale": True}, {"robust": True}, {"k": "auto"}, {"method": "analyze-gauss"}]
)
def test_the_number_of_rows_shows_nowhere(options):
    """Not in what is released, nor in how much is looked at."""
    few = crowd(people_of(1500, 4))
    shown = []
    for people in (few, with_more_rows(few)):
        passes = []
        with people.coupled(), watching_rows(passes.append):
            release = private_pca(people.rows, person=people.ids, **{"k": 2, **options}, **BUDGET, rng=SEED)
        shape = {name: np.shape(value) for name, value in {**release.parameters, **release.extras}.items()}
        shown.append((release.parameters["n"], release.parameters["max_rows"], release.subspace.basis.shape, shape))
        shown[-1] += (release.cost, set(passes))
    assert shown[0] == shown[1]


REFUSALS = {
    "one id per row": lambda X, ids: private_mean(X, person=ids[:-1], **BUDGET),
    "one entry per row": lambda X, ids: private_regression(
        X, ids[:-1], person=ids, norm_bound=1.0, target_bound=1.0, **BUDGET
    ),
    "two-dimensional": lambda X, ids: private_mean(X[:, 0], person=ids, **BUDGET),
    "at least one row and one column": lambda X, ids: private_mean(X[:, :0], person=ids, **BUDGET),
    "of at least 2 row": lambda X, ids: private_pca(X, 1, person=np.zeros(977), **BUDGET),
    "2 row.* and 1 column": lambda X, ids: PrivatePCA(1, **BUDGET).fit(X, person=np.zeros(977)),
    "`max_rows` must be at most 1024": lambda X, ids: private_mean(X, person=ids, max_rows=2000, **BUDGET),
    "`max_rows` must be an integer": lambda X, ids: private_mean(X, person=ids, max_rows=0, **BUDGET),
    "ids that can be compared": lambda X, ids: private_mean(X, person=[object()] * 977, **BUDGET),
    "give the ids as an array": lambda X, ids: private_mean(X, person="patient", **BUDGET),
}


@pytest.mark.parametrize("words", REFUSALS)
def test_refusals_say_what_to_do_and_not_how_many_rows_there_are(words):
    rng = np.random.default_rng(0)
    with pytest.raises((ValueError, TypeError), match=words) as refusal:
        REFUSALS[words](rng.standard_normal((977, 3)), rng.integers(300, size=977))
    assert not re.search("97[67]", str(refusal.value))
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


@pytest.mark.parametrize(
    "fit",
    [
        lambda frame, y: PrivatePCA(2, **BUDGET).fit(frame, y),
        lambda frame, y: PrivatePCA(2, **BUDGET).fit_transform(frame, y),
        lambda frame, y: PrivateStandardScaler(bounds=(-9, 9), **BUDGET).fit(frame, y),
        lambda frame, y: private_regression(frame, y, norm_bound=1.0, target_bound=1.0, **BUDGET),
        lambda frame, y: private_regression(frame, y, person="patient", norm_bound=1.0, target_bound=1.0, **BUDGET),
    ],
)
@pytest.mark.parametrize("name", ["patient", np.str_("patient")])
@pytest.mark.filterwarnings("ignore::privspan.privacy.TransformedRowsWarning")
def test_the_name_of_a_column_is_not_taken_for_y(clinic, fit, name):
    """The promise would be for rows."""
    rows, ids = clinic
    with pytest.raises(TypeError, match=r"^`y` .*of ids is `person`"):
        fit(pd.DataFrame(rows, columns=NAMES).assign(patient=ids), name)


def test_a_file_that_names_its_persons_is_never_read_by_rows(clinic, tmp_path):
    source = containers(*clinic, tmp_path)["CSV"][0]
    with pytest.raises(TypeError, match="one row per person"):
        adaptive_subspace(source, 2, **BUDGET)
    with pytest.raises(TypeError, match="one row per person"):
        privspan.baselines.mod_sulq(source, 2, **BUDGET)


def test_a_release_for_persons_is_kept_with_its_promise(clinic, tmp_path):
    rows, ids = clinic
    release = private_pca(rows, 2, person=ids, **BUDGET, rng=SEED)
    assert release.parameters["max_rows"] == 8
    cost = replace(release.cost)
    assert cost.neighbours == PERSONS
    assert type(cost).from_dict(cost.to_dict()).neighbours == PERSONS
