"""The sheet of a release: claims rounded up, none for a seed."""

import json
from decimal import localcontext
from fractions import Fraction

import numpy as np

import privspan as ps
from privspan.cli import main

X = np.random.default_rng(0).standard_normal((2_000, 4)) * [3, 2, 1, 1]


def test_a_sheet_claims_no_less_than_the_release(tmp_path, capsys) -> None:
    release = ps.private_pca(X, 2, epsilon=0.7, delta=1e-6)
    said = release.sheet()
    gaussian, plain, empty, less = said["claims"]
    assert [claim["relation"] for claim in said["claims"]] == ["replace-one"] * 2 + ["zero-out"] * 2
    assert (said["relation"], said["unit"], said["private"]) == ("replace-one", "row", True)
    assert said["public"] == {"n": 2_000, "d": 4, "k": 2}
    claimed = [(gaussian["mu"], release.cost.mu), (gaussian["delta_aside"], release.cost.delta_aside)]
    claimed += [(plain["epsilon"], 0.7), (plain["delta"], 1e-6)]
    told = release.cost.zero_out()
    claimed += [(empty["mu"], told.mu), (less["epsilon"], told.epsilon), (less["delta"], 1e-6)]
    assert told.mu < 0.8 * release.cost.mu
    assert told.epsilon < 0.55
    for text, exact in claimed:
        assert Fraction(exact) <= Fraction(text) <= Fraction(exact) * (1 + Fraction(1, 10**6))
    assert [part["name"] for part in said["parts"]] == [part.name for part in release.cost.parts]
    path = release.save(tmp_path / "a.npz")
    assert main(["show", str(path), "--sheet"]) == 0
    assert json.loads(capsys.readouterr().out) == said


def test_a_seed_and_persons() -> None:
    assert ps.private_pca(X, 2, epsilon=1.0, delta=1e-6, rng=0).sheet()["claims"] == []
    exact = ps.exact_subspace(X, 2, epsilon=1.0, delta=1e-6)
    assert [claim["kind"] for claim in exact.sheet()["claims"]] == ["approximate-dp"] * 2
    assert len({claim["epsilon"] for claim in exact.sheet()["claims"]}) == 1


def test_the_context_of_the_caller_rounds_nothing() -> None:
    release = ps.private_pca(X, 2, epsilon=0.777777, delta=1e-6)
    said = release.sheet()
    with localcontext() as context:
        context.prec = 3
        assert release.sheet() == said
