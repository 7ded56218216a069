"""The file of a ledger: read as a whole, changed under a lock, replaced as a whole."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from privspan._lib import strict_json
from privspan._lib.errors import MissingPackageError, PrivspanError
from privspan._lib.whole_file import whole_file
from privspan.ledger.accounts import Account
from privspan.ledger.written import FormatError, from_json, to_json


class DamagedLedgerError(PrivspanError, ValueError):
    """The file is not a ledger, or not one that can be used.  It has not been changed."""


class LockedLedgerError(PrivspanError, OSError):
    """The file could not be locked.  It has not been changed."""


class LedgerFile:
    """Accounts in a file, which the first change creates."""

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 60.0) -> None:
        self.path = Path(os.path.realpath(path))
        self.patience = patience  # seconds to wait for the lock, which is held for milliseconds

    def __eq__(self, other: object) -> bool:
        return self.path == other.path if isinstance(other, LedgerFile) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def accounts(self) -> dict[str, Account]:
        """Return every account by the name of its data set; nothing for a file that does not exist.

        Raises
        ------
        DamagedLedgerError
            If the file is not a ledger.
        """
        try:
            with open(self.path, encoding="utf-8") as handle:
                self._refuse_second_name(handle.fileno())
                text = handle.read()
        except FileNotFoundError:
            return {}
        except UnicodeDecodeError:
            raise self._damaged("it is not text") from None
        try:
            return from_json(strict_json.loads(text))
        except json.JSONDecodeError:
            raise self._damaged("it is not JSON, or only the beginning of it") from None
        except (TypeError, ValueError) as error:
            told = isinstance(error, FormatError | strict_json.AmbiguousError)
            raise self._damaged(str(error) if told else "an entry is missing or of the wrong kind") from None

    @contextmanager
    def changing(self) -> Iterator[dict[str, Account]]:
        """Hold the lock, read, let the caller change the accounts, and replace the file."""
        try:
            from filelock import FileLock, Timeout
        except ImportError:
            raise MissingPackageError("The ledger needs the package filelock: pip install 'privspan[cli]'.") from None
        lock = FileLock(f"{self.path}.lock")
        self._refuse_strange_lock(Path(lock.lock_file))
        try:
            lock.acquire(timeout=self.patience)
        except Timeout:
            template = "another program has locked {file!r} for {patience:.0f} s."
            raise LockedLedgerError(template, file=str(self.path), patience=self.patience) from None
        except (OSError, NotImplementedError) as error:
            if getattr(error, "filename", None) is not None:  # it says itself what could not be opened
                raise
            known = isinstance(error, OSError) and error.errno
            reason = os.strerror(known) if known else "it cannot lock files"
            advice = "keep the ledger on a disk of this machine, or on one whose files can be locked"
            raise LockedLedgerError(
                "{file!r} cannot be locked ({reason}); {advice}.", file=str(self.path), reason=reason, advice=advice
            ) from None
        try:
            accounts = self.accounts()
            yield accounts
            text = json.dumps(to_json(accounts), indent=2, ensure_ascii=False)
            with whole_file(self.path) as handle:
                handle.write(f"{text}\n".encode())
        finally:
            with suppress(OSError):  # what was written down counts, and must not look as if it had not been
                lock.release()

    def _refuse_second_name(self, descriptor: int) -> None:
        """Refuse a file with another hard link: to replace one name leaves the other behind, without the spend."""
        if os.fstat(descriptor).st_nlink > 1:
            reason = "the file has a second name (a hard link), under which new spends would be missing"
            raise self._damaged(reason, "Keep one of the names; a symbolic link may stand for it")

    def _refuse_strange_lock(self, lock: Path) -> None:
        """Refuse a lock that is a link: taking it may empty what it leads to, and two locks would be one file."""
        try:
            found = lock.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise self._damaged(f"{lock.name!r} beside it is a link, or no file at all", "Move it away")

    def _damaged(self, reason: str, advice: str = "Restore it from a copy") -> DamagedLedgerError:
        template = "cannot use the ledger {file!r}: {reason}. {advice}; it has not been changed."
        return DamagedLedgerError(template, file=str(self.path), reason=reason, advice=advice)
