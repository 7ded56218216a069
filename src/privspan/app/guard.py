"""Who is let in: this machine's own names, the browser that brought the token, forms of our own pages; nobody else.

Against pages of other sites that a browser on this machine may show (cross-site requests, DNS rebinding), other
programs and other users of this machine (token and cookie), and what a page may load (content security policy).
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privspan.app.desk import refusal
from privspan.app.session import Session
from privspan.app.words import told

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_OPEN = ("/open", "/static/")  # paths that need no cookie: they show nothing of anybody's
_SAFE = ("GET", "HEAD")
_SENT = "This page needs the address that `privspan app` printed in the terminal. Each address works once."


def cookie_name(port: int) -> str:
    """Return the name of the cookie: browsers do not keep ports of one machine apart."""
    return f"privspan-{port}"


class Guard:
    """Stands before the pages; what is refused never reaches them."""

    def __init__(self, app: ASGIApp, session: Session, hosts: Collection[str], port: int) -> None:
        self._app, self._session, self._hosts, self._cookie = app, session, frozenset(hosts), cookie_name(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here; every answer gets the headers."""
        if scope["type"] != "http":  # the start and the end of the app; there are no web sockets
            await self._app(scope, receive, send)
            return
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        why = self._refused(scope)
        try:
            await (self._app if why is None else refusal(*why))(scope, receive, guarded)
        except Exception as error:  # the words of an exception may quote a cell, and a log would keep them
            print(f"privspan app: unexpected {type(error).__name__}.", file=sys.stderr)
            if not begun:
                await refusal(told(error), 500)(scope, receive, guarded)

    def _refused(self, scope: Scope) -> tuple[str, int] | None:
        """Say why a request is refused, and with which status; None if it is not."""
        headers = Headers(scope=scope)
        if headers.getlist("host") == [] or any(host not in self._hosts for host in headers.getlist("host")):
            return "This address is not one of this app.", 421
        if scope["method"] not in _SAFE and not self._ours(headers):
            return "This form came from another site.", 403
        if scope["path"].startswith(_OPEN) or self._knows(headers):
            return None
        return _SENT, 401

    def _ours(self, headers: Headers) -> bool:
        """Tell whether a form was sent by one of our pages, as far as the browser says."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin == "null":  # so a browser writes it where no page is told which one it came from
            return site == "same-origin"
        ours = origin is None or origin in {f"http://{host}" for host in self._hosts}
        return ours and site in (None, "same-origin", "none")

    def _knows(self, headers: Headers) -> bool:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        return self._cookie in cookies and self._session.knows(cookies[self._cookie].value)
