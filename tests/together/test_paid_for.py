"""What is paid for is never lost to a warning: not where they are errors, not where a ledger cannot be ended."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import privspan as ps
from privspan.ledger import Ledger
from privspan.privacy import WeakPrivacyWarning
from privspan.privacy.call import Call

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(3000, 6))
FEW = X[:60]  # too few to find where the columns lie
BUDGET = {"epsilon": 2.0, "delta": 1e-6}


class Ends(Ledger):
    """A ledger whose entries cannot be ended."""

    def end(self, *_: Any) -> None:
        raise OSError(5, "Input/output error")


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def toy(*, epsilon: float, delta: float, ledger: object = None, warn_first: bool = False, fail: bool = False) -> str:
    """Stand for a private function that warns before its first look, after it, or fails then."""
    with Call("toy", epsilon, delta, None, ledger) as call:
        if warn_first:
            call.warn("public")
        call.begin()
        call.warn("found")
        call.warn("found, too", RuntimeWarning)
        if fail:
            raise ZeroDivisionError
        return call.finish("paid for")


# --- The door ------------------------------------------------------------------------------------------------


def test_a_warning_after_the_first_look_carries_the_result(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "b.json")
    with pytest.raises(UserWarning, match=r"^found$") as told:
        toy(**BUDGET, ledger=ledger)
    assert told.value.release == "paid for"
    assert [one.state for one in ledger.account("people").entries] == ["finished"]


def test_a_warning_before_the_first_look_costs_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "b.json")
    with pytest.raises(UserWarning, match=r"^public$"):
        toy(**BUDGET, ledger=ledger, warn_first=True)
    assert ledger.accounts() == {}


def test_all_warnings_come_in_turn_from_the_line_of_the_caller() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert toy(**BUDGET, warn_first=True) == "paid for"
    assert [str(one.message) for one in caught] == ["public", "found", "found, too"]
    assert {one.filename for one in caught} == {__file__}


def test_a_warning_does_not_hide_a_failure() -> None:
    with pytest.raises(ZeroDivisionError):
        toy(**BUDGET, fail=True)


# --- Functions and estimators -----------------------------------------------------------------------------------


def test_an_estimator_is_fitted_when_it_warns_of_what_it_found(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "b.json")
    scaler = ps.PrivateStandardScaler(**BUDGET, ledger=ledger)
    with pytest.raises(ps.NoSpreadWarning) as told:
        scaler.fit(FEW)
    assert told.value.release is scaler.release_
    assert scaler.transform(FEW).shape == FEW.shape
    assert [one.state for one in ledger.account("people").entries] == ["finished"]


def test_a_share_that_is_not_reached_is_told_with_the_release() -> None:
    noise = rng.normal(size=(3000, 6))
    with pytest.raises(UserWarning, match="do not hold") as told:
        ps.private_pca(noise, 0.99, **BUDGET, max_components=1)
    assert told.value.release.subspace.dimension == 1
    model = ps.PrivatePCA(0.99, **BUDGET, max_components=1)
    with pytest.raises(UserWarning, match="do not hold"):
        model.fit(noise)
    assert model.transform(noise).shape == (3000, 1)
    assert model.release_.cost.epsilon == 2.0


def test_whitening_that_cannot_be_done_is_told_with_the_fit() -> None:
    warnings.simplefilter("ignore", ps.UselessPlanWarning)
    model = ps.PrivatePCA(6, **BUDGET | {"epsilon": 0.01}, whiten=True)
    with pytest.raises(ps.NoSpreadWarning, match="not whitened") as told:
        model.fit(X[:40])
    assert told.value.release is model.release_
    assert model.components_.shape == (6, 6)


def test_a_seed_is_told_with_the_release() -> None:
    model = ps.PrivatePCA(2, **BUDGET, random_state=0)
    with pytest.raises(ps.NotPrivateWarning) as told:
        model.fit(X)
    assert told.value.release is model.release_


def test_an_abstention_is_told_with_the_release() -> None:
    model = ps.PrivatePCA(2, **BUDGET, method="stable")
    with pytest.raises(ps.AbstentionWarning) as told:
        model.fit(rng.normal(size=(200, 6)))
    assert told.value.release is model.release_
    assert model.succeeded_ is False


def test_a_pipeline_keeps_what_it_paid_for() -> None:
    warnings.simplefilter("ignore", ps.TransformedRowsWarning)
    scaler = ps.PrivateStandardScaler(**BUDGET)
    with pytest.raises(ps.NoSpreadWarning) as told:
        make_pipeline(scaler, "passthrough").fit(FEW)
    assert told.value.release.cost.epsilon == 2.0


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"epsilon": 20.0}, WeakPrivacyWarning),
        ({"epsilon": 0.001}, ps.UselessPlanWarning),
    ],
)
def test_what_is_public_is_told_before_anything_is_spent(tmp_path: Path, options: Any, kind: type[Warning]) -> None:
    ledger = Ledger(tmp_path / "b.json")
    with pytest.raises(kind):
        ps.PrivatePCA(2, **BUDGET | options, ledger=ledger).fit(X[:300])
    assert ledger.accounts() == {}


# --- The ledger --------------------------------------------------------------------------------------------------


def test_a_spend_that_cannot_be_ended_is_told_with_the_release(tmp_path: Path) -> None:
    ledger = Ends(tmp_path / "b.json")
    with pytest.raises(RuntimeWarning, match="stays recorded as begun in the ledger") as told:
        ps.private_pca(X, 2, **BUDGET, ledger=ledger)
    assert told.value.release.subspace.dimension == 2
    model = ps.PrivatePCA(2, **BUDGET, ledger=ledger)
    with pytest.raises(RuntimeWarning, match="stays recorded"):
        model.fit(X)
    assert model.components_.shape == (2, 6)
    assert [one.state for one in ledger.account("people").entries] == ["begun", "begun"]


def test_a_block_of_ones_own_ends_before_the_ledger_warns(tmp_path: Path) -> None:
    found = None
    with (
        pytest.raises(RuntimeWarning, match="stays recorded"),
        Ends(tmp_path / "b.json").spending("people", 1.0, 1e-6),
    ):
        found = ps.private_pca(X, 2, **BUDGET)
    assert found is not None
