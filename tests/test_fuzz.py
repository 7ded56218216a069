"""Every public function on tables of every make: an answer, or a refusal that follows from public facts alone.

The rules are in `fuzzing.judged`.  The quick suite runs a sample; ``make test-slow`` runs more than 20,000 cases.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import TELLTALE, Hang, Table, alarm, budgets, dimensions, judged, mostly, outcome, seeds, tables
from hypothesis import given, settings
from hypothesis import strategies as st

import privspan
from privspan import ApproximateSubspace, BoostedSubspace, ExactSubspace, PrivatePCA, Subspace, baselines
from privspan.algorithms.adaptive import adaptive_subspace
from privspan.algorithms.mean import pair_differences
from privspan.algorithms.private import PRIVATE_METHODS
from privspan.algorithms.spectrum import explained_variance

QUICK = 7  # cases of each target in the quick suite

small = mostly(st.one_of(st.none(), st.integers(1, 6), st.just(np.int32(4))), 0, -3, 50, 1.5, "two")
share = mostly(st.one_of(st.none(), st.floats(1e-6, 0.99)), 0.0, 1.0, -1.0, np.nan, "much")
length = mostly(st.one_of(st.floats(0.01, 100.0), st.sampled_from([1e-300, 1e300, 5e-324, 3])), 0.0, -1.0, np.inf)


def given_options(function: Any, **options: Any) -> Any:
    """Return a strategy of calls of one table: the function with drawn dimension, budget, options and seed."""

    def calls(table: Table) -> Any:
        return st.builds(
            lambda k, budget, rng, more: lambda X: function(X, k, **budget, rng=rng, **more),
            dimensions(table),
            budgets(),
            seeds(),
            st.fixed_dictionaries({}, optional=options),
        )

    return calls


def without_dimension(function: Any, **options: Any) -> Any:
    """Do the same for functions that take no dimension."""

    def calls(table: Table) -> Any:
        return st.builds(
            lambda budget, rng, more: lambda X: function(X, **budget, rng=rng, **more),
            budgets(),
            seeds(),
            st.fixed_dictionaries({}, optional=options),
        )

    return calls


def fitted(estimator: Any, **options: Any) -> Any:
    """Do the same for an estimator: fit, transform and back."""

    def run(X: Any, k: Any, rng: Any = None, **parameters: Any) -> None:
        model = estimator(k, random_state=rng, **parameters).fit(X)
        model.inverse_transform(model.transform(X))
        model.get_feature_names_out()
        assert not TELLTALE.search(repr(model.release_))

    return given_options(run, **options)


def with_subspace(function: Any, **options: Any) -> Any:
    """Do the same for functions that work within a subspace, of a drawn dimension and maybe affine."""

    def run(X: Any, k: Any, affine: bool = False, misfit: bool = False, **more: Any) -> None:
        d = np.shape(X)[1] if np.ndim(X) == 2 else X.shape[1]
        basis = np.eye(d + misfit)[:, : max(1, min(int(k), d))] if type(k) is int else np.eye(d)
        function(X, Subspace(basis, offset=np.full(d + misfit, 0.5) if affine else None), **more)

    return given_options(run, affine=st.booleans(), misfit=st.sampled_from([False, False, False, True]), **options)


def regression(X: Any, **options: Any) -> Any:
    """Regress the first column, or what comes of it, on the table."""
    column = X.tocsc()[:, [0]].toarray() if hasattr(X, "tocsc") else np.asarray(X)[:, :1]
    return privspan.private_regression(X, column[:, 0].ravel(), **options)


def on_subspace(X: Any, subspace: Subspace, *, epsilon: Any, delta: Any, rng: Any) -> None:
    """Use the plain arithmetic of a subspace."""
    projected, coordinates = subspace.project(X), subspace.coordinates(X)
    assert projected.shape[1] == subspace.ambient_dimension
    assert coordinates.shape[1] == subspace.dimension


EXACT = {
    "method": st.sampled_from(["auto", "gap-max", "votes"]),
    "rule": st.sampled_from(["majority", "gap"]),
    "release": st.sampled_from(["optimal", "truncated-laplace"]),
    "affine": st.booleans(),
    "decimals": mostly(st.sampled_from([None, 0, np.int64(2)]), 300, 301, -1),
    "block_size": small,
    "max_work": mostly(st.sampled_from([10**5, np.int64(10**4)]), 10**3, 1, 0),
}
BLOCKS = {"gamma": share, "block_size": small}
BOOSTED = {
    "alpha": mostly(st.sampled_from([0.5, 0.1]), 2.0),
    "beta": mostly(st.sampled_from([0.31, 0.05]), 0.0),
    "block_size": small,
    "aggregate": st.sampled_from(["stable", "histogram"]),
}
AUTO = {"max_components": mostly(st.integers(1, 4), 12, 0, None)}


def chosen(function: Any) -> Any:
    """Let a function choose the dimension itself."""
    return lambda X, k, **options: function(X, "auto", **{"max_components": 2} | options)


TARGETS: dict[str, Any] = {
    "exact": given_options(
        privspan.exact_subspace, **EXACT, max_bits=mostly(st.sampled_from([256, np.int64(64)]), 4096, 3)
    ),
    "approximate, stable": given_options(privspan.approximate_subspace, **BLOCKS, shuffle=st.booleans()),
    "approximate, histogram": given_options(
        lambda X, k, **more: privspan.approximate_subspace(X, k, aggregate="histogram", **more), **BLOCKS
    ),
    "approximate, any k": given_options(chosen(privspan.approximate_subspace), **AUTO, block_size=small),
    "stable": given_options(
        privspan.stable_subspace,
        full_level=small,
        ramp=small,
        movers=small,
        signal=length,
        spread=length,
        ridge=length,
    ),
    "boosted": given_options(lambda X, k, **more: privspan.boosted_subspace(X, k, **DEFAULTS | more), **BOOSTED),
    "adaptive": given_options(
        adaptive_subspace, robust=st.booleans(), first_share=share, most_rounds=mostly(st.integers(1, 5), 0)
    ),
    "private_mean": without_dimension(privspan.private_mean, norm_bound=length),
    "private_mean, subspace": with_subspace(privspan.private_mean, norm_bound=length),
    "regression": without_dimension(
        lambda X, **more: regression(X, **{"norm_bound": 2.0, "target_bound": 1.0} | more),
        norm_bound=length,
        target_bound=length,
    ),
    "explained_variance": with_subspace(explained_variance, norm_bound=length),
    "pair_differences": without_dimension(lambda X, epsilon, delta, rng: pair_differences(X, rng)),
    "Subspace arithmetic": with_subspace(on_subspace),
    "PrivatePCA": fitted(
        PrivatePCA,
        center=st.booleans(),
        method=st.sampled_from(PRIVATE_METHODS),
        gamma=share,
        norm_bound=length,
    ),
    "PrivatePCA, any k": given_options(chosen(lambda X, k, **more: run_pca(X, k, **more)), **AUTO),
    "ExactSubspace": fitted(ExactSubspace, **EXACT),
    "ApproximateSubspace": fitted(ApproximateSubspace, **BLOCKS, aggregate=st.sampled_from(["stable", "histogram"])),
    "BoostedSubspace": fitted(lambda k, **more: BoostedSubspace(k, **DEFAULTS | more), **BOOSTED),
}
DEFAULTS = {"alpha": 0.5, "beta": 0.31}
for method in PRIVATE_METHODS:
    call = lambda X, k, method=method, **more: privspan.private_subspace(X, k, method=method, **more)  # noqa: E731
    TARGETS[f"private_subspace, {method}"] = given_options(call, gamma=share)
OPTIONS = {
    "additive_wishart": {"degrees": small},
    "inverse_wishart": {"degrees": small},
    "johnson_lindenstrauss": {"draws": small},
    "friendly_core": {"radius": length, "block_size": small},
    "noisy_power": {"rounds": small, "directions": small},
    "noisy_range_finder": {"sketch": small},
}
for name in baselines.__all__:
    TARGETS[f"baseline {name}"] = given_options(getattr(baselines, name), **OPTIONS.get(name, {}))


# Cases in the long run of what takes a tenth of a second and more; the others have 700.
COSTLY = {
    "PrivatePCA": 250,
    "PrivatePCA, any k": 200,
    "ExactSubspace": 350,
    "baseline additive_wishart": 50,
    "baseline smooth_sensitivity": 300,
    "baseline friendly_core": 300,
}
MANY_ROWS = {"approximate, histogram": 6000, "boosted": 1500, "baseline friendly_core": 1500}  # few are refused


def run_pca(X: Any, k: Any, rng: Any, **parameters: Any) -> None:
    """Fit with a dimension that is chosen privately."""
    PrivatePCA(k, random_state=rng, **parameters).fit(X)


def fuzz(target: str, cases: int) -> None:
    """Judge so many cases of one target."""

    @settings(max_examples=cases)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        table = data.draw(tables(most_rows=MANY_ROWS.get(target, 250)), label="table")
        judged(data.draw(TARGETS[target](table), label="call"), table)

    run()


@pytest.mark.parametrize("target", TARGETS)
def test_a_sample(target: str) -> None:
    fuzz(target, 3 if target in COSTLY else QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_many(target: str) -> None:
    fuzz(target, COSTLY.get(target, 700))


# --- Functions of public values --------------------------------------------------------------------------


def make_subspace(X: Any, *, spanning: bool, offset: Any, names: Any) -> None:
    """Build a subspace of any table, and use everything that it can do."""
    subspace = (Subspace.from_spanning if spanning else Subspace)(X, offset=offset, names=names)
    assert subspace == pickle.loads(pickle.dumps(subspace))
    assert subspace.distance(subspace) < 1e-12
    assert subspace.angles(subspace).shape == (subspace.dimension,)
    assert subspace.projector().shape == (subspace.ambient_dimension,) * 2
    if subspace.dimension < subspace.ambient_dimension:
        assert subspace.complement().dimension == subspace.ambient_dimension - subspace.dimension
    with tempfile.TemporaryDirectory() as folder:
        assert Subspace.load(subspace.save(Path(folder) / "subspace")) == subspace
    with pytest.raises(ValueError, match="exact"):
        subspace.relations()


def fuzz_subspaces(cases: int) -> None:
    @settings(max_examples=cases)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        table = data.draw(tables())
        offset = data.draw(
            mostly(
                st.none(), np.zeros(table.n), np.full(table.n, np.nan), [1.0], ["x7.0123"], np.zeros(table.n, "c8")
            )
        )
        names = data.draw(mostly(st.none(), [f"c{i}" for i in range(table.n)], ["a"], [1] * table.n))
        spanning = data.draw(st.booleans())
        # For public vectors: what is raised may depend on their values.
        outcome(lambda X: make_subspace(X, spanning=spanning, offset=offset, names=names), table.make())

    run()


def fuzz_plans(cases: int) -> None:
    sizes = mostly(st.one_of(st.integers(1, 50), st.integers(1, 10**7)), 0, -1, 10**15, 2**80, 3.0, np.int32(7), None)

    @settings(max_examples=cases)
    @given(sizes, sizes, mostly(st.integers(1, 12), 0, 10**6, "auto"), budgets(), share, st.sampled_from([0.01, 0.3]))
    def run(n: Any, d: Any, k: Any, budget: Any, gamma: Any, wanted: float) -> None:
        def call(_: Any) -> None:
            plan = privspan.plan(n, d, k, **budget, gamma=gamma)
            assert 0.0 <= plan.error <= 1.0
            assert 0.0 <= plan.abstention <= 1.0
            assert plan.method in str(plan)
            needed = plan.needed_n(wanted)
            assert needed is None or needed >= 1

        outcome(call, None)

    run()


def test_a_sample_of_subspaces_and_plans() -> None:
    fuzz_subspaces(40)
    fuzz_plans(15)


@pytest.mark.slow
def test_many_subspaces() -> None:
    fuzz_subspaces(1000)


@pytest.mark.slow
def test_many_plans() -> None:
    fuzz_plans(500)


# --- The judge itself ------------------------------------------------------------------------------------

NORMAL = Table(20, 3, "f8", "C", "normal", "array", 0)


def raise_with(X: Any) -> None:
    raise ValueError(f"bad value {X.max()}")


def raise_from(X: Any) -> None:
    try:
        float(f"x{X.max()}")
    except ValueError:
        raise TypeError("not a number.") from ValueError(str(X.max()))


def change(X: Any) -> None:
    X[0, 0] = 1.0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (raise_with, "a cell is in the message"),
        (raise_from, "a cell is in the message"),
        (change, "modified"),
        (lambda X: np.log(X), "invalid value"),
        (lambda X: 1 // bool(np.any(X)) if not np.any(X) else None, "division"),
        (lambda X: int("many") if np.any(X) else None, "depends on values"),
    ],
)
def test_the_judge_finds_planted_faults(call: Any, says: str) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError), match=says):
        judged(call, NORMAL)


def test_the_judge_does_not_wait_for_ever() -> None:
    with pytest.raises(Hang), alarm(0.05):
        time.sleep(5.0)


@pytest.mark.parametrize("dtype", ["i2", "i8", "u8", "f2", "f4", "f8", ">f8", "O", "U8", "c16"])
def test_the_planted_number_would_be_recognised(dtype: str) -> None:
    cells = Table(5, 2, dtype, "C", "integers" if dtype[0] in "iu" else "normal", "array", 0).make()
    assert any(TELLTALE.search(str(cell)) for cell in cells.ravel().tolist())
    assert not any(TELLTALE.search(str(cell)) for cell in Table(5, 2, dtype, "C", "zeros", "array", 0).make().ravel())
