"""A release in one file: the subspace, what it cost, how it was made and what was planned.

The file is the one that `Subspace.save` writes, with more in its description, so ``Subspace.load`` reads it too.
It holds public and released values only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privspan import baselines
from privspan._lib.errors import ParameterError
from privspan._lib.frozen import plain
from privspan._lib.record import Record
from privspan._lib.strict_json import Kind, fields, flag, listed, mapping, number, one_of, optional, text, whole
from privspan.pca import BY_PCA
from privspan.planner import METHODS, Plan
from privspan.privacy import NEIGHBOURS, PERSONS, PrivacyCost, Release
from privspan.private import ALGORITHMS, BESIDES, Method
from privspan.subspace import Subspace
from privspan.subspace import file as _subspace_file
from privspan.subspace.file import Content


def _rival(name: str) -> Method:
    return Method(
        f"baseline/{name}",
        "a prior system, for comparison",
        "A published method, calibrated anew for the same promise.",
        "See the page on baselines.",
        "baselines",
        call=f"baselines.{name}",
        options={},
    )


_VARIANCES = Method(
    "explained-variance",
    "variances along a subspace",
    "Noise is added to the squared lengths of records along the directions of a given subspace.",
    "The more rows, the better; rows that are much longer than most are clipped.",
    "everyday-pca",
    call=None,
)

KNOWN_METHODS = {
    label: method
    for method in (*ALGORITHMS.values(), *BESIDES, *BY_PCA, *map(_rival, baselines.__all__), _VARIANCES)
    for label in method.labels
}
"""What a release of this package may say of how it was made, and what that means."""


def _column(value: object) -> bool:
    """Tell whether this is the name of a column or its position."""
    return text(value) or whole(0)(value)


def _declared(value: object) -> bool:
    """Tell whether this is what `private_pca` says of the public numbers and words that it was given."""
    kinds = {
        "bounds": listed(number(), 2),
        "units": number(sys.float_info.min),
        "around": number(),
        "categories": listed(text),
    }
    return isinstance(value, dict) and all(
        name in kinds and isinstance(by_name, dict) and all(map(kinds[name], by_name.values()))
        for name, by_name in value.items()
    )


_PARAMETERS: dict[str, Kind] = {
    "declared": _declared,
    "n": whole(1),
    "d": whole(1),
    "k": whole(1),
    "max_rows": whole(1),
    "centring": one_of(
        ("none", "pair differences", "private mean", "public centre", "localised rounds", "standardised columns")
    ),
    "course": text,
    "rounds": whole(0),
    "typical_length": optional(number(0)),
    "share": number(0, 1),
    "considered": whole(1),
    "estimates": text,
    "without_units": listed(_column),
    "not_seen": listed(_column),
    "mostly_one_value": listed(_column),
    "variance_cut": number(0, 1),
    "robust": flag,
    "affine": flag,
    "decimals": optional(whole(0)),
    "alpha": number(),
    "beta": number(),
}
_PLAN: dict[str, Kind] = {
    "method": one_of(("everyday", "ranks", "deviations", *METHODS)),
    "error": number(0),
    "error_90": number(0),
    "abstention": number(0, 1),
    "reason": text,
    "limited_by": text,
    "n": whole(1),
    "d": whole(1),
    "k": whole(1),
    "epsilon": number(0),
    "delta": number(0, 1),
    "gamma": number(0),
    "assumed": flag,
    "alternatives": listed(mapping),
    "center": flag,
    "scale": flag,
    "captured": optional(number(0, 1)),
}


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
    record : Record or None
        When, by whom, for what and from which columns it was made, where that was saved.
    """

    subspace: Subspace
    release: Release | None = None
    plan: Plan | None = None
    record: Record | None = None


def save_release(
    path: str | os.PathLike[str],
    release: Release,
    *,
    plan: Plan | None = None,
    record: Record | None = None,
    overwrite: bool = True,
) -> Path:
    """Write a release that has a subspace to one ``.npz`` file, whole or not at all, and return its path.

    Parameters
    ----------
    path
        The suffix ``.npz`` is added to a name that has none.
    release : Release
        Of a method of this package, and not an abstention: that has nothing to save.
    plan : Plan, optional
        What had been predicted.
    record : Record, optional
        When, by whom, for what and from which columns it was made: as public as the file itself.
    overwrite : bool, default=True
        Whether to replace a file of that name; ``FileExistsError`` if not.

    Examples
    --------
    >>> import privspan as ps, tempfile
    >>> X = np.arange(1, 101)[:, None] * np.array([[1, 2, 3]])
    >>> release = ps.exact_subspace(X, 1, epsilon=1.0, delta=1e-6, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = load_release(save_release(f"{folder}/line", release, record=Record("line")))
    >>> print(saved.record.source, "|", saved.release.cost)
    line | (1, 1e-06)-DP, replace-one
    """
    if release.subspace is None:
        raise ParameterError("{release} must have a subspace; this one abstained, and there is nothing to save.")
    if release.method not in KNOWN_METHODS:
        raise ParameterError(
            "{release} must be that of a method of this package; `Subspace.save` keeps any subspace."
        )
    found = release.subspace
    described = release.to_dict()
    made = {
        "release": {key: described[key] for key in ("method", "private", "cost", "parameters", "extras")},
        "plan": plain(plan),
        "record": plain(record),
    }
    content = Content(found.basis, found.exact, found.offset, found.names, made)
    return _subspace_file.write(path, content, overwrite=overwrite)


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
        subspace = Subspace._from_content(content)
        if content.made is None:
            return SavedRelease(subspace)
        made = fields(content.made, release=mapping, plan=optional(mapping), record=optional(mapping))
        plan = None if made["plan"] is None else _plan(made["plan"])
        record = None if made["record"] is None else Record.from_dict(made["record"])
        return SavedRelease(subspace, _release(subspace, made["release"]), plan, record)


def _release(subspace: Subspace, values: object) -> Release:
    method = one_of(KNOWN_METHODS)
    found = fields(values, method=method, private=flag, cost=mapping, parameters=mapping, extras=mapping)
    d, k = subspace.basis.shape
    _check_known(found["parameters"], _PARAMETERS)
    noise, positive = number(0), number(sys.float_info.min)
    along, by_column = listed(noise, k), listed(noise, d)
    extra_kinds: dict[str, Kind] = {
        "captured_variance": number(0),
        "captured_variance_std": noise,
        "stands_out": whole(0),
        "components_std": listed(by_column, k),
        "column_weights": by_column,
        "explained_variance": along,
        "explained_variance_std": along,
        "captured_variance_at_least": number(0),
        "longest_counted": positive,
        "explained_variance_ratio": along,
        "explained_variance_ratio_std": along,
        "total_variance": number(0),
        "total_variance_std": noise,
        "mean": listed(number(), d),
        "mean_std": by_column,
        "scale": listed(positive, d),
        "scale_std": by_column,
        "low": listed(number(), d),
        "high": listed(number(), d),
        "clip": positive,
        "centre": listed(number(), d),
        "rows_shortened": number(),
        "rows_shortened_std": noise,
        "gaps": by_column,
        "gaps_std": noise,
        "n_components": number(k, k),
    }
    _check_known(found["extras"], extra_kinds)
    extras = {name: _array_or_value(value) for name, value in found["extras"].items()}
    return Release(subspace, _cost(found["cost"]), found["method"], found["parameters"], found["private"], extras)


def _cost(values: dict[str, object]) -> PrivacyCost:
    budget = {"epsilon": number(0), "delta": number(0, 1)}
    known = {"epsilon_aside": number(0), "delta_aside": number(0, 1)}
    known |= dict.fromkeys(("mu", "empty_mu"), optional(number(0)))
    found = fields(values, **budget, **known, neighbours=one_of((NEIGHBOURS, PERSONS)), parts=listed(mapping))
    for part in found["parts"]:
        fields(part, name=text, **budget, mu=optional(number(0)))
    return PrivacyCost.from_dict(found)


def _plan(values: object) -> Plan:
    found = fields(values, **_PLAN)
    return Plan(**{**found, "alternatives": tuple(map(_plan, found["alternatives"]))})


def _check_known(values: Mapping[str, object], kinds: Mapping[str, Kind]) -> None:
    """Refuse a value of the wrong kind among those that the package reads; every method may add others."""
    known = {name: kind for name, kind in kinds.items() if name in values}
    fields({name: values[name] for name in known}, **known)


def _array_or_value(value: object) -> object:
    rows = value if isinstance(value, list) and value and all(isinstance(row, list) for row in value) else [value]
    numbers = all(isinstance(row, list) and all(isinstance(entry, int | float) for entry in row) for row in rows)
    even = numbers and len({len(row) for row in rows}) == 1  # type: ignore[arg-type]
    return np.asarray(value, dtype=np.float64) if even else value
