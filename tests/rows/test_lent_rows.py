"""Rows less a centre are made in a buffer that is used again: nobody sees the rows of somebody else in it."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from privspan.rows.arrays import as_source
from privspan.rows.derived import ShiftedRows, SingleShiftedRows
from privspan.rows.unit import Rows

CENTRE = np.array([1.0, -2.0, 3.0])


@pytest.fixture(params=[ShiftedRows, SingleShiftedRows])
def shifted(request):
    kind = np.float32 if request.param is SingleShiftedRows else np.float64
    X = np.random.default_rng(0).standard_normal((10_000, 3)).astype(kind)
    return request.param(as_source(X), CENTRE), (X - CENTRE.astype(kind)).astype(kind)


def test_a_buffer_is_used_again(shifted):
    source, wanted = shifted
    places = set()
    for start in (0, 100, 50):

        def check(rows, start=start):
            places.add(rows.ctypes.data)
            return np.array_equal(rows, wanted[start : start + 40])

        assert source.lend(slice(start, start + 40), check)
    assert len(places) == 1


def test_rows_that_are_taken_are_fresh(shifted):
    source, wanted = shifted
    first, second = source[0:40], source[np.arange(40, 80)]
    source.lend(slice(80, 120), lambda rows: None)
    assert np.array_equal(first, wanted[:40])
    assert np.array_equal(second, wanted[40:80])


def test_every_thread_has_a_buffer_of_its_own(shifted):
    source, wanted = shifted
    together = Barrier(2)

    def lent(start):
        def look(rows):
            together.wait(10)  # both have their rows now
            return rows.copy()

        return source.lend(slice(start, start + 50), look)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lent, (0, 500)))
    assert np.array_equal(found[0], wanted[:50])
    assert np.array_equal(found[1], wanted[500:550])


def test_two_passes_may_go_on_at_once(shifted):
    source, _ = shifted
    rows = Rows(source, clip=3.0)

    def total(piece, factors):
        return (piece * factors[:, None]).sum(axis=0, dtype=np.float64)

    alone = list(rows.map_folded(total))
    assert len(alone) > 2
    for one, other, expected in zip(rows.map_folded(total), rows.map_folded(total), alone, strict=True):
        assert np.array_equal(one, expected)
        assert np.array_equal(other, expected)


def test_a_copy_has_a_buffer_of_its_own(shifted):
    source, wanted = shifted

    def nested(rows):
        return copy.copy(rows), copy.deepcopy(source).lend(slice(10, 20), np.copy)

    mine, theirs = source.lend(slice(0, 10), nested)
    assert np.array_equal(mine, wanted[:10])
    assert np.array_equal(theirs, wanted[10:20])
    assert pickle.loads(pickle.dumps(source._scratch)) is not source._scratch


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_about_zero_are_lent_as_they_are(order):
    X = np.asarray(np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32), order=order)
    source = SingleShiftedRows(as_source(X), np.zeros(3))
    in_runs, rows = source.lend(slice(5, 9), lambda rows: (rows.flags.c_contiguous, rows))
    assert in_runs
    assert np.array_equal(rows, X[5:9])
