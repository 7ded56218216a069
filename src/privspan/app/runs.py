"""Releases on disk, each in a folder of its own, and the one program that may be at work.

A release is a process of its own, ``privspan fit`` or ``privspan score-map``, which charges the ledger, computes and
writes its files.  It needs neither the page nor the app to go on: what it writes and says goes into its folder.  That
it is at work is told by a lock on its log, which it holds as long as it lives, however the app ended or began anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from privspan._lib.errors import PrivspanError
from privspan._lib.readable import readable
from privspan._lib.strict_json import fields, flag, listed, loads, mapping, one_of, optional, text
from privspan.app.answers import Answers
from privspan.app.commands import PROGRAM

State: TypeAlias = Literal["running", "finished", "abstained", "refused", "failed", "interrupted"]

_NAME = re.compile(r"release-[1-9][0-9]{0,5}")
_ENDED: Mapping[int, State] = {0: "finished", 4: "abstained", 5: "refused", 130: "interrupted", -2: "interrupted"}
"""Exit codes of a fit; -2 of one that Ctrl-C reached before it had begun."""

_RESULTS = {"fit": "release.npz", "map": "map.json"}
_LAST_LINES = 40  # of a log, that are shown
_SHORTEST = 0.05  # seconds between two looks at a program that is to end


class BusyError(PrivspanError):
    """Another release is being made."""


@dataclass(frozen=True)
class Made:
    """What is known of a release from its beginning: what, of what, at which cost."""

    kind: Literal["fit", "map"]
    command: tuple[str, ...]
    begun: str
    table: str
    made_up: bool
    epsilon: str
    delta: str
    what: str  # in words
    of: str | None  # the release whose scores are mapped

    @classmethod
    def read(cls, found: object) -> Made:
        """Read what was written; ``ValueError`` for anything else."""
        words = dict.fromkeys(("begun", "table", "epsilon", "delta", "what"), text)
        kinds = {"kind": one_of(_RESULTS), "command": listed(text), "made_up": flag, "of": optional(text)}
        made = fields(found, **words, **kinds)
        return cls(**{**made, "command": tuple(made["command"])})


@dataclass(frozen=True)
class Run:
    """One release, begun or ended, by its folder."""

    folder: Path
    made: Made
    answers: Answers

    @property
    def name(self) -> str:
        """What it is called."""
        return self.folder.name

    @property
    def number(self) -> int:
        """Its number."""
        return int(self.name.removeprefix("release-"))

    @property
    def result(self) -> Path:
        """The file that holds what was released, if anything was."""
        return self.folder / _RESULTS[self.made.kind]

    @property
    def state(self) -> State:
        """How it stands; what ended without a word and without a result counts as interrupted."""
        if _is_held(self.folder / "log.txt"):
            return "running"
        try:
            code = int((self.folder / "ended.txt").read_text("utf-8"))
            stopped = self.log[-1:] == ["KeyboardInterrupt"]  # while Python itself was starting
            return _ENDED.get(code, "interrupted" if stopped else "failed")
        except (OSError, ValueError):
            return "finished" if self.result.is_file() else "interrupted"

    @property
    def seconds(self) -> int:
        """For how long it has been at work."""
        return max(0, round((datetime.now(UTC) - datetime.fromisoformat(self.made.begun)).total_seconds()))

    @property
    def log(self) -> list[str]:
        """The last lines that the program said: notices of privspan, which quote no cell."""
        try:
            lines = (self.folder / "log.txt").read_text("utf-8", errors="replace").splitlines()
        except OSError:
            return []
        return [readable(line) for line in lines[-_LAST_LINES:]]


class Runs:
    """All releases in a folder, oldest first; at most one of them is at work."""

    def __init__(self, folder: Path, root: Path, program: Sequence[str] = PROGRAM) -> None:
        self.folder, self.root, self._program = folder, root, tuple(program)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def all(self) -> list[Run]:
        """Return what is there; folders that this app did not write are passed over."""
        if not self.folder.is_dir():
            return []
        found = [self.find(path.name) for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        return sorted((run for run in found if run is not None), key=lambda run: run.number)

    def find(self, name: str) -> Run | None:
        """Return a release by its name."""
        if not _NAME.fullmatch(name):
            return None
        folder = self.folder / name
        try:
            content = loads((folder / "made.json").read_text("utf-8"))
            found = fields(content, made=mapping, answers=mapping)
            return Run(folder, Made.read(found["made"]), Answers.from_json(found["answers"]))
        except (OSError, ValueError):
            return None

    def at_work(self) -> Run | None:
        """Return the release that is being made, by this app or by one before it."""
        return next((run for run in reversed(self.all()) if run.state == "running"), None)

    def is_ours(self) -> bool:
        """Tell whether what is at work was started by this app, which can stop it."""
        return self._process is not None and self._process.poll() is None

    def _refuse_if_busy(self) -> None:
        if (other := self.at_work()) is not None:
            raise BusyError("{name} is being made. One release at a time.", name=other.name)

    def new_folder(self) -> Path:
        """Make the folder of a new release: exclusively, so that two apps never share one."""
        self._refuse_if_busy()
        self.folder.mkdir(parents=True, exist_ok=True)
        number = 1 + max((run.number for run in self.all()), default=0)
        while True:
            with contextlib.suppress(FileExistsError):
                path = self.folder / f"release-{number}"
                path.mkdir()
                return path
            number += 1

    def start(self, folder: Path, made: Made, answers: Answers, files: Mapping[str, str]) -> Run:
        """Write the files that go with a release and start its program; or refuse, as one is at work.

        From here on it may spend: whoever calls makes sure that a person has confirmed it, once.
        """
        with self._lock, (self.folder / "begin.lock").open("a") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)  # another app on this folder may be beginning one
            self._refuse_if_busy()
            for name, text_of in files.items():
                _write_new(folder / name, text_of)
            log = (folder / "log.txt").open("xb")
            fcntl.flock(log, fcntl.LOCK_EX)
            content = {"made": asdict(made), "answers": answers.to_json()}
            _write_new(folder / "made.json", json.dumps(content, indent=1))
            with (folder / "said.json").open("xb") as said:
                self._process = _started([*self._program, *made.command, "--json"], self.root, said, log)
            threading.Thread(target=_see_off, args=(self._process, folder, log), daemon=True).start()
        run = self.find(folder.name)
        assert run is not None
        return run

    def interrupt(self, patience: float = 0.0) -> Run | None:
        """Stop the release that this app has started, if it is at work; return it once it has ended.

        One that is just writing its result writes it first.
        """
        process, run = self._process, self.at_work()
        if process is None or run is None or process.poll() is not None:
            return None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        until = time.monotonic() + patience
        while run.state == "running" and time.monotonic() < until:
            time.sleep(_SHORTEST)
        return run


def made_now(
    kind: Literal["fit", "map"], command: Sequence[str], answers: Answers, what: str, of: str | None = None
) -> Made:
    """Return what is known of a release that begins now."""
    assert answers.table is not None
    assert answers.price is not None
    costs = {"epsilon": str(answers.price.epsilon), "delta": str(answers.price.delta)}
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    return Made(kind, tuple(command), begun, answers.table.file, answers.made_up, **costs, what=what, of=of)


def _started(command: Sequence[str], root: Path, said: BinaryIO, log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start the program in a session of its own: Ctrl-C in the terminal reaches it through the app, once."""
    surroundings = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        command,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=log,
        start_new_session=True,
        env=surroundings,
    )


def _see_off(process: subprocess.Popen[bytes], folder: Path, log: BinaryIO) -> None:
    """Wait for the program and write down how it ended; then let go of its log, which both have held."""
    with log, contextlib.suppress(OSError):
        _write_new(folder / "ended.txt", str(process.wait()))


def _write_new(path: Path, content: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(content)


def _is_held(path: Path) -> bool:
    """Tell whether a program holds the lock of its log."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False
