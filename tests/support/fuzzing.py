"""What the fuzz tests share: tables of every make, and a judge of what a call did with one.

A table is drawn as a short description (size, dtype, layout, contents, wrapping, shape, seed), so that a failing
example can be read.  `judged` runs a call on it and on zeros of the same description, and checks the rules that hold
for every public function: an answer, or a ValueError or TypeError that follows from public facts and quotes no cell.
"""

from __future__ import annotations

import contextlib
import re
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from privspan import AbstentionWarning, NoSpreadWarning, NotPrivateWarning, UselessPlanWarning, WeakPrivacyWarning
from privspan.rows import PartitionedTable, RowSource, open_rows, partition_rows

OURS = (AbstentionWarning, NoSpreadWarning, NotPrivateWarning, UselessPlanWarning, WeakPrivacyWarning)
LONGEST_CALL = 60.0  # seconds on a busy machine; calls take milliseconds

# Planted in every table whose dtype can hold it; no parameter, shape or constant of ours has these digits.
PLANTED = {"f": 7.0123456789, "i": 70_123_456_789, "u": 70_123_456_789}
PLANTED_SHORT = 27_013  # for what is too narrow; a float16 rounds 7.0123456789 to 7.0117
TELLTALE = re.compile(r"7\.?0123|27[_,]?013|7\.0117|7\.01171875")

NUMBERS = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">f8", ">i4", ">u8", "<f4")
REFUSED = ("O", "c8", "c16", "U8", "S8", "M8[s]", "m8[s]", "g")
LAYOUTS = ("C", "F", "transposed", "backwards", "every second", "inside", "read-only", "repeated")
CONTENTS = ("normal", "low rank", "zeros", "one row", "not finite", "tiny", "huge", "mixed", "integers", "one column")
ON_DISK = ("memory map", "file")
WRAPS = (*["array"] * 9, *["frame"] * 2, "list", "matrix", "csr", "csc", "coo", "masked", *ON_DISK, "partitions")
USUAL_SHAPE = "table"
ODD_SHAPES = ("no rows", "no columns", "no cells", "vector", "cube", "number")


@dataclass(frozen=True)
class Table:
    """The description of a table."""

    n: int
    d: int
    dtype: str
    layout: str
    contents: str
    wrap: str
    seed: int
    shape: str = USUAL_SHAPE

    def make(self) -> Any:
        """Return the table, the same each time."""
        values = _values(self)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a NaN that becomes an integer, a cut-off imaginary part
            cells = _as_dtype(values, np.dtype(self.dtype))
        _plant(cells, self)
        return _wrapped(_shaped(_laid_out(cells, self.layout), self.shape), self.wrap, self.seed)

    def zeros(self) -> Table:
        """Return the description of a table of zeros of the same make."""
        return replace(self, contents="zeros")


def mostly(usual: Any, *unusual: Any, times: int = 12) -> Any:
    """Draw from the first strategy `times` times as often as one of the other values."""
    return st.sampled_from([None] * times + [True]).flatmap(
        lambda pick: st.sampled_from(unusual) if pick and unusual else usual
    )


def tables(*, most_rows: int = 250) -> Any:
    """Draw a description: mostly small tables of numbers, one in thirteen of a dtype that is to be refused."""
    few, many = st.integers(1, 40), st.integers(41, most_rows)
    return st.builds(
        Table,
        n=st.sampled_from([few, few, many] if most_rows <= 250 else [few, many, many]).flatmap(lambda rows: rows),
        d=st.integers(1, 12),
        dtype=mostly(st.sampled_from(NUMBERS), *REFUSED),
        layout=st.sampled_from(LAYOUTS),
        contents=st.sampled_from(CONTENTS),
        wrap=st.sampled_from(WRAPS),
        seed=st.integers(0, 2**16),
        shape=mostly(st.just(USUAL_SHAPE), *ODD_SHAPES, times=24),
    )


def dimensions(table: Table) -> Any:
    """Draw a dimension: mostly one that fits, its limits among them, else what no table has."""
    most = max(1, min(table.n, table.d))
    fits = st.one_of(st.integers(1, most), st.sampled_from([1, most, np.int64(1)]))
    return mostly(fits, 0, -1, table.d + 1, table.n + 1, 2**70, True, 1.0, None, "three")


def budgets() -> Any:
    """Draw epsilon in [1e-3, 50] and delta in [1e-12, 0.1], by their logarithms; seldom one that is none."""
    epsilon = st.one_of(_powers(-3.0, np.log10(50.0)), st.sampled_from([1e-3, 1.0, 50.0, 1, np.float32(2.0)]))
    delta = st.one_of(_powers(-12.0, -1.0), st.sampled_from([1e-12, 1e-6, 0.1]))
    return st.fixed_dictionaries(
        {
            "epsilon": mostly(epsilon, 0.0, -1.0, np.nan, np.inf, "1", None, True, times=24),
            "delta": mostly(delta, 0.0, 1.0, 2.0, np.nan, None, times=24),
        }
    )


def seeds() -> Any:
    """Draw a seed, or none: what is repeatable can be shrunk, and the secure default is run too."""
    return st.one_of(st.none(), st.integers(0, 2**40))


def _powers(low: float, high: float) -> Any:
    return st.floats(low, high).map(lambda exponent: float(10.0**exponent))


# --- Contents, dtypes, layouts ---------------------------------------------------------------------------


def _values(table: Table) -> Any:
    rng = np.random.default_rng(table.seed)
    n, d = table.n, table.d
    normal = rng.normal(size=(n, d))
    match table.contents:
        case "zeros":
            return np.zeros((n, d))
        case "low rank":
            return rng.integers(-5, 6, (n, 2)).astype(float) @ rng.integers(-3, 4, (2, d))
        case "one row":
            return np.tile(normal[:1], (n, 1))
        case "not finite":
            holes = rng.choice([np.nan, np.inf, -np.inf, 1.0], (n, d), p=[0.1, 0.05, 0.05, 0.8])
            return normal * holes
        case "tiny":
            return normal * 5e-324 * rng.choice([1.0, 1e3, 2.0**60], (n, 1))
        case "huge":
            return np.clip(normal, -1.0, 1.0) * 1.797e308 * rng.choice([1.0, 1e-150], (n, 1))
        case "mixed":
            return normal * 10.0 ** rng.integers(-320, 308, (n, d)).astype(float)
        case "integers":
            return rng.integers(-(2**62), 2**62, (n, d))
        case "one column":
            return np.outer(normal[:, 0], np.arange(d) == 0)
        case _:
            return normal


def _as_dtype(values: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "Mm":
        return np.clip(np.nan_to_num(values), -1e6, 1e6).astype("i8").astype(dtype)
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return np.clip(np.nan_to_num(values), float(bounds.min) / 2, float(bounds.max) / 2).astype(dtype)
    return values.astype(dtype)


def _plant(cells: Any, table: Table) -> None:
    """Put a number that would be recognised in a message into a cell, except into zeros."""
    if table.contents == "zeros" or cells.dtype.kind in "?Mm":
        return
    where = (table.seed % table.n, table.seed % table.d)
    kind, bits = cells.dtype.kind, 8 * cells.dtype.itemsize
    if kind in "iu" and bits > 8:
        cells[where] = PLANTED["i"] if bits == 64 else PLANTED_SHORT
    elif kind in "fc":
        cells[where] = PLANTED["f"]
    elif kind in "OUS":
        cells[where] = PLANTED["f"] if kind == "O" else "7.0123"


def _laid_out(cells: Any, layout: str) -> Any:
    n, d = cells.shape
    match layout:
        case "F":
            return np.asfortranarray(cells)
        case "transposed":
            return cells.T.copy().T
        case "backwards":
            return cells[::-1, ::-1].copy()[::-1, ::-1]
        case "every second":
            wide = np.zeros((2 * n, 2 * d), dtype=cells.dtype)
            wide[::2, ::2] = cells
            return wide[::2, ::2]
        case "inside":
            wide = np.zeros((n + 2, d + 3), dtype=cells.dtype)
            wide[1:-1, 1:-2] = cells
            return wide[1:-1, 1:-2]
        case "read-only":
            cells.flags.writeable = False
        case "repeated":  # a stride of zero: every row is the first
            return np.broadcast_to(cells[0], (n, d))
    return cells


def _shaped(cells: Any, shape: str) -> Any:
    match shape:
        case "no rows":
            return cells[:0]
        case "no columns":
            return cells[:, :0]
        case "no cells":
            return cells[:0, :0]
        case "vector":
            return cells[:, 0]
        case "cube":
            return cells[None]
        case "number":
            return cells[:1, :1].reshape(())
    return cells


def _wrapped(cells: Any, wrap: str, seed: int) -> Any:
    if wrap not in ("array", "list") and np.ndim(cells) != 2:  # what no other wrapping can hold
        return cells
    if wrap in ON_DISK and cells.size and cells.dtype.kind in "?biuf" and cells.dtype.char != "g":
        return _on_disk(cells, wrap, seed)
    if wrap == "partitions":
        n = len(cells)
        cuts = sorted({0, n, seed % (n + 1), seed % 1009 % (n + 1)})
        with suppress(TypeError, ValueError):  # what cannot be dealt out is handed over as it is
            return partition_rows(cells, np.diff(cuts).tolist())
        return cells
    if wrap == "list":
        return cells.tolist()
    if wrap == "matrix":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            return np.matrix(cells)
    if wrap == "masked":
        return np.ma.masked_array(cells, mask=np.zeros(cells.shape, dtype=bool))
    if wrap == "frame":
        import pandas as pd

        native = cells.astype(cells.dtype.newbyteorder("="))
        return pd.DataFrame(native, columns=[f"c{j}" for j in range(cells.shape[1])])
    native = cells.dtype.newbyteorder("=")
    if wrap in ("csr", "csc", "coo") and native.kind in "?iufc" and native.itemsize <= 16 and native.char not in "eg":
        return {"csr": sparse.csr_array, "csc": sparse.csc_array, "coo": sparse.coo_array}[wrap](cells.astype(native))
    return cells


def _on_disk(cells: Any, wrap: str, seed: int) -> Any:
    """Return the cells as a map of a file, or as a source that reads one; the name of the file is gone at once."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "table.npy"
        np.save(path, cells)
        if wrap == "file":
            return open_rows(path)
        mode: Any = ("r", "c", "r+")[seed % 3]
        return np.load(path, mmap_mode=mode)


# --- The judge -------------------------------------------------------------------------------------------


class Hang(BaseException):
    """A call took far too long."""


@contextlib.contextmanager
def alarm(seconds: float = LONGEST_CALL) -> Iterator[None]:
    """Raise `Hang` in the block after so many seconds, where the system can do that."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise Hang(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def outcome(call: Callable[[Any], Any], X: Any) -> tuple[str, str]:
    """Return "answer", or the type and text of the refusal; fail on everything that no call may do."""
    before = fingerprint(X)
    with warnings.catch_warnings(record=True) as seen, alarm():
        warnings.simplefilter("always")
        try:
            call(X)
            result = ("answer", "")
        except (ValueError, TypeError) as error:
            assert_told_nothing(error)
            result = (type(error).__name__, str(error))
    for warning in seen:
        assert issubclass(warning.category, OURS), f"{warning.filename}:{warning.lineno}: {warning.message}"
        assert not TELLTALE.search(str(warning.message))
    assert fingerprint(X) == before, "the input was modified"
    return result


def judged(call: Callable[[Any], Any], table: Table) -> tuple[str, str]:
    """Return the outcome of a call, after checking that zeros of the same make have the same one."""
    result = outcome(call, table.make())
    # NumPy infers the dtype of a list from its entries, which is documented; so zeros may differ there.
    if table.wrap != "list":
        assert outcome(call, table.zeros().make()) == result, "what is raised depends on values"
    return result


def assert_told_nothing(error: BaseException | None) -> None:
    """Check every message that a traceback of this error would print."""
    while error is not None:
        assert not TELLTALE.search(str(error)), f"a cell is in the message: {error}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def fingerprint(X: Any) -> Any:
    """Return the bytes of a table, with what says how to read them."""
    if isinstance(X, RowSource):
        return (X.shape, X.dtype.str, X[:].tobytes())
    if isinstance(X, PartitionedTable):
        return (X.lengths, [fingerprint(part) for part in X.place.fetch(X.parts, X.lengths)])
    if isinstance(X, list) or getattr(getattr(X, "dtype", None), "kind", "") == "O":
        return repr(X)
    if sparse.issparse(X):
        parts = X.coords if X.format == "coo" else (X.indices, X.indptr)
        return (X.shape, X.data.tobytes(), *(part.tobytes() for part in parts))
    if hasattr(X, "columns"):
        return (tuple(X.columns), tuple(str(t) for t in X.dtypes), repr(X.to_numpy().tolist()))
    if isinstance(X, np.ndarray):
        return (X.shape, X.dtype.str, X.strides, X.flags.writeable, X.tobytes())
    return None
