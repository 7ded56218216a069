"""The courses of standardised columns on neighbours: what a record costs, and that nothing else shows it."""

import warnings
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from person_neighbours import STRANGERS, neighbours, spent_between
from runs import seeded
from scipy import sparse

from privspan import private_pca, private_scales
from privspan.audit.replay import Transcript
from privspan.privacy import Budget
from privspan.rows import open_rows, partition_rows
from privspan.rows.columns import public_columns
from privspan.rows.door import open_table
from privspan.standard.course import StandardTuning, chosen_course, data_per_column, standardised_pca, unit_share
from privspan.standard.forecast import expected_captured, needed_rows

DELTA = 1e-6
RECORDS = {
    "far": (1e12, -1e12),
    "not finite": (np.nan, 1e9),
    "infinite": (np.inf, -np.inf),
    "next to nothing": (5e-324, -5e-324),
    "beyond all bins": (1e300, 0.0),
    "all over": (np.array([1e9, -1e9, 0.0, np.nan]), np.array([0.0, 1e9, np.nan, -1e9])),
}


def cloud(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 1)) + rng.standard_normal((n, 4))
    return X * [1.0, 1e-6, 1e6, 30.0] + [0.0, 1.0, -1e7, 5.0]


def pair_of(kind, n):
    one, other = cloud(n), cloud(n)
    one[n // 3], other[n // 3] = RECORDS[kind]
    return one, other


def numbers(release):
    extras = [np.ravel(np.asarray(value, dtype=float)) for _, value in sorted(release.extras.items())]
    return np.concatenate([release.subspace.basis.ravel(), *extras])


def replayed(run, pair):
    """Return what a replacement costs along a run, and whether both results are the same to the last bit."""
    transcript = Transcript(5)
    spent = transcript.spent_by(run, *pair)
    one, other = transcript.results
    same = np.array_equal(numbers(one), numbers(other), equal_nan=True) and one.parameters == other.parameters
    return spent, same


# ---- What a record costs -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize(
    ("n", "epsilon", "options"),
    [
        (21, 1.0, {}),  # ranks, an odd row
        (600, 8.0, {}),  # ranks with units
        (600, 8.0, {"bounds": {0: (-9, 9), 2: (-2e7, 0)}}),
        (600, 8.0, {"missing": "zero-row"}),
        (1_400, 8.0, {}),  # deviations
        (300, 1.0, {"scale": "deviations"}),
        (200, 1.0, {"k": "auto"}),
        (200, 1.0, {"k": 0.9}),
    ],
    ids=str,
)
def test_a_run_spends_no_more_than_mu_and_shows_nothing_else(kind, n, epsilon, options):
    given = {"k": 2, "scale": True, **options}

    def run(X, rng):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a share that is not reached
            return private_pca(X, **given, epsilon=epsilon, delta=DELTA, rng=rng)

    spent, same = replayed(run, pair_of(kind, n))
    assert spent <= Budget(epsilon, DELTA).mu ** 2
    assert same


@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize("n", [301, 600])
@pytest.mark.parametrize("how", ["partitions", "sparse", "file", "float32", "integers"])
def test_so_it_does_wherever_the_rows_are(how, kind, n, tmp_path):
    def saved(X):
        np.save(tmp_path / "X.npy", X)
        return open_rows(tmp_path / "X.npy")

    made = {
        "partitions": partial(partition_rows, lengths=[100, 1, n - 101]),
        "sparse": sparse.csr_array,
        "file": saved,
        "float32": lambda X: X.astype(np.float32),
        "integers": lambda X: np.clip(np.nan_to_num(X), -(2.0**62), 2.0**62).astype(np.int64),
    }[how]

    def run(X, rng):
        with np.errstate(all="ignore"):
            table = made(X)
        return private_pca(table, 2, epsilon=8.0, delta=DELTA, scale=True, rng=rng)

    spent, same = replayed(run, pair_of(kind, n))
    assert spent <= Budget(8.0, DELTA).mu ** 2
    assert same


@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
@pytest.mark.parametrize("which", STRANGERS, ids=str)
@pytest.mark.parametrize("options", [{"scale": "ranks"}, {"scale": "deviations"}, {"scale": True}], ids=str)
@pytest.mark.parametrize("n", [21, 400])
def test_a_person_costs_no_more_than_a_row(which, options, n):
    def run(rows, person, rng):
        return private_pca(rows, 2, epsilon=8.0, delta=DELTA, person=person, rng=rng, **options)

    spent, one, other = spent_between(run, neighbours(n, 4, which))
    assert spent <= Budget(8.0, DELTA).mu ** 2
    np.testing.assert_array_equal(numbers(one), numbers(other))


@pytest.mark.parametrize("which", STRANGERS, ids=str)
def test_nor_do_scales_of_persons(which):
    def run(rows, person, rng):
        return private_scales(rows, epsilon=8.0, delta=DELTA, person=person, rng=rng)

    spent, one, other = spent_between(run, neighbours(300, 4, which))
    assert spent <= Budget(8.0, DELTA).mu ** 2
    np.testing.assert_array_equal(one.scale, other.scale)


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize("options", [{}, {"bounds": (-1e3, 1e3)}, {"missing": "zero-row"}], ids=str)
def test_scales_spend_no_more_than_mu(kind, options):
    transcript, scales = Transcript(5), partial(private_scales, epsilon=8.0, delta=DELTA, **options)
    spent = transcript.spent_by(lambda table, rng: scales(table, rng=rng), *pair_of(kind, 400))
    assert spent <= Budget(8.0, DELTA).mu ** 2
    one, other = transcript.results
    for field in fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def test_all_of_the_budget_is_spent_on_every_course():
    for n, scale in ((40, True), (2_000, True), (9_000, True), (200, "deviations")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = private_pca(cloud(n), 2, epsilon=1.0, delta=DELTA, scale=scale, rng=0)
        assert release.cost.epsilon <= 1.0
        run = seeded(0, 1.0, DELTA)
        X = open_table(cloud(n), min_rows=2)
        public, course = public_columns(X, 4), release.parameters["course"]
        standardised_pca(open_table(X), 2, run, public, course=course)
        assert run.account.left < 1e-9


# ---- What follows from public numbers ------------------------------------------------------------------------------


def test_the_course_and_the_units_follow_from_public_numbers():
    mu, tuning = 0.25, StandardTuning()
    for n, course, share in ((1_000, "ranks", 0.0), (4_000, "ranks", 0.245), (6_000, "deviations", 0.245)):
        assert chosen_course(n, 4, mu, sparse=False) == course
        assert unit_share(n, 4, mu, course) == pytest.approx(share)
    assert chosen_course(10**6, 4, mu, sparse=True) == "ranks"
    assert data_per_column(1_000, 4, mu) == 125.0
    assert chosen_course(1_000, 4, mu, False, replace(tuning, deviations_from=100.0)) == "deviations"


def test_the_forecast_grows_with_data_and_is_inverted():
    mu = Budget(1.0, DELTA).mu
    expected = [expected_captured(n, 20, 3, mu) for n in (10, 100, 1_000, 10_000)]
    assert expected == sorted(expected)
    assert (3 / 20) ** 0.5 <= expected[0] < expected[-1] < 1.0
    n = needed_rows(0.9, 20, 3, mu)
    assert expected_captured(n, 20, 3, mu) >= 0.9 > expected_captured(n - 1, 20, 3, mu)
    assert needed_rows(0.1, 20, 3, mu) == 2
    assert needed_rows(1.0, 20, 3, mu) is None


# ---- What is told --------------------------------------------------------------------------------------------------


def test_ranks_do_not_see_an_increasing_change_of_a_column():
    X = np.random.default_rng(0).standard_normal((500, 1)) + np.random.default_rng(1).standard_normal((500, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (
            private_pca(table, 2, epsilon=1.0, delta=DELTA, scale="ranks", rng=3) for table in (X, np.exp(X) * 1e6)
        )
    np.testing.assert_array_equal(one.subspace.basis, other.subspace.basis)
    assert one.parameters["estimates"] == "rank correlations"


@pytest.mark.parametrize("course", ["ranks", "deviations"])
def test_with_much_data_the_components_are_those_of_the_correlations(course):
    X = cloud(40_000)
    release = private_pca(X, 1, epsilon=2.0, delta=DELTA, scale=course, rng=0)
    best = np.linalg.eigh(np.corrcoef(X.T))[1][:, -1]
    assert abs(release.subspace.basis[:, 0] @ best) > 0.995
    assert release.extras["captured_variance"] > 0.95
    assert release.extras["total_variance"] == 4.0
    np.testing.assert_allclose(release.extras["scale"], X.std(axis=0), rtol=0.1)


def test_the_number_of_components_is_that_which_stands_out():
    X = np.random.default_rng(0).standard_normal((8_000, 1)) + np.random.default_rng(1).standard_normal((8_000, 5))
    auto = private_pca(X, "auto", epsilon=2.0, delta=DELTA, scale=True, rng=0)
    assert auto.subspace.basis.shape == (5, 1)
    assert auto.extras["stands_out"] == 1
    share = private_pca(X, 0.7, epsilon=2.0, delta=DELTA, scale=True, rng=0)
    ratios = share.extras["explained_variance_ratio"]
    assert ratios.sum() >= 0.7 > ratios[:-1].sum()


def test_scores_are_refused_by_naming_columns_without_a_unit():
    pytest.importorskip("sklearn")
    import pandas as pd

    from privspan import NotPrivateWarning, PrivatePCA

    X = pd.DataFrame(cloud(60), columns=["age", "dose", "income", "visits"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        bounds = {"age": (-9, 9), "income": (-2e7, 0)}
        model = PrivatePCA(1, epsilon=5.0, delta=DELTA, scale=True, bounds=bounds, random_state=0).fit(X)
        with pytest.raises(ValueError, match="dose") as refusal:
            model.transform(X)
        assert "visits" in str(refusal.value)
        assert "income" not in str(refusal.value)
