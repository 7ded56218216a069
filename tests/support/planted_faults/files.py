"""Faults in the reading of files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from planted_faults.registry import fault
from privspan.rows import UnreadableFileError, open_rows
from privspan.rows import arrays as array_files
from privspan.rows.files import parquet as parquet_files
from privspan.rows.files import text as text_files


def record_seen_by_others(suffix: str, neighbours: Any, **options: Any) -> bool:
    """Tell whether files that differ in their last record differ in anything but their last row."""
    facts = []
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(neighbours):
            path = Path(folder) / f"{number}{suffix}"
            if suffix == ".csv":
                path.write_text(content)
            elif suffix == ".npz":
                np.savez(path, **content)
            else:
                pq.write_table(pa.table({"v": content}), path)
            try:
                rows = open_rows(path, **options)
                others = rows[: len(rows) - 1]
                others = others.toarray() if rows.is_sparse else others
                facts.append((rows.shape, rows.dtype, rows.names, others.tobytes()))
            except UnreadableFileError:
                facts.append(("refused",))
    return len(set(facts)) > 1


def csv_refuted(lines: int, sound: str, *others: str) -> bool:
    head = "age,notes\n" if "," in sound else "age\n"
    return record_seen_by_others(".csv", [head + lines * f"{sound}\n" + f"{last}\n" for last in (sound, *others)])


def headless_refuted(*firsts: str) -> bool:
    return record_seen_by_others(".csv", [f"{first}\n3,4\n1,2\n" for first in firsts])


@fault("type of a CSV column by majority", lambda: csv_refuted(20, "20,", "20,7", "20,x"))
def guessed_types(patch):
    sound = text_files.open_csv

    def guessing(path, columns, schema, *limits):
        whole = sound(path, columns, schema, *limits)
        numbers = np.isfinite(whole[:]).any(axis=0)
        kept = [name for name, number in zip(whole.names, numbers, strict=True) if number]
        return sound(path, kept, schema, *limits)

    patch.setattr(text_files, "open_csv", guessing)


@fault("numbers beside a gap taken for column names", lambda: headless_refuted("5,7", "5,", "nan,7", "1e999,7"))
def names_of_a_record(patch):
    patch.setattr(text_files, "_is_record", lambda names, decimal: all(name.isdigit() for name in names))


LIST_NEIGHBOURS = [[[1.0, 2.0]] * 4 + [last] for last in ([3.0, 4.0], [1.0] * 7, [], None)]


@fault(
    "width of lists from their number of values", lambda: record_seen_by_others(".parquet", LIST_NEIGHBOURS, width=2)
)
def counted_width(patch):
    sound = parquet_files.open_parquet

    def counting(path, columns, schema, *limits):
        lists = pq.read_table(path).column("v")
        return sound(path, columns, schema.but(width=len(lists.combine_chunks().flatten()) // len(lists)), *limits)

    patch.setattr(parquet_files, "open_parquet", counting)


@fault("records without a number dropped", lambda: csv_refuted(20, "20", "", "x", "1,2", '"'))
def dropped_lines(patch):
    sound = text_files._rows

    def dropping(*arguments):
        rows = sound(*arguments)
        return rows[~np.isnan(rows).all(axis=1)]

    patch.setattr(text_files, "_rows", dropping)


TRIPLES = {"format": b"coo", "shape": (3, 2), "row": np.arange(3), "data": np.ones(3)}
TRIPLE_NEIGHBOURS = [TRIPLES | {"col": np.array([0, 1, last])} for last in (0, 1, 2, -1)]


@fault("triples of a file read by SciPy", lambda: record_seen_by_others(".npz", TRIPLE_NEIGHBOURS))
def checked_by_scipy(patch):
    patch.setattr(array_files, "_stored_matrix", lambda path, parts, shape: sparse.csr_array(sparse.load_npz(path)))
