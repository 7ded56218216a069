"""The passage of the documentation that tells what a full run found: every number in it is read from its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privspan._lib import strict_json
from privspan._lib.whole_file import whole_file

PASSAGE = Path("howto/audit-results.md")
STORED = Path("_static/audit.json")

_TEXT = """\
The whole set has been run ({{download}}`all results as JSON <../_static/audit.json>`): {audits} audits
({kinds}), **{refuted} refuted**. The chance that any of them would refute a true claim is at most {false_alarm:.2g}.
It took {minutes:.0f} minutes of processor time{made_with}. The largest δ found by enumeration was {delta:.4g}, where
{claimed:.4g} is claimed; the smallest p-value of a sampler was {p_value:.2g}. For every mechanism, the pair of
neighbours on which most was seen:

| mechanism | neighbours | claimed ε | ε is at least | runs on each |
|---|---|---|---|---|
{lines}

{blind} of the {sampled} sampled audits found nothing: a bound of 0.
"""


def render(whole: Mapping[str, Any]) -> str:
    """Return the passage for the results of a full run, as `privspan.audit.results.summary` puts them together."""
    exact, samplers, sampled = (
        [result for result in whole["results"] if result["kind"] == kind] for kind in ("exact", "sampler", "sampled")
    )
    closest = max(exact, key=lambda result: result["found"] / result["delta"])
    return _TEXT.format(
        audits=whole["audits"],
        kinds=f"{len(exact)} exact, {len(samplers)} of samplers, {len(sampled)} sampled",
        refuted=whole["refuted"],
        false_alarm=whole["false_alarm"],
        minutes=whole["seconds"] / 60.0,
        made_with=_made_with(whole),
        delta=closest["found"],
        claimed=closest["delta"],
        p_value=min(result["found"] for result in samplers),
        lines="\n".join(_line(result) for result in _largest_of_each(sampled)),
        blind=sum(result["found"] == 0.0 for result in sampled),
        sampled=len(sampled),
    )


def _made_with(whole: Mapping[str, Any]) -> str:
    """Return what the run was made with; results that were put together from several runs do not say."""
    if "versions" not in whole:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in whole["versions"].items())
    return f" on {whole['date'][:10]} ({versions}, Python {whole['python']}, {whole['system']} {whole['machine']})"


def _largest_of_each(sampled: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the audit of each mechanism with the largest bound, largest first."""
    largest: dict[str, dict[str, Any]] = {}
    for result in sorted(sampled, key=lambda result: (-result["found"], result["name"])):
        largest.setdefault(result["name"], result)
    return list(largest.values())


def _line(result: Mapping[str, Any]) -> str:
    claimed, found, runs = f"{result['epsilon']:g}", f"{result['found']:.2f}", f"{result['runs']:,}"
    return f"| `{result['name']}` | {result['case']} | {claimed} | {found} | {runs} |"


def write_passage(results: Path, docs: Path) -> str:
    """Store what ``privspan audit --output`` has written under `docs`, and write the passage; return a sentence."""
    text = results.read_text("utf-8")
    passage = render(strict_json.loads(text))
    for path, content in ((docs / STORED, text), (docs / PASSAGE, passage)):
        with whole_file(path) as handle:
            handle.write(content.encode())
    return f"{docs / PASSAGE} is written."
