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
from privspan.audit.cases import EDGE, FIRST_AXIS, ON_TEST, PLANE, by_histogram, of_persons, regressed, scaled
from privspan.audit.registry import EPSILON, Case, add, register
from privspan.audit.tables import (
    affine_line_pairs,
    axis_pair,
    balanced_pairs,
    friends_pair,
    last_replaced,
    line_pairs,
    mean_pairs,
    moment_pairs,
    persons_pairs,
    ramp_pair,
    rank_pairs,
    regression_pairs,
    scale_pairs,
    sketch_pair,
    turned_pair,
    vote_pair,
)
from privspan.blocks.rank import choose_dimension
from privspan.boosted import boosted_subspace
from privspan.exact.exact import exact_subspace
from privspan.pca import private_pca
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike, open_streams
from privspan.private import private_subspace
from privspan.stable.records import stable_subspace
from privspan.sums.adaptive import adaptive_subspace
from privspan.sums.mean import private_mean
from privspan.sums.score_map import private_score_map
from privspan.sums.standardise import private_scales
from privspan.sums.variance import explained_variance

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
_replay("eigen_sampling", baselines.eigen_sampling, {"row off the axis": axis_pair(9)}, 1)
_CLEAR = {"tilted either way": moment_pairs(2_000)["tilted either way"]}
_replay("analyze_gauss_gap", baselines.analyze_gauss_gap, _CLEAR, 1)
_replay("smooth_sensitivity", baselines.smooth_sensitivity, _CLEAR, 1)
_FRIENDS = {"friend on either side": friends_pair(4_000, 0.2)}
_replay("friendly_core", baselines.friendly_core, _FRIENDS, 1, delta=_LARGE, block_size=1, radius=0.2)
_replay("noisy_range_finder", baselines.noisy_range_finder, _TIE, 1)

_BALANCED, _MANY = balanced_pairs(300), balanced_pairs(5_000)
_BETWEEN = "between the axes"
_replay("k_dp_pca", baselines.k_dp_pca, {_BETWEEN: _BALANCED[_BETWEEN]}, 1)
_replay("k_dp_pca (single pass)", baselines.k_dp_pca, {_BETWEEN: _MANY[_BETWEEN]}, 1, single_pass=True)
_replay(
    "k_dp_pca (two directions)", baselines.k_dp_pca, {"either axis": _BALANCED["either axis"]}, 2,
    reason="no pair is known whose gradients are as far apart as they can be along both directions",
)  # fmt: skip


def _sketched(table: NDArray[Any], k: int, *, rng: RandomLike, **options: Any) -> Release:
    """Sketch along the public directions for which the pair was made."""
    return baselines.noisy_range_finder(table, k, rng=0, **options)


_DIRECTIONS = open_streams(0).public.standard_normal((200, 32))
_replay("noisy_range_finder (few columns)", _sketched, {"sketched to opposites": sketch_pair(_DIRECTIONS)}, 1)

# ---- Exact: integers and laws ------------------------------------------------------------------------------------

_THRESHOLD = {"threshold": line_pairs()["threshold"]}
_VARIANTS: dict[str, dict[str, Any]] = {
    "majority": {"method": "gap-max"},
    "gap": {"method": "gap-max", "rule": "gap"},
    "votes": {"method": "votes", "block_size": 1},
    "truncated Laplace": {"method": "gap-max", "release": "truncated-laplace"},
}
for _variant, _options in _VARIANTS.items():
    _replay(f"exact_subspace ({_variant})", exact_subspace, _THRESHOLD, 1, delta=0.2, **_options)
_RAMP = {"middle of the ramp": affine_line_pairs()["middle of the ramp"]}
_replay("exact_subspace (affine)", exact_subspace, _RAMP, 1, delta=0.2, affine=True)


def _chosen(table: NDArray[Any], rng: RandomLike) -> int:
    return choose_dimension(table, 2, epsilon=EPSILON, bits=open_streams(rng).noise, block_size=3)


_FLAT = np.tile([[1.0, 0.0, 0.0]], (12, 1))
_BALLOT = {"one ballot of four": rank_pairs("one ballot of four", _FLAT)["one ballot of four"]}
register(Case("choose_dimension", EPSILON, 1e-9, _BALLOT, _chosen, kind="replayed"))

# ---- Close to a subspace ---------------------------------------------------------------------------------------

_EDGE: dict[str, Any] = {"delta": _LARGE, **EDGE}
_BLOCKS: dict[str, Any] = {"block_size": 1, **_EDGE}
_ON_TEST: dict[str, Any] = {"split": {"test": 8.0}}
_LITTLE = {"test": 0.01, "noise": 0.01, "delta_test": 1e-3}
_ON_SCALES: dict[str, Any] = {"split": {"scale": 0.48, "tail": 0.48, "long": 0.001, "signal": 0.02, **_LITTLE}}
_ON_TAIL: dict[str, Any] = {"split": {"tail": 0.98, **_LITTLE}}  # the one scale that blocks release
_COIN = "a coin tells less than the Gaussian step that the proof counts it as"
_NOISE = (
    f"the noise of the basis is for the worst table that the test lets pass, and hardly moves on this one; {_COIN}"
)
_AXIS = {"row on the axis, row on the ramp": ramp_pair()}
_LONG = {"long row, row on the ramp": ramp_pair(0.5, 8.0)}
_replay("stable_subspace", stable_subspace, _LONG, 1, reason=_NOISE, **_EDGE)
_replay("stable_subspace (budget on the test)", stable_subspace, _LONG, 1, reason=_COIN, split=ON_TEST, **_EDGE)
_replay("stable_subspace (budget on the scales)", stable_subspace, _LONG, 1, **_EDGE, **_ON_SCALES)
_replay("approximate_subspace (stable)", approximate_subspace, _AXIS, 1, reason=_NOISE, **_BLOCKS)
_replay("approximate_subspace (budget on the tail)", approximate_subspace, _AXIS, 1, **_BLOCKS, **_ON_TAIL)
_replay(
    "approximate_subspace (budget on the test)", approximate_subspace, _AXIS, 1, reason=_COIN, **_BLOCKS, **_ON_TEST
)
_PARTS = {"row on the axis, row on the ramp": ramp_pair(copies=3)}
_BOOST: dict[str, Any] = {"alpha": 0.9, "beta": 0.3, **_BLOCKS}
_DEALT = f"in some public orders of the rows the record's part has no margin to lose; {_COIN}"
_replay("boosted_subspace", boosted_subspace, _PARTS, 1, reason=_DEALT, **_BOOST)
_replay("boosted_subspace (budget on the tail)", boosted_subspace, _PARTS, 1, **_BOOST, **_ON_TAIL)
_replay("boosted_subspace (budget on the test)", boosted_subspace, _PARTS, 1, reason=_DEALT, **_BOOST, **_ON_TEST)
_replay(
    "approximate_subspace (histogram)",
    by_histogram,
    {"lead of a vote": vote_pair(4, 10)},
    1,
    delta=_LARGE,
    gamma=1e-4,
)
_replay(
    "approximate_subspace (histogram, side chosen)", by_histogram, {"one line more": vote_pair(200, 99)}, 1,
    epsilon=4.0, delta=1e-4,
    reason="no pair was found on which one record moves both the choice of the side and the vote; few were tried",
)  # fmt: skip
_LINE = np.tile([[1.0, 0.0, 0.0, 0.0]], (60, 1))
_OFF = {"row off the line": last_replaced(_LINE, (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 1.0))}
_replay(
    "approximate_subspace (k chosen)", approximate_subspace, _OFF, "auto", epsilon=4.0, block_size=2,
    max_components=2,
    reason="the pair was chosen for the vote, which has a part of epsilon; few others were tried",
)  # fmt: skip

# ---- Everyday PCA ----------------------------------------------------------------------------------------------

_UNIT = np.tile([[1.0, 0.0], [-1.0, 0.0]], (100, 1))  # so many that the released length is that of a row
_TILTED = {"tilted either way": moment_pairs()["tilted either way"]}
_replay("adaptive_subspace", adaptive_subspace, _TIE, 1)
_replay("adaptive_subspace (localised)", adaptive_subspace, _TURNED, 1)
_replay("private_subspace", private_subspace, _TURNED, 1)
_replay("explained_variance", explained_variance, _TIE, FIRST_AXIS, norm_bound=1.0)
_ACROSS = {"far row, row across": last_replaced(_UNIT, (1e3, 0.0), (0.0, 16.0))}
_replay("explained_variance (bound chosen)", explained_variance, _ACROSS, FIRST_AXIS)
_replay("private_mean", private_mean, _OPPOSITE, norm_bound=1.0)
_replay("private_mean (in a subspace)", private_mean, _OPPOSITE, FIRST_AXIS, norm_bound=1.0)
_replay("private_mean (bound chosen)", private_mean, {"far rows": last_replaced(_UNIT, (1e3, 0.0), (-16.0, 0.0))})
_RANGES = ((-1, 1), (-1, 1))
_replay("private_score_map", private_score_map, _OPPOSITE, PLANE, bins=3, ranges=_RANGES)
_ONE_WAY = {"far row, row like others": last_replaced(_UNIT, (1e3, 1e3), (0.5, 0.0))}
_replay("private_score_map (spreads measured)", private_score_map, _ONE_WAY, PLANE, bins=3)
_replay("private_regression", regressed, {"opposite targets": regression_pairs()["opposite targets"]})
_TARGET = {"target turned round": regression_pairs()["target turned round"]}
_replay("private_regression (in a subspace)", regressed, _TARGET, FIRST_AXIS)
_APART = scale_pairs()["tiny row, long row"]
_replay("PrivateStandardScaler", scaled, {"tiny row, long row": _APART}, with_mean=False, epsilon=8.0)
_FAR_OFF = {"short row, far row": last_replaced(_APART[0], (3.0, 0.5), (-1e3, 1e3))}
_replay(
    "private_scales", private_scales, _FAR_OFF, epsilon=8.0,
    reason="the most of a hundred pairs of rows drawn at random",
)  # fmt: skip
_TABLE = np.repeat([[0.0, 0.0], [1.0, 1.0]], 200, axis=0)
_ENDS = {"end to end": last_replaced(_TABLE, (0.0, 0.0), (1.0, 1.0))}
_BOUNDS: dict[str, Any] = {"bounds": (0.0, 1.0), "epsilon": 8.0}
_replay(
    "private_scales (bounds)", private_scales, _ENDS, **_BOUNDS,
    reason="the second moments are used up; the mean is not, as rows within the bounds are short beside its clip",
)  # fmt: skip
_replay("private_scales (bounds, not centred)", private_scales, _ENDS, center=False, **_BOUNDS)
_FAR = {"row at the centre, far row": last_replaced(moment_pairs(57)["tie"][0], (0.0, 0.0), (0.0, -1e3))}
_replay("private_pca", private_pca, _FAR, 1, delta=_LARGE)
_replay("private_pca (robust)", private_pca, _FAR, 1, delta=_LARGE, robust=True)
_replay("private_pca (public centre)", private_pca, _TIE, 1, center=(0.0, 0.0))
_replay("private_pca (not centred)", private_pca, _TILTED, 1, center=False)
_CLOUD = np.clip(0.3 * np.random.default_rng(0).standard_normal((600, 2)), -1.0, 1.0)
_CORNERS = {"corner to corner": last_replaced(_CLOUD, (1.0, 1.0), (1.0, -1.0))}
_replay(
    "private_pca (scaled, bounds)", private_pca, _CORNERS, 1, scale=True, bounds=(-1, 1),
    reason="a record that uses up both looks has the same length in both tables, and moves no count of lengths",
)  # fmt: skip
_ONLY = {"only ballot": rank_pairs("only ballot", _FLAT[:6])["only ballot"]}
_replay(
    "private_pca (k chosen)", private_pca, _ONLY, "auto", delta=_LARGE, center=False, max_components=2,
    reason="the most of a few pairs; why has not been traced",
)  # fmt: skip

# ---- Several rows a person -----------------------------------------------------------------------------------------

_replay("private_mean (persons)", of_persons(private_mean), persons_pairs(_OPPOSITE), norm_bound=1.0)
_replay("private_subspace (persons)", of_persons(private_subspace), persons_pairs(_TIE), 1)
_replay("private_pca (persons)", of_persons(private_pca), persons_pairs(_TIE), 1, center=(0.0, 0.0))
