"""The replayed audits: for every mechanism, the pair of neighbours that is known to use up most of its claim.

Each is at an ordinary budget, since nothing has to be seen through noise; where a table of thousands of rows would be
needed for that, at a larger delta. A `reason` says where the proof promises more privacy than any known pair tests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from privspan import baselines
from privspan._lib.arrays import Reals
from privspan.approximate import approximate_subspace
from privspan.audit.cases import (
    FIRST_AXIS,
    ON_TEST,
    PLANE,
    VARIANTS,
    by_histogram,
    chosen,
    classified,
    of_persons,
    regressed,
    scaled,
)
from privspan.audit.registry import EPSILON, Case, add, register
from privspan.audit.releases import Released
from privspan.audit.replay import Transcript
from privspan.audit.tables import (
    Levels,
    affine_line_pairs,
    axis_pair,
    balanced_pairs,
    ballot_pair,
    ballots_and_votes_pair,
    classifier_pairs,
    friends_pair,
    halves_pair,
    last_replaced,
    levels_between_bins,
    line_pairs,
    looked_at_pair,
    mean_pairs,
    moment_pairs,
    persons_pairs,
    rank_pairs,
    regression_pairs,
    short_row_pair,
    side_pair,
    sides_pair,
    sketch_pair,
    turned_pair,
    vote_pair,
)
from privspan.boosted import boosted_subspace
from privspan.exact.exact import exact_subspace
from privspan.pca import private_pca
from privspan.privacy import Release
from privspan.privacy.randomness import open_streams
from privspan.private import private_subspace
from privspan.rows import PartitionedTable, partition_rows
from privspan.stable.records import stable_subspace
from privspan.standard.column_scales import private_scales
from privspan.sums.adaptive import adaptive_subspace
from privspan.sums.mean import private_mean
from privspan.sums.score_map import private_score_map
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
# The first two steps of a direction know no centre yet; of many steps they are few.
_AXES = {"either axis": balanced_pairs(2_000)["either axis"]}
_replay("k_dp_pca (two directions)", baselines.k_dp_pca, _AXES, 2, steps=32)


def _sketched(table: Reals, k: int, *, rng: Transcript, **options: Any) -> Release:
    """Sketch along the public directions for which the pair was made."""
    return baselines.noisy_range_finder(table, k, rng=rng.seeded(0), **options)


_DIRECTIONS = open_streams(0).public.standard_normal((200, 32))
_replay("noisy_range_finder (few columns)", _sketched, {"sketched to opposites": sketch_pair(_DIRECTIONS)}, 1)

# ---- Exact: integers and laws ------------------------------------------------------------------------------------

_THRESHOLD = {"threshold": line_pairs()["threshold"]}
for _variant, _options in VARIANTS.items():
    _replay(f"exact_subspace ({_variant})", exact_subspace, _THRESHOLD, 1, delta=0.2, **_options)
_RAMP = {"middle of the ramp": affine_line_pairs()["middle of the ramp"]}
_replay("exact_subspace (affine)", exact_subspace, _RAMP, 1, delta=0.2, affine=True)

_FLAT = np.tile([[1.0, 0.0, 0.0]], (12, 1))
_BALLOT = {"one ballot of four": rank_pairs("one ballot of four", _FLAT)["one ballot of four"]}
register(Case("choose_dimension", EPSILON, 1e-9, _BALLOT, chosen, kind="replayed"))

# ---- Close to a subspace ---------------------------------------------------------------------------------------

_ON_TEST: dict[str, Any] = {"split": {"test": 8.0}}
_LITTLE = {"test": 0.01, "noise": 0.01, "delta_test": 1e-3}
_ON_SCALES: dict[str, Any] = {"split": {"scale": 0.48, "tail": 0.48, "long": 0.001, "signal": 0.02, **_LITTLE}}
_ON_TAIL: dict[str, Any] = {"split": {"tail": 0.98, **_LITTLE}}  # the one scale that blocks release

# A coin tells as much at (epsilon, delta) as the Gaussian step that the proof counts it as if it is about as rare as
# the event in which that step gives most away: at a small delta, far from one half. Figures in reasons are those of
# benchmarks/scripts/replay_room.py.
_BLOCKS: dict[str, Any] = {"block_size": 1}
_BOOST: dict[str, Any] = {"alpha": 0.9, "beta": 0.3, **_BLOCKS}
_SHORT, _SHORT_TEST = Levels(129, 25, 18, 4), Levels(700, 40, 20, 4)
_SIDES, _SIDES_TEST = levels_between_bins(170, 58, 35, 6), levels_between_bins(700, 40, 20, 4)
_ROW = {"short row, row off the axis": short_row_pair(_SHORT)}
_SLOPE = Levels(117, 42, 28, 4, ramp=9)
_RAMP_ROW = {"short row, row on the ramp": short_row_pair(_SLOPE)}
_ROW_TEST = {"short row, row off the axis": short_row_pair(_SHORT_TEST)}
_EITHER, _EITHER_TEST = ({"either side of the axis": sides_pair(levels)} for levels in (_SIDES, _SIDES_TEST))
_PARTS, _PARTS_TEST = ({"either side of the axis": sides_pair(levels, 3)} for levels in (_SIDES, _SIDES_TEST))
_SCALES = (
    "a record that moves every scale moves the basis by a quarter of its bound; the whole would be 90 %, and the "
    "account is for the worst pair of margins after every outcome of the first steps, while this is one pair"
)
_replay("stable_subspace", stable_subspace, _ROW, 1, reason=_SCALES, **_SHORT.options)
_replay("stable_subspace (slope)", stable_subspace, _RAMP_ROW, 1, reason=_SCALES, **_SLOPE.options)
_TOGETHER = Levels(1_000, 120, 60, 4)  # where the chances of the joint account rise most steeply
_ROW_TOGETHER = {"short row, row off the axis": short_row_pair(_TOGETHER)}
_ONE_PAIR = (
    "the account is for the worst pair of margins after every outcome of the first steps, and this is one pair"
)
_replay(
    "stable_subspace (accounted together)", stable_subspace, _ROW_TOGETHER, 1, reason=_ONE_PAIR, **_TOGETHER.options
)
_replay("stable_subspace (budget on the test)", stable_subspace, _ROW_TEST, 1, split=ON_TEST, **_SHORT_TEST.options)
_replay("stable_subspace (budget on the scales)", stable_subspace, _ROW_TEST, 1, **_ON_SCALES, **_SHORT_TEST.options)
_BASIS = (
    "the basis moves by 57 % of its bound; the whole would be 92 %, and 98 % with a coin as Gaussian as the proof "
    "counts it"
)
_replay("approximate_subspace (stable)", approximate_subspace, _EITHER, 1, reason=_BASIS, **_BLOCKS, **_SIDES.options)
_replay(
    "approximate_subspace (budget on the tail)", approximate_subspace, _EITHER_TEST, 1,
    **_BLOCKS, **_ON_TAIL, **_SIDES_TEST.options,
)  # fmt: skip
_replay(
    "approximate_subspace (budget on the test)", approximate_subspace, _EITHER_TEST, 1,
    **_BLOCKS, **_ON_TEST, **_SIDES_TEST.options,
)  # fmt: skip
_replay("boosted_subspace", boosted_subspace, _PARTS, 1, reason=_BASIS, **_BOOST, **_SIDES.options)
for _where, _split in (("tail", _ON_TAIL), ("test", _ON_TEST)):
    _replay(
        f"boosted_subspace (budget on the {_where})", boosted_subspace, _PARTS_TEST, 1,
        **_BOOST, **_split, **_SIDES_TEST.options,
    )  # fmt: skip

_LEAD = {"lead of a vote": vote_pair(4, 10)}
_replay("approximate_subspace (histogram)", by_histogram, _LEAD, 1, delta=_LARGE, gamma=1e-4)
_replay(
    "approximate_subspace (histogram, side chosen)", by_histogram, {"partner or runner-up": side_pair()}, 1,
    epsilon=4.0, delta=1e-4, shuffle=False,
)  # fmt: skip
_BALLOTS = levels_between_bins(120, 49, 30, 7, 15)
_replay(
    "approximate_subspace (k chosen)", approximate_subspace, {"either side, either ballot": ballot_pair(_BALLOTS)},
    "auto", block_size=2, max_components=2, shuffle=False, **_BALLOTS.options,
    reason="the vote is used up; the basis moves by 45 % of its bound; the whole would be 92 %, and 96 % with a coin "
    "as Gaussian as the proof counts it",
)  # fmt: skip
_replay(
    "approximate_subspace (histogram, k chosen)", approximate_subspace,
    {"either ballot, either vote": ballots_and_votes_pair()}, "auto",
    epsilon=4.0, aggregate="histogram", gamma=1e-6, block_size=2, max_components=2, shuffle=False,
)  # fmt: skip

# ---- Everyday PCA ----------------------------------------------------------------------------------------------

_UNIT = np.tile([[1.0, 0.0], [-1.0, 0.0]], (100, 1))  # so many that the released length is that of a row
_TILTED = {"tilted either way": moment_pairs()["tilted either way"]}
_replay("adaptive_subspace", adaptive_subspace, _TIE, 1)
_replay("adaptive_subspace (localised)", adaptive_subspace, _TURNED, 1)
_replay("private_subspace", private_subspace, _TURNED, 1)
# So many columns that stable leverage may pay off; of the second table the tails turn out too long for that.
_SHORT_TAILS = {"residual and length changed": looked_at_pair(1_700, 100, 1e-5, 1.42e-4)}
_LONG_TAILS = {"residual and length changed": looked_at_pair(1_500, 60, 1e-3, 1e-2)}
_replay("private_subspace (look)", private_subspace, _SHORT_TAILS, 1)
_replay("private_subspace (tails too long)", private_subspace, _LONG_TAILS, 1)
_replay("explained_variance", explained_variance, _TIE, FIRST_AXIS, norm_bound=1.0)
_ACROSS = {"far row, row across": last_replaced(_UNIT, (1e3, 0.0), (0.0, 16.0))}
_replay("explained_variance (bound chosen)", explained_variance, _ACROSS, FIRST_AXIS)
_replay("private_mean", private_mean, _OPPOSITE, norm_bound=1.0)
_replay("private_mean (in a subspace)", private_mean, _OPPOSITE, subspace=FIRST_AXIS, norm_bound=1.0)
_replay("private_mean (bound chosen)", private_mean, {"far rows": last_replaced(_UNIT, (1e3, 0.0), (-16.0, 0.0))})
_RANGES = ((-1, 1), (-1, 1))
_replay("private_score_map", private_score_map, _OPPOSITE, PLANE, bins=3, ranges=_RANGES)
_ONE_WAY = {"far row, row like others": last_replaced(_UNIT, (1e3, 1e3), (0.5, 0.0))}
_replay("private_score_map (spreads measured)", private_score_map, _ONE_WAY, PLANE, bins=3)
_replay("private_regression", regressed, {"opposite targets": regression_pairs()["opposite targets"]})
_TARGET = {"target turned round": regression_pairs()["target turned round"]}
_replay("private_regression (in a subspace)", regressed, _TARGET, FIRST_AXIS)
_MISJUDGED = {"opposite rows": classifier_pairs()["opposite rows"]}
_replay("private_classifier", classified, _MISJUDGED)
_replay("private_classifier (in a subspace)", classified, _MISJUDGED, FIRST_AXIS)
# So few rows that gaps are not counted.
_FAR_CELLS = {"far row, opposite row": last_replaced(np.zeros((200, 2)), (1e6, 1e6), (-1e6, -1e6))}
_replay("PrivateStandardScaler", scaled, _FAR_CELLS, epsilon=8.0)


def _held(made: Callable[[Reals], object], algorithm: Callable[..., Released]) -> Callable[..., Released]:
    """Run an algorithm on the same rows, held in another way."""
    return lambda table, *arguments, **options: algorithm(made(table), *arguments, **options)


def _paired(table: Reals) -> PartitionedTable:
    """Make the last two rows a partition, and so a pair in every public order."""
    return partition_rows(table, (len(table) - 2, 2))


_replay("private_scales", private_scales, _FAR_CELLS, epsilon=8.0)
_replay("private_scales (bounds)", private_scales, _FAR_CELLS, bounds=(-1.0, 1.0), epsilon=8.0)
_FAR = {"row at the centre, far row": last_replaced(moment_pairs(57)["tie"][0], (0.0, 0.0), (0.0, -1e3))}
_replay("private_pca", private_pca, _FAR, 1, delta=_LARGE)
_replay("private_pca (robust)", private_pca, _FAR, 1, delta=_LARGE, robust=True)
_replay("private_pca (public centre)", private_pca, _TIE, 1, around=(0.0, 0.0))
_replay("private_pca (not centred)", private_pca, _TILTED, 1, center=False)
_CLOUD = np.random.default_rng(0).standard_normal((600, 2))
_ACROSS_LONG = {"far row, row across": last_replaced(_CLOUD, (1e3, 0.0), (0.0, 3.0))}
_replay("private_pca (centre searched for)", private_pca, _ACROSS_LONG, 1)
# Every other row is a tie: whatever the pairs are, the last one is larger in both columns, or in one of them.
_SIGNS_TURNED = {"larger, larger and smaller": last_replaced(np.zeros((400, 2), dtype=int), (1, 1), (1, -1))}
_replay("private_pca (ranks)", private_pca, _SIGNS_TURNED, 1, scale=True)
_replay("private_pca (ranks, partitions)", _held(_paired, private_pca), _SIGNS_TURNED, 1, scale=True)
_replay("private_pca (ranks, sparse)", _held(csr_array, private_pca), _SIGNS_TURNED, 1, scale=True)
_ONE_GAP = {"gap in either column": last_replaced(np.zeros((1_200, 2)), (1.0, np.nan), (np.nan, 1.0))}
_replay("private_pca (ranks, gaps)", private_pca, _ONE_GAP, 1, scale=True)

_of_whole_numbers = _held(lambda table: table.astype(np.int64), private_pca)  # which have no gaps to count
for _course, _rows in (("ranks", 1_640), ("deviations", 2_100)):
    _name = "private_pca (ranks, units too)" if _course == "ranks" else "private_pca (deviations)"
    _halves = {"far in either half": halves_pair(_rows, 20, apart=_course == "deviations")}  # ranks would see signs
    _replay(_name, _of_whole_numbers, _halves, 1, scale=_course, epsilon=8.0)
_ONE = {"one ballot of two": rank_pairs("one ballot of two", _FLAT)["one ballot of two"]}
_replay("private_pca (k chosen)", private_pca, _ONE, "auto", center=False, max_components=2)

# ---- Several rows a person -----------------------------------------------------------------------------------------

_replay("private_mean (persons)", of_persons(private_mean), persons_pairs(_OPPOSITE), norm_bound=1.0)
_replay("private_subspace (persons)", of_persons(private_subspace), persons_pairs(_TIE), 1)
_replay("private_pca (ranks, persons)", of_persons(private_pca), persons_pairs(_SIGNS_TURNED), 1, scale=True)
_replay("private_pca (persons)", of_persons(private_pca), persons_pairs(_TIE), 1, around=(0.0, 0.0))
_replay("private_scales (persons)", of_persons(private_scales), persons_pairs(_FAR_CELLS), epsilon=8.0)
