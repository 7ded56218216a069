"""Private subspaces: the few directions that matter in people's data, under differential privacy.

Names are imported when they are first used, so that ``import privspan`` costs next to nothing.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from privspan._lib import above
from privspan._lib.version import __version__

if TYPE_CHECKING:
    from privspan import audit as audit
    from privspan import baselines as baselines
    from privspan import datasets as datasets
    from privspan import ledger as ledger
    from privspan import plot as plot
    from privspan import report as report
    from privspan._lib.errors import PrivspanError
    from privspan.approximate import approximate_subspace
    from privspan.boosted import boosted_subspace
    from privspan.estimators import (
        PrivateLogisticRegression,
        PrivatePCA,
        PrivateStandardScaler,
        PrivateSubspace,
        budgeted_pipeline,
    )
    from privspan.exact.exact import exact_subspace
    from privspan.pca import private_pca
    from privspan.planner import Plan, plan
    from privspan.privacy import (
        AbstentionWarning,
        Budget,
        IdentifierWarning,
        NotPrivateWarning,
        Part,
        PrivacyCost,
        Release,
        TransformedRowsWarning,
        UselessPlanWarning,
        WeakPrivacyWarning,
    )
    from privspan.privacy.rotated import Rotated
    from privspan.private import private_subspace
    from privspan.stable.records import stable_subspace
    from privspan.standard.column_scales import NoSpreadWarning, PrivateScales, private_scales
    from privspan.subspace import Subspace
    from privspan.subspace.relations import ExactForm, Relation
    from privspan.sums.classifier import PrivateClassifier, classifier_outlook, private_classifier
    from privspan.sums.mean import PrivateMean, private_mean
    from privspan.sums.regression import PrivateRegression, private_regression
    from privspan.sums.score_map import ScoreMap, private_score_map

_HOMES = {
    "AbstentionWarning": "privspan.privacy",
    "Budget": "privspan.privacy",
    "ExactForm": "privspan.subspace.relations",
    "IdentifierWarning": "privspan.privacy",
    "NoSpreadWarning": "privspan.standard.column_scales",
    "NotPrivateWarning": "privspan.privacy",
    "Part": "privspan.privacy",
    "Plan": "privspan.planner",
    "PrivacyCost": "privspan.privacy",
    "PrivateClassifier": "privspan.sums.classifier",
    "PrivateLogisticRegression": "privspan.estimators",
    "PrivateMean": "privspan.sums.mean",
    "PrivatePCA": "privspan.estimators",
    "PrivateRegression": "privspan.sums.regression",
    "PrivateScales": "privspan.standard.column_scales",
    "PrivateStandardScaler": "privspan.estimators",
    "PrivateSubspace": "privspan.estimators",
    "PrivspanError": "privspan._lib.errors",
    "Relation": "privspan.subspace.relations",
    "Release": "privspan.privacy",
    "Rotated": "privspan.privacy.rotated",
    "ScoreMap": "privspan.sums.score_map",
    "Subspace": "privspan.subspace",
    "TransformedRowsWarning": "privspan.privacy",
    "UselessPlanWarning": "privspan.privacy",
    "WeakPrivacyWarning": "privspan.privacy",
    "approximate_subspace": "privspan.approximate",
    "boosted_subspace": "privspan.boosted",
    "budgeted_pipeline": "privspan.estimators",
    "classifier_outlook": "privspan.sums.classifier",
    "exact_subspace": "privspan.exact.exact",
    "plan": "privspan.planner",
    "private_classifier": "privspan.sums.classifier",
    "private_mean": "privspan.sums.mean",
    "private_pca": "privspan.pca",
    "private_regression": "privspan.sums.regression",
    "private_scales": "privspan.standard.column_scales",
    "private_score_map": "privspan.sums.score_map",
    "private_subspace": "privspan.private",
    "stable_subspace": "privspan.stable.records",
}

_MODULES = ("audit", "baselines", "datasets", "ledger", "plot", "report", "rows")

__all__ = [
    "AbstentionWarning",
    "Budget",
    "ExactForm",
    "IdentifierWarning",
    "NoSpreadWarning",
    "NotPrivateWarning",
    "Part",
    "Plan",
    "PrivacyCost",
    "PrivateClassifier",
    "PrivateLogisticRegression",
    "PrivateMean",
    "PrivatePCA",
    "PrivateRegression",
    "PrivateScales",
    "PrivateStandardScaler",
    "PrivateSubspace",
    "PrivspanError",
    "Relation",
    "Release",
    "Rotated",
    "ScoreMap",
    "Subspace",
    "TransformedRowsWarning",
    "UselessPlanWarning",
    "WeakPrivacyWarning",
    "__version__",
    "approximate_subspace",
    "boosted_subspace",
    "budgeted_pipeline",
    "classifier_outlook",
    "exact_subspace",
    "plan",
    "private_classifier",
    "private_mean",
    "private_pca",
    "private_regression",
    "private_scales",
    "private_score_map",
    "private_subspace",
    "stable_subspace",
]


above.hand_in(
    ledgers=partial(import_module, "privspan.ledger"),
    release_files=partial(import_module, "privspan.ledger.release_file"),
    dask=partial(import_module, "privspan.backends.dask_tables"),
)


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
