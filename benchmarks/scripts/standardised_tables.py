"""Standardised PCA of real tables in their own units: what is captured, what is told, and what others would capture.

Run ``python benchmarks/scripts/standardised_tables.py``: it prints a line per budget and stores a row per table and
budget in ``benchmarks/results/standardised_tables.csv`` (``--label before`` in another file, for another version of
the package: only ``private_pca(scale=True)`` is called, and a refusal counts as 0).  ``--summary`` compares both.

``--only-fits`` makes the fits anew and keeps what is stored of others, which takes a third of the time; with
``--course deviations`` only those of tables and budgets that take this course.
``--against prototype.py tables.npz …`` compares with the prototype on tables that constants were chosen on, arrays
named "name:k", and stores ``standardised_prototype.csv``.

Tables: `_fresh_tables.py`, none of which any constant was fitted on.  The rival is Analyze Gauss on unit rows that
were standardised with the true means and deviations for free; the envelope knows these too, and takes the best of six
clips.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import math
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _fresh_tables import FreshTable, captured, fresh_tables

from privspan import plan, private_pca
from privspan.privacy import mu_from_budget

RESULTS = Path(__file__).parents[1] / "results"
EPSILONS, DELTA = (0.1, 0.3, 1.0, 3.0), 1e-6
FITS, RUNS = 100, 20  # of ours, whose errors are looked at, and of others
CLIPS = (0.7, 1.0, 1.4, 2.0, 3.0, 5.0)  # of sqrt(d), in true deviations


def noisy_basis(rows: np.ndarray, mu: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """Analyze Gauss: rows no longer than 1, symmetric noise."""
    normal = rng.standard_normal((rows.shape[1],) * 2)
    return np.linalg.eigh(rows.T @ rows + (normal + normal.T) / math.sqrt(2.0) / mu)[1][:, ::-1][:, :k]


def others(table: FreshTable, mu: float, runs: int) -> tuple[float, float]:
    """What Analyze Gauss on unit rows captures, and what the best of six clips does."""
    lengths, rng = np.linalg.norm(table.standardised, axis=1, keepdims=True), np.random.default_rng(0)
    unit = table.standardised / np.maximum(lengths, 1e-12)
    rival = np.mean([table.captured(noisy_basis(unit, mu, table.k, rng)) for _ in range(runs)])
    best = rival
    for clip in np.multiply(CLIPS, math.sqrt(table.values.shape[1])):
        rows = table.standardised / np.maximum(lengths, clip)
        best = max(best, np.mean([table.captured(noisy_basis(rows, mu, table.k, rng)) for _ in range(runs)]))
    return float(rival), float(best)


def rank_correlations(values: np.ndarray, pairs: int = 400_000) -> np.ndarray:
    """The matrix that ranks estimate, from many pairs."""
    rng, n = np.random.default_rng(0), len(values)
    first, second = rng.integers(n, size=(2, pairs))
    signs = np.sign(values[first] - values[second])
    moment = signs.T @ (signs / np.maximum((signs != 0).sum(axis=1), 1)[:, None])
    roots = np.sqrt(np.maximum(np.diagonal(moment), 1e-12))
    return moment / np.outer(roots, roots)


def fits(table: FreshTable, epsilon: float, runs: int, ranks: np.ndarray) -> dict[str, object]:
    """Fit many times; refusals capture nothing."""
    shares, made = [], []
    for seed in range(runs):
        try:
            release = private_pca(table.values, table.k, epsilon=epsilon, delta=DELTA, scale=True, rng=seed)
        except ValueError:
            shares.append(0.0)
            continue
        made.append(release)
        shares.append(table.captured(release.subspace.basis))
    row: dict[str, object] = {"captured": np.mean(shares), "refused": 1.0 - len(made) / runs}
    if not made:
        return row
    told = np.array([release.extras.get("captured_variance", np.nan) for release in made])  # where any stands out
    error = np.array([release.extras.get("captured_variance_std", np.nan) for release in made])
    course = str(made[0].parameters["course"])
    target = ranks if course == "ranks" else table.correlations
    truth = np.array([captured(target, release.subspace.basis) for release in made])
    high = told - truth
    ratios = np.array([release.extras["explained_variance_ratio"] for release in made])
    ratio_std = np.array([release.extras.get("explained_variance_std", np.nan) for release in made]) / len(target)
    found = int(min(int(release.extras["stands_out"]) for release in made))
    bases = np.array([release.subspace.basis.T for release in made])
    bases *= np.sign(np.einsum("rkd,kd->rk", bases, bases[0]))[:, :, None]
    loading_std = np.array([release.extras["components_std"] for release in made])
    return row | {
        "course": course,
        "told": np.nanmean(told) if np.isfinite(told).any() else np.nan,
        "estimated": truth.mean(),
        "too_high": np.mean((high > 2.0 * error) & (high > 0.05)),
        "share_errors": over_spread(ratio_std, ratios),
        "found_share_errors": over_spread(ratio_std[:, :found], ratios[:, :found]),
        "loading_errors": over_spread(loading_std[:, :found], bases[:, :found]),
        "stands_out": found,
    }


def over_spread(errors: np.ndarray, told: np.ndarray) -> float:
    """Return the root mean square of told errors over the spread from fit to fit; the first axis is that of fits."""
    return math.sqrt((errors**2).mean() / max(told.var(axis=0).mean(), 1e-18)) if told.size else math.nan


def forecast(n: int, d: int, k: int, epsilon: float) -> float:
    """What `plan` says before anything is spent; NaN in versions that cannot tell."""
    told = getattr(plan(n, d, k, epsilon=epsilon, delta=DELTA, center=True, scale=True), "captured", None)
    return math.nan if told is None else float(told)


def known_units(table: FreshTable, epsilon: float, runs: int) -> float:
    """What the everyday course captures whose units are the true standard deviations; refusals capture nothing."""
    shares, units = [], table.values.std(axis=0)
    for seed in range(runs):
        try:
            release = private_pca(table.values, table.k, epsilon=epsilon, delta=DELTA, units=units, rng=seed)
        except ValueError:
            shares.append(0.0)
        else:
            shares.append(table.captured(release.subspace.basis))
    return float(np.mean(shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label", default="", help="of another version of the package, for the name of the file")
    parser.add_argument("--quick", action="store_true", help="three tables, two runs, nothing stored")
    parser.add_argument("--summary", action="store_true", help="compare the stored files")
    parser.add_argument("--only-fits", action="store_true", help="keep what is stored of others")
    parser.add_argument("--course", default="", help="with --only-fits: keep what is stored of the other course too")
    parser.add_argument("--against", nargs="+", help="the prototype and files of tables to compare with it on")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.summary:
        summary()
    elif arguments.against:
        against(*arguments.against)
    else:
        run(arguments)


def run(arguments: argparse.Namespace) -> None:
    """Fit every table with every budget, print a line per budget, store a row per table and budget."""
    (count, runs), rows = (2, 2) if arguments.quick else (FITS, RUNS), []
    tables = list(fresh_tables())[: 3 if arguments.quick else None]
    kept = stored(arguments.label) if arguments.only_fits else {}
    for table in tables:
        ranks = None
        for epsilon in EPSILONS:
            if arguments.course and (before := kept[table.name, epsilon])["course"] != arguments.course:
                rows.append(dict(before))
                continue
            ranks = rank_correlations(table.values) if ranks is None else ranks
            mu = mu_from_budget(epsilon, DELTA)
            row = {"table": table.name, "n": len(table.values), "d": table.values.shape[1], "k": table.k}
            row |= {"epsilon": epsilon, **fits(table, epsilon, count, ranks)}
            row["forecast"] = forecast(len(table.values), table.values.shape[1], table.k, epsilon)
            if (before := kept.get((table.name, epsilon))) is not None:
                row |= {name: float(before[name]) for name in ("known_units", "rival", "envelope")}
            else:
                row["known_units"] = known_units(table, epsilon, runs)
                row["rival"], row["envelope"] = others(table, mu, runs)
            rows.append(row)
        print(f"{table.name}, {len(table.values):,} rows", flush=True)
    for epsilon in EPSILONS:
        mine = [row for row in rows if float(row["epsilon"]) == epsilon]
        means = {name: np.mean([float(row[name]) for row in mine]) for name in ("captured", "rival", "envelope")}
        told = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
        print(f"epsilon {epsilon:g}: {told}, refused {np.mean([float(row['refused']) for row in mine]):.2f}")
    if not arguments.quick:
        store(path_of(arguments.label), rows)


def against(prototype: str, *files: str, epsilons: tuple[float, ...] = (0.3, 1.0, 3.0), runs: int = 8) -> None:
    """Compare with the prototype: captured variance of the truly standardised table, mean over a file."""
    spec = importlib.util.spec_from_file_location("prototype", prototype)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = []
    for file in files:
        for key, values in np.load(file).items():
            name, k = key.split(":")
            table = FreshTable(name, values)
            for epsilon in epsilons:
                theirs = [module.fit(values, int(k), epsilon, DELTA, seed)[0] for seed in range(runs)]
                budget = {"epsilon": epsilon, "delta": DELTA, "scale": True}
                ours = [private_pca(values, int(k), **budget, rng=seed).subspace.basis for seed in range(runs)]
                row = {"set": Path(file).stem, "table": name, "epsilon": epsilon}
                row |= {"prototype": np.mean([table.captured(basis) for basis in theirs])}
                rows.append(row | {"package": np.mean([table.captured(basis) for basis in ours])})
        for epsilon in epsilons:
            mine = [row for row in rows if row["set"] == Path(file).stem and row["epsilon"] == epsilon]
            told = ", ".join(
                f"{name} {np.mean([row[name] for row in mine]):.3f}" for name in ("prototype", "package")
            )
            print(f"{Path(file).stem}, epsilon {epsilon:g}: {told}", flush=True)
    store(RESULTS / "standardised_prototype.csv", rows)


def store(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, max(rows, key=len).keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: f"{v:.4f}" if isinstance(v, float) else v for key, v in row.items()} for row in rows)


def path_of(label: str) -> Path:
    return RESULTS / f"standardised_tables{'_' * bool(label)}{label}.csv"


def stored(label: str) -> dict[tuple[str, float], dict[str, str]]:
    """Return the rows of a file, by table and budget."""
    with path_of(label).open() as handle:
        return {(row["table"], float(row["epsilon"])): row for row in csv.DictReader(handle)}


def numbers(keys: list, rows: dict, name: str) -> np.ndarray:
    """Return one number of every row, NaN where there is none."""
    return np.array([float(rows[key][name] or "nan") for key in keys])


def summary() -> None:
    """Compare before and now, budget by budget, and list what misses a bar."""
    before, now = stored("before"), stored("")
    print(f"{len({name for name, _ in now})} tables")
    for epsilon in EPSILONS:
        keys = [key for key in now if key[1] == epsilon]
        value = partial(numbers, keys)
        old, new, best = value(before, "captured"), value(now, "captured"), value(now, "envelope")
        closed = (new.mean() - old.mean()) / (best.mean() - old.mean())
        print(
            f"epsilon {epsilon:g}: before {old.mean():.3f} (refused {value(before, 'refused').mean():.2f}), now "
            f"{new.mean():.3f}, rival {value(now, 'rival').mean():.3f}, envelope {best.mean():.3f}; gap closed "
            f"{closed:.0%}; told {np.nanmean(value(now, 'told')):.3f}, "
            f"too high in {value(now, 'too_high').mean():.1%}"
        )
        for name in ("share_errors", "found_share_errors", "loading_errors"):
            ratio = value(now, name)
            ratio = ratio[np.isfinite(ratio)]  # none where no component stands out in all fits
            within = np.mean((ratio > 1 / 1.5) & (ratio < 1.5))
            print(
                f"  {name}: told over spread, median {np.median(ratio):.2f}, least {ratio.min():.2f}, largest "
                f"{ratio.max():.2f}; within a factor 1.5 on {within:.0%} of {len(ratio)} tables"
            )
        off = value(now, "forecast") - new
        print(f"  forecast less captured: mean {off.mean():+.3f}, root mean square {math.sqrt((off**2).mean()):.3f}")
        print(f"  everyday course, true standard deviations given: {value(now, 'known_units').mean():.3f}")
        worse = [f"{key[0]} ({o:.3f} to {v:.3f})" for key, o, v in zip(keys, old, new, strict=True) if v < o - 0.02]
        print(f"  below before by .02: {', '.join(worse) or 'none'}")


if __name__ == "__main__":
    main()
