"""The replayed audits: for every mechanism, the pair of neighbours that is known to use up most of its claim.

Each is at an ordinary budget, since nothing has to be seen through noise; where a table of thousands of rows would be
needed for that, at a larger delta. A `reason` says where the proof promises more privacy than any known pair tests.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan import baselines
from privspan.approximate import approximate_subspace
from privspan.audit.cases import SLOPE, by_histogram
from privspan.audit.registry import EPSILON, Case, add, register
from privspan.audit.tables import (
    affine_line_pairs,
    axis_pair,
    halves_pair,
    line_pairs,
    mean_pairs,
    moment_pairs,
    ramp_pair,
    rank_pairs,
    sketch_pair,
    turned_pair,
    vote_pair,
)
from privspan.blocks.rank import choose_dimension
from privspan.exact.exact import exact_subspace
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike, open_streams
from privspan.stable.records import stable_subspace

_SMALL, _LARGE = 1e-6, 0.1
_replay = partial(add, kind="replayed", delta=_SMALL)
_TIE = {"tie": moment_pairs()["tie"]}
_OPPOSITE = {"opposite rows": mean_pairs()["opposite rows"]}
_TURNED = {"residual turned round": turned_pair()}

# ---- Baselines -------------------------------------------------------------------------------------------------

for _name in ("analyze_gauss", "mod_sulq", "noisy_power"):
    _replay(_name, getattr(baselines, _name), _TIE, 1)
_replay("johnson_lindenstrauss", baselines.johnson_lindenstrauss, {"only row": axis_pair(1)}, 1, draws=200)
_replay("inverse_wishart", baselines.inverse_wishart, {"only row": axis_pair(1)}, 1, degrees=200)
_replay("exponential_pca", baselines.exponential_pca, {"row off the axis": axis_pair(9)}, 1)
_replay(
    "eigen_sampling", baselines.eigen_sampling, {"row off the axis": axis_pair(9)}, 1,
    reason="the Laplace noise is sized for the change of all eigenvalues, 2, and one of them moves by 1",
)  # fmt: skip
_replay(
    "analyze_gauss_gap",
    baselines.analyze_gauss_gap,
    {"tilted either way": moment_pairs(2_000)["tilted either way"]},
    1,
)
_replay(
    "smooth_sensitivity", baselines.smooth_sensitivity, {"tilted either way": moment_pairs(2_000)["tilted either way"]}, 1,
    reason="the bound on the movement of a basis is that of its projector, √2 times what a basis can move, and a part "
    "of the budget pays for a noise level that changes with the gap, which it does not on this pair",
)  # fmt: skip
_replay(
    "friendly_core", baselines.friendly_core, {"from one half to the other": halves_pair(41)}, 1, block_size=1,
    reason="a record that uses up the filter's share leaves no core whose average it could move",
)  # fmt: skip
_replay(
    "noisy_range_finder", baselines.noisy_range_finder, _TIE, 1,
    reason="sized for sketches that may point anywhere; with the default number of columns they follow their rows, and "
    "√2 in place of 2 would be nearly enough",
)  # fmt: skip


def _sketched(table: NDArray[Any], k: int, *, rng: RandomLike, **options: Any) -> Release:
    """Sketch to one column, the public direction for which the pair was made."""
    return baselines.noisy_range_finder(table, k, sketch=1, rng=0, **options)


_DIRECTION = open_streams(0).public.standard_normal((100, 1))[:, 0]
_replay("noisy_range_finder (one column)", _sketched, {"sketched to opposites": sketch_pair(_DIRECTION)}, 1)

# ---- Exact: integers and laws ------------------------------------------------------------------------------------

_THRESHOLD = {"threshold": line_pairs()["threshold"]}
for _variant, _options in {
    "majority": {"method": "gap-max"},
    "gap": {"method": "gap-max", "rule": "gap"},
    "votes": {"method": "votes", "block_size": 1},
    "truncated Laplace": {"method": "gap-max", "release": "truncated-laplace"},
}.items():
    _replay(f"exact_subspace ({_variant})", exact_subspace, _THRESHOLD, 1, delta=0.2, **_options)
_RAMP = {"middle of the ramp": affine_line_pairs()["middle of the ramp"]}
_replay("exact_subspace (affine)", exact_subspace, _RAMP, 1, delta=0.2, affine=True)


def _chosen(table: NDArray[Any], rng: RandomLike) -> int:
    return choose_dimension(table, 2, epsilon=EPSILON, bits=open_streams(rng).noise, block_size=3)


_FLAT = np.tile([[1.0, 0.0, 0.0]], (12, 1))
_BALLOT = {"one ballot of four": rank_pairs("one ballot of four", _FLAT)["one ballot of four"]}
register(Case("choose_dimension", EPSILON, 1e-9, _BALLOT, _chosen, kind="replayed"))

# ---- Close to a subspace ---------------------------------------------------------------------------------------

# So few movers that the record on the ramp costs a step of the margin, where the test is neither sure of yes nor of no.
_EDGE = {**SLOPE, "movers": 16}
_ON_TEST = {"split": {"test": 20.0}}
_NOISE = (
    "the noise is for the worst table that the test lets pass; records of a table that is near a line move it less"
)
_LONG = {"long row, row on the ramp": ramp_pair(0.5, 8.0)}
_replay("stable_subspace", stable_subspace, _LONG, 1, delta=_LARGE, reason=_NOISE, **_EDGE)
_AXIS = {"row on the axis, row on the ramp": ramp_pair()}
_SHORT = {"long row, row on the ramp": ramp_pair(0.8, 8.0)}
_replay("stable_subspace (budget on the test)", stable_subspace, _SHORT, 1, delta=_LARGE, **_EDGE, **_ON_TEST)
_BLOCKS: dict[str, Any] = {"delta": _LARGE, "block_size": 1, **_EDGE}
_replay("approximate_subspace (stable)", approximate_subspace, _AXIS, 1, reason=_NOISE, **_BLOCKS)
_replay("approximate_subspace (budget on the test)", approximate_subspace, _AXIS, 1, **_BLOCKS, **_ON_TEST)
_replay(
    "approximate_subspace (histogram)",
    by_histogram,
    {"lead of a vote": vote_pair(4, 10)},
    1,
    delta=_LARGE,
    gamma=1e-4,
)
