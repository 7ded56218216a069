"""What is done with releases (reports, files, ledgers), and tables that are made up, on sound and on odd arguments.

These functions work on public values, so what is raised may depend on them.  The other rules hold: an answer or a
sentence, no warning, no hang, and a file that is whole or not there.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import USUAL_SHAPE, mostly, outcome, tables
from hypothesis import given, settings
from hypothesis import strategies as st

import privspan
from privspan import Release, baselines, datasets
from privspan._lib.record import Record
from privspan.ledger import Ledger
from privspan.ledger.release_file import load_release, save_release
from privspan.report import report_html, write_report
from privspan.rows import partition_rows

words = mostly(st.text(max_size=12), "<script>alert(1)</script>", "&amp;", "a/../b", "\x00", "\u202e", "7" * 400)


@cache
def releases() -> dict[str, Release]:
    """One release of every kind: exact, affine, chosen, of a baseline, of an estimator, and two abstentions."""
    parts = np.random.default_rng(0).integers(1, 100, (90, 2))
    whole = np.column_stack([parts, parts.sum(axis=1)])  # (90, 3)
    spread = np.random.default_rng(1).normal(size=(200, 4)) * [3.0, 1.0, 0.1, 0.1]
    budget: Any = {"epsilon": 1.0, "delta": 1e-6, "rng": 0}
    pca = privspan.PrivatePCA(2, epsilon=1.0, delta=1e-6).fit(spread)
    return {
        "exact": privspan.exact_subspace(whole, 2, names=["rent", "food", "total"], **budget),
        "affine": privspan.exact_subspace(whole + 1, 2, affine=True, **budget),
        "stable": privspan.stable_subspace(spread[:3], 1, **budget),
        "abstained": privspan.exact_subspace(spread, 1, **budget),
        "private": privspan.private_subspace(spread, 1, epsilon=1.0, delta=1e-6, method="adaptive"),
        "baseline": baselines.analyze_gauss(spread, 2, **budget),
        "eigenvalues": baselines.eigen_sampling(spread, 2, **budget),
        "PCA": pca.release_,
    }


@cache
def plan() -> privspan.Plan:
    return privspan.plan(200, 4, 2, epsilon=1.0, delta=1e-6)


# Only what the functions take is drawn with a wrong type; everything else that Python allows would be its own fault.
described = st.fixed_dictionaries(
    {},
    optional={
        "plan": st.booleans().map(lambda with_plan: plan() if with_plan else None),
        "title": mostly(words, None),
        "source": mostly(words, None),
        "columns": mostly(st.lists(words, min_size=2, max_size=5), None, [], ["a"] * 900),
    },
)


def report(name: str, options: dict[str, Any]) -> None:
    """Write a report, read it, and hold it against the page in memory."""
    release = releases()[name]
    page = report_html(release, **options)
    assert "<script" not in page
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        write_report(path, release, **options)
        assert path.read_text("utf-8", errors="strict").replace("\r", "") == page.replace("\r", "")
        assert list(Path(folder).iterdir()) == [path]


def fuzz_reports(cases: int) -> None:
    @settings(max_examples=cases)
    @given(st.sampled_from(sorted(releases())), described)
    def run(name: str, options: dict[str, Any]) -> None:
        outcome(lambda _: report(name, options), None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "Agg")
        releases(), plan()
        run()


# --- Files of releases, whole and damaged ----------------------------------------------------------------

DAMAGES = ("none", "cut", "flipped", "empty", "noise", "longer")


def spoilt(content: bytes, damage: str, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    match damage:
        case "cut":
            return content[: int(rng.integers(0, len(content)))]
        case "flipped":
            changed = bytearray(content)
            for place in rng.integers(0, len(content), 3):
                changed[place] ^= int(rng.integers(1, 256))
            return bytes(changed)
        case "empty":
            return b""
        case "noise":
            return rng.bytes(len(content))
        case "longer":
            return content + rng.bytes(20)
    return content


def keep(name: str, source: str | None, damage: str, seed: int) -> None:
    """Save a release, damage the file, and load it."""
    with tempfile.TemporaryDirectory() as folder:
        path = save_release(Path(folder) / "release", releases()[name], plan=plan(), record=Record(source))
        content = path.read_bytes()
        path.write_bytes(spoilt(content, damage, seed))
        loaded = load_release(path)
        if damage == "none":
            assert loaded.subspace == releases()[name].subspace
            assert loaded.release is not None
            assert loaded.release.cost == releases()[name].cost
            assert (loaded.record, loaded.plan) == (Record(source), plan())


def fuzz_release_files(cases: int) -> None:
    @settings(max_examples=cases)
    @given(st.sampled_from(sorted(releases())), mostly(words, None), st.sampled_from(DAMAGES), st.integers(0, 2**16))
    def run(name: str, source: str | None, damage: str, seed: int) -> None:
        said, why = outcome(lambda _: keep(name, source, damage, seed), None)
        if damage == "none":
            assert (said == "answer") is (releases()[name].subspace is not None), why

    run()


# --- Ledgers ---------------------------------------------------------------------------------------------

amounts = mostly(
    st.sampled_from([0.5, 1, "0.1", "1e-6", 1e-6]), 0, -1, 2.0, "nan", "inf", "much", "", None, np.nan, True
)


def keep_books(folder: str, dataset: Any, epsilon: Any, delta: Any, limits: Any, what: Any) -> None:
    ledger = Ledger(Path(folder) / "book.json")
    ledger.check(dataset, epsilon, delta, limit_epsilon=limits[0])
    ledger.set_limit(dataset, *limits)
    with ledger.spending(dataset, epsilon, delta, what=what):
        pass
    account = Ledger(Path(folder) / "book.json").account(dataset)
    assert [(entry.state, entry.what) for entry in account.entries] == [("finished", what)]
    assert float(account.entries[0].epsilon) == float(epsilon)


def fuzz_ledgers(cases: int) -> None:
    @settings(max_examples=cases)
    @given(words, amounts, amounts, st.tuples(amounts, amounts), words, st.sampled_from(DAMAGES), st.integers(0, 999))
    def run(dataset: str, epsilon: Any, delta: Any, limits: Any, what: str, damage: str, seed: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            outcome(lambda _: keep_books(folder, dataset, epsilon, delta, limits, what), None)
            path = Path(folder) / "book.json"
            if path.exists():
                before = spoilt(path.read_bytes(), damage, seed)
                path.write_bytes(before)
                said, _ = outcome(lambda _: Ledger(path).begin(dataset, 0.1, 1e-9), None)
                assert said == "answer" or path.read_bytes() == before, "a ledger that was refused was changed"
            assert {file.name for file in Path(folder).iterdir()} <= {"book.json", "book.json.lock"}

    run()


# --- Tables that are made up, and tables in partitions ---------------------------------------------------

sizes = mostly(st.integers(1, 60), 0, -1, 2.5, "ten", None, np.int64(7), True)
positive = mostly(st.sampled_from([0.1, 1.0, 1e-300, 1e150, 3]), 0.0, -1.0, np.nan, "much", None)
GENERATORS: dict[str, dict[str, Any]] = {
    "gaussian_subspace": {
        "gamma": positive,
        "gamma_w": positive,
        "condition": positive,
        "tail": mostly(st.sampled_from(datasets.TAILS), "no such tail", None),
    },
    "spiked_subspace": {"gamma_w": positive, "decay": positive},
    "heavy_tailed_subspace": {
        "gamma_w": positive,
        "law": mostly(st.sampled_from(["student", "lognormal"]), "cauchy"),
        "shape": positive,
    },
    "sign_subspace": {"tau": mostly(st.sampled_from([0.1, 3, 1e300]), 0.0, -1.0, np.nan, "much")},
}


def fuzz_generators(cases: int) -> None:
    assert set(GENERATORS) == {name for name in datasets.__all__ if name.endswith("_subspace")}

    @settings(max_examples=cases)
    @given(st.data(), st.sampled_from(sorted(GENERATORS)), sizes, sizes, sizes)
    def run(data: st.DataObject, name: str, n: Any, d: Any, k: Any) -> None:
        generator: Callable[..., Any] = getattr(datasets, name)
        needed = {
            option: values
            for option, values in GENERATORS[name].items()
            if inspect.signature(generator).parameters[option].default is inspect.Parameter.empty
        }
        options = data.draw(
            st.fixed_dictionaries(
                needed, optional={key: more for key, more in GENERATORS[name].items() if key not in needed}
            )
        )

        def call(_: Any) -> None:
            X, truth = generator(n, d, k, **options, rng=0)
            assert np.asarray(X).shape == (n, d)
            assert truth.ambient_dimension == d
            assert truth.dimension <= k if name == "sign_subspace" else truth.dimension == k  # signs may coincide

        outcome(call, None)

    run()


def fuzz_outliers_and_partitions(cases: int) -> None:
    @settings(max_examples=cases)
    @given(tables(), positive, mostly(st.sampled_from(datasets.OUTLIERS), "odd"), st.lists(st.integers(-1, 60)))
    def run(table: Any, share: Any, kind: str, lengths: list[int]) -> None:
        # Rows that are made up are public, of float64, and what is raised may depend on them.
        made_up = replace(table, dtype="f8", contents="normal", shape=USUAL_SHAPE, wrap="array")
        outcome(lambda X: datasets.with_outliers(X, share, kind, rng=0), made_up.make())  # type: ignore[arg-type]
        outcome(lambda X: partition_rows(X, lengths), table.make())
        outcome(lambda X: partition_rows(X, [3, np.shape(X)[0] - 3]), table.make())

    run()


FUZZED: dict[str, tuple[Callable[[int], None], int, int]] = {  # what, cases in the quick suite, cases in the long run
    "reports": (fuzz_reports, 10, 500),
    "release files": (fuzz_release_files, 25, 700),
    "ledgers": (fuzz_ledgers, 25, 700),
    "generators": (fuzz_generators, 40, 1500),
    "outliers and partitions": (fuzz_outliers_and_partitions, 15, 700),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("what", FUZZED)
def test_a_sample(what: str) -> None:
    fuzz, few, _ = FUZZED[what]
    fuzz(few)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("what", FUZZED)
def test_many(what: str) -> None:
    fuzz, _, many = FUZZED[what]
    fuzz(many)
