"""Second, brute-force implementations of the core lemmas' bounds, in rational or high-precision arithmetic.

Others live beside their subjects: `exact_oracle` (scores, margins), `stable_oracle` (leverages, levels),
`privspan.audit.replay` (what a run of Gaussian steps spends), `test_privacy` (conversions by their formulas).
Nothing here calls the formula that it checks.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspan.audit.laws import flipped_law
from privspan.baselines.analyze_gauss_gap import projector_movement
from privspan.privacy import delta_from_mu, delta_from_rho
from privspan.privacy.selection import TruncatedLaplace, release_probability
from privspan.rows.unit import Rows
from privspan.stable.release import procrustes_bound

# ---- Rows and their sums, in fractions -------------------------------------------------------------------------

ENTRIES = [0.0, 1.0, -1.0, 0.1, 1e-170, 1e300, 3.0]


def unit(record):
    """The cleaned record as exact fractions."""
    return [Fraction(float(entry)) for entry in next(Rows(np.array([record])).pieces())[1][0]]


def outer(record):
    return [a * b for a, b in itertools.product(record, repeat=2)]


def test_no_pair_of_records_moves_the_second_moment_by_more_than_the_root_of_two():
    records = [unit(record) for record in itertools.product(ENTRIES, repeat=2)]
    assert all(sum(entry**2 for entry in record) <= 1 for record in records)
    worst = max(
        sum((a - b) ** 2 for a, b in zip(outer(x), outer(y), strict=True))
        for x, y in itertools.combinations(records, 2)
    )
    assert Fraction(199, 100) < worst <= 2


# ---- Release probability, by bisection on the definition -------------------------------------------------------


def largest_next(last, epsilon, delta):
    """Largest q for which releasing with q here and with `last` next door satisfies all four inequalities."""
    grow = mpmath.exp(epsilon)

    def allowed(q):
        return (
            q <= grow * last + delta
            and last <= grow * q + delta
            and 1 - q <= grow * (1 - last) + delta
            and 1 - last <= grow * (1 - q) + delta
        )

    low, high = last, mpmath.mpf(1)
    if allowed(high):
        return high
    for _ in range(180):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (3.0, 1e-9), (0.5, 0.1)])
def test_release_probabilities_are_the_largest_that_the_definition_allows(epsilon, delta):
    with mpmath.workdps(60):
        chance = mpmath.mpf(0)
        for margin in range(1, 60):
            chance = largest_next(chance, mpmath.mpf(epsilon), mpmath.mpf(delta))
            ours = release_probability(margin, epsilon, delta)
            assert abs(mpmath.mpf(ours.numerator) / ours.denominator - chance) < mpmath.mpf(10) ** -25
            assert mpmath.mpf(ours.numerator) / ours.denominator <= chance + mpmath.mpf(10) ** -45


# ---- Conversions, by integrating the densities -----------------------------------------------------------------


def hockey_stick(mu, epsilon):
    """Integral of max(0, p - e^epsilon q) for p = N(mu, 1) and q = N(0, 1)."""
    cut = mpmath.mpf(epsilon) / mu + mpmath.mpf(mu) / 2  # p > e^epsilon q to the right of it
    return mpmath.quad(
        lambda x: mpmath.npdf(x, mu, 1) - mpmath.exp(epsilon) * mpmath.npdf(x), [cut, cut + 4, cut + 12, mpmath.inf]
    )


@pytest.mark.parametrize(("mu", "epsilon"), [(0.2, 0.1), (0.5, 1.0), (1.0, 1.0), (2.0, 3.0), (4.0, 0.5)])
def test_delta_of_gaussian_privacy_is_the_integral_of_the_densities(mu, epsilon):
    with mpmath.workdps(30):
        exact = float(hockey_stick(mu, epsilon))
    assert exact <= delta_from_mu(mu, epsilon) <= exact * (1 + 1e-6)
    assert delta_from_rho(mu**2 / 2, epsilon) >= exact  # a Gaussian of that mu is rho-zCDP


@pytest.mark.parametrize(("rho", "epsilon"), [(0.02, 0.5), (0.1, 2.0), (1.0, 5.0)])
def test_delta_of_concentrated_privacy_is_the_least_over_the_orders(rho, epsilon):
    with mpmath.workdps(30):
        orders = [1 + mpmath.mpf(10) ** (mpmath.mpf(j) / 400) for j in range(-400, 1200)]
        scanned = min(mpmath.exp((a - 1) * (a * rho - epsilon)) / (a - 1) * (1 - 1 / a) ** a for a in orders)
    assert float(scanned) * (1 - 1e-4) <= delta_from_rho(rho, epsilon) <= float(scanned) * (1 + 1e-9)


# ---- Choices -----------------------------------------------------------------------------------------------------


def cut_off_mass(epsilon, sensitivity, bound):
    """Mass beyond the support after a shift, of discrete Laplace noise cut off at `bound`."""
    ratio = mpmath.exp(-mpmath.mpf(epsilon) / sensitivity)
    weights = {z: ratio ** abs(z) for z in range(-bound, bound + 1)}
    whole = mpmath.fsum(weights.values())
    return mpmath.fsum(weights[z] for z in range(bound - sensitivity + 1, bound + 1)) / whole


@pytest.mark.parametrize("sensitivity", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (3.0, 1e-9), (0.5, 0.1), (5.0, 1e-4)])
def test_truncated_laplace_noise_ends_at_the_first_bound_that_works(epsilon, delta, sensitivity):
    with mpmath.workdps(50):
        first = next(
            bound for bound in itertools.count(sensitivity) if cut_off_mass(epsilon, sensitivity, bound) <= delta
        )
    assert TruncatedLaplace(epsilon, delta, sensitivity).bound == first


def flip_law(scores, epsilon):
    """Permute-and-flip by first choosing who is asked first, then the rest of the order, one by one."""
    best = max(scores)

    def ask(waiting):
        law = dict.fromkeys(range(len(scores)), mpmath.mpf(0))
        for candidate in waiting:
            chance = mpmath.exp(-mpmath.mpf(epsilon) * (best - scores[candidate]) / 2)
            law[candidate] += chance / len(waiting)
            rest = [other for other in waiting if other != candidate]
            if rest:
                for other, share in ask(rest).items():
                    law[other] += (1 - chance) * share / len(waiting)
        return law

    return ask(list(range(len(scores))))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_permute_and_flip_is_private_over_all_neighbouring_scores(epsilon):
    laws = {scores: flip_law(scores, epsilon) for scores in itertools.product(range(3), repeat=3)}
    worst = 0.0
    for first, second in itertools.combinations(laws, 2):
        if max(abs(a - b) for a, b in zip(first, second, strict=True)) == 1:
            ratios = [laws[first][i] / laws[second][i] for i in range(3)]
            worst = max(worst, *(abs(float(mpmath.log(ratio))) for ratio in ratios))
    assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-12)


def test_the_law_of_arrivals_is_that_of_all_orders():
    scores = [5, 3, 4, 0]
    ours, theirs = flipped_law(scores, 1.0), flip_law(scores, 1.0)
    assert all(ours[i] == pytest.approx(float(theirs[i]), abs=1e-14) for i in range(4))


# ---- Distances of subspaces ------------------------------------------------------------------------------------


def rotations():
    """Rotations and reflections of the plane, a tenth of a degree apart."""
    for angle in np.linspace(0, 2 * math.pi, 3600, endpoint=False):
        c, s = math.cos(angle), math.sin(angle)
        yield np.array([[c, -s], [s, c]])
        yield np.array([[c, s], [s, -c]])


@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_basis_is_within_the_procrustes_bound(seed):
    rng = np.random.default_rng(seed)
    first = np.linalg.qr(rng.standard_normal((4, 2)))[0]
    second = np.linalg.qr(first + 0.15 * rng.standard_normal((4, 2)))[0]
    sine = float(np.linalg.norm(second - first @ (first.T @ second)))
    nearest = min(float(np.linalg.norm(first - second @ turn)) for turn in rotations())
    assert nearest <= procrustes_bound(sine) + 1e-4  # the scan is that coarse
    assert nearest >= 0.9 * sine


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.floats(2.5, 30.0))
def test_projectors_of_neighbours_in_the_plane_by_scanning_all_replacements(seed, gap):
    """Diagonal second moment with that gap; every unit row leaves, every unit row joins."""
    base = np.diag([gap + 1.0, 1.0])
    angles = np.linspace(0, math.pi, 24, endpoint=False) + np.random.default_rng(seed).random() * math.pi / 24
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    leave, join = (np.repeat(rows, 24, axis=0), np.tile(rows, (24, 1)))
    others = base + np.einsum("ni,nj->nij", join, join) - np.einsum("ni,nj->nij", leave, leave)  # (576, 2, 2)
    leading = np.linalg.eigh(others)[1][:, :, 1]  # (576, 2)
    distances = np.sqrt(2.0) * np.abs(leading[:, 1])  # from the first axis, Frobenius
    assert distances.max() <= projector_movement(gap)
