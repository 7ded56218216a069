"""How good are private column scales, and what do they cost a PCA of standardised columns?

Tables in mixed units: half of the columns Gaussian, a quarter log-normal (sigma from 0.5 to 1.25), a quarter 0/1 (p
from 0.02 to 0.5), one constant; units from 1e-3 to 1e6, means ten units from zero, three factors, k = 3. Scales are
measured with the shares that `scale_shares` asks for, 0/1 columns declared as such; the rest of the budget learns the
subspace of scaled differences of pairs by Analyze Gauss. "True scales" has the same with all of the budget and the
standard deviations of the table. Captured variance is that in truly standardised columns, over the best.
Writes ``benchmarks/results/column_scales.md``; ``--quick`` stops at n = 10,000 and d = 30.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.special import ndtri

from privspan.privacy import Budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import open_streams
from privspan.private import private_subspace
from privspan.rows.columns import public_columns
from privspan.sums import scales
from privspan.sums.mean import pair_differences

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


def measured(X: np.ndarray, flags: np.ndarray, seed: int) -> tuple[scales.ColumnScales, float]:
    """Return private scales, and the share of mu² that they cost."""
    known = replace(public_columns(X, len(flags), bounds=np.where(flags, [[0.0], [1.0]], np.nan)), boolean=flags)
    ledger = MuLedger(BUDGET)
    return scales.scales_within(ledger, X, known, open_streams(seed)), sum(share for _, share in ledger.shares)


def captured(X: np.ndarray, unit: np.ndarray, mu: float, seed: int) -> float:
    """Learn the subspace of the rows in these units; return its share of the variance of standardised rows."""
    varying = X.std(axis=0) > 1e-9 * np.abs(X).max(axis=0)
    true = X[:, varying].std(axis=0)
    budget = Budget.for_mu(mu, BUDGET.delta)
    rows = pair_differences(X[:, varying] / unit[varying], seed)
    basis = private_subspace(
        rows, K, epsilon=budget.epsilon, delta=budget.delta, method="analyze-gauss", rng=seed
    ).subspace.basis
    factor = np.where(np.isfinite(unit[varying]), unit[varying] / true, 0.0)
    basis = np.linalg.qr(basis * factor[:, None])[0]
    correlation = np.corrcoef(X[:, varying].T)
    return float(np.trace(basis.T @ correlation @ basis) / np.linalg.eigvalsh(correlation)[-K:].sum())


def rms(errors: list[np.ndarray]) -> str:
    """Return the root mean square, in octaves."""
    joined = np.concatenate(errors)
    joined = joined[np.isfinite(joined)]
    return f"{math.sqrt(np.mean(joined**2)):.2f}" if joined.size else "–"


def line(n: int, d: int, repetitions: int) -> str:
    """Return one row of the table."""
    errors: dict[int, list[np.ndarray]] = {number: [] for number in range(len(SORTS))}
    one_clip, missed, undeclared, private, public, share = [], [], [], [], [], 0.0
    for seed in range(1_000, 1_000 + repetitions):
        X, sort = table(n, d, seed)
        true = X.std(axis=0)
        try:
            found, share = measured(X, sort == 2, seed)
        except ValueError:
            return f"| {n:,} | {d} | refused | | | | | | | | |"
        for number in errors:
            errors[number].append(np.log2(found.scale / true)[sort == number])
        with mock.patch.object(scales, "_LADDER", math.inf):
            one_clip.append(np.log2(measured(X, sort == 2, seed)[0].scale / true)[sort == 1])
        missed.append(~found.found[sort < 3])
        undeclared.append(~measured(X, np.zeros(d, dtype=bool), seed)[0].found[sort < 3])
        private.append(captured(X, found.scale, BUDGET.mu * math.sqrt(1.0 - share), seed))
        public.append(captured(X, true, BUDGET.mu, seed))
    cells = [rms(errors[0]), rms(errors[1]), rms(one_clip), rms(errors[2])]
    cells += [f"{100.0 * np.concatenate(part).mean():.0f} %" for part in (missed, undeclared)]
    cells += [f"{np.mean(part):.3f}" for part in (private, public)]
    return f"| {n:,} | {d} | {share:.2f} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 10,000 rows and 30 columns")
    quick = parser.parse_args().quick
    lines = [
        "| n | d | share of mu² | Gaussian | log-normal | log-normal, one clip | 0/1 | not found "
        "| not found, 0/1 not declared | captured, private scales | captured, true scales |",
        "|---" * 11 + "|",
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
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "column_scales.md").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
