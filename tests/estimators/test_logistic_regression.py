"""The classifier for scikit-learn, and pipelines with one budget."""

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

import privspan as ps

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def people(n: int = 8_000) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.4, "yes", "no")
    X = rng.standard_normal((n, 6)) * [3, 2, 1, 1, 1, 1] + 3.0 * np.outer(y == "yes", np.eye(6)[0]) + 5.0
    return pd.DataFrame(X, columns=list("abcdef")), y


@pytest.mark.filterwarnings("ignore::privspan.NotPrivateWarning")
def test_it_is_the_function_and_keeps_to_scikit_learn():
    X, y = people()
    model = ps.PrivateLogisticRegression(["no", "yes"], **BUDGET, random_state=0)
    assert clone(model).fit(X, y).score(X, y) > 0.65
    model.fit(X, y)
    made = ps.private_classifier(X, y, classes=["no", "yes"], **BUDGET, rng=0)
    np.testing.assert_array_equal(model.release_.weights, made.weights)
    assert set(model.predict(X)) == {"no", "yes"} == set(model.classes_)
    assert model.predict_proba(X).shape == (8_000, 2)
    assert list(model.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[list("fedcba")])


def test_a_seed_is_told_and_a_missing_budget_refused_by_its_name_here():
    X, y = people(500)
    with pytest.warns(ps.NotPrivateWarning):
        ps.PrivateLogisticRegression(["no", "yes"], **BUDGET, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="`max_rows` must be"):
        ps.PrivateLogisticRegression(["no", "yes"], **BUDGET, max_rows=0).fit(X, y, person=np.arange(500))


def test_a_pipeline_shares_one_budget_and_spends_no_more():
    steps = ps.PrivatePCA(2, epsilon=9.0, delta=0.1), ps.PrivateLogisticRegression(["no", "yes"], **BUDGET)
    pipeline = ps.budgeted_pipeline(*steps, epsilon=1.0, delta=1e-6, shares=(1, 3))
    parts = [step for _, step in pipeline.steps]
    assert [part.epsilon for part in parts] == pytest.approx([0.25, 0.75])
    assert sum(Fraction(part.epsilon) for part in parts) <= 1
    assert sum(Fraction(part.delta) for part in parts) <= Fraction(1e-6)
    assert steps[0].epsilon == 9.0  # copies
    X, y = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(X, y)
    total = parts[0].release_.cost + parts[1].release_.cost
    assert total.epsilon_at(1e-6) <= 1.0
    assert parts[1].release_.private
    assert pipeline.score(X, y) > 0.5


def test_steps_without_a_budget_are_left_and_one_with_it_is_needed():
    doubled = FunctionTransformer(np.abs)
    pipeline = ps.budgeted_pipeline(doubled, ps.PrivatePCA(2, **BUDGET), epsilon=0.5, delta=1e-7)
    assert pipeline.steps[0][1] is doubled
    assert pipeline.steps[1][1].epsilon == 0.5
    with pytest.raises(ValueError, match="must have a private one"):
        ps.budgeted_pipeline(doubled, **BUDGET)
    with pytest.raises(ValueError, match="one number for each of the 1 private steps; got 2"):
        ps.budgeted_pipeline(ps.PrivatePCA(2, **BUDGET), **BUDGET, shares=(1, 2))


@pytest.mark.filterwarnings("ignore::privspan.NotPrivateWarning")
def test_persons_are_routed_through_a_pipeline():
    X, y = people()
    steps = ps.PrivatePCA(2, **BUDGET, random_state=0), ps.PrivateLogisticRegression(["no", "yes"], **BUDGET)
    pipeline = ps.budgeted_pipeline(*steps, epsilon=4.0, delta=1e-5)
    ids = np.repeat(np.arange(4_000), 2)
    pipeline.fit(X, y, privatepca__person=ids, privatelogisticregression__person=ids)
    assert {step.release_.cost.neighbours for _, step in pipeline.steps} == {"replace-one-person"}
