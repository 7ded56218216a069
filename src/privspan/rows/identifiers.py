"""Columns that tell whose a record is: known by their names and declared types, never by values.

One rule for all tables.  Of a file such a column is left out (`privspan.rows.files.columns`), and a draft of a schema
skips it.  A frame keeps it, as scikit-learn has it, and whoever fits it is warned (`privspan.privacy.call.Call`).
"""

from __future__ import annotations

import re

from privspan._lib.frames import frame_columns, frame_package
from privspan._lib.streams import native
from privspan.rows.columns import column_names
from privspan.rows.levels import indicator_names
from privspan.rows.source import RowSource

_WORDS = "id|uid|uuid|guid"
_WHOLE_NAME = re.compile(
    rf"({_WORDS}|index|rowid|row[ _.-]?(id|index|number|nr|names?)|__index_level_\d+__|unnamed: ?0(\.\d+)?"
    r"|(account|case|client|customer|donor|employee|household|member|order|participant|patient|person|record|sample"
    r"|session|student|subject|user|visit)id)",
    re.IGNORECASE,
)
_LAST_WORD = re.compile(rf".*[\W_]({_WORDS})", re.IGNORECASE)
_CAMEL_CASE = re.compile(r".*[a-z0-9](Id|ID|Uid|UID|Uuid|UUID|Guid|GUID)")


def looks_like_identifier(name: str) -> bool:
    """Tell whether a column's name says that it identifies the record.

    The rule: the name is "id", "uuid", "index", "row id", "row names", "userid" or the like; or it ends in the word
    "id", "uid", "uuid" or "guid" ("user_id", "Order ID"); or it ends so in camel case ("userId"); or there is none,
    as above written names of rows: pandas reads "Unnamed: 0" there.

    Examples
    --------
    >>> [name for name in ("id", "user_id", "userId", "humid", "body_mass_index") if looks_like_identifier(name)]
    ['id', 'user_id', 'userId']
    """
    name = name.strip()
    return not name or any(rule.fullmatch(name) for rule in (_WHOLE_NAME, _LAST_WORD, _CAMEL_CASE))


def identifiers(X: object) -> list[str]:
    """Return the names of the columns of numbers of a frame that are named like an identifier; no cell is read.

    Parameters
    ----------
    X
        A table as it was handed in: a frame of pandas, polars or Dask, an Arrow table, or a stream that was read as
        a frame (`privspan.rows.files.stream`); all else has none.
    """
    X = native(X)
    if isinstance(X, RowSource):
        words = {name for category in X.levels.items() for name in indicator_names(*category)}
        names = X.names if X.as_frame else None
        return [name for name in names or () if name not in words and looks_like_identifier(name)]
    frame = (
        getattr(X, "_meta", X) if hasattr(type(X), "_meta") else X
    )  # of Dask: an empty frame of the same names and types
    if frame_package(frame) is None or not any(map(looks_like_identifier, column_names(frame) or ())):
        return []
    numbers = (str(column.name) for column in frame_columns(frame) or () if column.kind.other is None)
    return [name for name in numbers if looks_like_identifier(name)]
