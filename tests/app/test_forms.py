"""What is typed becomes values, or a sentence beside its field."""

from decimal import Decimal

import pytest

from privspan.app.forms import Form


def test_a_body_is_read_as_a_browser_writes_it() -> None:
    form = Form.of(b"a=1+2&b=%CE%B5&c=&a=3")
    assert (form.raw("a"), form.raw("b"), form.raw("c"), form.raw("d")) == ("3", "ε", "", "")
    assert form.ticked("c")
    assert not form.ticked("d")


@pytest.mark.parametrize("body", [b"\xff", b"&".join(b"a%d=" % at for at in range(20_001))], ids=["bytes", "many"])
def test_a_body_that_no_form_of_ours_makes_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"ascii|Max number"):
        Form.of(body)


@pytest.mark.parametrize(
    ("typed", "value"),
    [("1", "1"), (" 0.50 ", "0.50"), ("1e-6", "0.000001"), ("3.", "3"), (".5", "0.5")],
)
def test_amounts_are_the_decimals_that_were_typed(typed: str, value: str) -> None:
    form = Form({"epsilon": typed})
    assert form.amount("epsilon", Decimal(9)) == Decimal(value)
    assert form.mistakes == {}


@pytest.mark.parametrize("typed", ["", "x", "-1", "0", "nan", "inf", "1_0", "\uff11", "1,5", "1e400", "9" * 2_000])
def test_what_is_no_amount_is_told_of_and_the_old_one_stays(typed: str) -> None:
    form = Form({"epsilon": typed})
    assert form.amount("epsilon", Decimal(9)) == 9
    assert "epsilon" in form.mistakes


@pytest.mark.parametrize("typed", ["1", "1.5", "0"])
def test_a_delta_is_below_one(typed: str) -> None:
    form = Form({"delta": typed})
    assert form.amount_or_none("delta", below_one=True) is None
    assert "between 0 and 1" in form.mistakes["delta"]
    assert Form({}).amount_or_none("delta") is None


@pytest.mark.parametrize(
    ("typed", "value"), [("3", 3), ("1e1", 10), ("0", None), ("2.5", None), ("11", None), ("", None)]
)
def test_whole_numbers_lie_in_their_range(typed: str, value: int | None) -> None:
    form = Form({"k": typed})
    assert form.whole("k", 1, 10, 7) == (7 if value is None else value)
    assert ("k" in form.mistakes) is (value is None)


def test_lines_choices_and_bounds() -> None:
    form = Form({"by": "a\nb", "use": "other", "low": "-1.5", "high": "x", "long": "a" * 301})
    form.line("by")
    form.line("long")
    assert form.choice("use", ("number", "skip"), "skip") == "skip"
    assert form.choice("none", ("number", "skip"), "number") == "number"
    assert (form.finite("low"), form.finite("high"), form.finite("none")) == ("-1.5", None, None)
    assert set(form.mistakes) == {"by", "long", "use", "high"}
    form.wrong("by", "another")
    assert form.mistakes["by"] != "another"
