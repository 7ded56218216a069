"""A PostgreSQL server of a test's own: a cluster in a temporary folder, on a socket there and on no network."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

USER, PASSWORD = "owner", "p4:ss/w@rd%#?"
"""Of the only user; the password needs encoding wherever it stands in a URL."""

MISSING = "needs a PostgreSQL server: Debian package `postgresql`"


def programs() -> Path | None:
    """Return the folder of the newest server that is installed."""
    found = [Path(given).parent for given in [shutil.which("initdb")] if given]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    return next((path for path in found if (path / "initdb").exists()), None)


class Server:
    """A server that runs.

    Attributes
    ----------
    folder : Path
        Of its socket.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # PostgreSQL does not run as root.
        self._as = {"user": _somebody(), "group": pwd.getpwuid(_somebody()).pw_gid, "extra_groups": []}
        self._as = {} if os.getuid() else self._as
        if self._as:
            os.chown(folder, self._as["user"], self._as["group"])
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        options = ["-A", "scram-sha-256", "-U", USER, f"--pwfile={password}", "-N", "-E", "UTF8", "--locale=C"]
        self._run("initdb", "-D", str(folder / "data"), *options)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        listening = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self._run(
            "pg_ctl", "-D", str(self.folder / "data"), "-l", str(self.folder / "log"), "-w", "-o", listening, "start"
        )

    def kill(self) -> None:
        """Kill it with all of its processes, as a machine that loses power would."""
        main = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        for process in (main, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for process in (main, *map(int, children)):
            while _lives(process):
                time.sleep(0.01)
        for lock in ("data/postmaster.pid", ".s.PGSQL.5432.lock"):  # whose process may stay on as a zombie
            (self.folder / lock).unlink(missing_ok=True)

    def url(self, login: str = f"{USER}:{quote(PASSWORD, safe='')}", options: str = "") -> str:
        """Return the URL of the database, with a login."""
        return f"postgresql://{login}@/postgres?host={self.folder}{options}"

    def _run(self, program: str, *arguments: str) -> None:
        folder = programs()
        assert folder is not None
        told = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([folder / program, *arguments], check=True, cwd=self.folder, timeout=120, **told, **self._as)


def _somebody() -> int:
    names = {one.pw_name: one.pw_uid for one in pwd.getpwall()}
    return names.get("postgres", names.get("nobody", os.getuid()))


def _lives(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    return False


@contextmanager
def postgres_server() -> Iterator[Server]:
    """Run a server until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a path of a socket must be short
    folder.chmod(0o755)
    try:
        server = Server(folder)
        try:
            yield server
        finally:
            with suppress(OSError, ValueError):
                server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
