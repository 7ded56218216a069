"""How good are private column scales, and what do they cost a PCA of standardised columns?

Tables in mixed units: half of the columns Gaussian, a quarter log-normal (sigma from 0.5 to 1.25), a quarter 0/1 (p
from 0.02 to 0.5), one constant; units from 1e-3 to 1e6, means ten units from zero, three factors, k = 3. Scales are
measured with the shares that `scale_shares` asks for, 0/1 columns declared as such unless said otherwise; everyday
PCA has the rest of the budget. "True scales" has the same with all of the budget and the standard deviations of the
table. Captured variance is that in truly standardised columns, over the best. A second table is about 6,000 patients.
Writes ``benchmarks/results/column_scales.md``; ``--quick`` stops at n = 10,000 and d = 30.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np
from privspan.sums.scales import scales_within
from scipy.special import ndtri

from privspan.privacy import Budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import open_streams
from privspan.rows.columns import public_columns
from privspan.sums import scales
from privspan.sums.about import in_units
from privspan.sums.everyday import everyday_pca

BUDGET = Budget(1.0, 1e-6)
K = 3
SORTS = ("Gaussian", "log-normal", "0/1")
RESULTS = Path(__file__).parents[1] / "results"


def table(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows, and the sort of each column by number: 3 for the constant."""
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((K, d))
    loadings *= math.sqrt(0.5) / np.linalg.norm(loadings, axis=0)
    X = rng.standard_normal((n, K)) @ loadings + math.sqrt(0.5) * rng.standard_normal((n, d))
    sort = np.array([0, 1, 0, 2] * (d // 4 + 1))[:d]
    sort[-1] = 3
    for j in range(d):
        if sort[j] == 1:
            X[:, j] = np.exp(rng.uniform(0.5, 1.25) * X[:, j])
        if sort[j] == 2:
            X[:, j] = X[:, j] < ndtri(rng.uniform(0.02, 0.5))
    X[:, sort == 3] = 0.0
    X[:, sort != 2] = (X[:, sort != 2] + 10.0) * 10.0 ** rng.uniform(-3, 6, int((sort != 2).sum()))
    return X, sort


def patients(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return age, BMI, pressure, cholesterol, income and smoking (0/1) of people with one hidden state; and sorts."""
    rng = np.random.default_rng(seed)
    state, noise = rng.standard_normal((n, 1)), rng.standard_normal((n, 6))
    share = np.array([0.5, 0.5, 0.6, 0.4, 0.2, 0.0])
    X = [50, 27, 130, 200, 10.3, 0] + (share * state + np.sqrt(1 - share**2) * noise) * [15, 5, 18, 40, 0.7, 1]
    X[:, 4], X[:, 5] = np.exp(X[:, 4]), X[:, 5] < ndtri(0.25)
    return X, np.array([0, 0, 0, 0, 1, 2])


@dataclass(frozen=True)
class Fit:
    """One run: the scales, and the PCA of the rows in these units with the rest of the budget."""

    captured: float  # variance of standardised columns, over the best
    mean_error: float  # largest of a column, in standard deviations
    scale: np.ndarray
    share: float  # of mu², of the scales


def fit(X: np.ndarray, k: int, flags: np.ndarray, seed: int, *, true: bool = False) -> Fit:
    """Measure the scales, or take the true ones; learn the subspace in these units."""
    ledger, streams, d = MuLedger(BUDGET), open_streams(seed), X.shape[1]
    deviations, varying = X.std(axis=0), X.std(axis=0) > 1e-9 * np.abs(X).max(axis=0)
    known = replace(public_columns(X, d, bounds=np.where(flags, [[0.0], [1.0]], np.nan)), boolean=flags)
    scale = np.where(varying, deviations, math.inf) if true else scales_within(ledger, X, known, streams).scale
    share = 1.0 - ledger.left
    look = everyday_pca(in_units(X, scale), k, ledger, streams)
    factor = np.where(np.isfinite(scale), scale, 0.0)[varying]
    basis = np.linalg.qr(look.basis[varying] * (factor / deviations[varying])[:, None])[0]
    correlation = np.corrcoef(X[:, varying].T)
    captured = np.trace(basis.T @ correlation @ basis) / np.linalg.eigvalsh(correlation)[-k:].sum()
    off = (look.mean[varying] * factor - X.mean(axis=0)[varying])[factor > 0.0]
    return Fit(float(captured), float(np.abs(off / deviations[varying][factor > 0.0]).max()), scale, share)


def rms(errors: list[np.ndarray]) -> str:
    """Return the root mean square, in octaves."""
    joined = np.concatenate(errors)
    joined = joined[np.isfinite(joined)]
    return f"{math.sqrt(np.mean(joined**2)):.2f}" if joined.size else "–"


def line(n: int, d: int, repetitions: int) -> str:
    """Return one row of the table."""
    errors: dict[int, list[np.ndarray]] = {number: [] for number in range(len(SORTS))}
    one_clip, missed, fits, public, undeclared = [], [], [], [], []
    for seed in range(1_000, 1_000 + repetitions):
        X, sort = table(n, d, seed)
        true = X.std(axis=0)
        try:
            fits.append(fit(X, K, sort == 2, seed))
        except ValueError:
            return f"| {n:,} | {d} | refused | | | | | | | | | |"
        for number in errors:
            errors[number].append(np.log2(fits[-1].scale / true)[sort == number])
        with mock.patch.object(scales, "_LADDER", math.inf):
            one_clip.append(np.log2(fit(X, K, sort == 2, seed).scale / true)[sort == 1])
        undeclared.append(fit(X, K, np.zeros(d, dtype=bool), seed))
        missed.append([~np.isfinite(one.scale[sort < 3]) for one in (fits[-1], undeclared[-1])])
        public.append(fit(X, K, sort == 2, seed, true=True))
    cells = [rms(errors[0]), rms(errors[1]), rms(one_clip), rms(errors[2])]
    cells += [f"{100.0 * part:.0f} %" for part in np.mean(np.concatenate(missed, axis=1), axis=1)]
    cells += [f"{np.mean([one.captured for one in part]):.3f}" for part in (fits, undeclared, public)]
    return f"| {n:,} | {d} | {fits[0].share:.2f} | " + " | ".join(cells) + " |"


def patient_line(k: int, declared: bool, repetitions: int) -> str:
    """Return one row of the second table."""
    tables = [patients(6_000, seed) for seed in range(repetitions)]
    fits = [fit(X, k, (sort == 2) & declared, seed) for seed, (X, sort) in enumerate(tables)]
    captured, off = [one.captured for one in fits], max(one.mean_error for one in fits)
    cells = f"{np.mean(captured):.3f} | {min(captured):.3f} | {off:.2f}"
    return f"| {k} | {'yes' if declared else 'no'} | {fits[0].share:.2f} | {cells} |"


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 10,000 rows and 30 columns")
    quick = parser.parse_args().quick
    lines = [
        "| n | d | share of mu² | Gaussian | log-normal | log-normal, one clip | 0/1 | not found "
        "| not found, 0/1 not declared | captured | captured, 0/1 not declared | captured, true scales |",
        "|---" * 12 + "|",
    ]
    print(f"{BUDGET.epsilon:g}, {BUDGET.delta:g}; error of log2 scale, root mean square\n")
    print("\n".join(lines))
    cases = [(1_000, 5, 6), (1_000, 30, 6), (10_000, 5, 6), (10_000, 30, 4)]
    if not quick:
        cases += [
            (10_000, 300, 2),
            (10_000, 1_000, 1),
            (100_000, 5, 6),
            (100_000, 30, 3),
            (100_000, 60, 3),
            (100_000, 300, 1),
        ]
    for case in cases:
        lines.append(line(*case))
        print(lines[-1], flush=True)
    lines += ["", "| k | smoker declared | share of mu² | captured | least captured | largest error of a mean |"]
    lines += ["|---" * 6 + "|"]
    lines += [patient_line(k, declared, 10) for k in (1, 2) for declared in (True, False)]
    print("\n".join(lines[-6:]))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "column_scales.md").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
