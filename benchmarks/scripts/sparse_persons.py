"""What does the lift add for sparse rows of persons?  One noisy look at their second moment, lifted and averaged.

Two tables: baskets of a shop, generated, in which everybody has 1 to 12 rows of about eight of 300 articles, of up to
five kinds of baskets; and the digits of scikit-learn as five pictures of each of 360 people, as a sparse table.  Both
looks have the same privacy (Gaussian, mu = 1 or 3).
One line per table, mu and look: the second moment of unit rows along the five directions found, as a share of the
most that five have; median of the runs, and the deciles.

python benchmarks/scripts/sparse_persons.py --quick
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_digits

from privspan.privacy import Budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.persons import by_person
from privspan.privacy.run import Run, open_run
from privspan.rows.table import Table
from privspan.sums.lifts import person_lift
from privspan.sums.looks import AugmentedGram, released_looks

COMPONENTS, KINDS, ARTICLES, SHOPPERS = 5, 5, 300, 2_000
Ids = NDArray[np.intp]


def baskets(seed: int) -> tuple[sparse.csr_array, Ids]:
    """Return baskets, (rows, articles), and whose they are."""
    rng = np.random.default_rng(seed)
    liked = rng.dirichlet(np.full(ARTICLES, 0.05), KINDS)  # (kinds, articles)
    ids = np.repeat(np.arange(SHOPPERS), rng.integers(1, 13, SHOPPERS))
    habits = rng.dirichlet(np.full(KINDS, 1.0) * np.linspace(2.0, 0.5, KINDS), SHOPPERS)  # (shoppers, kinds)
    kinds = (rng.random((len(ids), 1)) > habits[ids].cumsum(axis=1)).sum(axis=1).clip(max=KINDS - 1)
    return sparse.csr_array(np.array([rng.multinomial(8, liked[kind]) for kind in kinds], dtype=float)), ids


def pictures(seed: int) -> tuple[sparse.csr_array, Ids]:
    """Return digits, (rows, pixels), and whose they are."""
    X = load_digits().data
    return sparse.csr_array(X), np.random.default_rng(seed).permutation(len(X)) // 5


def share(X: sparse.csr_array, found: NDArray[np.float64]) -> float:
    """Return the second moment of unit rows along directions, as a share of the most that as many have."""
    units = X / np.sqrt(X.multiply(X).sum(axis=1))[:, None]
    moment = sparse.csr_array(units.T @ units).toarray()
    return float(np.trace(found.T @ moment @ found) / np.linalg.eigvalsh(moment)[-found.shape[1] :].sum())


def looked(table: Table, run: Run, mu: float, lifted: bool) -> NDArray[np.float64]:
    rows = table.rows()
    lift = person_lift(rows, 0.0) if lifted else None
    gram = AugmentedGram(rows, constant=0.0, lift=lift)
    (look,) = released_looks(gram, [mu], run, 0.0, float(len(table)))
    return np.asarray(np.linalg.eigh(look.moment)[1][:, -COMPONENTS:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="two runs of each")
    arguments = parser.parse_args()
    for name, made in (("baskets", baskets), ("pictures", pictures)):
        for mu in (1.0, 3.0):
            shares: dict[str, list[float]] = {"averaged": [], "lifted": []}
            for seed in range(2 if arguments.quick else arguments.runs):
                X, ids = made(seed)
                table = by_person(X, ids, 8, seed)
                for look in shares:
                    run = open_run(MuLedger(Budget(3.0, 1e-6)), 1000 + seed)
                    shares[look].append(share(X, looked(table, run, mu, look == "lifted")))
            for look, found in shares.items():
                low, high = np.quantile(found, (0.1, 0.9))
                print(f"{name:<9} mu {mu:g}  {look:<9} {np.median(found):.3f}  ({low:.3f} to {high:.3f})", flush=True)


if __name__ == "__main__":
    main()
