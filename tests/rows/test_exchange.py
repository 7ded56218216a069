"""Pieces of partitions arrive where they are wanted, all of them, once; rows of partitions are cut elsewhere."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privspan.rows.exchange import exchange, recut
from privspan.rows.place import LocalPlace


@given(sources=st.integers(1, 12), count=st.integers(1, 12), seed=st.integers(0, 99))
def test_every_piece_arrives_where_it_is_wanted_and_nowhere_else(sources, count, seed):
    rng, place = np.random.default_rng(seed), LocalPlace()
    sizes = rng.integers(0, 4, (sources, count))
    pieces = [
        [(np.full(sizes[i, j], i), np.full((sizes[i, j], 2), 10.0 * i + j)) for j in range(count)]
        for i in range(sources)
    ]
    found = place.fetch(exchange(place, place.send(pieces), count), [0] * count)
    assert len(found) == count
    for j, (numbers, rows) in enumerate(found):
        assert np.bincount(numbers, minlength=sources).tolist() == sizes[:, j].tolist()
        assert (rows == (10.0 * numbers + j)[:, None]).all()


def test_pieces_travel_in_bundles():
    """With a hundred partitions, tasks are some thousands and not ten."""

    class Counting(LocalPlace):
        tasks = 0

        def map(self, function, *parts):
            self.tasks += len(parts[0])
            return super().map(function, *parts)

    place = Counting()
    exchange(place, place.send([[(np.zeros(1),)] * 100] * 100), 100)
    assert place.tasks < 2500


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    wanted=st.lists(st.integers(1, 9), min_size=1, max_size=8),
)
def test_rows_keep_their_order_when_they_are_cut_elsewhere(lengths, wanted):
    place, n = LocalPlace(), sum(lengths)
    ends = [end for end in np.cumsum(wanted).tolist() if end < n]
    rows = np.arange(2.0 * n).reshape(n, 2)
    parts = place.send(np.split(rows, np.cumsum(lengths)[:-1]))
    sizes = np.diff([0, *ends, n]).tolist()
    found = place.fetch(recut(place, parts, lengths, sizes), sizes)
    assert [len(part) for part in found] == sizes
    assert np.array_equal(np.concatenate(found), rows)
