"""Persons in partitions have the slots that they have in memory, in the same order, whatever is asked of them."""

import dask
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spread import spread

from privspan.blocks.bases import block_bases
from privspan.privacy.persons import by_person
from privspan.rows import partition_rows
from privspan.rows.persons import mixed_places
from privspan.rows.shifting import less
from privspan.rows.spread_persons import SpreadPersons, _in_slots, _sent
from privspan.rows.unit import CHUNK_ROWS, whole_persons


def slots_of(table):
    spread = table.spread
    return np.concatenate(spread.place.fetch(spread.parts, spread.lengths))


def both(rows, ids, lengths, width, seed=0):
    """The same persons at home and in partitions."""
    away = by_person(partition_rows(rows, lengths), ids, width, seed)
    assert isinstance(away, SpreadPersons)
    return by_person(rows, ids, width, seed), away


@given(
    codes=st.lists(st.integers(-1, 9), min_size=1, max_size=40),
    at=st.lists(st.integers(0, 40), max_size=4),
    width=st.sampled_from([1, 2, 5]),
    seed=st.integers(0, 99),
)
@settings(max_examples=150, deadline=None)
def test_slots_are_those_of_the_table_in_memory(codes, at, width, seed):
    lengths = np.diff([0, *sorted(min(cut, len(codes)) for cut in at), len(codes)]).tolist()
    rows = np.arange(2.0 * len(codes)).reshape(-1, 2)
    ids = [None if code < 0 else code for code in codes]
    home, away = both(rows, ids, lengths, width, seed)
    assert home.shape == away.shape
    assert np.array_equal(slots_of(away), home.slots[:])


@pytest.fixture(scope="module", params=[1, 3])
def crowds(request):
    """More persons than a chunk of them, in six partitions."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 4, 9001)
    ids = rng.permutation(np.repeat(np.arange(9001), counts))
    rows = rng.standard_normal((len(ids), 3)) + ids[:, None]
    return both(rows, ids, (9000, 1, 0, 2000, 999, len(ids) - 12_000), request.param)


def test_partitions_hold_whole_chunks_of_persons_and_of_their_pairs(crowds):
    _, away = crowds
    for table in (away, away.pairs(np.random.default_rng(0), less)):
        lengths = table.spread.lengths
        assert len(lengths) > 1
        assert all(length % whole_persons(CHUNK_ROWS, table.width) == 0 for length in lengths[:-1])


def test_where_partitions_end_does_not_follow_where_rows_were(crowds):
    """Nor in how many of the partitions that were handed in there are rows at all: that is private."""
    home, _ = crowds
    n, ids = home.read, np.random.default_rng(1).permutation(np.arange(home.read) % 9001)
    found = []
    for lengths in ([n, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, n - 5]):
        X, person = spread(np.zeros((n, 1)), ids, lengths)
        with dask.config.set(scheduler="synchronous"):
            found.append(by_person(X, person, home.width, 0).spread.lengths)
    assert found[0] == found[1]
    assert len(found[0]) > 1


def test_pairs_are_of_the_same_persons(crowds):
    home, away = (table.pairs(np.random.default_rng(0), less) for table in crowds)
    assert home.shape == away.shape == (4500, 3)
    assert np.array_equal(slots_of(away), home.slots[:])


def test_persons_are_mixed_as_in_memory(crowds):
    home, away = (table.mixed(np.random.default_rng(0)) for table in crowds)
    assert np.array_equal(slots_of(away), home.slots[:])
    assert not np.array_equal(home.slots[:], crowds[0].slots[:])
    places = mixed_places(9001, crowds[0].width, 0, 5)
    assert np.array_equal(np.sort(places), np.arange(9001))


def test_rows_that_come_here_are_those_of_the_table_in_memory(crowds):
    home, away = crowds
    assert np.array_equal(away.here()[:], home.here()[:])
    assert np.array_equal(slots_of(away.one_each()), home.here()[:])
    numbers = np.random.default_rng(1).permutation(9001)[:40]
    assert np.array_equal(away.draw(numbers)[:], home.draw(numbers)[:])
    assert home.halved().shape == away.halved().shape


def test_blocks_reach_over_partitions(crowds):
    home, away = crowds
    assert home.blocks(7) == away.blocks(7) == 1285
    votes = [block_bases(table, 1, 7, order=table.order(np.random.default_rng(0))) for table in crowds]
    assert np.array_equal(votes[0].bases, votes[1].bases)


def test_a_column_beside_the_rows_goes_to_the_same_slots(crowds):
    home, away = crowds
    y = np.arange(float(home.read))
    values = away.column(y)
    parts = values.place.fetch(values.parts, values.lengths)
    found = np.concatenate([getattr(part, "slots", part) for part in parts])
    wanted = home.column(y)
    assert np.array_equal(found, getattr(wanted, "slots", wanted))
    for wrong in (y[1:], np.ones((len(y), 2))):
        with pytest.raises(ValueError, match="one entry per row") as refusal:
            away.column(wrong)
        assert str(len(y)) not in str(refusal.value)


def test_a_row_is_sent_once_however_many_slots_it_fills():
    _, away = both(np.arange(8.0).reshape(4, 2), ["a", "b", "a", "b"], (2, 2), 8)
    place, routes = away.spread.place, away.routes
    for route, ids, told in zip(place.fetch(routes.parts, [0, 0]), routes.ids, routes.digests, strict=True):
        assert [len(one) for one in route] == [8, 8]
        (piece,) = _sent(routes.edges, route, np.zeros((2, 2)), ids(), told)
        assert len(piece[2]) == piece[1].sum() == 2


@pytest.mark.parametrize("slots", [[0, 1], [0, 1, 1], [0, 1, 2, 2]])
def test_slots_that_nobody_fills_or_two_do_are_an_error(slots):
    """They would be what memory held before: tables that change while workers die can bring this about."""
    piece = np.array(slots), np.ones(len(slots), dtype=bool), np.zeros((len(slots), 2))
    with pytest.raises(ValueError, match="the same rows whenever it is computed"):
        _in_slots(piece, 3)
