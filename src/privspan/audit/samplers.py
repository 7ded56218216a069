"""Tests of every noise sampler against its exact law.

Each test draws from one sampler and returns a p-value: Pearson's chi-square for whole numbers and events (cells with
fewer than 20 expected draws are pooled), Kolmogorov and Smirnov's for the rest. A sampler is refuted when the p-value
is below `FALSE_ALARM`; for a sampler with exactly the stated law that is also about the chance that it happens.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privspan.audit.laws import flipped_law
from privspan.baselines._bingham import Bingham
from privspan.baselines._common import bartlett_factor, haar_rotation
from privspan.baselines.eigen_sampling import eigen_sampling
from privspan.blocks.histogram import _PRIME, _uniform_below_prime
from privspan.privacy import Budget
from privspan.privacy.coin import GaussianCoin, goes_on, random_rotation
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.noise import add_gaussian, rounded_normal
from privspan.privacy.randomness import RandomLike, Streams, float_generator, secret_order
from privspan.privacy.run import Run
from privspan.privacy.selection import TruncatedLaplace, _coin_exp, permute_and_flip, release_probability, releases
from privspan.rows.unit import Rows
from privspan.sums.grid import NoiseLevel, gaussian_symmetric
from privspan.sums.lazy_gauss import LazyGauss, UnitGram

Array = NDArray[np.float64]

FALSE_ALARM = 1e-6
"""P-value below which a sampler is refuted."""

_FEWEST_EXPECTED = 20.0  # draws of a cell; cells with fewer are pooled, or chi-square is not its limiting law
_FEWEST_DRAWS = 300


@dataclass(frozen=True)
class Sampler:
    """One sampler under test.

    Attributes
    ----------
    name, case, test : str
        The sampler, the law it is tested against, and by which test.
    draws : int
        Draws at full length.
    p_value : callable
        From the number of draws and fresh streams to the p-value.
    """

    name: str
    case: str
    test: str
    draws: int
    p_value: Callable[[int, Streams], float]

    @property
    def fewest_draws(self) -> int:
        """Draws that a short audit makes: below about this many, cells are pooled and no sampler could be refuted."""
        return max(_FEWEST_DRAWS, self.draws // 20)


_Outcome = TypeVar("_Outcome", bound=Hashable)


def chi_square(drawn: Sequence[_Outcome], law: Mapping[_Outcome, float]) -> float:
    """P-value of Pearson's test; outcomes outside the law make it 0.

    Parameters
    ----------
    drawn : sequence
        What was drawn.
    law : mapping of outcome to probability
        Sums to one.

    Examples
    --------
    >>> chi_square(["heads"] * 520 + ["tails"] * 480, {"heads": 0.5, "tails": 0.5}) > 0.1
    True
    """
    counts = Counter(drawn)
    if any(law.get(outcome, 0.0) == 0.0 for outcome in counts):
        return 0.0
    common = [outcome for outcome, chance in law.items() if chance * len(drawn) >= _FEWEST_EXPECTED]
    seen = [counts[outcome] for outcome in common]
    expected = [law[outcome] * len(drawn) for outcome in common]
    pooled = len(drawn) - sum(expected)
    if pooled >= 1.0:
        seen, expected = [*seen, len(drawn) - sum(seen)], [*expected, pooled]
    if len(seen) < 2:
        return 1.0
    return float(stats.chisquare(seen, np.array(expected) * (sum(seen) / sum(expected))).pvalue)


def _coins(chance: float) -> Mapping[bool, float]:
    return {True: chance, False: 1.0 - chance}


def _ks(values: Array, law: Callable[[float], float]) -> float:
    return float(stats.kstest(values, law).pvalue)


def _worst(*p_values: float) -> float:
    """Return the p-value of several tests together: Bonferroni's, valid however they depend on one another."""
    return min(1.0, len(p_values) * min(p_values))


# ---- Bits and integers -----------------------------------------------------------------------------------------


def _below(bound: int, draws: int, streams: Streams) -> float:
    drawn = [streams.noise.below(bound) * 16 // bound for _ in range(draws)]
    cells = Counter(value * 16 // bound for value in range(bound)) if bound < 10**6 else {}
    law = {cell: count / bound for cell, count in cells.items()} or dict.fromkeys(range(16), 1 / 16)
    return chi_square(drawn, law)


def _bernoulli(draws: int, streams: Streams) -> float:
    numerator = (1 << 128) // 3
    return chi_square([streams.noise.bernoulli(numerator, 128) for _ in range(draws)], _coins(1 / 3))


def _order(draws: int, streams: Streams) -> float:
    orders = list(itertools.permutations(range(4)))
    drawn = [tuple(secret_order(4, streams.charged).tolist()) for _ in range(draws)]
    return chi_square(drawn, dict.fromkeys(orders, 1 / len(orders)))


def _hash_keys(draws: int, streams: Streams) -> float:
    keys = _uniform_below_prime((draws,), streams.charged)
    whole, rest = divmod(_PRIME, 64)
    residues = {residue: (whole + (residue < rest)) / _PRIME for residue in range(64)}
    return _worst(chi_square((keys % 64).tolist(), residues), _ks(keys / _PRIME, stats.uniform.cdf))


# ---- Choices ---------------------------------------------------------------------------------------------------


def _laplace(draws: int, streams: Streams) -> float:
    noise = TruncatedLaplace(1.0, 0.01)
    law = {z: noise.weights[abs(z)] / noise.total for z in range(-noise.bound, noise.bound + 1)}
    return chi_square([noise.sample(streams.noise) for _ in range(draws)], law)


def _releases(margin: int, draws: int, streams: Streams) -> float:
    chance = float(release_probability(margin, 1.0, 0.05))
    return chi_square([releases(margin, 1.0, 0.05, streams.noise) for _ in range(draws)], _coins(chance))


def _coin(x: float, draws: int, streams: Streams) -> float:
    return chi_square([_coin_exp(Fraction(x), streams.noise) for _ in range(draws)], _coins(math.exp(-x)))


def _permute_and_flip(draws: int, streams: Streams) -> float:
    scores = [5, 3, 4, 0]
    drawn = [permute_and_flip(scores, 1.0, streams.noise) for _ in range(draws)]
    return chi_square(drawn, dict(enumerate(flipped_law(scores, 1.0).tolist())))


def _goes_on(draws: int, streams: Streams) -> float:
    chance = float(stats.norm.cdf(stats.norm.ppf(0.1) + 3 * 0.5))
    return chi_square([goes_on(4, GaussianCoin(0.5, 0.1), streams.noise) for _ in range(draws)], _coins(chance))


# ---- Gaussian noise --------------------------------------------------------------------------------------------


def _rounded(scale: float, draws: int, streams: Streams) -> float:
    drawn = rounded_normal(draws, scale, streams.noise)
    if scale > 100.0:  # steps are too fine to count one by one
        return _ks(drawn / scale, stats.norm.cdf)
    reach = math.ceil(9 * scale)
    chances = np.diff(stats.norm.cdf((np.arange(-reach, reach + 2) - 0.5) / scale))
    return chi_square(drawn.tolist(), dict(zip(range(-reach, reach + 1), chances, strict=True)))


def _added(draws: int, streams: Streams) -> float:
    return _ks((add_gaussian(np.full(draws, 0.3), 2.0, streams.noise) - 0.3) / 2.0, stats.norm.cdf)


def _run(streams: Streams) -> Run:
    return Run(MuLedger(Budget(1.0, 1e-6)), streams)


def _symmetric(draws: int, streams: Streams) -> float:
    level = NoiseLevel(sigma=2.0, grid=2.0**-20)
    noise = np.array([gaussian_symmetric(np.zeros((3, 3)), level, _run(streams)) for _ in range(draws)])
    return _matrix_law(noise, 2.0)


def _lazy(draws: int, streams: Streams) -> float:
    """The noise of Analyze Gauss, looked at through directions that depend on earlier answers."""
    matrices, sigma = [], 1.0
    for _ in range(draws):
        gram = UnitGram(Rows(np.zeros((5, 3))))
        lazy = LazyGauss(gram, 1.0, _run(streams), most_columns=3, most_passes=8)
        lazy.product(lazy.product(np.ones((3, 1))))
        matrices.append(lazy.product(np.eye(3)))
        sigma = lazy.noise
    return _matrix_law(np.array(matrices), sigma)


def _matrix_law(noise: Array, sigma: float) -> float:
    """Test entries, sums of squares and traces of symmetric Gaussian matrices."""
    size = noise.shape[1]
    rows, columns = np.triu_indices(size)
    scaled = noise[:, rows, columns] / np.where(rows == columns, math.sqrt(2.0), 1.0) / sigma  # (draws, entries)
    traces = np.trace(noise, axis1=1, axis2=2) / (sigma * math.sqrt(2.0 * size))
    return _worst(
        _ks(scaled.ravel(), stats.norm.cdf),
        _ks((scaled**2).sum(axis=1), stats.chi2(len(rows)).cdf),
        _ks(traces, stats.norm.cdf),
    )


# ---- Rotations, Wishart matrices, directions -------------------------------------------------------------------


def _rotation(draws: int, streams: Streams) -> float:
    return _haar_law(np.array([random_rotation(3, 1e-9, streams.noise)[0] for _ in range(draws)]))


def _float_rotation(draws: int, streams: Streams) -> float:
    generator = float_generator(streams.noise)
    return _haar_law(np.array([haar_rotation(3, generator) for _ in range(draws)]))


def _haar_law(drawn: Array) -> float:
    """An entry of a Haar matrix of size 3 is uniform on [-1, 1]; two of them are tested."""
    uniform = stats.uniform(-1.0, 2.0).cdf
    return _worst(_ks(drawn[:, 0, 0], uniform), _ks(drawn[:, 2, 1], uniform))


def _wishart(draws: int, streams: Streams) -> float:
    generator = float_generator(streams.noise)
    direction = np.array([0.6, 0.0, 0.8])
    factors = np.array([bartlett_factor(3, 7, generator) for _ in range(draws)])
    return _ks(((direction @ factors) ** 2).sum(axis=1), stats.chi2(7).cdf)


def _bingham(draws: int, streams: Streams) -> float:
    generator = float_generator(streams.noise)
    law = Bingham(np.diag([2.0, 0.0]), 1.0)
    vectors = np.array([law.draw(10_000, generator) for _ in range(draws)])  # (draws, 2)
    angles = 2.0 * np.arctan2(vectors[:, 1], vectors[:, 0])  # the law of twice the angle is von Mises
    return _ks(np.angle(np.exp(1j * angles)), stats.vonmises(1.0).cdf)


def _eigenvalue(draws: int, streams: Streams) -> float:
    seen = [
        float(eigen_sampling(np.eye(3), 1, epsilon=4.0, delta=1e-6, rng=_seed(streams)).extras["eigenvalues"][0])  # type: ignore[index]
        for _ in range(draws)
    ]
    return _ks(np.array(seen), stats.laplace(loc=1.0, scale=2.5).cdf)


def _seed(streams: Streams) -> RandomLike:
    """None where the streams are secure, else a seed drawn from them."""
    return None if streams.private else streams.noise.below(2**64)


SAMPLERS: tuple[Sampler, ...] = (
    Sampler("BitSource.below", "uniform below 3", "chi-square", 40_000, partial(_below, 3)),
    Sampler("BitSource.below", "uniform below 2^61 - 1", "chi-square", 40_000, partial(_below, 2**61 - 1)),
    Sampler("BitSource.bernoulli", "one third, to 128 bits", "chi-square", 40_000, _bernoulli),
    Sampler("search permutation", "uniform order of four", "chi-square", 20_000, _order),
    Sampler("hash keys", "uniform below 2^61 - 1", "chi-square and KS", 200_000, _hash_keys),
    Sampler("TruncatedLaplace.sample", "table of weights", "chi-square", 20_000, _laplace),
    Sampler("releases", "margin 2", "chi-square", 20_000, partial(_releases, 2)),
    Sampler("releases", "margin 5", "chi-square", 20_000, partial(_releases, 5)),
    Sampler("exponential coin", "exp(-0.3)", "chi-square", 40_000, partial(_coin, 0.3)),
    Sampler("exponential coin", "exp(-2.5)", "chi-square", 40_000, partial(_coin, 2.5)),
    Sampler("permute_and_flip", "four scores", "chi-square", 20_000, _permute_and_flip),
    Sampler("goes_on", "normal score of margin 4", "chi-square", 20_000, _goes_on),
    Sampler("rounded_normal", "scale 0.3", "chi-square", 1_000_000, partial(_rounded, 0.3)),
    Sampler("rounded_normal", "scale 3.7", "chi-square", 1_000_000, partial(_rounded, 3.7)),
    Sampler("rounded_normal", "scale 2^20.5", "KS", 1_000_000, partial(_rounded, 2.0**20.5)),
    Sampler("rounded_normal", "scale 2^50, integers only", "KS", 10_000, partial(_rounded, 2.0**50)),
    Sampler("add_gaussian", "normal, sigma 2", "KS", 500_000, _added),
    Sampler("gaussian_symmetric", "entries, squares, trace", "KS", 10_000, _symmetric),
    Sampler("LazyGauss", "entries, squares, trace", "KS", 2_000, _lazy),
    Sampler("random_rotation", "Haar, size 3", "KS", 10_000, _rotation),
    Sampler("haar_rotation", "Haar, size 3", "KS", 10_000, _float_rotation),
    Sampler("bartlett_factor", "Wishart, 7 degrees", "KS", 20_000, _wishart),
    Sampler("Bingham.draw", "von Mises in the plane", "KS", 10_000, _bingham),
    Sampler("eigenvalue noise", "Laplace, scale 1", "KS", 1_000, _eigenvalue),
)
"""Every sampler of the package, those of the baselines included."""
