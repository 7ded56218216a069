"""Files of every format, whole and damaged, and the command line on them.

A file is a table or an `UnreadableFileError`; a command ends with an exit code that says why, never with
"unexpected", and what it writes to standard error holds no cell.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr
from fuzzing import TELLTALE, Table, alarm, assert_told_nothing, mostly
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from privspan.cli import main
from privspan.cli.exits import ExitCode
from privspan.ledger import Ledger
from privspan.rows import RowSource, UnreadableFileError, open_rows
from privspan.rows.damage import damage_told

DTYPES = ("?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", ">f8", ">i4")


def save_csv(path: Path, cells: Any) -> None:
    rows = [",".join(f"c{j}" for j in range(cells.shape[1])), *(",".join(map(str, row)) for row in cells.tolist())]
    path.write_text("\n".join(rows) + "\n")


def save_table(path: Path, cells: Any) -> None:
    native = cells.astype(cells.dtype.newbyteorder("="))
    table = pa.table({f"c{j}": pa.array(native[:, j]) for j in range(cells.shape[1])})
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=16)
    else:
        pa.feather.write_feather(table, path, chunksize=16)


def save_h5ad(path: Path, cells: Any) -> None:
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        file.create_dataset("X", data=cells).attrs["encoding-type"] = "array"


def save_sparse(path: Path, cells: Any) -> None:
    native = cells.astype("f8" if cells.dtype.kind == "f" else cells.dtype.newbyteorder("="))
    sparse.save_npz(path, sparse.csr_array(native))


WRITERS: dict[str, Callable[[Path, Any], None]] = {
    "dense.npy": np.save,
    "dense.npz": lambda path, cells: np.savez(path, X=cells),
    "sparse.npz": save_sparse,
    "table.csv": save_csv,
    "table.parquet": save_table,
    "table.feather": save_table,
    "table.arrow": save_table,
    "store.zarr": lambda path, cells: zarr.save_array(str(path), np.ascontiguousarray(cells)),
    "table.h5ad": save_h5ad,
}
DAMAGES = ("none", "none", "cut", "flipped", "empty", "noise", "other suffix")
# A flipped byte makes pyarrow throw a C++ exception in some Parquet files that nobody can catch: the process ends.
NOT_FLIPPABLE = ("table.parquet",)


def file_tables(most_rows: int = 60) -> Any:
    """Draw the description of a table that a file can hold."""
    return st.builds(
        Table,
        n=st.integers(1, most_rows),
        d=st.integers(1, 8),
        dtype=st.sampled_from(DTYPES),
        layout=st.sampled_from(["C", "F", "backwards", "every second"]),
        contents=st.sampled_from(["normal", "low rank", "zeros", "not finite", "tiny", "huge", "integers"]),
        wrap=st.just("array"),
        seed=st.integers(0, 2**16),
    )


@contextlib.contextmanager
def written(name: str, table: Table, damage: str = "none") -> Iterator[Path]:
    """Write a table to a file in a folder of its own, and damage it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the writers, about byte orders and names
            WRITERS[name](path, table.make())
        rng = np.random.default_rng(table.seed)
        if path.is_file():
            damage = "cut" if damage == "flipped" and name in NOT_FLIPPABLE else damage
            path = damaged(path, damage, rng)
        else:
            damage_one_inside(path, damage, rng)
        yield path


def damage_one_inside(folder: Path, damage: str, rng: np.random.Generator) -> None:
    """Damage one file of a store, metadata or a chunk; "other suffix" takes its name away."""
    inside = sorted(file for file in folder.rglob("*") if file.is_file())
    chosen = inside[int(rng.integers(len(inside)))]
    renamed = damaged(chosen, damage, rng)
    if renamed != chosen:
        chosen.unlink()


def damaged(path: Path, damage: str, rng: np.random.Generator) -> Path:
    content = bytearray(path.read_bytes())
    match damage:
        case "cut":
            content = content[: int(rng.integers(0, max(1, len(content))))]
        case "flipped":
            for place in rng.integers(0, max(1, len(content)), 3 if content else 0):
                content[place] ^= int(rng.integers(1, 256))
        case "empty":
            content = bytearray()
        case "noise":
            content = bytearray(rng.bytes(len(content)))
        case "other suffix":
            suffixes = sorted({Path(name).suffix for name in WRITERS})
            path = path.with_suffix(str(rng.choice(suffixes)))
    path.write_bytes(content)
    return path


def content_of(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in [path, *path.rglob("*")] if file.is_file()}


def fuzz_files(name: str, cases: int) -> None:
    """Open, read and read again so many files of one format."""

    @settings(max_examples=cases)
    @given(file_tables(), st.sampled_from(DAMAGES), mostly(st.none(), ["c0"], ["c7", "c0"], ["x"], [], "c0"))
    def run(table: Table, damage: str, columns: Any) -> None:
        with written(name, table, damage) as path, alarm():
            before = content_of(path)
            try:
                source = open_rows(path, columns=columns)
                read_everything(source)
            except (UnreadableFileError, TypeError, ValueError) as error:
                assert_told_nothing(error)
            else:
                # A column of CSV without a number, such as one of "inf", is text.
                if damage == "none" and columns is None and name != "table.csv":
                    assert source.shape == (table.n, table.d)
            assert content_of(path) == before

    run()


def read_everything(source: RowSource) -> None:
    n, d = source.shape
    whole = source[:]
    assert whole.shape == (n, d)
    backwards = source[np.arange(n)[::-1]]
    if not source.is_sparse:
        np.testing.assert_array_equal(backwards[::-1], whole)
    assert source[1:3].shape == (len(range(n)[1:3]), d)
    assert source.take_columns(slice(0, 1)).shape == (n, 1)


@pytest.mark.parametrize("name", WRITERS)
def test_a_sample_of_files(name: str) -> None:
    fuzz_files(name, 15)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_many_files(name: str) -> None:
    fuzz_files(name, 250)


# --- The command line ------------------------------------------------------------------------------------

numbers = mostly(st.sampled_from(["1", "0.5", "2e-3", "50", "1e-6"]), "0", "-1", "nan", "many", "1e400", "")
counts = mostly(st.sampled_from(["1", "2", "3"]), "0", "-2", "1.5", "99", "auto", "x", "1e9")


def targets(*suffixes: str) -> Any:
    """Draw a file to write, mostly one that can be: in a folder that is there, with the right suffix."""
    return mostly(st.sampled_from([f"written.{suffix}" for suffix in suffixes]), "x.txt", ".", "no/x.html", "", "-")


flags = {
    "--method": mostly(
        st.sampled_from(["auto", "adaptive", "stable", "approximate", "analyze-gauss"]), "votes", "exact", "best"
    ),
    "--gamma": numbers,
    "--norm-bound": numbers,
    "--decimals": counts,
    "--seed": counts,
    "--columns": st.sampled_from(["c0,c1", "c0", "c0,c0", "", ",", "nobody", '"c0']),
    "--limit-epsilon": numbers,
    "--limit-delta": numbers,
    "--dataset": st.sampled_from(["people", "", "a b", "../people", "7" * 300, "\u202e"]),
    "--max-k": counts,
    "--report": targets("html"),
}
switches = ("--exact", "--affine", "--no-center", "--json", "--nonsense")


@st.composite
def fits(draw: Any) -> list[str]:
    """Draw the options of `privspan fit`."""
    options = [
        "--k",
        draw(counts),
        "--epsilon",
        draw(numbers),
        "--delta",
        draw(mostly(st.just("1e-6"), "0", "1", "x")),
    ]
    for flag in draw(st.lists(st.sampled_from(sorted(flags)), max_size=2, unique=True)):
        options += [flag, draw(flags[flag])]
    return [*options, *draw(st.lists(st.sampled_from(switches), max_size=1))]


def command(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
    """Run a command; check its exit code and what it said."""
    out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    with (
        alarm(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as at,
    ):
        at.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(list(arguments))
    said = err.getvalue()
    assert code in set(ExitCode) - {ExitCode.FAILED, ExitCode.INTERRUPTED}, said
    assert "run it again with --debug" not in said  # as after an exception that nobody foresaw
    assert "Traceback" not in said
    assert not TELLTALE.search(said), said
    assert code or out.buffer.getvalue() or "transform" in arguments or "--report" in arguments
    return code, said


def to_report(target: str) -> list[str]:
    return ["--report", target]


def fuzz_commands(cases: int) -> None:
    """Fit, and use what was written with every command that reads it."""

    @settings(max_examples=cases)
    @given(
        st.sampled_from(sorted(WRITERS)),
        file_tables(120),
        mostly(st.just("none"), *DAMAGES[2:], times=8),
        fits(),
        st.sampled_from(["out.csv", "out.npy", "out.parquet", "-", "out.txt"]),
        st.one_of(st.just([]), counts.map(lambda count: ["--loadings", count]), targets("html").map(to_report)),
    )
    def run(name: str, table: Table, damage: str, options: list[str], target: str, shown: list[str]) -> None:
        with written(name, table, damage) as path, contextlib.chdir(path.parent):
            before = content_of(path)
            ledger = ["--ledger", "book.json"] if table.seed % 3 == 0 else []
            piped = name == "table.csv" and table.seed % 2 == 0
            file, stdin = ("-", path.read_bytes()) if piped else (path.name, b"")
            code, _ = command("fit", file, *options, *ledger, "-o", "fitted.npz", stdin=stdin)
            assert Path("fitted.npz").exists() == (code == 0)
            command("show", "fitted.npz", *shown)
            command("relations", "fitted.npz", "--json")
            command("compare", "fitted.npz", "fitted.npz")
            command("transform", "fitted.npz", file, "-o", target, stdin=stdin)
            if ledger and Path("book.json").exists():
                assert command("ledger", "show", "book.json")[0] == 0
                assert len(next(iter(Ledger("book.json").accounts().values())).entries) <= 1
            assert content_of(path) == before
            assert not [left for left in os.listdir() if left.startswith(("tmp", "."))]

    run()


def fuzz_other_commands(cases: int) -> None:
    sizes = mostly(st.sampled_from(["100", "1e4", "12"]), "0", "x", "1e13", "-3")
    plain = [[], ["--json"], ["--exact"], ["--error", "0.2"]]
    pictures = (
        targets("png", "svg").map(lambda target: ["--plot", target]),
        targets("html").map(lambda target: ["--html", target]),
    )

    @settings(max_examples=cases)
    @given(sizes, sizes, counts, numbers, numbers, st.one_of(st.sampled_from(plain), *pictures))
    def run(n: str, d: str, k: str, epsilon: str, delta: str, more: list[str]) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            code, _ = command("plan", "--n", n, "--d", d, "--k", k, "--epsilon", epsilon, "--delta", delta, *more)
            assert len(os.listdir()) == (code == 0 and more[:1] in (["--plot"], ["--html"]))
            command("ledger", "limit", "book.json", "--dataset", k, "--limit-epsilon", epsilon)
            command("ledger", "show", "book.json")

    run()


# Commands that run for minutes: drawn with one mistake at least, at which they must stop before they begin.
SOUND = {
    "audit": (["--runs", "8"], ["--seed", "1"], ["--json"], ["--workers", "1"], ["--output", "a.json"]),
    "bench": (["--quick"], ["--full"], ["--suite", "map"], ["--jobs", "1"], ["--output", "out"], ["--fresh"]),
    "demo": (["--open"], ["--output", "out"]),
}
MISTAKES = {
    "audit": (["--runs", "0"], ["--runs", "x"], ["--seed", "-1"], ["--workers", "0"], ["--output", "."], ["nobody"]),
    "bench": (
        ["--suite", "nobody"],
        ["--jobs", "0"],
        ["--jobs", "x"],
        ["--retry", "--fresh"],
        ["nobody"],
        ["--suite"],
    ),
    "demo": (["--output"], ["nobody"]),
}


def fuzz_long_commands(cases: int) -> None:
    @settings(max_examples=cases)
    @given(st.data(), st.sampled_from(sorted(SOUND)), st.sampled_from([["--nonsense"], ["--", "-x"], ["\u202e"]]))
    def run(data: st.DataObject, name: str, odd: list[str]) -> None:
        sound = data.draw(st.lists(st.sampled_from(SOUND[name]), max_size=2, unique_by=tuple))
        mistake = data.draw(st.one_of(st.sampled_from(MISTAKES[name]), st.just(odd)))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            code, said = command(name, *(word for words in sound for word in words), *mistake)
            assert code == ExitCode.USAGE, said
            assert os.listdir() == []

    run()


def test_a_sample_of_commands() -> None:
    fuzz_commands(12)
    fuzz_other_commands(6)


def test_a_sample_of_long_commands() -> None:
    fuzz_long_commands(25)


@pytest.mark.slow
def test_many_fits() -> None:
    fuzz_commands(400)


@pytest.mark.slow
def test_many_other_commands() -> None:
    fuzz_other_commands(200)


@pytest.mark.slow
def test_many_long_commands() -> None:
    fuzz_long_commands(300)


def test_a_file_that_says_it_is_endless_is_damaged_and_an_exhausted_machine_is_not():
    with pytest.raises(UnreadableFileError, match="broken"), damage_told("broken", "is damaged."):
        raise pa.ArrowMemoryError("malloc of size 1152921504606846976 failed")
    with pytest.raises(MemoryError), damage_told("broken", "is damaged."):
        raise MemoryError
