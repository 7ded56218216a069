"""What is read off a released moment: right without noise, and with the errors that are told."""

from __future__ import annotations

import numpy as np
import pytest
from runs import seeded
from scipy.stats import kendalltau

from privspan import PrivatePCA, plan, private_pca
from privspan.planner.choosing import standardised_reason
from privspan.privacy import Budget
from privspan.rows.door import open_table
from privspan.standard.correlations import NoisyMoment, read_components
from privspan.standard.course import chosen_course, unit_share
from privspan.standard.signs import sign_moment

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def factors(n, seed, d=8):
    rng = np.random.default_rng(seed)
    loadings = np.zeros((2, d))
    loadings[0, : d // 2], loadings[1, d // 2 :] = 0.8, 0.7
    rows = rng.standard_normal((n, 2)) @ loadings + 0.6 * rng.standard_normal((n, d))
    return np.sinh(rows) * 10.0 ** np.arange(-d // 2, d // 2)  # skewed, and in any unit


def noiseless(X, m=1e9):
    return sign_moment(open_table(X), m, seeded(0), np.ones(X.shape[1]))


def test_two_columns_have_kendalls_tau():
    """With two columns that differ in every pair the weights 1/z are equal: tau itself, up to sampling of pairs."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(1_500)
    X = np.column_stack([x, x + rng.standard_normal(1_500)])
    made = read_components(noiseless(X), 2, np.random.default_rng(0))
    assert made.variances[0] - 1.0 == pytest.approx(kendalltau(*X.T).statistic, abs=0.03)


def test_without_noise_it_is_the_weighted_tau_of_all_pairs():
    """Columns with ties too: sums of s s' / z over all pairs of rows, divided by their diagonal."""
    rng = np.random.default_rng(1)
    hidden = rng.standard_normal((700, 1))
    X = hidden + rng.standard_normal((700, 4))
    X[:, :2], X[:, 2] = X[:, :2] > 0.5, np.floor(X[:, 2])
    first, second = np.triu_indices(700, 1)
    signs = np.sign(X[first] - X[second])
    weighted = signs.T @ (signs / np.maximum((signs != 0).sum(axis=1), 1)[:, None])
    expected = weighted / np.sqrt(np.outer(np.diagonal(weighted), np.diagonal(weighted)))
    made = read_components(noiseless(X), 4, np.random.default_rng(0))
    np.testing.assert_allclose(made.variances, np.linalg.eigvalsh(expected)[::-1], atol=0.05)


def test_any_increasing_change_of_a_column_changes_nothing():
    X = factors(800, 0)
    other = np.column_stack([np.exp(X[:, 0] / X[:, 0].std()), *X.T[1:]])
    one, two = (private_pca(table, 2, **BUDGET, scale="ranks", rng=5) for table in (X, other))
    np.testing.assert_allclose(one.subspace.basis, two.subspace.basis)


@pytest.mark.parametrize(("d", "k"), [(1, 1), (3, 3), (3, 1)])
@pytest.mark.parametrize("noise", [1e-6, 1.0, 1e3])
def test_small_cases_are_finite_and_whole(d, k, noise):
    moment = np.eye(d) * 10.0 + noise * np.random.default_rng(0).standard_normal((d, d))
    made = read_components(NoisyMoment((moment + moment.T) / 2, noise, 0.01, np.ones(d)), k, np.random.default_rng(1))
    np.testing.assert_allclose(made.basis.T @ made.basis, np.eye(k), atol=1e-9)
    for numbers in (made.variances, made.variances_std, made.loadings_std, made.captured.value, made.captured.std):
        assert np.isfinite(numbers).all()
    assert 0.0 <= made.captured.value <= 1.0
    assert k < d or made.captured.value == 1.0


def test_told_errors_are_the_spread_over_fits():
    X, fits = factors(3_000, 2), []
    for seed in range(40):
        made = private_pca(X, 2, **BUDGET, scale="ranks", rng=seed)
        fits.append((made.subspace.basis.T, made.extras["components_std"], made.extras["explained_variance"]))
        fits[-1] += (made.extras["explained_variance_std"], made.extras["captured_variance"])
    basis, told, variance, variance_std, captured = (np.array(part) for part in zip(*fits, strict=True))
    basis = basis * np.sign(np.einsum("fkd,kd->fk", basis, basis[0]))[:, :, None]
    for spread, error in ((basis.std(axis=0).mean(), told.mean()), (variance.std(axis=0), variance_std.mean(axis=0))):
        assert (np.abs(np.log(spread / error)) < np.log(1.6)).all()
    assert captured.mean() > 0.95


def test_noise_is_rarely_found():
    rng, found = np.random.default_rng(0), []
    for seed in range(40):
        X = rng.standard_normal((2_000, 6))
        found.append(private_pca(X, 2, **BUDGET, scale="ranks", rng=seed).extras["stands_out"])
    assert np.count_nonzero(found) <= 7


def test_gaps_that_were_counted_are_made_up_for():
    X = factors(20_000, 3)
    whole = private_pca(X, 2, epsilon=3.0, delta=1e-6, scale="ranks", rng=0)
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.25] = np.nan
    made = private_pca(holes, 2, epsilon=3.0, delta=1e-6, scale="ranks", rng=0)
    assert made.parameters["gaps"] == "counted"
    np.testing.assert_allclose(made.extras["explained_variance"], whole.extras["explained_variance"], rtol=0.12)
    by_deviations = [
        private_pca(table, 2, epsilon=3.0, delta=1e-6, scale="deviations", rng=0) for table in (X, holes)
    ]
    np.testing.assert_allclose(
        by_deviations[1].extras["explained_variance"], by_deviations[0].extras["explained_variance"], rtol=0.12
    )


def test_more_data_become_pca_of_the_standardised_table():
    rng = np.random.default_rng(0)
    X = np.column_stack([factors(30_000, 4)[:, :4], rng.random((30_000, 2)) < 0.2, rng.poisson(2.0, (30_000, 2))])
    release = private_pca(X, 2, epsilon=3.0, delta=1e-6, scale=True, rng=0)
    assert release.parameters["estimates"] == "correlations of winsorised columns"
    correlation, basis = np.corrcoef(X.T), release.subspace.basis
    assert np.trace(basis.T @ correlation @ basis) > 0.99 * np.linalg.eigvalsh(correlation)[-2:].sum()
    np.testing.assert_allclose(release.extras["mean"][4:], X[:, 4:].mean(axis=0), atol=0.05)
    np.testing.assert_allclose(release.extras["scale"][4:], X[:, 4:].std(axis=0), rtol=0.05)


def test_public_numbers_choose():
    assert chosen_course(1_000, 10, 0.24, sparse=False) == "ranks"
    assert chosen_course(100_000, 10, 0.24, sparse=False) == "deviations"
    assert chosen_course(100_000, 10, 0.24, sparse=True) == "ranks"
    assert chosen_course(10**9, 2_000, 0.24, sparse=False) == "ranks"
    assert unit_share(1_000, 10, 0.24, "ranks") == 0.0
    assert unit_share(6_000, 10, 0.24, "ranks") == pytest.approx(0.245)
    expected = plan(1_000, 10, 2, **BUDGET, center=True, scale=True)
    assert (expected.method, expected.scale) == ("ranks", True)
    assert 0.8 < expected.captured < 0.99
    assert "bounds=" in expected.reason
    assert expected.again(n=100_000).method == "deviations"
    assert expected.needed_n(0.1) > 1_000


def test_deviations_of_too_few_rows_tell_nothing_and_the_plan_says_so():
    X = factors(1_200, 7)  # n mu / sqrt(d) of 100
    few = private_pca(X, 2, **BUDGET, scale="deviations", rng=0)
    assert few.extras["stands_out"] == 0
    assert "captured_variance" not in few.extras
    assert private_pca(X, "auto", **BUDGET, scale="deviations", rng=0).subspace.dimension == 1
    assert private_pca(X, 2, **BUDGET, scale="ranks", rng=0).extras["stands_out"] == 2
    for n, said in ((1_200, True), (3_000, False)):
        assert ("nothing is estimated" in standardised_reason(n, 8, 2, Budget(**BUDGET), "deviations")) == said


def test_components_that_stand_out_are_as_many_as_auto_takes():
    release = private_pca(factors(6_000, 5), "auto", epsilon=2.0, delta=1e-6, scale=True, rng=0)
    assert release.extras["n_components"] == release.subspace.dimension == 2
    by_share = private_pca(factors(6_000, 5), 0.3, epsilon=2.0, delta=1e-6, scale="ranks", rng=0)
    assert by_share.extras["explained_variance_ratio"].sum() >= 0.3


@pytest.mark.filterwarnings("ignore::privspan.NotPrivateWarning")
def test_scores_need_units_and_components_do_not():
    X = factors(600, 6)
    model = PrivatePCA(2, **BUDGET, scale=True, random_state=0).fit(X)
    assert np.isnan(model.scale_).all()
    for act in (model.transform, model.inverse_transform, lambda _: model.sample(), lambda _: model.to_sklearn()):
        with pytest.raises(ValueError, match="none are known for 0, 1, 2, 3, 4, 5, 6, 7: too few rows"):
            act(X)
    np.testing.assert_allclose(np.diagonal(model.get_covariance()), 1.0)
    ends = np.abs(X).max() * 2.0
    model = PrivatePCA(2, **BUDGET, scale=True, bounds=(-ends, ends), random_state=0).fit(X)
    assert np.isfinite(model.transform(X)).all()
    np.testing.assert_allclose(model.scale_, ends / np.sqrt(3.0))


def test_whole_numbers_are_not_zoomed_into():
    X = np.random.default_rng(0).poisson(1.5, (40_000, 3))
    release = private_pca(X, 1, **BUDGET, scale="deviations", rng=0)
    assert release.parameters["mostly_one_value"] == ()
    np.testing.assert_allclose(release.extras["scale"], X.std(axis=0), rtol=0.1)
