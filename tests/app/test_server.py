"""Where the app listens, what it says in the terminal, and how it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from app_pages import SLOW, Forms

from privspan._lib.errors import ParameterError
from privspan.app.server import desk_at, sockets

DRIVER = """
import sys
from pathlib import Path
from privspan.app.server import desk_at, serve, sockets
from privspan.cli._interrupts import interruptible

folder = Path(sys.argv[1])
desk = desk_at(folder, None, None, (sys.executable, str(folder / "slow.py")))
with interruptible():
    serve(desk, sockets(None, 0, knowing=False), lambda line: print(line, file=sys.stderr, flush=True))
"""


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org", "", "127.0.0.1.example.org"])
def test_an_address_that_others_reach_is_refused(host: str) -> None:
    with pytest.raises(ParameterError, match="this machine alone"):
        sockets(host, 0, knowing=False)


def test_it_listens_on_this_machine_alone() -> None:
    made = sockets(None, 0, knowing=False)
    addresses = [one.getsockname()[:2] for one in made]
    for one in made:
        one.close()
    assert {address for address, _ in addresses} <= {"127.0.0.1", "::1"}
    assert "127.0.0.1" in dict(addresses)
    assert len({port for _, port in addresses}) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_a_loopback_address_may_be_named(host: str) -> None:
    (made,) = sockets(host, 0, knowing=False)
    assert made.getsockname()[0].startswith(("127.", "::1"))
    made.close()


def test_another_address_is_taken_from_somebody_who_knows() -> None:
    (made,) = sockets("0.0.0.0", 0, knowing=True)
    assert made.getsockname()[0] == "0.0.0.0"
    made.close()


@pytest.mark.parametrize("host", ["example.invalid", "a" * 300])
def test_what_is_no_address_is_told_of(host: str) -> None:
    with pytest.raises(ParameterError, match="must be an address"):
        sockets(host, 0, knowing=True)


@pytest.mark.parametrize("output", ["..", "../elsewhere", "/tmp", "."])
def test_what_it_writes_stays_below_its_folder(output: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ParameterError, match="must be a folder below"):
        desk_at(tmp_path / "in", Path(output), None)


@pytest.fixture
def app(tmp_path: Path):
    """A running app, its address, and what it has said; a release there takes a minute."""
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    (tmp_path / "slow.py").write_text(SLOW)
    command = [sys.executable, "-c", DRIVER, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    yield process, re.search(r"http://\S+", line)[0], tmp_path
    process.kill()
    process.communicate()


def test_ctrl_c_during_a_release_stops_it_and_says_what_was_spent(app) -> None:
    process, address, folder = app
    home = address.partition("/open")[0]
    with httpx2.Client(base_url=home, follow_redirects=True) as client:
        assert client.get(address).status_code == 200
        assert "/open?token=" in process.stderr.readline() + process.stderr.readline()  # the next address

        def send(action: str, **changes: str) -> str:
            page = client.get(action).text
            fields = next(given for _, to, given in Forms(page).forms if to == action)
            return client.post(action, data=fields | changes).text

        for action, changes in [
            ("/table", {"typed": "a.csv"}),
            *[(f"/{one}", {}) for one in ("columns", "question")],
        ]:
            send(action, **changes)
        send("/budget")
        assert "is being made" in send("/confirm")
        until = time.monotonic() + 60
        while not (folder / "at-work").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == ""
    assert "release-1 of a.csv:" in said
    assert "interrupted. The private step had begun, so its budget counts as spent, and the ledger says so." in said
    assert "Spent together: epsilon 1 at delta 1e-06" in said
    assert "Traceback" not in said
    assert "GET /" not in said  # no log of requests


@pytest.mark.slow
def test_a_release_goes_on_when_the_app_is_killed(app) -> None:
    """Its program needs no app: the lock on its log tells the next app that it is at work."""
    process, address, folder = app
    home = address.partition("/open")[0]
    with httpx2.Client(base_url=home, follow_redirects=True) as client:
        client.get(address)
        for action, changes in [
            ("/table", {"typed": "a.csv"}),
            *[(f"/{o}", {}) for o in ("columns", "question", "budget", "confirm")],
        ]:
            page = client.get(action).text
            fields = next(given for _, to, given in Forms(page).forms if to == action)
            client.post(action, data=fields | changes)
    process.kill()
    process.wait()
    desk = desk_at(folder, None, None)
    run = desk.runs.at_work()
    assert run is not None
    assert run.name == "release-1"
    assert desk.runs.interrupt() is None  # another app's: not ours to stop
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        words = line.read_bytes().split(b"\0") if line.exists() else []
        if str(folder / "slow.py").encode() in words:
            os.kill(int(line.parent.name), signal.SIGINT)
    until = time.monotonic() + 30
    while run.state == "running":
        assert time.monotonic() < until
        time.sleep(0.05)
    assert run.state == "interrupted"
