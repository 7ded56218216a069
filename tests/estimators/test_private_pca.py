"""PrivatePCA and PrivateSubspace as scikit-learn and its users see them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from runs import NoDraws, Told, seeded
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from privspan import private_pca, private_subspace
from privspan.datasets import gaussian_subspace
from privspan.estimators import (
    AbstentionWarning,
    NotPrivateWarning,
    PrivatePCA,
    PrivateSubspace,
)
from privspan.privacy import Budget, compose_mu
from privspan.private import UselessPlanWarning
from privspan.rows import open_rows, partition_rows
from privspan.subspace import Subspace

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
EXPECTED_FAILURES = {
    "check_dtype_object": "object arrays are refused by dtype: converting them would raise on values",
}
SHIFT = 3.0


@pytest.mark.filterwarnings("ignore::privspan.estimators.AbstentionWarning")
@pytest.mark.filterwarnings("ignore::privspan.estimators.NotPrivateWarning")
@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
@pytest.mark.filterwarnings("ignore::privspan.NoSpreadWarning")
@pytest.mark.filterwarnings("ignore:The . components that were looked for")
@parametrize_with_checks(
    [
        PrivatePCA(1, **BUDGET),
        PrivatePCA(0.5, **BUDGET, whiten=True),
        PrivatePCA(1, **BUDGET, center=False),
        PrivatePCA(1, **BUDGET, robust=True),
        PrivatePCA(1, **BUDGET, method="stable"),
        PrivateSubspace(1, **BUDGET, method="approximate", options={"block_size": 2}),
        PrivateSubspace(1, **BUDGET, method="boosted", options={"alpha": 0.5, "beta": 0.31, "block_size": 2}),
    ],
    expected_failed_checks=lambda _estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    X, truth = gaussian_subspace(8_000, 12, 2, gamma_w=0.1, condition=4.0, rng=0)
    return X + SHIFT, truth


def fitted(X, k=2, *, epsilon=1.0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return PrivatePCA(k, epsilon=epsilon, delta=1e-6, **{"random_state": 0, **options}).fit(X)


def test_fitted_attributes(table):
    X, truth = table
    model = fitted(X, epsilon=3.0)
    assert model.succeeded_
    assert model.components_.shape == (2, 12)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)
    assert Subspace.from_spanning(model.components_.T).distance(truth) < 0.03
    assert np.abs(model.mean_ - X.mean(axis=0)).max() < 0.3
    variances = np.sort(np.linalg.eigvalsh(np.cov(X.T)))[::-1]
    assert list(model.explained_variance_) == sorted(model.explained_variance_, reverse=True)
    np.testing.assert_allclose(model.explained_variance_, variances[:2], rtol=0.25)
    assert model.total_variance_ == pytest.approx(variances.sum(), rel=0.25)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, model.explained_variance_ / model.total_variance_, rtol=1e-12
    )
    assert model.n_components_ == 2
    assert model.n_features_in_ == 12
    assert model.plan_.method == "everyday"
    assert model.stands_out_ == 2
    assert model.captured_variance_ == pytest.approx(1.0, abs=0.03)
    assert 0.0 < model.captured_variance_std_ < 0.05
    assert (np.abs(model.mean_ - X.mean(axis=0)) < 5 * model.mean_std_).all()
    assert (np.abs(model.explained_variance_ - variances[:2]) < 5 * model.explained_variance_std_ + 0.1).all()


def test_round_trip_and_names(table):
    X, _ = table
    model = fitted(X, epsilon=3.0)
    Z = model.transform(X[:200])
    np.testing.assert_allclose(Z, (X[:200] - model.mean_) @ model.components_.T)
    again = model.inverse_transform(Z)
    np.testing.assert_allclose(model.transform(again), Z, atol=1e-9)
    assert np.linalg.norm(again - X[:200]) < 0.25 * np.linalg.norm(X[:200])
    assert list(model.get_feature_names_out()) == ["privatepca0", "privatepca1"]


@pytest.mark.parametrize(
    "options",
    [{}, {"center": False}, {"robust": True}, {"method": "analyze-gauss"}, {"n_components": "auto"}, {"scale": True}],
)
def test_the_whole_costs_the_budget_and_its_parts_no_more(table, options):
    X, _ = table
    model = fitted(X, options.pop("n_components", 2), **options)
    cost = model.release_.cost
    assert (cost.epsilon, cost.delta) == (1.0, 1e-6)
    mus = [part.mu for part in cost.parts if part.mu is not None]
    others = sum(part.epsilon for part in cost.parts if part.mu is None)
    assert compose_mu(*mus) <= Budget(1.0 - others, 1e-6).mu * (1 + 1e-9)
    assert compose_mu(*mus) >= 0.99 * Budget(1.0 - others, 1e-6).mu
    names = " ".join(part.name for part in cost.parts)
    steps = {"subspace", "variances"} if {"center", "robust", "method"} & {*options} else {"first length", "centre"}
    steps = {"signs of pairs"} if "scale" in options else steps
    assert all(step in names for step in steps)
    assert ("mean" in names) == bool({"robust", "method", "scale"} & {*options})


def test_methods_that_are_not_gaussian_add_up_by_basic_composition():
    X, _ = gaussian_subspace(2_400, 20, 1, gamma_w=1e-3, rng=0)
    model = fitted(X, 1, method="stable")
    parts = model.release_.cost.parts
    assert all(part.mu is None for part in parts)
    assert sum(part.epsilon for part in parts) <= 1.0
    assert sum(part.delta for part in parts) <= 1e-6


def test_steps_do_not_share_noise(table):
    told = Told()
    fitted(table[0], robust=True, random_state=told)
    seen = told.children
    assert sorted(child.name for child in seen) == ["MEAN", "PAIRING", "SUBSPACE", "VARIANCES"]
    run = seeded(0)
    bits = {run.on(child).streams.noise.bytes(32) for child in seen}
    assert len({run.streams.noise.bytes(32), *bits}) == 1 + len(seen)


def test_centring_matters_and_is_done(table):
    X, truth = table
    assert fitted(X, center=False).subspace_.distance(truth) > 0.5
    assert fitted(X).subspace_.distance(truth) < 0.1
    assert fitted(X).release_.parameters["centring"] == "localised rounds"
    assert fitted(X, robust=True).release_.parameters["centring"] == "pair differences"
    np.testing.assert_array_equal(fitted(X, center=False).mean_, np.zeros(12))


def test_units_are_found_privately_and_reported():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20_000, 2)) @ rng.standard_normal((2, 6)) + 0.5 * rng.standard_normal((20_000, 6))
    units, middle = 10.0 ** np.arange(-3, 3), 5.0 * 10.0 ** np.arange(-3, 3)
    spread = X.std(axis=0)
    X = np.column_stack([X * units + middle, np.full(len(X), 7.0)])
    model = fitted(X, scale=True)
    np.testing.assert_allclose(model.scale_[:6], spread * units, rtol=0.3)
    assert (np.abs(model.mean_[:6] - X[:, :6].mean(axis=0)) < 0.2 * spread * units).all()
    assert model.release_.parameters["without_units"] == ()
    assert model.release_.parameters["not_seen"] == model.release_.parameters["mostly_one_value"] == (6,)
    assert np.abs(model.components_[:, 6]).max() < 3.0 * model.components_std_[:, 6].max() + 0.05
    coordinates = (np.clip(X, model.low_, model.high_) - model.mean_) / model.scale_ @ model.components_.T
    np.testing.assert_allclose(model.transform(X), coordinates, atol=1e-9)
    best = np.linalg.eigvalsh(np.corrcoef(X[:, :6].T))[-2:].sum()
    assert np.var(coordinates / 1.0, axis=0).sum() > 0.8 * best


def test_public_units_centres_and_bounds(table):
    X, truth = table
    names = [f"c{i}" for i in range(12)]
    frame = pytest.importorskip("pandas").DataFrame(X * 10.0, columns=names)
    by_name, by_position = (fitted(frame, units=units) for units in (dict.fromkeys(names, 10.0), np.full(12, 10.0)))
    np.testing.assert_array_equal(by_name.components_, by_position.components_)
    np.testing.assert_array_equal(by_name.scale_, np.full(12, 10.0))
    assert by_name.subspace_.distance(truth) < 0.1
    about = fitted(X, around=np.full(12, SHIFT))
    assert about.release_.parameters["centring"] == "public centre"
    assert "centre" not in {part.name for part in about.release_.cost.parts}
    assert about.subspace_.distance(truth) < 0.1
    assert fitted(X, around=np.full(12, SHIFT), robust=True).release_.parameters["centring"] == "public centre"
    with pytest.warns(UselessPlanWarning):  # too few for a search, and the middle may be far from the mean
        few = fitted(frame[:150], bounds=dict.fromkeys(names, (20.0, 40.0)))
    np.testing.assert_array_equal(few.scale_, np.full(12, 10.0))
    assert few.release_.parameters["course"] == "pairs"
    np.testing.assert_array_equal(few.mean_, np.full(12, 30.0))
    np.testing.assert_array_equal(np.isinf(few.mean_std_), True)
    assert fitted(X[:150], around=np.full(12, SHIFT)).release_.parameters["course"] == "one look"
    assert fitted(frame, bounds=dict.fromkeys(names, (20.0, 40.0))).release_.parameters["rounds"] > 0


def test_what_a_small_table_does_not_tell_is_not_claimed(table):
    with pytest.warns(UselessPlanWarning):
        model = fitted(table[0][:150])
    assert np.isnan(model.explained_variance_).all()
    assert np.isinf(model.mean_std_).all()
    assert "explained_variance" not in model.release_.extras
    assert model.stands_out_ == 0
    assert np.isnan(model.captured_variance_)
    assert "finds nothing that stands out" in repr(model)


def test_the_headline_is_what_was_captured(table):
    model = fitted(table[0])
    assert "captures about 100.0%" in repr(model)
    assert "captures about 100.0%" in repr(model.release_)
    assert str(model.release_).startswith("captures about 100.0%")
    assert repr(PrivatePCA(2, **BUDGET)).endswith(")")
    assert np.isnan(fitted(table[0], robust=True).captured_variance_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": {"age": 3.0}}, "`units` must name columns"),
        ({"bounds": {0: (3.0, 1.0)}}, "`bounds` must be finite, low < high"),
        ({"around": [1.0, 2.0]}, "`around` must have one number per column"),
        ({"scale": True, "method": "stable"}, "`scale=True` must be used with"),
        ({"robust": "yes"}, "`robust` must be True or False"),
    ],
)
def test_declarations_that_cannot_be_are_refused(table, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(table[0], **options)


def test_each_component_is_the_direction_of_its_variance():
    """Unequal variances: the order and the directions must match, not only the span."""
    rng = np.random.default_rng(5)
    axes = np.linalg.qr(rng.standard_normal((12, 3)))[0]
    X = rng.standard_normal((20_000, 3)) * [9.0, 5.0, 2.0] @ axes.T + 0.1 * rng.standard_normal((20_000, 12))
    model = fitted(X, 3)
    along = np.diag(model.components_ @ np.cov(X.T) @ model.components_.T)
    np.testing.assert_allclose(along, [81.0, 25.0, 4.0], rtol=0.15)
    np.testing.assert_allclose(model.explained_variance_, along, rtol=0.1, atol=3.0)


def test_auto_number_of_components(table):
    X, _ = table
    model = fitted(X, "auto", max_components=6)
    assert model.n_components_ == 2
    assert model.release_.extras["n_components"] == 2
    assert any(part.name == "choice of the dimension" for part in model.release_.cost.parts)
    with pytest.raises(ValueError, match="max_components"):
        fitted(X, 2, max_components=6)
    again = fitted(sparse.csr_array(X), "auto", max_components=6)
    assert again.n_components_ == 2


def test_kinds_of_table_agree(table, tmp_path):
    X, _ = table
    X = np.round(X[:, :11], 2).astype(np.float32)  # of twelve, dense ones would be asked whether they are near
    reference = fitted(X)
    np.save(tmp_path / "rows.npy", X)
    mapped = fitted(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    np.testing.assert_array_equal(mapped.components_, reference.components_)
    for form in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array):
        model = fitted(form(X))
        # The rounding of sparse rows about a centre is charged: a ten-thousandth more noise.
        np.testing.assert_allclose(model.components_, reference.components_, atol=1e-4)
        np.testing.assert_allclose(model.transform(form(X[:5])), reference.transform(X[:5]), atol=1e-2)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_of_other_libraries(table, library):
    module = pytest.importorskip(library)
    X, _ = table
    names = [f"c{i}" for i in range(12)]
    columns = {name: X[:, i] for i, name in enumerate(names)}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    model = fitted(frame)
    np.testing.assert_allclose(model.components_, fitted(X).components_, atol=1e-12)
    if library != "pyarrow":
        assert list(model.feature_names_in_) == names
        assert model.subspace_.names == tuple(names)
        out = model.set_output(transform=library).transform(frame)
        assert list(out.columns) == ["privatepca0", "privatepca1"]


def test_pickle_clone_pipeline_and_grid_search(table):
    X, _ = table
    model = fitted(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X[:5]), model.transform(X[:5]))
    assert again.release_.cost == model.release_.cost
    assert clone(model).get_params() == model.get_params()
    y = X @ np.arange(12.0) > np.median(X @ np.arange(12.0))
    pipeline = make_pipeline(PrivatePCA(1, **BUDGET), LogisticRegression())
    search = GridSearchCV(pipeline, {"privatepca__n_components": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_["privatepca__n_components"] in (1, 2)


def test_warnings(table):
    X, _ = table
    with pytest.warns(NotPrivateWarning, match="not private"):
        PrivatePCA(2, **BUDGET, random_state=1).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PrivatePCA(2, **BUDGET).fit(X).release_.private
    with pytest.warns(UselessPlanWarning, match="rows"):
        PrivatePCA(2, **BUDGET).fit(X[:60])


def test_who_makes_the_warning_an_error_has_not_spent_the_budget():
    X = np.random.default_rng(0).normal(size=(60, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UselessPlanWarning):
            PrivatePCA(2, **BUDGET, random_state=NoDraws()).fit(X)


@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
def test_an_abstention_leaves_a_placeholder():
    X = np.random.default_rng(0).normal(size=(300, 6))
    estimator = PrivatePCA(2, **BUDGET, method="stable")
    with pytest.warns(AbstentionWarning, match="budget is spent"):
        model = estimator.fit(X)
    assert not model.succeeded_
    assert model.release_.subspace is None
    np.testing.assert_array_equal(model.components_, np.eye(2, 6))
    assert model.transform(X).shape == (300, 2)


def test_values_never_raise(table):
    X = table[0].copy()
    X[0, 0], X[1, 1], X[2] = np.nan, np.inf, 1e300
    assert fitted(X).succeeded_
    assert np.isfinite(fitted(X).mean_).all()


@pytest.mark.parametrize(
    "change",
    [{"n_components": 13}, {"epsilon": -1.0}, {"method": "exact"}, {"units": np.zeros(12)}, {"n_components": 0}],
)
def test_wrong_parameters_are_named(table, change):
    with pytest.raises(ValueError, match="must be"):
        PrivatePCA(**({"n_components": 2} | BUDGET | change)).fit(table[0])


@pytest.mark.parametrize(
    ("change", "named", "not_named"),
    [
        ({"n_components": 13}, "`n_components` must be at most", "`k`"),
        ({"n_components": 2.5}, "`n_components` must be an integer", "`k`"),
        ({"max_components": 3}, 'only with `n_components="auto"`', "`k"),
        ({"random_state": "seed"}, "`random_state` must be None, an integer", "`rng`"),
        ({"random_state": -1}, "`random_state` must be at least 0", "`rng`"),
    ],
)
def test_refusals_name_parameters_as_whoever_called_knows_them(table, change, named, not_named):
    with pytest.raises((ValueError, TypeError)) as refused:
        PrivatePCA(**({"n_components": 2} | BUDGET | change)).fit(table[0])
    assert named in str(refused.value)
    assert not_named not in str(refused.value)
    spelt = {"n_components": "k", "random_state": "rng"}
    options = {spelt.get(name, name): value for name, value in ({"n_components": 2} | BUDGET | change).items()}
    with pytest.raises((ValueError, TypeError)) as refused:
        private_pca(table[0], **options)
    assert not_named in str(refused.value)


def test_warnings_point_at_the_line_that_fits(table):
    for warning, fit in (
        (NotPrivateWarning, lambda X: PrivatePCA(2, **BUDGET, random_state=1).fit(X)),
        (UselessPlanWarning, lambda X: PrivatePCA(2, **BUDGET).fit(X[:60])),
        (UselessPlanWarning, lambda X: private_pca(X[:60], 2, **BUDGET)),
        (UselessPlanWarning, lambda X: private_subspace(X[:40], 2, **BUDGET)),
    ):
        with pytest.warns(warning) as told:
            fit(table[0])
        assert [one.filename for one in told] == [__file__]


def test_the_function_knows_the_names_of_a_source(table, tmp_path):
    X = table[0][:500]
    names = [f"c{i}" for i in range(12)]
    pytest.importorskip("pyarrow")
    (tmp_path / "rows.csv").write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in X)]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessPlanWarning)
        release = private_pca(open_rows(tmp_path / "rows.csv"), 2, **BUDGET)
        assert private_pca(X, 2, **BUDGET).subspace.names is None
    assert release.subspace.names == tuple(names)


def rows_in_partitions(n, d, length):
    return partition_rows(np.zeros((n, d)), [length] * (n // length))


@pytest.mark.parametrize(
    ("X", "k", "options", "message"),
    [
        (np.zeros((12, 6)), 3, {"method": "approximate"}, "at least 22 rows for two blocks; got 6"),
        (np.zeros((12, 6)), "auto", {"method": "approximate"}, "at least 14 rows for two blocks; got 6"),
        (np.zeros((12, 6)), 3, {"method": "approximate", "center": False}, "at least 22 rows for two blocks; got 12"),
        (rows_in_partitions(400, 6, 8), 1, {"method": "approximate"}, "partitions that hold two blocks of 7 rows"),
        (
            rows_in_partitions(8_000, 800, 16),
            2,
            {"method": "approximate"},
            "partitions that hold two blocks of 9 rows",
        ),
        (rows_in_partitions(20, 6, 1), 2, {}, "at most 0, the smaller of the number of columns and of pairs"),
        (np.zeros((60, 6)), "auto", {"gamma": 2.0}, "`gamma` must be a number strictly between"),
        (np.zeros((60, 6)), 1, {"bounds": (0.0, 1e200)}, "squares in range"),
        (np.zeros((60, 6)), 1, {"epsilon": 1e-30}, "`epsilon` must be between"),
    ],
)
def test_what_public_numbers_rule_out_is_refused_before_any_private_step(X, k, options, message):
    model = PrivatePCA(k, **(BUDGET | options), random_state=NoDraws())
    for refuse in (model.check_table, model.fit):
        with pytest.raises(ValueError, match=message):
            refuse(X)


def test_a_table_that_passes_the_check_is_not_read():
    X = partition_rows(np.zeros((600, 4)), [300, 300])
    X = X.then(lambda _: pytest.fail("a partition was read"))
    PrivatePCA("auto", **BUDGET, method="approximate").check_table(X)


def test_block_estimators_follow_their_functions():
    X, truth = gaussian_subspace(3_000, 40, 2, gamma_w=1e-3, rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        budget = {"epsilon": 3.0, "delta": 1e-6, "random_state": 0}
        model = PrivateSubspace("auto", **budget, method="approximate", options={"max_components": 4}).fit(X)
        boosted = PrivateSubspace(2, **budget, method="boosted", options={"alpha": 0.9, "beta": 0.31}).fit(X)
    assert model.n_components_ == 2
    assert model.subspace_.distance(truth) < 0.05
    assert boosted.succeeded_
    assert boosted.subspace_.distance(truth) < 0.05
    assert boosted.release_.parameters["parts"] == 1


def test_variances_from_differences_of_pairs_are_halved():
    """The covariance of a difference is twice that of a row."""
    X = np.random.default_rng(0).standard_normal((40_000, 3)) * [3.0, 1.0, 1.0] + 5.0
    release = private_pca(X, 1, epsilon=100.0, delta=1e-6, method="analyze-gauss", rng=0)
    assert release.parameters["centring"] == "pair differences"
    assert release.extras["explained_variance"] == pytest.approx([9.0], rel=0.2)
    assert release.extras["total_variance"] == pytest.approx(11.0, rel=0.2)


# --- What people stumble over ----------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2.0, "2", None, 0, True, 1.5, [2]])
def test_a_number_of_components_that_is_none_is_refused_with_what_is_allowed(k: object) -> None:
    allowed = r"an integer, at least 1, a share of the variance between 0 and 1, or \"auto\"; got"
    with pytest.raises((TypeError, ValueError), match=f"`n_components` must be {allowed}"):
        PrivatePCA(k, **BUDGET).fit(np.ones((30, 3)))
    with pytest.raises((TypeError, ValueError), match=f"`k` must be {allowed}"):
        private_pca(np.ones((30, 3)), k, **BUDGET)


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"scale": "yes"}, '`scale` must be True, False, "ranks" or "deviations"; got \'yes\''),
        ({"scale": {0: 2.0}}, "`scale` must be True, False, .*public units go into `units`"),
        ({"center": "yes"}, "`center` must be True or False; a public centre goes into `around`"),
        ({"center": [1.0, 2.0, 3.0]}, "`center` must be True or False; a public centre goes into `around`"),
        ({"center": False, "around": {0: 1.0}}, "`around` must be given only with `center=True`"),
        ({"scale": "ranks", "units": {0: 1.0}}, "`units` must not be given with `scale=True`"),
    ],
)
def test_what_is_no_switch_is_refused_with_what_is_allowed(options: dict, allowed: str) -> None:
    with pytest.raises((TypeError, ValueError), match=allowed):
        private_pca(np.ones((30, 3)), 1, **BUDGET, **options)


def test_columns_of_one_name_are_refused_by_name() -> None:
    frame = pd.DataFrame(np.ones((30, 3)), columns=["a", "b", "a"])
    for fit in (lambda: private_pca(frame, 1, **BUDGET), lambda: PrivatePCA(1, **BUDGET).fit(frame)):
        with pytest.raises(ValueError, match="more than one is called 'a'"):
            fit()


def test_all_columns_of_text_are_named_at_once_with_what_to_write() -> None:
    frame = pd.DataFrame({"age": [1.0] * 30, "sex": "f", "town": "x", "day": pd.Timestamp("2020-01-01")})
    for options, named in (({}, "'sex', 'town' hold text"), ({"categories": {"sex": ["f"]}}, "'town' holds text")):
        with pytest.raises(TypeError, match=f"{named}; column 'day' holds dates") as caught:
            private_pca(frame, 1, **BUDGET, **options)
        assert "'town': [...]}" in " ".join(caught.value.__notes__)


def test_habits_of_scikit_learn() -> None:
    rows = np.random.default_rng(0).standard_normal((4_000, 4)) * [9.0, 5.0, 1.0, 1.0] + 3.0
    with pytest.warns(NotPrivateWarning):
        model = PrivatePCA(2, **BUDGET, random_state=0).fit(rows)
    assert model.n_samples_ == 4_000
    np.testing.assert_allclose(model.singular_values_**2 / 3_999, model.explained_variance_)
    # The same model in scikit-learn gives the same likelihoods.
    np.testing.assert_allclose(model.score_samples(rows), model.to_sklearn().score_samples(rows))
    assert model.score(rows) == pytest.approx(model.score_samples(rows).mean())
    assert model.score(rows) > model.score(rows + 30.0)
    narrow = rows.astype(np.float32)
    assert model.transform(narrow).dtype == model.inverse_transform(model.transform(narrow)).dtype == np.float32
    assert model.transform(rows).dtype == model.inverse_transform(model.transform(rows)).dtype == np.float64
    for method in (model.score, model.score_samples):
        assert "Not private" in method.__doc__


@pytest.mark.parametrize("options", [{"scale": True}, {"units": {0: 9.0, 1: 5.0}}])
def test_likelihoods_are_in_the_units_of_the_table(options: dict) -> None:
    rows = np.random.default_rng(0).standard_normal((20_000, 4)) * [9.0, 5.0, 1.0, 1.0] + 3.0
    with pytest.warns(NotPrivateWarning):
        model = PrivatePCA(2, epsilon=8.0, delta=1e-6, random_state=0, **options).fit(rows)
    truth = -0.5 * (4 * np.log(2 * np.pi) + 1) - np.log(45.0) - 1.5  # of independent normal columns, on average
    assert model.score(rows) == pytest.approx(truth, abs=0.1)
