"""Places where partitions of a table may live other than this process; see `privspan.rows.partitions`.

Nothing here is imported before a table of such a kind is handed to an algorithm.  How to use it: docs/howto/dask.md.
What it costs: docs/explanation/scaling.md.
"""

from __future__ import annotations

from privspan.backends.progress import show_progress

__all__ = ["show_progress"]
