"""What a command says while it works: rows that have arrived, passes over them, and how long is left."""

import numpy as np
import pytest
from streams import arrow

from privspan._lib.watch import is_watched, rows_read, watching_rows
from privspan.cli._progress import Activity, activity
from privspan.rows import open_rows


def test_rows_that_arrive_are_told_until_the_next_stage():
    with activity("Reading people.db") as shown:
        assert shown.describe() == "Reading people.db: 0 s so far"
        with watching_rows(read=shown.read):
            open_rows(arrow(np.ones((1200, 2))).to_reader())
        assert shown.describe() == "Reading people.db: 0 s so far, 1,200 rows read"
        shown.now("Learning privately", 2400.0, 1200)
        assert shown.describe() == "Learning privately: 0 s so far"
    rows_read(5)
    assert shown.arrived == 0


@pytest.mark.parametrize(
    ("planned", "done", "told"),
    [
        (700.0, 1, ", pass 1 of about 7 over the rows"),
        (700.0, 100, ", pass 1 of about 7 over the rows"),
        (700.0, 101, ", pass 2 of about 7 over the rows"),
        (700.0, 701, ", pass 8"),
        (None, 250, ", pass 3"),
    ],
)
def test_passes_are_told_where_there_are_several(planned, done, told):
    shown = Activity("Learning privately")
    shown.now("Learning privately", planned, 100)
    shown.advance(done)
    assert shown.describe().startswith(f"Learning privately: 0 s so far{told}")


def test_reading_is_not_looking():
    seen, read = [], []
    with watching_rows(seen.append):
        assert is_watched()
        with watching_rows(read=read.append):
            rows_read(3)
    assert (seen, read, is_watched()) == ([], [3], False)
