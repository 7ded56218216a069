"""What one record can do to signs, histograms and cells: the lemmas of docs/explanation/standardised.md."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from runs import seeded
from scipy import sparse

from privspan import private_pca, private_scales
from privspan.audit.replay import spent_by
from privspan.privacy import Budget
from privspan.rows import partition_rows
from privspan.rows.door import open_table
from privspan.rows.unit import Rows
from privspan.standard import cells, ranges
from privspan.standard.signs import SIGNS, pairings, sign_moment
from privspan.sums.pairs import signs

CELLS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, np.nan, np.inf, -np.inf, 2.5])


def exact(rows):
    return [[Fraction(float(cell)) for cell in row] for row in rows]


@given(st.integers(1, 300), st.data())
@settings(max_examples=60, deadline=None)
def test_scaled_sign_rows_are_no_longer_than_one_in_rational_arithmetic(d, data):
    vector = data.draw(hnp.arrays(np.float64, (1, d), elements=st.sampled_from([-1.0, 0.0, 1.0])))
    (row,) = exact(next(Rows(vector).pieces())[1])
    assert sum(cell * cell for cell in row) <= 1


@pytest.mark.parametrize("z", [1, 2, 3, 7, 12, 255, 256, 999, 4_095])
def test_rows_of_many_signs_are_no_longer_than_one(z):
    (row,) = exact(next(Rows(np.ones((1, z))).pieces())[1])
    square = sum(cell * cell for cell in row)
    assert 1 - Fraction(1, 10**9) < square <= 1


@given(hnp.arrays(np.float64, (6, 3), elements=CELLS), hnp.arrays(np.float64, (6, 3), elements=CELLS))
@settings(max_examples=80, deadline=None)
def test_signs_compare_cells_and_gaps_make_no_difference(a, b):
    made = signs(a, b)
    for i, j in np.ndindex(6, 3):
        whole = np.isfinite(a[i, j]) and np.isfinite(b[i, j])
        assert made[i, j] == (float(a[i, j] > b[i, j]) - float(a[i, j] < b[i, j]) if whole else 0.0)
    np.testing.assert_array_equal(signs(b, a), -made)
    stored = signs(sparse.csr_array(a), sparse.csr_array(b)).toarray()
    np.testing.assert_array_equal(stored, made)


@given(hnp.arrays(np.float64, (4, 4), elements=CELLS), st.data())
@settings(max_examples=80, deadline=None)
def test_outer_products_of_two_pairs_differ_by_root_two(rows, data):
    """Lemma 1: whatever a record is replaced by, its pair moves the moment by at most sqrt(2)."""
    first, second = (
        Rows(signs(row[None], rows[0][None])) for row in data.draw(st.tuples(*[st.sampled_from(list(rows))] * 2))
    )
    u, v = (exact(next(unit.pieces())[1])[0] for unit in (first, second))
    assert sum((u[i] * u[j] - v[i] * v[j]) ** 2 for i in range(4) for j in range(4)) <= 2


@pytest.mark.parametrize("n", [2, 3, 5, 8, 401])
@pytest.mark.parametrize("kind", ["array", "partitions"])
def test_every_row_is_in_one_pair_at_most(n, kind):
    marks = np.arange(1.0, n + 1.0)[:, None] * np.array([[1.0, 0.0]]) + np.array([[0.0, 1.0]])
    table = marks if kind == "array" else partition_rows(marks, (n // 2, n - n // 2))
    seen = []

    def both(first, second):
        seen.extend([*first[:, 0], *second[:, 0]])
        return first

    source = table.mixed(np.random.default_rng(1)) if kind == "partitions" else table
    made = open_table(source).pairs(np.random.default_rng(0), both)
    list(made.place.fetch(made.parts, made.lengths) if kind == "partitions" else [made[:]])
    assert len(seen) == len(set(seen))
    assert len(seen) >= n - 2 * (2 if kind == "partitions" else 1)


def test_mixed_partitions_hold_every_row_once_from_all_over():
    rows = np.arange(1_000.0)[:, None]
    table = partition_rows(rows, (100,) * 7 + (300,))
    mixed = table.mixed(np.random.default_rng(0))
    parts = mixed.place.fetch(mixed.parts, mixed.lengths)
    assert tuple(len(part) for part in parts) == mixed.lengths
    assert sorted(np.concatenate(parts).ravel().tolist()) == rows.ravel().tolist()
    assert all(np.ptp(part) > 600.0 for part in parts)


def test_sorted_partitions_show_correlations_between_them():
    time = np.repeat(np.arange(8.0), 500)
    noise = np.random.default_rng(0).standard_normal((4_000, 2))
    rows = 3.0 * time[:, None] + noise  # within a partition nothing goes together
    release = private_pca(partition_rows(rows, (500,) * 8), 1, epsilon=3.0, delta=1e-6, scale="ranks", rng=0)
    assert release.extras["explained_variance"][0] > 1.6


def test_pairings_are_a_power_of_two_of_public_numbers():
    assert [pairings(n) for n in (2, 1_000, 4_000, 8_001, 64_000, 10**7)] == [16, 16, 16, 4, 1, 1]
    assert SIGNS.most == 16


@pytest.mark.parametrize("n", [2, 3, 40])
@pytest.mark.parametrize("last", [(np.nan, 1.0), (1e308, -1e308), (1.0, -1.0)])
def test_a_moment_moves_by_no_more_than_its_noise_allows(n, last):
    """The change over the noise, in the coordinates of the proof, is mu; without noise to speak of."""
    moments = []
    for row in ((1.0, 1.0), last):
        table = np.zeros((n, 2))
        table[-1] = row
        moments.append(sign_moment(open_table(table), 1e7, seeded(0), np.ones(2)).moment)
    assert np.linalg.norm(moments[0] - moments[1]) <= np.sqrt(2.0) * (1.0 + 1e-5)


# ---- Ranges and cells ----------------------------------------------------------------------------------------------


@given(hnp.arrays(np.float64, (5, 2), elements=CELLS), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_cell_is_in_one_bin_by_itself(rows, first):
    ends = np.full(2, np.nan) if first else np.array([-2.0, -1.0])
    told = {"columns": np.arange(2), "low": ends, "high": ends + 4.0, "bins": 41}
    whole = ranges.bin_counts(rows, **told)
    counted = np.isfinite(rows) & ((np.abs(rows) < 16.0**12) if first else True)  # beyond, it has no range
    np.testing.assert_array_equal(whole.sum(axis=1), counted.sum(axis=0))
    np.testing.assert_array_equal(whole, sum(ranges.bin_counts(row[None], **told) for row in rows))


def test_means_and_squares_of_cells_have_diameter_two():
    """Lemma 3 on a fine grid, in rational arithmetic, and where its proof is tight."""
    weight, steps = cells.SQUARES, 120
    grid = [Fraction(i, steps) for i in range(-steps, steps + 1)]
    assert max((a - b) ** 2 + weight**2 * (a * a - b * b) ** 2 for a in grid for b in grid) == 4
    # Between the points of the grid: 2 + D - 1.66² D² (2 - D) is positive on [0, 2], as the proof writes it.
    t = Fraction(247, 200)
    for square in (weight**2, Fraction(float(weight)) ** 2):
        slope, rest = 1 - square * (4 * t - 3 * t * t), 2 - square * t * t * (2 * t - 2)
        for D in map(Fraction, range(4)):  # two cubics that agree at four points are one
            assert 2 + D - square * D * D * (2 - D) == square * (D - t) ** 2 * (D + 2 * t - 2) + slope * D + rest
        assert min(rest, rest + 2 * slope) > 0


@pytest.mark.parametrize("columns", [1, 2, 7, 300])
def test_sensitivities_are_rounded_up(columns):
    assert Fraction(ranges.histogram_sensitivity(columns)) ** 2 >= 2 * columns
    assert Fraction(cells.cell_bounds(10, columns).sensitivity) ** 2 >= 4 * columns


@pytest.mark.parametrize("course", ["ranks", "deviations"])
@pytest.mark.parametrize(
    "records", [((1e6, 1e6), (-1e6, -1e6)), ((np.nan, 1.0), (np.inf, -1.0)), ((0.0, 0.0), (1e-9, 3.0))], ids=str
)
@pytest.mark.parametrize("n", [7, 400])
@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
def test_whole_runs_spend_no_more_than_mu(course, records, n):
    rng, budget = np.random.default_rng(0), {"epsilon": 8.0, "delta": 1e-6}
    one = np.vstack([rng.standard_normal((n - 1, 2)), [records[0]]])
    other = np.vstack([one[:-1], [records[1]]])
    mu = Budget(**budget).mu
    assert spent_by(lambda table, rng: private_pca(table, 1, **budget, scale=course, rng=rng), one, other) <= mu**2
    assert spent_by(lambda table, rng: private_scales(table, **budget, rng=rng), one, other) <= mu**2


@pytest.mark.parametrize("rows", [1, 500])
def test_whole_runs_of_persons_spend_no_more_than_mu(rows):
    rng, budget = np.random.default_rng(0), {"epsilon": 1.0, "delta": 1e-6}
    others = rng.standard_normal((300, 2))
    one = np.vstack([others, [[1.0, 1.0]]])
    other = np.vstack([others, np.tile([[5.0, -5.0]], (rows, 1))])
    ids = [np.append(np.arange(300), np.full(len(table) - 300, 300)) for table in (one, other)]
    tables = [np.column_stack([table, whose]) for table, whose in zip((one, other), ids, strict=True)]

    def run(table, rng):
        return private_pca(table[:, :2], 1, **budget, scale=True, person=table[:, 2].astype(int), rng=rng)

    assert spent_by(run, *tables) <= Budget(**budget).mu ** 2
