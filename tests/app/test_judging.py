"""What is refused and what is weak beforehand, as the library and the ledger have it, without a cell."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from privspan._lib.errors import PrivspanError
from privspan.app.answers import Answers, ColumnAnswer, Price, Question, TableAnswer
from privspan.app.facts import Outline, Size
from privspan.app.judging import forecast, refuse, useless_because, weak_points
from privspan.ledger import Ledger, OverspendError

COLUMNS = (ColumnAnswer("x", "number", low="0", high="1"), ColumnAnswer("y", "number"))
ANSWERS = Answers(TableAnswer("a.csv"), COLUMNS, Question(), Price())
OUTLINE = Outline(Size(5_000, 2, "rows"), ("x", "y"), np.zeros(2, dtype=bool))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.json")


def test_what_can_be_done_is_not_refused_and_nothing_is_written(ledger: Ledger) -> None:
    for asked in (Question(), Question(scale=False), Question("auto"), Question("share", share="0.5")):
        refuse(replace(ANSWERS, question=asked), OUTLINE, ledger, "people")
    assert not ledger.path.exists()


@pytest.mark.parametrize(
    ("answers", "outline", "words"),
    [
        (replace(ANSWERS, question=Question(k=3)), OUTLINE, "at most 2"),
        (replace(ANSWERS, price=Price(epsilon=Decimal("1e-12"))), OUTLINE, "must be between"),
        (ANSWERS, replace(OUTLINE, size=Size(1, 2, "rows")), "at least 2 row"),
        (replace(ANSWERS, columns=(ColumnAnswer("z", "number", low="0", high="1"),)), OUTLINE, "z"),
    ],
)
def test_what_the_library_refuses_is_refused_without_a_cell(answers, outline, words, ledger: Ledger) -> None:
    with pytest.raises(PrivspanError, match=words):
        refuse(answers, outline, ledger, "people")


def test_what_the_ledger_refuses_is_refused(ledger: Ledger) -> None:
    tight = replace(ANSWERS, price=Price(limit_epsilon=Decimal("0.5"), limit_delta=Decimal("1e-5")))
    with pytest.raises(OverspendError):
        refuse(tight, OUTLINE, ledger, "people")
    with ledger.spending("people", "1", "1e-6", person="id"):
        pass
    with pytest.raises(OverspendError, match=r"is for persons by 'id', and .* do not add up. Say the same"):
        refuse(ANSWERS, OUTLINE, ledger, "people")


def test_weak_points_are_told() -> None:
    assert weak_points(ANSWERS, OUTLINE.size) == []
    weak = replace(ANSWERS, price=Price(epsilon=Decimal(20)))
    assert "promises little" in weak_points(weak, OUTLINE.size)[0]
    (words,) = weak_points(ANSWERS, Size(60, 500, "rows"))
    assert words.startswith("Expected to be useless: mostly noise. About")


def test_forecasts_are_those_of_the_planner() -> None:
    size = Size(5_000, 20, "rows")
    assert forecast(size, 2, True, 1.0, 1e-6).captured > 0.9
    assert forecast(size, 2, False, 1.0, 1e-6).captured is None
    assert forecast(size, 30, True, 1.0, 1e-6) is None
    assert useless_because(forecast(size, 2, True, 1.0, 1e-6)) is None
    assert "people would be needed" in useless_because(forecast(Size(60, 500, "rows"), 2, False, 1.0, 1e-6))
