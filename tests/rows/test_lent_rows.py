"""Rows less a centre are made in a buffer that is used again: nobody sees the rows of somebody else in it."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from privspan.rows.shifting import Shift, SingleShift
from privspan.rows.source import as_source
from privspan.rows.unit import Rows

CENTRE = np.array([1.0, -2.0, 3.0])


@pytest.fixture(params=[Shift, SingleShift])
def shifted(request):
    kind = np.float32 if request.param is SingleShift else np.float64
    X = np.random.default_rng(0).standard_normal((10_000, 3)).astype(kind)
    return request.param(CENTRE), X, (X - CENTRE.astype(kind)).astype(kind)


def test_a_buffer_is_used_again(shifted):
    shift, X, wanted = shifted
    places = set()
    for start in (0, 100, 50):
        rows = shift(X[start : start + 40])
        places.add(rows.ctypes.data)
        assert np.array_equal(rows, wanted[start : start + 40])
    assert len(places) == 1


def test_rows_that_are_taken_are_fresh(shifted):
    _, X, _ = shifted
    source = as_source(X)
    first, second = source[0:40], source[np.arange(40, 80)]
    first[:], second[:] = 0.0, 0.0
    assert X[:80].all()


def test_every_thread_has_a_buffer_of_its_own(shifted):
    shift, X, wanted = shifted
    together = Barrier(2)

    def lent(start):
        rows = shift(X[start : start + 50])
        together.wait(10)  # both have their rows now
        return rows.copy()

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lent, (0, 500)))
    assert np.array_equal(found[0], wanted[:50])
    assert np.array_equal(found[1], wanted[500:550])


@pytest.mark.parametrize("single", [False, True])
def test_two_passes_may_go_on_at_once(single):
    X = np.random.default_rng(0).standard_normal((10_000, 3)).astype(np.float32 if single else np.float64)
    rows = Rows(X, centre=CENTRE, single=single, clip=3.0)

    def total(piece, factors):
        return (piece * factors[:, None]).sum(axis=0, dtype=np.float64)

    alone = list(rows.map_folded(total))
    assert len(alone) > 2
    for one, other, expected in zip(rows.map_folded(total), rows.map_folded(total), alone, strict=True):
        assert np.array_equal(one, expected)
        assert np.array_equal(other, expected)


@pytest.mark.parametrize("single", [False, True])
def test_rows_clipped_anew_are_those_clipped_at_once(single):
    """Whatever was looked at before, at another length; so are the rows that they were made of afterwards."""
    X = np.random.default_rng(0).standard_normal((300, 3)).astype(np.float32 if single else np.float64)
    basis, clips = np.eye(3)[:, :2], (None, 0.5, 2.0, 1.0)

    def opened(clip):
        return Rows(X, centre=CENTRE, single=single, clip=clip, keep=False)

    def looked(rows):
        return rows.coordinates(basis), rows.squared_lengths(), list(rows.map_folded(lambda _, factors: factors))

    rows = [opened(None)]
    looked(rows[0])
    for clip in clips[1:]:
        rows.append(rows[-1].clipped(clip))
        looked(rows[-1])
    for anew, clip in zip(rows, clips, strict=True):
        for found, wanted in zip(looked(anew), looked(opened(clip)), strict=True):
            assert np.array_equal(found, wanted)


def test_a_copy_has_a_buffer_of_its_own(shifted):
    shift, X, wanted = shifted
    mine = shift(X[:10])
    for other in (copy.deepcopy(shift), pickle.loads(pickle.dumps(shift))):
        theirs = other(X[10:20])
        assert np.array_equal(theirs, wanted[10:20])
    assert np.array_equal(mine, wanted[:10])


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_about_zero_are_lent_as_they_are(order):
    X = np.asarray(np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32), order=order)
    rows = SingleShift(np.zeros(3))(X[5:9])
    assert rows.flags.c_contiguous
    assert np.array_equal(rows, X[5:9])
    assert np.shares_memory(rows, X) == (order == "C")
