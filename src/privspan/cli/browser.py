"""``privspan app``: the same in a browser, step by step."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from privspan.cli._options import option, output_to, whole
from privspan.cli.exits import Complaint, ExitCode


def app(
    folder: Annotated[Path, option("--folder", "Where tables are looked for; nothing else is read.", "DIR")] = Path(),
    output: Annotated[
        Path | None, output_to("Folder for releases, below that one; by default privspan-app.", "DIR")
    ] = None,
    ledger: Annotated[
        Path | None,
        option("--ledger", "Write the spends down here; by default ledger.json in the folder of releases.", "FILE"),
    ] = None,
    port: Annotated[int, whole("--port", "8800", "Port to listen on; 0 for any that is free.", least=0)] = 0,
    host: Annotated[
        str | None,
        option("--host", "Address to listen on; by default 127.0.0.1 and ::1, this machine alone.", "HOST"),
    ] = None,
    i_know: Annotated[
        bool, option("--i-know", "Listen on an address that other machines reach, without encryption.")
    ] = False,
) -> None:
    """Show a page in the browser that leads from a table to a report.

    It prints an address to open. Everything stays on this machine.

    Example:

    privspan app --folder tables
    """
    if any(find_spec(package) is None for package in ("jinja2", "starlette", "uvicorn")):
        raise Complaint("the app needs more packages: pip install 'privspan[app]'.", ExitCode.FAILED)
    if find_spec("fcntl") is None:
        raise Complaint("the app needs Linux or macOS; on Windows, the Windows Subsystem for Linux.", ExitCode.FAILED)
    if not folder.is_dir():
        raise Complaint(f"--folder takes a folder, and {str(folder)!r} is none.")
    if ledger is not None and ledger.suffix != ".json":
        raise Complaint(f"--ledger takes a name that ends in .json, for example --ledger {ledger.stem}.json.")
    if port > 65_535:
        raise Complaint(f"--port takes a number up to 65,535; got {port}.")
    from privspan.app.server import main

    main(folder, output, ledger, host, port, knowing=i_know)
