"""What no table could make sense of is refused when settings are made."""

import math

import pytest

from privspan.pca import PCASettings


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"k": 0}, "k"),
        ({"k": 1.5}, "k"),
        ({"k": math.nan}, "k"),
        ({"k": "many"}, "k"),
        ({"robust": 1}, "robust"),
        ({"center": None}, "center"),
        ({"scale": 2}, "scale"),
        ({"scale": "z"}, "scale"),
        ({"missing": "drop"}, "missing"),
        ({"method": "exact"}, "method"),
        ({"gamma": 2.0}, "gamma"),
        ({"around": 0.0, "center": False}, "around"),
        ({"units": {"a": 1.0}, "scale": True}, "units"),
    ],
)
def test_choices_that_make_no_sense_are_refused_by_name(wrong, words):
    with pytest.raises((TypeError, ValueError), match=f"`{words}"):
        PCASettings(**({"k": 2} | wrong))


def test_which_course_is_meant():
    assert PCASettings(2).everyday
    assert PCASettings(0.9).share == 0.9
    assert PCASettings(2, scale="ranks").standardised
    assert not any(PCASettings(2, **one).everyday for one in ({"robust": True}, {"center": False}, {"scale": True}))
