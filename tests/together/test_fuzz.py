"""Every public function on tables of every make: an answer, or a refusal that follows from public facts alone.

The rules are in `fuzzing.judged`.  The quick suite runs a sample; ``make test-slow`` runs more than 20,000 cases.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import (
    ODD_SHAPES,
    TELLTALE,
    USUAL_SHAPE,
    WRAPS,
    Hang,
    Table,
    alarm,
    budgets,
    dimensions,
    fingerprint,
    judged,
    mostly,
    outcome,
    seeds,
    tables,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from public_functions import SPENDING
from runs import seeded

import privspan
from privspan import (
    PrivatePCA,
    PrivateStandardScaler,
    PrivateSubspace,
    Subspace,
    baselines,
)
from privspan.blocks.rank import choose_dimension
from privspan.privacy.randomness import open_streams
from privspan.private import PRIVATE_METHODS
from privspan.rows.door import open_table
from privspan.stable.plan import STABLE_PRESETS, StableSplit
from privspan.sums.adaptive import adaptive_subspace
from privspan.sums.pairs import pair_differences
from privspan.sums.variance import explained_variance

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


def by_method(method: str, **defaults: Any) -> Any:
    """Return `PrivateSubspace` by a method, whose arguments are its options."""

    def made(k: Any, *, epsilon: Any, delta: Any, random_state: Any, **more: Any) -> Any:
        budget = {"epsilon": epsilon, "delta": delta, "random_state": random_state}
        return PrivateSubspace(k, **budget, method=method, options=defaults | more)

    return made


def with_subspace(function: Any, **options: Any) -> Any:
    """Do the same for functions that work within a subspace, of a drawn dimension and maybe affine."""

    def calls(table: Table) -> Any:
        return st.builds(
            lambda subspace, budget, rng, more: lambda X: function(X, subspace, **budget, rng=rng, **more),
            subspaces_for(table),
            budgets(),
            seeds(),
            st.fixed_dictionaries({}, optional=options),
        )

    return calls


def subspaces_for(table: Table) -> Any:
    """Draw a subspace, mostly of the space that the rows of the table lie in."""
    return st.builds(
        lambda d, k, affine: Subspace(np.eye(d)[:, : min(k, d)], offset=np.full(d, 0.5) if affine else None),
        mostly(st.just(table.d), table.d + 1, times=5),
        st.integers(1, table.d),
        st.booleans(),
    )


def regressions(table: Table) -> Any:
    """Draw regressions of a target of its own make, mostly as long as the table, in a subspace or not."""
    target = st.builds(
        replace,
        tables(),
        n=mostly(st.just(table.n), 1, table.n + 1),
        d=st.just(1),
        wrap=st.sampled_from(["array", "array", "list"]),
        shape=mostly(st.just("vector"), USUAL_SHAPE, "no rows", "cube", "number"),
    )
    options = {"norm_bound": length, "target_bound": length, "subspace": subspaces_for(table)}
    return st.builds(
        lambda target, budget, rng, more: lambda X: regression(X, target, **budget, rng=rng, **more),
        target,
        budgets(),
        seeds(),
        st.fixed_dictionaries({}, optional=options),
    )


def regression(X: Any, target: Table, **options: Any) -> None:
    """Regress a target on the table, and zeros of its make: what is raised must not depend on the target either."""
    options = {"norm_bound": 2.0, "target_bound": 1.0} | options
    y, zeros = target.make(), target.zeros().make()
    before = fingerprint(y)
    raised = [refusal(lambda y=y: privspan.private_regression(X, y, **options)) for y in (y, zeros)]
    assert fingerprint(y) == before, "the target was modified"
    assert target.wrap == "list" or repr(raised[0]) == repr(raised[1]), "what is raised depends on the target"
    if raised[0] is not None:
        raise raised[0]


def classifiers(call: Any) -> Any:
    """Draw classifiers of a label of its own make, mostly as long as the table."""

    def calls(table: Table) -> Any:
        label = st.builds(
            replace,
            tables(),
            n=mostly(st.just(table.n), 1, table.n + 1),
            d=st.just(1),
            wrap=st.sampled_from(["array", "array", "list"]),
            shape=mostly(st.just("vector"), USUAL_SHAPE, "no rows", "cube", "number"),
        )
        return st.builds(
            lambda label, budget, rng, more: lambda X: classified(call, X, label, **budget, rng=rng, **more),
            label,
            budgets(),
            seeds(),
            st.fixed_dictionaries({}, optional={"subspace": subspaces_for(table)}),
        )

    return calls


def classified(call: Any, X: Any, label: Table, **options: Any) -> None:
    """Classify by a label, and by zeros of its make: what is raised must not depend on the label either."""
    y, zeros = label.make(), label.zeros().make()
    before = fingerprint(y)
    raised = [refusal(lambda y=y: call(X, y, **options)) for y in (y, zeros)]
    assert fingerprint(y) == before, "the label was modified"
    assert label.wrap == "list" or repr(raised[0]) == repr(raised[1]), "what is raised depends on the label"
    if raised[0] is not None:
        raise raised[0]


def refusal(call: Any) -> Exception | None:
    try:
        call()
    except (ValueError, TypeError) as error:
        return error
    return None


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
weight = mostly(st.floats(1e-6, 50.0), 0.0, -1.0, np.nan, np.inf, "much", None)
SPLIT = mostly(
    st.dictionaries(st.sampled_from([field.name for field in fields(StableSplit)]), weight, max_size=3),
    {"nothing": 1.0},
    {1: 1.0},
)
LEVELS = {
    "full_level": small,
    "ramp": small,
    "movers": small,
    "signal": length,
    "spread": length,
    "ridge": length,
    "split": SPLIT,
}
BOOSTED = {
    "alpha": mostly(st.sampled_from([0.5, 0.1]), 2.0),
    "beta": mostly(st.sampled_from([0.31, 0.05]), 0.0),
    "block_size": small,
    "aggregate": st.sampled_from(["stable", "histogram"]),
}
PCA = {
    "center": st.booleans(),
    "method": st.sampled_from(PRIVATE_METHODS),
    "gamma": share,
    "norm_bound": length,
}
AUTO = {"max_components": mostly(st.integers(1, 4), 12, 0, None)}

MAP = {
    "components": mostly(st.sampled_from([(0, 1), (1, 0), [0, 1]]), (0, 0), (0, 99), (0,), "01", None, 1),
    "bins": mostly(st.one_of(small, st.sampled_from([(3, 5), 30])), 0, (1, 2, 3), 5000, 2.5),
    "ranges": mostly(
        st.sampled_from([None, ((-1, 1), (-1.5, 2))]), (0, 1), ((1, 0), (0, 1)), ((0, np.inf), (0, 1)), "x"
    ),
}


def chosen(function: Any) -> Any:
    """Let a function choose the dimension itself."""
    return lambda X, k, **options: function(X, "auto", **{"max_components": 2} | options)


# The name of the function, and after a comma what is special about the calls.
TARGETS: dict[str, Any] = {
    "exact_subspace": given_options(
        privspan.exact_subspace, **EXACT, max_bits=mostly(st.sampled_from([256, np.int64(64)]), 4096, 3)
    ),
    "approximate_subspace, stable": given_options(
        privspan.approximate_subspace,
        **BLOCKS,
        shuffle=st.booleans(),
        options=mostly(st.fixed_dictionaries({}, optional=LEVELS), {"references": 2}),
    ),
    "approximate_subspace, histogram": given_options(
        lambda X, k, **more: privspan.approximate_subspace(X, k, aggregate="histogram", **more),
        **BLOCKS,
        options=mostly(st.fixed_dictionaries({}, optional={"references": small}), {"ramp": 2}),
    ),
    "approximate_subspace, any k": given_options(chosen(privspan.approximate_subspace), **AUTO, block_size=small),
    "stable_subspace": given_options(
        privspan.stable_subspace,
        **LEVELS,
        preset=mostly(st.sampled_from(STABLE_PRESETS), "loose", None),
    ),
    "boosted_subspace": given_options(
        lambda X, k, **more: privspan.boosted_subspace(X, k, **DEFAULTS | more), **BOOSTED
    ),
    "adaptive_subspace": given_options(
        adaptive_subspace, robust=st.booleans(), first_share=share, most_rounds=mostly(st.integers(1, 5), 0)
    ),
    "private_mean": without_dimension(privspan.private_mean, norm_bound=length),
    "private_mean, subspace": with_subspace(
        lambda X, subspace, **more: privspan.private_mean(X, subspace=subspace, **more), norm_bound=length
    ),
    "private_regression": regressions,
    "private_classifier": classifiers(
        lambda X, y, **options: privspan.private_classifier(X, y, classes=(0, 1), **options)
    ),
    "PrivateLogisticRegression": classifiers(
        lambda X, y, rng, **options: privspan.PrivateLogisticRegression((0, 1), random_state=rng, **options).fit(X, y)
    ),
    "private_scales": without_dimension(privspan.private_scales, center=st.booleans()),
    "private_scales, bounds": without_dimension(
        lambda X, **more: privspan.private_scales(X, bounds={0: (0.0, 1.0)}, **more), center=st.booleans()
    ),
    "private_score_map": with_subspace(privspan.private_score_map, **MAP),
    "explained_variance": with_subspace(explained_variance, norm_bound=length),
    "choose_dimension": given_options(
        lambda X, k, epsilon, delta, rng, **more: choose_dimension(
            open_table(X), k, epsilon=epsilon, run=seeded(rng), **more
        ),
        block_size=small,
    ),
    "pair_differences": without_dimension(
        lambda X, epsilon, delta, rng: pair_differences(X, open_streams(rng).public)
    ),
    "Subspace arithmetic": with_subspace(on_subspace),
    "private_pca": given_options(privspan.private_pca, **PCA),
    "private_pca, any k": given_options(chosen(privspan.private_pca), **AUTO),
    "PrivatePCA": fitted(PrivatePCA, **PCA),
    "PrivatePCA, any k": given_options(chosen(lambda X, k, **more: run_pca(X, k, **more)), **AUTO),
    "PrivateStandardScaler": fitted(lambda k, **more: PrivateStandardScaler(**more), with_mean=st.booleans()),
    "PrivateSubspace": fitted(PrivateSubspace, gamma=share, method=st.sampled_from(PRIVATE_METHODS)),
    "PrivateSubspace, exact": fitted(by_method("exact"), **EXACT),
    "PrivateSubspace, approximate": fitted(
        by_method("approximate"), **BLOCKS, aggregate=st.sampled_from(["stable", "histogram"])
    ),
    "PrivateSubspace, boosted": fitted(by_method("boosted", alpha=0.5, beta=0.31), **BOOSTED),
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
    "k_dp_pca": {"steps": small, "single_pass": st.booleans()},
}
for name in baselines.__all__:
    TARGETS[name] = given_options(getattr(baselines, name), **OPTIONS.get(name, {}))


# Cases in the long run of what takes a tenth of a second and more; the others have 700.
COSTLY = {
    "private_pca": 250,
    "private_pca, any k": 200,
    "PrivatePCA": 250,
    "PrivatePCA, any k": 200,
    "PrivateSubspace, exact": 350,
    "additive_wishart": 50,
    "smooth_sensitivity": 300,
    "friendly_core": 300,
}
MANY_ROWS = {
    "approximate_subspace, histogram": 6000,
    "boosted_subspace": 1500,
    "friendly_core": 1500,
}  # few are refused


def run_pca(X: Any, k: Any, rng: Any, **parameters: Any) -> None:
    """Fit with a dimension that is chosen privately."""
    PrivatePCA(k, random_state=rng, **parameters).fit(X)


# Spends a budget, and takes no table from outside: its callers, which are targets, have checked what it is given.
INSIDE = {"permute_and_flip", "private_pair_distance", "releases", "stable_vote"}


def test_whatever_spends_a_budget_is_a_target() -> None:
    """What spends a budget is found by its parameters, so that a new algorithm without a target fails here."""
    spending = {name.rsplit(".", 1)[-1] for name in SPENDING}
    assert spending - {target.partition(",")[0] for target in TARGETS} == INSIDE


def fuzz(target: str, cases: int, **make: str) -> None:
    """Judge so many cases of one target, on tables of any make or of a given one."""

    @settings(max_examples=cases)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        table = replace(data.draw(tables(most_rows=MANY_ROWS.get(target, 250)), label="table"), **make)
        judged(data.draw(TARGETS[target](table), label="call"), table)

    run()


@pytest.mark.parametrize("target", TARGETS)
def test_a_sample(target: str) -> None:
    fuzz(target, 3 if target in COSTLY else QUICK)


@pytest.mark.parametrize(
    "make", [*({"wrap": wrap} for wrap in sorted(set(WRAPS))), *({"shape": s} for s in ODD_SHAPES)]
)
@pytest.mark.parametrize(
    "target", ["exact_subspace", "adaptive_subspace", "private_regression", "PrivateSubspace, approximate"]
)
def test_a_sample_of_every_make(target: str, make: dict[str, str]) -> None:
    """The few cases of the quick suite may not hold a memory map, or a table without rows; these do."""
    fuzz(target, 2, **make)


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
