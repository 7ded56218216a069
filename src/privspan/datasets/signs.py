"""The ±1 records of Tsfadia (2024), at sizes that do not fit in memory.

A record is x = (u + ν)/‖u + ν‖, where u is one of k vectors b_1, …, b_k of signs and ν has entries ±1/τ. All entries
of ν are independent bits, so a table of n records is stored as n·d bits and turned into numbers when rows are asked
for: 250,000 records of 10,000 columns take 0.3 GB.

H. Tsfadia, On differentially private subspace estimation in a distribution-free setting, NeurIPS 2024.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.rows import RowSource
from privspan.subspace import Subspace

_SMALLEST_TAU = 1e-15
_CHUNK_ENTRIES = 2**24  # of the records that are made at a time


class SignRows(RowSource):
    """Records (u + ν)/‖u + ν‖ with u one of k sign vectors and ν of entries ±1/τ, made when they are asked for.

    Parameters
    ----------
    signs : (k, d) int8 array
        The vectors b_1, …, b_k.
    choices : (n,) int array
        Which of them each record is near.
    bits : (n, ceil(d/8)) uint8 array
        The signs of ν, packed.
    tau : float
        One over the size of the entries of ν.
    """

    def __init__(
        self, signs: NDArray[np.int8], choices: NDArray[np.intp], bits: NDArray[np.uint8], tau: float
    ) -> None:
        self.shape, self.dtype = (len(choices), signs.shape[1]), np.dtype(np.float32)
        self._signs, self._choices, self._bits, self._tau = signs, choices, bits, tau

    def _take(self, numbers: NDArray[np.intp]) -> NDArray[np.float32]:
        step = np.float32(1.0 / self._tau)
        records = np.unpackbits(self._bits[numbers], axis=1, count=self.shape[1]).astype(np.float32)  # (rows, d)
        records *= 2 * step
        records -= step
        records += self._signs[self._choices[numbers]]
        records /= np.linalg.norm(records, axis=1, keepdims=True)
        return records

    def mean(self) -> NDArray[np.float64]:
        """Return the mean of all records, (d,), read piece by piece."""
        step = max(1, _CHUNK_ENTRIES // self.shape[1])
        sums = [self[i : i + step].sum(axis=0, dtype=np.float64) for i in range(0, len(self), step)]
        return np.asarray(np.sum(sums, axis=0) / len(self))


def sign_subspace(
    n: int, d: int, k: int, *, tau: float | None = None, rng: int | np.random.Generator | None = None
) -> tuple[SignRows, Subspace]:
    """Draw the ±1 records of Tsfadia (2024).

    Parameters
    ----------
    n, d, k : int
        Records, columns, number of sign vectors.
    tau : float, optional
        One over the size of the entries of the noise; 10 d if omitted, as in the paper's experiment.
    rng : int or numpy.random.Generator, optional
        Source of randomness.

    Returns
    -------
    X : SignRows
        Every algorithm takes it as it is; ``numpy.asarray(X)`` is the (n, d) array.
    truth : Subspace
        The span of the sign vectors.

    Examples
    --------
    >>> from privspan.datasets import sign_subspace
    >>> X, truth = sign_subspace(1000, 50, 4, rng=0)
    >>> X.shape, truth.dimension
    ((1000, 50), 4)
    """
    checks.integer_at_least(1, n=n)
    checks.dimension(k=k, d=d)
    tau = 10.0 * d if tau is None else tau
    checks.positive(tau=tau)
    if tau < _SMALLEST_TAU:
        template = "{tau} must be at least {smallest_tau}, or float32 could not hold the records; got {got!r}."
        raise ParameterError(template, smallest_tau=_SMALLEST_TAU, got=tau)
    generator = np.random.default_rng(rng)
    signs = generator.choice(np.array([-1, 1], dtype=np.int8), (k, d))
    choices = generator.integers(0, k, n)
    width = -(-d // 8)
    bits = np.frombuffer(generator.bytes(n * width), dtype=np.uint8).reshape(n, width)
    return SignRows(signs, choices, bits, float(tau)), Subspace.from_spanning(signs.T.astype(np.float64))
