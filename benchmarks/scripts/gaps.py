"""How far gaps move means and variances: three of ten columns with missing cells, against the complete table.

python benchmarks/scripts/gaps.py [--quick]
"""

import sys

import numpy as np

import privspan as ps

N, D, SHARE = 20_000, 10, 0.1


def main(runs: int) -> None:
    print("run  worst mean  first variance  total  (relative errors)")
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = 3.0 * rng.standard_normal((N, 3)) @ rng.standard_normal((3, D)) + 0.5 * rng.standard_normal((N, D))
        X += np.linspace(5.0, 50.0, D)
        holes = X.copy()
        for column in (0, 3, 7):
            holes[rng.random(N) < SHARE, column] = np.nan
        release = ps.private_pca(holes, 3, epsilon=1.0, delta=1e-6, rng=seed)
        values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
        mean = np.abs(release.extras["mean"] / X.mean(axis=0) - 1.0).max()
        first, total = (release.extras[name] for name in ("explained_variance", "total_variance"))
        print(f"{seed:3}  {mean:10.3f}  {first[0] / values[0] - 1:14.3f}  {total / values.sum() - 1:5.3f}")


if __name__ == "__main__":
    main(2 if "--quick" in sys.argv else 10)
