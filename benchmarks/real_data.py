"""How much of the variance of real tables does a private PCA capture, next to Analyze Gauss and to PCA itself?

Hyperspectral pixels (package tensorly) and fermentation spectra (package chemotools) are read from the files of those
packages, digits and breast cancer come with scikit-learn; a table whose package is missing is left out. Every row
counts as one person, delta is 1e-6. "Captured" is the variance along the private components over that along the same
number of ordinary ones; "error" is the sine of the largest angle between the two subspaces. Centring is private
(differences of pairs, for both methods). One thing is not: the columns of breast cancer are divided by their medians,
which stand for units that an owner of the table would know. Writes ``benchmarks/results/real_data.md`` and ``.png``;
``--quick`` takes every third row and two repetitions.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from privspan.estimators import PrivatePCA
from privspan.subspace import Subspace

mpl.use("Agg")

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA = 1e-6
METHODS = ("auto", "analyze-gauss")
RESULTS = Path(__file__).parent / "results"


def package_file(package: str, path: str) -> Path | None:
    """Find a file of an installed package without importing the package."""
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / path


def tables() -> dict[str, tuple[np.ndarray, int]]:
    """Return name, table and number of components."""
    found: dict[str, tuple[np.ndarray, int]] = {}
    pines = package_file("tensorly", "datasets/data/Indian_pines_corrected.npy")
    if pines is not None and pines.exists():
        cube = np.load(pines)  # (145, 145, 200)
        found["Indian Pines"] = cube.reshape(-1, cube.shape[-1]).astype(np.float32), 3
    spectra = package_file("chemotools", "datasets/data/fermentation_spectra.csv")
    if spectra is not None and spectra.exists():
        found["fermentation"] = np.loadtxt(spectra, delimiter=",", skiprows=1), 2
    found["digits"] = load_digits().data, 5
    cancer = load_breast_cancer().data
    found["breast cancer"] = cancer / np.median(np.abs(cancer), axis=0), 2  # columns of very different units
    return found


def ordinary(X: np.ndarray, k: int) -> tuple[np.ndarray, Subspace]:
    """Return covariance and leading subspace without privacy."""
    covariance = np.cov(X.T)
    return covariance, Subspace(np.linalg.eigh(covariance)[1][:, -k:])


def measure(X: np.ndarray, k: int, epsilon: float, method: str, repetitions: int) -> tuple[float, float]:
    """Return the median captured variance and the median error."""
    covariance, reference = ordinary(X, k)
    best = np.trace(reference.basis.T @ covariance @ reference.basis)
    captured, errors = [], []
    for seed in range(repetitions):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = PrivatePCA(k, epsilon=epsilon, delta=DELTA, method=method, random_state=seed).fit(X)
        captured.append(np.trace(model.components_ @ covariance @ model.components_.T) / best)
        errors.append(model.subspace_.distance(reference))
    return statistics.median(captured), statistics.median(errors)


def figure(rows: list[tuple]) -> None:
    """Draw captured variance against epsilon, one panel per table."""
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(row[0] for row in rows))
    _, axes = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3), sharey=True, squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        mine = [row for row in rows if row[0] == name]
        for column, label in ((5, "PrivatePCA"), (7, "Analyze Gauss")):
            axis.semilogx([row[4] for row in mine], [row[column] for row in mine], "o-", label=label)
        axis.set(
            title=f"{name}\nn = {mine[0][1]:,}, d = {mine[0][2]}, k = {mine[0][3]}", xlabel="epsilon", ylim=(0, 1.02)
        )
    axes[0][0].set_ylabel("captured variance / PCA's")
    axes[0][0].legend(loc="lower right")
    plt.tight_layout()
    plt.savefig(RESULTS / "real_data.png", dpi=120)


def main() -> None:
    """Print and write the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="every third row, two repetitions")
    quick = parser.parse_args().quick
    RESULTS.mkdir(exist_ok=True)
    rows = []
    lines = [
        "| table | n | d | k | ε | captured | error | captured, Analyze Gauss | error, Analyze Gauss |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for name, (table, k) in tables().items():
        X = table[::3] if quick else table
        for epsilon in EPSILONS:
            numbers = [value for method in METHODS for value in measure(X, k, epsilon, method, 2 if quick else 5)]
            rows.append((name, *X.shape, k, epsilon, *numbers))
            shown = " | ".join(f"{value:.3f}" for value in numbers)
            lines.append(f"| {name} | {X.shape[0]:,} | {X.shape[1]} | {k} | {epsilon:g} | {shown} |")
            print(lines[-1], flush=True)
    (RESULTS / "real_data.md").write_text("\n".join(lines) + "\n", "utf-8")
    figure(rows)


if __name__ == "__main__":
    main()
