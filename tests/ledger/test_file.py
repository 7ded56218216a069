"""The file of a ledger: locked, replaced as a whole, refused if it says two things or none."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from privspan.ledger import DamagedLedgerError, Ledger, LockedLedgerError


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "budget.json")


def python(code: str, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_lock_that_is_never_freed_is_reported(ledger: Ledger) -> None:
    from filelock import FileLock

    with FileLock(f"{ledger.path}.lock"), pytest.raises(LockedLedgerError, match="another program has locked"):
        Ledger(ledger.path, patience=0.05).begin("survey", 1.0, 1e-6)


def spoiled(content: str):
    return lambda _: content


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (spoiled(""), "not JSON"),
        (spoiled("[]"), "wrong kind"),
        (spoiled("{}"), "not written by privspan"),
        (lambda text: text[: len(text) // 2], "not JSON"),
        (lambda text: text.replace('"version": 3', '"version": 4'), "version is 4"),
        (lambda text: text.replace('"pot": null', '"pot": "weekly"'), "pot that is not there"),
        (lambda text: text.replace('"mu": null', '"mu": -0.5'), "wrong kind"),
        (lambda text: text.replace('"plain": false', '"plain": 0'), "wrong kind"),
        (lambda text: text.replace('"begun"', '"undone"'), "unknown state 'undone'"),
        (lambda text: text.replace("0.5", "-0.5"), "wrong kind"),
        (lambda text: text.replace("0.5", "NaN"), "wrong kind"),
        (lambda text: text.replace('"delta": 1e-06', '"delta": null'), "wrong kind"),
        (lambda text: text.replace('"limit"', '"limits"'), "wrong kind"),
        (lambda text: text.replace('"what"', '"who"'), "wrong kind"),
        (lambda text: text.replace('"replace-one"', '"add-one"'), "wrong kind"),
        (lambda text: text.replace('"version": 3', '"version": 1'), "wrong kind"),
        (lambda text: text.replace('"version": 3', '"version": 2'), "wrong kind"),
    ],
)
def test_a_damaged_file_is_refused_and_left_alone(ledger: Ledger, spoil, reason: str) -> None:
    ledger.begin("survey", 0.5, 1e-6)
    text = ledger.path.read_text("utf-8")
    damaged = spoil(text)
    assert damaged != text
    ledger.path.write_text(damaged, "utf-8")
    for use in (ledger.accounts, lambda: ledger.begin("survey", 0.5, 1e-6), lambda: ledger.set_limit("survey", 1, 1)):
        with pytest.raises(DamagedLedgerError, match=reason) as caught:
            use()
        assert "has not been changed" in str(caught.value)
    assert ledger.path.read_text("utf-8") == damaged


def test_bytes_that_are_no_text_are_refused(ledger: Ledger) -> None:
    ledger.path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DamagedLedgerError, match="not text"):
        ledger.accounts()


@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_links_are_followed_and_permissions_kept(tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    Ledger(real).begin("survey", 0.5, 1e-6)
    real.chmod(0o660)
    link = tmp_path / "link.json"
    link.symlink_to(real)
    Ledger(link).begin("survey", 0.5, 1e-6)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o660
    assert len(Ledger(real).account("survey").entries) == 2


def test_a_missing_package_is_named(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(ImportError, match=r"pip install 'privspan\[cli\]'"):
        ledger.begin("survey", 0.5, 1e-6)
    assert ledger.accounts() == {}  # reading needs no lock


# --- One file that says one thing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"entries": [', '"entries": [], "entries": [', "key twice"),
        ('"datasets": {', '"datasets": {}, "datasets": {', "key twice"),
        ('"epsilon": 0.5', '"epsilon": 0.5, "epsilon": 0.1', "key twice"),
        ('"version": 3', '"version": true', "version is True"),
        ('"version": 3', '"version": 3, "note": "x"', "wrong kind"),
        ('"what": ""', '"what": 7', "wrong kind"),
        ('"what": ""', '"what": "", "end": "x"', "wrong kind"),
        ('"epsilon": 0.5', '"epsilon": true', "wrong kind"),
        ('"epsilon": 0.5', '"epsilon": 1e999', "wrong kind"),
        ('"limit": {', '"limit": {"mu": null,', "wrong kind"),
        ('"what": ""', f'"what": {"[" * 100_000}{"]" * 100_000}', "wrong kind"),
    ],
)
def test_a_file_that_says_two_things_or_too_much_is_refused(ledger: Ledger, old: str, new: str, reason: str) -> None:
    ledger.begin("survey", 0.5, 1e-6)
    text = ledger.path.read_text("utf-8")
    assert old in text
    ledger.path.write_text(text.replace(old, new, 1), "utf-8")
    for use in (ledger.accounts, lambda: ledger.begin("survey", 0.5, 1e-6)):
        with pytest.raises(DamagedLedgerError, match=reason):
            use()


@pytest.mark.skipif(os.name != "posix", reason="hard links")
def test_names_that_share_a_file_cannot_each_spend_the_limit(ledger: Ledger) -> None:
    """Each name has its own lock and, once one is replaced, its own file: three processes took 15 twice."""
    ledger.set_limit("survey", "1.5", None)
    other = ledger.path.with_name("other.json")
    os.link(ledger.path, other)
    code = """
        import sys
        from privspan.ledger import DamagedLedgerError, Ledger, OverspendError
        granted = 0
        for _ in range(15):
            try:
                with Ledger(sys.argv[1]).spending("survey", "0.1", "1e-8"):
                    granted += 1
            except (DamagedLedgerError, OverspendError):
                pass
        print(granted)
        """
    runs = [python(code, str(path)) for path in (ledger.path, other, ledger.path)]
    assert sum(int(run.communicate()[0]) for run in runs) <= 15
    with pytest.raises(DamagedLedgerError, match="second name"):
        ledger.accounts()
    assert other.read_bytes() == ledger.path.read_bytes()
    other.unlink()
    ledger.begin("survey", "0.1", "1e-8")


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_lock_that_is_somebody_elses_file_is_not_emptied(ledger: Ledger, link) -> None:
    table = ledger.path.with_name("people.csv")
    table.write_text("a,b\n1,2\n")
    link(table, f"{ledger.path}.lock")
    with pytest.raises(DamagedLedgerError, match=r"budget\.json\.lock"):
        ledger.begin("survey", 0.5, 1e-6)
    assert table.read_text() == "a,b\n1,2\n"
