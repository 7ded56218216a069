"""Records that public starting vectors miss, and a LAPACK that always fails: stable leverage must bear both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privspan.stable import certificate as leverage_certificate
from privspan.stable.leverage import GRID

Array = NDArray[np.float64]


def hidden_rows(n: int, ratio: float, copies: int = 9) -> Array:
    """Rows with a top eigenvector that is orthogonal to the public start of the power steps.

    The next eigenvalue, `ratio` times the first, has the whole start to itself.
    """
    start = np.linalg.qr(np.random.default_rng(0).standard_normal((n, copies)))[0]
    hidden = np.random.default_rng(5).choice([-1.0, 1.0], size=n)
    for _ in range(300):
        hidden = np.clip(hidden - start @ (start.T @ hidden), -1, 1)  # flat and orthogonal
    hidden -= start @ (start.T @ hidden)
    rows = np.column_stack([hidden / np.linalg.norm(hidden), np.sqrt(ratio) * start])
    return np.rint(rows * (0.99 / np.linalg.norm(rows, axis=1).max()) / GRID) * GRID


def failing(*_args: Any, **_options: Any) -> Any:
    raise np.linalg.LinAlgError("did not converge")


def break_lapack(patch: pytest.MonkeyPatch) -> None:
    """Let every routine of LAPACK that iterates report failure."""
    for module, name in (
        (np.linalg, "eigh"),
        (np.linalg, "eigvalsh"),
        (leverage_certificate, "eigh"),
        (leverage_certificate, "eigsh"),
    ):
        patch.setattr(module, name, failing)
