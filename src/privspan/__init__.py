"""Private subspaces: the few directions that matter in people's data, under differential privacy.

Names are imported when they are first used, so that ``import privspan`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from privspan._version import __version__

if TYPE_CHECKING:
    from privspan import audit as audit
    from privspan import baselines as baselines
    from privspan import datasets as datasets
    from privspan import ledger as ledger
    from privspan import report as report
    from privspan.algorithms.approximate import approximate_subspace
    from privspan.algorithms.boosted import boosted_subspace
    from privspan.algorithms.exact import exact_subspace
    from privspan.algorithms.mean import PrivateMean, private_mean
    from privspan.algorithms.private import UselessPlanWarning, private_subspace
    from privspan.algorithms.regression import PrivateRegression, private_regression
    from privspan.algorithms.stable import stable_subspace
    from privspan.estimators import (
        AbstentionWarning,
        ApproximateSubspace,
        BoostedSubspace,
        ExactSubspace,
        NotPrivateWarning,
        PrivatePCA,
    )
    from privspan.planner import Plan, plan
    from privspan.privacy import Budget, Part, PrivacyCost, Release, WeakPrivacyWarning
    from privspan.relations import ExactForm, Relation
    from privspan.subspace import Subspace

_HOMES = {
    "AbstentionWarning": "privspan.estimators",
    "ApproximateSubspace": "privspan.estimators",
    "BoostedSubspace": "privspan.estimators",
    "Budget": "privspan.privacy",
    "ExactForm": "privspan.relations",
    "ExactSubspace": "privspan.estimators",
    "NotPrivateWarning": "privspan.estimators",
    "Part": "privspan.privacy",
    "Plan": "privspan.planner",
    "PrivacyCost": "privspan.privacy",
    "PrivateMean": "privspan.algorithms.mean",
    "PrivatePCA": "privspan.estimators",
    "PrivateRegression": "privspan.algorithms.regression",
    "Relation": "privspan.relations",
    "Release": "privspan.privacy",
    "Subspace": "privspan.subspace",
    "UselessPlanWarning": "privspan.algorithms.private",
    "WeakPrivacyWarning": "privspan.privacy",
    "approximate_subspace": "privspan.algorithms.approximate",
    "boosted_subspace": "privspan.algorithms.boosted",
    "exact_subspace": "privspan.algorithms.exact",
    "plan": "privspan.planner",
    "private_mean": "privspan.algorithms.mean",
    "private_regression": "privspan.algorithms.regression",
    "private_subspace": "privspan.algorithms.private",
    "stable_subspace": "privspan.algorithms.stable",
}

_MODULES = ("audit", "baselines", "datasets", "ledger", "report", "rows")

__all__ = [
    "AbstentionWarning",
    "ApproximateSubspace",
    "BoostedSubspace",
    "Budget",
    "ExactForm",
    "ExactSubspace",
    "NotPrivateWarning",
    "Part",
    "Plan",
    "PrivacyCost",
    "PrivateMean",
    "PrivatePCA",
    "PrivateRegression",
    "Relation",
    "Release",
    "Subspace",
    "UselessPlanWarning",
    "WeakPrivacyWarning",
    "__version__",
    "approximate_subspace",
    "boosted_subspace",
    "exact_subspace",
    "plan",
    "private_mean",
    "private_regression",
    "private_subspace",
    "stable_subspace",
]


def __getattr__(name: str) -> object:
    """Import a public name or module on first use."""
    if name in _MODULES:
        return import_module(f"privspan.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'privspan' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*__all__, *_MODULES])
