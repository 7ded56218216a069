"""What the estimators share: fitting from a Release, projecting, and honest warnings."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from privspan._lib.arrays import Reals
from privspan._lib.errors import MissingPackageError, ParameterError, ParameterTypeError, PrivspanError, in_functions
from privspan._lib.streams import is_stream, native
from privspan.rows.door import as_table, given_table, opened, taken, whose
from privspan.rows.table import Table

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data
except ImportError as error:  # pragma: no cover - the extra is part of every development set-up
    raise MissingPackageError("The estimators need scikit-learn: pip install 'privspan[sklearn]'.") from error

from privspan._lib import checks
from privspan._lib.card import card
from privspan._lib.markup import Html
from privspan.privacy import AbstentionWarning, NotPrivateWarning, Release, TransformedRowsWarning
from privspan.privacy.call import Call, LedgerLike, outside
from privspan.privacy.randomness import RandomLike
from privspan.privacy.release_card import release_pieces
from privspan.privacy.rotated import Rotated
from privspan.rows import in_partitions, without_ids
from privspan.rows.columns import column_names
from privspan.rows.compressed import compressed_rows
from privspan.rows.unit import piece_rows
from privspan.subspace import Subspace
from privspan.subspace.rotation import Criterion

# scikit-learn reads docstrings for its picture of an estimator, and would tell every reader of a notebook that it
# does not know the section in which a guarantee is stated.
warnings.filterwarnings("ignore", "Unknown section Guarantee", UserWarning)


@dataclass(eq=False, repr=False)
class PrivateEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all estimators: tables are let in by types and shapes; parameters are the fields of a dataclass."""

    _: KW_ONLY
    epsilon: float
    delta: float
    if TYPE_CHECKING:  # fields of every estimator, after its own
        random_state: RandomLike = None
        ledger: LedgerLike = None

    @abstractmethod
    def _learn(self, call: Call, X: Any, names: list[str] | None, declared: Any) -> None:
        """Set the fitted attributes from validated rows; `declared` is the table as it was handed in."""

    def _options(self) -> dict[str, Any]:
        """Return the parameters under the names that they have in the functions."""
        return {_IN_FUNCTIONS.get(one.name, one.name): getattr(self, one.name) for one in fields(self)}

    def _choices(self) -> dict[str, Any]:
        """Return the parameters but for those of the call itself."""
        return {name: value for name, value in self._options().items() if name not in _OF_A_CALL}

    def fit_transform(self, X: Any, y: object = None, **options: Any) -> Any:
        """Learn privately, and transform the same rows: what this returns is not private.

        Parameters
        ----------
        X, y
            As for ``fit``.
        **options
            Handed on to ``fit``.

        Returns
        -------
        (n_samples, …) array
            What ``transform`` makes of `X`.
        """
        _tell_that_rows_are_not_private()
        if not is_stream(native(X)):
            return super().fit_transform(X, y, **options)
        with taken(X, options.get("person"), getattr(self, "categories", None)) as rows:  # which can be read once
            return super().fit_transform(rows, y, **options)

    def fit(self, X: Any, y: object = None, person: object = None) -> Self:
        """Learn privately.

        Parameters
        ----------
        X : (n_samples, n_features) array-like, RowSource, or Dask array or dataframe
            One person per row, unless `person` is given. A memory map or a :class:`privspan.rows.RowSource` is read
            in pieces; a Dask table stays where it is.
        y : ignored
            Present for the scikit-learn interface. The name of a column is refused: it belongs into `person`.
        person : (n_samples,) array-like or str, optional
            Whose each row is, where persons have several: ids of any type, equal for rows of one person, or the name
            of the column of `X` that holds them. The promise is then for persons, and rows are counted by persons.

        Returns
        -------
        self
            Fitted. A private abstention does not raise: it warns, and leaves a placeholder that does not depend on
            the data (``succeeded_ = False``, where it is a subspace).
        """
        k, name = getattr(self, "n_components", None), type(self).__name__
        with Call(name, self.epsilon, self.delta, self.random_state, self.ledger, X, person, k) as call:
            if isinstance(y, str):  # which would leave the promise at one row
                raise ParameterTypeError(
                    "{y} is not used, and must not be the name of a column; the one of ids is {person}."
                )
            X = call.taken(X, person, getattr(self, "categories", None))
            self.levels_ = None if getattr(self, "categories", None) is None else X.levels
            person = whose(X, person)
            persons = None if person is None else call.persons(X, person, self._rows_of_a_person())
            self.id_column_ = person if isinstance(person, str) else None
            declared = X if persons is None else persons.declared
            X = persons if persons is not None and in_partitions(declared) else opened(declared)
            fewest = 2 if persons is None else 1  # rows of persons are not counted; two persons are asked for later
            given = given_table(X)
            if given is None:
                X = self._validated(X, ensure_min_samples=fewest, dtype=None)
            else:
                self._remember_columns(given)
            table = as_table(X, min_rows=fewest, accept_sparse=self._takes_sparse())
            table = table if persons is None else persons
            call.counted(table.shape[0])
            with parameters_named_as_here():
                self._learn(call, table, self._names(), declared)
            self.release_: Any = call.finish(self.release_)
            self._warn(call)
        return self

    def _taken(self, X: Any) -> Any:
        """Return a table like that of the fit: categories as columns of 0 and 1, and a stream as what it holds."""
        X = native(X)
        if given_table(X) is not None:
            return X
        levels, ids = getattr(self, "levels_", None), getattr(self, "id_column_", None)
        present = is_stream(X) or levels is None or ids in (column_names(X) or ())
        return taken(X, ids if present else None, levels, ids_needed=False)

    def _rows_of_a_person(self) -> int:
        """Return how many rows of a person are used, at most."""
        return 1

    def _names(self) -> list[str] | None:
        """Return the names of the columns, where they have any."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _remember_columns(self, source: Table) -> None:
        """Set what scikit-learn's validation sets, without reading a row."""
        self.n_features_in_ = source.shape[1]
        if source.names is not None:
            self.feature_names_in_ = np.array(source.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_columns(self, table: Table) -> None:
        """Refuse a table that has not the columns of the fit, in their order."""
        same_columns(table, self.n_features_in_, self._names())

    def _takes_sparse(self) -> bool:
        """Whether sparse tables are taken, given the parameters."""
        return False

    def _warn(self, call: Call) -> None:
        """Say what has to be said about a fit."""
        if not self.release_.private:
            message = "`random_state` was given: the noise can be reproduced, so this fit is not private."
            call.warn(message, NotPrivateWarning)

    def _validated(self, X: Any, *, reset: bool = True, **options: Any) -> Any:
        """Return `X` as an array or a CSR matrix, and set or compare the names and the number of its columns.

        scikit-learn sees the cells only as the array that the declared types make of them: what it makes of a frame
        by itself depends on where cells are missing.
        """
        if not reset and (given := given_table(X)) is not None:
            self._check_columns(given)
            return np.asarray(given.here(), dtype=options.get("dtype"))
        ids = getattr(self, "id_column_", None)
        if not reset and ids is not None and ids in (column_names(X) or ()):  # they may stay in the table
            X = without_ids(X, ids)
        table = _numbers(X)
        checks.distinct_names(column_names(X))
        if self._takes_sparse() and issparse(table):
            table = compressed_rows(table)  # scikit-learn's conversion would add up entries in an order of its own
        sparse_format = "csr" if self._takes_sparse() else False
        checked = check_array(
            table, accept_sparse=sparse_format, ensure_all_finite=False, estimator=self, input_name="X", **options
        )
        validate_data(self, X, reset=reset, skip_check_array=True)
        return checked

    def _card_pieces(self) -> list[Html]:
        """Return what a card says of the fit."""
        return list(self.release_.pieces(self._names()))

    def _card(self) -> str:
        return card(type(self).__name__, *self._card_pieces(), about=f"fitted: {BaseEstimator.__repr__(self)}")

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """What a notebook shows: a card of the fit, or what scikit-learn shows before there is one."""
        before: Callable[[], str] = super()._repr_html_  # which is absent where scikit-learn is to show text
        return self._card if hasattr(self, "release_") else before

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        return shown | ({"text/html": self._repr_html_()} if hasattr(self, "_repr_html_") else {})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.allow_nan = True  # a gap is filled; raising would tell
        tags.non_deterministic = self.random_state is None
        return tags


@dataclass(eq=False, repr=False)
class SubspaceEstimator(ClassNamePrefixFeaturesOutMixin, PrivateEstimator):  # type: ignore[misc]
    """Base of the estimators that learn one subspace."""

    n_components: Any

    @abstractmethod
    def _release(self, call: Call, X: Any, names: list[str] | None, declared: Any) -> Release:
        """Run the algorithm on validated rows; `declared` is the table as it was handed in."""

    def _learn(self, call: Call, X: Any, names: list[str] | None, declared: Any) -> None:
        self.release_ = self._release(call, X, names, declared)
        self.succeeded_ = not self.release_.abstained
        k: Any = self.release_.extras.get("n_components", self.n_components)  # chosen privately, or asked for
        self.subspace_ = self.release_.subspace or Subspace(np.eye(X.shape[1], int(k)))
        self.components_ = self.subspace_.basis.T.copy()  # (k, d)
        self.n_components_ = self.components_.shape[0]

    def rotate(self, criterion: Criterion = "varimax", *, kaiser: bool = True) -> Rotated:
        """Rotate the components that stand out of the noise to simple structure: see `Release.rotate`.

        Parameters
        ----------
        criterion, kaiser
            As there. Post-processing: it costs nothing.

        Returns
        -------
        Rotated
        """
        check_is_fitted(self)
        rotated: Rotated = self.release_.rotate(criterion, kaiser=kaiser, columns=self._names())
        return rotated

    def plot(self) -> Any:
        """Draw the usual three pictures of the fit: scree plot, first loadings, columns in the first plane.

        :mod:`privspan.plot` has each of them, and more, with options.

        Returns
        -------
        matplotlib Figure
        """
        check_is_fitted(self)
        from privspan.plot import overview

        return overview(self)

    def _card_pieces(self) -> list[Html]:
        return release_pieces(self.release_, self._names())

    def _warn(self, call: Call) -> None:
        super()._warn(call)
        if not self.succeeded_:
            message = (
                "The private step abstained and its budget is spent. `components_` are the first coordinate axes, "
                "not a result; check `succeeded_`."
            )
            call.warn(message, AbstentionWarning)

    def transform(self, X: Any) -> Reals:
        """Coordinates of rows in the learnt subspace. Not private when the rows are.

        Parameters
        ----------
        X : (n_samples, n_features) array-like or RowSource

        Returns
        -------
        (n_samples, n_components) array
            float32 for rows of float32, else float64.
        """
        check_is_fitted(self)
        self._check_units()
        X = self._taken(X)
        if (table := given_table(X)) is not None:
            self._check_columns(table)
            rows, step = table.here(), piece_rows(table.shape[1], table.limits)
            return np.concatenate([self._coordinates(rows[i : i + step]) for i in range(0, len(rows), step)])
        rows = self._validated(X, reset=False, dtype=(np.float64, np.float32))
        return self._coordinates(rows).astype(rows.dtype, copy=False)

    def _coordinates(self, X: Any) -> NDArray[np.float64]:
        axes, centre = (self.components_ / self._units()).T / self._spreads(), self._centre()  # (d, k), (d,)
        with np.errstate(invalid="ignore", over="ignore"):  # a row that is not finite gives one that is not
            if issparse(X):  # not centred itself, which would fill it
                table: Any = X
                return np.asarray(table @ axes - centre @ axes)
            return np.asarray((X - centre) @ axes)

    def inverse_transform(self, X: Any) -> Reals:
        """Rows of the original space with these coordinates.

        Parameters
        ----------
        X : (n_samples, n_components) array-like

        Returns
        -------
        (n_samples, n_features) array
        """
        check_is_fitted(self)
        self._check_units()
        coordinates = checks.matrix(X)
        if coordinates.shape[1] != self.n_components_:
            template = "{X} must have {k} columns; got {got}."
            raise ParameterError(template, k=self.n_components_, got=coordinates.shape[1])
        with np.errstate(invalid="ignore", over="ignore"):
            rows = (coordinates * self._spreads()) @ (self.components_ * self._units()) + self._centre()
        return np.asarray(rows, dtype=np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64)

    def _check_units(self) -> None:
        """Refuse scores where the centre or the unit of a column is not known."""

    def _centre(self) -> NDArray[np.float64]:
        return np.zeros(self.n_features_in_) if self.subspace_.offset is None else self.subspace_.offset

    def _units(self) -> Any:
        """Return what the columns are divided by, once centred."""
        return 1.0

    def _spreads(self) -> Any:
        """Return what coordinates are divided by: one number, or one for each."""
        return 1.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        """Number of output columns, for scikit-learn's feature names."""
        return int(self.n_components_)


@cache  # once for a process: a cross-validation would hear it for every step of every fold
def _tell_that_rows_are_not_private() -> None:
    message = (
        "What `fit` stores is private; the rows that `fit_transform` hands on are not, nor is what learns from them "
        "(a classifier, a score), unless it is private by itself, as PrivatePCA is. Every fit spends its own budget, "
        "in each fold of a cross-validation too."
    )
    warnings.warn(message, TransformedRowsWarning, stacklevel=outside())


def _numbers(X: Any) -> Any:
    """Return `X` as an array by its declared types, or as the sparse table that it is.

    What scikit-learn would refuse with a message that prints cells is refused here, by kind and number of dimensions.
    """
    if isinstance(X, np.ma.MaskedArray):
        raise ParameterTypeError("{X} must be a plain array; got a masked array. Fill the masked cells first.")
    table: Any = X if issparse(X) else checks.as_array(X, "X")
    if table.dtype.kind == "c":
        raise ParameterError("Complex data not supported: {X} must hold real numbers.")  # scikit-learn's first words
    if table.dtype.kind not in "biuf":
        raise ParameterTypeError(
            "{X} must be an array of booleans, integers or floats; got dtype {dtype}.", dtype=table.dtype.name
        )
    if table.ndim != 2:
        raise ParameterError("{X} must be two-dimensional; got shape {shape}. Reshape your data.", shape=table.shape)
    return table


def same_columns(table: Table, d: int, names: Sequence[str] | None) -> None:
    """Refuse a table that has not the columns of a fit, in their order."""
    checks.columns(table, d)
    if names is not None and table.names is not None and list(table.names) != list(names):
        first = next(pair for pair in zip(table.names, names, strict=True) if pair[0] != pair[1])
        raise ParameterError(
            "{X} must have the columns of the fit, in their order; got {name!r} in the place of {fitted!r}.",
            name=first[0], fitted=first[1],
        )  # fmt: skip


_OF_A_CALL = ("epsilon", "delta", "rng", "ledger")
_IN_FUNCTIONS = {"n_components": "k", "random_state": "rng"}
_HERE = {there: here for here, there in _IN_FUNCTIONS.items()}


@contextmanager
def parameters_named_as_here() -> Iterator[None]:
    """Let refusals of the functions speak of the parameters by the names that they have in estimators."""
    try:
        yield
    except PrivspanError as refusal:
        refusal.vocabulary = _in_estimators
        raise


def _in_estimators(name: str, value: str) -> str:
    return in_functions(_HERE.get(name, name), value)
