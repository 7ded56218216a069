"""How far off each method is expected to be, from public numbers alone, and how many rows an error would take.

A forecast is the error that privacy costs, joined with that of sampling, its 90th percentile, and how often the
method abstains.  Derivations and how far they were checked: docs/explanation/planning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

import numpy as np
from scipy.special import chdtri

from privspan.blocks.plan import stable_block_size
from privspan.planner.setting import Setting
from privspan.planner.tuning import PLANNER
from privspan.rows.source import as_source
from privspan.stable import choice, near
from privspan.stable import plan as stable_plan
from privspan.stable.tuning import STABLE
from privspan.sums import plan as planner_adaptive
from privspan.sums.everyday import expected_share
from privspan.sums.everyday_tuning import EVERYDAY

METHODS: tuple[str, ...] = ("auto", "adaptive", "stable", "approximate", "analyze-gauss")
"""The methods that are planned: the everyday course, and those that can be named, as ties are broken."""

MOST_STABLE_ROWS = 12_000
"""Beyond, the (n, n) Gram matrix of the stable method, 1.2 GB of memory, is not formed on anybody's behalf."""

_MOST_ROWS = 10**12  # bound of a search
_NO_ANSWER = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Forecast:
    """What a method is expected to do, in numbers: see the attributes of `Plan` with these names."""

    error: float
    error_90: float
    abstention: float
    limited_by: str


@lru_cache(maxsize=1024)  # of public numbers only
def forecast(method: str, setting: Setting) -> Forecast:
    """Predict one method, from the error by privacy, its 90th percentile over that, and how often it abstains."""
    if setting.center and method != "everyday":
        return forecast(method, setting.on_pairs())
    private, spread, abstention = {
        "everyday": _everyday,
        "auto": _auto,
        "adaptive": _adaptive,
        "stable": _stable,
        "approximate": _approximate,
        "analyze-gauss": _analyze_gauss,
    }[method](setting)
    error = min(1.0, math.hypot(private, setting.sampling))
    limit = "abstention" if abstention >= 1.0 else "privacy" if private >= setting.sampling else "sampling"
    return Forecast(error, min(1.0, error * spread), abstention, limit)


def rows_of(method: str, setting: Setting, error: float) -> int | None:
    """Return about the smallest number of rows for which a method is predicted to reach an error."""

    def reaches(n: int) -> bool:
        expected = forecast(method, replace(setting, n=n))
        return expected.error <= error and expected.abstention <= PLANNER.most

    most = MOST_STABLE_ROWS if method == "stable" else _MOST_ROWS
    low, high = setting.k, max(2 * setting.k, 16)
    while not reaches(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def _analyze_gauss(setting: Setting) -> tuple[float, float, float]:
    n, d, k = setting.n, setting.d, setting.k
    if k == d:
        return 0.0, 1.0, 0.0
    if n < k:
        return _NO_ANSWER
    weakest, off_square = planner_adaptive.signal_strength(k, setting.tail)
    # Eigenvectors feel the gap above the tail, not the eigenvalue itself.
    gap = max(weakest - off_square / (d - k), 1e-12)
    error = setting.size / (setting.mu * n * gap)
    return error, 1.0 + PLANNER.once / setting.size, 0.0


def _everyday(setting: Setting) -> tuple[float, float, float]:
    """Forecast a private PCA, by what its other steps are expected to leave, and by the course a table would take."""
    course, share = expected_share(setting.n, setting.d, setting.mu, setting.about)
    rows = setting.n // 2 if course == "pairs" else setting.n
    left = replace(setting, n=rows, mu=setting.mu * math.sqrt(share))
    if not setting.assumed and may_be_near(setting, course):  # few tables are so near, if nobody said that they are
        return _auto(left)
    private, spread, abstention = _analyze_gauss(left)
    if course == "two looks" and setting.d < EVERYDAY.many_columns:
        private *= _clip_square(setting) / (setting.k + setting.tail**2)
    return private, spread, abstention


def may_be_near(setting: Setting, course: str) -> bool:
    """Tell whether a private PCA of this course would find that most rows lie near a subspace.

    A group of 2 (k + 2) rows shows about half of their tails off its best k + 1 directions.
    """
    n, d, k, mu = setting.n, setting.d, setting.k, setting.mu
    off = 0.5 * setting.tail**2 / (k + setting.tail**2)
    asked = course in ("one look", "two looks") and near.can_be_near(as_source(np.broadcast_to(0.0, (n, d))), k, mu)
    return asked and off <= near.most_off(n, d, k, mu)


def _clip_square(setting: Setting) -> float:
    """Return the squared length at which rows are clipped: unit rows have as much signal as these, but over it."""
    longer = EVERYDAY.kappa * math.sqrt(setting.d) / (setting.n * setting.mu)
    return float(chdtri(setting.k, min(longer, 0.5))) + setting.tail**2


def _adaptive(setting: Setting) -> tuple[float, float, float]:
    n, d, k = setting.n, setting.d, setting.k
    if k == d or n < k:
        return _analyze_gauss(setting)
    mu = planner_adaptive.lively(setting.mu, k, d)
    total = planner_adaptive.predicted_error(n, d, k, mu, setting.tail)
    by_rounds = math.sqrt(max(total**2 - setting.sampling**2, 0.0))
    return min(by_rounds, _analyze_gauss(setting)[0]), 1.0 + PLANNER.rounds / setting.size, 0.0


def _auto(setting: Setting) -> tuple[float, float, float]:
    """Follow the course: a look where it is predicted to pay off, else the adaptive algorithm with what is left."""
    if not setting.may_look:
        return _adaptive(setting)
    public = setting.public
    if choice.pays(public, setting.tail):
        return setting.look.error, PLANNER.look if setting.look.rounds else PLANNER.look_alone, 0.0
    return _adaptive(replace(setting, mu=public.mu * math.sqrt(1.0 - choice.probe_share(public))))


def _stable(setting: Setting) -> tuple[float, float, float]:
    """Walk through the steps of stable leverage with expected values in the place of released ones."""
    n, d, k = setting.n, setting.d, setting.k
    if n < k or k == d:
        return _NO_ANSWER
    mu = setting.mu_beside_test
    before = sum(stable_plan.scale_weights(n, k, mu))
    best, length, room = math.inf, 1.0, stable_plan.allowance_for("auto")
    for quantile, signal in product(PLANNER.quantiles, PLANNER.signals):
        scale, share = stable_plan.normal_scales(k, quantile, setting.tail)
        released = min(1.0, PLANNER.bin_edge * setting.tail / scale)
        strength = stable_plan.usual_strength(n, share, mu, signal)
        levels = partial(stable_plan.plan_levels, n, d, strength, released, allowance=room)
        error = _by_noise(setting, before + signal, levels)
        if error < best:
            best, length = error, released
    begins, over = PLANNER.tails
    abstains = _clipped((length - begins) / over)
    return _NO_ANSWER if math.isinf(best) else (best, PLANNER.look_alone, abstains)


def _approximate(setting: Setting) -> tuple[float, float, float]:
    """Do the same for the group version, whose items are the top-k spaces of blocks."""
    n, d, k = setting.n, setting.d, setting.k
    m = stable_block_size(n, k)
    groups = n // m
    if groups < 2 or k == d:
        return _NO_ANSWER
    tilt = min(1.0, setting.tail * PLANNER.block_tilt / (math.sqrt(m) - math.sqrt(k)))
    mu = setting.mu_beside_test
    strength, room = STABLE.group_strength * groups, STABLE.groups
    levels = partial(stable_plan.plan_levels, groups, d, strength, tilt, allowance=room, width=k)
    error = _by_noise(setting, stable_plan.group_tail_weight(groups, mu), levels, k)
    (enough, few), (begins, over) = PLANNER.few_groups, PLANNER.tilts
    abstains = _clipped(max((enough - mu * groups) / few, (tilt - begins) / over))
    return _NO_ANSWER if math.isinf(error) else (error, PLANNER.groups, abstains)


def _by_noise(setting: Setting, before: float, levels: stable_plan.Levels, width: int = 1) -> float:
    """Return the error of the best split of what earlier steps leave of mu²; inf if no split has a plan."""
    mu, test = setting.mu_beside_test, PLANNER.test * setting.delta
    *_, noise, sensitivity = stable_plan.least_noise(1.0 - before, mu, test, levels, PLANNER.tests)
    return sensitivity * math.sqrt(width) * setting.size / (mu * math.sqrt(noise))


def _clipped(abstention: float) -> float:
    return min(1.0, max(PLANNER.rare, abstention))
