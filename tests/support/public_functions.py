"""Every public function of the package, found by walking through it, and those among them that spend a budget.

What must hold for all of them (a stated guarantee, an audit, a fuzz target) is tested against these sets, so that a
new function cannot be forgotten.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator

import privspan
from privspan.privacy.call import Call

RANDOMNESS = {"bits", "random_state", "rng"}


def documented_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Every public function, class and method of every public module, under its full name."""
    for info in pkgutil.walk_packages(privspan.__path__, "privspan."):
        if "._" in info.name:
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != info.name:
                continue
            if inspect.isfunction(value) or inspect.isclass(value):
                yield f"{info.name}.{name}", value
            if inspect.isclass(value):
                yield from (
                    (f"{info.name}.{name}.{attribute}", member)
                    for attribute, member in vars(value).items()
                    if not attribute.startswith("_") and inspect.isfunction(member)
                )


def spends(value: Callable[..., object]) -> bool:
    """Tell whether a function takes an epsilon and randomness, and so spends the one by the other."""
    if inspect.isclass(value) and issubclass(value, BaseException | Call):  # without a signature; the door itself
        return False
    names = set(inspect.signature(value).parameters)
    return "epsilon" in names and (bool(names & RANDOMNESS) or is_behind_a_door(value))


def is_behind_a_door(value: Callable[..., object]) -> bool:
    """Tell whether a function takes a run that somebody else has begun, or the bits of one."""
    return inspect.isfunction(value) and bool({"run", "bits"} & set(inspect.signature(value).parameters))


FUNCTIONS = dict(documented_functions())
SPENDING = {name for name, value in FUNCTIONS.items() if spends(value)}
