"""The circumstances of a release that a reader of its report asks about, and that no release can know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from privspan._lib.errors import ParameterTypeError
from privspan._lib.strict_json import Kind, fields, listed, optional, text


def _pair(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(text, value))


_KINDS: dict[str, Kind] = {
    "source": optional(text),
    "by": optional(text),
    "purpose": optional(text),
    "reviewed_by": optional(text),
    "date": text,
    "left_out": listed(_pair),
    "ledger": listed(text),
    "command": optional(text),
    "schema": optional(text),
}


@dataclass(frozen=True)
class Record:
    """The circumstances of a release for its report: when, by whom, for what purpose, from which columns.

    All of it is shown unchanged, so give public information only.  `privspan fit` fills it in by itself.

    Attributes
    ----------
    source : str, optional
        Where the table came from.
    by : str, optional
        Who made the release: a person, an office.
    purpose : str, optional
        What the release is for.
    reviewed_by : str, optional
        Who reviewed it.
    date : str
        When it was made; by default today.
    left_out : tuple of (str, str)
        Columns of the table that were not used, each with the reason.
    ledger : tuple of str
        What has been spent on the data set, this release included: ``Ledger(…).told(dataset)``.
    command : str, optional
        The command that made it, as it was typed.
    schema : str, optional
        The declared types of the columns, as TOML.

    Examples
    --------
    >>> record = Record("Survey 2026", by="Office of statistics", purpose="yearly report", date="2026-11-18")
    >>> record.by
    'Office of statistics'
    """

    source: str | None = None
    by: str | None = None
    purpose: str | None = None
    reviewed_by: str | None = None
    date: str = field(default_factory=lambda: date.today().isoformat())
    left_out: tuple[tuple[str, str], ...] = ()
    ledger: tuple[str, ...] = ()
    command: str | None = None
    schema: str | None = None

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if not kind(list(value) if isinstance(value, tuple) else value):
                raise ParameterTypeError("The {name} of a record is of the wrong type.", name=name)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Record:
        """Read what `dataclasses.asdict` wrote; ``ValueError`` for anything else."""
        found = fields(values, **_KINDS)
        left_out = tuple((column, why) for column, why in found["left_out"])
        return cls(**{**found, "left_out": left_out, "ledger": tuple(found["ledger"])})
