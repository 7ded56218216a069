"""CSV files: one line is one record, one cell one number; what is neither is a gap of its own record.

A CSV file declares nothing but the names of its columns.  So every column is one of numbers unless the caller says
otherwise (`rows.files.schema`), and nothing is decided by looking at cells: the number of rows is the number of
lines after the first, blank ones included; a cell that is not a number is NaN; a line with too many or too few cells,
or with a quotation mark that is not closed, is a row of NaN.  Lines are cut at the byte 10 and every line is read
from its own bytes alone, so that the bytes of one record change its row only (docs/explanation/partitioning.md).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privspan._lib.distinct import Distinct, cell_by_cell
from privspan._lib.identity import codes_of
from privspan._lib.watch import rows_read
from privspan._lib.words import words_in
from privspan.rows.damage import UnreadableFileError
from privspan.rows.files.columns import choose_columns, declared_bounds, encoded_columns
from privspan.rows.files.schema import Column, Schema
from privspan.rows.levels import indicators
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.source import HeldRows, RowSource

_NEWLINE, _QUOTE, _SPACE = b'\n" '
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_TRUTH = {"true": 1.0, "false": 0.0}
_NO_NAMES = ("", "-", "?", "inf", "-inf", "n/a", "na", "nan", "none", "null")  # records have such cells, too
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_OTHER_SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'"}


def open_csv(path: Path, columns: Sequence[str] | None, schema: Schema, limits: Limits = LIMITS) -> RowSource:
    """Read a CSV file with a line of column names into memory, in float64."""
    with _opened(path, schema, limits) as (names, blocks, schema):
        kinds = [(name, None if name else "without a name") for name in names]
        used, left_out = choose_columns(path.name, kinds, columns, schema)
        if not used:
            raise UnreadableFileError(
                "{file!r} has no column of numbers to use; name one with {columns}.", file=path.name
            )
        places = [names.index(name) for name in used]
        table = np.concatenate([_told(_rows(block, len(names), places, schema)) for block in blocks])
    levels = {name: words for name, words in schema.levels.items() if name in used}
    if levels:
        found = {name: words_in(csv_cells(path, name, schema, limits)) for name in levels}
        coded = {name: indicators(words, levels[name]) for name, words in found.items() if words is not None}
        table = np.hstack([coded.get(name, table[:, at : at + 1]) for at, name in enumerate(used)])
    source = HeldRows((len(table), table.shape[1]), table.dtype, lambda: table)
    source.names, source.boolean = encoded_columns(used, schema)
    source.bounds = declared_bounds(used, schema)
    source.left_out, source.limits, source.levels = left_out, limits, levels
    source.person, source.read_ids = schema.person, lambda name: codes_of(csv_cells(path, name, schema, limits))
    return source


def csv_names(path: Path, schema: Schema) -> list[str]:
    """Return the names of the columns, from the first line alone."""
    with _opened(path, schema) as (names, _, _):
        return names


def _told(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    rows_read(len(rows))
    return rows


def csv_cells(path: Path, column: str, schema: Schema, limits: Limits = LIMITS) -> Distinct:
    """Read a column as text, exactly as it stands but for spaces around it; an empty cell is missing."""
    with _opened(path, schema, limits) as (names, blocks, full):
        place = names.index(column)
        return cell_by_cell([word or None for block in blocks for word in _words(block, len(names), place, full)])


def _words(block: bytes, width: int, place: int, schema: Schema) -> list[str | None]:
    """Return the text of one cell of each line, from the bytes of that line alone; None if it is no record."""
    starts, _, sound = _cut(block, width, schema)
    bounds = np.append(starts.ravel(), len(block))
    begins, ends = starts[:, place].tolist(), (bounds[place + 1 :: width] - 1).tolist()  # without the separator
    return [
        _unquoted(block[begin:end].decode(schema.encoding, errors="backslashreplace").strip()) if usable else None
        for begin, end, usable in zip(begins, ends, sound.tolist(), strict=True)
    ]


def _unquoted(cell: str) -> str:
    quoted = len(cell) >= 2 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"').strip() if quoted else cell


@contextmanager
def _opened(
    path: Path, schema: Schema, limits: Limits = LIMITS
) -> Iterator[tuple[list[str], Iterator[bytes], Schema]]:
    """Open a CSV file: the names of its columns, its records in blocks of lines, and how it is written."""
    separator = schema.separator or ("\t" if path.suffix.lower() == ".tsv" else ",")
    if separator == schema.decimal:
        template = "{file!r} cannot have the comma both between cells and as {decimal}; name the {separator}."
        raise UnreadableFileError(template, file=path.name)
    with path.open("rb") as file:
        blocks = _blocks(file, schema.quoted_newlines, limits.block_bytes)
        names, first = _names(path, blocks, separator, schema)
        yield names, chain([first], blocks), schema.but(separator=separator)


def _blocks(file: BinaryIO, quoted_newlines: bool, size: int) -> Iterator[bytes]:
    """Yield blocks of whole lines, the last one with an end of line even if the file has none."""
    file.seek(len(_BOM) if file.read(len(_BOM)) == _BOM else 0)
    held: list[bytes] = []
    inside = 0  # whether quotation marks are open
    while piece := file.read(size):
        ends = _ends(piece, inside, quoted_newlines)
        length, inside = int(ends[-1]) + 1 if len(ends) else 0, (inside + piece.count(b'"')) % 2
        if length:
            yield b"".join([*held, piece[:length]])
            held = []
        held.append(piece[length:])
    rest = b"".join(held)
    if rest:
        yield rest + b"\n"


def _ends(block: bytes, inside: int, quoted_newlines: bool) -> NDArray[np.intp]:
    """Return where lines end; not in quotation marks, if those may hold ends of lines."""
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    if quoted_newlines:
        quotes = np.flatnonzero(data == _QUOTE)
        ends = ends[(np.searchsorted(quotes, ends) + inside) % 2 == 0]
    return ends


def _names(path: Path, blocks: Iterator[bytes], separator: str, schema: Schema) -> tuple[list[str], bytes]:
    """Read the line of column names, and return the first block of records with them."""
    block = next(blocks, b"")
    cut = next(iter(_ends(block, 0, schema.quoted_newlines)[:1].tolist()), len(block)) + 1
    header, first = block[:cut], block[cut:] or next(blocks, b"")
    if header.startswith(_UTF16):
        raise UnreadableFileError("{file!r} is written in UTF-16; save it as UTF-8.", file=path.name)
    if not first:
        raise UnreadableFileError("{file!r} holds no rows.", file=path.name)
    try:
        line = header.decode(schema.encoding).rstrip("\r\n")
        names = [name.strip() for name in next(csv.reader([line], delimiter=separator), [])]
    except UnicodeDecodeError:
        template = "The column names of {file!r} are not {tried}; name their {encoding}."
        raise UnreadableFileError(template, file=path.name, tried=schema.encoding) from None
    except csv.Error:
        names = []
    if any(ord(letter) < 32 and letter not in "\t\n\r" for name in names for letter in name):
        names = []  # the beginning of something that is no text
    if _is_record(names, schema.decimal):
        raise UnreadableFileError("{file!r} must begin with a line of column names.", file=path.name)
    other = max(_OTHER_SEPARATORS, key=line.count)
    if line.count(other) >= len(names) and schema.separator is None:
        template = (
            "The first line of {file!r} seems to have {other} between its names, not {tried!r}: name the {separator}."
        )
        raise UnreadableFileError(template, file=path.name, tried=separator, other=_OTHER_SEPARATORS[other])
    return names, first


def _is_record(names: Sequence[str], decimal: str) -> bool:
    """Tell whether a line holds nothing but numbers and gaps, so that its cells must not become known as names."""
    cells = [name.replace(decimal, ".") for name in names if name.lower() not in _NO_NAMES]
    return not np.isnan(text_numbers(pa.array(cells, pa.large_string()))).any()


def _rows(block: bytes, width: int, places: Sequence[int], schema: Schema) -> NDArray[np.float64]:
    """Turn lines into rows (lines, places), each from its own bytes; one that is no record becomes NaN."""
    cells, sound = _cells(block, width, schema)
    wanted = np.asarray(places, dtype=np.int64)
    if not np.array_equal(wanted, np.arange(width)):
        cells = cells.take(pa.array((np.arange(len(sound))[:, None] * width + wanted).ravel()))
    rows = text_numbers(cells).reshape(len(sound), len(places))
    rows[~sound] = np.nan
    return rows


def _cells(block: bytes, width: int, schema: Schema) -> tuple[Any, NDArray[np.bool_]]:
    """Cut lines into cells, line after line (lines * width,), and tell which lines have that many.

    A cell ends with its separator, which is made a space.  The cells of a line with another number of them are of no
    use: the first are empty, the last holds the whole line.
    """
    starts, separators, sound = _cut(block, width, schema)
    spelled = np.frombuffer(bytearray(block.translate(_spelling(schema.decimal))), dtype=np.uint8)
    spelled[separators] = _SPACE
    offsets = np.append(starts.ravel(), len(block)).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(spelled)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers), sound


def _cut(block: bytes, width: int, schema: Schema) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Return where cells begin (lines, width), where separators are, and which lines have so many cells (lines,).

    A cell begins after its separator and ends where the next begins.
    """
    data = np.frombuffer(block, dtype=np.uint8)
    ends = _ends(block, 0, schema.quoted_newlines)
    if not len(ends) or ends[-1] != len(data) - 1:  # quotation marks that the file never closes
        ends = np.append(ends, len(data) - 1)
    begins = np.concatenate([[0], ends[:-1] + 1])
    assert schema.separator is not None  # `_opened` decides it
    separators = np.flatnonzero(data == ord(schema.separator))
    closed = np.ones(len(ends), dtype=bool)
    if b'"' in block:
        quotes = np.flatnonzero(data == _QUOTE)
        before = np.searchsorted(quotes, begins)  # quotation marks before each line
        closed = (np.searchsorted(quotes, ends) - before) % 2 == 0
        opened = np.searchsorted(quotes, separators) - before[np.searchsorted(ends, separators)]
        separators = separators[opened % 2 == 0]
    counts = np.searchsorted(separators, ends) - np.searchsorted(separators, begins)
    sound = closed & (counts == width - 1)
    starts = np.repeat(begins[:, None], width, axis=1)  # (lines, width)
    starts[sound, 1:] = separators[np.repeat(sound, counts)].reshape(sound.sum(), width - 1) + 1
    return starts, separators, sound


def _spelling(decimal: str) -> bytes:
    """Return a table that turns bytes into those of plain numbers: what is not ASCII cannot be part of one."""
    table = bytearray(range(128)) + b"_" * 128
    table[_QUOTE] = table[_NEWLINE] = _SPACE
    if decimal == ",":
        table[ord(".")], table[ord(",")] = ord("_"), ord(".")
    return bytes(table)


def text_numbers(cells: pa.Array) -> NDArray[np.float64]:
    """Turn text into float64, cell by cell; "true" and "false" count as 1 and 0, other text as NaN."""
    text = pc.ascii_trim_whitespace(cells)
    numeric = pc.match_substring_regex(text, _NUMBER)
    found = np.full(len(text), np.nan)
    is_number = np.asarray(numeric)
    found[is_number] = _floats(text if is_number.all() else text.filter(numeric))
    if not is_number.all():
        words = pc.ascii_lower(text.filter(pc.invert(numeric)))
        place = pc.index_in(words, pa.array(list(_TRUTH), pa.large_string())).fill_null(len(_TRUTH))
        found[~is_number] = np.array([*_TRUTH.values(), np.nan])[np.asarray(place)]
    return found


def _floats(text: Any) -> NDArray[np.float64]:
    """Turn text that is a number into the nearest float64, infinite beyond their range."""
    try:
        return np.asarray(pc.cast(text, pa.float64()))
    except pa.ArrowInvalid:  # should pyarrow not read what is a number to us, no record may make it a refusal
        return np.array([float(one) for one in text.to_pylist()])


def draft_csv(path: Path, schema: Schema) -> tuple[Schema, dict[str, str]]:
    """Guess types from all cells: numbers where most of the filled ones are.  Not private.

    Returned are what was declared, with the types, and remarks on columns that hold something else too.
    """
    with _opened(path, schema) as (names, blocks, full):
        choose_columns(path.name, [(name, None) for name in names], None)  # refuses a name that comes twice
        filled, numbers = np.zeros((2, len(names)), dtype=np.int64)
        for block in blocks:
            cells, sound = _cells(block, len(names), full)
            lengths = np.asarray(pc.binary_length(pc.ascii_trim_whitespace(cells))).reshape(-1, len(names))
            filled += ((lengths > 0) & sound[:, None]).sum(axis=0)
            values = text_numbers(cells).reshape(-1, len(names))
            numbers += (~np.isnan(values) & sound[:, None]).sum(axis=0)
    types = {name: Column("number" if 2 * numbers[i] > filled[i] else "text") for i, name in enumerate(names)}
    remarks = {
        name: f"{filled[i] - numbers[i]:,} of {filled[i]:,} filled cells are not numbers"
        for i, name in enumerate(names)
        if 0 < numbers[i] < filled[i]
    }
    return schema.but(columns=types), remarks
