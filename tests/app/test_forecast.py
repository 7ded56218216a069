"""The picture of a forecast, and what a budget means in words."""

from decimal import Decimal

import pytest

from privspan.app.answers import Price, Question
from privspan.app.facts import Size
from privspan.app.forecast import meaning, picture
from privspan.planner import plan

SIZE = Size(6_000, 10, "persons")


@pytest.mark.parametrize("scale", [True, False])
def test_bars_are_the_plans_around_the_epsilon_that_was_asked_for(scale: bool) -> None:
    drawn = picture(SIZE, Question(k=2, scale=scale), Price(Decimal("0.5")))
    assert all(f"ε = {epsilon}" in drawn for epsilon in ("0.05", "0.15", "0.5", "1.5", "5"))
    assert drawn.count("▸") == 2  # beside its bar, and in the title of that
    here = plan(6_000, 10, 2, epsilon=0.5, delta=1e-6, scale=scale)
    said = f"{here.captured:.0%}".replace("%", "\u00a0%") if scale else "° off"
    assert said in drawn
    assert drawn.count("bar faint") == 4


def test_what_cannot_be_drawn_is_told() -> None:
    assert "are not possible" in picture(SIZE, Question(k=11), Price())
    assert "Expected to be useless" in picture(Size(40, 300, "rows"), Question(), Price(Decimal("0.1")))
    assert "ε = 1e4" not in picture(SIZE, Question(), Price(Decimal("5000")))  # beyond what can be spent


def test_a_budget_is_told_in_the_words_of_the_report() -> None:
    said = meaning(Price())
    assert "ε = 1 is a strong promise." in said
    assert "73.2\u00a0%" in said
    assert "From the report they name the right one" in said
    assert "δ, one in 1,000,000," in said
