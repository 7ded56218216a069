"""What several baselines share: the words of their docstrings, opening a table, its second moment, float64 samplers.

The samplers here are *not hardened*: they are NumPy's float64 algorithms, fed by `Run.draw` with a generator that is
seeded with 256 bits of the private noise stream.  The guarantee of a baseline that uses one is for real arithmetic
and says so (docs/explanation/baselines.md, "What is hardened").
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.privacy import Budget, Part, Release
from privspan.privacy.call import Call
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows
from privspan.rows.table import Table as Source
from privspan.subspace import Subspace
from privspan.sums.grid import grid_total
from privspan.sums.lazy_gauss import UnitGram

Array = NDArray[np.float64]

WIDEST_MATRIX = 2048
"""Largest d for which a baseline forms a (d, d) matrix, 32 MiB of memory; wider tables are refused."""

REPLACEMENT = math.nextafter(math.sqrt(2.0), 2.0)
"""Frobenius norm of the change of a second moment, or of its upper triangle, under replacement: lemma 1."""

_EIGENSOLVER = 2.0**-46  # rounding, assumed: its backward error is at most this times d times the norm of the matrix

_PARAMETERS = """\
X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
    One person per row; rows are scaled to unit length, entries that are not finite count as 0.  d is at most 2048.
k : int
    Dimension.
epsilon, delta : float
    Privacy budget.
rng : None, int, SeedSequence, Generator or RandomState
    None for secure bits.  A seed makes the run repeatable and not private."""

_EXAMPLE = """\
>>> from privspan.datasets import gaussian_subspace
>>> X, truth = gaussian_subspace(20_000, 10, 2, gamma_w=0.1, rng=0)
>>> release = {name}(X, 2, epsilon=2.0, delta=1e-6, rng=1)
>>> release.subspace.distance(truth) < 0.1
True"""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def baseline(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Complete a docstring by what all baselines have in common.

    Written in the docstring are the parameters that only this baseline has or that it takes in another way; the
    others and an example are added here.
    """
    if function.__doc__ is not None:  # there is none under ``python -OO``
        head, returns, rest = inspect.cleandoc(function.__doc__).partition("Returns\n-------\n")
        summary, _, own = head.partition("Parameters\n----------\n")
        entries = {**_by_name(_PARAMETERS), **_by_name(own)}
        order = list(inspect.signature(function).parameters)
        parameters = "\n".join(entries[name] for name in sorted(entries, key=order.index))
        example = _EXAMPLE.format(name=function.__name__)
        function.__doc__ = (
            f"{summary.strip()}\n\nParameters\n----------\n{parameters}\n\n{returns}{rest}\n\n"
            f"Examples\n--------\n{example}\n"
        )
    return function


def _by_name(parameters: str) -> dict[str, str]:
    """Split the text of a section "Parameters" into its entries, by the first name of each."""
    entries = re.split(r"\n(?=\S)", parameters.strip())
    return {re.split("[, ]", entry)[0]: entry for entry in entries if entry}


@dataclass(frozen=True)
class Table:
    """A checked call: the table, its public sizes, the budget and the run."""

    source: Source
    n: int
    d: int
    k: int
    budget: Budget
    run: Run

    @cached_property
    def rows(self) -> AnyRows:
        """The rows, scaled to unit length."""
        return self.source.rows()

    def whole(self, name: str, mu: float | None = None) -> Part:
        """Return the cost of a step that takes the whole budget."""
        return Part(name, self.budget.epsilon, self.budget.delta, mu)

    def release(
        self,
        method: str,
        subspace: Subspace | None,
        *parts: Part,
        extras: Mapping[str, object] | None = None,
        **public: object,
    ) -> Release:
        """Put the release together: what was found, what each step cost, and further public parameters."""
        parameters = {"n": self.n, "d": self.d, "k": self.k, **public}
        cost = self.budget.cost(*parts)
        return Release(subspace, cost, f"baseline/{method}", parameters, self.run.private, extras or {})


@contextmanager
def open_table(
    X: object,
    k: int,
    *,
    epsilon: float,
    delta: float,
    rng: RandomLike,
    widest: int | None = WIDEST_MATRIX,
    proper: bool = False,
    dense: bool = False,
) -> Iterator[Table]:
    """Open the door of a baseline: check the parameters, which are all public, open the table and begin.

    `widest` is the largest d that is accepted; with `proper` k must be below d, for mechanisms that need the
    eigenvalue after the k-th; `dense` is for blocks: no sparse tables, and the rows of partitions are brought here.
    """
    with Call("baseline", epsilon, delta, rng) as call:
        source = call.open(X, accept_sparse=not dense).one_each()
        source = source.here() if dense else source
        n, d = source.shape
        checks.dimension(k=k, d=d, n=n)
        if widest is not None and d > widest:
            template = "{X} must have at most {widest} columns for this baseline; got {d}."
            raise ParameterError(template, widest=widest, d=d)
        if proper and k == d:
            template = "{k} must be below the number of columns, {d}, for this baseline; got {got!r}."
            raise ParameterError(template, d=d, got=k)
        yield Table(source, n, d, int(k), call.budget, call.begin())


@dataclass(frozen=True)
class Moment:
    """The second moment of unit rows, and what float64 adds to its replacement sensitivity.

    Neighbouring matrices, as the eigensolver sees them, differ by at most `stretch`, which is at least 1, in operator
    norm and ``stretch * sqrt(2)`` in Frobenius norm.
    """

    matrix: Array  # sum of x xᵀ, (d, d)
    stretch: float


def second_moment(table: Table) -> Moment:
    """Return A = sum x xᵀ, summed exactly over chunks on a public grid."""
    gram = UnitGram(table.rows)
    grid = 2.0 ** (math.frexp(1.02 * table.n)[1] - 52)  # every partial sum stays below 2**53 steps
    matrix = grid_total(gram.products(None), (table.d, table.d), grid)
    solver = _EIGENSOLVER * table.d * 1.01 * table.n
    return Moment(matrix, 1.0 + 2.0 * (gram.chunk_error(table.d) + solver) + table.d * grid)


def spectrum(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues, largest first, and eigenvectors of a symmetric matrix; never raises."""
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:  # not seen on finite matrices; an exception would speak about the data
        return np.zeros(len(matrix)), np.eye(len(matrix))
    return values[::-1], vectors[:, ::-1]


def shifted_root(table: Table, ridge: float) -> Array:
    """Return a (d, d) root R of the shifted second moment: R Rᵀ = A + ridge I."""
    values, vectors = spectrum(second_moment(table).matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0) + ridge))


def leading_subspace(matrix: Array, k: int) -> Subspace:
    """Return the span of the k leading eigenvectors of a symmetric matrix."""
    return Subspace(np.linalg.qr(spectrum(0.5 * (matrix + matrix.T))[1][:, :k])[0])


def leading_range(block: Array, k: int) -> Subspace:
    """Return the span of the k leading left singular vectors of a (d, b) block."""
    return Subspace(np.linalg.qr(np.linalg.svd(block, full_matrices=False)[0][:, :k])[0])


def bartlett_factor(d: int, degrees: int, generator: np.random.Generator) -> Array:
    """Return Bartlett's factor: a lower triangular T, T Tᵀ Wishart with identity scale and at least d degrees."""
    factor = np.tril(generator.standard_normal((d, d)), -1)
    factor[np.diag_indices(d)] = np.sqrt(generator.chisquare(degrees - np.arange(d)))
    return factor


def wishart_root(root: Array, degrees: int, inverse: bool, generator: np.random.Generator) -> Array:
    """Return a (d, d) root of a Wishart draw, or of an inverse one, with scale R Rᵀ and at least d degrees."""
    factor = bartlett_factor(len(root), degrees, generator)
    if not inverse:
        return np.asarray(root @ factor)
    # (T Tᵀ)^-1 = T^-ᵀ T^-1, so R T^-ᵀ is a root of the inverse draw.
    return np.asarray(solve_triangular(factor, root.T, lower=True).T)


def add_laplace(values: Array, scale: float, generator: np.random.Generator) -> Array:
    """Add Laplace noise to each of the values."""
    return values + generator.laplace(scale=scale, size=values.shape)


def haar_rotation(k: int, generator: np.random.Generator) -> Array:
    """Return a uniformly distributed orthogonal (k, k) matrix."""
    rotation, triangle = np.linalg.qr(generator.standard_normal((k, k)))
    return np.asarray(rotation * np.where(np.diagonal(triangle) < 0, -1.0, 1.0))
