"""``privspan transform``: the coordinates of rows in a subspace.  Plain arithmetic on the rows: not private."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from privspan._lib.errors import MissingPackageError
from privspan._lib.whole_file import whole_file
from privspan.cli import _console
from privspan.cli._groups import Reading
from privspan.cli._options import STDIN, Json, Overwrite, check_target, grouped, output_to
from privspan.cli._place import Database, TableFile, table_place
from privspan.cli._progress import activity
from privspan.cli._table import columns_of, open_table
from privspan.cli.exits import Complaint
from privspan.cli.read import SubspaceFile, load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from privspan.ledger.release_file import SavedRelease
    from privspan.rows import RowSource
    from privspan.subspace import Subspace

    _Write = Callable[[NDArray[np.float64]], object]

_PIECE_ENTRIES = 2**22


@grouped
def transform(
    subspace: SubspaceFile,
    output: Annotated[Path, output_to(".csv, .npy or .parquet; - for CSV on standard output.")],
    database: Database,
    reading: Reading,
    file: TableFile = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write the coordinates of every row in the subspace: NOT private.

    The output shows a row per person.

    Example:

    privspan transform subspace.npz people.csv -o coordinates.csv
    """
    to_stdout = output == STDIN
    if to_stdout and json:
        raise Complaint("--json and -o - both write to standard output; leave one out.")
    place = table_place(file, database)
    inputs = {"the table": place.path, "the subspace": subspace}
    check_target(None if to_stdout else output, "-o", tuple(_WRITERS), spare=inputs, overwrite=overwrite)
    saved = load(subspace)
    found = saved.subspace
    names = columns_of(found, place, reading)
    with activity("Transforming") as shown, open_table(place, names, reading, shown) as source:
        if source.shape[1] != found.ambient_dimension:
            counts = f"{found.ambient_dimension:,} columns and the table {source.shape[1]:,}"
            raise Complaint(f"the subspace has {counts}; give it the same columns.")
        shown.now("Transforming", source.shape[0])
        writer = _WRITERS[".csv" if to_stdout else output.suffix.lower()]
        target = _stdout() if to_stdout else whole_file(output, overwrite=overwrite)
        with target as handle, writer(handle, source.shape[0], found) as write:
            for coordinates in _coordinates(source, saved):
                write(coordinates)
                shown.advance(len(coordinates))
    _console.warn("these coordinates are not private: they show one row per person. Do not publish them.")
    if json:
        rows, columns = source.shape[0], found.dimension
        _console.print_json({"output": str(output), "rows": rows, "columns": columns, "private": False})


def _coordinates(source: RowSource, saved: SavedRelease) -> Iterator[NDArray[np.float64]]:
    """Yield the coordinates piece by piece, (rows, k); in a private PCA a gap counts as the centre, as in its fit."""
    import numpy as np

    from privspan.rows.compressed import as_dense
    from privspan.rows.gaps import filled

    subspace, released = saved.subspace, {} if saved.release is None else saved.release.extras
    if saved.release is not None and saved.release.parameters.get("without_units"):
        raise Complaint(
            "Scores need a centre and a scale for every column; this release lacks some. Fit again with --bounds, "
            "more rows or a larger epsilon."
        )
    units: Any = released.get("scale", 1.0)  # what columns were divided by before the subspace was learnt
    ends: Any = (released["low"], released["high"]) if "low" in released else (-np.inf, np.inf)
    centre: Any = released.get("mean")
    n, d = source.shape
    shift = 0.0 if subspace.offset is None else subspace.offset @ subspace.basis  # (k,)
    basis = subspace.basis / np.reshape(units, (-1, 1))  # (d, k)
    step = max(1, _PIECE_ENTRIES // d)
    for start in range(0, n, step):
        with np.errstate(all="ignore"):  # a row that is not finite gives one that is not
            stored = source[start : start + step].astype(np.float64)
            rows = stored if centre is None else filled(stored, centre)
            yield np.asarray(np.clip(as_dense(rows), *ends) @ basis - shift)


@contextmanager
def _stdout() -> Iterator[BinaryIO]:
    with _console.stdout_in_words():
        yield sys.stdout.buffer


def _heads(subspace: Subspace) -> list[str]:
    return [f"component_{number}" for number in range(1, subspace.dimension + 1)]


@contextmanager
def _csv_writer(handle: BinaryIO, rows: int, subspace: Subspace) -> Iterator[_Write]:
    import numpy as np

    handle.write((",".join(_heads(subspace)) + "\n").encode())
    yield lambda coordinates: np.savetxt(handle, coordinates, delimiter=",", fmt="%.17g")


@contextmanager
def _npy_writer(handle: BinaryIO, rows: int, subspace: Subspace) -> Iterator[_Write]:
    import numpy as np

    header = {"descr": "<f8", "fortran_order": False, "shape": (rows, subspace.dimension)}
    np.lib.format.write_array_header_1_0(handle, header)
    yield lambda coordinates: handle.write(np.ascontiguousarray(coordinates, dtype="<f8").tobytes())


@contextmanager
def _parquet_writer(handle: BinaryIO, rows: int, subspace: Subspace) -> Iterator[_Write]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingPackageError("Writing .parquet files needs pyarrow: pip install 'privspan[files]'.") from None
    schema = pa.schema([(head, pa.float64()) for head in _heads(subspace)])
    with parquet.ParquetWriter(handle, schema) as writer:
        yield lambda coordinates: writer.write_table(pa.table(list(coordinates.T), schema=schema))


_WRITERS = {".csv": _csv_writer, ".npy": _npy_writer, ".parquet": _parquet_writer}
