"""The private classifier: its sensitivity, its labels, and how good it is."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import privspan as ps
from privspan.audit.replay import spent_by
from privspan.audit.tables import classifier_pairs
from privspan.privacy import Budget
from privspan.rows.unit import Rows
from privspan.sums.classifier import (
    LONGEST,
    _moment,
    _products,
    classifier_outlook,
    moment_bounds,
    private_classifier,
    residual_bounds,
    residuals,
)

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64) | st.floats(-10, 10)
WEIGHTS = hnp.arrays(np.float64, (4, 3), elements=st.floats(-1e3, 1e3))
LABELS = hnp.arrays(np.float64, 2, elements=st.sampled_from([-1.0, 0.0, 1.0, 2.0]))


def people(n: int = 6_000, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes about means of their own, far from the origin."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    means = 2.5 * np.eye(3, d)
    return means[y] + rng.standard_normal((n, d)) + 20.0, y


# --- Privacy ---------------------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(hnp.arrays(np.float64, (2, 3), elements=NUMBERS), LABELS, WEIGHTS)
def test_one_record_moves_a_step_by_at_most_twice_the_length_of_a_residual(X, labels, weights):
    with np.errstate(all="ignore"):
        sums = [
            next(Rows(X[i : i + 1]).map_chunks(partial(_products, weights=weights), labels[i : i + 1]))
            for i in range(2)
        ]
    assert np.linalg.norm(sums[0] - sums[1]) <= residual_bounds(1, 3, 3).sensitivity


@settings(max_examples=300, deadline=None)
@given(hnp.arrays(np.float64, (2, 3), elements=NUMBERS))
def test_one_record_moves_the_second_moment_by_at_most_its_bound(X):
    with np.errstate(all="ignore"):
        moments = [next(Rows(X[i : i + 1]).map_chunks(_moment)) for i in range(2)]
    assert np.linalg.norm(moments[0] - moments[1]) / math.sqrt(2) <= moment_bounds(1, 3).sensitivity * (1 + 1e-12)


@settings(max_examples=400, deadline=None)
@given(hnp.arrays(np.float64, (5, 3), elements=st.floats(-1e300, 1e300)), st.integers(-1, 2))
def test_residuals_are_short_sum_to_zero_and_need_a_label(scores, label):
    made = residuals(scores, np.full(5, float(label)))
    assert np.linalg.norm(made, axis=1).max() <= LONGEST
    assert np.abs(made.sum(axis=1)).max() < 1e-12
    assert made.any() == (label >= 0 and not np.allclose(made, 0.0, atol=0.0))
    if label < 0:
        assert not made.any()


def test_the_bound_of_a_step_is_nearly_attained():
    weights = np.array([[30.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, -30.0, 0.0]])  # both records are clearly misjudged
    rows = np.array([[1.0, 0.0], [-1.0, 0.0]])
    sums = [
        next(Rows(rows[i : i + 1]).map_chunks(partial(_products, weights=weights), np.array([label])))
        for i, label in enumerate([1.0, 1.0])
    ]
    assert np.linalg.norm(sums[0] - sums[1]) > 0.8 * residual_bounds(1, 2, 3).sensitivity


def split_run(table, rng):
    return private_classifier(table[:, :-1], table[:, -1], classes=(0, 1, 2), **BUDGET, rng=rng)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", classifier_pairs())
def test_a_whole_run_spends_no_more_than_mu(name):
    spent = spent_by(split_run, *classifier_pairs()[name])
    assert spent <= Budget(**BUDGET).mu ** 2
    if name == "opposite rows":
        assert spent > 0.8 * Budget(**BUDGET).mu ** 2


def test_persons_count_once():
    X, y = people()
    ids = np.repeat(np.arange(3_000), 2)
    made = private_classifier(X, y, classes=(0, 1, 2), person=ids, **BUDGET, rng=0)
    assert made.cost.neighbours == "replace-one-person"
    assert (made.predict(X) == y).mean() > 0.7


# --- What it is good for ---------------------------------------------------------------------------------


def test_it_is_nearly_as_good_as_without_privacy_when_there_are_many_rows():
    X, y = people(40_000)
    made = private_classifier(X, y, classes=(0, 1, 2), **BUDGET, rng=0)
    assert made.outlook.startswith("Nearly as good")
    assert (made.predict(X) == y).mean() > 0.90
    assert np.abs(made.probabilities(X[:100]).sum(axis=1) - 1.0).max() < 1e-12
    assert not made.private
    assert {part.name.split(":")[0] for part in made.cost.parts} >= {"mean", "second moment", "step 1", "step 6"}


def test_a_subspace_is_all_that_is_looked_at():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((80, 3)))[0]
    inside, y = people(4_000, 3)
    X = inside @ axes.T + rng.standard_normal((4_000, 80))
    subspace = ps.Subspace(axes, offset=inside.mean(axis=0) @ axes.T)
    within = private_classifier(X, y, subspace=subspace, classes=(0, 1, 2), epsilon=0.3, delta=1e-6, rng=0)
    everywhere = private_classifier(X, y, classes=(0, 1, 2), epsilon=0.3, delta=1e-6, rng=0)
    right = [(made.predict(X) == y).mean() for made in (within, everywhere)]
    assert right[0] > right[1] + 0.05
    assert not any("mean" in part.name for part in within.cost.parts)
    with pytest.raises(ValueError, match="80 columns"):
        within.predict(X[:, :5])


def test_wide_tables_need_no_second_moment():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4_000)
    X = rng.standard_normal((4_000, 600)) + 4.0 * np.outer(y, np.eye(600)[0])
    made = private_classifier(X, y, classes=(0, 1), epsilon=3.0, delta=1e-6, rng=0)
    assert (made.predict(X) == y).mean() > 0.7
    assert "second moment" not in [part.name for part in made.cost.parts]


def test_a_setting_without_hope_is_said_to_be_so():
    assert classifier_outlook(100, 50, 2, **BUDGET).startswith("Hardly better")
    assert classifier_outlook(3_000, 50, 2, **BUDGET).startswith("Somewhat worse")
    with pytest.warns(ps.UselessPlanWarning, match="Hardly better than chance"):
        private_classifier(np.ones((60, 50)), np.zeros(60), classes=(0, 1), **BUDGET)


def test_a_card_tells_what_was_promised():
    X, y = people(1_000)
    made = private_classifier(X, y, classes=(0, 1, 2), **BUDGET, rng=0)
    assert "Not private" in made._repr_html_()
    assert "0, 1, 2" in made._repr_html_()
    assert repr(made).startswith("PrivateClassifier(3 classes, 4 columns")
