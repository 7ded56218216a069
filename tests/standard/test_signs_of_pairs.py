"""Signs of pairs: who is in which pair, what a record can do to their second moment, and what it is charged."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from runs import seeded
from scipy import sparse, stats

from privspan.privacy.randomness import open_streams
from privspan.rows import partition_rows
from privspan.rows.door import open_table
from privspan.rows.persons import PersonTable
from privspan.rows.scaling import row_scales
from privspan.rows.source import as_source
from privspan.rows.windows import DealtRows, WindowedSource
from privspan.standard.signs import SIGNS, _sign_gram, pairings, sign_bounds, sign_moment
from privspan.sums.grid import grid_total, noise_level
from privspan.sums.lifts import person_lift
from privspan.sums.pairs import pair_differences, pair_signs, signs

HOSTILE = [0.0, -0.0, 5e-324, -5e-324, 1.0, 1.0 + 2.0**-52, 1e308, -1e308, np.nan, np.inf, -np.inf, 2.0**53]
CELLS = st.sampled_from(HOSTILE) | st.floats(allow_nan=True, allow_infinity=True) | st.integers(-2, 2).map(float)
SHAPES = st.tuples(st.integers(2, 9), st.integers(1, 5))


def rng(seed=0):
    return np.random.default_rng(seed)


def persons(rows, width):
    rows = np.asarray(rows, dtype=np.float64)
    return PersonTable(as_source(rows), width, np.arange(len(rows)), rows, len(rows))


def exact_moment(rows):
    """Return the sum of s sᵀ / z over rows of signs, in fractions."""
    d = rows.shape[1]
    total = np.full((d, d), Fraction(0))
    for row in rows.astype(int):
        count = int(np.abs(row).sum())
        if count:
            total += np.array([[Fraction(int(a * b), count) for b in row] for a in row])
    return total


# ---- The sign of a difference --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "sign"),
    [
        (2.0, 1.0, 1),
        (1.0, 2.0, -1),
        (1.0, 1.0, 0),
        (0.0, -0.0, 0),
        (5e-324, 0.0, 1),
        (1e308, -1e308, 1),  # the difference would overflow
        (2.0**53 + 2.0, 2.0**53, 1),
        (np.nan, 1.0, 0),
        (np.inf, 1.0, 0),
        (1.0, -np.inf, 0),
        (np.inf, -np.inf, 0),
    ],
)
def test_cells_are_compared_and_a_gap_makes_no_difference(first, second, sign):
    rows = [np.array([[cell, 3.0]]) for cell in (first, second)]
    np.testing.assert_array_equal(signs(*rows), [[sign, 0]])
    np.testing.assert_array_equal(signs(*map(sparse.csr_array, rows)).toarray(), [[sign, 0]])


@settings(max_examples=200, deadline=None)
@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, (2, *shape), elements=CELLS)))
def test_sparse_rows_have_the_signs_of_dense_ones(both):
    dense = signs(*both)
    assert set(np.unique(dense)) <= {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(signs(*map(sparse.csr_array, both)).toarray(), dense)


def test_a_cell_that_is_stored_twice_holds_the_sum():
    twice = sparse.csr_array((np.array([2.0, -1.5, 1e308]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    np.testing.assert_array_equal(signs(twice, sparse.csr_array(np.array([[0.25, 0.0]]))).toarray(), [[1, 1]])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.bool_])
def test_signs_are_those_of_the_values_whatever_their_type(dtype):
    table = rng().integers(0, 2, (20, 3)).astype(dtype)
    for one, other in ((table[:10], table[10:]), map(sparse.csr_array, (table[:10], table[10:]))):
        made = signs(one, other)
        made = made if isinstance(made, np.ndarray) else made.toarray()
        np.testing.assert_array_equal(made, np.sign(table[:10].astype(float) - table[10:].astype(float)))


@pytest.mark.parametrize("kind", ["continuous", "few values", "0 and 1", "skewed"])
def test_over_all_pairs_they_make_kendalls_tau_b(kind):
    base = rng(1).standard_normal((40, 1)) + rng(2).standard_normal((40, 3))
    table = {
        "continuous": base,
        "few values": np.round(base),
        "0 and 1": (base > 0.3).astype(float),
        "skewed": np.exp(9 * base),
    }[kind]
    i, j = np.triu_indices(40, 1)
    made = signs(table[i], table[j])
    moment = made.T @ made
    tau = moment / np.sqrt(np.outer(np.diagonal(moment), np.diagonal(moment)))
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert tau[a, b] == pytest.approx(stats.kendalltau(table[:, a], table[:, b]).statistic, abs=1e-12)
    if kind == "0 and 1":
        np.testing.assert_allclose(tau, np.corrcoef(table.T), atol=1e-12)


# ---- Who is in which pair ------------------------------------------------------------------------------------------


class Windows(WindowedSource):
    """Row numbers as cells, read by windows."""

    def __init__(self, edges):
        super().__init__()
        self.edges = np.array(edges)
        self.shape, self.dtype = (int(edges[-1]), 2), np.dtype(np.float64)

    def _load(self, window):
        return np.tile(np.arange(*self.edges[window : window + 2], dtype=float)[:, None], 2)


def numbers(table, seed=0):
    """Return the numbers of the rows in each pair; (pairs, 2)."""
    made = open_table(table).pairs(rng(seed), lambda a, b: np.column_stack([a[:, 0], b[:, 0]]))
    rows = made.slots if isinstance(made, PersonTable) else made
    return np.asarray(rows[:])


def ids(n, width=1):
    return np.tile(np.repeat(np.arange(float(n)), width)[:, None], 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 99))
def test_no_row_is_in_two_pairs(lengths, seed):
    edges = np.concatenate([[0], np.cumsum(lengths)])
    n = int(edges[-1])
    if n < 2:
        return
    tables = [ids(n), as_source(ids(n)), Windows(edges), DealtRows(as_source(ids(n)), 3, rng(seed))]
    for table in tables:
        seen = numbers(table, seed).ravel()
        assert len(np.unique(seen)) == len(seen) == n // 2 * 2


@pytest.mark.parametrize("width", [1, 8, 500])
@pytest.mark.parametrize("n", [2, 7])
def test_persons_are_paired_slot_by_slot(n, width):
    seen = numbers(persons(ids(n, width), width))
    assert len(seen) == n // 2 * width
    by_pair = seen.reshape(-1, width, 2)
    assert (by_pair == by_pair[:, :1]).all()  # two persons, all of their slots
    met = by_pair[:, 0].ravel()
    assert len(np.unique(met)) == len(met)


@pytest.mark.parametrize("width", [1, 8])
def test_every_pairing_of_persons_is_another(width):
    """Averaging over pairings is what the told sampling variance counts on."""
    n, public, met = 60, rng(), set()
    table = persons(ids(n, width), width)
    for _ in range(16):
        both = np.asarray(
            table.mixed(public).pairs(public, lambda a, b: np.column_stack([a[:, 0], b[:, 0]])).slots[:]
        )
        assert len(np.unique(both)) == n
        met |= set(map(tuple, np.sort(both, axis=1)))
    assert len(met) > 0.8 * 16 * n / 2  # of 1,770 pairs, 480 are drawn


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=20), st.integers(0, 99))
def test_mixing_partitions_is_a_permutation_that_follows_from_lengths(lengths, seed):
    n = sum(lengths)
    mixed = [partition_rows(table, lengths).mixed(rng(seed)) for table in (ids(n), -ids(n))]
    parts, others = (table.place.fetch(table.parts, table.lengths) for table in mixed)
    assert [len(part) for part in parts] == list(mixed[0].lengths)
    placed = [part[:, 0] for part in parts]
    assert sorted(np.concatenate([*placed, []])) == list(range(n))
    assert all(np.array_equal(one, -other) for one, other in zip(parts, others, strict=True))


def test_rows_of_sorted_partitions_meet():
    """A column that is constant in each partition differs between rows of several."""
    place = np.repeat(np.arange(8.0), 500)
    table = np.column_stack([place, place + rng().standard_normal(4_000)])
    parted = partition_rows(table, [500] * 8)
    differences = pair_differences(parted, open_streams(0).public)
    assert not np.concatenate(parted.place.fetch(differences.parts, [250] * 8))[:, 0].any()
    whole, cut = (sign_moment(open_table(X), 1e3, seeded(1), np.ones(2)).moment for X in (table, parted))
    tau = [moment[0, 1] / np.sqrt(moment[0, 0] * moment[1, 1]) for moment in (whole, cut)]
    assert tau[1] == pytest.approx(tau[0], abs=0.03)
    assert tau[0] > 0.7


def test_partitions_without_a_pair_are_left_out():
    table = partition_rows(ids(7), [1, 4, 2])
    made = pair_signs(open_table(table), rng())
    assert made.shape[0] == sum(length // 2 for length in table.mixed(rng()).lengths) >= 1


def test_pairings_follow_from_n_and_are_powers_of_two():
    sizes = (2, 4_000, 4_001, 8_001, 32_000, 32_001, 64_000, 10**7)
    assert [pairings(n) for n in sizes] == [16, 16, 8, 4, 2, 1, 1, 1]
    assert SIGNS.most == 16


# ---- What a record can do ------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=CELLS)), st.data())
def test_a_record_changes_one_pair_of_a_pairing_and_moves_its_moment_by_root_two(table, data):
    other = table.copy()
    place = data.draw(st.integers(0, len(table) - 1))
    other[place] = data.draw(hnp.arrays(np.float64, table.shape[1], elements=CELLS))
    seed = data.draw(st.integers(0, 9))
    for kind in (np.asarray, sparse.csr_array):
        made = [pair_signs(open_table(kind(X)), rng(seed))[:] for X in (table, other)]
        one, two = (rows if isinstance(rows, np.ndarray) else rows.toarray() for rows in made)
        assert (one != two).any(axis=1).sum() <= 1
        change = exact_moment(one) - exact_moment(two)
        assert (change * change).sum() <= 2


def test_the_bound_is_attained_in_every_pairing_at_once():
    table, other = rng().uniform(-1.0, 1.0, (2, 40, 2))
    other[:] = table
    table[-1], other[-1] = (9.0, 9.0), (9.0, -9.0)
    for seed in range(5):
        change = [exact_moment(pair_signs(open_table(X), rng(seed))[:]) for X in (table, other)]
        assert ((change[0] - change[1]) ** 2).sum() == 2


@pytest.mark.parametrize("d", [1, 2, 7, 50, 5_000])
def test_scaled_signs_are_no_longer_than_one_as_real_numbers(d):
    factors, delicate = row_scales(np.arange(1.0, d + 1.0), d, None)
    assert not delicate.any()
    for z, factor in enumerate(factors.tolist(), 1):
        assert 1 - Fraction(1, 10**10) < z * Fraction(factor) ** 2 <= 1


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 8]), st.integers(1, 5), st.data())
def test_what_a_pair_of_persons_adds_has_norm_one(width, d, data):
    cells = hnp.arrays(np.float64, (2 * width, d), elements=CELLS)
    norm = person_norm(persons(data.draw(cells), width))
    assert norm <= 1


@pytest.mark.parametrize("kind", ["alike", "all over", "across"])
def test_persons_with_five_hundred_rows_count_as_one(kind):
    mine = {
        "alike": np.ones((500, 4)),
        "all over": rng().standard_normal((500, 4)),
        "across": np.tile([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], (250, 1)),
    }[kind]
    norm = person_norm(persons(np.vstack([np.zeros((500, 4)), mine]), 500))
    assert Fraction(9, 10) < norm <= 1


def person_norm(table):
    """Return the squared Frobenius norm of what the only pair of persons adds, in fractions."""
    rows = open_table(pair_signs(open_table(table), rng())).rows(keep=False)
    lift = person_lift(rows, 0.0)
    factors = np.ones(table.width) if lift is None else lift.factors.slots
    made = np.asarray(next(rows.pieces())[1])
    # Equal rows are counted together, as fractions take long.
    lifted, counts = np.unique(np.column_stack([made, factors]), axis=0, return_counts=True)
    vectors = [[Fraction(x) * Fraction(row[-1]) for x in row[:-1]] for row in lifted.tolist()]
    products = [
        int(m) * int(n) * sum(a * b for a, b in zip(x, y, strict=True)) ** 2
        for x, m in zip(vectors, counts, strict=True)
        for y, n in zip(vectors, counts, strict=True)
    ]
    return sum(products) / table.width**2


# ---- What is charged -----------------------------------------------------------------------------------------------


def test_the_charge_covers_float64_and_the_grid_of_every_pairing():
    table, m = rng().standard_normal((9_001, 3)), 4
    assert pairings(9_001) == m
    grams = [_sign_gram(open_table(table), rng(seed)) for seed in range(m)]
    bounds = sign_bounds(grams[0], 4_500, m)
    level = noise_level(bounds, 1.0)
    assert bounds.sensitivity == 1.0
    assert bounds.entries == m * m * 10
    assert level.sigma >= 1.0 + 2.0 * bounds.chunk_error + m * np.sqrt(10) * level.grid
    assert level.sigma < 1.0 + 1e-6
    total = sum(grid_total(gram.products(None, lambda chunk: chunk / m), (4, 4), level.grid) for gram in grams)
    exact = sum(exact_moment(pair_signs(open_table(table), rng(seed))[:]) for seed in range(m)) / m
    off = total[:3, :3] - exact.astype(float)
    chunks = 2  # of each pairing
    scaling = 4_500 * 2.0 * 20 * 2.0**-53  # rows are a little shorter than one
    assert np.linalg.norm(off) <= chunks * (bounds.chunk_error + m * np.sqrt(10) * level.grid) + scaling


def test_the_noise_has_the_deviation_that_is_told():
    table = rng().standard_normal((60, 2))
    released = [sign_moment(open_table(table), 0.5, seeded(seed), np.ones(2)) for seed in range(300)]
    assert all(made.noise == pytest.approx(2.0, rel=1e-4) for made in released)
    spread = np.std([made.moment for made in released], axis=0)
    assert spread[0, 1] == pytest.approx(2.0, rel=0.15)
    assert spread[0, 0] == pytest.approx(2.0 * np.sqrt(2.0), rel=0.15)
