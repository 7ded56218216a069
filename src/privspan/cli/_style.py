"""How every command's help looks: flags without a type, one form of example, commands in panels.

A command's docstring is one sentence that fits a line, more where there is more to say, and in the end ``Example:``
with a line to copy.  `tests/cli/test_manners.py` holds all commands to it.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

BEGIN, READ, ACCOUNT, TRUST = "Begin", "Read what was learnt", "Keep account", "See for yourself"  # panels


class _WithoutTypesOfFlags:
    """A flag is on or off: that it is a Boolean is no news."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, flags without the name of their type."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_WithoutTypesOfFlags, TyperCommand):
    """A command in the house style."""


class Group(_WithoutTypesOfFlags, TyperGroup):
    """A group of commands in the house style."""
