"""The audits themselves: they refute what is false, spare what is true, and cover every public algorithm."""

import builtins
import errno
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from public_functions import SPENDING

import privspan
from privspan import audit, exact_subspace
from privspan.audit import (
    FALSE_ALARM,
    SAMPLERS,
    chi_square,
    registered,
    released_numbers,
    run_audit,
    run_task,
    runner,
    scalar_audit,
    tasks,
    tightest_delta,
)
from privspan.audit import samplers as sampler_module
from privspan.audit.page import PASSAGE, STORED, render
from privspan.audit.results import run_facts
from privspan.audit.tables import near_axis
from privspan.blocks.histogram import _uniform_below_prime as uniform_below_prime
from privspan.cli import main as privspan_main
from privspan.privacy import call as calls
from privspan.privacy import delta_from_mu
from privspan.privacy.noise import add_gaussian, rounded_normal
from privspan.privacy.randomness import BitSource, open_streams
from privspan.privacy.run import Run
from privspan.privacy.selection import TruncatedLaplace


def main(arguments):
    """Run ``privspan audit``."""
    return privspan_main(["audit", *arguments])


# Spends a budget, and has no audit of its own because all of it is done by a function that has one.
AUDITED_ELSEWHERE = {
    "PrivateSubspace": "releases what the functions return, bit for bit",
    "PrivatePCA": "releases what private_pca returns, bit for bit",
    "PrivateLogisticRegression": "is a shell around private_classifier, bit for bit",
    "private_pair_distance": "a step of approximate_subspace (histogram, side chosen)",
}
# Work on numbers that a table has been turned into: audited by enumeration, or against their law.
NO_TABLE = {"permute_and_flip", "releases", "stable_vote"}
# Has noise of a law that a replay does not know; its sampled audit certifies half of the claim.
NOT_REPLAYED = {"additive_wishart"}


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


def test_mu_is_certified_where_a_claim_is_gaussian():
    """N(0, 1) against N(1, 1) is 1-GDP: at that claim it is spared and most of it seen, at less it is refuted."""
    rng = np.random.default_rng(2)
    for claimed in (1.0, 0.5):
        sides = normal(rng, 0.0), normal(rng, 1.0)
        budget = {"epsilon": 1.0, "delta": delta_from_mu(claimed, 1.0)}
        found = scalar_audit(*sides, **budget, runs=4000, measure="mu")
        assert found.refuted == (claimed < 0.7)
        assert 0.75 < found.mu_lower <= 1.0


def test_a_bound_on_mu_is_hardly_ever_wrong():
    rng = np.random.default_rng(3)
    claim = {"epsilon": 1.0, "delta": delta_from_mu(1.0, 1.0), "runs": 200, "confidence": 0.9, "measure": "mu"}
    wrong = sum(scalar_audit(normal(rng, 0.0), normal(rng, 1.0), **claim).mu_lower > 1.0 for _ in range(100))
    assert wrong <= 20  # of a hundred, where ten are allowed on average


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


CHI_SQUARE = {f"{each.name}, {each.case}": each for each in SAMPLERS if "chi-square" in each.test}


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: f"{sampler.name}-{sampler.case}")
def test_a_sampler_follows_its_law(sampler):
    assert sampler.p_value(sampler.fewest_draws, open_streams(1)) > FALSE_ALARM


@pytest.mark.parametrize("sampler", CHI_SQUARE, ids=str)
def test_a_short_test_of_a_sampler_is_not_blind(sampler, monkeypatch):
    """Twenty draws per cell on average, and nearly all of the law in cells that are compared one by one."""
    seen = []
    monkeypatch.setattr(sampler_module, "chi_square", lambda drawn, law: seen.append((len(drawn), law)) or 1.0)
    CHI_SQUARE[sampler].p_value(CHI_SQUARE[sampler].fewest_draws, open_streams(1))
    ((drawn, law),) = seen
    assert drawn >= 20 * len(law)
    assert sum(chance for chance in law.values() if chance * drawn >= 20.0) > 0.95


def stuck_permutation(count, bits):
    return np.arange(count)


def biased_keys(shape, bits):
    """The planted fault: keys are even twice as often as they are odd."""
    keys = uniform_below_prime(shape, bits)
    return keys - keys % 2 * (uniform_below_prime(shape, bits) % 3 == 0)


def narrow_steps(count, scale, bits):
    return rounded_normal(count, 0.9 * scale, bits)


def narrow_noise(values, sigma, bits):
    return add_gaussian(values, 0.9 * sigma, bits)


class NarrowLaplace(TruncatedLaplace):
    """The planted fault: noise for a budget that is larger by a half, judged by the law of the stated one."""

    def sample(self, bits):
        return TruncatedLaplace(1.5, 0.01).sample(bits)


@pytest.mark.parametrize(
    ("sampler", "inside", "fault"),
    [
        ("search permutation, uniform order of four", "secret_order", stuck_permutation),
        ("hash keys, uniform below 2^61 - 1", "_uniform_below_prime", biased_keys),
        ("TruncatedLaplace.sample, table of weights", "TruncatedLaplace", NarrowLaplace),
        ("rounded_normal, scale 3.7", "rounded_normal", narrow_steps),
        ("rounded_normal, scale 2^20.5", "rounded_normal", narrow_steps),
        ("add_gaussian, normal, sigma 2", "add_gaussian", narrow_noise),
        ("random_rotation, Haar, size 3", "random_rotation", lambda k, *rest: (np.eye(k), 0.0)),
    ],
)
def test_a_broken_sampler_is_refuted_by_the_short_test(sampler, inside, fault, monkeypatch):
    (chosen,) = (each for each in SAMPLERS if f"{each.name}, {each.case}" == sampler)
    monkeypatch.setattr(sampler_module, inside, fault)
    assert chosen.p_value(chosen.fewest_draws, open_streams(1)) < FALSE_ALARM


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
    vars(streams).update(noise=Sticky(np.random.Philox(1)), charged=Sticky(np.random.Philox(2)))
    chosen = [sampler for sampler in SAMPLERS if sampler.name == name]
    assert min(sampler.p_value(3000, streams) for sampler in chosen) < FALSE_ALARM


# ---- The registry ----------------------------------------------------------------------------------------------


def test_every_public_algorithm_and_baseline_is_audited():
    """What spends a budget is found by its parameters, so that a new algorithm without an audit fails here."""
    spending = {name.rsplit(".", 1)[-1] for name in SPENDING}
    audited = {
        kind: {task.name.partition(" (")[0] for task in tasks(kind)}
        for kind in ("exact", "sampler", "sampled", "replayed")
    }
    assert audited["sampled"] == spending - NO_TABLE - set(AUDITED_ELSEWHERE)
    assert audited["replayed"] == audited["sampled"] - NOT_REPLAYED
    assert audited["exact"] | audited["sampler"] >= NO_TABLE
    assert all(len(case.pairs) >= 3 for case in registered().values())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("estimator", "function", "options"),
    [
        ("PrivateSubspace", "private_subspace", {}),
        ("exact", "exact_subspace", {}),
        ("exact", "exact_subspace", {"affine": True}),
        ("approximate", "approximate_subspace", {"block_size": 1}),
        ("boosted", "boosted_subspace", {"alpha": 0.9, "beta": 0.3, "block_size": 1}),
        ("PrivatePCA", "private_pca", {}),
        ("PrivatePCA", "private_pca", {"center": False, "method": "stable"}),
        ("PrivatePCA", "private_pca", {"robust": True}),
    ],
)
def test_an_estimator_without_an_audit_releases_what_its_audited_function_does(estimator, function, options):
    X = np.outer(np.arange(1, 51), [1, 2, -3]) if function == "exact_subspace" else near_axis(150)
    budget = {"epsilon": 2.0, "delta": 0.1, **options}
    given = budget
    if estimator.islower():  # a method of `PrivateSubspace`, whose arguments are its options
        given = {"epsilon": 2.0, "delta": 0.1, "method": estimator, "options": options}
        estimator = "PrivateSubspace"
    model = getattr(privspan, estimator)(1, random_state=5, **given).fit(X)
    release = getattr(privspan, function)(X, 1, rng=5, **budget)
    assert model.release_.to_dict() == release.to_dict()
    assert not release.abstained
    assert model.components_.T.tobytes() == release.subspace.basis.tobytes()


PERSONS = [name for name in registered() if "persons" in name]


@pytest.mark.parametrize("name", PERSONS)
def test_neighbouring_tables_of_persons_differ_in_one_person(name):
    for pair in registered()[name].pairs.values():
        persons = [{one: table[table[:, -1] == one, :-1].tobytes() for one in table[:, -1]} for table in pair]
        assert len(persons[0]) == len(persons[1])
        assert len(persons[0].items() - persons[1].items()) == 1


@pytest.mark.parametrize("name", [name for name in registered() if name not in PERSONS])
def test_neighbouring_tables_differ_in_one_row(name):
    for first, second in registered()[name].pairs.values():
        assert first.shape == second.shape
        differing = [i for i in range(len(first)) if not np.array_equal(first[i], second[i], equal_nan=True)]
        assert len(differing) == 1


@pytest.mark.parametrize("name", registered())
def test_every_audit_runs(name):
    """A smoke test: eight runs can refute nothing, they show that the case runs and that its result can be stored."""
    task = next(task for task in tasks(name) if task.kind == "sampled")
    result = run_task(task, 8, seed=0)
    assert not result.refuted
    assert json.loads(json.dumps(result.to_dict()))["name"] == name


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("private_mean", "opposite rows"),
        ("exact_subspace (majority)", "threshold"),
        pytest.param("mod_sulq", "tie", marks=pytest.mark.slow),  # a planted fault needs the same audit to pass
    ],
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


def test_audits_run_the_code_as_it_is(monkeypatch):
    def functions():
        modules = [module for name, module in sys.modules.items() if name.startswith("privspan.")]
        return {
            (module.__name__, name): value
            for module in modules
            for name, value in vars(module).items()
            if callable(value)
        }

    seen, numbers = [], runner.released_numbers
    monkeypatch.setattr(runner, "released_numbers", lambda release: (seen.append(functions()), numbers(release))[1])
    before = functions()
    run_audit("private_mean (in a subspace)", runs=4, seed=0)
    assert seen
    assert all(during == before for during in seen)


# ---- The command -----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory, so that results are left nowhere else."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_prints_a_table_and_stores_json(folder, capsys):
    target = folder / "deep" / "audit.json"
    assert main(["release_probability", "--output", str(target)]) == 0
    printed = capsys.readouterr()
    assert "release_probability" in printed.out
    assert "0 refuted" in printed.out
    assert "[1/2]" in printed.err
    stored = json.loads(target.read_text("utf-8"))
    assert (stored["audits"], stored["refuted"]) == (2, 0)
    assert os.listdir(target.parent) == ["audit.json"]
    assert os.listdir(folder) == ["deep"]


def test_results_are_stored_by_default_with_what_they_were_made_with(folder, capsys):
    assert main(["release_probability", "--seed", "3", "--runs", "40"]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "The results are stored in privspan-audit.json"
    text = (folder / "privspan-audit.json").read_text("utf-8")
    stored = json.loads(text)
    assert (stored["seed"], stored["runs"], stored["python"]) == (3, 40, platform.python_version())
    assert (stored["system"], stored["machine"]) == (platform.system(), platform.machine())
    assert stored["versions"]["privspan"] == privspan.__version__
    assert set(stored["versions"]) == {"privspan", "numpy", "scipy"}
    assert abs(datetime.now(UTC) - datetime.fromisoformat(stored["date"])) < timedelta(hours=1)
    assert str(folder) not in text
    assert platform.node() not in text
    assert {"audits", "refuted", "false_alarm", "seconds", "results"} <= set(stored)


def test_json_on_stdout_is_stored_only_if_asked(folder, capsys):
    assert main(["release_probability", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["audits"] == 2
    assert os.listdir(folder) == []
    assert main(["release_probability", "--json", "--output", "kept.json"]) == 0
    assert capsys.readouterr().out == (folder / "kept.json").read_text("utf-8")


@pytest.mark.parametrize("target", ["there", "there/file/deep.json", os.devnull, "locked/audit.json"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_run(target, folder, monkeypatch, capsys):
    (folder / "there").mkdir()
    (folder / "there" / "file").touch()
    (folder / "locked").mkdir()

    def locked(path, *arguments, **options):
        if Path(path).parent.name == "locked":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return open(path, *arguments, **options)

    monkeypatch.setattr("privspan._lib.whole_file.open", locked, raising=False)
    assert main(["release_probability", "--output", target]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("Error: ")
    assert sorted(os.listdir(folder)) == ["locked", "there"]


def test_a_full_disk_costs_neither_the_table_nor_the_older_results(folder, monkeypatch, capsys):
    (folder / "privspan-audit.json").write_text("older")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert main(["release_probability"]) == 2
    assert "exists already" in capsys.readouterr().err
    monkeypatch.setattr(os, "fsync", full)
    assert main(["release_probability", "--overwrite"]) == 2
    printed = capsys.readouterr()
    assert "0 refuted" in printed.out
    assert printed.err.splitlines()[-1].endswith(
        f"could not be stored in 'privspan-audit.json': {os.strerror(errno.ENOSPC)}."
    )
    assert (folder / "privspan-audit.json").read_text() == "older"
    assert os.listdir(folder) == ["privspan-audit.json"]


def test_a_reader_that_hangs_up_does_not_cost_the_results(folder, monkeypatch, capsys):
    def hung_up(*_):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    monkeypatch.setattr("privspan.cli.audit._print_results", hung_up)
    assert main(["release_probability"]) == 2
    assert json.loads((folder / "privspan-audit.json").read_text("utf-8"))["audits"] == 2


@pytest.mark.usefixtures("folder")
def test_a_terminal_gets_a_frame(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["release_probability"]) == 0
    assert "───" in capsys.readouterr().out


def test_audits_run_without_the_packages_of_the_command_line(monkeypatch, capsys):
    real = builtins.__import__

    def core_only(name, *rest):
        if name.split(".")[0] in ("rich", "typer"):
            raise ImportError
        return real(name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", core_only)
        assert [result.refuted for result in run_audit("release_probability")] == [False, False]
    for package in ("rich", "typer"):
        monkeypatch.setitem(sys.modules, package, None)
    assert main(["release_probability"]) == 1
    assert "pip install 'privspan[cli]'" in capsys.readouterr().err


def test_importing_the_audits_loads_no_command_line():
    code = "import sys, privspan.audit; print(*{'typer', 'rich', 'privspan.cli'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split() == []


def test_the_exit_code_tells_of_a_refuted_claim(monkeypatch, capsys):
    # The planted fault: the same noise always.
    monkeypatch.setattr(calls, "open_run", lambda account, rng: Run(account, open_streams(0)))
    assert main(["private_mean (in a subspace)", "--runs", "400", "--seed", "0", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["refuted"] >= 1


@pytest.mark.parametrize("arguments", [["no such thing"], ["--runs", "0"], ["--runs", "many"], ["--seed", "-1"]])
@pytest.mark.usefixtures("folder")
def test_bad_arguments_are_explained(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err
    assert os.listdir() == []


def test_the_list_and_the_help(capsys):
    assert main(["--list"]) == 0
    assert "analyze_gauss" in capsys.readouterr().out.splitlines()
    assert main(["--help"]) == 0
    assert audit.FALSE_ALARM == 1e-6


@pytest.mark.slow
def test_the_whole_set_at_a_quarter_of_its_length():
    assert [result for result in run_audit(runs=500, seed=1, workers=2) if result.refuted] == []


# ---- The page --------------------------------------------------------------------------------------------------

DOCS = Path(__file__).parents[2] / "docs"


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
    assert (tmp_path / "docs" / PASSAGE).read_text("utf-8").startswith("The whole set has been run")


def test_a_missing_file_is_explained(folder, capsys):
    assert main(["--page", "nothing.json"]) == 2
    assert "nothing.json" in capsys.readouterr().err


def test_the_passage_says_what_a_run_was_made_with_where_that_is_stored():
    stored = json.loads((DOCS / STORED).read_text("utf-8"))
    facts = run_facts(runs=2000, seed=None)
    assert f"on {facts['date'][:10]} (privspan {privspan.__version__}, numpy" in render({**stored, **facts})
    assert "minutes of processor time.\nThe largest" in render(
        {key: stored[key] for key in stored if key not in facts}
    )
