"""The audits themselves: they refute what is false, spare what is true, and cover every public algorithm."""

import builtins
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from privspan import audit, baselines, exact_subspace
from privspan.algorithms import mean
from privspan.audit import (
    FALSE_ALARM,
    SAMPLERS,
    chi_square,
    main,
    registered,
    released_numbers,
    run_audit,
    run_task,
    scalar_audit,
    tasks,
    tightest_delta,
)
from privspan.audit.page import PASSAGE, STORED, render
from privspan.randomness import BitSource, open_streams

OWN = {
    "PrivatePCA",
    "adaptive_subspace",
    "approximate_subspace",
    "boosted_subspace",
    "choose_dimension",
    "exact_subspace",
    "explained_variance",
    "private_mean",
    "private_regression",
    "private_subspace",
    "stable_subspace",
}


# ---- Exact audits ----------------------------------------------------------------------------------------------


def response(truth):
    """Randomised response with probability 3/4."""
    return {truth: Fraction(3, 4), 1 - truth: Fraction(1, 4)}


def test_the_tightest_delta_of_randomised_response():
    found = tightest_delta(response, [0, 1], lambda bit: [1 - bit], 0.5)
    assert found.pairs == 2
    assert float(found.delta) == pytest.approx(0.75 - np.exp(0.5) * 0.25)
    assert found.worst in ((0, 1), (1, 0))
    assert tightest_delta(response, [0, 1], lambda bit: [1 - bit], 1.1).worst is None


# ---- Sampled audits --------------------------------------------------------------------------------------------


def normal(rng, mean):
    return lambda: {"constant": 1.0, "value": mean + rng.standard_normal()}


def test_a_scalar_audit_finds_the_number_that_leaks():
    rng = np.random.default_rng(0)
    found = scalar_audit(normal(rng, 0.0), normal(rng, 3.0), epsilon=1.0, delta=0.01, runs=1000)
    assert found.refuted
    assert found.event.startswith("value")


def test_a_true_claim_is_spared():
    # N(0, 1) against N(1, 1) is (1, 0.127)-private and no better (docs/explanation/accounting.md).
    rng = np.random.default_rng(1)
    found = [scalar_audit(normal(rng, 0.0), normal(rng, 1.0), epsilon=1.0, delta=0.127, runs=400) for _ in range(40)]
    assert sum(each.refuted for each in found) == 0
    assert max(each.epsilon_lower for each in found) > 0.1


def test_a_number_that_is_sometimes_missing_is_an_event_too():
    rng = np.random.default_rng(2)
    there, not_there = (lambda: {"seen": rng.random()}), (lambda: {})
    found = scalar_audit(there, not_there, epsilon=1.0, delta=0.1, runs=200)
    assert found.refuted


def test_infinite_and_missing_values_do_not_disturb():
    odd = iter([np.inf, -np.inf, np.nan, 0.0] * 100)
    found = scalar_audit(lambda: {"x": next(odd)}, lambda: {"x": next(odd)}, epsilon=1.0, delta=0.1, runs=100)
    assert found.epsilon_lower >= 0.0


# ---- Samplers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: f"{sampler.name}-{sampler.case}")
def test_a_sampler_follows_its_law(sampler):
    assert sampler.p_value(min(200, sampler.draws), open_streams(1)) > FALSE_ALARM


def test_a_biased_coin_is_noticed():
    rng = np.random.default_rng(0)
    assert chi_square((rng.random(4000) < 0.58).tolist(), {True: 0.5, False: 0.5}) < FALSE_ALARM
    assert chi_square((rng.random(4000) < 0.5).tolist(), {True: 0.5, False: 0.5}) > FALSE_ALARM
    assert chi_square(["edge"], {True: 0.5, False: 0.5}) == 0.0


class Sticky(BitSource):
    """The planted fault: a quarter of the bytes are zero."""

    def bytes(self, count):
        kept = np.random.default_rng(int.from_bytes(super().bytes(8), "little")).random(count) > 0.25
        return (np.frombuffer(super().bytes(count), np.uint8) * kept).astype(np.uint8).tobytes()


@pytest.mark.parametrize("name", ["BitSource.below", "hash keys", "TruncatedLaplace.sample", "add_gaussian"])
def test_a_bad_source_of_bits_is_noticed(name):
    streams = open_streams(0)
    broken = type(streams)(Sticky(np.random.Philox(1)), streams.public, Sticky(np.random.Philox(2)), private=False)
    chosen = [sampler for sampler in SAMPLERS if sampler.name == name]
    assert min(sampler.p_value(3000, broken) for sampler in chosen) < FALSE_ALARM


# ---- The registry ----------------------------------------------------------------------------------------------


def test_every_public_algorithm_and_baseline_is_audited():
    named = {name.partition(" (")[0] for name in registered()}
    assert named == OWN | set(baselines.__all__)
    assert all(len(case.pairs) >= 3 for case in registered().values())


@pytest.mark.parametrize("name", registered())
def test_neighbouring_tables_differ_in_one_row(name):
    for first, second in registered()[name].pairs.values():
        assert first.shape == second.shape
        differing = [i for i in range(len(first)) if not np.array_equal(first[i], second[i], equal_nan=True)]
        assert len(differing) == 1


@pytest.mark.parametrize("name", registered())
def test_every_audit_runs(name):
    task = next(task for task in tasks(name) if task.kind == "sampled")
    result = run_task(task, 8, seed=0)
    assert not result.refuted
    assert json.loads(json.dumps(result.to_dict()))["name"] == name


@pytest.mark.parametrize(
    ("name", "case"),
    [("private_mean", "opposite rows"), ("exact_subspace (majority)", "threshold"), ("mod_sulq", "tie")],
)
def test_a_sound_algorithm_passes_and_the_audit_sees_what_it_spends(name, case):
    task = next(task for task in tasks(name) if task.kind == "sampled" and task.case == case)
    result = run_task(task, 800, seed=0)
    assert not result.refuted
    assert result.found > 0.05


def test_released_numbers_hold_everything_that_leaves():
    release = exact_subspace(np.eye(3)[[0] * 30], 1, epsilon=1.0, delta=1e-6, rng=0)
    seen = released_numbers(release)
    assert seen["projector[0,0]"] == 1.0
    assert seen["abstained"] == 0.0
    assert {"n", "rule=majority"} <= set(seen)


# ---- Running ---------------------------------------------------------------------------------------------------


def test_results_do_not_depend_on_the_number_of_processes():
    one, two = (run_audit("private_mean", runs=20, seed=3, workers=workers) for workers in (1, 2))
    assert [(each.case, each.found, each.event) for each in one] == [
        (each.case, each.found, each.event) for each in two
    ]


def test_a_name_stands_for_its_variants_and_its_kind():
    names = {task.name for task in tasks("exact_subspace")}
    assert names == {name for name in registered() if name.startswith("exact_subspace")}
    assert {task.kind for task in tasks("sampler")} == {"sampler"}
    with pytest.raises(ValueError, match="`name` must be one of exact, sampler, sampled"):
        run_audit("no such thing")


def test_public_numbers_are_put_back():
    from privspan import gdp, privacy

    before = gdp.mu_from_budget, privacy.mu_from_budget
    run_audit("release_probability", seed=0)
    assert (gdp.mu_from_budget, privacy.mu_from_budget) == before


# ---- The command -----------------------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_stores_json(tmp_path, capsys):
    target = tmp_path / "deep" / "audit.json"
    assert main(["release_probability", "--output", str(target)]) == 0
    printed = capsys.readouterr()
    assert "release_probability" in printed.out
    assert "0 refuted" in printed.out
    assert "[1/2]" in printed.err
    stored = json.loads(target.read_text("utf-8"))
    assert (stored["audits"], stored["refuted"]) == (2, 0)


def test_a_terminal_gets_a_frame(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["release_probability"]) == 0
    assert "┃" in capsys.readouterr().out


def test_the_command_does_without_rich(monkeypatch, capsys):
    real = builtins.__import__

    def without_rich(name, *rest):
        if name.startswith("rich"):
            raise ImportError
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    assert main(["release_probability"]) == 0
    assert "mechanism" in capsys.readouterr().out


def test_the_exit_code_tells_of_a_refuted_claim(monkeypatch, capsys):
    monkeypatch.setattr(mean, "open_streams", lambda rng: open_streams(0))  # the planted fault: the same noise always
    assert main(["private_mean (in a subspace)", "--runs", "400", "--seed", "0", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["refuted"] >= 1


@pytest.mark.parametrize("arguments", [["no such thing"], ["--runs", "0"], ["--runs", "many"], ["--seed", "-1"]])
def test_bad_arguments_are_explained(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err


def test_the_list_and_the_help(capsys):
    assert main(["--list"]) == 0
    assert "analyze_gauss" in capsys.readouterr().out.splitlines()
    assert main(["--help"]) == 0
    assert audit.FALSE_ALARM == 1e-6


@pytest.mark.slow
def test_the_whole_set_at_a_quarter_of_its_length():
    assert [result for result in run_audit(runs=500, seed=1, workers=2) if result.refuted] == []


# ---- The page --------------------------------------------------------------------------------------------------

DOCS = Path(__file__).parent.parent / "docs"


def test_the_published_passage_says_what_the_stored_results_say():
    stored = json.loads((DOCS / STORED).read_text("utf-8"))
    assert (DOCS / PASSAGE).read_text("utf-8") == render(stored), "run `make audit-page`"
    assert f"include}} {PASSAGE.name}" in (DOCS / "howto" / "audit.md").read_text("utf-8")


def test_the_published_run_is_complete():
    """Every audit that there is has been run, and refuted nothing."""
    stored = json.loads((DOCS / STORED).read_text("utf-8"))
    published = {(result["kind"], result["name"], result["case"]) for result in stored["results"]}
    assert published == {(task.kind, task.name, task.case) for task in tasks()}
    assert stored["refuted"] == 0


def test_the_page_is_written_from_a_file(tmp_path, monkeypatch, capsys):
    for folder in ("howto", "_static"):
        (tmp_path / "docs" / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert main(["--page", str(DOCS / STORED)]) == 0
    assert "is written" in capsys.readouterr().out
    assert (tmp_path / "docs" / PASSAGE).read_text("utf-8").startswith("A run of the whole set")
