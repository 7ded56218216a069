"""Canonical forms and relations: exact, complete, independent of how the span was produced, and readable."""

from __future__ import annotations

import copy
import pickle
import sys
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privspan.subspace import short_relations as _short_relations
from privspan.subspace.relations import ExactForm, Relation
from privspan.subspace.wording import equation

small = st.integers(-4, 4)
rationals = st.builds(Fraction, st.integers(-30, 30), st.integers(1, 12))


@st.composite
def matrices(draw, entries=rationals, max_rows=4, max_columns=7):
    columns = draw(st.integers(1, max_columns))
    rows = draw(st.integers(1, max_rows))
    return [[draw(entries) for _ in range(columns)] for _ in range(rows)]


def rank(rows):
    """Rank over the rationals by elimination with fractions, written independently of the package."""
    rest = [[Fraction(value) for value in row] for row in rows]
    found = 0
    for column in range(len(rest[0]) if rest else 0):
        lead = next((i for i in range(found, len(rest)) if rest[i][column]), None)
        if lead is None:
            continue
        rest[found], rest[lead] = rest[lead], rest[found]
        for i in range(found + 1, len(rest)):
            factor = rest[i][column] / rest[found][column]
            rest[i] = [a - factor * b for a, b in zip(rest[i], rest[found], strict=True)]
        found += 1
    return found


def vectors(form):
    """The relations as vectors over the columns of the form."""
    return [[*r.coefficients, r.constant][: form.columns] for r in form.relations()]


def words(form, names=None):
    return [relation.describe(names) for relation in form.relations()]


# --- the canonical form


@given(matrices())
def test_form_spans_the_rows(rows):
    assume(any(any(row) for row in rows))
    form = ExactForm.from_rows(rows)
    assert form.rank == rank(rows) == rank(rows + form.to_rows())
    assert form.columns == len(rows[0])


@given(matrices(), st.randoms(use_true_random=False))
def test_form_is_canonical(rows, random):
    assume(any(any(row) for row in rows))
    shuffled = list(rows)
    random.shuffle(shuffled)
    mixed = [[a + 3 * b for a, b in zip(row, shuffled[0], strict=True)] for row in shuffled[1:]]
    again = [[Fraction(-7, 5) * value for value in shuffled[0]], *mixed]
    assert ExactForm.from_rows(again) == ExactForm.from_rows(rows)
    assert hash(ExactForm.from_rows(again)) == hash(ExactForm.from_rows(rows))


def test_form_by_hand():
    form = ExactForm.from_rows([[2, 4, 1], [0, 0, 3]])
    assert form == ExactForm(((1, 2, 0), (0, 0, 1)), (1, 1), (0, 2))
    assert ExactForm.from_rows([[3, 1]]) == ExactForm(((3, 1),), (3,), (0,))
    assert ExactForm.from_rows([[3, 1]]).to_rows() == [[1, Fraction(1, 3)]]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (((), (), ()), "no entries"),
        ((((),), (1,), (0,)), "no entries"),
        ((((1, 2),), (1, 1), (0,)), "differ in number"),
        ((((1, 0, 0), (0, 1)), (1, 1), (0, 1)), "differ in length"),
        ((((0, 1), (1, 0)), (1, 1), (1, 0)), "do not ascend"),
        ((((1, 0),), (1,), (2,)), "outside"),
        ((((1, 0),), (1,), (-1,)), "outside"),
        ((((2, 1),), (1,), (0,)), "row 0 does not lead"),
        ((((-1, 1),), (-1,), (0,)), "row 0 does not lead"),
        ((((1, 1),), (1,), (1,)), "row 0 does not lead"),
        ((((2, 4),), (2,), (0,)), "row 0 is not in lowest terms"),
        ((((1, 1), (0, 1)), (1, 1), (0, 1)), "row 0 is not zero at the pivots"),
        ((((1, 0),), (1,), (0,), True), "needs a point"),
    ],
)
def test_other_matrices_are_refused(arguments, problem):
    with pytest.raises(ValueError, match=f"^not a canonical reduced row echelon form: .*{problem}"):
        ExactForm(*arguments)


def test_zero_rows_span_nothing():
    with pytest.raises(ValueError, match="no entries"):
        ExactForm.from_rows([[0, 0], [0, 0]])


# --- relations annihilate the form and nothing is missing


@given(st.one_of(matrices(), matrices(small, max_rows=5, max_columns=9)), st.booleans())
@settings(max_examples=200, deadline=None)
def test_relations_are_exact_and_complete(rows, homogeneous):
    assume(any(any(row) for row in rows))
    homogeneous = homogeneous and len(rows[0]) > 1 and any(row[-1] for row in rows)
    form = ExactForm.from_rows(rows, homogeneous=homogeneous)
    found = vectors(form)
    assert len(found) == form.columns - form.rank == rank(found)
    for vector in found:
        assert all(sum(a * b for a, b in zip(vector, row, strict=True)) == 0 for row in form.to_rows())


@given(matrices(small, max_rows=4, max_columns=8))
@settings(deadline=None)
def test_relations_are_never_harder_to_read_than_the_plain_ones(rows):
    assume(any(any(row) for row in rows))
    form = ExactForm.from_rows(rows)
    plain = [relation.terms for relation in form._plain_relations()]
    final = [relation.terms for relation in form.relations()]
    assert sum(map(len, final)) <= sum(map(len, plain))


def test_relations_without_flint_are_the_plain_ones(monkeypatch):
    form = ExactForm.from_rows([[2, 0, 1, 1], [0, 2, 1, -1]])
    with_reduction = words(form)
    monkeypatch.setitem(sys.modules, "flint", None)
    assert words(form) == ["2 x2 = x0 + x1", "x0 = x1 + 2 x3"]
    # The lattice also holds x0 = x2 + x3 and x1 = x2 - x3, with smaller numbers.
    assert with_reduction == ["x0 = x2 + x3", "x2 = x1 + x3"]


def test_unlucky_prime_falls_back_to_a_whole_basis():
    rows, plain = [[1, 1, 1, 0], [1, -1, 0, 1]], [[1, 1, -2, 0], [1, -1, 0, -2]]  # alike modulo 2
    found = _short_relations.simplified(plain, rows, prime=2)
    assert rank(found) == 2
    assert all(sum(a * b for a, b in zip(v, row, strict=True)) == 0 for v in found for row in rows)


def test_wide_subspaces_are_left_as_they_are(monkeypatch):
    def never(*arguments):
        raise AssertionError("lattice reduction of a wide subspace")

    monkeypatch.setattr(_short_relations, "simplified", never)
    columns = 3000
    rows = [[1, 0, 0, *range(columns)], [0, 1, 0, *(j * j for j in range(columns))], [0, 0, 1, *[7] * columns]]
    relations = ExactForm.from_rows(rows).relations()
    assert len(relations) == columns
    assert all(1 < len(relation.terms) <= 4 for relation in relations)
    assert len(relations[0].coefficients) == columns + 3


def test_long_integers_skip_the_reduction():
    form = ExactForm.from_rows([[2, 0, 1, 1], [0, 2, 1, -1]])
    plain = [[1, 1, -2, 0], [1, -1, 0, -2]]
    assert _short_relations.simplified(plain, form.numerators, most_bits=10) == plain
    assert _short_relations.simplified(plain, form.numerators) != plain


def test_relations_of_a_table():
    # a, b, c, then a + b, a - b + 2 c, a constant 2013: a table with derived columns.
    parts = [(1, 5, 2), (4, 4, 9), (7, 0, 3), (2, 2, 2), (9, 1, 1)]
    table = [[a, b, c, a + b, 2 * c + a - b, 2013] for a, b, c in parts]
    names = ["a", "b", "c", "both", "mixed", "year"]
    assert words(ExactForm.from_rows(table), names) == ["both = a + b", "a = b + mixed - 2 c"]
    affine = ExactForm.from_rows([[*row, 1] for row in table], homogeneous=True)
    assert words(affine, names) == ["year = 2013", "both = a + b", "a = b + mixed - 2 c"]


def test_order_of_columns_does_not_matter():
    table = [[1, 5, 6], [4, 4, 8], [7, 0, 7]]
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]):
        names = [["a", "b", "total"][j] for j in order]
        (found,) = words(ExactForm.from_rows([[row[j] for j in order] for row in table]), names)
        assert found in ("total = a + b", "total = b + a")


def test_affine_relations_use_the_constant():
    rows = [[2013, 7, x, x + 5, 100 - x, 1] for x in (1, 4, 6)]
    form = ExactForm.from_rows(rows, homogeneous=True)
    names = ["year", "month", "x", "y", "z"]
    assert words(form, names) == ["month = 7", "year = 2013", "y = x + 5", "x + z = 100"]


def test_affine_subspace_through_the_origin():
    form = ExactForm.from_rows([[1, 2, 1], [2, 4, 1]], homogeneous=True)  # contains (0, 0)
    assert words(form) == ["x1 = 2 x0"]
    assert form.directions_and_point() == ([[1, 2]], [0, 0], 1)


@given(matrices(small, max_rows=4, max_columns=6))
def test_directions_and_point(rows):
    form = ExactForm.from_rows([[*row, 1] for row in rows], homogeneous=True)
    directions, point, denominator = form.directions_and_point()
    base = [Fraction(value, denominator) for value in point]
    assert len(directions) == form.rank - 1 == rank(directions)
    assert rank([*form.to_rows(), [*base, 1], *([*direction, 0] for direction in directions)]) == form.rank


# --- single relations


def test_relation_is_primitive_and_signed():
    relation = Relation([0, -4, 6], 10)
    assert (relation.coefficients, relation.constant) == ((0, 2, -3), -5)
    assert relation.terms == ((1, 2), (2, -3))
    assert relation == Relation.from_terms(3, {2: 6, 1: -4}, 10)
    assert hash(relation) == hash(Relation([0, 2, -3], -5))
    assert relation != Relation([0, 2, -3], 5)
    assert relation != "2 x1 = 3 x2 + 5"
    assert repr(relation) == "Relation(coefficients=(0, 2, -3), constant=-5)"
    assert repr(Relation([1] + [0] * 30)) == "Relation('x0 = 0', columns=31)"


def test_relation_is_immutable_and_copies():
    relation = Relation([1, -1])
    with pytest.raises(AttributeError, match="immutable"):
        relation.constant = 3
    for twin in (copy.copy(relation), copy.deepcopy(relation), pickle.loads(pickle.dumps(relation))):
        assert twin == relation


def test_bad_relations_are_refused():
    with pytest.raises(ValueError, match="at least one nonzero"):
        Relation([0, 0], 1)
    with pytest.raises(TypeError):
        Relation([0.5, 1])
    with pytest.raises(ValueError, match="`names` must hold 2 names, one per column; got 1"):
        Relation([1, 2]).describe(["a"])


@pytest.mark.parametrize(
    ("coefficients", "constant", "text"),
    [
        ((1, 1, -1), 0, "c = a + b"),
        ((1, -1, -1), 0, "a = b + c"),
        ((1, -2, 0), 0, "a = 2 b"),
        ((-3, 1, 0), 0, "b = 3 a"),
        ((2, -3, 0), 0, "2 a = 3 b"),
        ((1, -1, 0), 0, "a = b"),
        ((1, 1, 0), 0, "a = -b"),
        ((1, 1, 1), 0, "a = -b - c"),
        ((0, 5, 0), 0, "b = 0"),
        ((1, 0, 0), -2013, "a = 2013"),
        ((1, 0, 0), 7, "a = -7"),
        ((2, 0, 0), -7, "2 a = 7"),
        ((3, -2, 0), -5, "3 a = 2 b + 5"),
        ((3, 2, 0), -5, "3 a + 2 b = 5"),
        ((1, 1, 1), 4, "a + b + c = -4"),
        ((1, -1, 0), 2012, "b = a + 2012"),
        ((1, -1, 1), -10, "b = a + c - 10"),
        ((2, -3, 1), 0, "3 b = 2 a + c"),
        ((1, 1, -2), 0, "2 c = a + b"),
        ((1, -1, 2, -1), 0, "a = b + d - 2 c"),
        ((2, 3, -1), 5, "c = 2 a + 3 b + 5"),
        ((2, 2, -3), 5, "3 c = 2 a + 2 b + 5"),
    ],
)
def test_words(coefficients, constant, text):
    assert Relation(coefficients, constant).describe("abcd"[: len(coefficients)]) == text
    assert Relation([-value for value in coefficients], -constant).describe("abcd"[: len(coefficients)]) == text


def test_default_names():
    assert Relation([1, 0, -1]).describe() == "x0 = x2"


@given(st.lists(st.integers(-9, 9).filter(bool), min_size=1, max_size=5), st.integers(-9, 9))
def test_words_are_true(values, constant):
    """Read the equation back and compare it with the relation, up to sign."""
    terms = [(f"v{i}", value) for i, value in enumerate(values)]
    text = equation(terms, constant)
    read = _read(text)
    assert read in (
        {**dict(terms), "": constant},
        {**{name: -value for name, value in terms}, "": -constant},
    )
    assert "+ -" not in text
    assert "1 v" not in text.replace("11 v", "")


def _read(text):
    """Parse 'left = right' into coefficients of left - right, '' for the constant."""
    totals = {"": 0}
    for sign, side in zip((1, -1), text.split(" = "), strict=True):
        for term in side.replace("- ", "+ -").replace("+ +", "+").split("+"):
            words_of_term = term.strip().removeprefix("-").split()
            value = sign * (-1 if term.strip().startswith("-") else 1)
            if words_of_term[0].isdigit():
                value *= int(words_of_term.pop(0))
            name = words_of_term[0] if words_of_term else ""
            totals[name] = totals.get(name, 0) + value
    return totals


def test_coefficients_too_long_to_print():
    assert Relation([1, -(2**20000)]).describe() == "x0 = (about 2^20000) x1"
