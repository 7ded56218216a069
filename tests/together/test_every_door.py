"""One table, one seed, one release: bit for bit, from whatever container, file or stream the rows come."""

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from doors import DOORS
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import privspan as ps

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
_NAMING = ("names", "without_units", "not_seen")  # parts of a release that call columns by name, where they have one
pytestmark = pytest.mark.filterwarnings("ignore::privspan.UselessPlanWarning", "ignore::privspan.AbstentionWarning")

CALLS = {
    "private_pca": lambda X: ps.private_pca(X, 1, rng=3, **BUDGET),
    "private_pca, standardised": lambda X: ps.private_pca(X, 1, scale=True, rng=3, **BUDGET),
    "private_subspace": lambda X: ps.private_subspace(X, 1, rng=3, **BUDGET),
    "private_mean": lambda X: ps.private_mean(X, rng=3, **BUDGET),
    "exact_subspace": lambda X: ps.exact_subspace(X, 1, rng=3, decimals=3, **BUDGET),
}
ESTIMATORS = {
    "PrivatePCA": lambda: ps.PrivatePCA(1, random_state=3, **BUDGET),
    "PrivateStandardScaler": lambda: ps.PrivateStandardScaler(random_state=3, **BUDGET),
}


def bits(value):
    """Return a release as what its parts are, bit by bit; names of columns are not among them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return {name: bits(part) for name, part in value.items() if name not in _NAMING}
    if isinstance(value, list | tuple):
        return [bits(part) for part in value]
    if dataclasses.is_dataclass(value):
        return bits({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    return repr(value)


cells = st.integers(-2000, 2000).map(lambda cell: cell / 8.0) | st.just(float("nan"))


@st.composite
def tables(draw):
    n, d = draw(st.integers(12, 60)), draw(st.integers(2, 4))
    rows = np.array(draw(st.lists(cells, min_size=n * d, max_size=n * d))).reshape(n, d)
    as_nulls = draw(st.booleans())
    return pa.table({f"c{j}": pa.array(rows[:, j], from_pandas=as_nulls) for j in range(d)})


@settings(max_examples=10, phases=[Phase.generate])  # a smaller example says no more, and takes minutes
@given(table=tables(), name=st.sampled_from(sorted(CALLS)))
def test_the_same_release_from_every_door(table, name):
    with tempfile.TemporaryDirectory() as folder:
        seen = {door: bits(CALLS[name](make(table, Path(folder)))) for door, make in DOORS.items()}
    assert {door for door in DOORS if seen[door] != seen["NumPy"]} == set()


@pytest.mark.filterwarnings("ignore::privspan.NotPrivateWarning", "ignore::privspan.NoSpreadWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_same_fit_and_the_same_scores_from_every_door(name, tmp_path):
    rows = np.random.default_rng(0).normal(size=(3000, 3)) * [3.0, 2.0, 1.0]
    table = pa.table({f"c{j}": rows[:, j] for j in range(3)})
    fitted = ESTIMATORS[name]().fit(rows)
    expected = fitted.transform(rows)
    for door, make in DOORS.items():
        model = ESTIMATORS[name]().fit(make(table, tmp_path))
        assert bits(model.release_) == bits(fitted.release_), door
        scores = model.transform(make(table, tmp_path))  # not released: the order in memory has a say in last bits
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12, err_msg=door)


@pytest.mark.parametrize("door", [door for door in DOORS if door not in ("NumPy", "NumPy, by columns")])
def test_names_come_along(door, tmp_path):
    table = pa.table({"age": np.arange(40.0), "bmi": np.arange(40.0) % 7})
    model = ps.PrivatePCA(1, **BUDGET).fit(DOORS[door](table, tmp_path))
    nameless = door in (".npy", ".npz", ".zarr")
    assert list(getattr(model, "feature_names_in_", [])) == ([] if nameless else ["age", "bmi"])
