"""What must work with every version that is allowed: `make test-oldest` runs this file with the oldest ones."""

from __future__ import annotations

import importlib.util
import signal
import sqlite3
import subprocess
import sys
import urllib.request
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import privspan as ps
from privspan.cli import main
from privspan.rows import open_rows

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
TABLE = np.random.default_rng(0).standard_normal((2_000, 4)) * [1.0, 2.0, 3.0, 4.0] + 5.0
NAMES = ["age", "height", "weight", "pulse"]


def write(path: Path) -> None:
    """Write the table in the format that a suffix names."""
    import pandas as pd
    import pyarrow as pa

    frame = pd.DataFrame(TABLE, columns=NAMES)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix in (".arrow", ".feather"):
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    elif path.suffix == ".npy":
        np.save(path, TABLE)
    elif path.suffix == ".npz":
        sparse.save_npz(path, sparse.csr_array(TABLE))
    elif path.suffix == ".h5ad":
        import h5py

        with h5py.File(path, "w") as file:
            file["X"] = TABLE
    else:
        import zarr

        zarr.save_array(str(path), TABLE)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".npy", ".npz", ".h5ad", ".zarr"])
def test_every_format_is_read(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    write(path)
    rows = open_rows(path)[:]
    np.testing.assert_allclose(rows.toarray() if sparse.issparse(rows) else rows, TABLE)


def test_databases_and_files_elsewhere_are_read(tmp_path):
    import duckdb
    import fsspec

    write(tmp_path / "table.parquet")
    with duckdb.connect(str(tmp_path / "table.duckdb")) as file:
        file.execute("create table people as select * from read_parquet($1)", [str(tmp_path / "table.parquet")])
    with sqlite3.connect(tmp_path / "table.db") as file:
        file.execute(f"create table people ({', '.join(f'{name} real' for name in NAMES)})")
        file.executemany("insert into people values (?, ?, ?, ?)", TABLE.tolist())
    for scheme, suffix in (("duckdb", "duckdb"), ("sqlite", "db")):
        rows = open_rows(f"{scheme}:///{tmp_path}/table.{suffix}", table="people")
        np.testing.assert_allclose(rows[:], TABLE)
    fsspec.filesystem("memory").put_file(str(tmp_path / "table.parquet"), "/table.parquet")
    np.testing.assert_allclose(open_rows("memory://table.parquet")[:], TABLE)


@pytest.mark.parametrize("scale", [False, True])
def test_fit_save_load_report(tmp_path, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ps.PrivatePCA(2, **BUDGET, scale=scale, random_state=0).fit(TABLE)
    path = model.release_.save(tmp_path / "release")
    again = ps.Release.load(path)
    np.testing.assert_array_equal(again.subspace.basis, model.subspace_.basis)
    assert "Private principal components" in ps.report.report_html(again)


def test_the_command_fits_shows_and_transforms(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(Path("people.csv"))
    budget = ["--epsilon", "1", "--delta", "1e-6"]
    assert main(["fit", "people.csv", "--k", "2", *budget, "--report", "r.html", "-o", "out.npz"]) == 0
    assert main(["show", "out.npz"]) == 0
    assert main(["transform", "out.npz", "people.csv", "-o", "scores.csv"]) == 0
    assert main(["plan", "--n", "1000", "--d", "5", "--k", "2", *budget]) == 0
    assert "component" in Path("scores.csv").read_text("utf-8")
    assert "captured" in capsys.readouterr().out


def test_a_ledger_and_a_picture(tmp_path):
    ledger = tmp_path / "ledger.json"
    release = ps.private_pca(TABLE, 1, **BUDGET, ledger=ledger)
    assert ledger.exists()
    ps.plot.scree(release).figure.savefig(tmp_path / "scree.png")


def test_the_oldest_versions_are_those_of_the_project():
    path = Path(__file__).parents[1] / "oldest.py"
    module = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location("oldest", path))
    spec.loader.exec_module(module)
    assert {"numpy", "scipy", "python-flint", "pandas", "pyarrow", "zarr", "typer", "scikit-learn"} <= set(
        module.oldest()
    )


def test_the_app_is_served(tmp_path: Path) -> None:
    """From the printed address to the columns of the made-up clinic, without a package for it."""
    command = [sys.executable, "-m", "privspan", "app", "--folder", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as app:
        try:
            address = app.stderr.readline().split()[-1]
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            assert "Continue" in browser.open(address).read().decode()
            home = address.partition("open")[0]
            page = browser.open(home).read().decode()
            word = page.partition('name="csrf" value="')[2].partition('"')[0]
            columns = browser.open(f"{home}example", f"csrf={word}".encode()).read().decode()
            assert "What is in the columns?" in columns
        finally:
            app.send_signal(signal.SIGINT)
            assert app.wait(30) == 0
