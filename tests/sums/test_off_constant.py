"""What a second moment of rows with a constant says of them about their mean: post-processing of what is revealed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import seeded

from privspan.rows.door import open_table
from privspan.sums.estimate import first_estimate
from privspan.sums.krylov import leading_pairs
from privspan.sums.lazy_gauss import LazyGauss, UnitGram
from privspan.sums.off_constant import OffConstant, beside


def people(d, k=3, offset=0.4, n=3_000, seed=0):
    """Return rows near a subspace through another point than zero, with a constant, and its directions."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((d, k)))[0]
    mean = offset * rng.standard_normal(d) / np.sqrt(d)
    mean -= axes @ (axes.T @ mean)
    rows = rng.standard_normal((n, k)) @ axes.T + mean + 0.01 * rng.standard_normal((n, d)) / np.sqrt(d)
    return np.column_stack([rows, np.full(n, 0.4)]), axes, mean


def revealed(rows, mu, seed=0):
    lazy = LazyGauss(UnitGram(open_table(rows).rows()), mu, seeded(seed), most_columns=300, most_passes=40)
    return lazy, OffConstant(lazy)


@pytest.mark.parametrize("d", [20, 300])  # all at once, and by and by
def test_without_noise_it_is_the_moment_about_the_mean(d):
    rows, axes, mean = people(d)
    lazy, seen = revealed(rows, 1e6)
    values, vectors = leading_pairs(seen, 3, 9, 6, np.random.default_rng(0))
    assert lazy.complete == (d == 20)
    assert np.linalg.norm(axes.T @ vectors[:-1], axis=0) == pytest.approx(np.ones(3), abs=1e-4)
    assert np.abs(vectors[-1]).max() < 1e-9  # no constant in what is looked for
    unit = rows / np.linalg.norm(rows, axis=1)[:, None]
    moment = unit.T @ unit
    moment -= np.outer(moment[-1], moment[-1]) / moment[-1, -1]
    np.testing.assert_allclose(values[:3], np.linalg.eigvalsh(moment)[:-4:-1], rtol=1e-3)
    found = seen.mean_direction(len(rows))
    np.testing.assert_allclose(found.basis[:-1, 0] / found.basis[-1, 0] * 0.4, mean, atol=2e-2)


@pytest.mark.parametrize("d", [20, 300])
def test_nothing_is_revealed_beyond_what_the_noise_provides_for(d):
    """The image is a function of what `LazyGauss` revealed, and of nothing else."""
    rows, _, _ = people(d)
    lazy, seen = revealed(rows, 0.5)
    leading_pairs(seen, 3, 9, 4, np.random.default_rng(0))
    assert seen.basis.shape[1] == lazy.basis.shape[1] - 1
    column = lazy.image @ lazy.basis[-1]
    again = lazy.image @ lazy.basis.T @ seen.basis
    again -= np.outer(column, again[-1]) / max(column[-1], 0.5 * lazy.noise * np.sqrt(d + 1))
    np.testing.assert_allclose(seen.image[:-1], again[:-1], atol=1e-6 * np.abs(again).max())


def test_a_mean_that_noise_hides_is_not_believed():
    for offset, mu, off in ((0.0, 0.2, 0.25), (0.0, 50.0, 0.05), (0.8, 50.0, 0.05)):
        rows, _, mean = people(20, offset=offset, seed=5)
        found = revealed(rows, mu)[1].mean_direction(len(rows))
        length = np.linalg.norm(found.basis[:-1, 0] / found.basis[-1, 0]) * 0.4
        assert abs(length - np.linalg.norm(mean)) <= off


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_beside_others_the_direction_keeps_the_span_and_its_precision(seed, k):
    rng = np.random.default_rng(seed)
    others = np.vstack([np.linalg.qr(rng.standard_normal((8, k)))[0], np.zeros(k)])
    rows, _, _ = people(8, seed=seed, n=50)
    mean = revealed(rows, 1.0)[1].mean_direction(50)
    joint = beside(first_estimate(others, np.full(k, 0.2), 1.0, 50), mean)
    np.testing.assert_allclose(joint.basis.T @ joint.basis, np.eye(k + 1), atol=1e-9)
    span = joint.basis @ (joint.basis.T @ mean.basis)
    np.testing.assert_allclose(span, mean.basis, atol=1e-9)
    assert joint.precision[-1, -1] == mean.precision[0, 0]
    assert np.all(joint.eigenvalues > 0.0)
