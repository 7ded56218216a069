"""What a private subspace brings to a private mean: the experiment of Tsfadia (2024).

The records are his: unit vectors near one of k = 4 sign vectors, 250,000 of them. *plain* spends the whole budget on
the mean of all d coordinates. The others spend half of mu² on a subspace and half on the mean of its k coordinates;
the gap version of Analyze Gauss also sets aside a tenth of delta, for a gap that it overestimated. The error is the
distance to the mean of the records over the length of that mean.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain

import numpy as np

from benchmarks.cells import Cell, Suite, Value
from benchmarks.methods import DELTA, check_size, learn
from benchmarks.suites.accuracy import grid
from privspan.baselines._tuning import RIVALS
from privspan.datasets import SignRows, sign_subspace
from privspan.privacy import Budget, share_mu
from privspan.subspace import Subspace
from privspan.sums.mean import private_mean

ROWS, VECTORS = 250_000, 4
COLUMNS = (100, 300, 1_000, 2_000, 5_000, 10_000)
METHODS = ("plain", "adaptive", "analyze_gauss_gap")
_WHOLE = Budget(1.0, DELTA)
_WIDE = 2_000  # beyond, one seed: a pass over the records takes half a minute


def measure(cell: Cell) -> tuple[dict[str, Value], float]:
    """Release the mean once."""
    n, d, k = (int(value) for value in cell.setting.values())
    if cell.method != "plain":
        check_size(cell.method, n, d)
    X, _ = sign_subspace(n, d, k, rng=cell.seed)
    start = time.perf_counter()
    subspace, left = (None, _WHOLE) if cell.method == "plain" else _learnt(cell.method, X, k, cell.seed)
    released = private_mean(
        X, subspace=subspace, epsilon=left.epsilon, delta=left.delta, norm_bound=1.0, rng=2_000 + cell.seed
    )
    seconds = time.perf_counter() - start
    mean = X.mean()
    return {"error": float(np.linalg.norm(released.mean - mean) / np.linalg.norm(mean))}, seconds


def _learnt(method: str, X: SignRows, k: int, seed: int) -> tuple[Subspace, Budget]:
    """Return the subspace learnt with half of the budget, and the other half."""
    shared = _WHOLE.reserve_delta(RIVALS.gap_delta)[0] if method == "analyze_gauss_gap" else _WHOLE
    half = Budget.for_mu(share_mu(shared.mu, 1.0, 1.0)[0], shared.delta)
    # The gap version takes the tenth off again, and is left with the mu of `half`.
    found, _ = learn(method, X, k, epsilon=half.epsilon, delta=_WHOLE.delta, seed=1_000 + seed)
    return found, half


def _cells(quick: bool) -> Iterator[Cell]:
    if quick:
        return grid("downstream", [{"n": 20_000, "d": 200, "k": VECTORS}], METHODS, 1)
    wide, narrow = [d for d in COLUMNS if d > _WIDE], [d for d in COLUMNS if d <= _WIDE]
    return chain.from_iterable(
        grid("downstream", [{"n": ROWS, "d": d, "k": VECTORS} for d in columns], METHODS, seeds)
        for columns, seeds in ((narrow, 3), (wide, 1))
    )


DOWNSTREAM = Suite(
    "downstream",
    "What does a private subspace bring to a private mean, as the number of columns grows?",
    ("n", "d", "k"), ("error",), _cells, measure, lambda quick: 60.0 if quick else 3_600.0, alone=True,
)  # fmt: skip
