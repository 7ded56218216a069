"""Lines on stderr that tell how many rows have been read and looked at, for whoever asks for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from privspan._lib.watch import watching_rows


@contextmanager
def show_progress(stream: TextIO | None = None) -> Iterator[None]:
    r"""Count, on one line, the rows that algorithms look at inside the block; every pass counts them again.

    Rows of a stream are counted before, on a line of their own, while they are read.  The counts are public numbers:
    they depend on the shape of the table and on what has been released, not on values.  (Where persons have several
    rows, how many there are in all is not public: keep what this tells of a stream to yourself.)

    Parameters
    ----------
    stream : text stream, optional
        Where to write; stderr by default.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from privspan import private_mean
    >>> shown = io.StringIO()
    >>> with show_progress(shown):
    ...     mean = private_mean(np.ones((5000, 2)), epsilon=1.0, delta=1e-6, norm_bound=2.0)
    >>> shown.getvalue().split("\r")[-1]
    '5,000 rows looked at\n'
    """
    out = sys.stderr if stream is None else stream
    counts = {"read": 0, "looked at": 0}
    last, new_line = "", "\n"

    def tell(what: str, count: int) -> None:
        nonlocal last
        counts[what] += count
        out.write(f"{'' if last in ('', what) else new_line}\r{counts[what]:,} rows {what}")
        out.flush()
        last = what

    with watching_rows(partial(tell, "looked at"), read=partial(tell, "read")):
        try:
            yield
        finally:
            out.write("\n")
