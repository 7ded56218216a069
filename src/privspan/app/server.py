"""Puts the pages together, and listens on this machine."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from privspan._lib.errors import ParameterError
from privspan.app.commands import PROGRAM
from privspan.app.desk import Desk, Handler, get, post, refusal
from privspan.app.folder import Folder
from privspan.app.guard import Guard
from privspan.app.pages import (
    budget,
    choose,
    confirm,
    declare,
    entry,
    history,
    map_scores,
    one_release,
    question,
    start,
)

LOOPBACK = ("127.0.0.1", "::1")
"""Where the app listens unless somebody insists: addresses that only this machine reaches."""

_PATIENCE = 30.0  # seconds that a release gets to end after Ctrl-C
_GOODBYE = 1  # seconds for pages that are being sent then

_PAGES: Sequence[tuple[str, Handler | None, Handler | None]] = (
    ("/", get(start.show), None),
    ("/open", get(entry.enter), None),
    ("/static/{file}", get(entry.static), None),
    ("/example", None, post(start.example)),
    ("/table", get(choose.show), post(choose.answer)),
    ("/columns", get(declare.show), post(declare.answer)),
    ("/columns/schema", None, post(declare.take_schema)),
    ("/columns/schema.toml", get(declare.give_schema), None),
    ("/question", get(question.show), post(question.answer)),
    ("/budget", get(budget.show), post(budget.answer)),
    ("/forecast", get(budget.picture), None),
    ("/confirm", get(confirm.show), post(confirm.answer)),
    ("/releases/{name}", get(one_release.show), None),
    ("/releases/{name}/progress", get(one_release.progress), None),
    ("/releases/{name}/stop", None, post(one_release.stop)),
    ("/releases/{name}/again", None, post(one_release.again)),
    ("/releases/{name}/report", get(one_release.report), None),
    ("/releases/{name}/picture", get(one_release.drawn), None),
    ("/releases/{name}/map", get(map_scores.show), post(map_scores.answer)),
    ("/releases/{name}/files/{file}", get(one_release.download), None),
    ("/ledger", get(history.show), None),
)


def application(
    desk: Desk, port: int, hosts: Sequence[str] = (), entered: Callable[[], None] = lambda: None
) -> Starlette:
    """Return the app for a desk; `hosts` are names of this machine beside the usual ones.

    `entered` is called when a browser has used up an address.
    """
    names = [*dict.fromkeys(["127.0.0.1", "localhost", "[::1]", *hosts])]
    allowed = [f"{name}:{port}" for name in names] + (names if port == 80 else [])
    routes = [
        Route(path, handler, methods=[method])
        for path, *handlers in _PAGES
        for method, handler in zip(("GET", "POST"), handlers, strict=True)
        if handler is not None
    ]
    guard = Middleware(Guard, session=desk.session, hosts=allowed, port=port)
    app = Starlette(routes=routes, middleware=[guard], exception_handlers={HTTPException: _no_page})
    app.state.desk, app.state.port, app.state.entered = desk, port, entered
    return app


async def _no_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    return refusal("There is no such page." if status == 404 else "This page does not take that.", status)


def desk_at(
    folder: Path, output: Path | None = None, ledger: Path | None = None, program: tuple[str, ...] = PROGRAM
) -> Desk:
    """Return the desk for a folder; what is written goes below it, so that the commands shown can be typed there."""
    below = Folder.at(folder)
    made = (below.root / (output or "privspan-app")).resolve()
    if not made.is_relative_to(below.root) or made == below.root:
        raise ParameterError("{output} must be a folder below {folder}.")
    return Desk(below, made, (ledger or made / "ledger.json").resolve(), program=program)


def sockets(host: str | None, port: int, *, knowing: bool) -> list[socket.socket]:
    """Return sockets that listen: on both loopback addresses, or on another one if somebody insists."""
    if host is not None and not knowing and not _is_loopback(host):
        raise ParameterError(
            "{host} must be an address of this machine alone, as 127.0.0.1: the app shows tables' names and spends "
            "budgets for whoever reaches it. If you know what you do, add {i_know}."
        )
    first, *rest = LOOPBACK if host is None else (host,)
    listening = [_listening(first, port)]
    for other in rest:  # a machine without IPv6 has no ::1
        try:
            listening.append(_listening(other, listening[0].getsockname()[1]))
        except OSError:
            continue
    return listening


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError):
        raise ParameterError("{host} must be an address; got {given!r}.", given=host) from None
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen()
    except OSError:
        made.close()
        raise
    return made


def serve(
    desk: Desk, listening: Sequence[socket.socket], tell: Callable[[str], None], host: str | None = None
) -> None:
    """Show the pages until Ctrl-C; a release that is at work then is stopped, and what it spent is told."""
    port = int(listening[0].getsockname()[1])
    name = "127.0.0.1" if host is None else f"[{host}]" if ":" in host else host

    def address() -> str:
        return f"http://{name}:{port}/open?token={desk.session.token}"

    def entered() -> None:
        tell(f"A browser has come in. For another one, or to come back: {address()}")

    app = application(desk, port, [] if host is None else [name], entered)
    # No log: addresses hold the token, and the words of an exception may quote a cell.
    quiet = {"log_config": None, "log_level": "critical", "access_log": False}
    config = uvicorn.Config(
        app,
        server_header=False,
        timeout_graceful_shutdown=_GOODBYE,
        proxy_headers=False,
        ws="none",
        **quiet,  # type: ignore[arg-type]
    )
    tell(f"Open this in a browser on this machine: {address()}")
    tell("Files are read where they are; nothing leaves this machine. Ctrl-C ends the app.")
    try:
        uvicorn.Server(config).run(sockets=list(listening))
    except KeyboardInterrupt:
        pass
    finally:
        for line in ended(desk):
            tell(line)


def ended(desk: Desk) -> list[str]:
    """Stop the release that is at work, if there is one, and return what is to be told of it."""
    run = desk.runs.interrupt(_PATIENCE)
    if run is None:
        return []
    if run.state == "running":
        return [f"{run.name} is still writing; it goes on by itself."]
    return [f"{run.name} of {run.made.table}:", *run.log[-1:], *one_release.spent(desk, run)]


def main(
    folder: Path, output: Path | None, ledger: Path | None, host: str | None, port: int, *, knowing: bool
) -> None:
    """Start the app and tell on standard error where it is."""
    desk = desk_at(folder, output, ledger)
    listening = sockets(host, port, knowing=knowing)
    serve(desk, listening, lambda line: print(line, file=sys.stderr, flush=True), host)
