"""Exact subspaces as rational matrices, and the linear relations that hold on them.

An :class:`ExactForm` is the reduced row echelon form over the rationals of the rows that span a subspace: the one
matrix that depends on the subspace alone, however it was found.  A :class:`Relation` is an equation with integer
coefficients that every point of the subspace satisfies; :meth:`Relation.describe` says it in words ("total = a + b").

Everything here is exact: Python integers and fractions, no floating point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from operator import index

from privspan._lib.errors import ParameterError
from privspan.subspace import short_relations as _short_relations
from privspan.subspace.wording import equation


@dataclass(init=False, repr=False, unsafe_hash=True, slots=True)  # what would make the hash unsafe is refused below
class Relation:
    """An equation ``sum(c[i] * x[i]) + constant == 0`` in coprime integers.

    Immutable and hashable.  The coefficients are divided by their greatest common divisor, and the first
    nonzero one is made positive, so that equal relations compare equal.

    Parameters
    ----------
    coefficients : sequence of int
        One per column, not all zero.
    constant : int, default=0
        The constant of the equation.

    Examples
    --------
    >>> relation = Relation([2, 2, -2])
    >>> relation
    Relation(coefficients=(1, 1, -1), constant=0)
    >>> relation.describe(["a", "b", "total"])
    'total = a + b'
    """

    # A wide table has thousands of relations with a handful of columns each: only the nonzeros are stored.
    _columns: int
    _terms: tuple[tuple[int, int], ...]  # (column, coefficient), by column
    _constant: int

    def __init__(self, coefficients: Sequence[int], constant: int = 0) -> None:
        self._fill(len(coefficients), enumerate(coefficients), constant)

    @classmethod
    def from_terms(cls, columns: int, terms: Mapping[int, int], constant: int = 0) -> Relation:
        """Build a relation on that many columns from its nonzero coefficients by column."""
        relation = cls.__new__(cls)
        relation._fill(columns, sorted(terms.items()), constant)
        return relation

    def _fill(self, columns: int, pairs: Iterable[tuple[int, int]], constant: int) -> None:
        terms = [(column, index(value)) for column, value in pairs if value]
        if not terms:
            raise ParameterError("{coefficients} must hold at least one nonzero integer; got none.")
        divisor = math.gcd(index(constant), *(value for _, value in terms))
        divisor = -divisor if terms[0][1] < 0 else divisor
        object.__setattr__(self, "_columns", columns)
        object.__setattr__(self, "_constant", index(constant) // divisor)
        object.__setattr__(self, "_terms", tuple((column, value // divisor) for column, value in terms))

    @property
    def coefficients(self) -> tuple[int, ...]:
        """One integer per column."""
        dense = [0] * self._columns
        for column, value in self._terms:
            dense[column] = value
        return tuple(dense)

    @property
    def constant(self) -> int:
        """The constant of the equation; zero on a linear subspace."""
        return self._constant

    @property
    def terms(self) -> tuple[tuple[int, int], ...]:
        """The nonzero coefficients, as (column, coefficient) by column."""
        return self._terms

    def describe(self, names: Sequence[str] | None = None) -> str:
        """Return the relation as an equation that a person can read.

        Parameters
        ----------
        names : sequence of str, optional
            One name per column; x0, x1, ... by default.

        Returns
        -------
        str
            For instance ``"total = a + b"``, ``"year = 2013"``, ``"3 a = 2 b + 5"`` or ``"a + b = 100"``.
        """
        if names is not None and len(names) != self._columns:
            raise ParameterError(
                "{names} must hold {columns} names, one per column; got {got}.", columns=self._columns, got=len(names)
            )
        label = names.__getitem__ if names is not None else "x{}".format
        return equation([(label(column), value) for column, value in self._terms], self._constant)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Relation is immutable; cannot set {name!r}")

    def __repr__(self) -> str:
        if self._columns > 20:
            return f"Relation({self.describe()!r}, columns={self._columns})"
        return f"Relation(coefficients={self.coefficients}, constant={self._constant})"

    def __reduce__(self) -> tuple[object, ...]:
        return Relation.from_terms, (self._columns, dict(self._terms), self._constant)


@dataclass(frozen=True)
class ExactForm:
    """The reduced row echelon form over the rationals that stands for a subspace.

    Parameters
    ----------
    numerators : tuple of tuples of int, (k, columns)
        Row i of the form is ``numerators[i] / denominators[i]``, in lowest terms as a row.
    denominators : tuple of int, (k,)
        Positive.
    pivots : tuple of int, (k,)
        The column of the leading one of each row, ascending.
    homogeneous : bool, default=False
        Whether the last column is the constant of an affine subspace: the points x such that (x, 1) is in the
        row space.

    Examples
    --------
    >>> form = ExactForm.from_rows([[1, 2, 3], [1, 0, 1]])
    >>> form.numerators
    ((1, 0, 1), (0, 1, 1))
    >>> [relation.describe(["a", "b", "total"]) for relation in form.relations()]
    ['total = a + b']
    """

    numerators: tuple[tuple[int, ...], ...]
    denominators: tuple[int, ...]
    pivots: tuple[int, ...]
    homogeneous: bool = False

    def __post_init__(self) -> None:
        problem = next(self._problems(), None)
        if problem:
            raise ParameterError("not a canonical reduced row echelon form: {problem}.", problem=problem)

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[int | Fraction]], *, homogeneous: bool = False) -> ExactForm:
        """Return the canonical form of the span of any rational rows, by plain elimination.

        Meant for small matrices; it uses nothing but Python's integers.
        """
        rest = [_cleared([Fraction(value) for value in row]) for row in rows]
        done: list[list[int]] = []
        pivots: list[int] = []
        for column in range(len(rows[0]) if rows else 0):
            lead = next((row for row in rest if row[column]), None)
            if lead is None:
                continue
            rest = [_eliminated(row, lead, column) for row in rest if row is not lead]
            done = [_eliminated(row, lead, column) for row in done] + [lead]
            pivots.append(column)
        signed = [row if row[pivot] > 0 else [-v for v in row] for row, pivot in zip(done, pivots, strict=True)]
        denominators = tuple(row[pivot] for row, pivot in zip(signed, pivots, strict=True))
        return cls(tuple(map(tuple, signed)), denominators, tuple(pivots), homogeneous)

    @property
    def rank(self) -> int:
        """The number of rows, k."""
        return len(self.numerators)

    @property
    def columns(self) -> int:
        """The number of columns, the constant of a homogeneous form included."""
        return len(self.numerators[0])

    def to_rows(self) -> list[list[Fraction]]:
        """Return the form as fractions, (k, columns)."""
        return [
            [Fraction(value, denominator) for value in row]
            for row, denominator in zip(self.numerators, self.denominators, strict=True)
        ]

    def directions_and_point(self) -> tuple[list[list[int]], list[int], int]:
        """Split a homogeneous form into the directions of the affine subspace and one point of it.

        Returns
        -------
        directions : list of lists of int, (k - 1, columns - 1)
            Integer rows that span the directions; row i is zero at the pivots of the others.
        point, denominator : list of int, int
            The point ``point / denominator``, zero at the pivots of the directions.
        """
        rows = list(self.numerators)
        lead = rows.pop(self._base_row())
        return [_eliminated(row, lead, self.columns - 1)[:-1] for row in rows], list(lead[:-1]), lead[-1]

    def relations(self) -> tuple[Relation, ...]:
        """Return independent relations that together say exactly what the subspace says.

        There is one for each dimension that is missing.  They depend on the subspace alone, and are made short where
        that is cheap: when few dimensions are missing, lattice reduction (python-flint, where installed) proposes
        shorter ones, and the simplest independent ones of all are kept.  Simplest first.
        """
        plain = self._plain_relations()
        if _short_relations.is_cheap(len(plain), self.columns):
            vectors = [[*relation.coefficients, relation.constant][: self.columns] for relation in plain]
            d = self.columns - self.homogeneous  # what follows in a vector is the constant, if there is one
            shorter = _short_relations.simplified(vectors, self.numerators)
            plain = [Relation(vector[:d], *vector[d:]) for vector in shorter]
        return tuple(sorted(plain, key=_simplicity))

    def _base_row(self) -> int:
        """Return the row that becomes the point of an affine subspace.

        The last one with a constant: with the constant column put first, its pivot is the one to go.
        """
        return max(i for i, row in enumerate(self.numerators) if row[-1])

    def _plain_relations(self) -> list[Relation]:
        """Return one relation per column without a pivot, expressed by the pivots (and a constant)."""
        rows: Sequence[Sequence[int]] = self.numerators
        pivots, point, denominator = list(self.pivots), [0] * self.columns, 1
        if self.homogeneous:
            rows, point, denominator = self.directions_and_point()
            del pivots[self._base_row()]
        free = sorted(set(range(len(point))) - set(pivots))
        return [_column_relation(j, rows, pivots, len(point), point[j], denominator) for j in free]

    def _problems(self) -> Iterator[str]:
        """Say what is wrong with the form, if anything; the first is to be believed, as the later rest on it."""
        if not self.numerators or not self.numerators[0]:
            yield "it has no entries"
        if not len(self.numerators) == len(self.denominators) == len(self.pivots):
            yield "rows, denominators and pivots differ in number"
        if any(len(row) != self.columns for row in self.numerators):
            yield "the rows differ in length"
        if any(a >= b for a, b in pairwise(self.pivots)):
            yield "the pivots do not ascend"
        if not 0 <= self.pivots[0] <= self.pivots[-1] < self.columns:
            yield "a pivot is outside the columns"
        if self.homogeneous and not any(row[-1] for row in self.numerators):
            yield "a homogeneous form needs a point, but its last column is zero"
        for i, (row, pivot) in enumerate(zip(self.numerators, self.pivots, strict=True)):
            denominator = self.denominators[i]
            if denominator < 1 or row[pivot] != denominator or any(row[:pivot]):
                yield f"row {i} does not lead with a one at its pivot"
            if any(row[other] for other in self.pivots if other != pivot):
                yield f"row {i} is not zero at the pivots of the others"
            if math.gcd(*row) != 1:
                yield f"row {i} is not in lowest terms"


def _column_relation(
    j: int, rows: Sequence[Sequence[int]], pivots: Sequence[int], columns: int, point: int, denominator: int
) -> Relation:
    """Return x_j = point / denominator + sum over i of rows[i][j] / rows[i][pivot i] * x_pivot i, cleared."""
    shares = {pivot: Fraction(row[j], row[pivot]) for row, pivot in zip(rows, pivots, strict=True) if row[j]}
    constant = Fraction(point, denominator)
    common = math.lcm(constant.denominator, *(share.denominator for share in shares.values()))
    terms = {pivot: int(-share * common) for pivot, share in shares.items()}
    return Relation.from_terms(columns, {**terms, j: common}, int(-constant * common))


def _eliminated(row: Sequence[int], lead: Sequence[int], column: int) -> list[int]:
    """Return the primitive multiple of `row` less the multiple of `lead` that clears the column."""
    if not row[column]:
        return list(row)
    up, across = lead[column], row[column]
    return _primitive([up * a - across * b for a, b in zip(row, lead, strict=True)])


def _cleared(row: Sequence[Fraction]) -> list[int]:
    common = math.lcm(*(value.denominator for value in row))
    return _primitive([int(value * common) for value in row])


def _primitive(row: list[int]) -> list[int]:
    divisor = math.gcd(*row) or 1
    return [value // divisor for value in row]


def _simplicity(relation: Relation) -> tuple[int, int, list[int], list[int]]:
    """Order relations by how easy they are to read: few columns, small numbers, columns from the left."""
    values = [*(value for _, value in relation.terms), relation.constant]
    nonzeros = sum(1 for value in values if value)
    return nonzeros, sum(map(abs, values)), [column for column, _ in relation.terms], values
