"""`Subspace`: a linear or affine subspace of R^d, with an orthonormal basis and, where known, its exact form.

Distances are those between projectors: the sine of the largest principal angle.  They are computed from residuals,
never as the arc cosine of a number near one, and are right to about 1e-15 for angles of any size.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privspan._lib import card as cards
from privspan._lib import checks
from privspan._lib.arrays import Reals
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan.subspace import file as _subspace_file
from privspan.subspace.file import Content
from privspan.subspace.orthonormalise import orthonormal_rows
from privspan.subspace.relations import ExactForm, Relation

_Array = NDArray[np.float64]

_ORTHONORMAL = 1e-8  # rounding: largest accepted entry of basis' basis - identity
_SAME = 1e-12  # rounding: subspaces this close count as equal
_MOST_SHOWN = 8  # columns and directions in a card


@dataclass(frozen=True, eq=False, repr=False)
class Subspace:
    """A k-dimensional subspace of R^d; immutable.

    Parameters
    ----------
    basis : array of shape (d, k)
        Orthonormal columns (to 1e-8).  Kept as it is, in a read-only copy.
    exact : ExactForm, optional
        The exact rational form of the same subspace.
    offset : array of shape (d,), optional
        A point of the subspace, when it is affine: the points are ``offset + basis @ c``.
    names : sequence of str, optional
        Names of the d columns.

    Notes
    -----
    ``==`` compares exact forms when both subspaces have one; otherwise the shapes must agree, the distance
    be at most 1e-12, and the offsets differ by as little across the subspace.  Names do not matter.  As
    equality has a tolerance, subspaces have no hash.

    Examples
    --------
    >>> import numpy as np
    >>> plane = Subspace.from_spanning(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    >>> plane
    Subspace(dimension=2, ambient_dimension=3)
    >>> plane == Subspace(-plane.basis)
    True
    """

    basis: _Array
    exact: ExactForm | None = field(default=None, kw_only=True)
    offset: _Array | None = field(default=None, kw_only=True)
    names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        basis = _read_only(checks.matrix(self.basis, name="basis"))
        _check_orthonormal(basis)
        object.__setattr__(self, "basis", basis)
        if self.offset is not None:
            object.__setattr__(self, "offset", _read_only(_real_numbers(self.offset)))
        if self.names is not None:
            object.__setattr__(self, "names", tuple(self.names))
        self._check_companions()

    @classmethod
    def from_spanning(
        cls, vectors: ArrayLike, *, offset: ArrayLike | None = None, names: Sequence[str] | None = None
    ) -> Subspace:
        """Return the subspace that the columns span.

        Its dimension is their numerical rank, each column first scaled to unit length.  For public or
        released vectors: the dimension, and whether a ``ValueError`` is raised, depend on their values.

        Parameters
        ----------
        vectors : array of shape (d, m)
            Finite, not all zero.
        offset : array of shape (d,), optional
            A point, for an affine subspace.
        names : sequence of str, optional
            Names of the d columns of the data.
        """
        columns = np.array(checks.matrix(vectors, name="vectors"), dtype=np.float64)  # (d, m)
        largest = np.abs(columns).max(axis=0)
        if not np.all(np.isfinite(largest)):
            raise ParameterError("{vectors} must be finite.")
        columns = columns[:, largest > 0] / largest[largest > 0]
        if columns.shape[1] == 0:
            raise ParameterError("{vectors} must not all be zero.")
        left, values, _ = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), full_matrices=False)
        threshold = values[0] * max(columns.shape) * np.finfo(np.float64).eps
        point = None if offset is None else _read_only(_real_numbers(offset))
        return cls(left[:, values > threshold], offset=point, names=_optional_names(names))

    @classmethod
    def from_exact(cls, form: ExactForm, names: Sequence[str] | None = None) -> Subspace:
        """Return the subspace of an exact form, with a basis computed from that form alone.

        For a homogeneous form the subspace is affine, and its offset is the point nearest to the origin.

        Parameters
        ----------
        form : ExactForm
            Integers of any length, rows of any scale.
        names : sequence of str, optional
            Names of the columns (without the constant).
        """
        if not form.homogeneous:
            return cls(orthonormal_rows(form.numerators)[0].T, exact=form, names=_optional_names(names))
        directions, point, denominator = form.directions_and_point()
        if not directions:
            raise ParameterError("{form} must have a direction; got a single point.")
        if any(point):  # what Gram and Schmidt leave of it is the point nearest to the origin
            units, offset = orthonormal_rows([*directions, point], denominator)
        else:
            units, offset = orthonormal_rows(directions)[0], np.zeros(len(point))
        return cls(units[: len(directions)].T, exact=form, offset=offset, names=_optional_names(names))

    @property
    def dimension(self) -> int:
        """The dimension k."""
        return int(self.basis.shape[1])

    @property
    def ambient_dimension(self) -> int:
        """The dimension d of the space around it."""
        return int(self.basis.shape[0])

    def projector(self) -> _Array:
        """Return the orthogonal projector on the directions of the subspace, (d, d)."""
        return np.asarray(self._frame @ self._frame.T)

    def distance(self, other: Subspace) -> float:
        """Return the operator norm of the difference of the projectors.

        That is the sine of the largest principal angle, and 1 when the dimensions differ.  Offsets do not count.
        """
        self._same_space(other)
        if self.dimension != other.dimension:
            return 1.0
        return min(1.0, float(np.linalg.norm(_residual(self._frame, other._frame), 2)))

    def angles(self, other: Subspace) -> _Array:
        """Return the principal angles in radians, ascending; as many as the smaller dimension."""
        self._same_space(other)
        small, large = sorted((self._frame, other._frame), key=lambda frame: int(frame.shape[1]))
        cosines = np.linalg.svd(large.T @ small, compute_uv=False)  # (k,), descending
        sines = np.linalg.svd(_residual(large, small), compute_uv=False)[::-1]  # (k,), ascending
        # Each is accurate where its derivative is large: the sine for small angles, the cosine for large ones.
        return np.where(cosines > sines, np.arcsin(np.minimum(sines, 1.0)), np.arccos(np.clip(cosines, 0.0, 1.0)))

    def project(self, X: ArrayLike) -> _Array:
        """Return the nearest points of the subspace, (n, d).

        The projection of a private row is **not** private: this is plain arithmetic on the rows given.
        """
        with np.errstate(invalid="ignore", over="ignore"):  # a row that is not finite gives one that is not
            projected = self._centred(X) @ self._frame @ self._frame.T  # (n, d)
        return projected if self.offset is None else projected + self.offset

    def coordinates(self, X: ArrayLike) -> _Array:
        """Return the coordinates of the rows in the basis, (n, k), counted from the offset if there is one.

        The coordinates of a private row are **not** private: this is plain arithmetic on the rows given.
        """
        with np.errstate(invalid="ignore", over="ignore"):  # a row that is not finite gives one that is not
            return np.asarray(self._centred(X) @ self.basis)

    def complement(self) -> Subspace:
        """Return the orthogonal complement of the directions, of dimension d - k, as a linear subspace.

        Its basis has d (d - k) entries.
        """
        if self.dimension == self.ambient_dimension:
            raise ParameterError("the complement of the whole space has dimension 0 and is not a Subspace.")
        full, _ = np.linalg.qr(self.basis, mode="complete")  # (d, d)
        return Subspace(full[:, self.dimension :], names=self.names)

    def relations(self) -> tuple[Relation, ...]:
        """Return the linear relations that hold on the subspace, see `ExactForm.relations`."""
        if self.exact is None:
            raise ParameterError("relations need an exact form, and this subspace has none (subspace.exact is None).")
        return self.exact.relations()

    def describe_relations(self) -> tuple[str, ...]:
        """Return the relations in words, with the names of the columns where they are known."""
        return tuple(relation.describe(self.names) for relation in self.relations())

    def summary(self) -> dict[str, object]:
        """Return what can be said about the subspace in a few words, for JSON."""
        return {
            "dimension": self.dimension,
            "ambient_dimension": self.ambient_dimension,
            "affine": self.offset is not None,
            "exact": self.exact is not None,
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the subspace to one ``.npz`` file and return its path.

        The suffix is added to a name that has none.  The file appears whole or not at all: it is written
        beside its place and moved there.
        """
        return _subspace_file.write(path, Content(self.basis, self.exact, self.offset, self.names))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Subspace:
        """Read a file that `save` wrote.

        Raises
        ------
        ValueError
            When the file is damaged, of another kind, or of a version that this one does not read.  The
            message names the file and what is wrong.
        OSError
            When it cannot be opened, as usual (``FileNotFoundError``).
        """
        with _subspace_file.reading(path) as content:
            return cls._from_content(content)

    @classmethod
    def _from_content(cls, content: Content) -> Subspace:
        """Return the subspace of a file's content, whose two forms must agree: what holds both is shown by either."""
        found = cls(content.basis, exact=content.exact, offset=content.offset, names=content.names)
        if content.exact is not None:
            meant = cls.from_exact(content.exact)
            if found.distance(meant) > _ORTHONORMAL or found._offset_gap(meant) > _ORTHONORMAL:
                raise _subspace_file.Problem("its basis is not that of its exact form")
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Subspace):
            return NotImplemented
        if self.exact is not None and other.exact is not None:
            return self.exact == other.exact
        if self.basis.shape != other.basis.shape or (self.offset is None) != (other.offset is None):
            return False
        return self.distance(other) <= _SAME and self._offset_gap(other) <= _SAME

    def __repr__(self) -> str:
        affine = ", affine" if self.offset is not None else ""
        exact = ", exact" if self.exact is not None else ""
        return f"Subspace(dimension={self.dimension}, ambient_dimension={self.ambient_dimension}{affine}{exact})"

    def _repr_html_(self) -> str:
        """Show it as a card in a notebook."""
        kind = ("exact " if self.exact is not None else "") + ("affine" if self.offset is not None else "linear")
        size = f"{kind}, {self.dimension:,} of {self.ambient_dimension:,} dimensions"
        few = self.basis[:, :_MOST_SHOWN]
        order = np.sort(np.argsort(-(few**2).sum(axis=1), kind="stable")[:_MOST_SHOWN])
        names = self.names or [f"column {i + 1}" for i in range(self.ambient_dimension)]
        heads = ("column", *(f"direction {j + 1}" for j in range(few.shape[1])))
        shown = cards.table(heads, [(names[i], *(f"{value:+.2f}" for value in few[i])) for i in order])
        left = "" if few.size == self.basis.size and len(order) == len(few) else "The columns that weigh most."
        return cards.card("Subspace", shown, *([cards.aside(left)] if left else []), about=size)

    def __reduce__(self) -> tuple[object, ...]:
        # Through the constructor, so that arrays come back read-only.
        return partial(Subspace, self.basis, exact=self.exact, offset=self.offset, names=self.names), ()

    @cached_property
    def _frame(self) -> _Array:
        """The basis orthonormal to the last bit: a distance of 1e-12 needs more than 1e-8."""
        return np.linalg.qr(self.basis)[0]  # (d, k)

    def _centred(self, X: ArrayLike) -> _Array:
        rows = checks.matrix(X).astype(np.float64, copy=False)  # (n, d)
        if rows.shape[1] != self.ambient_dimension:
            template = "{X} must have {dimension} columns; got {got}."
            raise ParameterError(template, dimension=self.ambient_dimension, got=rows.shape[1])
        return rows if self.offset is None else rows - self.offset

    def _offset_gap(self, other: Subspace) -> float:
        """Return how far the offsets are apart across the subspace, relative to their length."""
        if self.offset is None or other.offset is None:
            return 0.0
        scale = max(1.0, float(np.abs(self.offset).max()), float(np.abs(other.offset).max()))
        gap = self.offset / scale - other.offset / scale
        return float(np.linalg.norm(_residual(self._frame, gap[:, None])))

    def _same_space(self, other: Subspace) -> None:
        if not isinstance(other, Subspace):
            raise ParameterTypeError(
                "{other} must be a Subspace; got an object of type {kind}.", kind=type(other).__name__
            )
        if (got := other.ambient_dimension) != self.ambient_dimension:
            template = "{other} must lie in a space of dimension {dimension}; got {got}."
            raise ParameterError(template, dimension=self.ambient_dimension, got=got)

    def _check_companions(self) -> None:
        d, k = self.basis.shape
        if self.offset is not None and (self.offset.shape != (d,) or not np.all(np.isfinite(self.offset))):
            raise ParameterError(
                "{offset} must hold {d} finite numbers; got shape {shape}.", d=d, shape=self.offset.shape
            )
        if self.names is not None and not all(isinstance(name, str) for name in self.names):
            raise ParameterTypeError("{names} must hold str only.")
        if self.names is not None and len(self.names) != d:
            raise ParameterError("{names} must hold {d} names, one per column; got {got}.", d=d, got=len(self.names))
        if self.exact is None:
            return
        if not isinstance(self.exact, ExactForm):
            raise ParameterTypeError(
                "{exact} must be an ExactForm; got an object of type {kind}.", kind=type(self.exact).__name__
            )
        constant = int(self.exact.homogeneous)
        if (self.exact.columns - constant, self.exact.rank - constant) != (d, k):
            raise ParameterError("{exact} must describe a subspace of dimension {k} in {d} columns.", k=k, d=d)
        if self.exact.homogeneous != (self.offset is not None):
            raise ParameterError("{exact} must be homogeneous exactly when there is an {offset}.")


def _read_only(array: Reals) -> _Array:
    copy = np.array(array, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy


def _check_orthonormal(basis: _Array) -> None:
    d, k = basis.shape
    if k > d:
        raise ParameterError(
            "{basis} must have at most as many columns as rows; got shape {shape}.", shape=basis.shape
        )
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(basis.T @ basis - np.eye(k)).max()
    if not error <= _ORTHONORMAL:  # also refuses a basis that is not finite
        raise ParameterError("{basis} must have orthonormal columns; use Subspace.from_spanning for other vectors.")


def _residual(frame: _Array, vectors: _Array) -> _Array:
    """Return what is left of the vectors after projecting on the frame."""
    return np.asarray(vectors - frame @ (frame.T @ vectors))


def _real_numbers(offset: ArrayLike) -> Reals:
    """Refuse, by dtype, what NumPy would refuse with a message that quotes an entry, or cut to its real part."""
    array = checks.as_array(offset, "offset")
    if array.dtype.kind not in "biuf":
        raise ParameterTypeError("{offset} must hold real numbers; got dtype {dtype}.", dtype=array.dtype.name)
    return array


def _optional_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)
