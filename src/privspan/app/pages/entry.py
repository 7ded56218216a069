"""The way in: a token is exchanged for a cookie; and the style sheet and the script, which are nobody's secret."""

from __future__ import annotations

from importlib import resources

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from privspan.app.desk import desk_of, piece, refusal
from privspan.app.guard import cookie_name

_STATIC = {
    "style.css": (("privspan.report", "style.css"), ("privspan.app", "static/app.css")),
    "app.js": (("privspan.app", "static/app.js"),),
    "icon.svg": (("privspan.app", "static/icon.svg"),),
}
_TYPES = {
    "style.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def enter(request: Request) -> Response:
    """Give the cookie for a token, once, and go on from a page of our own.

    A redirect would be part of whatever sent the browser here, and a strict cookie is not sent then.
    """
    desk = desk_of(request)
    cookie = desk.session.enter(request.query_params.get("token", ""))
    if cookie is None:
        return refusal("This address has been used, or is not the last one that was printed in the terminal.", 401)
    request.app.state.entered()
    response = HTMLResponse(piece("enter.html"))
    response.set_cookie(cookie_name(request.app.state.port), cookie, httponly=True, samesite="strict", path="/")
    return response


def static(request: Request) -> Response:
    """Give the style sheet, that of the report with a few lines of our own, or the script."""
    name = str(request.path_params["file"])
    if name not in _STATIC:
        return refusal("There is no such file.", 404)
    text = "\n".join(resources.files(room).joinpath(path).read_text("utf-8") for room, path in _STATIC[name])
    return Response(text, media_type=_TYPES[name])
