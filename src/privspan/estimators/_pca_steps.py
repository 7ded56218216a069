"""The private steps of `PrivatePCA`, and how what they release is put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privspan.estimators._base import first_axes
from privspan.privacy import Budget, Part, PrivacyCost, Release
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import RandomLike
from privspan.private import GAUSSIAN_METHODS, private_subspace
from privspan.subspace import Subspace
from privspan.sums.mean import PrivateMean, less_mean, mean_within
from privspan.sums.variance import variance_within


@dataclass(frozen=True)
class Found:
    """What the steps released, before it is put together."""

    subspace: Release
    variances: Release
    mean: PrivateMean | None
    centring: str
    halved: bool  # variances are those of differences, twice those of the rows

    def costs(self) -> dict[str, PrivacyCost]:
        costs = {"subspace": self.subspace.cost, "variances": self.variances.cost}
        return costs if self.mean is None else {**costs, "mean": self.mean.cost}

    def parts(self, gaussian: bool) -> tuple[Part, ...]:
        """List what was spent: every Gaussian step by its mu, or the whole of each step where they add up."""
        if gaussian:
            return tuple(part for cost in self.costs().values() for part in cost.parts)
        return tuple(Part(step, cost.epsilon, cost.delta) for step, cost in self.costs().items())

    def release(self, budget: Budget, parts: tuple[Part, ...], names: list[str] | None, chosen: bool) -> Release:
        """Put the steps together: components by variance, each with its largest entry positive."""
        turned = self.variances.subspace
        assert turned is not None
        d, k = turned.basis.shape
        largest = np.abs(turned.basis).argmax(axis=0)
        basis = turned.basis * np.where(turned.basis[largest, np.arange(k)] < 0, -1.0, 1.0)  # (d, k)
        offset = None if self.mean is None else self.mean.mean
        mean = np.zeros(d) if offset is None else offset
        extras: dict[str, Any] = {**self.variances.extras, "mean": mean}
        if self.halved:
            for name in ("explained_variance", "total_variance"):
                extras[name] = extras[name] / 2.0
        if chosen:
            extras["n_components"] = k
        return Release(
            None
            if self.subspace.abstained
            else Subspace(basis, offset=offset, names=tuple(names) if names else None),
            budget.cost(*parts),
            f"private PCA ({self.subspace.method})",
            {**self.subspace.parameters, "centring": self.centring},
            self.subspace.private,
            extras,
        )


@dataclass(frozen=True)
class PCASteps:
    """The private steps with what they may spend, by name, and their randomness."""

    ledgers: dict[str, MuLedger]
    seeds: dict[str, RandomLike]
    method: str
    gamma: float | None
    norm_bound: float | None

    def run(self, X: Any, pairs: Any, k: int, centring: str) -> Found:
        """Learn the subspace of the centred rows, the variances along it, and the mean."""
        mean = None
        if centring != "none":
            mean = mean_within(self.ledgers["mean"], X, None, self.norm_bound, self.seeds["mean"])
        rows = pairs
        if centring == "private mean":
            assert mean is not None
            rows = less_mean(X, mean.mean)  # (n, d); post-processing of each record by a released vector
        subspace = self._subspace(rows, k)
        # After an abstention the variances are those along the placeholder: nothing depends on having abstained.
        along = subspace.subspace or first_axes(int(X.shape[1]), k)
        variances = variance_within(self.ledgers["variances"], rows, along, None, self.seeds["variances"])
        return Found(subspace, variances, mean, centring, halved=centring == "pair differences")

    def _subspace(self, rows: Any, k: int) -> Release:
        ledger, rng = self.ledgers["subspace"], self.seeds["subspace"]
        if self.method in GAUSSIAN_METHODS:
            return GAUSSIAN_METHODS[self.method](ledger, rows, k, rng)
        numbers: Any = {"epsilon": ledger.budget.epsilon, "delta": ledger.budget.delta, "gamma": self.gamma}
        return private_subspace(rows, k, method=self.method, rng=rng, **numbers)  # type: ignore[arg-type]
