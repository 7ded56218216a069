"""Releases stay what they are: copies, read-only values, words and JSON."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pytest

from privspan.privacy import Budget, Part, PrivacyCost, Release
from privspan.subspace import Subspace


@pytest.fixture
def release():
    return Release(
        subspace=Subspace(np.eye(4)[:, :2]),
        cost=Budget(1, 1e-6).cost(Part("vote", 1, 1e-6)),
        method="votes",
        parameters={"k": 2, "sizes": [3, 4], "sketch": np.arange(3.0), "nested": {"a": np.float64(1.5)}},
        extras={"spectrum": np.array([2.0, np.nan]), "nothing": math.nan},
    )


def test_release_holds_read_only_copies():
    sizes, sketch = [1, 2], np.zeros(3)
    given_parameters = {"sizes": sizes, "sketch": sketch}
    release = Release(None, PrivacyCost(1, 0), "votes", given_parameters)
    sizes.append(3)
    sketch[0] = 9
    given_parameters["new"] = 1
    assert release.parameters["sizes"] == (1, 2)
    assert release.parameters["sketch"][0] == 0
    assert set(release.parameters) == {"sizes", "sketch"}
    with pytest.raises(TypeError):
        release.parameters["k"] = 1
    with pytest.raises(AttributeError):
        release.parameters._values = {}
    with pytest.raises(ValueError, match="read-only"):
        release.parameters["sketch"][0] = 1
    with pytest.raises(AttributeError):
        release.method = "other"
    assert dict(release.extras) == {}


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
def test_release_can_be_copied_and_pickled(release, duplicate):
    twin = duplicate(release)
    assert twin == release
    assert not twin.parameters["sketch"].flags.writeable
    assert not twin.subspace.basis.flags.writeable


def test_releases_compare_by_value(release):
    def changed(**values):
        fields = {"subspace", "cost", "method", "parameters", "private", "extras"}
        return Release(**({name: getattr(release, name) for name in fields} | values))

    assert changed() == release
    assert changed(private=False) != release
    assert changed(subspace=None) != release
    assert changed(parameters={}) != release
    assert changed(parameters=dict(release.parameters) | {"sketch": np.arange(4.0)}) != release
    assert changed(parameters=dict(release.parameters) | {"sketch": np.arange(3)}) != release
    assert changed(parameters=dict(release.parameters) | {"sketch": 0.0}) != release
    assert changed(parameters=dict(release.parameters) | {"sizes": [3, 5]}) != release
    assert release.parameters == dict(release.parameters)
    assert release.parameters != 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(release)


def test_abstention(release):
    assert not release.abstained
    nothing = Release(None, PrivacyCost(1, 1e-6), "votes")
    assert nothing.abstained
    assert nothing.to_dict()["subspace"] is None
    assert "abstained" in repr(nothing)
    assert "abstained" in str(nothing)
    assert nothing.to_dict()["cost"]["epsilon"] == 1.0


def test_release_as_json(release):
    values = json.loads(json.dumps(release.to_dict(), allow_nan=False))
    assert values["method"] == "votes"
    assert values["parameters"] == {"k": 2, "sizes": [3, 4], "sketch": [0, 1, 2], "nested": {"a": 1.5}}
    assert values["extras"] == {"spectrum": [2.0, "nan"], "nothing": "nan"}
    assert values["subspace"] == {"dimension": 2, "ambient_dimension": 4, "affine": False, "exact": False}
    assert PrivacyCost.from_dict(values["cost"]) == release.cost


def test_release_in_words(release):
    expected = (
        "<Release 'votes': Subspace(dimension=2, ambient_dimension=4), (1, 1e-06)-DP, replace-one, private=True, "
        "extras: spectrum, nothing>"
    )
    assert repr(release) == expected
    assert "privacy: (1, 1e-06)-DP, replace-one" in str(release)
    assert "  k: 2" in str(release)
    seeded = Release(None, release.cost, "votes", private=False)
    assert "privacy: none: a seed was given" in str(seeded)
    assert "private=False" in repr(seeded)


def test_release_checks_its_fields():
    with pytest.raises(TypeError, match="`subspace` must be a Subspace or None; got ndarray"):
        Release(np.eye(2), PrivacyCost(1, 0), "votes")
    with pytest.raises(TypeError, match="`cost` must be a PrivacyCost; got tuple"):
        Release(None, (1, 0), "votes")
