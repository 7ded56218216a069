"""What is read from a file is of the kind that it is taken for: no truth value passes for a number."""

import math

import pytest

from privspan._lib import strict_json
from privspan._lib.strict_json import AmbiguousError, fields, flag, listed, number, one_of, optional, text, whole

KINDS = {
    "a number from 0 to 1": (number(0, 1), [0, 0.5, 1], [True, False, -1e-9, 1.1, "1", None, [1]]),
    "any number": (number(), [-5, 0.0, 1e308], [True, "0", None, math.inf, -math.inf, math.nan]),
    "a whole number from 1": (whole(1), [1, 10**30], [0, True, 1.0, "1", None]),
    "yes or no": (flag, [True, False], [0, 1, "false", None]),
    "text": (text, ["", "a"], [1, None, ["a"]]),
    "one of two words": (one_of(("a", "b")), ["a"], ["c", None, 1]),
    "two numbers": (listed(number(), 2), [[1, 2]], [[1], [1, 2, 3], [1, "2"], (1, 2), None]),
    "text or nothing": (optional(text), [None, "a"], [0, False]),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_takes_what_it_names_and_nothing_else(name):
    is_of_kind, good, bad = KINDS[name]
    assert all(is_of_kind(value) for value in good)
    assert not any(is_of_kind(value) for value in bad)


@pytest.mark.parametrize("values", [{}, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": "2"}, None, [1, 2]])
def test_fields_are_all_there_of_their_kinds_and_no_others(values):
    assert fields({"a": 1, "b": 2}, a=number(), b=number()) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="field"):
        fields(values, a=number(), b=number())


def test_what_says_two_things_is_refused():
    with pytest.raises(AmbiguousError):
        strict_json.loads('{"a": {"b": 1, "b": 2}}')
    for text_ in ("[NaN]", "[Infinity]", "[" * 100_000):
        with pytest.raises(ValueError, match="it "):
            strict_json.loads(text_)
