"""What is read off a noisy second moment: exact without noise, finite always, and with errors that are the errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from privspan import private_pca
from privspan.standard.correlations import NoisyMoment, _cut, _possible, _turned, read_components
from privspan.standard.signs import pairing_variance, pairings, sampling_variance
from privspan.sums.pairs import signs


def rng(seed=0):
    return np.random.default_rng(seed)


def symmetric(d, generator):
    normal = generator.standard_normal((d, d))
    return (normal + normal.T) / np.sqrt(2.0)


def released(moment, noise, *, sampling=0.0, present=None, seed=None):
    """Add noise to a moment, if a seed is given, and say how much there is."""
    d = len(moment)
    noisy = moment if seed is None else moment + noise * symmetric(d, rng(seed))
    return NoisyMoment(noisy, noise, sampling, np.ones(d) if present is None else present)


def all_pairs(table):
    """Return the second moment of the unit signs of all pairs of rows."""
    i, j = np.triu_indices(len(table), 1)
    made = signs(table[i], table[j])
    made /= np.sqrt(np.maximum(np.abs(made).sum(axis=1, keepdims=True), 1.0))
    return made.T @ made


def factor_table(n, d, seed=0):
    shares = np.linspace(0.85, 0.3, d)
    state, own = rng(seed).standard_normal((n, 1)), rng(seed + 1).standard_normal((n, d))
    return shares * state + np.sqrt(1.0 - shares**2) * own


# ---- Without noise -------------------------------------------------------------------------------------------------


def test_components_are_those_of_kendalls_tau():
    table = np.exp(3.0 * factor_table(60, 4))  # which no rank sees
    tau = np.array([[stats.kendalltau(a, b).statistic for b in table.T] for a in table.T])
    values, vectors = np.linalg.eigh(tau)
    made = read_components(released(all_pairs(table), 1e-7), 2, rng())
    np.testing.assert_allclose(made.variances, values[::-1][:2], atol=1e-4)
    np.testing.assert_allclose(np.abs(made.basis.T @ vectors[:, ::-1][:, :2]), np.eye(2), atol=1e-4)
    assert made.captured.value == pytest.approx(1.0, abs=1e-3)
    assert made.seen.all()
    assert made.loadings_std.max() < 1e-3


def test_columns_of_zeros_and_ones_have_their_ordinary_correlations():
    """With as many ties in either column: pairs are weighted by how many columns differ."""
    table = (factor_table(400, 2) > 0.0).astype(float)
    tau = stats.kendalltau(*table.T).statistic
    assert tau == pytest.approx(np.corrcoef(table.T)[0, 1], abs=1e-9)
    i, j = np.triu_indices(len(table), 1)
    made = signs(table[i], table[j])
    variances = read_components(released(made.T @ made / len(made), 1e-9), 1, rng()).variances
    assert variances[0] == pytest.approx(1.0 + tau, abs=1e-4)


def test_gaps_that_were_counted_are_made_up_for():
    """A pair needs both cells of both columns."""
    table, gone = factor_table(4_000, 3), rng(9).random((4_000, 3)) < [0.0, 0.3, 0.4]
    order = rng(3).permutation(4_000).reshape(2, -1)
    whole, holed = (signs(X[order[0]], X[order[1]]) for X in (table, np.where(gone, np.nan, table)))
    moments = [rows.T @ rows / 2_000 for rows in (whole, holed)]
    present = np.array([1.0, 0.7, 0.6]) ** 2
    expected, lost, made = (
        read_components(released(moment, 1e-6, present=there), 1, rng()).variances[0]
        for moment, there in ((moments[0], None), (moments[1], None), (moments[1], present))
    )
    assert abs(made - expected) < 0.25 * abs(lost - expected)


# ---- Always --------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 6).flatmap(lambda d: hnp.arrays(np.float64, (d, d), elements=st.floats(-1e6, 1e6))),
    st.sampled_from([1e-9, 1e-3, 1.0, 1e9]),
    st.integers(0, 5),
)
def test_every_number_is_finite_whatever_was_released(moment, noise, k):
    d = len(moment)
    k = min(d, 1 + k)
    made = read_components(released(np.triu(moment) + np.triu(moment, 1).T, noise, sampling=0.1), k, rng())
    numbers = (made.basis, made.variances, made.variances_std, made.loadings_std, made.captured.value)
    assert all(np.isfinite(value).all() for value in (*numbers, made.captured.std))
    np.testing.assert_allclose(made.basis.T @ made.basis, np.eye(k), atol=1e-9)
    assert 0.0 <= made.captured.value <= 1.0
    assert 0 <= made.stands_out <= k
    assert (made.variances >= 0.0).all()
    assert (np.diff(made.variances) <= 1e-12 * (1.0 + made.variances[:1])).all()


@pytest.mark.parametrize("d", [1, 2, 4, 9])
def test_all_components_capture_all_of_it(d):
    """Rounding must not end a call whose budget is spent: with all components no noise is left to speak of."""
    for seed in range(40):
        made = read_components(released(np.zeros((d, d)), 1.0, seed=seed), d, rng(seed))
        assert (made.captured.value, made.captured.std) == (1.0, 0.0)


def test_a_column_that_drowns_in_noise_is_told_and_keeps_a_small_loading():
    moment = 1_000.0 * np.pad(np.full((3, 3), 0.6) + 0.4 * np.eye(3), (0, 1))
    made = read_components(released(moment, 20.0, seed=1), 1, rng())
    np.testing.assert_array_equal(made.seen, [True, True, True, False])
    assert abs(made.basis[3, 0]) < 0.4


# ---- Told errors ---------------------------------------------------------------------------------------------------


def test_told_errors_are_the_errors():
    """Root mean square of errors over what was told; the table is the same, noise differs."""
    moment = all_pairs(factor_table(300, 6)) / 299 * 2  # as from the pairs of one pairing, 150
    truth = read_components(released(moment, 1e-7), 2, rng())
    zs, loadings, told = [], [], []
    for seed in range(80):
        made = read_components(released(moment, 1.0, seed=seed), 2, rng(seed))
        zs.append((made.variances - truth.variances) / made.variances_std)
        first = made.basis[:, 0] * np.sign(made.basis[:, 0] @ truth.basis[:, 0])
        loadings.append((first - truth.basis[:, 0]) / made.loadings_std[0])
        told.append((made.captured.value - captured(moment, made.basis)) / made.captured.std)
    assert 0.6 < np.sqrt(np.mean(np.square(zs))) < 1.5
    assert 0.6 < np.sqrt(np.mean(np.square(loadings))) < 1.5
    assert np.mean(np.array(told) > 2.0) <= 0.03


def captured(moment, basis):
    weights = 1.0 / np.sqrt(np.diagonal(moment))
    correlation = moment * np.outer(weights, weights)
    return np.trace(basis.T @ correlation @ basis) / np.linalg.eigvalsh(correlation)[-basis.shape[1] :].sum()


def test_the_error_of_captured_variance_is_of_its_own_size():
    """The noise of variances along the basis and of the best ones is the same and cancels: turns are left."""
    moment = all_pairs(factor_table(600, 6)) / 599 * 2
    away, told = [], []
    for seed in range(40):
        made = read_components(released(moment, 1.0, seed=seed), 1, rng(seed))
        away.append(made.captured.value - captured(moment, made.basis))
        told.append(made.captured.std)
    size = np.sqrt(np.mean(np.square(away)))
    assert size / 1.5 < np.sqrt(np.mean(np.square(told))) < 3.0 * size


def test_loadings_are_those_of_correlations_times_the_told_weights():
    """Two columns that hardly vary have a component of their own, which noise hides and the weights tell."""
    shown = all_pairs(factor_table(300, 6)) / 299 * 2
    moment = np.zeros((8, 8))
    moment[:6, :6] = shown
    moment[6:, 6:] = np.array([[1.0, 0.95], [0.95, 1.0]]) * 0.6
    roots = np.sqrt(np.diagonal(moment))
    correlation = moment / np.outer(roots, roots)
    alone = np.linalg.eigh(correlation)[1][:, -2]
    assert np.abs(alone[6:]).sum() > 1.3  # the second component of the correlations
    zs = []
    for seed in range(30):
        made = read_components(released(moment, 1.5, seed=seed), 2, rng(seed))
        assert made.weights[6:].max() < 0.8 < made.weights[:6].min()
        weighted = correlation * np.outer(made.weights, made.weights)
        np.fill_diagonal(weighted, (1.0 + np.minimum(made.weights**2, 1.0)) / 2.0)
        truth = np.linalg.eigh(weighted)[1][:, -1]
        zs.append((made.basis[:, 0] - truth * np.sign(truth @ made.basis[:, 0])) / made.loadings_std[0])
    assert 0.5 < np.sqrt(np.mean(np.square(zs))) < 1.5
    assert np.mean(np.abs(zs) < 2.0) > 0.85


def test_the_draw_of_pairs_is_counted():
    """A strong component of many columns: the signs of a pair agree all at once, which no entry by itself tells."""
    n, d = 3_000, 20
    table = rng(0).standard_normal((n, 1)) * 0.9 + np.sqrt(1.0 - 0.81) * rng(1).standard_normal((n, d))
    drawn, told = [], []
    for seed in range(30):
        order = rng(seed).permutation(n).reshape(2, -1)
        rows = signs(*(table[part] for part in order)) / np.sqrt(d)
        there = NoisyMoment(rows.T @ rows, 1e-6, sampling_variance(n), np.ones(d), 14.0 / 9.0 / n)
        made = read_components(there, 1, rng(seed))
        drawn.append(made.variances[0])
        told.append(made.variances_std[0])
    assert 1 / 1.7 < np.mean(told) / np.std(drawn) < 1.7


@pytest.mark.parametrize("noise", [0.02, 1.0])
def test_noise_and_sampling_seldom_pass_for_a_component(noise):
    n, d, order = 400, 5, np.arange(400).reshape(2, -1)
    found = []
    for seed in range(150):
        table = rng(seed).standard_normal((n, d))
        rows = signs(table[order[0]], table[order[1]]) / np.sqrt(d)
        made = NoisyMoment(rows.T @ rows + noise * symmetric(d, rng(seed + 999)), noise, 2.0 / n, np.ones(d))
        found.append(read_components(made, 2, rng(seed)).stands_out)
    assert np.mean(np.array(found) > 0) < 0.12


def test_sampling_variance_is_that_of_kendalls_tau():
    """Of unrelated columns, with all pairs: 4/9 over n; one pairing has 2 over n, as its n / 2 signs are coins."""
    n = 200
    taus = [stats.kendalltau(*rng(seed).standard_normal((2, n))).statistic for seed in range(400)]
    assert np.var(taus) * n == pytest.approx(4.0 / 9.0, rel=0.2)
    assert sampling_variance(100_000) * 100_000 == pytest.approx(2.0)
    assert sampling_variance(100) * 100 == pytest.approx(4.0 / 9.0, rel=0.25)


# ---- What else differs from fit to fit -----------------------------------------------------------------------------


def test_errors_of_loadings_hold_the_noise_of_the_weights():
    """Six columns that are nearly one: noise between them does little, and their own diagonals nearly everything."""
    d, noise = 6, 2.0
    moment = 100.0 * (0.999 + 0.001 * np.eye(d))
    made = [read_components(released(moment, noise, seed=seed), 1, rng(seed)) for seed in range(120)]
    first = np.array([one.basis[:, 0] * np.sign(one.basis[0, 0]) for one in made])
    told = np.sqrt(np.mean([one.loadings_std[0] ** 2 for one in made]))
    assert 0.75 < told / np.sqrt((first.std(axis=0) ** 2).mean()) < 1.33


def test_the_draw_of_pairs_varies_as_it_is_told_to():
    n, d = 400, 8
    table, made = rng().standard_normal((n, d)), []
    for seed in range(200):
        pairs = rng(seed).permutation(n).reshape(-1, 2)
        rows = signs(table[pairs[:, 0]], table[pairs[:, 1]])
        made.append((rows.T @ rows / len(rows))[np.triu_indices(d, 1)])
    one_pairing = 14.0 / 9.0 / n  # `pairing_variance` divides by the number of pairings
    assert np.mean(np.var(made, axis=0)) == pytest.approx(one_pairing, rel=0.15)
    assert pairing_variance(n) == pytest.approx(one_pairing / pairings(n))


def test_two_components_turn_as_a_noisy_point_of_the_plane_does():
    generator = rng()
    for gap in (0.0, 1.0, 3.0, 10.0):
        noise = generator.standard_normal((2, 200_000))  # half of the difference on the diagonal, and what is off it
        turned = np.abs(np.arctan2(noise[1], gap / 2.0 + noise[0])) / 2.0
        told = _turned(np.array([[gap**2]]), np.ones((1, 1)))[0, 0]
        assert told == pytest.approx(float((np.sin(turned) ** 2).mean()), rel=0.02)
    assert _turned(np.array([[1e8]]), np.ones((1, 1)))[0, 0] == pytest.approx(1e-8)


@pytest.mark.parametrize("high", [4.0, 100.0])
@pytest.mark.parametrize(("mean", "std"), [(1.0, 0.0), (1.0, 0.1), (1.0, 5.0), (4.0, 3.0), (4.0, 1e-9)])
def test_numbers_that_are_cut_off_vary_less(mean, std, high):
    drawn = np.clip(mean + std * rng().standard_normal(400_000), 0.0, high)
    made = _cut(np.array([mean]), np.array([std**2]), np.array([high]))
    assert made[0] == pytest.approx(drawn.var(), rel=0.01, abs=1e-30)


def test_columns_that_cannot_be_seen_do_not_hide_a_component():
    """Three columns go together; with five constant ones beside them they still do, and noise is rarely found."""
    generator, found = rng(), []
    for seed in range(20):
        X = np.zeros((1_500, 9))
        X[:, :4] = generator.standard_normal((1_500, 4))
        noise = private_pca(X, 2, epsilon=1.0, delta=1e-6, scale="ranks", rng=seed).extras["stands_out"]
        X[:, 1:3] = X[:, :1] + 1.5 * X[:, 1:3]
        found.append(
            (noise, private_pca(X, 2, epsilon=1.0, delta=1e-6, scale="ranks", rng=seed).extras["stands_out"])
        )
    by_chance, real = np.array(found).T
    assert (by_chance > 0).sum() <= 4
    assert (real == 1).sum() >= 16


def test_variances_fall_and_components_stay_in_the_order_they_were_chosen_in():
    """The second one is of rare columns, whose taming is made up for: more may be told of it than of the first."""
    moment = np.diag([400.0] * 4 + [12.0] * 4)
    moment[:4, :4] += 320.0 * (1.0 - np.eye(4))
    moment[4:, 4:] += 11.5 * (1.0 - np.eye(4))
    firsts = []
    for seed in range(10):
        made = read_components(released(moment, 3.0, seed=seed), 3, rng(seed))
        assert (np.diff(made.variances) <= 0.0).all()
        firsts.append(np.linalg.norm(made.basis[:4, 0]))
    assert min(firsts) > 0.9


def test_a_share_of_the_variance_tells_what_its_components_capture():
    X = rng().standard_normal((2_000, 6))
    X[:, 1:3] += 2.0 * X[:, :1]
    release = private_pca(X, 0.5, epsilon=2.0, delta=1e-6, scale=True, rng=0)
    named = private_pca(X, release.subspace.dimension, epsilon=2.0, delta=1e-6, scale=True, rng=0)
    assert release.extras["captured_variance"] == pytest.approx(named.extras["captured_variance"], abs=0.03)
    assert "captures" in release.headline


@given(
    hnp.arrays(float, st.integers(1, 8), elements=st.floats(-9.0, 30.0, width=32)),
    hnp.arrays(float, 8, elements=st.floats(0.0, 1.0, width=32)),
    st.sampled_from([1.0, 8.0, 500.0]),
)
def test_variances_are_the_closest_possible_ones(numbers, other, total):
    """They fall, none is below zero, and together they are no more than the total; so no share is beyond 100 %."""
    made = _possible(numbers, total)
    assert (np.diff(made) <= 1e-9).all()
    assert (made >= 0.0).all()
    assert made.sum() <= total + 1e-9
    possible = np.sort(other[: len(made)])[::-1]  # any other that is possible lies beyond a right angle
    possible *= total / max(possible.sum(), total)
    assert (numbers - made) @ (possible - made) <= 1e-6
    assert (numbers - made) @ (possible * (total / max(possible.sum(), 1e-3)) - made) <= 1e-6 * total * len(made)


def test_shares_of_few_rows_are_shares():
    """Beyond the noise a correlation matrix may seem to have more variance than there is."""
    X = rng().standard_normal((60, 1)) + 0.3 * rng(1).standard_normal((60, 6))
    for seed in range(20):
        told = private_pca(X, 2, epsilon=0.3, delta=1e-6, scale=True, rng=seed).extras["explained_variance_ratio"]
        assert sum(told) <= 1.0 + 1e-12
