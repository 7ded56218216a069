"""A line for rows that are read, and one for those that are looked at."""

import io

import numpy as np
from streams import arrow

import privspan as ps
from privspan.backends import show_progress


def test_rows_that_are_read_have_a_line_of_their_own():
    shown = io.StringIO()
    with show_progress(shown):
        ps.private_mean(arrow(np.ones((5000, 2))).to_reader(2000), epsilon=1.0, delta=1e-6, norm_bound=2.0)
    lines = [line.split("\r")[-1] for line in shown.getvalue().split("\n") if line]
    assert "2,000 rows read" in shown.getvalue()
    assert lines == ["5,000 rows read", "5,000 rows looked at"]
