"""What all databases have in common: columns that are read as text, and refusals that quote nothing."""

import pytest

from privspan._lib.location import location
from privspan.rows import Column, Schema
from privspan.rows.files.queries import refused, unreachable, worded

PLACE = location("postgresql://zoe:secret@host/clinic")


def test_ids_and_categories_are_read_as_text() -> None:
    ward = {"ward": Column("category", categories=["a"]), "age": Column("number")}
    assert worded(Schema(ward, person="patient")) == {"ward", "patient"}
    assert worded(Schema()) == set()


@pytest.mark.parametrize("why", [None, "a table that it names is not there"])
def test_a_refusal_quotes_nothing_of_the_driver(why: str | None) -> None:
    told = str(refused(PLACE, why, ValueError("secret cell")))
    assert told.startswith("The database 'clinic' refused the query")
    assert (why or "ValueError") in told
    assert not any(word in told for word in ("secret", "cell", "zoe", "host"))
    assert str(unreachable(PLACE, "it sleeps")) == "The database 'clinic' cannot be opened: it sleeps."
