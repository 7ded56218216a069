"""How accurate the result is: by its own account, by the plan for ideal data, and what more rows would do."""

from __future__ import annotations

import math
from collections.abc import Mapping

from privspan._lib.in_words import angle, number
from privspan._lib.markup import Html, element, figure, folded, join, note
from privspan.planner import Plan
from privspan.report import pictures
from privspan.report.subject import Subject

_WANTED = (0.3, 0.1, 0.03)
_SHARES = (0.8, 0.9, 0.95, 0.99)
_LIMITS = {
    "privacy": "Most of that is the noise that privacy needs: more rows or a larger ε reduce it.",
    "sampling": "Most of that is ordinary sampling error, which PCA without privacy has too.",
}
_OWN = (
    "Estimated from the released numbers themselves: the components hold about {0} ({1}) of the variance that the "
    "best ones would{2}. 100 % is what ordinary PCA, without noise, reaches on the same rows, centred, clipped or "
    "standardised as above; ± is one standard error.{3}"
)
_KIND = (
    "Ideal data: bell-shaped records, equal variances along the components and a flat tail. Unequal "
    "variances, heavy tails and outliers make real errors larger."
)


def section(subject: Subject) -> Html:
    """Say how accurate it is, by the release itself and by the plan, or that nothing tells."""
    quality, own = subject.captured, subject.own_error
    known = quality or own or subject.is_exact
    pieces = [element("h2", "How accurate it is" if known else "How accurate it should be")]
    if quality is not None:
        meant = subject.rows_meant and f", {subject.rows_meant}"
        whole = subject.whole_rows and f" {subject.whole_rows}"
        pieces.append(element("p", _OWN.format(*quality, meant, whole)))
    if subject.is_exact:
        pieces.append(element("p", "The subspace is exact: it carries no noise. It is released whole or not at all."))
    elif subject.plan is None and quality is None and own is None:
        pieces.append(element("p", _without_plan(subject)))
    if own is not None:
        words = f"By this release, noise turned the directions by about {angle(own)} (error {number(own, 2)})."
        pieces.append(element("p", f"{words} What other people in the table would have changed is not counted."))
    if subject.plan is not None:
        pieces.append(_prediction(subject, subject.plan))
    return join(*pieces)


def _without_plan(subject: Subject) -> str:
    predicted = subject.release.parameters.get("predicted_error")
    if isinstance(predicted, float):
        return f"Predicted from public numbers: an error of about {number(predicted, 2)} ({angle(predicted)})."
    return "No plan came with this release. privspan.plan predicts the error from public numbers, without the data."


def _prediction(subject: Subject, plan: Plan) -> Html:
    sizes = f"{number(plan.n)} {subject.planned_unit}, {number(plan.d)} columns, {number(plan.k)} dimensions"
    public = f"{sizes}, the budget"
    if plan.captured is not None:
        return _forecast(subject, plan, plan.captured, public)
    words = (
        f"From public numbers alone ({public}) and for ideal data, the plan predicts an error of "
        f"{number(plan.error, 2)}: the learnt "
        f"directions are typically {angle(plan.error)} off, and in nine runs of ten at most {angle(plan.error_90)}. "
        f"0 is perfect, 1 is useless. {_LIMITS.get(plan.limited_by, 'No answer is expected.')}"
    )
    drawn = pictures.error_axis(plan.alternatives or (plan,), plan.method)
    lines = {f"{wanted:g} ({angle(wanted)})": plan.needed_n(wanted) for wanted in _WANTED}
    caption = "Dot: median. Line: to the 90th percentile. Shaded: useless."
    return join(
        element("h3", "The plan, for ideal data"),
        element("p", words),
        figure("Predicted error by method, for ideal data", caption, drawn),
        note(plan.reason),
        _needed("How many rows for which error?", "for an error of", subject.planned_unit, lines),
        note(_KIND),
    )


def _forecast(subject: Subject, plan: Plan, captured: float, public: str) -> Html:
    """Tell what standardised columns were expected to give: a curve through real tables, not ideal data."""
    lines = {f"{share:.0%}": plan.needed_n(math.sqrt(1.0 - share)) for share in _SHARES if share > captured}
    needed = _needed("How many rows for how much?", "to capture about", subject.planned_unit, lines)
    words = (
        f"From public numbers alone ({public}), about {captured:.0%} of what the best components hold was to be "
        "expected: real tables of this size gave so much, give or take ten percentage points."
    )
    return join(
        element("h3", "What was to be expected"),
        element("p", words),
        note(plan.reason),
        needed if lines else join(),
    )


def _needed(title: str, head: str, unit: str, lines: Mapping[str, int | None]) -> Html:
    """Fold a table of what is wanted and how many rows that takes."""
    cells = [(wanted, "out of reach" if need is None else number(need)) for wanted, need in lines.items()]
    rows = [element("tr", *(element("td", cell) for cell in line)) for line in cells]
    heads = element("tr", element("th", head), element("th", f"{unit} needed, about"))
    return folded(title, element("table", heads, *rows))
