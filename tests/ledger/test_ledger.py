"""The spend ledger: exact sums, limits that hold under crashes and concurrency, files that are never reset."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspan.ledger import Account, DamagedLedgerError, Entry, Ledger, OverspendError
from privspan.privacy import PrivacyCost, mu_from_budget


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "budget.json")


def entry(epsilon, delta=1e-6, state="finished"):
    return Entry("id", epsilon, delta, state, "test", "2026-01-01T00:00:00+00:00")


# --- Sums and limits -------------------------------------------------------------------------------------


def test_a_spend_is_written_down_and_added_up(ledger: Ledger) -> None:
    assert ledger.accounts() == {}
    with ledger.spending("survey", 0.5, 1e-6, what="first"):
        pass
    with ledger.spending("survey", 0.25, 2e-6) as spending:
        spending.outcome = "abstained"
    account = ledger.account("survey")
    assert account.spent == PrivacyCost(0.5, 1e-6) + PrivacyCost(0.25, 2e-6)
    assert [(one.state, one.what) for one in account.entries] == [("finished", "first"), ("abstained", "")]
    assert ledger.account("other") == Account()


def test_ten_decimal_tenths_are_one_and_the_eleventh_is_refused(ledger: Ledger) -> None:
    for _ in range(10):
        ledger.begin("survey", "0.1", "1e-7", limit_epsilon="1", limit_delta="1e-6")
    assert ledger.account("survey").left == (0.0, 0.0)
    with pytest.raises(OverspendError, match=r"limits 'survey' to epsilon 1 and delta 1e-06"):
        ledger.begin("survey", "1e-9", "1e-30")
    assert len(ledger.account("survey").entries) == 10


def test_ten_binary_tenths_are_more_than_one(ledger: Ledger) -> None:
    for _ in range(9):
        ledger.begin("survey", 0.1, 1e-7, limit_epsilon=1.0)
    with pytest.raises(OverspendError):  # 10 * Fraction(0.1) > 1
        ledger.begin("survey", 0.1, 1e-7)
    ledger.begin("survey", 0.09999999999999995, 1e-7)


@pytest.mark.parametrize("amount", ["0.25", 0.25, Decimal("0.25")])
def test_a_sum_may_reach_its_limit_but_not_pass_it(ledger: Ledger, amount) -> None:
    for _ in range(4):
        ledger.begin("survey", amount, 1e-6, limit_epsilon=1)
    with pytest.raises(OverspendError):
        ledger.begin("survey", 5e-324, 1e-6)
    ledger.begin("other", 0.6, 1e-6, limit_epsilon=1)
    with pytest.raises(OverspendError):  # though something is left
        ledger.begin("other", 0.5, 1e-6)


def test_delta_has_a_limit_of_its_own(ledger: Ledger) -> None:
    ledger.begin("survey", 100.0, 1e-6, limit_delta="1e-6")  # the float is just below the decimal
    with pytest.raises(OverspendError, match="delta"):
        ledger.begin("survey", 0.1, 1e-20)


@given(st.lists(st.floats(1e-6, 10), max_size=12), st.floats(1e-6, 10), st.floats(1e-6, 100))
def test_sums_are_exact_and_rounded_in_the_safe_direction(spends, more, limit) -> None:
    account = Account(tuple(entry(one) for one in spends), limit_epsilon=limit)
    total = sum(map(Fraction, spends), Fraction(0))
    assert Fraction(account.spent.epsilon) >= total
    assert float(account.spent.epsilon) == pytest.approx(float(total), rel=1e-15)
    assert Fraction(account.left[0]) <= max(Fraction(0), Fraction(limit) - total)
    assert account.allows(more, 1e-6) == (total + Fraction(more) <= Fraction(limit))


@pytest.mark.parametrize("state", ["begun", "finished", "abstained", "interrupted"])
def test_every_state_counts_in_full(state: str) -> None:
    assert Account((entry(0.75, state=state),)).spent == PrivacyCost(0.75, 1e-6)


def test_a_limit_can_be_lowered_by_a_spend_and_raised_only_on_purpose(ledger: Ledger) -> None:
    ledger.begin("survey", "0.1", "1e-6", limit_epsilon="2")
    with pytest.raises(OverspendError, match="limits 'survey' to epsilon 2, and 3 would raise that"):
        ledger.begin("survey", "0.1", "1e-6", limit_epsilon="3")
    assert len(ledger.account("survey").entries) == 1
    ledger.begin("survey", "0.1", "1e-6", limit_epsilon="0.25")
    with pytest.raises(OverspendError):
        ledger.begin("survey", "0.1", "1e-6")
    ledger.set_limit("survey", "3", None)
    ledger.begin("survey", "0.1", "1e-6")
    assert ledger.account("survey").limit_epsilon == Decimal(3)


def test_data_sets_have_accounts_of_their_own(ledger: Ledger) -> None:
    ledger.begin("a", 1.0, 1e-6, limit_epsilon=1.0)
    ledger.begin("b", 1.0, 1e-6)
    ledger.begin("b", 1.0, 1e-6)
    assert {name: account.spent.epsilon for name, account in ledger.accounts().items()} == {"a": 1.0, "b": 2.0}


@pytest.mark.parametrize("epsilon", [0, -1, "zero", "nan", "-0.1", "1e999", float("inf"), True, None])
def test_amounts_that_are_no_spend_are_refused_and_leave_no_file(ledger: Ledger, epsilon) -> None:
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        ledger.begin("survey", epsilon, 1e-6)
    assert not ledger.path.exists()


def test_ending_what_never_began_is_refused(ledger: Ledger) -> None:
    ledger.begin("survey", 1.0, 1e-6)
    with pytest.raises(ValueError, match="no such entry"):
        ledger.end("survey", "0" * 16, "finished")


# --- Crashes and concurrency -----------------------------------------------------------------------------


def python(code: str, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_has_spent_its_budget(ledger: Ledger) -> None:
    run = python(
        """
        import sys, time
        from privspan.ledger import Ledger
        with Ledger(sys.argv[1]).spending("survey", "0.6", "1e-6", limit_epsilon="1"):
            print("begun", flush=True)
            time.sleep(60)
        """,
        str(ledger.path),
    )
    assert run.stdout.readline() == "begun\n"
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    (begun,) = ledger.account("survey").entries
    assert begun.state == "begun"
    with pytest.raises(OverspendError):
        ledger.begin("survey", "0.6", "1e-6")
    ledger.begin("survey", "0.4", "1e-6")  # the lock died with its owner


def test_an_exception_inside_is_an_interruption(ledger: Ledger) -> None:
    with pytest.raises(KeyboardInterrupt), ledger.spending("survey", 1.0, 1e-6):
        raise KeyboardInterrupt
    assert [one.state for one in ledger.account("survey").entries] == ["interrupted"]


def test_concurrent_runs_cannot_overspend(ledger: Ledger) -> None:
    code = """
        import sys
        from privspan.ledger import Ledger, OverspendError
        granted = 0
        for _ in range(20):
            try:
                with Ledger(sys.argv[1]).spending("survey", "0.1", "1e-8", limit_epsilon="1.5"):
                    granted += 1
            except OverspendError:
                pass
        print(granted)
        """
    runs = [python(code, str(ledger.path)) for _ in range(3)]
    granted = [int(run.communicate()[0]) for run in runs]
    assert sum(granted) == 15
    assert all(run.returncode == 0 for run in runs)
    account = ledger.account("survey")
    assert [one.state for one in account.entries] == ["finished"] * 15
    assert account.left[0] == 0.0


def test_an_end_that_cannot_be_written_warns_and_counts(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(RuntimeWarning, match="stays recorded as begun"), ledger.spending("survey", 0.5, 1e-6):
        ledger.path.rename(ledger.path.with_suffix(".moved"))
    ledger.path.with_suffix(".moved").rename(ledger.path)
    assert [one.state for one in ledger.account("survey").entries] == ["begun"]


def test_a_failed_write_leaves_the_old_file_and_no_other(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.begin("survey", 0.5, 1e-6)
    before = ledger.path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        ledger.begin("survey", 0.5, 1e-6)
    assert ledger.path.read_bytes() == before
    assert {path.name for path in ledger.path.parent.iterdir()} <= {"budget.json", "budget.json.lock"}


# --- The file --------------------------------------------------------------------------------------------


def test_the_file_is_json_with_decimals_as_text(ledger: Ledger) -> None:
    ledger.begin("survey é", "0.10", 1e-6, what="PCA", limit_epsilon="1")
    content = json.loads(ledger.path.read_text("utf-8"))
    account = content["datasets"]["survey é"]
    assert (content["format"], content["version"]) == ("privspan.ledger", 3)
    assert account["limit"] == {"epsilon": "1", "delta": None}
    (written,) = account["entries"]
    assert {key: written[key] for key in ("epsilon", "delta", "state", "what")} == {
        "epsilon": "0.10",
        "delta": 1e-6,
        "state": "begun",
        "what": "PCA",
    }
    assert (written["neighbours"], written["unit"]) == ("replace-one", "row")
    known = {
        "identity",
        "epsilon",
        "delta",
        "state",
        "what",
        "since",
        "neighbours",
        "unit",
        "mu",
        "aside",
        "pot",
        "part",
    }
    assert set(written) == known  # no end: durations may tell


def as_version(ledger: Ledger, version: int) -> None:
    content = json.loads(ledger.path.read_text("utf-8"))
    content["version"] = version
    later = {1: ("neighbours", "unit"), 2: ("mu", "aside", "pot", "part")}
    for account in content["datasets"].values():
        del account["plain"], account["pots"]
        for written in account["entries"]:
            for name in (name for since, names in later.items() if version <= since for name in names):
                del written[name]
    ledger.path.write_text(json.dumps(content), "utf-8")


def test_a_page_adds_up_spends_for_one_unit_only(ledger: Ledger) -> None:
    ledger.begin("rows", 0.5, 1e-6)
    ledger.begin("visits", 0.5, 1e-6, person="patient")
    ledger.begin("visits", 0.25, 1e-6, person="patient")
    assert str(ledger.account("visits").spent) == "(0.75, 2e-06)-DP, replace-one-person"
    before = ledger.path.read_text("utf-8")
    for name, person, words in (
        ("rows", "patient", "are for rows, and this one is for persons by 'patient'"),
        ("visits", None, "are for persons by 'patient', and this one is for rows"),
        ("visits", "clinic", "by 'patient', and this one is for persons by 'clinic'"),
        ("visits", "row", "by 'patient', and this one is for persons by 'row'"),
        ("rows", "row", "are for rows, and this one is for persons by 'row'"),
    ):
        for spend in (ledger.begin, ledger.check):
            with pytest.raises(OverspendError, match=f"{words}.* a data set of another name"):
                spend(name, 0.1, 1e-6, person=person)
    assert ledger.path.read_text("utf-8") == before
    with pytest.raises(ValueError, match="`person` must be the name"):
        ledger.begin("visits", 0.1, 1e-6, person="")
    page = ledger.page("visits")
    page.check(0.1, 1e-6, person="patient")
    with pytest.raises(OverspendError):
        page.check(0.1, 1e-6)


@pytest.mark.parametrize("version", [1, 2])
def test_spends_of_earlier_versions_are_plain_and_for_rows(ledger: Ledger, version: int) -> None:
    ledger.begin("survey", 0.5, 1e-6, limit_epsilon=3, limit_delta=1e-5)
    as_version(ledger, version)
    if version == 2:  # which called those of version 1 so
        text = ledger.path.read_text("utf-8").replace('"replace-one"', '"unknown"').replace('"row"', '"unknown"')
        ledger.path.write_text(text, "utf-8")
    account = ledger.account("survey")
    assert str(account.spent) == "(0.5, 1e-06)-DP, replace-one"
    with pytest.raises(OverspendError, match="are for rows, and this one is for persons"):
        ledger.begin("survey", 0.5, 1e-6, person="patient")
    ledger.begin("survey", 0.5, 1e-6)
    assert ledger.account("survey").spent.epsilon == 1.0
    ledger.begin("survey", 0.5, 1e-6, mu=mu_from_budget(0.5, 1e-6))  # and the rest becomes a pot
    (pot,) = ledger.account("survey").pots
    assert (pot.epsilon, pot.delta) == (2.0, pytest.approx(8e-6))


def test_a_file_that_mixes_units_is_refused(ledger: Ledger) -> None:
    ledger.begin("survey", 0.5, 1e-6)
    ledger.begin("survey", 0.5, 1e-6)
    ledger.path.write_text(ledger.path.read_text("utf-8").replace('"unit": "row"', '"unit": "id"', 1), "utf-8")
    with pytest.raises(DamagedLedgerError, match="different units under one name"):
        ledger.accounts()
