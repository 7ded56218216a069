"""Seeded results of every public function on a fixed set of small tables, to hold them equal while code moves.

    python tests/support/seeded_results.py write FILE      # the results of the code as it is
    python tests/support/seeded_results.py compare FILE    # which of them differ by a bit; exit code 1 if any does
    python tests/support/seeded_results.py near FILE       # which of them differ by more than a rounding

Bits depend on the kernels of linear algebra, and a last bit decides how directions of equal variance turn, or how
many random bits a draw of noise takes.  So all commands use kernels that any x86-64 processor of the last ten years
has, whichever it is (`COMMON`).  The slow suite compares with `seeded_results.npz` beside this file.  Only public
names are used: the set outlives every move of a file.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import privspan as ps

STORED = Path(__file__).with_suffix(".npz")
COMMON = {
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
}
TOLERANCE = 1e-6
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
LOOSE = {"epsilon": 4.0, "delta": 1e-3}  # at which methods that vote agree

Case = Callable[[], dict[str, Any]]


def near_plane(n: int, d: int, k: int, tail: float) -> np.ndarray:
    """Rows near a k-dimensional subspace, made here so that no change of `privspan.datasets` moves the set."""
    rng = np.random.default_rng(n + d)
    signal = rng.normal(size=(n, k)) @ np.linalg.qr(rng.normal(size=(d, k)))[0].T
    return signal + tail * rng.normal(size=(n, d))


def containers(X: np.ndarray, folder: Path) -> dict[str, Any]:
    """One table in every form that the library reads."""
    import dask.array as da
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"c{j}" for j in range(X.shape[1])]
    np.save(folder / "table.npy", X)
    pd.DataFrame(X, columns=names).to_csv(folder / "table.csv", index=False)
    pq.write_table(pa.table(dict(zip(names, X.T, strict=True))), folder / "table.parquet", row_group_size=700)
    sparse = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    sp.save_npz(folder / "sparse.npz", sparse)
    with_gaps = X.copy()
    with_gaps[7, 2], with_gaps[11], with_gaps[12] = np.nan, np.inf, 1e200
    return {
        "float32": X.astype(np.float32),
        "int16": np.round(100.0 * X).astype(np.int16),
        "boolean": X > 0.0,
        "by columns": np.asfortranarray(X),
        "gaps": with_gaps,
        "pandas": pd.DataFrame(X, columns=names),
        "polars": pl.DataFrame(X, schema=names),
        "csr": sparse,
        "csc": sp.csc_matrix(sparse),
        "npy": ps.rows.open_rows(folder / "table.npy"),
        "csv": ps.rows.open_rows(folder / "table.csv"),
        "parquet": ps.rows.open_rows(folder / "table.parquet"),
        "npz": ps.rows.open_rows(folder / "sparse.npz"),
        "dask": da.from_array(X, chunks=((1200, 0, 1, len(X) - 1201), (X.shape[1],))),
    }


def of_release(release: ps.Release) -> dict[str, Any]:
    """What a release holds, as arrays."""
    basis = np.zeros((0, 0)) if release.subspace is None else release.subspace.basis
    numbers = {
        name: np.asarray(value) for name, value in release.extras.items() if np.asarray(value).dtype.kind in "iuf"
    }
    return {"basis": basis, **numbers}


def subspace(function: Callable[..., ps.Release], *args: Any, **options: Any) -> Case:
    return lambda: of_release(function(*args, **{"rng": 1} | options))


def fitted(model: Any, X: Any) -> Case:
    return lambda: of_release(model.set_params(random_state=1).fit(X).release_)


def cases(folder: Path) -> Iterator[tuple[str, Case]]:
    """Every case under its name."""
    X = near_plane(3000, 12, 2, 0.05)
    line, wide = near_plane(5000, 80, 1, 1e-4), near_plane(400, 900, 2, 1e-4)
    rng = np.random.default_rng(3)
    whole = rng.integers(-50, 50, (80, 3)) @ rng.integers(-4, 5, (3, 9))

    for name, table in containers(X, folder).items():
        yield f"adaptive, {name}", subspace(ps.private_subspace, table, 2, **BUDGET, method="adaptive")
        yield f"PrivatePCA, {name}", fitted(ps.PrivatePCA(2, **BUDGET), table)
    for name in ("float32", "npy", "parquet", "dask"):
        table = containers(line[:2000], folder)[name]
        yield f"approximate, {name}", subspace(ps.approximate_subspace, table, 1, **LOOSE)
        yield f"stable, {name}", subspace(ps.stable_subspace, table, 1, **LOOSE)
        yield f"mean, {name}", lambda table=table: {"mean": ps.private_mean(table, **BUDGET, rng=1).mean}

    for method in ("auto", "adaptive", "analyze-gauss", "stable", "approximate"):
        yield f"private_subspace, {method}", subspace(ps.private_subspace, line[:1500], 1, **LOOSE, method=method)
        yield f"wide, {method}", subspace(ps.private_subspace, wide, 2, **LOOSE, method=method)
        yield f"PrivatePCA, {method}", fitted(ps.PrivatePCA(1, **LOOSE, method=method), line + 3.0)
    yield "adaptive, many components", subspace(ps.private_subspace, near_plane(4000, 90, 9, 0.3), 9, **BUDGET)
    yield "approximate, histogram", subspace(ps.approximate_subspace, line, 1, **LOOSE, aggregate="histogram")
    yield "boosted", subspace(ps.boosted_subspace, line, 1, **LOOSE, alpha=0.5, beta=0.3)
    yield "exact", subspace(ps.exact_subspace, whole, 3, **BUDGET)
    yield "exact, affine", subspace(ps.exact_subspace, whole + 7, 3, **BUDGET, affine=True)
    yield "exact, votes", subspace(ps.exact_subspace, np.tile(whole, (10, 1)), 3, **BUDGET, method="votes")
    yield "stable, short tail", subspace(ps.stable_subspace, near_plane(900, 60, 2, 1e-3), 2, **LOOSE)
    yield "mean", lambda: {"mean": ps.private_mean(X + 2.0, **BUDGET, rng=1).mean}
    yield "mean, bound", lambda: {"mean": ps.private_mean(X + 2.0, **BUDGET, norm_bound=9.0, rng=1).mean}
    bounds = {"norm_bound": 2.0, "target_bound": 1.0}
    yield "regression", lambda: {"x": ps.private_regression(X, X[:, 0], **BUDGET, **bounds, rng=1).coefficients}
    yield "PrivatePCA, not centred", fitted(ps.PrivatePCA(2, **BUDGET, center=False), X)
    yield "PrivatePCA, robust", fitted(ps.PrivatePCA(2, **BUDGET, robust=True), X + 1.0)
    yield "PrivatePCA, dimension", fitted(ps.PrivatePCA("auto", **LOOSE, max_components=4), X)
    yield "ExactSubspace", fitted(ps.ExactSubspace(3, **BUDGET), whole)
    yield "ApproximateSubspace", fitted(ps.ApproximateSubspace(1, **LOOSE), line)
    yield "BoostedSubspace", fitted(ps.BoostedSubspace(1, **LOOSE, alpha=0.5, beta=0.3), line)
    for name in ps.baselines.__all__:
        yield name, subspace(getattr(ps.baselines, name), line[:, :12], 1, **LOOSE)
    for shape in ((3000, 12, 2), (400, 900, 2), (50_000, 1000, 10)):
        yield f"plan, {shape}", lambda shape=shape: {"error": np.float64(ps.plan(*shape, **BUDGET).error)}


def results() -> dict[str, np.ndarray]:
    """Run every case."""
    found: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, case in cases(Path(folder)):
            found |= {f"{name}: {what}": np.asarray(value) for what, value in case().items()}
    return found


def differences(one: dict[str, np.ndarray], two: dict[str, np.ndarray], tolerance: float = 0.0) -> list[str]:
    """Name what differs by a bit, or by more than the tolerance, or is in one of them only, with by how much."""
    said = [f"{name}: in one of the two only" for name in sorted(one.keys() ^ two.keys())]
    for name in (name for name in one if name in two):
        a, b = one[name], two[name]
        if a.dtype != b.dtype or a.shape != b.shape:
            said.append(f"{name}: {a.dtype}{a.shape} against {b.dtype}{b.shape}")
        elif a.tobytes() != b.tobytes() and not (tolerance and np.allclose(a, b, rtol=tolerance, atol=tolerance)):
            said.append(f"{name}: by {np.max(np.abs(a - b), initial=0.0):.2g}")
    return said


def main(command: str, file: str) -> int:
    if command == "write":
        np.savez_compressed(file, **results())
        return 0
    with np.load(file) as stored:
        said = differences(dict(stored), results(), TOLERANCE if command == "near" else 0.0)
    print("\n".join(said) or "all equal")
    return int(bool(said))


if __name__ == "__main__":
    if not COMMON.items() <= os.environ.items():  # read when NumPy is imported, so in a process of its own
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | COMMON)
    sys.exit(main(*sys.argv[1:]))
