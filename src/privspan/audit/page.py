"""The passage of the documentation that tells what a full run found: every number in it is read from its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from privspan._lib import strict_json
from privspan._lib.whole_file import whole_file

PASSAGE = Path("howto/audit-results.md")
STORED = Path("_static/audit.json")

GOALS = {"replayed": 0.9, "sampled": 0.5}
"""Parts of a claim from which on an audit is said to bite."""

_Result: TypeAlias = Mapping[str, Any]

_TEXT = """\
The whole set has been run ({{download}}`all results as JSON <../_static/audit.json>`): {audits} audits
({kinds}), **{refuted} refuted**. The chance that any of them refutes a true claim, or that any lower bound below is
wrong, is at most {false_alarm:.2g}. It took {minutes:.0f} minutes of processor time{made_with}.
The largest δ found by enumeration was {delta:.4g}, where {claimed:.4g} is claimed; the smallest p-value of a sampler
was {p_value:.2g}.

How much of each claim is used up along a replay, which needs no sampling, and how much is certified by runs, each on
the pair of neighbours on which that is most. {reached}

| mechanism | replay | of | neighbours | runs | of | neighbours | on each |
|---|---|---|---|---|---|---|---|
{lines}

"of" says of what: of the ε at the claimed δ, or of the μ of Gaussian differential privacy.
{blind} of the {sampled} sampled audits, most of them on pairs that are there to find leaks, found nothing: a bound
of 0.

Where less than 90 % is used up on every pair that was tried, either the proof is more cautious than it need be, which
would be room for accuracy, or a worse pair has not been found. What we know of it:

{reasons}
"""


def render(whole: Mapping[str, Any]) -> str:
    """Return the passage for the results of a full run, as `privspan.audit.results.summary` puts them together."""
    kinds = ("exact", "sampler", "sampled", "replayed")
    by_kind = {kind: [result for result in whole["results"] if result["kind"] == kind] for kind in kinds}
    closest = max(by_kind["exact"], key=lambda result: result["certified"])
    replayed, sampled = (_best_of_each(by_kind[kind]) for kind in ("replayed", "sampled"))
    names = sorted({*replayed, *sampled}, key=str.lower)
    counts = (f"{len(by_kind[kind])} {word}" for kind, word in zip(kinds, _KINDS, strict=True))
    return _TEXT.format(
        audits=whole["audits"],
        kinds=", ".join(counts),
        refuted=whole["refuted"],
        false_alarm=whole["false_alarm"],
        minutes=whole["seconds"] / 60.0,
        made_with=_made_with(whole),
        delta=closest["found"],
        claimed=closest["delta"],
        p_value=min(result["found"] for result in by_kind["sampler"]),
        reached=_reached(names, replayed, sampled),
        lines="\n".join(_line(name, replayed.get(name), sampled.get(name)) for name in names),
        blind=sum(result["found"] == 0.0 for result in by_kind["sampled"]),
        sampled=len(by_kind["sampled"]),
        reasons="\n".join(_reasons(replayed.values())),
    )


_KINDS = ("exact", "of samplers", "sampled", "replays")


def bites(result: _Result | None) -> bool:
    """Tell whether a replay shows 90 % of the claim, or a sampled audit certifies half of it."""
    return result is not None and result["certified"] >= GOALS[result["kind"]]


def _reached(names: Iterable[str], replayed: Mapping[str, _Result], sampled: Mapping[str, _Result]) -> str:
    """Say of how many functions the audits show as much as they should, and name the rest."""
    seen: dict[str, bool] = {}
    for name in names:
        function = name.partition(" (")[0]
        seen[function] = seen.get(function, False) or bites(replayed.get(name)) or bites(sampled.get(name))
    missed = [f"`{function}`" for function, reached in seen.items() if not reached]
    reached = f"Of {len(seen)} functions {len(seen) - len(missed)} reach"
    said = f"{reached} 90 % by replay or 50 % by runs, in one variant at least"
    return f"{said}; not {', '.join(missed)}." if missed else f"{said}."


def _made_with(whole: Mapping[str, Any]) -> str:
    """Return what the run was made with; results that were put together from several runs do not say."""
    if "versions" not in whole:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in whole["versions"].items())
    return f" on {whole['date'][:10]} ({versions}, Python {whole['python']}, {whole['system']} {whole['machine']})"


def _best_of_each(results: list[_Result]) -> dict[str, _Result]:
    """Return the audit of each mechanism that shows most of its claim."""
    best: dict[str, _Result] = {}
    for result in sorted(results, key=lambda result: -result["certified"]):
        best.setdefault(result["name"], result)
    return best


_SIGNS = {"epsilon": "ε", "mu": "μ"}


def _line(name: str, replayed: _Result | None, sampled: _Result | None) -> str:
    cells = [f"`{name}`"]
    for result in (replayed, sampled):
        if result is None:
            cells += ["", "", ""]
        else:
            claim = f"{_SIGNS[result['measure']]} = {result['claimed']:.2f}"
            cells += [f"{result['certified']:.0%}", claim, result["case"]]
    cells.append("" if sampled is None else f"{sampled['runs']:,}")
    return f"| {' | '.join(cells)} |"


def _reasons(replayed: Iterable[_Result]) -> list[str]:
    """Return, for replays below their goal, why that is so, the least first."""
    loose = sorted((result for result in replayed if not bites(result)), key=lambda result: result["certified"])
    return [f"* `{result['name']}`, {result['certified']:.0%}: {result['event']}." for result in loose]


def write_passage(results: Path, docs: Path) -> str:
    """Store what ``privspan audit --output`` has written under `docs`, and write the passage; return a sentence."""
    text = results.read_text("utf-8")
    passage = render(strict_json.loads(text))
    for path, content in ((docs / STORED, text), (docs / PASSAGE, passage)):
        with whole_file(path) as handle:
            handle.write(content.encode())
    return f"{docs / PASSAGE} is written."
