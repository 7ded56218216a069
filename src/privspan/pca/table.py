"""The table of a private PCA with what is public of its columns, and what is refused of it for every course."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import Parameter, ParameterError
from privspan.blocks.plan import rank_block_size, rank_epsilon
from privspan.blocks.rank import check_choice
from privspan.pca.settings import PCASettings, takes_sparse
from privspan.privacy.call import Call
from privspan.rows.columns import PublicColumns, column_names, public_columns
from privspan.rows.table import Table

Array = NDArray[np.float64]

_MOST_COMPONENTS = 10  # time and memory: a vote among more would also take more rows than most tables have


@dataclass(frozen=True)
class PCATable:
    """A table as the steps take it, and what is public of its columns.

    Attributes
    ----------
    source : Table
    public : PublicColumns
    names : tuple of str, or None
    centred : Table
        What stands for the rows once they are centred, where only its numbers of rows mean anything: half as many,
        as for differences of pairs, or the rows themselves where they are not to be centred.
    considered : range
        The numbers of components among which k is chosen.
    gapped : (d,) array of bool
        Columns whose gaps are counted, where that is worth it.
    """

    source: Table
    public: PublicColumns
    names: tuple[str, ...] | None
    centred: Table
    considered: range
    gapped: NDArray[np.bool_]

    def named(self, columns: NDArray[np.bool_]) -> tuple[str | int, ...]:
        """Return the names, or the positions, of some columns."""
        return tuple(self.names[i] if self.names else int(i) for i in np.flatnonzero(columns))


def opened(settings: PCASettings, call: Call, X: object, names: Sequence[str] | None, declared: object) -> PCATable:
    """Return the table, or refuse what no course can do with it, from types and shapes alone."""
    source = call.open(X, min_rows=2, accept_sparse=takes_sparse(settings.method))
    if settings.missing == "zero-row":
        source = source.with_gaps(settings.missing)
    names = names or column_names(source if column_names(X) is None else X)
    checks.distinct_names(names)
    public = public_columns(
        declared, source.shape[1], names=names, bounds=settings.bounds, units=settings.units, around=settings.around
    )
    centred = source.halved() if settings.center else source
    considered = _considered(settings, centred.shape)
    if settings.k != "auto":
        _check_number(settings, considered[-1] if settings.share is not None else settings.k, min(centred.shape))
    elif not settings.standardised:  # which needs no vote
        check_choice(centred, considered[-1])
    gapped = ~public.complete if settings.missing == "fill" else np.zeros(source.shape[1], dtype=bool)
    return PCATable(source, public, tuple(names) if names else None, centred, considered, gapped)


def _considered(settings: PCASettings, shape: tuple[int, int]) -> range:
    most = settings.max_components
    if settings.k != "auto" and settings.share is None:
        checks.integer_at_least(1, k=settings.k)
        return range(int(settings.k), int(settings.k) + 1)
    if most is None and settings.share is not None:
        most = min(_MOST_COMPONENTS, *shape)
    elif most is None:
        most = min(_MOST_COMPONENTS, shape[1] - 1, shape[0] // 2 - 1)
        most = max(most, 1) if settings.standardised else most
    checks.integer_at_least(1, max_components=most)
    return range(1 if settings.share is None else int(most), int(most) + 1)


def _check_number(settings: PCASettings, k: float, most: int) -> None:
    name = "k" if settings.share is None else "max_components"
    checks.integer_at_least(1, **{name: k})
    if k > most:
        what = "pairs of rows" if settings.center else "rows"
        smaller = f"{most}, the smaller of the number of columns and of {what}"
        raise ParameterError(
            "{name} must be at most {most}; got {got}.", name=Parameter(name), most=smaller, got=int(k)
        )
    if settings.max_components is not None and settings.share is None:
        raise ParameterError('{max_components} must be given only with {k:"auto"} or a share.')


def public_units(settings: PCASettings, public: PublicColumns) -> Array | None:
    """Return the public units of the columns; None if they stay in their own."""
    units = np.where(public.scaled, public.units, 1.0)
    if public.said:  # what is declared as booleans stays as it is unless the user says otherwise
        units = np.where(public.bounded & ~public.scaled, public.half_range, units)
    return None if (units == 1.0).all() else units


def vote_epsilon(settings: PCASettings, table: PCATable, epsilon: float) -> float:
    """Return the part of epsilon that choosing k costs; 0 where it is given."""
    if settings.k != "auto":
        return 0.0
    most = table.considered[-1]
    return rank_epsilon(table.centred.blocks(rank_block_size(most)), most, epsilon)
