"""Are the errors that a private PCA tells of its loadings those that its noise makes?

One table per case, fitted again and again: the spread of the loadings over the fits is compared with the error that
each fit told.  Prints the table of docs/explanation/everyday-tables.md.

    python benchmarks/scripts/loading_errors.py [--quick]
"""

import argparse

import numpy as np

import privspan as ps

CASES = {
    "n = 20,000, d = 10, variances 9 and 4": (20_000, 10, (9.0, 4.0), 1.0, {}),
    "the same at ε = 0.3": (20_000, 10, (9.0, 4.0), 0.3, {}),
    "n = 20,000, d = 10, variances 9, 8.5 and 3": (20_000, 10, (9.0, 8.5, 3.0), 1.0, {}),
    "n = 2,000, d = 30, variances 20 and 10": (2_000, 30, (20.0, 10.0), 1.0, {}),
    "n = 400, d = 8, variances 20 and 6 (one look)": (400, 8, (20.0, 6.0), 1.0, {}),
    "n = 10,000, d = 400, variances 200 and 100 (wide)": (10_000, 400, (200.0, 100.0), 1.0, {}),
    "n = 20,000, d = 40, variances 9,000 and 4,000 (near a subspace)": (20_000, 40, (9e3, 4e3), 1.0, {}),
    "first case, adaptive": (20_000, 10, (9.0, 4.0), 1.0, {"method": "adaptive"}),
    "first case, Analyze Gauss": (20_000, 10, (9.0, 4.0), 1.0, {"method": "analyze-gauss"}),
}


def table(n: int, d: int, variances: tuple[float, ...]) -> np.ndarray:
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    spread = np.sqrt([*variances, *np.ones(d - len(variances))])
    return rng.standard_normal((n, d)) * spread @ axes.T + 3.0


def case(X: np.ndarray, k: int, epsilon: float, options: dict, fits: int) -> tuple[list[float], float, int]:
    """Return spread over told error for every component, the share within two errors, and the fits that told."""
    made = [ps.private_pca(X, k, epsilon=epsilon, delta=1e-6, rng=seed, **options) for seed in range(fits)]
    told = [release for release in made if release.extras.get("stands_out", k) == k]
    found = np.array([release.subspace.basis.T for release in told])  # (fits, k, d)
    found *= np.sign((found * found[0]).sum(axis=2))[:, :, None]
    errors = np.array([release.extras["components_std"] for release in told])
    off = (found - found.mean(axis=0)) * np.sqrt(len(told) / (len(told) - 1))
    ratios = np.sqrt((off**2).mean(axis=(0, 2)) / (errors**2).mean(axis=(0, 2)))
    return ratios.tolist(), float((np.abs(off) < 2.0 * errors).mean()), len(told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three fits of the small cases")
    quick = parser.parse_args().quick
    print("| case | spread / told | within 2 errors | fits with all found |\n|---|---|---|---|")
    for name, (n, d, variances, epsilon, options) in CASES.items():
        if quick and n * d > 1e5:
            continue
        ratios, within, told = case(table(n, d, variances), len(variances), epsilon, options, 3 if quick else 40)
        print(f"| {name} | {', '.join(f'{ratio:.2f}' for ratio in ratios)} | {within:.0%} | {told} |", flush=True)


if __name__ == "__main__":
    main()
