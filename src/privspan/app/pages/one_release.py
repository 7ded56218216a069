"""A release: its progress, how it ended, its report and its files; all of it is on disk and outlives the app."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from privspan._lib.errors import PrivspanError
from privspan._lib.markup import Html
from privspan._lib.record import Record
from privspan.app.commands import shown
from privspan.app.desk import Desk, desk_of, go, page, refusal
from privspan.app.forms import Form
from privspan.app.runs import Run, State
from privspan.app.words import told
from privspan.ledger.release_file import SavedRelease, load_release
from privspan.report import released
from privspan.report.subject import Subject
from privspan.report.words import without_numbers

FILES = {
    "report.html": ("Report", "text/html; charset=utf-8"),
    "release.npz": ("Release file", "application/octet-stream"),
    "sheet.json": ("Privacy sheet", "application/json"),
    "script.py": ("Python script", "text/x-python; charset=utf-8"),
    "command.txt": ("Command line", "text/plain; charset=utf-8"),
    "schema.toml": ("Schema", "application/toml"),
    "map.json": ("Map, as numbers", "application/json"),
    "map.svg": ("Map, as a picture", "image/svg+xml"),
}
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_PATIENCE = 10.0  # seconds that a page waits for a program to end
_ENDS: dict[State, str] = {
    "running": "is being made",
    "finished": "is done",
    "abstained": "ended without a result; its budget is spent",
    "refused": "was refused; nothing was run and nothing was spent",
    "failed": "failed; what it had spent stays spent",
    "interrupted": "was interrupted; what it had spent stays spent",
}


def show(request: Request) -> Response:
    """Show the progress of a release, or how it ended."""
    desk = desk_of(request)
    run = _run(request)
    if run is None:
        return refusal("There is no such release.", 404)
    state = run.state
    values: dict[str, object] = {"run": run, "state": state, "said": _ENDS[state]}
    values |= {"command": shown(run.made.command), "made_up": run.made.made_up, "log": run.log}
    if state == "running":
        return page(request, "running.html", 200, ours=desk.runs.is_ours(), **values)
    values |= {
        "folder": desk.folder.root.name,
        "files": _files(run),
        "finding": _finding(run),
        "ledger": spent(desk, run),
    }
    values["empty"] = _empty(run)
    values["no_map"] = why_no_map(run) if run.made.kind == "fit" and state == "finished" else None
    values["maps"] = [other for other in desk.runs.all() if other.made.of == run.name]
    return page(request, "release.html", 200, **values)


def progress(request: Request) -> Response:
    """Tell how a release stands, for the script on its page."""
    run = _run(request)
    if run is None:
        return JSONResponse({"state": "failed", "said": "There is no such release."}, status_code=404)
    state = run.state
    return JSONResponse({"state": state, "said": in_words(run, state)})


def in_words(run: Run, state: State) -> str:
    """Say how a release stands, in one sentence."""
    if state != "running":
        return f"It {_ENDS[state]}."
    last = next((line for line in reversed(run.log) if " so far" in line), "")
    return f"At work for {run.seconds} s. {last}".rstrip()


def stop(request: Request, form: Form) -> Response:
    """Stop a release; what it has spent stays spent, and its page says so."""
    run, desk = _run(request), desk_of(request)
    if run is not None and (other := desk.runs.at_work()) is not None and other.name == run.name:
        desk.runs.interrupt(_PATIENCE)
    return go("/") if run is None else go(f"/releases/{run.name}")


def again(request: Request, form: Form) -> Response:
    """Begin another release with the answers of this one: at another ε, and at its own cost."""
    run, desk = _run(request), desk_of(request)
    if run is None or run.made.kind != "fit":
        return go("/")
    desk.session.change(run.answers)
    return go("/budget")


def report(request: Request) -> Response:
    """Show the report as a page of its own, which may load nothing and whose only style is the one that it has."""
    run = _run(request)
    path = None if run is None else run.folder / "report.html"
    if path is None or not path.is_file():
        return refusal("There is no report of this release.", 404)
    text = path.read_text("utf-8")
    styles = [hashlib.sha256(style.encode()).digest() for style in _STYLE.findall(text)]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in styles)
    none = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
    headers = {"Content-Security-Policy": f"{none}; style-src {hashes}"}
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


def download(request: Request) -> Response:
    """Give one of the files of a release, to be kept."""
    run, name = _run(request), str(request.path_params["file"])
    if run is None or name not in dict(_files(run)):
        return refusal("There is no such file of this release.", 404)
    headers = {"Content-Disposition": f'attachment; filename="{run.name}-{name}"'}
    content = _sheet(run) if name == "sheet.json" else (run.folder / name).read_bytes()
    return Response(content, media_type=FILES[name][1], headers=headers)


def drawn(request: Request) -> Response:
    """Show the picture of a map."""
    run = _run(request)
    if run is None or not (run.folder / "map.svg").is_file():
        return refusal("There is no such picture.", 404)
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
    return Response((run.folder / "map.svg").read_bytes(), media_type="image/svg+xml", headers=headers)


def saved(run: Run) -> SavedRelease | None:
    """Return what was released, if it is a private PCA and there is anything."""
    try:
        return load_release(run.folder / "release.npz")
    except (OSError, ValueError):
        return None


def subject_of(run: Run) -> Subject | None:
    """Return what was released as a report has it."""
    found = saved(run)
    if found is None or found.release is None:
        return None
    return Subject(found.release, None, found.plan, found.record or Record())


def why_no_map(run: Run) -> str | None:
    """Say why the scores of a release cannot be mapped, by what was released; None if they can."""
    found = saved(run) if run.made.kind == "fit" else None
    if found is None or found.release is None:
        return "There is nothing to map."
    if found.subspace.dimension < 2:
        return "A map of the scores needs two components."
    if found.release.parameters.get("without_units"):
        lacks = "A map of the scores needs a mean and a unit for every column, and this release lacks some."
        return f"{lacks} Public bounds, a larger ε or more people would provide them."
    return None


def _run(request: Request) -> Run | None:
    return desk_of(request).runs.find(str(request.path_params["name"]))


def _files(run: Run) -> list[tuple[str, str]]:
    """Return the files that are there, and what they are."""
    made = run.folder / "release.npz"
    there = {name for name in FILES if (run.folder / name).is_file()} | ({"sheet.json"} if made.is_file() else set())
    return [(name, title) for name, (title, _) in FILES.items() if name in there]


def _sheet(run: Run) -> bytes:
    found = saved(run)
    claims = {} if found is None or found.release is None else found.release.sheet()
    return json.dumps(claims, indent=1, ensure_ascii=False).encode()


def _finding(run: Run) -> Html | None:
    """Return the head of the report: what was found, in a sentence and a few figures."""
    subject = subject_of(run)
    if subject is None:
        return None
    return Html(released.opening(subject, released.headline(subject)) + released.facts(subject))


def _empty(run: Run) -> list[str]:
    """Return the columns that hold hardly any number, by what was released of missing cells."""
    subject = subject_of(run)
    return [] if subject is None else [subject.names[at] for at in without_numbers(subject.release)]


def spent(desk: Desk, run: Run) -> list[str]:
    """Say what the ledger holds of the table by now."""
    path = desk.folder.root / run.made.table
    try:
        return list(desk.ledger.told(str(path)))
    except (PrivspanError, OSError) as error:  # what was released is shown all the same
        return [told(error)]
