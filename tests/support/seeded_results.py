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
    boosted = {"method": "boosted", "options": {"alpha": 0.5, "beta": 0.3}}
    yield "PrivateSubspace, exact", fitted(ps.PrivateSubspace(3, **BUDGET, method="exact"), whole)
    yield "PrivateSubspace, approximate", fitted(ps.PrivateSubspace(1, **LOOSE, method="approximate"), line)
    yield "PrivateSubspace, boosted", fitted(ps.PrivateSubspace(1, **LOOSE, **boosted), line)
    for name in ps.baselines.__all__:
        yield name, subspace(getattr(ps.baselines, name), line[:, :12], 1, **LOOSE)
    yield from rarer(X, folder)
    for shape in ((3000, 12, 2), (400, 900, 2), (50_000, 1000, 10)):
        yield (
            f"plan, {shape}",
            lambda shape=shape: {"error": np.float64(ps.plan(*shape, **BUDGET, center=False).error)},
        )


def rarer(X: np.ndarray, folder: Path) -> Iterator[tuple[str, Case]]:
    """Courses and kinds of tables that the cases above do not come by."""
    import pandas as pd

    rng = np.random.default_rng(5)
    whose, sparse = rng.integers(0, 1100, len(X)), sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    in_parts = ps.rows.partition_rows(X + 1.0, (1500, 1100, 400))
    kinds = {
        "array": (X + 1.0, {}),
        "partitions": (in_parts, {}),
        "persons": (X + 1.0, {"person": whose, "max_rows": 3}),
        "sparse persons": (sparse, {"person": whose, "max_rows": 3}),
    }
    for name, (table, more) in kinds.items():
        scales = {"": False, ", ranks": "ranks"} | ({} if sp.issparse(table) else {", deviations": "deviations"})
        for what, scale in scales.items():
            yield f"private_pca{what}, {name}", subspace(ps.private_pca, table, 2, **LOOSE, **more, scale=scale)
        yield f"private_subspace, {name}", subspace(ps.private_subspace, table, 2, **LOOSE, **more)
        yield (
            f"private_mean, {name}",
            lambda table=table, more=more: {
                "mean": ps.private_mean(table, **BUDGET, **more, norm_bound=3.0, rng=1).mean
            },
        )
        bounds = {"norm_bound": 4.0, "target_bound": 2.0}
        yield (
            f"private_regression, {name}",
            lambda table=table, more=more, bounds=bounds: {
                "x": ps.private_regression(table, X[:, 1], **LOOSE, **more, **bounds, rng=1).coefficients
            },
        )
        ids = {"person": more["person"]} if more else {}
        plane = ps.private_pca(X + 1.0, 2, **LOOSE, rng=2)
        yield (
            f"score map, {name}",
            lambda table=table, ids=ids, plane=plane: {
                "counts": ps.private_score_map(table, plane, **BUDGET, **ids, rng=1).counts
            },
        )
        for course, n in (("pairs", 250), ("one look", 1500)):
            few = ps.rows.partition_rows(X[:n], (100, n - 100)) if name == "partitions" else table[:n]
            own = {"person": whose[:n], "max_rows": 3} if more else {}
            yield f"{course}, {name}", subspace(ps.private_pca, few, 2, epsilon=0.5, delta=1e-6, **own)
    yield "gaps of rows, partitions", subspace(ps.private_pca, in_parts, 2, **LOOSE, missing="zero-row")

    sloped = rng.normal(size=(36_000, 12)) * np.linspace(3.0, 0.5, 12) + 4.0
    yield "early Gram", subspace(ps.private_pca, sloped, 3, **LOOSE)
    yield "share of variance", subspace(ps.private_pca, sloped[:6000], 0.8, **LOOSE)
    yield "SeedSequence", subspace(ps.private_pca, sloped[:6000], 3, **LOOSE, rng=np.random.SeedSequence(7))
    yield "standardised", subspace(ps.private_pca, sloped[:6000], 3, **LOOSE, scale=True)
    broad = near_plane(3000, 300, 3, 0.3) * np.linspace(1.0, 2.0, 300) + 1.0
    yield "wide centred looks", subspace(ps.private_pca, broad, 3, **LOOSE)
    yield "wide centred looks, float32", subspace(ps.private_pca, broad.astype(np.float32), 3, **LOOSE)
    yield (
        "wide centred looks, partitions",
        subspace(ps.private_pca, ps.rows.partition_rows(broad, (1700, 1300)), 3, **LOOSE),
    )
    yield (
        "wide centred looks, persons",
        subspace(ps.private_pca, broad, 3, **LOOSE, person=np.arange(3000) // 2, max_rows=2),
    )
    yield "wide centred looks, sparse", subspace(ps.private_pca, sp.csr_array(np.maximum(broad, 0.0)), 3, **LOOSE)
    yield "wide, pairs", subspace(ps.private_pca, broad[:400], 3, **BUDGET)
    yield "wide, one look", subspace(ps.private_pca, broad[:1500], 3, **BUDGET)
    yield (
        "wide mean, float32",
        lambda: {"mean": ps.private_mean(broad.astype(np.float32), **BUDGET, norm_bound=40.0, rng=1).mean},
    )
    steep = rng.normal(size=(20_000, 40)) * np.r_[1.0, 1.0, 0.02, 0.02, np.full(36, 1e-3)]
    yield "preconditioned looks", subspace(ps.private_subspace, steep, 4, **BUDGET, method="adaptive")
    yield (
        "preconditioned looks, partitions",
        subspace(ps.private_subspace, ps.rows.partition_rows(steep, (9000, 11_000)), 4, **BUDGET, method="adaptive"),
    )
    ranges = {0: (-9.0, 9.0), 3: (-5.0, 50.0)}
    for name, (table, more) in kinds.items():
        yield f"public bounds, {name}", subspace(ps.private_pca, table, 2, **LOOSE, **more, bounds=ranges)
        line = ps.Subspace(np.eye(12)[:, :2])
        ids = {"person": more["person"]} if more else {}
        yield (
            f"score map of a public plane, {name}",
            lambda table=table, ids=ids, line=line: {
                "counts": ps.private_score_map(table, line, **BUDGET, **ids, bins=5, rng=1).counts
            },
        )
        if not sp.issparse(table):
            yield (
                f"private_scales, {name}",
                lambda table=table, more=more: {"scale": ps.private_scales(table, **LOOSE, **more, rng=1).scale},
            )
    measured = ps.private_pca(sloped, 2, **LOOSE, scale="deviations", rng=2)
    yield (
        "score map of standardised columns",
        lambda: {"counts": ps.private_score_map(sloped[:3000], measured, **BUDGET, rng=1).counts},
    )
    for name, sigma in (("clear", 0.2), ("heavy tails", 2.0)):
        heavy = rng.normal(size=(3000, 280)) * np.r_[9.0, np.ones(279)] * rng.lognormal(sigma=sigma, size=(3000, 1))
        yield f"wide, {name}", subspace(ps.private_pca, heavy, 3, epsilon=20.0, delta=1e-3)
    words = pd.DataFrame({"height": X[:, 0], "sex": np.where(X[:, 1] > 0.0, "f", "m"), "weight": X[:, 2]})
    yield "categories", subspace(ps.private_pca, words, 2, **LOOSE, categories={"sex": ["f", "m"]})
    np.save(folder / "mapped.npy", sloped[:6000])
    mapped = np.load(folder / "mapped.npy", mmap_mode="r")
    yield "memory map", subspace(ps.private_pca, mapped, 3, **LOOSE, around={2: 1.0}, missing="zero-row")


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
