"""``privspan plan``: what to expect, from public numbers alone."""

from __future__ import annotations

from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from privspan.cli import _console, _public
from privspan.cli._options import Delta, Epsilon, Gamma, Json, Overwrite, check_target, fraction, option, whole
from privspan.cli._progress import activity
from privspan.cli.exits import Complaint

if TYPE_CHECKING:
    from privspan.planner import Plan

_STARTING_ROWS = 1_000_000  # where the search for a number of rows begins
_DEFAULT_ERROR = 0.1
_NEEDS_BOUNDS = "`transform` will need public `bounds=`."
_HAS_BOUNDS = "`transform` will use the public bounds, for the columns that have them."
_ROWS = (0.03, 0.1, 0.3, 1, 3, 10, 30)  # times as many: how the picture goes from left to right
_VERY_GOOD, _GOOD = 0.05, 0.2  # errors up to 3° and 12°: `privspan compare` calls them nearly the same, and close


def plan(
    d: Annotated[int, whole("--d", "200", "Number of columns.", metavar="COLUMNS", short="-d")],
    k: Annotated[int, whole("--k", "3", "Dimension wanted.", metavar="DIMENSION", short="-k")],
    epsilon: Epsilon,
    delta: Delta,
    n: Annotated[
        int | None, whole("--n", "10000", "Number of rows, one per person.", metavar="ROWS", short="-n")
    ] = None,
    center: Annotated[bool, option("--center/--no-center", "As in `fit`: whether the mean is taken away.")] = True,
    scale: Annotated[bool, option("--scale", "As in `fit`: columns are standardised.")] = False,
    bounds: Annotated[
        _public.Declared | None,
        _public.bounds("--bounds", "As in `fit`: public bounds of columns, which `transform` may need with --scale."),
    ] = None,
    gamma: Gamma = None,
    error: Annotated[
        float | None,
        fraction("--error", "0.1", "How many rows does this error take? Answers without --n too.", make=float),
    ] = None,
    exact: Annotated[bool, option("--exact", "Plan `fit --exact`: exact relations instead of directions.")] = False,
    plot: Annotated[
        Path | None, option("--plot", "Draw error against rows into a .png, .svg or .pdf.", "FILE")
    ] = None,
    html: Annotated[Path | None, option("--html", "The same with the table, as one .html page.", "FILE")] = None,
    ledger: Annotated[
        Path | None, option("--ledger", "Say what such a fit would cost in this ledger.", "LEDGER")
    ] = None,
    dataset: Annotated[
        str | None, option("--dataset", "Name of the data set in the ledger, if it has several.", "NAME")
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Predict the error of every method, and how many rows an error would take.

    Needs no data and costs nothing.

    Example:

    privspan plan -n 10000 -d 200 -k 3 --epsilon 1 --delta 1e-6
    """
    check_target(plot, "--plot", (".png", ".svg", ".pdf"), overwrite=overwrite)
    check_target(html, "--html", (".html",), spare={"the file of --plot": plot}, overwrite=overwrite)
    if k > d:
        raise Complaint(f"--k takes at most the number of columns, {d}; got {k}.")
    if n is None and error is None:
        raise Complaint("say how many rows there are, --n 10000, or which error you want, --error 0.1.")
    numbers: dict[str, Any] = {"epsilon": float(epsilon), "delta": float(delta)}
    spent = _in_ledger(ledger, dataset, epsilon, delta, gaussian=not exact)
    if exact:
        _plan_exact(n, k, numbers, json, spent)
        return
    from privspan.planner import plan as predict

    if scale and not center:
        raise Complaint("--scale is planned together with centring; leave out --no-center.")
    if center and n == 1:
        raise Complaint("--n takes at least 2 rows for a private PCA; got 1.")
    numbers |= {"gamma": gamma, "center": center, "scale": scale}
    wanted = error or _DEFAULT_ERROR
    with activity("Planning") as shown:
        if n is None:
            n = predict(_STARTING_ROWS, d, k, **numbers).needed_n(wanted)
            if n is None:
                raise Complaint(
                    f"no number of rows is predicted to reach an error of {wanted:g}; choose a larger error."
                )
        found = predict(n, d, k, **numbers)
        needed = {one.method: one.needed_n(wanted) for one in found.alternatives or (found,)}
        if plot is not None or html is not None:
            from privspan.cli import _pictures

            shown.now("Drawing")
            words = [found.reason] if found.scale else _sentences(found, wanted, needed)
            _pictures.save_plan(found, wanted, plot, html, words, overwrite=overwrite)
    if bounds is not None:
        found = replace(found, reason=found.reason.replace(_NEEDS_BOUNDS, _HAS_BOUNDS))
    if json:
        _console.print_json({**asdict(found), "wanted_error": wanted, "needed_n": needed, "ledger": spent})
    else:
        _print(found, wanted, needed)
        _console.print_lines(*spent)


def _print(found: Plan, wanted: float, needed: dict[str, int | None]) -> None:
    ideal = "" if found.scale else "; for ideal data"
    _console.print_lines(f"{found.n:,} rows, {found.d:,} columns, k = {found.k}, {_course(found)}{ideal}")
    need = {method: "—" if rows is None else f"{rows:,}" for method, rows in needed.items()}
    rows = [
        (one.label, f"{one.error:.2g}", f"{one.error_90:.2g}", f"{one.abstention:.0%}", need[one.method])
        for one in found.alternatives
    ]
    if found.captured is not None:
        _print_standardised(found)
        return
    heads = ("method", ">error", ">9 of 10 below", ">abstains", f">rows for {wanted:g}")
    chosen = [one.method for one in found.alternatives].index(found.method)
    errors = [one.error for one in found.alternatives]
    _console.print_bars(heads, rows, errors, "error: 0 to 1", styles={chosen: "bold"})
    _console.print_lines(*_sentences(found, wanted, needed))
    if _console.draws():
        _print_more_rows(found)


def _print_standardised(found: Plan) -> None:
    """Say what standardised columns are expected to capture, with fewer and with more rows."""
    sizes = [size for size in (round(found.n * factor) for factor in _ROWS) if size > 1]
    captured = [at.captured for size in sizes if (at := found.again(n=size)) is not None and at.captured is not None]
    rows = [(f"{size:,}", f"{share:.0%}") for size, share in zip(sizes, captured, strict=True)]
    here = {sizes.index(found.n): "bold"} if found.n in sizes else {}
    _console.print_bars((">rows", ">captured"), rows, captured, "share of the best: 0 to 1", styles=here)
    expected = f"The components are predicted to capture {found.captured:.0%} of the variance that the best would"
    _console.print_lines(f"{expected}, as on real tables; yours may be easier or harder.", found.reason)


def _print_more_rows(found: Plan) -> None:
    """Draw what fewer and more rows would bring, by the method that is advised."""
    sizes = [size for size in (round(found.n * factor) for factor in _ROWS) if size > max(found.k, 1)]
    plans = [found.again(n=size) for size in sizes]
    errors = [1.0 if at is None else at.of(found.method).error for at in plans]
    rows = [(f"{size:,}", f"{error:.2g}") for size, error in zip(sizes, errors, strict=True)]
    here = {sizes.index(found.n): "bold"} if found.n in sizes else {}
    _console.print_bars((">rows", ">error"), rows, errors, "0 to 1", styles=here)


def _course(found: Plan) -> str:
    """Return the budget and what `fit` would do with the columns, in a few words."""
    done = "centred" * found.center + " and scaled" * found.scale or "not centred"
    return f"({found.epsilon:g}, {found.delta:g})-DP, {done}"


def _sentences(found: Plan, wanted: float, needed: dict[str, int | None]) -> list[str]:
    """Say what the table means."""
    said = "very good" if found.error <= _VERY_GOOD else "good" if found.error <= _GOOD else "rough"
    said = said if found.useful else "useless: half of a direction or more would be noise"
    take = f"Leave --method out ({found.method})" if found.method in ("everyday", "auto") else f"Take {found.method}"
    best = min((rows for rows in needed.values() if rows is not None), default=None)
    rows = "no number of rows would do" if best is None else f"about {best:,} rows are predicted to do"
    supposed = (
        f"The tail is supposed to have {found.gamma:.2g} times the spread of the subspace; say what you know of it "
        "with --gamma."
        if found.assumed
        else f"For a tail with {found.gamma:.2g} times the spread of the subspace."
    )
    return [
        f"{take}: the error is predicted to be {found.error:.2g}, {said}.",
        f"For an error of {wanted:g}, {rows}.",
        "The error is the sine of the largest angle to the true subspace: 0 is perfect, 1 is useless.",
        f"{supposed} Ideal data are bell-shaped; outliers and uneven spreads make every prediction optimistic.",
    ]


def _in_ledger(
    ledger: Path | None, dataset: str | None, epsilon: Decimal, delta: Decimal, *, gaussian: bool
) -> list[str]:
    """Say what such a fit would cost in a ledger; nothing without one."""
    if ledger is None:
        if dataset is not None:
            raise Complaint("--dataset names a data set of a ledger: add --ledger budget.json.")
        return []
    from privspan.ledger import Ledger
    from privspan.privacy import mu_from_budget

    page = Ledger(ledger).page(dataset)
    mu = mu_from_budget(float(epsilon), float(delta)) if gaussian else None
    return [page.ledger.foretold(page.dataset, epsilon, delta, mu)]


def _plan_exact(n: int | None, k: int, numbers: dict[str, Any], json: bool, spent: list[str]) -> None:
    from privspan.exact.plan import plan_exact

    if n is None:
        raise Complaint("--exact is planned for a number of rows: add --n 100.")
    found = plan_exact(n, k, **numbers)
    if json:
        _console.print_json({**asdict(found), "ledger": spent})
        return
    how = f"{found.blocks} blocks of {found.block_size} rows vote" if found.method == "votes" else "gap-max"
    _console.print_lines(
        f"Exact relations from {n:,} rows in dimension {k}, whatever the number of columns: {how}.",
        f"Chance of an answer when every row fits: {found.release_probability:.6g}.",
        *spent,
    )
