"""Deliberately broken variants of the real code, each with the audit that must catch it.

A `Fault` plants itself by monkeypatching the library. `caught` runs an audit on whatever code is in place and says
whether the claim was refuted: it must say no before and yes after planting. docs/explanation/planted-faults.md lists
the same faults.
"""

from importlib import import_module

from planted_faults.registry import FAULTS

__all__ = ["FAULTS"]

# Each adds its own to FAULTS, in the order of the table in the documentation.
for family in (
    "tables",
    "choices",
    "sums",
    "blocks",
    "stable",
    "baselines",
    "course",
    "joint",
    "ledger",
    "files",
    "everyday",
    "persons",
    "standard",
    "zero_out",
):
    import_module(f"planted_faults.{family}")
