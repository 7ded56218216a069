"""A private PCA by its settings: open the table, refuse what can be refused, and take the course that is meant."""

from __future__ import annotations

from collections.abc import Sequence

from privspan.pca.everyday import learn_everyday, promise_everyday
from privspan.pca.named import learn_named, promise_named
from privspan.pca.settings import PCASettings
from privspan.pca.standardised import learn_standardised, promise_standardised
from privspan.pca.table import opened
from privspan.planner import Plan
from privspan.privacy import Release
from privspan.privacy.call import Call


def learn_pca(
    settings: PCASettings, call: Call, X: object, names: Sequence[str] | None = None, declared: object = None
) -> tuple[Release, Plan]:
    """Do what `private_pca` promises; return the plan, which is public, beside the release.

    Names of the columns are those of a source that knows them, if none are given; their types are those of the table
    as it was `declared`, if that is not `X` itself.
    """
    table = opened(settings, call, X, names, X if declared is None else declared)
    if settings.standardised:
        return learn_standardised(settings, call, table)
    return (learn_everyday if settings.everyday else learn_named)(settings, call, table)


def check_pca(settings: PCASettings, call: Call, X: object) -> tuple[float, float] | None:
    """Refuse what `learn_pca` would refuse, from types and shapes alone: no value is read and nothing is spent.

    Return what it will cost as a Gaussian release, mu and the delta that is set aside; None if it is not known to be
    one.
    """
    table = opened(settings, call, X, None, X)
    if settings.standardised:
        return promise_standardised(settings, call, table)
    return (promise_everyday if settings.everyday else promise_named)(settings, call, table)
