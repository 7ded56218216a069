"""Tables that are handed out batch by batch, told from frames in memory by their types alone.

None of the packages is imported here: whoever hands us one of their objects has done so.
"""

from __future__ import annotations

from typing import Any

_BATCHES = ("read_next_batch", "scanner", "to_arrow_reader", "fetch_record_batch", "collect_batches")
_FRAMES = ("pandas", "polars", "pyarrow")


def native(X: Any) -> Any:
    """Return a frame of narwhals as the one that it stands for, and all else as it is."""
    return X.to_native() if _package(X) == {"narwhals"} and hasattr(type(X), "to_native") else X


def is_stream(X: object) -> bool:
    """Tell whether a table must be read batch by batch: any Arrow stream but a frame or a column in memory."""
    kind = type(X)
    if any(hasattr(kind, name) for name in _BATCHES) or kind.__name__ in ("LazyFrame", "Scanner"):
        return not hasattr(kind, "__array__")
    return hasattr(kind, "__arrow_c_stream__") and not _package(X) & {*_FRAMES}


def _package(X: object) -> set[str]:
    return {base.__module__.partition(".")[0] for base in type(X).__mro__} - {"builtins", "typing", "abc"}
