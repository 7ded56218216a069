"""One session: the secrets that let one browser in, what has been answered, and the ticket that is spent once."""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable

from privspan.app.answers import Answers

_BYTES = 32  # of a secret, in random bytes


def _secret() -> str:
    return secrets.token_urlsafe(_BYTES)


class Session:
    """What the app keeps in memory.

    Parameters
    ----------
    draw : callable, optional
        Where secrets come from; tests that compare pages give their own.
    """

    def __init__(self, draw: Callable[[], str] = _secret) -> None:
        self._draw, self.lock = draw, threading.RLock()
        self.csrf, self._cookie, self._token = draw(), draw(), draw()
        self._answers = Answers()
        self._ticket, self._spent_on = draw(), dict[tuple[str, str], str]()

    # ---- Who comes in --------------------------------------------------------------------------------------------

    @property
    def token(self) -> str:
        """The word of the next address to be printed."""
        return self._token

    def enter(self, token: str) -> str | None:
        """Return the cookie for a token, which is worthless from then on; None for any other."""
        with self.lock:
            if not _same(token, self._token):
                return None
            self._token = self._draw()
            return self._cookie

    def knows(self, cookie: str) -> bool:
        """Tell whether a cookie is that of this session."""
        return _same(cookie, self._cookie)

    def signed(self, csrf: str) -> bool:
        """Tell whether a form came from one of our pages."""
        return _same(csrf, self.csrf)

    # ---- What was answered ---------------------------------------------------------------------------------------

    @property
    def answers(self) -> Answers:
        """What has been answered so far."""
        return self._answers

    def change(self, answers: Answers) -> None:
        """Take new answers; a page that confirms others is out of date from then on."""
        with self.lock:
            if answers != self._answers:
                self._answers = answers
                self._ticket = self._draw()

    # ---- What is confirmed ---------------------------------------------------------------------------------------

    @property
    def ticket(self) -> str:
        """What a page that confirms these answers has to bring; it is good for one release."""
        return self._ticket

    def spent_on(self, page: str, ticket: str) -> str | None:
        """Return the release that a ticket was spent on from this page, if it was."""
        return self._spent_on.get((page, ticket))

    def spend(self, page: str, ticket: str, name: str) -> None:
        """Note that a ticket was spent on a release; the next page that confirms gets another one."""
        with self.lock:
            self._spent_on[page, ticket] = name
            if ticket == self._ticket:
                self._ticket = self._draw()


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())
