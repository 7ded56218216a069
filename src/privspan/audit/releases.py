"""Every number that leaves a private algorithm, by name, for `scalar_audit` to search through.

An audit that looks at one number may look past the leak. So everything in a release is turned into numbers: entries
of the projector and of the offset, parameters, extras, and which words occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TypeAlias

import numpy as np

from privspan.privacy import Release
from privspan.standard.column_scales import PrivateScales
from privspan.subspace import Subspace
from privspan.sums.classifier import PrivateClassifier
from privspan.sums.mean import PrivateMean
from privspan.sums.regression import PrivateRegression
from privspan.sums.score_map import ScoreMap

Released: TypeAlias = Release | PrivateClassifier | PrivateMean | PrivateRegression | PrivateScales | ScoreMap | int
"""Whatever a private function may return."""

_MOST_ENTRIES = 3  # leading coordinates whose entries of the projector and of the offset are looked at


def released_numbers(released: Released) -> dict[str, float]:
    """Describe what an algorithm released by named numbers.

    Parameters
    ----------
    released : Release, PrivateClassifier, PrivateMean, PrivateRegression, PrivateScales, ScoreMap or int
        What came out.

    Returns
    -------
    dict of str to float
        Entries of the projector and of the offset, parameters and extras by path. A word becomes a name of its own,
        present or absent.

    Examples
    --------
    >>> released_numbers(3)
    {'chosen': 3.0}
    """
    if isinstance(released, Release):
        described = {"abstained": released.abstained, **released.parameters, **released.extras}
        projector = {} if released.subspace is None else dict(_projector(released.subspace))
        return {**projector, **dict(_walk("", described))}
    if isinstance(released, PrivateClassifier | PrivateMean | PrivateRegression | PrivateScales | ScoreMap):
        return dict(_walk("", {field.name: getattr(released, field.name) for field in fields(released)}))
    return {"chosen": float(released)}


def _projector(subspace: Subspace) -> Iterator[tuple[str, float]]:
    """Entries of the projector in the leading coordinates, upper triangle, and of the offset."""
    leading = subspace.basis[:_MOST_ENTRIES]
    projector = leading @ leading.T  # (3, 3) or smaller
    for i, j in zip(*np.triu_indices(len(projector)), strict=True):
        yield f"projector[{i},{j}]", float(projector[i, j])
    if subspace.offset is not None:
        yield from _walk("offset", subspace.offset[:_MOST_ENTRIES])


def _walk(path: str, value: object) -> Iterator[tuple[str, float]]:
    """Yield the numbers inside nested mappings, sequences and arrays."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _walk(f"{path}.{name}" if path else str(name), part)
    elif isinstance(value, np.ndarray):
        for index, part in enumerate(value.ravel()):
            yield f"{path}[{index}]", float(part)
    elif isinstance(value, str) or value is None:
        yield f"{path}={value}", 1.0
    elif isinstance(value, Sequence):
        for index, part in enumerate(value):
            yield from _walk(f"{path}[{index}]", part)
    elif isinstance(value, int | float | np.number):
        yield path, float(value)
