"""Temporary copies on disk: only their owner may read them, and they go, whatever ends the process."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest

from privspan.rows.files.spool import LeftoverWarning, Spool, remove_leftovers, spool_base


@pytest.fixture(autouse=True)
def base(tmp_path, monkeypatch):
    """The folder in which copies are made."""
    monkeypatch.setenv("PRIVSPAN_TMPDIR", str(tmp_path))
    return tmp_path


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def test_only_the_owner_may_enter(base):
    before = os.umask(0)  # whatever the surroundings would allow
    try:
        with Spool() as spool:
            (spool.path / "people.parquet").write_bytes(b"cells")
            assert (spool.path.parent, mode(spool.path)) == (base, 0o700)
        with Spool() as spool, spool.nameless_file() as file:
            assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    finally:
        os.umask(before)
    assert list(base.iterdir()) == []


def test_a_nameless_file_has_no_name_and_keeps_what_is_written(base):
    spool = Spool()
    with spool.nameless_file() as file:
        assert list(base.iterdir()) == []
        assert os.fstat(file.fileno()).st_nlink == 0
        file.write(b"cells")
        file.seek(0)
        assert file.read() == b"cells"
    spool.close()


def test_a_folder_goes_with_what_refers_to_it(base):
    spool = Spool()
    (spool.path / "copy").touch()
    assert len(list(base.iterdir())) == 1
    del spool
    assert list(base.iterdir()) == []


def test_closing_twice_is_no_error():
    spool = Spool()
    spool.close()
    spool.close()
    assert not spool.path.exists()


def child(code, **options):
    """Start a Python that says "ready" and then waits."""
    command = [sys.executable, "-u", "-c", textwrap.dedent(code)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options)
    assert process.stdout.readline() == "ready\n"
    return process


HOLDS = """
    import time
    from privspan.rows.files.spool import Spool
    spool = Spool()
    (spool.path / "people.parquet").write_bytes(b"cells")
    print("ready")
    time.sleep(60)
"""


def test_what_a_killed_process_leaves_goes_with_the_next_copy_and_what_others_hold_stays(base):
    with child(HOLDS) as alive, child(HOLDS) as killed:
        killed.kill()
        killed.wait()
        assert len(list(base.iterdir())) == 2
        with pytest.warns(LeftoverWarning, match="^Removed a temporary copy of a table that") as told:
            mine = Spool()
        assert len(told) == 1
        left = [folder for folder in base.iterdir() if folder != mine.path]
        assert [(folder / "people.parquet").read_bytes() for folder in left] == [b"cells"]
        assert remove_leftovers(base) == 0  # nor is one's own a leftover
        mine.close()
        alive.send_signal(signal.SIGINT)
        alive.wait()
    assert list(base.iterdir()) == []


def test_several_leftovers_are_told_in_one_sentence(base):
    for name in ("a", "b"):
        folder = base / f"privspan-copy-{name}.temporary"
        folder.mkdir(mode=0o700)
        (folder / "people.parquet").touch()
    (base / "privspan-copy-empty.temporary").mkdir()
    with pytest.warns(LeftoverWarning, match="^Removed 2 temporary copies of tables that a process had left behind"):
        assert remove_leftovers(base) == 2
    assert list(base.iterdir()) == []


def test_links_and_files_of_that_name_are_left_alone(base, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "precious").touch()
    (base / "privspan-copy-link.temporary").symlink_to(elsewhere)
    (base / "privspan-copy-file.temporary").touch()
    assert remove_leftovers(base) == 0
    assert (elsewhere / "precious").exists()
    assert len(list(base.iterdir())) == 2


def test_folders_of_ones_own_are_left_alone(base):
    for name in ("privspan-copy-of-results", "privspan-copy-abcdefgh", "results.temporary"):
        (base / name).mkdir(mode=0o700)
        (base / name / "precious").touch()
    assert remove_leftovers(base) == 0
    assert len(list(base.glob("*/precious"))) == 3


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can own what others cannot")
def test_what_belongs_to_others_is_left_alone(base):
    folder = base / "privspan-copy-other.temporary"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    assert remove_leftovers(base) == 0
    assert folder.exists()


def test_a_fork_does_not_take_the_copy_away(base):
    """A child that ends by itself runs what Python does at its end."""
    code = """
        import os, sys, time
        from privspan.rows.files.spool import Spool
        spool = Spool()
        child = os.fork()
        if child == 0:
            sys.exit(0)
        os.waitpid(child, 0)
        print("ready" if spool.path.exists() else "gone")
    """
    with child(code) as process:
        process.wait()
    assert list(base.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_stream_whatever_signal_ends_the_process(base, number):
    """The copy of a stream has no name, so nothing has to be removed."""
    code = """
        import time, numpy as np, pyarrow as pa
        from dataclasses import replace
        from privspan.rows import open_rows
        from privspan.rows.limits import LIMITS
        def batches():
            for turn in range(100):
                yield pa.record_batch({"age": np.arange(100.0)})
                if turn == 50:
                    print("ready")
                    time.sleep(60)
        reader = pa.RecordBatchReader.from_batches(pa.schema({"age": pa.float64()}), batches())
        open_rows(reader, limits=replace(LIMITS, stream_bytes=100, window_bytes=1000))
    """
    with child(code) as process:
        assert list(base.iterdir()) == []
        process.send_signal(number)
        process.wait()
    assert list(base.iterdir()) == []


def test_the_folder_is_that_of_the_system_unless_another_is_named(monkeypatch, tmp_path):
    assert spool_base() == tmp_path
    monkeypatch.delenv("PRIVSPAN_TMPDIR")
    assert spool_base().is_dir()
    monkeypatch.setenv("PRIVSPAN_TMPDIR", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="must name a folder that exists"):
        spool_base()


def test_a_process_that_goes_elsewhere_removes_its_copy(base, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(base.parent)
    monkeypatch.setenv("PRIVSPAN_TMPDIR", base.name)
    with Spool() as spool:
        monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
        assert spool.path.parent == base
    assert list(base.iterdir()) == []


BUSY = """
    import sys, time, warnings
    from privspan.rows.files.spool import Spool
    warnings.simplefilter("ignore")
    print("ready")
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        with Spool() as spool:
            (spool.path / "copy").write_bytes(b"mine")
            assert (spool.path / "copy").read_bytes() == b"mine"
    print("fine")
"""


def test_processes_that_make_copies_at_once_do_not_take_one_another_s_for_leftovers(base):
    with child(BUSY) as one, child(BUSY) as other:
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            remove_leftovers(base)
        assert [process.stdout.read() for process in (one, other)] == ["fine\n", "fine\n"]
    assert list(base.iterdir()) == []


AT_WORK = """
    import sys, warnings
    import numpy as np, pyarrow as pa
    from dataclasses import replace
    import privspan as ps
    from privspan.rows import open_rows
    from privspan.rows.files.spool import Spool
    from privspan.rows.limits import LIMITS
    warnings.simplefilter("ignore")
    rows = pa.table({f"c{j}": np.random.default_rng(j).normal(size=20_000) for j in range(4)})
    print("ready")
    while True:
        if "named" in sys.argv:
            with Spool() as spool:
                (spool.path / "people.parquet").write_bytes(b"cells" * 10_000)
        with open_rows(rows.to_reader(100), limits=replace(LIMITS, stream_bytes=1000, window_bytes=10_000)) as kept:
            ps.private_pca(kept, 1, epsilon=1.0, delta=1e-6)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["streams", "named"])
def test_nothing_is_left_after_fifty_runs_that_are_killed_at_random(base, kind):
    """Of streams nothing is left at any time; copies with names go with the next one at the latest."""
    rng = np.random.default_rng(0)
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
    for turn in range(50):
        command = [sys.executable, "-u", "-c", textwrap.dedent(AT_WORK), kind]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.0, 0.4))
            process.send_signal(signals[turn % 3])
            process.wait()
        cells = [path for path in base.rglob("*") if path.is_file() and path.stat().st_size]
        assert kind == "named" or not cells
        assert len(list(base.iterdir())) <= 1  # each run has removed what those before it had left
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftoverWarning)
        Spool().close()
    assert list(base.iterdir()) == []
