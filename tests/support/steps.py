"""Steps of the command line that are others than those of users, such as one that fails."""

from collections.abc import Callable
from typing import Any

from privspan.cli._steps import Steps


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def steps_but(**others: Callable[..., Any]) -> Steps:
    """Return the steps that users take, but for these: by name, each called without `self`."""
    steps = Steps()
    vars(steps).update(others)
    return steps
