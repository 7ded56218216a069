"""Persons in second moments: no person counts for more than a single row could, in mathematics and in float64."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from runs import seeded
from scipy import sparse

from privspan.audit.replay import spent_by
from privspan.rows.about import CentredPiece
from privspan.rows.door import open_table
from privspan.rows.partitioned_rows import count_error, known_chunks, per_row
from privspan.rows.persons import PersonTable
from privspan.rows.source import as_source
from privspan.rows.unit import CHUNK_ROWS, PersonValues, whole_persons
from privspan.sums.lazy_gauss import UnitGram
from privspan.sums.lifts import person_lift, released_weight
from privspan.sums.looks import CONSTANT, AugmentedGram, released_looks

KINDS = ["dense", "sparse", "centred"]
WIDTHS = st.sampled_from([2, 3, 5, 8])
ENTRIES = st.floats(-1, 1) | st.floats(allow_nan=True, allow_infinity=True)


def persons(rows, width, kind="dense"):
    """A table whose persons have these rows, one after the other."""
    rows = np.asarray(rows, dtype=np.float64)
    table = rows if kind == "dense" else sparse.csr_array(rows)
    return PersonTable(as_source(table), width, np.arange(len(rows)), table, len(rows))


def opened_rows(rows, width, kind="dense"):
    """Their rows; "centred" ones are sparse and carry a centre along."""
    table = open_table(persons(rows, width, kind))
    return table.rows(np.linspace(0.9, -0.3, table.shape[1]) if kind == "centred" else None)


def units_of(opened):
    """The rows that are summed over, exactly."""
    made = []
    for _, piece in opened.pieces():
        if isinstance(piece, CentredPiece):
            centre = [Fraction(x) for x in piece._centre.tolist()]
            pairs = zip(piece._scaled.toarray().tolist(), piece._weights.tolist(), strict=True)
            made += [[Fraction(x) - Fraction(w) * c for x, c in zip(row, centre, strict=True)] for row, w in pairs]
        else:
            made += (piece if isinstance(piece, np.ndarray) else piece.toarray()).tolist()
    return made


def sums(rows, width, factors=None, constant=CONSTANT, block=None, kind="dense"):
    """The whole sum of a look at persons, of one chunk, and the look's bounds."""
    opened = opened_rows(rows, width, kind)
    known = None if factors is None else PersonValues(np.asarray(factors), width)
    gram = AugmentedGram(opened, [known], constant, person_lift(opened, constant))
    (total,) = gram.products(block)
    return total, gram


@st.composite
def one_person(draw, width):
    return draw(hnp.arrays(np.float64, (width, 4), elements=ENTRIES))


@given(data=st.data(), width=WIDTHS, constant=st.sampled_from([0.0, CONSTANT, 1.0]), kind=st.sampled_from(KINDS))
@settings(max_examples=200, deadline=None)
def test_lemma_3_a_person_is_a_matrix_no_larger_than_that_of_a_row(data, width, constant, kind):
    """Whatever the rows, and however short a look makes each of them."""
    factors = data.draw(hnp.arrays(np.float64, width, elements=st.floats(0, 1)))
    total, gram = sums(data.draw(one_person(width)), width, factors, constant, kind=kind)
    assert np.linalg.norm(total) <= gram.size
    assert np.linalg.eigvalsh(total)[0] >= -1e-12
    assert np.abs(total).max() <= gram.largest


@given(data=st.data(), width=WIDTHS, kind=st.sampled_from(KINDS))
@settings(max_examples=120, deadline=None)
def test_lemma_3_replacing_a_person_moves_a_look_by_what_a_row_could(data, width, kind):
    factors = data.draw(hnp.arrays(np.float64, (2, width), elements=st.floats(0, 1)))
    moved = np.subtract(*(sums(data.draw(one_person(width)), width, known, kind=kind)[0] for known in factors))
    assert np.linalg.norm(moved) <= math.sqrt(2.0) * (1.0 + CONSTANT**2)


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("width", [8, 64, 320, 1024])
def test_shortening_one_row_of_many_does_not_make_a_person_large(width, kind):
    """Against the others, all at the same obtuse angle to it, the row that vanishes had made the sum smaller."""
    rows = np.eye(width, width + 1) * math.sqrt(1.0 - CONSTANT**4)
    rows[0] = 0.0
    rows[:, -1] = np.where(np.arange(width), -(CONSTANT**2), 1.0)
    total, gram = sums(rows, width, np.arange(width) > 0, kind=kind)
    assert 0.9 * gram.size < np.linalg.norm(total) <= gram.size


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("width", [2, 3, 8])
def test_the_lift_uses_the_room_there_is(width, kind):
    """Rows alike stay as they are; rows at right angles count for sqrt(width) rows together."""
    alike, gram = sums(np.ones((width, width)), width, kind=kind)
    assert np.linalg.norm(alike) == pytest.approx(gram.size, rel=1e-9)
    apart, _ = sums(np.eye(width), width, constant=0.0, kind=kind)
    assert np.linalg.norm(apart) == pytest.approx(1.0, rel=1e-9)
    assert np.trace(apart) == pytest.approx(math.sqrt(width), rel=1e-9)
    with_rows_short, _ = sums(np.eye(width), width, np.full(width, 1e-3), constant=0.0, kind=kind)
    assert np.linalg.norm(with_rows_short) == pytest.approx(1e-6, rel=1e-9)  # short rows stay short


@pytest.mark.parametrize("kind", KINDS[1:])
def test_sparse_rows_are_lifted_as_dense_ones_are(kind):
    """By inner products that are each computed from the rows of one person."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 40)) * (rng.random((60, 40)) < 0.2)
    thin = opened_rows(rows, 5, kind)
    centre = np.linspace(0.9, -0.3, 40) if kind == "centred" else None
    dense = open_table(persons(rows, 5)).rows(centre)
    lifts = [person_lift(opened, CONSTANT).factors.slots for opened in (thin, dense)]
    np.testing.assert_allclose(*lifts, rtol=1e-7)
    others = rows.copy()
    others[10:15] = [np.inf, 1e300, *np.arange(38.0)]
    again = person_lift(opened_rows(others, 5, kind), CONSTANT).factors.slots
    assert np.flatnonzero(again != lifts[0]).tolist() == [*range(10, 15)]


def test_a_single_row_is_not_lifted():
    assert person_lift(open_table(persons(np.ones((3, 2)), 1)).rows(), 0.0) is None
    assert person_lift(open_table(np.ones((3, 2))).rows(), 0.0) is None


def spent(run, rows, others, width, kind="dense"):
    rest = np.arange(12.0 * width).reshape(-1, 4)
    tables = (persons(np.vstack([rest, last]), width, kind) for last in (rows, others))
    return spent_by(run, *tables)


@given(data=st.data(), width=WIDTHS)
@settings(max_examples=30, deadline=None)
def test_lemma_3_the_weight_of_persons_costs_its_mu(data, width):
    def weigh(table, rng):
        rows = open_table(table).rows()
        return released_weight(person_lift(rows, 0.0), rows.shape[0], 1.0, seeded(rng))

    assert spent(weigh, data.draw(one_person(width)), data.draw(one_person(width)), width) <= 1.0 + 1e-9


@pytest.mark.parametrize("constant", [0.0, CONSTANT])
@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("width", [2, 8])
def test_nobody_weighs_more_than_rows_at_right_angles_do(width, kind, constant):
    """Nor whose rows are zeros, or nearly, which could be lifted without an end."""
    rows = np.vstack([np.zeros((width, width)), np.eye(width), -np.eye(width)])
    lift = person_lift(opened_rows(rows, width, kind), constant)
    assert (lift.factors.slots**2 <= lift.most).all()
    assert lift.most == math.sqrt(width)

    def weigh(table, rng):
        rows = open_table(table).rows()
        return released_weight(person_lift(rows, constant), rows.shape[0], 1.0, seeded(rng))

    around = [np.vstack([rows, last]) for last in (np.zeros((width, width)), np.ones((width, width)))]
    assert spent_by(weigh, *(persons(one, width, kind) for one in around)) <= 1.0 + 1e-9


def test_the_weight_is_that_of_persons_and_its_bound_is_sharp():
    def weigh(table, rng):
        rows = open_table(table).rows()
        return released_weight(person_lift(rows, 0.0), rows.shape[0], 1e4, seeded(rng))

    rows = np.tile(np.eye(4), (50, 1))
    assert weigh(persons(rows, 4), 0)[0] == pytest.approx(2.0 * 50, abs=0.01)
    assert spent(weigh, np.eye(4), np.ones((4, 4)), 4) == pytest.approx(1e8, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_looks_at_persons_cost_their_mus_and_the_bound_is_sharp(kind):
    def look(table, rng):
        return next(released_looks(AugmentedGram(open_table(table).rows(), constant=0.0), [1.0], seeded(rng), 0.0))

    def lifted(table, rng):
        rows = open_table(table).rows()
        gram = AugmentedGram(rows, constant=0.0, lift=person_lift(rows, 0.0))
        return next(released_looks(gram, [1.0], seeded(rng), 0.0, 4.0))

    for run in (look, lifted):
        alike = (np.eye(4)[i : i + 1].repeat(2, 0) for i in (0, 1))
        assert spent(run, *alike, 2, kind) == pytest.approx(1.0, rel=1e-6)
    assert spent(look, np.eye(4)[:2], np.eye(4)[2:], 2, kind) == pytest.approx(0.5, rel=1e-6)
    assert spent(lifted, np.eye(4)[:2], np.eye(4)[2:], 2, kind) == pytest.approx(1.0, rel=1e-6)


# ---- Float64 -------------------------------------------------------------------------------------------------------


def exact_sum(rows, lifts, factors, width, constant=CONSTANT):
    """The sum as it stands, of the numbers that go in: rational arithmetic."""
    total = [[Fraction(0)] * (len(rows[0]) + 1) for _ in range(len(rows[0]) + 1)]
    for row, lift, factor in zip(rows, lifts.tolist(), factors.tolist(), strict=True):
        whole = [*(Fraction(x) * Fraction(factor) for x in row), Fraction(constant)]
        weight = Fraction(lift) ** 2 / width
        for i, one in enumerate(whole):
            for j, other in enumerate(whole):
                total[i][j] += weight * one * other
    return total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [2, 3, 7, 24, 1000])
def test_the_error_of_a_chunk_of_persons_is_below_its_bound(width, kind):
    rng = np.random.default_rng(width)
    count = width * max(1, 480 // width)
    rows = rng.standard_normal((count, 3)) * 10.0 ** rng.integers(-8, 9, (count, 1))
    factors, block = rng.random(count), np.linalg.qr(rng.standard_normal((4, 2)))[0]
    whole, gram = sums(rows, width, factors, kind=kind)
    image, _ = sums(rows, width, factors, block=block, kind=kind)
    opened = opened_rows(rows, width, kind)
    lift = person_lift(opened, CONSTANT).factors.slots
    truth = exact_sum(units_of(opened), lift, factors, width)
    off = [[float(truth[i][j] - Fraction(float(whole[i, j]))) for j in range(4)] for i in range(4)]
    assert np.linalg.norm(off) <= gram.chunk_error(0)
    truth = [[sum(truth[i][j] * Fraction(float(block[j, c])) for j in range(4)) for c in range(2)] for i in range(4)]
    off = [[float(truth[i][c] - Fraction(float(image[i, c]))) for c in range(2)] for i in range(4)]
    assert np.linalg.norm(off) <= gram.chunk_error(2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [2, 3, 300])
def test_a_computed_lift_is_never_too_large(width, kind):
    """Exactly: the norm of a person's lifted sum, squared, is at most that of a row."""
    rng = np.random.default_rng(0)
    rows = np.vstack([np.ones((width, 2)), rng.standard_normal((width, 2)), np.tile(np.eye(2), (width, 1))[:width]])
    opened = opened_rows(rows, width, kind)
    units = units_of(opened)
    for constant in (0.0, CONSTANT):
        lifts = person_lift(opened, constant).factors.slots
        for start in range(0, 3 * width, width):
            mine = slice(start, start + width)
            total = exact_sum(units[mine], lifts[mine], np.ones(width), width, constant)
            square = sum(entry**2 for line in total for entry in line)
            assert square <= Fraction(1 + constant * constant) ** 2


@pytest.mark.parametrize("kind", KINDS[:2])
def test_unit_moments_are_lifted_alike(kind):
    opened = opened_rows(np.random.default_rng(0).standard_normal((24, 5)), 3, kind)
    lift = person_lift(opened, 0.0)
    gram, block = UnitGram(opened, lift), np.eye(5)[:, :2]
    (whole,), (image,) = gram.products(None), gram.products(block)
    (augmented,) = AugmentedGram(opened, [None], 0.0, lift).products(None)
    np.testing.assert_allclose(whole, augmented[:5, :5], atol=1e-14)
    np.testing.assert_allclose(image, whole @ block, atol=1e-14)


@pytest.mark.parametrize("width", [3, 7, 1000])
def test_averaged_counts_are_off_by_no_more_than_their_bound(width):
    values = per_row(np.abs, PersonValues(np.arange(width * (2 * CHUNK_ROWS // width + 1)) % 5 - 2.0, width))
    parts = list(known_chunks(lambda sizes: np.array([np.count_nonzero(sizes > 1)], dtype=float), values))
    chunk = whole_persons(CHUNK_ROWS, width)
    assert len(parts) == math.ceil(len(values.slots) / chunk)
    for number, part in enumerate(parts):
        counted = np.count_nonzero(values.slots[number * chunk : (number + 1) * chunk] > 1)
        assert abs(Fraction(float(part[0])) - Fraction(int(counted), width)) <= Fraction(count_error(values))
