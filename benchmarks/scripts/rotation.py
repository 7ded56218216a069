"""Are rotated loadings right, and are their errors those that the noise of the release makes?

Tables of factors are generated and fitted again and again.  The truth is the rotation of what a fit without noise
would have told: the components of the covariance (or correlation) matrix of the table.  Prints the table of
docs/explanation/rotation.md.

    python benchmarks/scripts/rotation.py [--quick]
"""

import argparse
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment

import privspan as ps
from privspan.subspace.rotation import correlations, fixed, turn_to

CASES = {  # rows, factors, own columns of each, correlation of factors, epsilon, scale
    "n = 20,000, 3 × 4 columns, ε = 2": (20_000, 3, 4, 0.0, 2.0, False),
    "the same at ε = 0.5": (20_000, 3, 4, 0.0, 0.5, False),
    "the same, standardised, ε = 2": (20_000, 3, 4, 0.0, 2.0, True),
    "n = 20,000, 3 × 4 columns, factors correlated .3, ε = 2": (20_000, 3, 4, 0.3, 2.0, False),
    "n = 20,000, 4 × 10 columns, ε = 2": (20_000, 4, 10, 0.0, 2.0, False),
    "n = 5,000, 2 × 5 columns, ε = 2": (5_000, 2, 5, 0.0, 2.0, False),
    "n = 50,000, 5 × 6 columns, standardised, ε = 2": (50_000, 5, 6, 0.0, 2.0, True),
}
CRITERIA = ("varimax", "quartimax", "promax", "oblimin")


def table(n: int, factors: int, own: int, between: float) -> np.ndarray:
    """Return columns that each belong to one factor, with strengths from .9 down to .6 and noise of their own."""
    rng, d = np.random.default_rng(0), factors * own
    mixing = np.linalg.cholesky(np.full((factors, factors), between) + (1.0 - between) * np.eye(factors))
    strengths = np.tile(np.linspace(0.9, 0.6, own), factors) * np.repeat(np.linspace(1.0, 0.85, factors), own)
    hidden = (rng.standard_normal((n, factors)) @ mixing.T)[:, np.repeat(np.arange(factors), own)]
    return hidden * strengths + rng.standard_normal((n, d)) * np.sqrt(1.0 - strengths**2) + 1.0


def without_noise(X: np.ndarray, k: int, criterion: str, scale: bool) -> list[np.ndarray]:
    values, vectors = np.linalg.eigh(np.corrcoef(X.T) if scale else np.cov(X.T))
    released = vectors[:, ::-1][:, :k] * np.sqrt(values[::-1][:k])
    turn = fixed(released, turn_to(released, criterion))
    return [released @ turn, correlations(turn), (released**2).sum(axis=1)]


def placed(rotated: ps.Rotated, like: np.ndarray) -> list[np.ndarray]:
    """Return the numbers of a rotation, and their errors, with factors in the order and with the signs of another."""
    among = like.T @ rotated.loadings  # (k, k)
    order = linear_sum_assignment(-np.abs(among))[1]
    signs = np.sign(among[np.arange(len(order)), order])
    pairs = np.ix_(order, order)
    return [
        rotated.loadings[:, order] * signs,
        rotated.correlations[pairs] * np.outer(signs, signs),
        rotated.communalities,
        rotated.loadings_std[:, order],
        rotated.correlations_std[pairs],
        rotated.communalities_std,
    ]


def case(n, factors, own, between, epsilon, scale, fits):
    X = table(n, factors, own, between)
    releases = [
        ps.private_pca(X, factors, epsilon=epsilon, delta=1e-6, scale=scale, rng=seed) for seed in range(fits)
    ]
    releases = [release for release in releases if release.extras["stands_out"] == factors]
    belongs = np.repeat(np.arange(factors), own)
    for criterion in CRITERIA:
        truth = without_noise(X, factors, criterion, scale)
        made = [placed(release.rotate(criterion), truth[0]) for release in releases]
        if not made:
            yield criterion, np.nan, [], 0
            continue
        values = [np.array(one) for one in zip(*made, strict=True)]
        own_place = np.abs(truth[0]).argmax(axis=1)  # the factor that is each column's own, by its true order
        assert len({(a, b) for a, b in zip(belongs, own_place, strict=True)}) == factors
        right = float((np.abs(values[0]).argmax(axis=2) == own_place).mean())
        told = []
        off_diagonal = ~np.eye(factors, dtype=bool)
        for what in range(3):
            at = (slice(None), off_diagonal) if what == 1 else (slice(None),)
            if what == 1 and criterion in ("varimax", "quartimax"):
                continue
            found, errors = values[what][at], values[what + 3][at]
            spread = np.sqrt(((found - found.mean(axis=0)) ** 2).mean() * len(made) / max(len(made) - 1, 1))
            told.append(
                (
                    spread / np.sqrt((errors**2).mean()),
                    float((np.abs(found - found.mean(axis=0)) < 2 * errors).mean()),
                    float((np.abs(found - truth[what][at[1:]]) < 2 * errors).mean()),
                )
            )
        yield criterion, right, told, len(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three fits of the smallest case")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    print("| case | criterion | on their own factor | loadings | factor correlations | communalities | fits |")
    print("|---|---|---|---|---|---|---|")
    for name, (n, *rest) in CASES.items():
        if quick and n > 5_000:
            continue
        for criterion, right, told, fits in case(n, *rest, 3 if quick else 25):
            cells = [f"{ratio:.2f}, {within:.0%}, {true:.0%}" for ratio, within, true in told]
            if len(cells) == 2:
                cells.insert(1, "")
            print(f"| {name} | {criterion} | {right:.1%} | {' | '.join(cells)} | {fits} |", flush=True)


if __name__ == "__main__":
    main()
