"""Secrets, answers and the ticket that is spent once."""

import itertools

import pytest

from privspan.app.answers import Answers, TableAnswer
from privspan.app.session import Session


def test_secrets_are_drawn_anew_and_long() -> None:
    sessions = [Session() for _ in range(3)]
    secrets = [secret for one in sessions for secret in (one.token, one.csrf, one.ticket, one.enter(one.token))]
    assert len(set(secrets)) == len(secrets)
    assert min(map(len, secrets)) >= 43  # 256 bits


def test_a_token_is_good_once_and_the_next_one_follows() -> None:
    session = Session()
    token = session.token
    assert session.enter("") is None
    assert session.enter(token + "x") is None
    cookie = session.enter(token)
    assert session.knows(cookie)
    assert not session.knows("")
    assert not session.knows("ümlaut")
    assert session.enter(token) is None
    assert session.enter(session.token) == cookie


@pytest.fixture
def session() -> Session:
    numbers = itertools.count()
    return Session(lambda: str(next(numbers)))


def test_new_answers_make_a_page_out_of_date_and_the_same_do_not(session: Session) -> None:
    ticket = session.ticket
    session.change(Answers())
    assert session.ticket == ticket
    session.change(Answers(TableAnswer("a.csv")))
    assert session.ticket != ticket


def test_a_ticket_that_was_spent_leads_to_its_release(session: Session) -> None:
    ticket = session.ticket
    assert session.spent_on("/confirm", ticket) is None
    session.spend("/confirm", ticket, "release-1")
    assert session.spent_on("/confirm", ticket) == "release-1"
    assert session.spent_on("/releases/release-1/map", ticket) is None  # another page spends nothing on it
    assert session.ticket != ticket
    assert session.spent_on("/confirm", session.ticket) is None
