"""Released values are copies that nobody changes, equal by value, and plain in JSON."""

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

from privspan._lib.frozen import FrozenMapping, plain

VALUES = {"array": np.arange(3.0), "gap": np.array([np.nan]), "nested": {"list": [1, [2.5]]}, "half": Fraction(1, 2)}


def test_what_is_inside_is_a_copy_that_cannot_be_changed():
    array, inner = np.zeros(2), [1]
    frozen = FrozenMapping({"array": array, "inner": {"list": inner}})
    array[0], inner[0] = 9.0, 9
    assert frozen["array"].tolist() == [0.0, 0.0]
    assert frozen["inner"]["list"] == (1,)
    with pytest.raises(ValueError, match="read-only"):
        frozen["array"][0] = 1.0
    with pytest.raises(AttributeError, match="read-only"):
        frozen._values = {}


def test_equal_values_are_equal_through_a_pickle_and_other_shapes_or_types_are_not():
    frozen = FrozenMapping(VALUES)
    assert pickle.loads(pickle.dumps(frozen)) == frozen == VALUES
    for changed in ({"array": np.arange(4.0)}, {"array": np.arange(3)}, {"array": [0.0, 1.0, 2.0]}, {"gap": 0.0}):
        assert frozen != {**VALUES, **changed}
    assert frozen != {"array": VALUES["array"]}


def test_plain_values_are_those_of_json():
    told = plain(FrozenMapping({**VALUES, "many": np.float64(2.0), "far": float("inf")}))
    assert json.loads(json.dumps(told)) == told
    assert told["nested"] == {"list": [1, [2.5]]}
    assert (told["gap"], told["half"], told["many"], told["far"]) == (["nan"], "1/2", 2.0, "inf")
