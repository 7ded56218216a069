"""``privspan score-map``: a release of its own, charged as it was typed, before anything is counted."""

import json
from pathlib import Path

import numpy as np
import pytest

from privspan.cli import main
from privspan.ledger import Ledger
from privspan.privacy import mu_from_budget

BUDGET = ["--epsilon", "0.1", "--delta", "1e-6"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table = np.random.default_rng(0).normal(size=(3_000, 3)) * [3.0, 2.0, 1.0] + 5.0
    np.savetxt("a.csv", table, delimiter=",", header="x,y,z", comments="")
    assert main(["fit", "a.csv", "-k", "2", "--epsilon", "5", "--delta", "1e-6", "-o", "a.npz"]) == 0
    return tmp_path


def test_a_map_is_counted_saved_drawn_and_charged(folder: Path, capsys) -> None:
    capsys.readouterr()
    options = ["--ledger", "book.json", "--limit-epsilon", "0.3", "--limit-delta", "1e-5", "--json"]
    assert main(["score-map", "a.npz", "a.csv", *BUDGET, "-o", "m.json", "--plot", "m.svg", *options]) == 0
    told, kept = json.loads(capsys.readouterr().out), json.loads(Path("m.json").read_text())
    assert told == {"output": "m.json", **kept}
    assert (kept["n"], kept["components"], kept["private"]) == (3_000, [1, 2], True)
    counts = np.array(kept["counts"])
    assert abs(counts.sum() + kept["outside"] - 3_000) < 6 * kept["noise"] * np.sqrt(counts.size + 1)
    assert "<svg" in Path("m.svg").read_text()
    (account,) = Ledger("book.json").accounts().values()
    (entry,) = account.entries
    assert (str(entry.epsilon), entry.what, entry.state) == ("0.1", "map of scores", "finished")
    assert entry.mu == mu_from_budget(0.1, 1e-6)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--components", "1", "3"], 2, "--components takes two different numbers from 1 to 2"),
        (["--components", "1", "1"], 2, "--components takes two different numbers"),
        (["--columns", "x"], 2, "No such option"),
        (["--ledger", "book.json", "--limit-epsilon", "0.05"], 5, "Nothing was run and nothing was spent."),
    ],
)
def test_what_can_be_refused_costs_nothing(options, code: int, words: str, folder: Path, capsys) -> None:
    assert main(["score-map", "a.npz", "a.csv", *BUDGET, "-o", "m.json", *options]) == code
    assert words in capsys.readouterr().err
    assert not Path("m.json").exists()
    assert not Path("book.json").exists()


def test_other_columns_are_refused_before_the_charge(folder: Path, capsys) -> None:
    Path("b.csv").write_text("x,y\n" + "1,2\n" * 100)
    assert main(["score-map", "a.npz", "b.csv", *BUDGET, "-o", "m.json", "--ledger", "book.json"]) in (2, 3)
    assert "'z'" in capsys.readouterr().err
    assert not Path("book.json").exists()


def test_a_map_of_persons_is_charged_for_persons(folder: Path, capsys) -> None:
    rows = np.column_stack([np.arange(3_000) // 3, np.random.default_rng(0).normal(size=(3_000, 3))])
    np.savetxt("p.csv", rows, delimiter=",", header="who,x,y,z", comments="")
    options = [*BUDGET, "--person", "who", "--ledger", "book.json"]
    assert main(["score-map", "a.npz", "p.csv", *options, "-o", "m.json"]) == 0
    assert json.loads(Path("m.json").read_text())["n"] == 1_000
    (account,) = Ledger("book.json").accounts().values()
    assert [one.unit for one in account.entries] == ["who"]


def test_a_folder_that_is_full_does_not_lose_what_was_paid_for(folder: Path, capsys) -> None:
    """A map that cannot be written is told on standard output."""
    from privspan.cli.exits import Complaint
    from privspan.cli.score_maps import _save
    from privspan.ledger.release_file import load_release
    from privspan.rows import open_rows
    from privspan.sums.score_map import private_score_map

    made = private_score_map(open_rows("a.csv"), load_release("a.npz").release, epsilon=1.0, delta=1e-6)
    capsys.readouterr()
    with pytest.raises(Complaint, match="is on standard output"):
        _save(made, Path("gone") / "m.json", False)
    assert json.loads(capsys.readouterr().out)["n"] == 3_000


def test_a_share_of_the_variance_is_a_dimension_for_fit(folder: Path, capsys) -> None:
    assert main(["fit", "a.csv", "-k", "0.6", "--epsilon", "5", "--delta", "1e-6", "-o", "share.npz"]) == 0
    assert main(["fit", "a.csv", "-k", "0.6", "--exact", *BUDGET, "-o", "exact.npz"]) == 2
    assert "'auto' and shares are for private PCA only" in capsys.readouterr().err
    assert main(["fit", "a.csv", "-k", "1.5", *BUDGET, "-o", "none.npz"]) == 2
    assert "a share of the variance below 1" in capsys.readouterr().err
