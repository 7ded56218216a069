"""The exponential mechanism on the unit sphere, drawn exactly by rejection.

The target has density proportional to exp(c uᵀ A u) on the sphere of R^m: a Bingham distribution.  Proposals are
directions y / |y| of y ~ N(0, (b I + 2 B)^-1) with B = c (largest eigenvalue - A), an angular central Gaussian, and a
proposal is kept with probability exp(-(m/2)(w - 1 - log w)), w = uᵀ (b I + 2 B) u / m (Kent, Ganeiber, Mardia, 2013).
The law is right for every b; at the b with trace (b I + 2 B)^-1 = 1 at least 0.004 / sqrt(m) of all proposals are
kept, whatever A is, so a number of tries known in advance is enough (docs/explanation/baselines.md, lemma 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privspan.baselines._common import Array, Table, spectrum
from privspan.baselines._renyi import draw_epsilon
from privspan.baselines._tuning import RIVALS
from privspan.privacy import Part
from privspan.privacy.run import Run

_DENSITY_FLOOR = 0.0012  # of the quadratic form at its mean: lemma 3
_BATCH_ENTRIES = 2**16


def plan_draws(
    table: Table, steps: str, eigenvalues: int = 0, eigenvalue_epsilon: float = 0.0
) -> tuple[float, int, tuple[Part, Part]]:
    """Return the e of each of k draws, the cap on its tries, and what draws, eigenvalues before them and cap cost."""
    rest, reserved = table.budget.reserve_delta(RIVALS.cap)
    step = draw_epsilon(table.k, rest, eigenvalues, eigenvalue_epsilon)
    tries = cap_on_tries(table.d, table.k, rest.epsilon, reserved)
    cap = Part("cap on the tries of the sampler", 0.0, reserved)
    return step, tries, (Part(steps, rest.epsilon, rest.delta), cap)


def acceptance_floor(m: int) -> float:
    """Return a probability that every proposal on the sphere of R^m is kept with at least."""
    return 1.0 if m == 1 else math.sqrt(4.0 * math.pi / m) * _DENSITY_FLOOR


def cap_on_tries(m: int, draws: int, epsilon: float, delta: float) -> int:
    """Return the number of tries after which a draw gives up, such that all draws together cost at most delta.

    A chance of failure beta per draw adds (1 + e^epsilon) * draws * beta to delta.
    """
    log_failure = math.log(delta) - math.log(draws) - float(np.logaddexp(0.0, epsilon))
    return math.ceil(-log_failure / acceptance_floor(m))


@dataclass(frozen=True)
class Bingham:
    """The law on the unit sphere with density proportional to exp(weight uᵀ matrix u)."""

    matrix: Array  # symmetric, (m, m)
    weight: float  # positive

    def draw(self, tries: int, generator: np.random.Generator) -> Array | None:
        """Draw a unit vector, or return None when `tries` proposals in a row were rejected."""
        vectors, variances = self._envelope
        m = len(variances)
        batch = max(1, min(64, _BATCH_ENTRIES // m))
        for start in range(0, tries, batch):
            normals = generator.standard_normal((min(batch, tries - start), m))  # (b, m)
            proposals = normals * np.sqrt(variances)
            ratios = (normals * normals).sum(axis=1) / (m * (proposals * proposals).sum(axis=1))  # w
            heights = np.log1p(-generator.random(len(normals)))
            kept = np.flatnonzero(heights <= -0.5 * m * (ratios - 1.0 - np.log(ratios)))
            if kept.size:
                chosen = proposals[kept[0]]
                return np.asarray(vectors @ (chosen / np.linalg.norm(chosen)))
        return None

    @cached_property
    def _envelope(self) -> tuple[Array, Array]:
        """Eigenvectors, and the variances of a proposal along them."""
        values, vectors = spectrum(self.matrix)
        return vectors, envelope_variances(self.weight * (values[0] - values))


def drawn_direction(matrix: Array, weight: float, tries: int, generator: np.random.Generator) -> Array | None:
    """Draw from the exponential mechanism on the sphere, or return None when the tries are used up."""
    return Bingham(matrix, weight).draw(tries, generator)


def deflated_vectors(matrix: Array, k: int, weight: float, tries: int, run: Run) -> Array | None:
    """Draw k orthonormal vectors one by one, each in the complement of those before it, (d, k); or None."""
    d = len(matrix)
    found = np.zeros((d, 0))
    for _ in range(k):
        rest = np.linalg.qr(found, mode="complete")[0][:, found.shape[1] :] if found.size else np.eye(d)
        direction = run.draw(drawn_direction, rest.T @ matrix @ rest, weight, tries)
        if direction is None:
            return None
        found = np.column_stack([found, rest @ direction])
    return found


def envelope_variances(deficits: Array) -> Array:
    """Return 1 / (b + 2 deficits) with b such that they sum to one; deficits are at least 0, the first is 0."""
    low, high = 0.5, float(len(deficits)) + 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.sum(1.0 / (middle + 2.0 * deficits)) > 1.0 else (low, middle)
    return np.asarray(1.0 / (high + 2.0 * deficits))
