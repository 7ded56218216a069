"""``ledger=``: every private function and estimator charges before its first look, and only then."""

from __future__ import annotations

import inspect
import json
import pickle
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from public_functions import SPENDING
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import privspan as ps
from privspan.ledger import DamagedLedgerError, Ledger, OverspendError, Page
from privspan.privacy import PERSONS
from privspan.rows import RowSource, open_rows

BUDGET = {"epsilon": 0.5, "delta": 1e-6}
X = np.random.default_rng(0).standard_normal((400, 6)) * [3.0, 2.0, 0.1, 0.1, 0.1, 0.1]
PLANE = ps.Subspace(np.eye(6, 2))
PLENTY = {"epsilon": 5.0, "delta": 1e-6}  # for private scales of so few rows

FUNCTIONS: dict[str, Any] = {
    "private_pca": lambda T, **o: ps.private_pca(T, **{"k": 2} | o),
    "private_pca, auto": lambda T, **o: ps.private_pca(T, **{"k": "auto"} | o),
    "private_pca, scaled": lambda T, **o: ps.private_pca(T, **{"k": 2, "scale": True, "bounds": (-9, 9)} | o),
    "private_pca, robust": lambda T, **o: ps.private_pca(T, **{"k": 2, "robust": True} | o),
    "private_pca, share": lambda T, **o: ps.private_pca(T, **{"k": 0.5} | o),
    "private_subspace": lambda T, **o: ps.private_subspace(T, **{"k": 2} | o),
    "private_subspace, analyze-gauss": lambda T, **o: ps.private_subspace(
        T, **{"k": 2, "method": "analyze-gauss"} | o
    ),
    "private_mean": lambda T, **o: ps.private_mean(T, subspace=PLANE, **o),
    "private_regression": lambda T, **o: ps.private_regression(
        T, X[:, 0], subspace=PLANE, **{"norm_bound": 2.0, "target_bound": 2.0} | o
    ),
    "private_classifier": lambda T, **o: ps.private_classifier(T, np.arange(len(T)) % 2, classes=[0, 1], **o),
    "private_scales": lambda T, **o: ps.private_scales(T, **{"bounds": (-9.0, 9.0)} | o),
    "private_score_map": lambda T, **o: ps.private_score_map(T, PLANE, **o),
    "exact_subspace": lambda T, **o: ps.exact_subspace(T, **{"k": 2} | o),
    "stable_subspace": lambda T, **o: ps.stable_subspace(T, **{"k": 2} | o),
    "approximate_subspace": lambda T, **o: ps.approximate_subspace(T, **{"k": 2} | o),
    "approximate_subspace, auto": lambda T, **o: ps.approximate_subspace(T, **{"k": "auto", "max_components": 2} | o),
    "boosted_subspace": lambda T, **o: ps.boosted_subspace(T, **{"k": 2, "alpha": 0.5, "beta": 0.31} | o),
}


def estimator(cls: Any, *arguments: Any, labels: bool = False, **defaults: Any) -> Any:
    def fit(T: Any, **options: Any) -> Any:
        options = {_NAMES.get(name, name): value for name, value in options.items()}
        y = [np.arange(len(T)) % 2] if labels else []
        return cls(*arguments, **defaults | options).fit(T, *y)

    return fit


_NAMES = {"rng": "random_state"}
_CALLED = {"PrivateLogisticRegression": "private_classifier"}  # which it calls as anybody would
ESTIMATORS: dict[str, Any] = {
    "PrivatePCA": estimator(ps.PrivatePCA, 2),
    "PrivateLogisticRegression": estimator(ps.PrivateLogisticRegression, classes=[0, 1], labels=True),
    "PrivateStandardScaler": estimator(ps.PrivateStandardScaler, bounds=(-9.0, 9.0)),
    "PrivateSubspace": estimator(ps.PrivateSubspace, 2),
    "PrivateSubspace, exact": estimator(ps.PrivateSubspace, 2, method="exact"),
    "PrivateSubspace, approximate": estimator(ps.PrivateSubspace, 2, method="approximate"),
    "PrivateSubspace, boosted": estimator(
        ps.PrivateSubspace, 2, method="boosted", options={"alpha": 0.5, "beta": 0.31}
    ),
}
CALLS = FUNCTIONS | ESTIMATORS


@pytest.fixture(autouse=True)
def no_news_but_refusals():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


class Watched(RowSource):
    """A table that notes what the ledger holds when it is first read."""

    def __init__(self, path: Path) -> None:
        self.shape, self.dtype, self._path = X.shape, X.dtype, path
        self.seen: list[int] = []

    def _take(self, numbers: Any) -> Any:
        self.seen.append(len(entries(self._path)))
        return X[numbers]


def entries(path: Path) -> list[Any]:
    return [entry for account in Ledger(path).accounts().values() for entry in account.entries]


def test_whatever_is_public_and_spends_has_a_ledger() -> None:
    spending = {name.rsplit(".", 1)[-1] for name in SPENDING} & set(ps.__all__)
    assert spending == {call.partition(",")[0] for call in CALLS}
    for name in spending:
        assert "ledger" in inspect.signature(getattr(ps, name)).parameters, name


# --- When it is charged ----------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
def test_the_charge_is_on_disk_before_the_first_look(call: str, tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    table = Watched(path)
    CALLS[call](table, **PLENTY, ledger=path)
    assert table.seen, "nothing was read"
    assert set(table.seen) == {1}
    (entry,) = entries(path)
    assert (entry.epsilon, entry.delta) == (5.0, 1e-6)
    assert entry.state in ("finished", "abstained")
    name = call.partition(",")[0]
    assert entry.what.startswith(_CALLED.get(name, name))


@pytest.mark.parametrize("call", CALLS)
def test_a_spend_above_the_limit_is_refused_before_anything_is_read_or_written(call: str, tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    ledger = Ledger(path)
    ledger.set_limit("people", "1", "1e-5")
    before, table = path.read_bytes(), Watched(path)
    with pytest.raises(OverspendError, match="of which epsilon 1"):
        CALLS[call](table, **PLENTY, ledger=ledger)
    assert table.seen == []
    assert path.read_bytes() == before


WRONG = [{"k": 0}, {"k": 99}, {"k": "three"}, {"rng": "seed"}, {"rng": -1}, {"epsilon": -1.0}, {"delta": 2.0},
         {"norm_bound": -1.0}, {"method": "magic"}, {"bins": 0}, {"ranges": 3}, {"components": (0, 7)}, {"alpha": 5},
         {"target_bound": 0.0}, {"bounds": {"nobody": (0, 1)}}, {"units": {99: 1.0}}, {"max_components": 0},
         {"options": {"magic": 1}}, {"block_size": 0}, {"gamma": 3.0}, {"names": ["a"]}, {"whiten": "yes"},
         {"n_components": 99}, {"max_work": -1}, {"aggregate": "all"}, {"unknown": 1}]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_refusals_from_public_facts_cost_nothing(call: str, tmp_path: Path) -> None:
    """Parameters that make no sense, and tables that do not fit: no charge, not even a file."""
    path, refused = tmp_path / "budget.json", 0
    tables = {"too few rows": X[:1], "one dimension": X[:, 0], "text": np.array([["a"] * 6] * 400)}
    tables |= {"other columns": np.ones((400, 7)), "sparse": sparse.csr_array(X), "table": X}
    for about, table in tables.items():
        for wrong in WRONG if about == "table" else [{}]:
            try:
                CALLS[call](table, **PLENTY | {"ledger": path} | wrong)
            except (TypeError, ValueError):
                refused += 1
                assert not path.exists(), (about, wrong)
            path.unlink(missing_ok=True)
    assert refused >= 8


class Unasked(Page):
    """A page that has nothing against a spend, as if the others had not spent yet."""

    def check(self, *_: object, **__: object) -> None: ...


def test_a_refusal_while_others_spent_meanwhile(tmp_path: Path) -> None:
    """The limit is asked twice: at the door, and when the charge is written."""
    page = Unasked(Ledger(tmp_path / "b.json"), "survey", limit_epsilon=1)
    with page.spending(0.75, 1e-6):
        pass
    table = Watched(page.ledger.path)
    with pytest.raises(OverspendError):
        ps.private_mean(table, **BUDGET, ledger=page)
    assert table.seen == []


def test_an_interrupted_call_has_spent(tmp_path: Path) -> None:
    path = tmp_path / "b.json"

    class Interrupted(Watched):
        def _take(self, numbers: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ps.private_mean(Interrupted(path), **BUDGET, ledger=path)
    assert [entry.state for entry in entries(path)] == ["interrupted"]
    assert Ledger(path).account("people").spent.epsilon == 0.5


KILLED = """
import os, signal, sys
import numpy as np
import privspan as ps
from privspan.privacy import PERSONS
from privspan.rows import RowSource, open_rows

class Deadly(RowSource):
    shape, dtype = (400, 6), np.dtype(float)
    def _take(self, numbers):
        os.kill(os.getpid(), signal.SIGKILL)

ps.private_mean(Deadly(), epsilon=0.5, delta=1e-6, ledger=sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing kills like this here")
def test_a_killed_process_has_spent_and_the_next_one_knows(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    Ledger(path).set_limit("people", "0.6", "1e-5")
    killed = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILLED), str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [entry.state for entry in entries(path)] == ["begun"]
    with pytest.raises(OverspendError):
        ps.private_mean(X, **BUDGET, ledger=path)


# --- Refits, clones, folds -------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
def test_gaussian_calls_are_charged_in_mu_and_others_plainly(call: str, tmp_path: Path) -> None:
    """What the ledger was told beforehand is what the release claims afterwards, and never less."""
    path = tmp_path / "b.json"
    made = CALLS[call](X, **PLENTY, ledger=path)
    (entry,) = entries(path)
    cost = (
        getattr(made, "release_", made).cost
        if hasattr(getattr(made, "release_", made), "cost")
        else made.scales_.cost
    )
    assert (entry.mu is None) == (cost.mu is None)
    plain = ("exact", "stable", "approximate", "boosted")
    assert (entry.mu is None) == call.removeprefix("PrivateSubspace, ").startswith(plain)
    if entry.mu is not None:
        assert (entry.mu, entry.aside) == pytest.approx(cost.in_mu(), rel=1e-12)
        assert entry.mu >= cost.mu


@pytest.mark.parametrize(("fits", "epsilon"), [(10, 3.53), (52, 9.10)])
def test_many_fits_of_the_library_cost_what_they_compose_to(fits: int, epsilon: float, tmp_path: Path) -> None:
    page = Ledger(tmp_path / "b.json").page("survey")
    for _ in range(fits):
        ps.private_mean(X, epsilon=1.0, delta=1e-6, ledger=page)
    assert page.account().spent.epsilon == pytest.approx(epsilon, abs=0.006)
    assert page.account().spent.delta == 1e-6


def test_a_limit_with_a_delta_allows_more_refits(tmp_path: Path) -> None:
    page = Ledger(tmp_path / "b.json").page("survey", limit_epsilon=1, limit_delta=1e-5)
    model = ps.PrivatePCA(2, **BUDGET, ledger=page)
    for _ in range(4):
        model.fit(X)
    with pytest.raises(OverspendError, match=r"a Gaussian fit of epsilon 0\.\d+ at delta 5e-06 is left"):
        model.fit(X)
    assert len(page.account().entries) == 4


def test_refits_add_up(tmp_path: Path) -> None:
    page = Ledger(tmp_path / "b.json").page("survey", limit_epsilon=1)
    model = ps.PrivatePCA(2, **BUDGET, ledger=page)
    model.fit(X).fit(X)
    assert page.account().spent.epsilon == 1.0
    with pytest.raises(OverspendError, match="epsilon 0 is left"):
        model.fit(X)
    assert len(page.account().entries) == 2


@pytest.mark.parametrize("kind", ["path", "ledger", "page"])
def test_clones_pickles_and_folds_share_one_account(kind: str, tmp_path: Path) -> None:
    book = Ledger(tmp_path / "b.json")
    given: Any = {"path": str(book.path), "ledger": book, "page": book.page("people")}[kind]
    model = ps.PrivatePCA(2, **BUDGET, ledger=given)
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.get_params() == model.get_params()
        copy.fit(X)
    scaler = ps.PrivateStandardScaler(**PLENTY, bounds=(-9, 9), ledger=given)
    pipeline = make_pipeline(scaler, model, LogisticRegression())
    cross_val_score(pipeline, X, X[:, 0] > 0, cv=3)
    account = book.account("people")
    assert sorted(entry.epsilon for entry in account.entries) == [0.5] * 5 + [5.0] * 3


def test_a_cross_validation_stops_where_the_limit_is(tmp_path: Path) -> None:
    page = Ledger(tmp_path / "b.json").page("people", limit_epsilon=1)
    pipeline = make_pipeline(ps.PrivatePCA(2, **BUDGET, ledger=page), LogisticRegression())
    with pytest.raises(OverspendError):
        cross_val_score(pipeline, X, X[:, 0] > 0, cv=3, error_score="raise")
    assert page.account().spent.epsilon == 1.0


def test_a_seeded_run_is_charged_and_marked(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    ps.private_pca(X, 2, **BUDGET, rng=0, ledger=path)
    assert [entry.what for entry in entries(path)] == ["private_pca, k = 2, seeded and so not private"]


@pytest.mark.slow
def test_the_ledger_changes_no_bit_of_the_result(tmp_path: Path) -> None:
    for call in CALLS.values():
        plain, charged = call(X, **PLENTY, rng=0), call(X, **PLENTY, rng=0, ledger=tmp_path / "b.json")
        plain, charged = (getattr(made, "release_", made) for made in (plain, charged))
        assert ps.audit.releases.released_numbers(plain) == pytest.approx(
            ps.audit.releases.released_numbers(charged), rel=0, abs=0, nan_ok=True
        )


# --- What it takes ---------------------------------------------------------------------------------------


def test_which_page_a_path_means(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    ps.private_mean(X, **BUDGET, norm_bound=1.0, ledger=str(path))
    assert list(Ledger(path).accounts()) == ["people"]
    other = tmp_path / "c.json"
    with Ledger(other).spending("survey", 0.1, 1e-6):
        pass
    ps.private_mean(X, **BUDGET, norm_bound=1.0, ledger=Ledger(other))
    assert [len(account.entries) for account in Ledger(other).accounts().values()] == [2]  # the only one there is
    Ledger(other).set_limit("others", 1, 1e-5)
    with pytest.raises(ValueError, match="holds 2 data sets"):
        ps.private_mean(X, **BUDGET, norm_bound=1.0, ledger=other)
    ps.private_mean(X, **BUDGET, norm_bound=1.0, ledger=Ledger(other).page("others"))
    assert Ledger(other).account("others").spent.epsilon == 0.5


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="`ledger` must be a path"):
        ps.private_mean(X, **BUDGET, ledger=3)
    damaged = tmp_path / "b.json"
    damaged.write_text(json.dumps({"format": "privspan.ledger"}))
    with pytest.raises(DamagedLedgerError):
        ps.private_mean(X, **BUDGET, ledger=damaged)


def test_ledgers_are_known_by_their_file(tmp_path: Path) -> None:
    one, same, other = Ledger(tmp_path / "b.json"), Ledger(f"{tmp_path}/./b.json"), Ledger(tmp_path / "c.json")
    assert one == same != other
    assert hash(one) == hash(same)
    assert one.page("x") == same.page("x") != one.page("y")
    assert repr(one) == f"Ledger({str(tmp_path / 'b.json')!r})"
    assert (one == 3) is False


# --- For whom -------------------------------------------------------------------------------------------------------

IDS = np.arange(400) // 2


@pytest.mark.parametrize("call", FUNCTIONS)
def test_every_function_charges_for_whom_it_promises(call: str, tmp_path: Path) -> None:
    made = FUNCTIONS[call](X, **PLENTY, ledger=tmp_path / "b.json", person=IDS)
    (entry,) = entries(tmp_path / "b.json")
    assert (entry.neighbours, entry.unit) == (made.cost.neighbours, "person") == (PERSONS, "person")


@pytest.mark.parametrize("fit", [ps.private_mean, lambda T, person=None, **o: _fit(T, person, o)])
def test_every_entry_says_for_whom_the_promise_is(fit, tmp_path: Path) -> None:
    """Relation and unit as the release has them, however the ids are given."""
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(patient=IDS)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    visits = open_rows(tmp_path / "visits.csv", person="patient")
    for number, (table, person, unit) in enumerate(
        (
            (X, None, "row"),
            (frame.rename(columns={"patient": "person"}), None, "row"),  # a column of that name is a number
            (X, IDS, "person"),
            (X, pd.Series(IDS), "person"),
            (X, pd.Series(IDS, name="patient"), "patient"),
            (frame, "patient", "patient"),
            (visits, None, "patient"),
        )
    ):
        path = tmp_path / f"{number}.json"
        made = fit(table, **BUDGET, ledger=path, person=person)
        (entry,) = entries(path)
        assert entry.unit == unit
        assert entry.neighbours == getattr(made, "release_", made).cost.neighbours


def _fit(table: Any, person: Any, options: Any) -> Any:
    return ps.PrivatePCA(2, **options).fit(table, person=person)


def test_spends_for_rows_and_for_persons_are_not_added_up(tmp_path: Path) -> None:
    page = Ledger(tmp_path / "b.json").page("survey")
    ps.private_mean(X, **BUDGET, ledger=page)
    for refused in (
        lambda: ps.private_mean(X, person=IDS, **BUDGET, ledger=page),
        lambda: ps.PrivatePCA(2, **BUDGET, ledger=page).fit(X, person=IDS),
    ):
        with pytest.raises(OverspendError, match="for rows, and this one is for persons"):
            refused()
    assert page.account().spent.epsilon == 0.5
