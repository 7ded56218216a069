"""Two ways to the inverse of a tail: what each says of its error holds, after deletions too, and levels agree."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspan.stable import inverse, leverage
from privspan.stable.inverse import CholeskyInverse, SeriesInverse
from privspan.stable.leverage import GRID, LeverageFilter, exact_gram


def some_tail(rng, items, width, size):
    """A symmetric matrix of that norm, with both signs, and rows of very different lengths."""
    halves = rng.normal(size=(items * width, 3 * width)) * 10.0 ** rng.uniform(-3, 0, size=(items * width, 1))
    tail = halves @ halves.T - 0.1 * np.diag(rng.uniform(size=items * width))
    return size * (tail + tail.T) / np.linalg.norm(tail + tail.T, 2)


def misses(way, tail, ridge, width, row_kept, columns):
    """How far blocks and products are from the truth, in units of what the bound allows."""
    known = way.restricted(row_kept, columns)
    truth = np.zeros_like(tail)
    truth[np.ix_(row_kept, row_kept)] = np.linalg.inv(
        tail[np.ix_(row_kept, row_kept)] / ridge + np.eye(int(row_kept.sum()))
    )
    off = np.abs(known.blocks - inverse.diagonal_blocks(truth, width))[row_kept[::width]].max()
    astray = np.linalg.norm((known.product - truth @ columns)[row_kept], axis=0) / np.linalg.norm(columns, axis=0)
    return off / (known.block_error + 1e-14), astray.max() / (known.product_error + 1e-14), known.block_error


def a_case(seed, largest=0.3):
    rng = np.random.default_rng(seed)
    items, width = int(rng.integers(4, 40)), int(rng.integers(1, 4))
    ridge = 10.0 ** rng.uniform(-8, 0)
    tail = some_tail(rng, items, width, ridge * largest * 10.0 ** rng.uniform(-3, 0))
    row_kept = np.repeat(rng.random(items) < rng.choice([0.6, 0.9, 1.1]), width)
    row_kept[:width] = True
    return tail, ridge, width, row_kept, rng.normal(size=(len(tail), 2)) * row_kept[:, None]


@given(st.integers(0, 10**9))
@settings(max_examples=150, deadline=None)
def test_blocks_and_products_are_within_their_bounds_after_any_deletion(seed):
    tail, ridge, width, row_kept, columns = a_case(seed)
    for way in (SeriesInverse, CholeskyInverse):
        found = way.of(tail.copy(), ridge, width)
        assert found is not None
        off, columns_off, _ = misses(found, tail, ridge, width, row_kept, columns)
        assert max(off, columns_off) <= 1
        assert found.norm >= np.linalg.norm(np.linalg.inv(tail / ridge + np.eye(len(tail))), 2)


def test_a_small_tail_is_known_to_the_fourth_order():
    tail, ridge, width, row_kept, columns = a_case(5, largest=1e-3)
    found = SeriesInverse.of(tail, ridge, width)
    assert found is not None
    assert misses(found, tail, ridge, width, row_kept, columns)[2] < 1e-11


@pytest.mark.parametrize("fault", ["no cube", "cube as before deletion", "no rest"])
def test_a_series_that_leaves_something_out_breaks_its_bound(fault):
    """What keeps the levels of neighbours together is that this bound is true."""
    rng = np.random.default_rng(3)
    tail, ridge, width = some_tail(rng, 30, 1, 3e-2), 0.3, 1
    row_kept = np.arange(30) >= 5
    found = SeriesInverse.of(tail, ridge, width)
    assert found is not None
    columns = rng.normal(size=(30, 2)) * row_kept[:, None]
    assert misses(found, tail, ridge, width, row_kept, columns)[0] <= 1
    if fault == "no cube":
        found = replace(found, third=0 * found.third)
    elif fault == "no rest":
        found = replace(found, fourth=0 * found.fourth, tail=found.tail * row_kept * row_kept[:, None])
    else:
        found = replace(found, square=0 * found.square)
    assert misses(found, tail, ridge, width, row_kept, columns)[0] > 1


def spokes(count, length):
    """A hub, the last item, and what hangs on it: without the hub nothing is left of the tail."""
    tail = np.zeros((count + 1, count + 1))
    tail[-1, :-1] = tail[:-1, -1] = length
    return tail


@pytest.mark.parametrize("fault", [None, "as if the square were exact"])
def test_the_bound_covers_a_square_that_is_as_wrong_as_single_precision_may_be(fault):
    """Libraries sum better than the worst order, so the error is planted; nothing else has any slack here."""
    tail, row_kept = spokes(39, 0.05), np.arange(40) < 39
    found = SeriesInverse.of(tail, 1.0, 1)
    lengths = np.linalg.norm(tail, axis=0)
    square = found.square + inverse.SINGLE.error(40) * np.outer(lengths, lengths)
    third = np.einsum("ij,ij->i", tail, square)[:, None, None]
    found = replace(found, square=square, third=third)
    if fault:
        found = replace(found, single=inverse.SinglePrecision(0.0))
    off = misses(found, tail, 1.0, 1, row_kept, row_kept[:, None].astype(float))[0]
    assert (off <= 1) == (fault is None)


def test_what_deleted_items_cancelled_comes_back_in_the_rest():
    """Half of the bridges lead from item 0 to the far side with the opposite sign; then they are deleted."""
    bridges, far = 120, 150
    tail = np.zeros((1 + bridges + far, 1 + bridges + far))
    tail[0, 1 : bridges + 1] = 0.035 / np.sqrt(bridges)
    tail[1 : bridges + 1, bridges + 1 :] = 0.1 / np.sqrt(bridges * far)
    tail[1 : bridges // 2 + 1, bridges + 1 :] *= -1
    tail += tail.T
    row_kept = (np.arange(len(tail)) == 0) | (np.arange(len(tail)) > bridges // 2)
    kept = tail[np.ix_(row_kept, row_kept)]
    squared = kept @ kept
    rest = (squared @ np.linalg.inv(np.eye(len(kept)) + kept) @ squared)[0, 0]
    found = SeriesInverse.of(tail, 1.0, 1)
    assert rest > 1.3 * found.fourth.max() ** 2 / (1 - found.spectral)  # what is left out, with the norms of before
    assert misses(found, tail, 1.0, 1, row_kept, row_kept[:, None].astype(float))[0] <= 1


def test_a_tail_that_is_not_small_is_left_to_the_sure_way():
    tail = some_tail(np.random.default_rng(0), 20, 1, 0.8)
    assert SeriesInverse.of(tail, 1.0, 1) is None
    assert CholeskyInverse.of(tail, 1.0, 1) is not None


def test_products_in_less_than_single_precision_are_noticed():
    tail = some_tail(np.random.default_rng(0), 20, 1, 0.2)
    assert SeriesInverse.of(tail, 1.0, 1) is not None
    assert SeriesInverse.of(tail, 1.0, 1, inverse.SinglePrecision(2.0**-40)) is None


def to_eight_bits(rows):
    """Round float32 numbers to the nearest of eight bits, as bfloat16 does."""
    mantissas, exponents = np.frexp(rows)
    return np.ldexp(np.rint(mantissas * 256) / 256, exponents)


class EightBits(inverse.SinglePrecision):
    """A library that multiplies float32 numbers to eight bits."""

    def gram(self, rows):
        return to_eight_bits(rows) @ to_eight_bits(rows).T


class Trusted(EightBits):
    def is_single(self):
        return True


def test_products_of_eight_bits_are_noticed_where_their_errors_cancel_on_the_diagonal():
    up = 1 + 1.1 * 2.0**-8
    down = np.sqrt((1 + 2.0**-7) ** 2 + 1 - up**2)  # rounded to 1 + 2⁻⁷ and to 1, which leaves the sum of squares
    signs = np.repeat([1.0, -1.0], 100)[:, None] * np.ones(200)
    tail = np.block([[up * np.ones((200, 200)), down * signs], [down * signs.T, up * np.ones((200, 200))]]) / 1024
    assert SeriesInverse.of(tail, 1.0, 1, EightBits()) is None
    found = SeriesInverse.of(tail / 2, 1.0, 1, Trusted())  # half of it has the same mantissas and a small norm
    assert found is not None
    off = np.linalg.norm(found.square - found.tail @ found.tail, axis=0)
    assert (off > 50 * inverse.SINGLE.error(400) * found.frobenius * found.lengths).any()


def levels(rows, highest):
    sets = LeverageFilter(exact_gram([rows], len(rows)), 1, 0.05, 2, highest)
    found = np.zeros(len(rows), dtype=int)
    for level in range(1, highest + 1):
        if not sets.advance(level):
            break
        found[sets.kept] = level
    return found


@pytest.mark.parametrize("seed", range(4))
def test_neighbours_may_go_different_ways_and_levels_still_move_by_one_at_most(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    lengths = rng.choice([0.01, 0.03], size=(300, 1))
    rows = np.hstack([rng.uniform(-0.6, 0.6, size=(300, 2)), lengths * rng.normal(size=(300, 10)) / 4])
    rows = np.rint(rows / GRID) * GRID
    other = rows.copy()
    other[0] = np.rint(rng.normal(size=12) / 8 / GRID) * GRID
    taken = []
    make = SeriesInverse.of.__func__
    monkeypatch.setattr(SeriesInverse, "of", classmethod(lambda *a: taken.append(make(*a)) or taken[-1]))
    fast = levels(rows, 60)
    assert taken
    assert None not in taken
    assert len(set(fast.tolist())) > 5
    monkeypatch.setattr(SeriesInverse, "of", classmethod(lambda *_: None))
    assert np.abs(levels(rows, 60) - fast).max() <= 1
    assert np.abs(levels(other, 60) - fast)[1:].max() <= 1


def test_the_tail_that_is_inverted_is_symmetric_to_the_last_bit():
    rows = np.rint(np.random.default_rng(1).normal(size=(200, 5)) / 10 / GRID) * GRID
    gram = exact_gram([rows], 200)
    tail = leverage.split_gram(gram, leverage.top_factor(gram, 2))[1]
    assert (tail == tail.T).all()
