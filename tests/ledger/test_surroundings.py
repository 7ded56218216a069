"""The ledger where the machine does not do what it should: folders that cannot be synced, missing locks."""

import errno
import fcntl
import os
import stat
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import privspan as ps
from privspan.cli import main
from privspan.ledger import DamagedLedgerError, Ledger

X = np.random.default_rng(0).standard_normal((400, 6)) * [3.0, 2.0, 0.1, 0.1, 0.1, 0.1]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "budget.json")


def refusing_folders(number: int):
    """Return an fsync that refuses folders only."""
    fsync = os.fsync

    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    return refuse


# --- Folders ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EACCES])
def test_a_folder_that_cannot_be_synced_spends_once_and_answers(ledger, number, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(os, "fsync", refusing_folders(number))
    release = ps.private_subspace(X, 2, epsilon=0.4, delta=1e-6, ledger=ledger)
    assert ledger.account("people").spent.epsilon == 0.4
    assert ps.Subspace.load(release.subspace.save(tmp_path / "plane")) == release.subspace


def test_a_folder_that_may_not_be_read_takes_a_file(monkeypatch, tmp_path) -> None:
    opening = os.open

    def refuse(path, flags, *more, **named):
        if Path(path) == tmp_path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opening(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    path = ps.Subspace(np.eye(3)[:, :1]).save(tmp_path / "line")
    monkeypatch.undo()
    assert ps.Subspace.load(path).dimension == 1


def test_a_disk_that_fails_is_told(ledger, monkeypatch) -> None:
    monkeypatch.setattr(os, "fsync", refusing_folders(errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        ledger.begin("people", 0.4, 1e-6)


# --- Locks -----------------------------------------------------------------------------------------------


def test_a_disk_without_locks_is_told_in_a_sentence(ledger, monkeypatch, tmp_path, capsys) -> None:
    def none_left(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none_left)
    hasty = Ledger(ledger.path, patience=0.05)  # old versions of filelock spend all of it in waiting
    with pytest.raises(OSError, match=r"budget\.json' cannot be locked \(No locks.*keep the ledger|has locked"):
        hasty.begin("people", 0.4, 1e-6)
    assert ledger.accounts() == {}
    table = tmp_path / "x.npy"
    np.save(table, X)
    budget = ["--k", "2", "--epsilon", "1", "--delta", "1e-6"]
    assert main(["fit", str(table), *budget, "-o", str(tmp_path / "o.npz"), "--ledger", str(ledger.path)]) == 1
    told = capsys.readouterr().err
    assert "cannot be locked" in told or "has locked" in told
    assert "nothing was spent" in told or "The private step had begun" not in told


def test_a_lock_that_cannot_be_freed_does_not_undo_a_spend(ledger, monkeypatch) -> None:
    flock = fcntl.flock

    def stuck(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        if operation == fcntl.LOCK_UN:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", stuck)
    ledger.begin("people", 0.4, 1e-6)
    assert ledger.account("people").spent.epsilon == 0.4


# --- Amounts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed", ["1_0", "٣", "\uff11", "1e-6_0", "0x1", "nan", "Infinity", "1e9999999", "", "1,5", "--1"]
)
def test_an_amount_is_written_in_one_way(ledger, typed) -> None:
    with pytest.raises(ValueError, match="`epsilon` must be a number"):
        ledger.begin("people", typed, "1e-6")


@pytest.mark.parametrize("long", ["0." + "1" * 2_000_000, Decimal("0." + "1" * 2_000_000)], ids=["text", "Decimal"])
def test_an_amount_of_two_million_digits_is_refused_at_once(ledger, long) -> None:
    ledger.begin("people", "0.4", "1e-6")
    began = time.perf_counter()
    with pytest.raises(ValueError, match="`epsilon` must be") as told:
        ledger.begin("people", long, "1e-6")
    assert len(str(told.value)) < 200
    text = ledger.path.read_text().replace('"0.4"', f'"{long}"')
    ledger.path.write_text(text)
    with pytest.raises(DamagedLedgerError):
        ledger.account("people")
    assert time.perf_counter() - began < 5.0


def test_exact_values_of_floats_are_not_too_long(ledger) -> None:
    smallest = Decimal(2.0**-1060)
    ledger.begin("people", Decimal(2.0**-3), smallest)
    assert ledger.account("people").entries[0].delta == smallest
