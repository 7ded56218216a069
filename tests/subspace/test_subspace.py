"""Distances right at 1e-12, bases from integers of any size, files that are refused cleanly."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import zipfile
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privspan.subspace import Subspace
from privspan.subspace import orthonormalise as _orthonormalise
from privspan.subspace.relations import ExactForm

DIMENSIONS = [(4, 2), (50, 3), (10_000, 3), (300, 100)]


def random_frame(d, k, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, k)))[0]


def rotated(d, k, angle, seed=0):
    """Two frames whose only nonzero principal angle is `angle`, in general position, and a third unrelated basis."""
    frame = random_frame(d, k + 1, seed)
    turned = frame[:, :k].copy()
    # cos(angle) - 1 is what is added, without cancellation, so that tiny angles are right to the last digit.
    turned[:, 0] += -2 * math.sin(angle / 2) ** 2 * frame[:, 0] + math.sin(angle) * frame[:, k]
    mix = np.linalg.qr(np.random.default_rng(seed + 1).standard_normal((k, k)))[0]
    return frame[:, :k], turned @ mix


# --- distances and angles


def rounding(d):
    """What roundings may add to a distance: sums of d terms are off by about sqrt(d) of them."""
    return max(3e-15, math.sqrt(d) * 2.0**-53)


@pytest.mark.parametrize("angle", [1e-12, 1e-9, 1e-3, 1.0, math.pi / 2])
@pytest.mark.parametrize(("d", "k"), DIMENSIONS)
def test_distance_of_known_angles(d, k, angle):
    first, second = (Subspace(basis) for basis in rotated(d, k, angle))
    assert first.distance(second) == pytest.approx(math.sin(angle), rel=1e-13, abs=rounding(d))
    assert second.distance(first) == pytest.approx(math.sin(angle), rel=1e-13, abs=rounding(d))
    angles = first.angles(second)
    assert angles.shape == (k,)
    assert angles[-1] == pytest.approx(angle, rel=1e-13, abs=rounding(d))
    assert np.all(angles[:-1] < rounding(d))


def test_angles_near_a_right_angle():
    gap = 1e-12
    first, second = rotated(30, 2, math.pi / 2 - gap)
    angle = Subspace(first).angles(Subspace(second))[-1]
    assert math.pi / 2 - angle == pytest.approx(gap, rel=1e-2)


def test_several_angles_are_ascending():
    wanted = np.array([1e-9, 0.3, 1.2, math.pi / 2])
    frame = random_frame(40, 8)
    turned = frame[:, :4] * np.cos(wanted) + frame[:, 4:] * np.sin(wanted)
    np.testing.assert_allclose(Subspace(frame[:, :4]).angles(Subspace(turned)), wanted, rtol=1e-6, atol=1e-15)


def test_angles_between_different_dimensions():
    frame = random_frame(20, 3)
    line = Subspace((np.cos(0.4) * frame[:, :1]) + np.sin(0.4) * frame[:, 2:])
    plane = Subspace(frame[:, :2])
    np.testing.assert_allclose(line.angles(plane), [0.4], rtol=1e-14)
    np.testing.assert_allclose(plane.angles(line), [0.4], rtol=1e-14)
    assert plane.distance(line) == line.distance(plane) == 1.0


@pytest.mark.parametrize(("d", "k"), DIMENSIONS)
def test_equal_subspaces_with_different_bases(d, k):
    frame = random_frame(d, k)
    mix = np.linalg.qr(np.random.default_rng(5).standard_normal((k, k)))[0]
    assert Subspace(frame).distance(Subspace(frame @ mix)) <= rounding(d)
    assert Subspace(frame) == Subspace(frame @ mix)


@pytest.mark.parametrize(("d", "k"), DIMENSIONS)
@pytest.mark.parametrize("angle", [1e-12, 1.0])
def test_a_basis_that_is_barely_orthonormal_does_not_spoil_the_distance(d, k, angle):
    first, second = rotated(d, k, angle)
    skew = np.eye(k) + 1e-9 * np.random.default_rng(3).uniform(-1, 1, (k, k))  # same span, off by 1e-9
    skewed = Subspace(first @ skew)
    assert skewed.distance(Subspace(second)) == pytest.approx(math.sin(angle), abs=3e-15)
    assert Subspace(second).distance(skewed) == pytest.approx(math.sin(angle), abs=3e-15)


def test_distance_agrees_with_the_definition():
    first, second = Subspace(random_frame(9, 4, 1)), Subspace(random_frame(9, 4, 2))
    norm = np.linalg.norm(first.projector() - second.projector(), 2)
    assert first.distance(second) == pytest.approx(norm, rel=1e-14)


def test_other_spaces_do_not_compare():
    line = Subspace(np.eye(3)[:, :1])
    for method in (line.distance, line.angles):
        with pytest.raises(ValueError, match="`other` must lie in a space of dimension 3; got 4"):
            method(Subspace(np.eye(4)[:, :1]))
        with pytest.raises(TypeError, match="`other` must be a Subspace; got an object of type ndarray"):
            method(np.eye(3))


# --- construction


@pytest.mark.parametrize(
    ("basis", "error", "message"),
    [
        (np.ones((3, 1)), ValueError, "orthonormal columns"),
        (np.eye(3)[:, :2] + 1e-7, ValueError, "orthonormal columns"),
        (np.full((3, 1), np.nan), ValueError, "orthonormal columns"),
        (np.full((3, 1), 1e300), ValueError, "orthonormal columns"),
        (np.eye(3)[:2], ValueError, "at most as many columns as rows"),
        (np.ones(3), ValueError, "`basis` must be two-dimensional"),
        (np.empty((3, 0)), ValueError, "`basis` must be of at least"),
        (np.eye(3).astype(object), TypeError, "`basis` must be an array of"),
    ],
)
def test_bad_bases_are_refused(basis, error, message):
    with pytest.raises(error, match=message):
        Subspace(basis)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"offset": np.ones(2)}, ValueError, "`offset` must hold 3 finite numbers"),
        ({"offset": np.array([0, np.inf, 0])}, ValueError, "`offset` must hold 3 finite numbers"),
        ({"names": ["a", "b"]}, ValueError, "`names` must hold 3 names, one per column; got 2"),
        ({"names": ["a", "b", 3]}, TypeError, "`names` must hold str only"),
        ({"exact": [[1, 0, 0]]}, TypeError, "`exact` must be an ExactForm"),
        (
            {"exact": ExactForm(((1, 0),), (1,), (0,))},
            ValueError,
            "`exact` must describe a subspace of dimension 1 in 3",
        ),
        ({"exact": ExactForm(((1, 0, 0, 0), (0, 0, 0, 1)), (1, 1), (0, 3), True)}, ValueError, "homogeneous"),
    ],
)
def test_bad_companions_are_refused(keywords, error, message):
    with pytest.raises(error, match=message):
        Subspace(np.eye(3)[:, :1], **keywords)


def test_subspace_is_immutable():
    basis = np.eye(3)[:, :2]
    subspace = Subspace(basis, offset=np.ones(3), names=["a", "b", "c"])
    basis[0, 0] = 5.0
    assert subspace.basis[0, 0] == 1.0
    for array in (subspace.basis, subspace.offset):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 2.0
    with pytest.raises(AttributeError):
        subspace.names = None
    with pytest.raises(TypeError, match="unhashable"):
        hash(subspace)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_stay_read_only(duplicate):
    form = ExactForm(((1, 0, 0, 0), (0, 0, 0, 1)), (1, 1), (0, 3), True)
    subspace = Subspace.from_exact(form, names=["a", "b", "c"])
    subspace.distance(subspace)  # fills the cache
    twin = duplicate(subspace)
    assert twin == subspace
    assert (twin.exact, twin.names) == (form, ("a", "b", "c"))
    assert not twin.basis.flags.writeable
    assert not twin.offset.flags.writeable


def test_from_spanning():
    frame = random_frame(30, 3)
    mixed = frame @ np.random.default_rng(1).standard_normal((3, 7))
    assert Subspace.from_spanning(mixed).dimension == 3
    assert Subspace.from_spanning(mixed).distance(Subspace(frame)) < 1e-14
    scales = np.array([1e-300, 1.0, 1e300])
    assert Subspace.from_spanning(frame * scales).distance(Subspace(frame)) < 1e-14
    with_zero = Subspace.from_spanning(np.column_stack([frame, np.zeros(30)]), offset=np.ones(30), names=["c"] * 30)
    assert (with_zero.dimension, with_zero.offset[0], with_zero.names[0]) == (3, 1.0, "c")
    with pytest.raises(ValueError, match="`vectors` must not all be zero"):
        Subspace.from_spanning(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="`vectors` must be finite"):
        Subspace.from_spanning([[1.0, np.nan], [0.0, 1.0]])


def test_equality():
    first, second = rotated(20, 2, 1e-11)
    assert Subspace(first) != Subspace(second)
    assert Subspace(first) == Subspace(rotated(20, 2, 1e-13)[1])
    assert Subspace(first) != Subspace(first[:, :1])
    assert Subspace(first) != Subspace(np.eye(3)[:, :1])
    assert Subspace(first) != "plane"
    assert Subspace(first) == Subspace(first, names=[f"c{i}" for i in range(20)])


def test_equality_of_affine_subspaces_is_that_of_point_sets():
    line = np.eye(3)[:, :1]
    assert Subspace(line, offset=[0, 1, 2]) == Subspace(-line, offset=[77, 1, 2])
    assert Subspace(line, offset=[0, 1, 2]) != Subspace(line, offset=[0, 1, 2.001])
    assert Subspace(line, offset=[0, 0, 0]) != Subspace(line)


def test_exact_forms_decide_equality():
    # The same up to 1e-16, but not the same.
    near = ExactForm.from_rows([[10**16, 1]])
    nearer = ExactForm.from_rows([[10**16 + 1, 1]])
    assert Subspace.from_exact(near) != Subspace.from_exact(nearer)
    assert Subspace.from_exact(near) == Subspace(Subspace.from_exact(nearer).basis)


def test_words():
    assert repr(Subspace(np.eye(3)[:, :2])) == "Subspace(dimension=2, ambient_dimension=3)"
    form = ExactForm.from_rows([[1, 0, 1], [2, 0, 1]], homogeneous=True)
    assert repr(Subspace.from_exact(form)) == "Subspace(dimension=1, ambient_dimension=2, affine, exact)"


# --- projection


def test_projection_and_coordinates():
    frame = random_frame(6, 2)
    subspace = Subspace(frame)
    X = np.random.default_rng(2).standard_normal((5, 6))
    np.testing.assert_allclose(subspace.projector(), frame @ frame.T, atol=1e-15)
    np.testing.assert_allclose(subspace.project(X), X @ frame @ frame.T, atol=1e-14)
    np.testing.assert_allclose(subspace.coordinates(X), X @ frame, atol=1e-14)
    np.testing.assert_allclose(subspace.project(subspace.project(X)), subspace.project(X), atol=1e-14)
    assert subspace.project(np.ones((2, 6), dtype=np.int8)).dtype == np.float64


def test_affine_projection():
    subspace = Subspace(np.eye(3)[:, :1], offset=[5.0, 1.0, 2.0])
    np.testing.assert_allclose(subspace.project([[7.0, 8.0, 9.0]]), [[7.0, 1.0, 2.0]])
    np.testing.assert_allclose(subspace.coordinates([[7.0, 8.0, 9.0]]), [[2.0]])


def test_projection_spoils_only_the_row_that_is_not_finite():
    projected = Subspace(np.eye(3)[:, :2]).project([[1.0, 2.0, 3.0], [np.inf, np.nan, 0.0]])
    np.testing.assert_array_equal(projected[0], [1.0, 2.0, 0.0])
    assert not np.isfinite(projected[1]).all()


def test_projection_checks_the_shape():
    with pytest.raises(ValueError, match="`X` must have 3 columns; got 4"):
        Subspace(np.eye(3)[:, :1]).project(np.ones((2, 4)))
    with pytest.raises(ValueError, match="`X` must be two-dimensional"):
        Subspace(np.eye(3)[:, :1]).coordinates(np.ones(3))


@pytest.mark.parametrize(("d", "k"), [(5, 1), (5, 4), (200, 3)])
def test_complement(d, k):
    form = ExactForm.from_rows(np.random.default_rng(0).integers(-5, 6, (k, d)).tolist())
    subspace = Subspace.from_exact(form)
    rest = subspace.complement()
    assert (rest.dimension, rest.ambient_dimension, rest.exact) == (d - k, d, None)
    np.testing.assert_allclose(subspace.projector() + rest.projector(), np.eye(d), atol=1e-14)
    assert rest.complement() == Subspace(subspace.basis)


def test_the_whole_space_has_no_complement():
    with pytest.raises(ValueError, match="complement of the whole space"):
        Subspace(np.eye(3)).complement()


# --- exact forms


def test_relations_need_an_exact_form():
    with pytest.raises(ValueError, match="relations need an exact form"):
        Subspace(np.eye(2)[:, :1]).relations()
    subspace = Subspace.from_exact(ExactForm.from_rows([[1, 2, 3], [1, 0, 1]]), names=["a", "b", "total"])
    assert [relation.coefficients for relation in subspace.relations()] == [(1, 1, -1)]
    assert subspace.describe_relations() == ("total = a + b",)


def exact_projection(rows, vectors):
    """Project rational vectors on the span of rational rows, exactly."""
    orthogonal = []
    for row in rows:
        rest = [Fraction(value) for value in row]
        for q in orthogonal:
            factor = sum(a * b for a, b in zip(rest, q, strict=True)) / sum(a * a for a in q)
            rest = [a - factor * b for a, b in zip(rest, q, strict=True)]
        orthogonal.append(rest)
    projected = []
    for vector in vectors:
        total = [Fraction(0)] * len(vector)
        for q in orthogonal:
            factor = sum(Fraction(a) * b for a, b in zip(vector, q, strict=True)) / sum(a * a for a in q)
            total = [a + factor * b for a, b in zip(total, q, strict=True)]
        projected.append(total)
    return projected


def assert_projector_is_right(subspace, rows):
    identity = np.eye(len(rows[0]), dtype=int).tolist()
    exact = np.array([[float(value) for value in row] for row in exact_projection(rows, identity)])
    np.testing.assert_allclose(subspace.projector(), exact, atol=1e-13)
    np.testing.assert_allclose(subspace.basis.T @ subspace.basis, np.eye(subspace.dimension), atol=1e-14)


HUGE = 10**400
AWKWARD = {
    "plain": [[1, 2, 3, 4], [2, -1, 0, 5]],
    "huge integers": [[HUGE, 3 * HUGE + 7, 1, 0], [5, HUGE**3, 2, HUGE]],
    "wild scales": [[1, 0, 0, 10**200], [0, 1, 0, 1], [0, 0, 10**150, 1]],
    "nearly parallel": [[1, 0, 10**20, 10**20 + 1], [0, 1, 10**20, 10**20]],
    "parallel to 400 digits": [[1, 0, HUGE, 1], [0, 1, HUGE + 1, 1], [0, 0, 0, 0]],
    "tiny fractions": [[Fraction(1, HUGE), 1, 0, Fraction(1, 3)], [1, 0, 0, Fraction(2, 7)]],
}


@pytest.mark.parametrize("rows", AWKWARD.values(), ids=AWKWARD.keys())
def test_basis_of_awkward_integers(rows):
    form = ExactForm.from_rows(rows)
    subspace = Subspace.from_exact(form)
    assert_projector_is_right(subspace, form.to_rows())
    assert subspace.exact == form


@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from([3, 40, 400]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_both_routes_to_a_basis_agree(seed, k, bits, near):
    rng = np.random.default_rng(seed)
    rows = [[int(rng.integers(-7, 8)) << int(rng.integers(0, bits)) for _ in range(5)] for _ in range(k)]
    if near:  # all rows close to the first
        rows = [[a + b * (1 << 2 * bits) for a, b in zip(row, rows[0], strict=True)] for row in rows]
    assume(any(any(row) for row in rows))
    form = ExactForm.from_rows(rows)
    assert_projector_is_right(Subspace.from_exact(form), form.to_rows())
    *others, row = form.numerators
    (shadow,) = exact_projection(others, [row])
    rest = [a - b for a, b in zip(row, shadow, strict=True)]  # what Gram and Schmidt leave of the last row
    scale = math.ceil(max(map(abs, rest)))
    left = [float(value / scale) for value in rest]
    units, last = _orthonormalise._fixed_point(form.numerators, scale)
    assert_projector_is_right(Subspace(units.T), form.to_rows())
    np.testing.assert_allclose(last, left, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(_orthonormalise.orthonormal_rows(form.numerators, scale)[1], left, atol=1e-12)


def test_basis_of_a_wide_form():
    rng = np.random.default_rng(0)
    points = rng.integers(-100, 101, (3, 10_000))
    subspace = Subspace.from_exact(ExactForm.from_rows(points.tolist()))
    assert subspace.dimension == 3
    assert subspace.distance(Subspace.from_spanning(points.T)) < 1e-14


def test_basis_is_deterministic():
    form = ExactForm.from_rows(AWKWARD["nearly parallel"])
    np.testing.assert_array_equal(Subspace.from_exact(form).basis, Subspace.from_exact(form).basis)


@pytest.mark.parametrize(
    ("points", "offset"),
    [
        ([[1, 0], [0, 1]], [0.5, 0.5]),
        ([[1, 2], [2, 4]], [0.0, 0.0]),
        ([[7, 1], [7, 2]], [7.0, 0.0]),
        ([[HUGE, HUGE + 1], [HUGE + 1, HUGE + 2]], [-0.5, 0.5]),
        ([[10**30, 1, 0], [10**30 + 1, 1, 0]], [0.0, 1.0, 0.0]),
        ([[-HUGE, 0], [0, HUGE]], [-math.inf, math.inf]),
        ([[0, 0, Fraction(1, HUGE)], [1, 1, Fraction(1, HUGE)]], [0.0, 0.0, 0.0]),
    ],
)
def test_offset_is_the_nearest_point(points, offset):
    form = ExactForm.from_rows([[*point, 1] for point in points], homogeneous=True)
    subspace = Subspace.from_exact(form)
    largest = np.finfo(float).max  # offsets beyond the floats are saturated
    np.testing.assert_allclose(subspace.offset, np.clip(offset, -largest, largest), rtol=1e-14, atol=1e-300)
    if np.abs(subspace.offset).max() < 1e100:
        np.testing.assert_allclose(subspace.basis.T @ subspace.offset, 0, atol=1e-13 * max(map(abs, offset)))


@given(st.integers(0, 2**32), st.integers(2, 4), st.sampled_from([3, 60]))
@settings(max_examples=40, deadline=None)
def test_affine_points_lie_in_the_subspace(seed, count, bits):
    rng = np.random.default_rng(seed)
    points = [[int(rng.integers(-9, 10)) << int(rng.integers(0, bits)) for _ in range(5)] for _ in range(count)]
    assume(any(point != points[0] for point in points))
    subspace = Subspace.from_exact(ExactForm.from_rows([[*p, 1] for p in points], homogeneous=True))
    X = np.array([[float(value) for value in point] for point in points])
    np.testing.assert_allclose(subspace.project(X), X, atol=1e-12 * np.abs(X).max())
    assert subspace.offset is not None
    np.testing.assert_allclose(subspace.basis.T @ subspace.offset, 0, atol=1e-12 * (1 + np.abs(X).max()))


def test_a_single_point_is_refused():
    with pytest.raises(ValueError, match="`form` must have a direction"):
        Subspace.from_exact(ExactForm.from_rows([[3, 4, 1]], homogeneous=True))


# --- files

FORM = ExactForm.from_rows([[1, 2, 3, 1], [1, 0, HUGE**20, 1]], homogeneous=True)  # 8000 digits
SAVED = {
    "plain": Subspace(random_frame(7, 3)),
    "named": Subspace(random_frame(3, 1), names=["a", "été", 'quote" and\nnewline']),
    "affine": Subspace(random_frame(4, 2), offset=[0.1, -0.2, 1e300, 5e-324]),
    "exact": Subspace.from_exact(FORM, names=["a", "b", "c"]),
}


@pytest.mark.parametrize("subspace", SAVED.values(), ids=SAVED.keys())
def test_round_trip_keeps_everything(subspace, tmp_path):
    path = subspace.save(tmp_path / "plane")
    assert path == tmp_path / "plane.npz"
    loaded = Subspace.load(path)
    np.testing.assert_array_equal(loaded.basis, subspace.basis)
    assert (loaded.exact, loaded.names) == (subspace.exact, subspace.names)
    assert (loaded.offset is None) == (subspace.offset is None)
    if subspace.offset is not None:
        np.testing.assert_array_equal(loaded.offset, subspace.offset)
    assert loaded == subspace


def test_suffix_is_added_only_when_there_is_none(tmp_path):
    subspace = SAVED["plain"]
    assert subspace.save(str(tmp_path / "a.subspace")).name == "a.subspace"
    assert subspace.save(os.fspath(tmp_path / "b")).name == "b.npz"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.subspace", "b.npz"]


def test_saving_replaces_whole_files_and_leaves_nothing_behind(tmp_path, monkeypatch):
    path = SAVED["plain"].save(tmp_path / "plane")

    def fail(*arguments, **keywords):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        SAVED["named"].save(path)
    monkeypatch.undo()
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        SAVED["named"].save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["plane.npz"]
    assert Subspace.load(path) == SAVED["plain"]
    monkeypatch.undo()
    SAVED["named"].save(path)
    assert Subspace.load(path) == SAVED["named"]


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError):
        Subspace.load(tmp_path / "nothing.npz")
    with pytest.raises(FileNotFoundError):
        SAVED["plain"].save(tmp_path / "nowhere" / "plane")
    with pytest.raises(IsADirectoryError):
        Subspace.load(tmp_path)


def refused(path, reason):
    """Loading fails with one sentence that names the file and the reason, and no inner traceback."""
    with pytest.raises(ValueError, match=f"cannot read a subspace from .*{path.name}.*: .*{reason}") as caught:
        Subspace.load(path)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an .npz archive"),
        (b"hello, world", "not an .npz archive"),
        (b"\x80\x04K\x01.", "not an .npz archive"),
        (b"PK", "truncated or damaged"),
        (b"PK\x03\x04" + bytes(100), "truncated or damaged"),
    ],
)
def test_foreign_bytes_are_refused(tmp_path, content, reason):
    path = tmp_path / "foreign.npz"
    path.write_bytes(content)
    refused(path, reason)


def test_foreign_arrays_are_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.eye(3))
    refused(tmp_path / "array.npy", "not an .npz archive")
    np.savez(tmp_path / "arrays.npz", a=np.eye(3))
    refused(tmp_path / "arrays.npz", "not written by Subspace.save")
    np.savez(tmp_path / "pickled.npz", basis=np.array([None]), description=np.array([None]))
    refused(tmp_path / "pickled.npz", "truncated or damaged")
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused(tmp_path / "text.npz", "truncated or damaged|not written by Subspace.save")


def rewritten(path, **changes):
    """Save a subspace, then change its description or arrays."""
    SAVED["exact"].save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    description = json.loads(arrays["description"].tobytes())
    for name, value in changes.items():
        if name in ("basis", "offset"):
            arrays[name] = value
        else:
            description[name] = value
    arrays["description"] = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
    np.savez(path, **arrays)
    return path


def test_an_unchanged_rewrite_is_read(tmp_path):
    assert Subspace.load(rewritten(tmp_path / "same.npz")) == SAVED["exact"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 1}, "its version is 1, and this privspan reads 2"),
        ({"version": None}, "its version is None"),
        ({"format": "other"}, "not written by Subspace.save"),
        ({"basis": np.eye(3)[:, :1].astype(np.float32)}, "its basis is not an array of 64-bit floats"),
        ({"basis": np.ones(3)}, "its basis is not an array of 64-bit floats"),
        ({"basis": np.ones((3, 1))}, "damaged"),
        ({"basis": np.eye(4)[:, :1]}, "damaged"),
        ({"offset": np.ones((3, 1))}, "its offset is not"),
        ({"offset": np.full(3, np.nan)}, "damaged"),
        ({"affine": False}, "its offset is missing or does not belong there"),
        ({"names": ["a"]}, "damaged"),
        ({"names": 7}, "damaged"),
        ({"exact": {}}, "damaged"),
        ({"exact": 5}, "damaged"),
        ({"exact": {"numerators": [["zz"]], "denominators": ["0x1"], "pivots": [0], "homogeneous": True}}, "damaged"),
    ],
)
def test_changed_files_are_refused(tmp_path, changes, reason):
    refused(rewritten(tmp_path / "changed.npz", **changes), reason)


def test_description_must_be_json(tmp_path):
    np.savez(tmp_path / "a.npz", description=np.frombuffer(b"{not json", np.uint8), basis=np.eye(2))
    refused(tmp_path / "a.npz", "damaged")
    np.savez(tmp_path / "b.npz", description=np.frombuffer(b"[]", np.uint8), basis=np.eye(2))
    refused(tmp_path / "b.npz", "not written by Subspace.save")


def test_every_truncation_is_refused(tmp_path):
    path = SAVED["affine"].save(tmp_path / "plane")
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        refused(path, "")


def test_every_damaged_byte_is_refused_or_harmless(tmp_path):
    path = SAVED["affine"].save(tmp_path / "plane")
    content = path.read_bytes()
    refusals = 0
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x55
        path.write_bytes(damaged)
        loaded, complaint = loaded_or_complaint(path)
        if loaded is None:
            assert complaint.startswith("cannot read a subspace from")
            refusals += 1
        else:  # a timestamp or the like
            np.testing.assert_array_equal(loaded.basis, SAVED["affine"].basis)
            np.testing.assert_array_equal(loaded.offset, SAVED["affine"].offset)
    assert refusals > 0.7 * len(content)


def loaded_or_complaint(path):
    try:
        return Subspace.load(path), ""
    except ValueError as error:
        return None, str(error)


def test_precision_of_the_reference():
    """The rotation used above is exact: compare the sine of the angle with 50 digits for a 2-dimensional case."""
    first, second = rotated(2, 1, 1e-9)
    with mpmath.workdps(50):
        u, v = ([mpmath.mpf(float(x)) for x in basis[:, 0]] for basis in (first, second))
        sine = abs(u[0] * v[1] - u[1] * v[0]) / mpmath.sqrt((u[0] ** 2 + u[1] ** 2) * (v[0] ** 2 + v[1] ** 2))
        assert abs(sine / mpmath.sin(mpmath.mpf("1e-9")) - 1) < 1e-6
