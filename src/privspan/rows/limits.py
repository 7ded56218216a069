"""How much is read, cleaned and kept at a time: numbers of the machine, which decide speed and memory alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bytes and entries at a time; where pieces and windows end, which follows from them and from shapes, is public.

    A source carries its own (`RowSource.limits`); an array has these.  benchmarks/scripts/out_of_core.py measures
    files, benchmarks/scripts/fit_speed.py tables in memory.
    """

    piece_entries: int = 2**17  # of a dense piece: what has been cleaned is still in the cache when it is used
    largest_piece: int = 2**24  # entries, 128 MiB, up to a million columns
    fewest_piece_rows: int = 16  # however long they are
    enough_piece_rows: int = 128  # with fewer, adding up the sums of pieces would take long
    single_times: int = 4  # rows of a piece of float32, over others: measured, and it takes half the room
    kept_bytes: int = 2**30  # cleaned rows up to this size are kept between passes
    slow_to_make: int = 64  # columns: up to here a row less a vector takes longer to make than to multiply
    window_bytes: int = 2**26  # of rows that a windowed source holds, or that are read at a time to pick columns from
    taken_bytes: int = 2**24  # of a map that may be in use before pages are handed back
    neighbourhood: int = 2**16  # bytes: the system maps that much of a file around what is touched
    freely_read_bytes: int = 2**28  # rows of larger maps are read together with their neighbours
    block_bytes: int = 2**24  # of a text file that are read at a time
    buffer_bytes: int = 2**16  # of a Parquet column: without a limit a whole row group would be loaded
    blocks_bytes: int = 2**23  # of blocks of rows whose bases are made together
    groups_bytes: int = 2**20  # of the rows of groups, which are gone over several times
    slab_bytes: int = 2**19  # of rows that are gone over several times, and stay in the cache
    columns_bytes: int = 2**28  # of the columns that are read from a file at a time
    early_rows: int = 2**16  # summed before a clip is known: rounding in so long a sum is nothing beside the noise
    early_entries: int = 2**25  # of the sums of all such chunks
    held_entries: int = 2**26  # of a public draw of rows, which is held in memory
    stream_bytes: int = 2**28  # of a stream that are kept in memory; a longer one goes into a file
    silent_seconds: int = 300  # after which a server of files that says nothing is taken to be gone
    database_bytes: int = 2**29  # that DuckDB may use; what it sorts beyond them goes into a folder of its own
    database_threads: int = 4  # of DuckDB, which asks for 125 MB for each
    batch_rows: int = 2**16  # of a stream that are asked for at a time, where that can be chosen
    drawn_bytes: int = 2**30  # of rows that are drawn for stable leverage, as float64
    drawn_rows: int = 5_000  # and rows: its time grows like the cube of their number, and the rounds see all rows

    def window_rows(self, d: int, itemsize: int) -> int:
        """Return how many dense rows a window may hold, at least one."""
        return max(1, self.window_bytes // (d * itemsize))

    def stream_rows(self, d: int) -> int:
        """Return how many rows of a stream of d columns to ask for at a time."""
        return min(self.batch_rows, self.window_rows(max(1, d), 8))  # float64


LIMITS = Limits()
"""Of everything that says nothing else."""
