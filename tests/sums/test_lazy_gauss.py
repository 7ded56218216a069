"""Lazy Analyze Gauss: the law of its noise, its sensitivity along transcripts, and its linear algebra."""

import math

import numpy as np
import pytest
from folding import single_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import seeded

from privspan.audit.replay import spent_by
from privspan.privacy.noise import add_gaussian
from privspan.privacy.randomness import BitSource, open_streams
from privspan.privacy.run import Run
from privspan.rows.unit import CHUNK_ROWS, Rows
from privspan.sums.krylov import KrylovTuning, _above_rest, leading_pairs
from privspan.sums.lazy_gauss import Asked, LazyGauss, UnitGram
from privspan.sums.loadings import spiked_eigenvalues
from privspan.sums.looks import CONSTANT, AugmentedGram


def lazy_on(X, mu=1.0, rng=0, columns=1000, run=None):
    run = seeded(rng) if run is None else run
    return LazyGauss(UnitGram(Rows(X)), mu, run, most_columns=columns, most_passes=30)


class SameNoiseAgain(Run):
    """The planted fault: every draw of a given size returns the same numbers."""

    def gaussian(self, values, sigma, grid=None):
        return add_gaussian(values, sigma, BitSource(np.random.Philox(self.seed)), grid=grid)


def noise_matrices(draws, fresh=True):
    """Reveal the noise of an all-zero table through blocks that depend on earlier answers; (draws, d, d)."""
    d, matrices = 4, []
    for seed in range(draws):
        run = None if fresh else SameNoiseAgain(None, open_streams(0))
        if run is not None:
            run.seed = seed
        lazy = lazy_on(np.zeros((5, d)), rng=seed, run=run)
        first = np.ones((d, 1))
        second = lazy.product(first)  # adaptively chosen
        lazy.product(second)
        matrices.append(lazy.product(np.eye(d)))
    return np.array(matrices)


def largest_deviation(matrices):
    """Compare all second moments of the entries with those of the symmetric Gaussian matrix."""
    d = matrices.shape[1]
    rows, columns = np.triu_indices(d)
    flat = matrices[:, rows, columns] / np.where(rows == columns, math.sqrt(2.0), 1.0)
    return float(np.abs(flat.T @ flat / len(flat) - np.eye(len(rows))).max())


def test_law_is_that_of_the_dense_matrix():
    matrices = noise_matrices(300)
    np.testing.assert_allclose(matrices, matrices.transpose(0, 2, 1), atol=1e-9)
    # 55 second moments, each with standard deviation at most sqrt(2 / 300) = .082: 7 of them.
    assert largest_deviation(matrices) < 0.57


def test_reused_noise_is_caught():
    assert largest_deviation(noise_matrices(100, fresh=False)) > 0.8


def test_fresh_noise_in_every_block_and_every_strengthening():
    lazy = lazy_on(np.zeros((5, 300)))
    rng = np.random.default_rng(0)
    lazy.extend(rng.standard_normal((300, 3)))
    lazy.extend(rng.standard_normal((300, 3)))
    correlation = np.corrcoef(lazy.image[:, :3].ravel(), lazy.image[:, 3:].ravel())[0, 1]
    assert abs(correlation) < 0.2
    before = lazy.image.copy()
    lazy.strengthen(1.0)
    assert abs(np.corrcoef((lazy.image - 0.5 * before).ravel(), before.ravel())[0, 1]) < 0.2


@st.composite
def neighbours(draw):
    n, d = draw(st.integers(2, 6)), draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.standard_normal((n, d))
    other = X.copy()
    kind = draw(st.sampled_from(["random", "zero", "nan", "orthogonal", "axis"]))
    other[0] = {
        "random": rng.standard_normal(d),
        "zero": np.zeros(d),
        "nan": np.full(d, np.nan),
        "orthogonal": np.linalg.qr(np.c_[X[0], rng.standard_normal((d, 1))])[0][:, 1],
        "axis": np.eye(d)[0],
    }[kind]
    if kind == "axis":
        X[0] = np.eye(d)[1]
    return X, other, draw(st.integers(1, 3)), draw(st.integers(0, 10))


def krylov_run(block, seed, strengthen=None):
    """Ask for blocks until all is known; strengthen on the way ("midway") or afterwards ("at the end")."""

    def run(X, transcript):
        lazy = lazy_on(X, rng=transcript)
        rng = np.random.default_rng(seed)
        lazy.extend(rng.standard_normal((X.shape[1], block)))
        lazy.extend(lazy.image)
        if strengthen == "midway":
            lazy.strengthen(1.0)
        lazy.extend(lazy.image)
        lazy.extend(rng.standard_normal((X.shape[1], X.shape[1])))
        if strengthen == "at the end":
            lazy.strengthen(1.0)

    return run


@settings(max_examples=60)
@given(neighbours(), st.sampled_from([None, "midway", "at the end"]))
def test_all_answers_together_cost_no_more_than_mu(case, strengthen):
    X, other, block, seed = case
    spent = spent_by(krylov_run(block, seed, strengthen), X, other)
    assert spent <= (1.0 if strengthen is None else 2.0)


def test_the_bound_is_attained_by_orthogonal_records():
    X, other = np.eye(4)[[0, 1]], np.eye(4)[[2, 1]]
    spent = spent_by(krylov_run(2, 0), X, other)
    assert 0.999 < spent <= 1.0
    # A second look in another basis costs its own 1 and no more: lemma 4, strengthening.
    spent = spent_by(krylov_run(2, 0, "at the end"), X, other)
    assert 1.998 < spent <= 2.0


def test_answers_are_products_when_there_is_little_noise():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 12))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    lazy = lazy_on(X, mu=1e6)
    lazy.extend(rng.standard_normal((12, 2)))
    block = rng.standard_normal((12, 3))
    np.testing.assert_allclose(lazy.product(block), unit.T @ unit @ block, atol=1e-3)
    values, vectors = leading_pairs(lazy, 3, 5, 5, rng)
    np.testing.assert_allclose(values[:4], np.linalg.eigvalsh(unit.T @ unit)[::-1][:4], atol=1e-3)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-12)


NO_RULE = KrylovTuning(standing_out=0.0)


class AKnownMatrix:
    """A symmetric matrix that counts how often it is asked for products."""

    complete = False

    def __init__(self, matrix, noise, first):
        self._matrix, self.noise, self.asked = matrix, noise, 1
        self.basis = np.linalg.qr(first)[0]

    @property
    def image(self):
        return self._matrix @ self.basis

    def extend(self, block):
        fresh = block - self.basis @ (self.basis.T @ block)
        self.basis = np.linalg.qr(np.hstack([self.basis, fresh]))[0]
        self.asked += 1
        return True


def short_of_best(eigenvalues, spread, k, passes, **options):
    """Return by how much the sum of k eigenvalues is missed in a matrix with noise, and how often that was asked."""
    rng, d = np.random.default_rng(0), len(eigenvalues)
    axes, noise = np.linalg.qr(rng.standard_normal((d, d)))[0], rng.standard_normal((d, d)) / math.sqrt(2.0 * d)
    matrix = (axes * eigenvalues) @ axes.T + spread * (noise + noise.T)
    known = AKnownMatrix(matrix, spread / math.sqrt(d), rng.standard_normal((d, 10)))
    vectors = leading_pairs(known, k, 10, passes, rng, **options)[1]
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)
    return np.linalg.eigvalsh(matrix)[-k:].sum() - np.trace(vectors.T @ matrix @ vectors), known.asked


@pytest.mark.parametrize("strength", [3.0, 4.0, 6.0, 10.0, 30.0, 100.0])  # spreads of the noise
@pytest.mark.parametrize("rest", [0.0, pytest.param(400.0, marks=pytest.mark.slow)])
def test_a_last_step_that_asks_for_nothing_turns_vectors_to_where_passes_would(strength, rest):
    eigenvalues = np.full(400, rest)
    eigenvalues[:3] += 20.0 * strength
    trace = {"trace": eigenvalues.sum()}
    for passes in (1, 2, 3):
        options = {"small": 0.0, "tuning": NO_RULE}
        turned, plain = (short_of_best(eigenvalues, 20.0, 3, passes, **options, **more)[0] for more in (trace, {}))
        assert turned < max(0.6 * plain, 1e-9)
    turned, plain = (short_of_best(eigenvalues, 20.0, 3, 30, small=0.1, **more) for more in (trace, {}))
    assert plain[1] - 2 <= turned[1] < plain[1]  # a pass is saved, or two
    # What is lost is a fiftieth of what noise loses, at most: its squared spread over the gap, for each direction.
    assert turned[0] < 2e-2 * 3 * 20.0 / strength


def test_directions_at_the_edge_of_the_noise_get_all_passes():
    """Where a value hardly exceeds what noise makes of nothing, a residual turns its direction most."""
    eigenvalues = np.zeros(400)
    eigenvalues[:3] = 20.0 * 1.3
    careful, hasty = (short_of_best(eigenvalues, 20.0, 3, 30, small=small, trace=0.0) for small in (0.1, 0.4))
    assert careful[1] > hasty[1]
    assert careful == short_of_best(eigenvalues, 20.0, 3, 30, small=0.1, trace=0.0, tuning=NO_RULE)


@pytest.mark.parametrize("spread", [2.0, 10.0, 40.0])
def test_the_iteration_goes_on_where_other_directions_are_as_strong(spread):
    """The last step does not turn a direction away from one that is nearly as strong, so passes have to."""
    eigenvalues = np.concatenate([np.linspace(200.0, 100.0, 150), np.ones(250)])
    turned, plain = (
        short_of_best(eigenvalues, spread, 5, 30, small=0.1, **more) for more in ({"trace": eigenvalues.sum()}, {})
    )
    assert turned[1] == plain[1]
    assert turned[0] < plain[0]


def test_directions_that_do_not_stand_out_are_not_turned():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((300, 300))
    known = AKnownMatrix(noise + noise.T, 1.0, rng.standard_normal((300, 10)))
    plain, turned = (leading_pairs(known, 2, 10, 0, rng, trace=trace)[1] for trace in (None, 0.0))
    np.testing.assert_array_equal(plain, turned)
    # The mean of the others is not below zero, whatever noise makes of the values.
    np.testing.assert_array_equal(_above_rest(np.array([3.0, 2.0]), 1.0, 10), [3.0, 2.0])


class TwoOf:
    """A source with known sizes and errors, for the formula of lemma 5."""

    size, largest, moments, empty = 2.0, 3.0, 1, 1.5

    def __init__(self, n, d):
        self.shape = (n, d)

    def chunk_error(self, columns):
        return 1e-5 * columns


@pytest.mark.parametrize(("d", "columns", "passes"), [(300, 40, 4), (300, 500, 9), (5_000, 200, 25)])
def test_what_is_charged_is_the_formula_of_lemma_5(d, columns, passes):
    bounds = Asked(TwoOf(1_000, d), most_columns=columns, most_passes=passes)._bounds
    m, u = min(columns, d), 2.0**-53
    defect = 2.0**-26 + 2 * m * (d + 2) * u
    project = 1.02 * CHUNK_ROWS * 2.0 * (math.sqrt(m) * (2 * d + m) * u + 4 * u)
    assert bounds.sensitivity == pytest.approx(2.0 * (1.0 + 9.0 * math.sqrt(passes) * defect), rel=1e-12)
    assert bounds.chunk_error == pytest.approx(1e-5 * m + math.sqrt(passes) * project, rel=1e-9)
    assert bounds.entries >= m * (d + m)
    assert bounds.largest >= 1_000 * 3.0


def test_sources_charge_for_every_column_and_every_row_of_a_chunk():
    d, a, u, single = 1_000, CONSTANT, 2.0**-53, 2.0**-24
    double, rows = Rows(np.zeros((2, d))), single_rows(np.zeros((2, d), dtype=np.float32), np.zeros(d))
    for columns in (0, 1, 10, 100):
        root = math.sqrt(columns)
        exact = CHUNK_ROWS * (root * (d + 4) * u + (CHUNK_ROWS + 4) * u)
        assert UnitGram(double).chunk_error(columns) >= exact
        exact = CHUNK_ROWS * (1 + a * a) * (root * (d + 9) * u + (CHUNK_ROWS + 8) * u)
        assert AugmentedGram(double, [np.ones(2)]).chunk_error(columns) >= exact
        if columns:  # whole matrices are formed in float64
            exact += (1 + a * a) * (root * (d + 8) * single + 128 * 136 * single)
        assert AugmentedGram(rows, [np.ones(2)]).chunk_error(columns) >= exact


def test_the_basis_stays_orthonormal_and_within_its_room():
    lazy = lazy_on(np.random.default_rng(0).standard_normal((30, 400)), columns=20)
    rng = np.random.default_rng(1)
    assert lazy.extend(rng.standard_normal((400, 8)))
    assert lazy.extend(np.hstack([lazy.basis[:, :2], lazy.image]))  # partly old directions
    assert lazy.extend(rng.standard_normal((400, 9)))
    assert lazy.basis.shape[1] == 20
    assert not lazy.extend(rng.standard_normal((400, 1)))
    np.testing.assert_allclose(lazy.basis.T @ lazy.basis, np.eye(20), atol=1e-12)


def test_a_basis_that_is_not_orthonormal_is_not_used(monkeypatch):
    lazy = lazy_on(np.eye(6))
    monkeypatch.setattr(np.linalg, "qr", lambda block: (block, None))
    assert not lazy.extend(np.ones((6, 2)))
    assert lazy.basis.shape[1] == 0


def test_strengthening_halves_the_variance():
    lazy = lazy_on(np.zeros((5, 300)))
    single = lazy.noise
    lazy.extend(np.random.default_rng(0).standard_normal((300, 5)))
    lazy.strengthen(1.0)
    assert lazy.noise == pytest.approx(single / math.sqrt(2.0), rel=1e-6)
    # 1500 draws: the sample deviation is off by more than 12 % with probability below 1e-9.
    assert lazy.image.std() == pytest.approx(lazy.noise, rel=0.12)


# ---- Every way through the matrix: one symmetric matrix, seen in one basis ---------------------------------------


def first_half(lazy):
    """Reveal half of the directions, the second ones chosen by what the first ones showed."""
    d = lazy.basis.shape[0]
    lazy.extend(np.random.default_rng(1).standard_normal((d, max(d // 4, 1))))
    lazy.extend(lazy.image)


def the_rest(lazy):
    lazy.product(np.eye(lazy.basis.shape[0]))


COURSES = {  # what is done with the matrix, before and after it is strengthened
    "whole": (LazyGauss.reveal_all, None),
    "by and by": (first_half, None),
    "by and by, all of it": (lambda lazy: (first_half(lazy), the_rest(lazy)), None),
    "whole, strengthened": (LazyGauss.reveal_all, the_rest),
    "by and by, strengthened": (first_half, lambda lazy: None),
    "by and by, strengthened, the rest": (first_half, the_rest),
    "by and by, all of it, strengthened": (lambda lazy: (first_half(lazy), the_rest(lazy)), the_rest),
    "strengthened, then whole": (lambda lazy: None, LazyGauss.reveal_all),
}


def course_on(lazy, course, mu=1.5):
    before, after = COURSES[course]
    before(lazy)
    if after is not None:
        lazy.strengthen(mu)
        after(lazy)
    return lazy


@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("d", [2, 7, 255, 257])
def test_the_image_is_that_of_one_symmetric_matrix(course, d):
    """Hardly any noise: the image is A @ basis, whichever way it was put together."""
    X = np.random.default_rng(0).standard_normal((40, d))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    lazy = course_on(lazy_on(X, mu=1e6), course, mu=1e6)
    np.testing.assert_allclose(lazy.image, unit.T @ (unit @ lazy.basis), atol=1e-4)
    noisy = course_on(lazy_on(X, rng=d), course)
    within = noisy.basis.T @ noisy.image
    np.testing.assert_allclose(within, within.T, atol=1e-9 * np.abs(within).max())


@pytest.mark.parametrize("course", COURSES)
def test_every_course_has_the_law_of_dense_analyze_gauss(course):
    """The noise of what is known, completed: all second moments, in standard and in turned coordinates."""
    d, draws, matrices = 3, 400, []
    for seed in range(draws):
        lazy = course_on(lazy_on(np.zeros((2, d)), rng=seed), course)
        matrices.append(lazy.product(np.eye(d)) / lazy.noise)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0]
    for coordinates in (np.array(matrices), turn.T @ np.array(matrices) @ turn):
        # 21 second moments in two systems and eight courses, each with standard deviation at most sqrt(2 / 400); one
        # is off by six and a half of these with probability below 1e-7 (chi-square with 400 degrees of freedom).
        assert largest_deviation(coordinates) < 6.5 * math.sqrt(2.0 / draws)
    strengthened = COURSES[course][1] is not None
    assert lazy.noise == pytest.approx(1.0 / math.sqrt(1.0 + 1.5**2 * strengthened), rel=1e-5)


def test_an_average_of_images_in_two_bases_is_caught(monkeypatch):
    """The planted fault: the second look of a complete matrix stays in standard coordinates."""
    whole = LazyGauss._whole
    monkeypatch.setattr(LazyGauss, "_whole", lambda self, level: whole(self, level) @ self.basis.T)
    lazy = course_on(lazy_on(np.zeros((2, 7))), "by and by, all of it, strengthened")
    within = lazy.basis.T @ lazy.image
    assert np.abs(within - within.T).max() > 0.1


def test_spiked_eigenvalues_undo_the_noise():
    d, noise = 400, 1.0
    truth = np.array([100.0, 50.0])
    shown = truth + noise**2 * d / truth
    np.testing.assert_allclose(spiked_eigenvalues(shown, noise, d), truth, rtol=1e-12)
    assert spiked_eigenvalues(np.array([39.0]), noise, d)[0] == 20.0
