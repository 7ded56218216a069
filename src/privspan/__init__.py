"""Private subspaces: the few directions that matter in people's data, under differential privacy.

Names are imported when they are first used, so that ``import privspan`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from privspan._version import __version__

if TYPE_CHECKING:
    from privspan.algorithms.exact import exact_subspace
    from privspan.estimators import AbstentionWarning, ExactSubspace, NotPrivateWarning
    from privspan.privacy import Budget, Part, PrivacyCost, Release
    from privspan.relations import ExactForm, Relation
    from privspan.subspace import Subspace

_HOMES = {
    "AbstentionWarning": "privspan.estimators",
    "Budget": "privspan.privacy",
    "ExactForm": "privspan.relations",
    "ExactSubspace": "privspan.estimators",
    "NotPrivateWarning": "privspan.estimators",
    "Part": "privspan.privacy",
    "PrivacyCost": "privspan.privacy",
    "Relation": "privspan.relations",
    "Release": "privspan.privacy",
    "Subspace": "privspan.subspace",
    "exact_subspace": "privspan.algorithms.exact",
}

__all__ = [
    "AbstentionWarning",
    "Budget",
    "ExactForm",
    "ExactSubspace",
    "NotPrivateWarning",
    "Part",
    "PrivacyCost",
    "Relation",
    "Release",
    "Subspace",
    "__version__",
    "exact_subspace",
]


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'privspan' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
