"""Records that somebody put in to spoil the answer."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import ParameterError

Array = NDArray[np.float64]
Kind = Literal["huge", "equal", "aligned"]

OUTLIERS: tuple[Kind, ...] = ("huge", "equal", "aligned")
"""Kinds of outliers that `with_outliers` knows."""

_HUGE = 1e6
_PUSH = 0.1


def with_outliers(
    X: Array, share: float, kind: Kind, *, rng: int | np.random.Generator | None = None
) -> NDArray[np.float64]:
    """Return a copy of the records with a share of them, picked at random, replaced by outliers.

    Parameters
    ----------
    X : (n, d) array
        Records.
    share : float
        Share of the records to spoil, below 1; rounded down to whole records.
    kind : {"huge", "equal", "aligned"}
        "huge": random directions, a million times as long as the median record. "equal": one foreign record,
        repeated, of median length. "aligned": every spoilt record keeps its place and is pushed the same way by a
        tenth of the median length, which is the hardest to tell from an honest tail.
    rng : int or numpy.random.Generator, optional
        Source of randomness.

    Returns
    -------
    (n, d) array
    """
    checks.non_negative(share=share)
    checks.one_of(OUTLIERS, kind=kind)
    if share >= 1.0:
        raise ParameterError("{share} must be below 1; got {got!r}.", got=share)
    generator = np.random.default_rng(rng)
    spoilt = np.array(checks.matrix(X), dtype=np.float64)
    n, d = spoilt.shape
    chosen = generator.choice(n, int(share * n), replace=False)
    length = float(np.median(np.linalg.norm(spoilt, axis=1)))
    direction = generator.standard_normal(d)
    direction *= length / float(np.linalg.norm(direction))
    if kind == "huge":
        spoilt[chosen] = _HUGE * length / np.sqrt(d) * generator.standard_normal((len(chosen), d))
    elif kind == "equal":
        spoilt[chosen] = direction
    else:
        spoilt[chosen] += _PUSH * direction
    return spoilt
