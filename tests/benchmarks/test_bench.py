"""The benchmark: nothing lost, nothing twice, limits kept, and a page that says what the stored results say."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import environments, runner
from benchmarks.cells import (
    ABSTAINED,
    FAILED,
    NOT_APPLICABLE,
    NOT_AVAILABLE,
    OK,
    OUT_OF_TIME,
    WORTH_ANOTHER_TRY,
    AbstainedError,
    Cell,
    NotApplicableError,
    NotAvailableError,
    Outcome,
)
from benchmarks.methods import METHODS
from benchmarks.outputs import write_outputs
from benchmarks.page import FIGURES, PAGE, render, write_page
from benchmarks.store import Store, StoreError, read_rows
from benchmarks.suites import SUITES, accuracy
from benchmarks.summary import groups, suite_table
from privspan import cli

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "results"
THEOREMS = SUITES["theorems"]
FAST = ("analyze_gauss", "mod_sulq", "noisy_power", "noisy_range_finder", "exponential_pca", "johnson_lindenstrauss")


def main(arguments: list[str]) -> int:
    return cli.main(["bench", *arguments])


def keys(folder: Path, suite: str) -> list[tuple[str, ...]]:
    names = ("method", *SUITES[suite].settings, "seed")
    return [tuple(row[name] for name in names) for row in read_rows(folder, SUITES[suite])]


# --- Grids -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_every_cell_is_named_once_and_fits_its_suite(suite, quick):
    cells = list(suite.cells(quick))
    assert cells
    assert {cell.suite for cell in cells} == {suite.name}
    assert {tuple(cell.setting) for cell in cells} == {suite.settings}
    assert max(Counter(cell.key for cell in cells).values()) == 1


def test_the_quick_run_covers_every_method():
    run = {cell.method for suite in SUITES.values() for cell in suite.cells(True)}
    assert run >= {*METHODS, "exact", "boosted", "sklearn_full", "plain", *environments.PEERS}


def test_every_baseline_is_in_the_benchmark():
    from privspan import baselines

    assert {name for name, method in METHODS.items() if not method.ours} == set(baselines.__all__)


# --- Outcomes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AbstainedError(1.5), ABSTAINED),
        (NotApplicableError("too wide"), NOT_APPLICABLE),
        (NotAvailableError("not installed"), NOT_AVAILABLE),
        (TimeoutError("stopped"), OUT_OF_TIME),
        (ZeroDivisionError("oh"), FAILED),
    ],
)
def test_whatever_happens_becomes_an_outcome(error, status):
    def measure(cell):
        raise error

    outcome = runner.outcome_of(Cell("accuracy", "adaptive", {}, 0), measure)
    assert outcome.status == status
    assert outcome.values == {}
    if status == ABSTAINED:
        assert outcome.seconds == 1.5
    else:
        assert str(error) in outcome.note


def test_sizes_and_refusals_are_not_applicable():
    wide = {**accuracy.BASE, "n": 50, "d": 3_000}
    assert runner.outcome_of(Cell("accuracy", "mod_sulq", wide, 0), accuracy.measure).note.endswith("2,048 columns")
    few = {**accuracy.BASE, "n": 50, "d": 20}
    refused = runner.outcome_of(Cell("accuracy", "histogram", few, 0), accuracy.measure)
    assert refused.status == NOT_APPLICABLE
    assert "rows" in refused.note


def test_a_cell_runs_in_another_process():
    cell = Cell("accuracy", "analyze_gauss", {**accuracy.BASE, "n": 200, "d": 10}, 0)
    ((ran, outcome),) = runner.run_cells([cell], jobs=2, limit=120.0)
    assert (ran, outcome.status) == (cell, OK)
    assert 0.0 < outcome.values["error"] <= 1.0
    assert outcome.memory_mb > 10


def test_a_cell_is_stopped_at_the_time_limit():
    slow = Cell("accuracy", "stable", {**accuracy.BASE, "n": 4_000, "gamma_w": 1e-4}, 0)
    start = time.monotonic()
    ((_, outcome),) = runner.run_cells([slow], jobs=1, limit=1.0)
    assert outcome == Outcome(OUT_OF_TIME, note="stopped after 1 s")
    assert time.monotonic() - start < 30.0  # it takes half a minute and more to its end


# --- The store ---------------------------------------------------------------------------------------------


def cells_of(count: int) -> list[Cell]:
    return [Cell("theorems", "exact", {"n": 60, "d": 10, "k": 3}, seed) for seed in range(count)]


def test_a_line_that_was_cut_off_is_run_again(tmp_path):
    cells = cells_of(3)
    with Store(tmp_path) as store:
        assert store.missing(THEOREMS, cells) == cells
        for cell in cells[:2]:
            store.add(THEOREMS, cell, Outcome(OK, {"success": 1}, 0.1, 50.0))
    path = tmp_path / "theorems.csv"
    path.write_bytes(path.read_bytes()[:-7])  # as a crash in the middle of a write leaves it
    with Store(tmp_path) as store:
        assert store.missing(THEOREMS, cells) == cells[1:]
        for cell in cells[1:]:
            store.add(THEOREMS, cell, Outcome(OK, {"success": 1}, 0.1, 50.0))
        assert store.missing(THEOREMS, cells) == []
    assert sorted(keys(tmp_path, "theorems")) == sorted(cell.key for cell in cells)


def test_values_and_awkward_notes_come_back_as_written(tmp_path):
    note = 'he said "no, never",\nand\tleft'
    with Store(tmp_path) as store:
        (cell,) = cells_of(1)
        store.missing(THEOREMS, [cell])
        store.add(THEOREMS, cell, Outcome(FAILED, {"error": 0.123456789, "success": 0}, 1.0, 2.0, note))
    (row,) = read_rows(tmp_path, THEOREMS)
    assert (row["note"], row["error"], row["success"]) == ('he said "no, never", and left', "0.123457", "0")


def test_retry_forgets_only_what_is_wanted_and_failed(tmp_path):
    cells = cells_of(4)
    statuses = (OK, FAILED, FAILED, ABSTAINED)
    with Store(tmp_path) as store:
        store.missing(THEOREMS, cells)
        for cell, status in zip(cells, statuses, strict=True):
            store.add(THEOREMS, cell, Outcome(status))
        assert store.missing(THEOREMS, cells[:2], WORTH_ANOTHER_TRY) == [cells[1]]
    assert [row["status"] for row in read_rows(tmp_path, THEOREMS)] == [OK, FAILED, ABSTAINED]


def test_two_runs_do_not_share_a_folder(tmp_path):
    with Store(tmp_path), pytest.raises(StoreError, match="Another run"):
        Store(tmp_path)


def test_a_file_of_another_version_is_refused(tmp_path, capsys):
    (tmp_path / "theorems.csv").write_text("method,seed\nexact,0\n", "utf-8")
    assert main(["--quick", "--suite", "theorems", "--output", str(tmp_path)]) == 2
    assert "other columns" in capsys.readouterr().err


# --- The command -------------------------------------------------------------------------------------------


def bench(folder: Path) -> subprocess.Popen[bytes]:
    chosen = [part for method in FAST for part in ("--method", method)]
    command = [sys.executable, "-m", "benchmarks", "--quick", "--suite", "accuracy", *chosen]
    return subprocess.Popen(
        [*command, "--jobs", "1", "--output", str(folder)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_a_killed_run_continues_with_all_cells_once(tmp_path):
    first = bench(tmp_path)
    path, patience = tmp_path / "accuracy.csv", time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(b"\n") >= 3):
        assert time.monotonic() < patience
        time.sleep(0.005)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    before = keys(tmp_path, "accuracy")
    assert 2 <= len(before) < len(FAST)
    assert bench(tmp_path).wait(timeout=120) == 0
    after = keys(tmp_path, "accuracy")
    assert after[: len(before)] == before
    assert sorted(key[0] for key in after) == sorted(FAST)
    assert (tmp_path / "summary.md").exists()
    assert (tmp_path / "figures" / "accuracy.png").stat().st_size > 10_000
    assert (tmp_path / "machine.json").exists()


def test_an_unknown_suite_is_refused_with_the_names(capsys):
    assert main(["--suite", "nonsense"]) == 2
    said = capsys.readouterr().err
    assert "nonsense" in said
    assert "growth" in said


def test_help_tells_every_suite(capsys):
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in SUITES)


def test_a_missing_package_is_named(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.command._NEEDED", ("no_such_package",))
    assert main(["--quick"]) == 2
    said = capsys.readouterr().err
    assert "no_such_package" in said
    assert "pip install --group bench" in said


# --- Peers -------------------------------------------------------------------------------------------------


def test_an_environment_that_cannot_be_built_is_told_by_its_cells(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVSPAN_CACHE", str(tmp_path))

    def no_network(folder, packages):
        raise subprocess.CalledProcessError(1, "pip", stderr="tried\nno network\n")

    monkeypatch.setattr(environments, "build", no_network)
    environments.build_all()
    (cell,) = (cell for cell in SUITES["peers"].cells(True) if cell.method == "opendp")
    outcome = runner.outcome_of(cell, SUITES["peers"].measure)
    assert outcome.status == NOT_AVAILABLE
    assert outcome.note == "no environment for opendp: no network"


# --- Tables, figures, page ---------------------------------------------------------------------------------


def invented(folder: Path, *names: str) -> None:
    """Fill suites of a folder with their quick cells and made-up values."""
    number = 0
    with Store(folder) as store:
        for suite in (SUITES[name] for name in names):
            for cell in store.missing(suite, suite.cells(True)):
                number += 1
                values: dict[str, float] = dict.fromkeys(suite.values, (number * 37 % 97 + 1) / 100)
                values.update({name: 50 for name in ("n", "d") if name in suite.values})
                status = {"friendly_core": ABSTAINED, "histogram": NOT_APPLICABLE, "opendp": OUT_OF_TIME}.get(
                    cell.method if suite.name != "theorems" else "", OK
                )
                store.add(suite, cell, Outcome(status, values if status == OK else {}, 0.5, 70.0, "because"))


def test_tables_and_figures_of_a_small_store(tmp_path):
    invented(tmp_path, *SUITES)
    assert f"{len(SUITES)} figures" in write_outputs(tmp_path)
    summary = (tmp_path / "summary.md").read_text("utf-8")
    for suite in SUITES.values():
        assert suite.question in summary
        assert (tmp_path / "figures" / f"{suite.name}.png").stat().st_size > 5_000


def test_a_table_shows_medians_and_abstentions():
    base = {name: str(value) for name, value in accuracy.BASE.items()}
    extra = {"seconds": "1", "memory_mb": "80", "note": ""}
    errors = [(OK, "0.1"), (OK, "0.4"), (OK, "0.2"), (ABSTAINED, "")]
    rows = [
        {"method": "stable", **base, "seed": str(seed), "status": status, "error": error, **extra}
        for seed, (status, error) in enumerate(errors)
    ]
    (one,) = groups(SUITES["accuracy"], rows)
    assert one.median("error") == 0.2
    assert one.error == pytest.approx(0.3)  # of 0.1, 0.2, 0.4 and an abstention, which counts as 1
    assert "| stable leverage | flat | 10000 | 100 | 3 | 0.1 | 1.0 | 3 of 4 | 0.2 |" in suite_table(
        SUITES["accuracy"], [one]
    )


def test_the_page_is_made_of_the_stored_numbers(tmp_path):
    invented(tmp_path, "downstream", "growth")
    (tmp_path / "docs" / "explanation").mkdir(parents=True)
    assert "2 figures" in write_page(tmp_path, tmp_path / "docs")
    text = (tmp_path / "docs" / PAGE).read_text("utf-8")
    assert text == render(tmp_path)
    assert "## Where we lose" in text
    pictures = re.findall(r"\.\./(_static/results/\w+\.png)", text)
    assert len(pictures) == 2
    assert all((tmp_path / "docs" / picture).exists() for picture in pictures)
    rows = read_rows(tmp_path, SUITES["downstream"])
    assert all(f"{float(row['error']):.3g}" in text for row in rows if row["error"])


def test_the_published_page_is_what_the_stored_results_give():
    if not (STORED / "machine.json").exists() or not (ROOT / "docs" / PAGE).exists():
        pytest.skip("no stored results here")
    try:
        with Store(STORED):
            expected = render(STORED)
    except StoreError:
        pytest.skip("a run is writing to the stored results")
    assert (ROOT / "docs" / PAGE).read_text("utf-8") == expected, "run `make results-page`"
    for picture in re.findall(r"results/(\w+\.png)", (ROOT / "docs" / PAGE).read_text("utf-8")):
        assert (ROOT / "docs" / FIGURES / picture).exists()


def test_stored_results_hold_every_cell_once():
    for path in STORED.glob("*.csv"):
        if path.stem in SUITES:
            names = ("method", *SUITES[path.stem].settings, "seed")
            with open(path, encoding="utf-8", newline="") as file:
                lines = [tuple(row[name] for name in names) for row in csv.DictReader(file)]
            assert max(Counter(lines).values()) == 1
