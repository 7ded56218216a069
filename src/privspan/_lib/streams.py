"""Tables that are handed out batch by batch, told from frames in memory by their types alone.

None of the packages is imported here: whoever hands us one of their objects has done so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privspan._lib.errors import MissingPackageError

_BATCHES = ("read_next_batch", "scanner", "to_arrow_reader", "fetch_record_batch", "collect_batches")
_IN_MEMORY = {"pandas", "polars", "pyarrow"}


def native(X: Any) -> Any:
    """Return a frame of narwhals as the one that it stands for, and all else as it is."""
    return X.to_native() if "narwhals" in packages_of(X) and hasattr(type(X), "to_native") else X


def is_stream(X: object) -> bool:
    """Tell whether a table must be read batch by batch: any Arrow stream but a frame or a column in memory."""
    kind = type(X)
    if any(hasattr(kind, name) for name in _BATCHES) or kind.__name__ in ("LazyFrame", "Scanner"):
        return True
    return hasattr(kind, "__arrow_c_stream__") and not packages_of(X) & _IN_MEMORY


def packages_of(X: object) -> set[str]:
    """Return the packages that the classes of an object come from."""
    return {base.__module__.partition(".")[0] for base in type(X).__mro__}


@contextmanager
def pyarrow_needed() -> Iterator[None]:
    """Say what is missing where the reader of streams cannot be loaded."""
    try:
        yield
    except ImportError:
        raise MissingPackageError("Reading Arrow streams needs pyarrow: pip install 'privspan[files]'.") from None
