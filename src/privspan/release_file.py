"""A release in one file: the subspace, what it cost, how it was made and what was planned.

The file is the one that `Subspace.save` writes, with more in its description, so ``Subspace.load`` reads it too.
It holds public and released values only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privspan import _subspace_file
from privspan._frozen import plain
from privspan._subspace_file import Content
from privspan.planner import Plan
from privspan.privacy import PrivacyCost, Release
from privspan.subspace import Subspace

__all__ = ["SavedRelease", "load_release", "save_release"]


@dataclass(frozen=True)
class SavedRelease:
    """What a file holds.

    Attributes
    ----------
    subspace : Subspace
    release : Release or None
        None for a file of `Subspace.save`, which tells nothing about its making.
    plan : Plan or None
        What had been predicted, where it was saved.
    source : str or None
        Name of the table, where it was saved.
    """

    subspace: Subspace
    release: Release | None = None
    plan: Plan | None = None
    source: str | None = None


def save_release(
    path: str | os.PathLike[str], release: Release, *, plan: Plan | None = None, source: str | None = None
) -> Path:
    """Write a release that has a subspace to one ``.npz`` file, whole or not at all, and return its path.

    Parameters
    ----------
    path
        The suffix ``.npz`` is added to a name that has none.
    release : Release
        Not an abstention: that has nothing to save.
    plan : Plan, optional
        What had been predicted.
    source : str, optional
        Name of the table, as public as the file itself.

    Examples
    --------
    >>> import privspan as ps, tempfile
    >>> X = np.arange(1, 101)[:, None] * np.array([[1, 2, 3]])
    >>> release = ps.exact_subspace(X, 1, epsilon=1.0, delta=1e-6, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = load_release(save_release(f"{folder}/line", release, source="line"))
    >>> print(saved.source, "|", saved.release.cost)
    line | (1, 1e-06)-DP, replace-one
    """
    if release.subspace is None:
        raise ValueError("`release` must have a subspace; this one abstained, and there is nothing to save.")
    found = release.subspace
    described = release.to_dict()
    made = {
        "release": {key: described[key] for key in ("method", "private", "cost", "parameters", "extras")},
        "plan": None if plan is None else plain(asdict(plan)),
        "source": source,
    }
    return _subspace_file.write(path, Content(found.basis, found.exact, found.offset, found.names, made))


def load_release(path: str | os.PathLike[str]) -> SavedRelease:
    """Read a file of `save_release` or of `Subspace.save`.

    Arrays among the extras of a release come back as arrays; other sequences as tuples.

    Raises
    ------
    ValueError
        When the file is damaged, of another kind, or of a version that this one does not read.
    OSError
        When it cannot be opened.
    """
    with _subspace_file.reading(path) as content:
        subspace = Subspace(content.basis, exact=content.exact, offset=content.offset, names=content.names)
        if content.made is None:
            return SavedRelease(subspace)
        made = content.made
        return SavedRelease(
            subspace,
            _release(subspace, made["release"]),
            None if made["plan"] is None else _plan(made["plan"]),
            None if made["source"] is None else str(made["source"]),
        )


def _release(subspace: Subspace, values: Mapping[str, Any]) -> Release:
    extras = {name: _array_or_value(value) for name, value in values["extras"].items()}
    cost = PrivacyCost.from_dict(values["cost"])
    return Release(subspace, cost, values["method"], values["parameters"], bool(values["private"]), extras)


def _plan(values: Mapping[str, Any]) -> Plan:
    return Plan(**{**values, "alternatives": tuple(_plan(other) for other in values["alternatives"])})


def _array_or_value(value: object) -> object:
    numbers = isinstance(value, list) and all(isinstance(entry, int | float) for entry in value)
    return np.asarray(value, dtype=np.float64) if numbers else value
