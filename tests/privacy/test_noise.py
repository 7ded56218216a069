"""The rounded normal has its exact law; the float64 path never contradicts the integer path."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ndtr
from scipy.stats import binom, chi2_contingency, chisquare

from privspan.privacy import noise
from privspan.privacy.noise import GUARDS, add_gaussian, grid_for, rounded_normal, rounding_charge
from privspan.privacy.randomness import BitSource, open_streams


class Scripted(BitSource):
    """A source that plays back given 64-bit words, to walk through rare branches."""

    def __init__(self, *words):
        super().__init__()
        self.words = list(words)

    def bytes(self, count):
        """Hand out the next word; the exact path asks for one at a time."""
        assert count == 8
        return self.words.pop(0).to_bytes(8, "little")


def first_word(sign, selector, height):
    """Assemble the word that holds sign, selector and height."""
    return sign << 63 | selector << 32 | height


def reference(first, second, scale):
    """Evaluate the definition of a draw with 60 digits, taking unread digits as zero; None if rejected."""
    with mpmath.workdps(60):
        selector = mpmath.mpf(first >> 32 & (2**31 - 1)) / 2**31
        height = mpmath.mpf(first & (2**32 - 1)) / 2**32
        x = mpmath.mpf(second) / 2**64
        strip = int(np.searchsorted(EDGES, float(selector)))
        strip = next(k for k in (strip - 2, strip - 1, strip, strip + 1) if k >= 0 and MP_EDGES[k + 1] > selector)
        if height >= mpmath.exp(-x * (2 * strip + x) / 8192):
            return None
        magnitude = int(mpmath.floor(mpmath.mpf(scale) * (strip + x) / 64 + mpmath.mpf(1) / 2))
        return -magnitude if first >> 63 else magnitude


def mp_edges():
    """Return P(strip < k) for k = 0 ... 900 with 60 digits."""
    with mpmath.workdps(60):
        weights = [mpmath.exp(-mpmath.mpf(k * k) / 8192) for k in range(2000)]
        whole = mpmath.fsum(weights)
        edges, total = [mpmath.mpf(0)], mpmath.mpf(0)
        for weight in weights[:900]:
            total += weight
            edges.append(total / whole)
        return edges


MP_EDGES = mp_edges()
EDGES = np.array([float(edge) for edge in MP_EDGES])


# ---- The law ---------------------------------------------------------------------------------------------


def law(scale, edges):
    """Return the probabilities of the cells between integer edges, of the rounded normal, tails included."""
    cuts = (np.asarray(edges) - 0.5) / scale
    return np.diff(np.concatenate([[0.0], ndtr(cuts), [1.0]]))


@pytest.mark.parametrize(("scale", "edges"), [
    (0.3, range(-1, 3)),
    (1.0, range(-3, 5)),
    (3.7, range(-14, 16)),
    (1000.0, range(-3500, 3501, 35)),
    (2.0**20.5, range(-(2**22), 2**22, 2**15)),
])  # fmt: skip
def test_law(scale, edges):
    """Chi-square of 400,000 draws against the exact probabilities."""
    drawn = rounded_normal(400_000, scale, open_streams(11).noise)
    counts = np.bincount(np.searchsorted(np.asarray(edges), drawn, side="right"), minlength=len(edges) + 1)
    assert chisquare(counts, 400_000 * law(scale, edges)).pvalue > 1e-3


@pytest.mark.parametrize("modulus", [2, 7, 64, 1000])
def test_low_digits_are_uniform(modulus):
    """At a large scale the residues are uniform: the fine digits are as random as the coarse ones."""
    drawn = rounded_normal(300_000, 2.0**21, open_streams(5).noise)
    assert chisquare(np.bincount(drawn % modulus, minlength=modulus)).pvalue > 1e-3


@pytest.mark.parametrize("sigmas", [3.0, 4.0, 4.8])
def test_tails(sigmas):
    """The number of draws beyond 3, 4 and 4.8 sigma is binomial on both sides."""
    drawn = rounded_normal(2_000_000, 1e5, open_streams(8).noise)
    cut = int(sigmas * 1e5)
    share = ndtr(-(cut - 0.5) / 1e5)
    for count in (np.count_nonzero(drawn >= cut), np.count_nonzero(drawn <= -cut)):
        assert binom.cdf(count, drawn.size, share) > 1e-4
        assert binom.sf(count - 1, drawn.size, share) > 1e-4


def test_sign_is_a_fair_coin_independent_of_size():
    """Sign and size of the draws form an independent table."""
    drawn = rounded_normal(400_000, 1e6, open_streams(2).noise)
    size = np.minimum(np.abs(drawn) // 250_000, 12)
    table = np.array([np.bincount(size[drawn > 0]), np.bincount(size[drawn < 0])])  # (2, 13)
    assert chi2_contingency(table).pvalue > 1e-3
    assert chisquare(table.sum(axis=1)).pvalue > 1e-3


def test_consecutive_draws_are_uncorrelated():
    """Neither the draws nor their sizes depend on the one before."""
    drawn = rounded_normal(400_000, 1e6, open_streams(3).noise).astype(float)
    for series in (drawn, np.abs(drawn)):
        assert abs(np.corrcoef(series[1:], series[:-1])[0, 1]) < 5 / math.sqrt(drawn.size)


def test_law_agrees_with_an_independent_sampler():
    """OpenDP's discrete Gaussian differs from the rounded normal by less than 20,000 draws can show."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=50.0)([0] * 20_000))
    ours = rounded_normal(20_000, 50.0, BitSource())
    edges = np.arange(-120, 121, 8)
    table = [np.bincount(np.searchsorted(edges, each), minlength=edges.size + 1) for each in (ours, theirs)]
    assert chi2_contingency(np.array(table)).pvalue > 1e-7


# ---- The two paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.3, 3.7, 1e6])
@pytest.mark.parametrize("guards", [GUARDS._replace(accept=2.0), GUARDS._replace(rounding=2.0)])
def test_integer_path_gives_the_same_draws(scale, guards):
    """From the same bits, settling every draw with integers changes nothing."""
    fast = rounded_normal(8_000, scale, open_streams(21).noise)
    assert noise._propose(open_streams(21).noise.uint64((2, 8_000)), scale, guards)[2].all()  # none is decided
    slow = rounded_normal(8_000, scale, open_streams(21).noise, guards)
    assert np.array_equal(fast, slow)


@pytest.mark.parametrize(("scale", "edges"), [(3.7, range(-10, 12)), (2.0**50, range(-(2**51), 2**51, 2**48))])
def test_integer_path_has_the_law(scale, edges):
    """Chi-square of the integer path alone."""
    drawn = rounded_normal(20_000, scale, open_streams(6).noise, GUARDS._replace(accept=2.0))
    counts = np.bincount(np.searchsorted(np.asarray(edges), drawn, side="right"), minlength=len(edges) + 1)
    assert chisquare(counts, 20_000 * law(scale, edges)).pvalue > 1e-3


@pytest.mark.parametrize("scale", [0.3, 1.0, 1e6, 2.0**40])
def test_both_paths_match_the_definition(scale):
    """Random words: the integer path always, and the float64 path where it is sure, meet the definition."""
    words = open_streams(31).noise.uint64((2, 1_000))
    proposal, accepted, undecided = noise._propose(words, scale, GUARDS)
    assert np.count_nonzero(undecided) < 200
    for index in range(words.shape[1]):
        first, second = int(words[0, index]), int(words[1, index])
        expected = reference(first, second, scale)
        assert noise._settle(first, second, scale, Scripted()) == expected
        if not undecided[index]:
            assert (int(proposal[index]) if accepted[index] else None) == expected


def near_rounding_boundaries(scale, count):
    """Return words whose exact value lies within a few 2**-64 of a rounding boundary."""
    random = np.random.default_rng(77)
    starts, _ = noise._strip_table()
    words = []
    for _ in range(count):
        strip = int(random.integers(0, 300))
        target = Fraction(strip, 64) + Fraction(int(random.integers(1, 2**62)), 2**68)  # a value in the strip
        boundary = (math.floor(target * Fraction(scale)) + Fraction(1, 2)) / Fraction(scale) * 64 - strip
        if 0 < boundary < 1:
            second = math.floor(boundary * 2**64) + int(random.integers(-3000, 3000))
            words.append((first_word(0, int(starts[strip]) + 1, 0), min(max(second, 0), 2**64 - 1)))
    return words


def near_acceptance_boundaries(count):
    """Return words whose height is the first 32 digits of the acceptance probability, give or take one."""
    random = np.random.default_rng(78)
    starts, _ = noise._strip_table()
    words = []
    for _ in range(count):
        strip, second = int(random.integers(0, 300)), int(random.integers(0, 2**64, dtype=np.uint64))
        chance = mpmath.exp(-mpmath.mpf(second) / 2**64 * (2 * strip + mpmath.mpf(second) / 2**64) / 8192)
        height = int(chance * 2**32) + int(random.integers(-2, 3))
        words.append((first_word(1, int(starts[strip]) + 1, min(height, 2**32 - 1)), second))
    return words


@pytest.mark.parametrize("scale", [0.3, 5.0, 2.0**20.5, 2.0**40])
def test_the_rounding_guard_catches_every_close_call(scale):
    """Words at a rounding boundary are left to the integers; float64 alone would get some wrong."""
    pairs = near_rounding_boundaries(scale, 3_000)
    words = np.array(pairs, dtype=np.uint64).T  # (2, n)
    proposal, accepted, undecided = noise._propose(words, scale, GUARDS)
    expected = np.array([reference(first, second, scale) for first, second in pairs])
    assert accepted.all()
    assert undecided.mean() > 0.99
    assert np.array_equal(proposal[~undecided], expected[~undecided])
    if scale > 5.0:
        assert np.any(proposal != expected)


def test_the_acceptance_guard_catches_every_close_call():
    """Heights at the acceptance probability are left to the integers, whose answer is right."""
    pairs = near_acceptance_boundaries(1_000)
    words = np.array(pairs, dtype=np.uint64).T  # (2, n)
    _, accepted, undecided = noise._propose(words, 1.0, GUARDS)
    expected = np.array([reference(first, second, 1.0) is not None for first, second in pairs])
    assert undecided.all()
    assert np.any(accepted != expected)
    zeros = [noise._settle(first, second, 1.0, Scripted(*[0] * 4)) is not None for first, second in pairs]
    assert np.array_equal(zeros, expected)


def test_selectors_at_a_strip_boundary_are_left_to_the_integers():
    """The selector in which a strip starts does not decide; its neighbours do, and name the strip."""
    starts, _ = noise._strip_table()
    _, split = noise._strips(starts)
    assert np.array_equal(split, np.arange(starts.size))
    for offset, marked in ((0, True), (1, False)):
        firsts = [first_word(0, start + offset, 0) for start in starts[:200].tolist()]
        words = np.array([firsts, [2**62] * 200], dtype=np.uint64)  # (2, 200): x = 1/4, far from rounding
        assert np.all(noise._propose(words, 64.0, GUARDS)[2] == marked)
    widths = np.diff(starts)
    wide = np.flatnonzero(widths > 1)
    for offset in (starts[wide] + 1, starts[wide + 1] - 1):
        strip, split = noise._strips(offset)
        assert np.array_equal(strip, wide)
        assert split.size == 0


def settle_strip(value, bits):
    """Settle the strip of a selector, given as an integer of 31 digits."""
    selector = noise._Digits(value, 31)
    return noise._ask(lambda: noise._strip_of(selector), [selector], bits)


def settle_rounding(strip, value, scale, bits):
    """Settle the rounding of a position, given as an integer of 64 digits."""
    position = noise._Digits(value, 64)
    return noise._ask(lambda: noise._rounded(strip, position, scale), [position], bits)


def test_further_digits_decide_a_strip():
    """At the start of strip 200 the next digits choose between the strips 199 and 200."""
    start = int(noise._strip_table()[0][200])
    with mpmath.workdps(60):
        rest = int((MP_EDGES[200] * 2**31 - start) * 2**64)  # digits of the boundary after the selector
    for word, strip in ((0, 199), (rest - 1, 199), (rest + 1, 200), (2**64 - 1, 200)):
        assert settle_strip(start, Scripted(word)) == strip
    # All 64 digits of the boundary itself: only a second word decides.
    assert settle_strip(start, Scripted(rest, 0)) == 199
    assert settle_strip(start, Scripted(rest, 2**64 - 1)) == 200


def test_further_digits_reach_the_far_tail():
    """The last selector stands for all strips beyond the table; three words of ones reach 17 sigma."""
    strip = settle_strip(2**31 - 1, Scripted(2**64 - 1, 2**64 - 1, 2**64 - 1, 0))
    with mpmath.workdps(100):
        whole = mpmath.fsum(mpmath.exp(-mpmath.mpf(k * k) / 8192) for k in range(1500))
        survival = mpmath.mpf(2) ** -(31 + 192)
        beyond = [
            mpmath.fsum(mpmath.exp(-mpmath.mpf(j * j) / 8192) for j in range(k, k + 400)) / whole
            for k in (strip, strip + 1)
        ]
        assert beyond[1] < survival <= beyond[0]
    assert 1050 < strip < 1150


def test_further_digits_decide_a_rounding():
    """x = 1/2 - 2**-65 ... rounds down or up by the digits after the first 64."""
    half = 2**63 - 1  # x in [1/2 - 2**-64, 1/2): the boundary of scale 64 is its right end
    assert settle_rounding(3, half, 64.0, Scripted()) == 3
    scale = 64.0 * (1 + 2.0**-52)  # moves the boundary inside
    word = math.floor((Fraction(7, 2) / Fraction(scale) * 64 - 3) * 2**64)
    assert settle_rounding(3, word, scale, Scripted(0)) == 3
    assert settle_rounding(3, word, scale, Scripted(2**64 - 1)) == 4


def test_further_digits_decide_an_acceptance():
    """A height that starts like the acceptance probability is decided by its next digits."""
    position = 2**63 + 12345
    with mpmath.workdps(60):
        x = mpmath.mpf(position) / 2**64
        digits = mpmath.exp(-x * (2 * 50 + x) / 8192) * 2**32
        start, rest = int(digits), int((digits - int(digits)) * 2**64)

    def accepted(word):
        digits = noise._Digits(position, 64), noise._Digits(start, 32)
        return noise._ask(lambda: noise._is_accepted(50, *digits), digits, Scripted(0, word))

    assert accepted(rest - 2)
    assert not accepted(rest + 2)


def test_a_broken_source_is_noticed():
    """Loops have caps: a source that never settles raises instead of hanging."""

    class Rejecting(BitSource):
        def uint64(self, size):
            return np.full(size, first_word(0, 2**30, 2**32 - 1), dtype=np.uint64)

    with pytest.raises(RuntimeError, match="proposals in a row"):
        rounded_normal(10, 1.0, Rejecting())
    with pytest.raises(RuntimeError, match="did not settle a draw"):
        noise._ask(lambda: None, [noise._Digits(0, 64)], BitSource())


# ---- The lemmas behind the guard widths ------------------------------------------------------------------


def test_taylor_error_is_below_its_bound():
    """Lemma 3: the polynomial is within 2**-21.9 of exp on [0, 1/8], largest at the right end."""
    random = np.random.default_rng(0)
    exponents = np.concatenate([
        [0.0, 5e-324, 2.0**-1022, 2.0**-60, 2.0**-53, 0.125, np.nextafter(0.125, 0)],
        random.uniform(0, 0.125, 3_000),
        2.0 ** random.uniform(-60, -3, 1_000),
    ])  # fmt: skip
    values = noise._taylor_exp(exponents)
    with mpmath.workdps(40):
        errors = [abs(mpmath.mpf(v) - mpmath.exp(-mpmath.mpf(h))) for v, h in zip(values, exponents, strict=True)]
    assert max(errors) < 2.0**-21.9
    assert max(errors) > 2.0**-22.1  # the bound is not idle
    starts, _ = noise._strip_table()
    assert (2 * (starts.size - 1) + 1) / 2**13 <= 1 / 8  # every exponent of the fast path lies in that range


def test_rounding_error_is_below_its_bound():
    """Lemma 4: float64 and the exact value differ by less than 2**-48 (scale + 1)."""
    random = np.random.default_rng(1)
    starts, _ = noise._strip_table()
    for scale in (1e-3, 0.3, 7.7, 1e6, 2.0**44):
        for strip, second in zip(
            random.integers(0, starts.size, 500).tolist(),
            random.integers(0, 2**64, 500, dtype=np.uint64).tolist(),
            strict=True,
        ):
            approximate = (float(strip) + (second >> 11) * 2.0**-53) * (scale / 64) + 0.5
            exact = Fraction(scale) * (strip + Fraction(second, 2**64)) / 64 + Fraction(1, 2)
            assert abs(Fraction(approximate) - exact) < Fraction(GUARDS.rounding) * (Fraction(scale) + 1)


@pytest.mark.parametrize("precision", [40, 128, 300])
def test_exp_bounds_enclose(precision):
    """Lemma 1: the integers enclose exp, tightly, for arguments from 0 to 60."""
    random = np.random.default_rng(precision)
    shift = 70
    cases = [0, 1, 2**shift, 2**shift - 1, 2**shift + 1, 60 * 2**shift]
    cases += [int(value * 2**shift) for value in random.uniform(0, 60, 100)]
    cases += [int(value * 2**shift) for value in 2.0 ** random.uniform(-60, 0, 100)]
    with mpmath.workdps(200):
        for numerator in cases:
            lower, upper = noise._exp_bounds(numerator, shift, precision)
            exact = mpmath.exp(-mpmath.mpf(numerator) / 2**shift) * 2**precision
            assert lower <= exact <= upper
            assert upper - lower < 64 * precision


@pytest.mark.parametrize("precision", [128, 192, 256])
def test_strip_probabilities_are_enclosed(precision):
    """Lemma 2: the cumulative bounds enclose the probabilities, tightly."""
    lower, upper = noise._cumulative_bounds(precision)
    assert len(lower) > 700
    with mpmath.workdps(60):
        for low, high, edge in zip(lower, upper, MP_EDGES, strict=False):
            assert low <= mpmath.floor(edge * 2**precision) + 2 ** max(0, precision - 190)
            assert high >= mpmath.floor(edge * 2**precision) - 2 ** max(0, precision - 190)
            assert high - low < 2**24


def test_strip_table_is_certain_and_complete():
    """Every start is the floor of both of its bounds; the guide names a strip for undivided cells only."""
    starts, guide = noise._strip_table()
    lower, upper = noise._cumulative_bounds(128)
    shift = 128 - 31
    for start, low, high in zip(starts.tolist(), lower, upper, strict=False):
        assert start == low >> shift == high >> shift
    assert starts[0] == 0
    assert starts[-1] == 2**31 - 1
    assert np.all(np.diff(starts) >= 0)
    for cell in np.random.default_rng(0).integers(0, guide.size, 2_000).tolist():
        inside = np.searchsorted(starts, [cell << 17, ((cell + 1) << 17) - 1], side="right") - 1
        if guide[cell] >= 0:
            assert inside[0] == inside[1] == guide[cell]
            assert starts[inside[0]] < cell << 17
    assert np.mean(guide < 0) < 0.03


# ---- The two public functions ----------------------------------------------------------------------------


def test_same_seed_same_noise_and_secure_noise_never_repeats():
    """A seed repeats the draws; without one they are new each time."""
    first, second = (rounded_normal(100, 1e6, open_streams(1).noise) for _ in range(2))
    assert np.array_equal(first, second)
    first, second = (rounded_normal(100, 1e6, open_streams().noise) for _ in range(2))
    assert not np.array_equal(first, second)


def test_known_draws():
    """The draws of a seed are a function of the bits alone, the same on every platform."""
    assert rounded_normal(5, 1000.0, open_streams(1).noise).tolist() == [-22, -862, -832, -1183, 1027]


def test_numpy_global_state_does_not_matter():
    """Seeding NumPy neither repeats the noise nor is it advanced by drawing some."""
    saved = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(0)  # noqa: NPY002
        before = np.random.get_state()  # noqa: NPY002
        first = rounded_normal(100, 1e6, open_streams().noise)
        after = np.random.get_state()  # noqa: NPY002
        assert np.array_equal(before[1], after[1])
        assert before[2:] == after[2:]
        np.random.seed(0)  # noqa: NPY002
        assert not np.array_equal(first, rounded_normal(100, 1e6, open_streams().noise))
    finally:
        np.random.set_state(saved)  # noqa: NPY002


@pytest.mark.parametrize("size", [0, 1, 7, (), (0, 3), (2, 3, 4), 70_000, (2, 70_000)])
def test_shapes(size):
    """Any shape, across the boundaries of chunks."""
    shape = size if isinstance(size, tuple) else (size,)
    drawn = rounded_normal(size, 1e6, open_streams(1).noise)
    assert drawn.shape == shape
    assert drawn.dtype == np.int64
    assert np.count_nonzero(drawn) >= 0.99 * drawn.size
    noisy = add_gaussian(np.zeros(shape), 1.0, open_streams(1).noise)
    assert noisy.shape == shape
    assert noisy.dtype == np.float64


def test_extreme_scales():
    """A tiny scale gives zeros, the largest fits, a larger one is refused."""
    assert not rounded_normal(1000, 5e-324, BitSource()).any()
    assert not rounded_normal(1000, 0.01, BitSource()).any()
    huge = rounded_normal(300, 2.0**55, open_streams(1).noise) / 2.0**55
    assert 0.8 < huge.std() < 1.2
    with pytest.raises(ValueError, match=r"`scale` must be at most 2\*\*55"):
        rounded_normal(1, 2.0**56, BitSource())


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_parameters(bad):
    """Parameters are refused before any value is looked at, with their name."""
    values = np.full(2, np.nan)
    with pytest.raises(ValueError, match="`scale`"):
        rounded_normal(1, bad, BitSource())
    with pytest.raises(ValueError, match="`sigma`"):
        add_gaussian(values, bad, BitSource())
    with pytest.raises(ValueError, match="`grid`"):
        add_gaussian(values, 1.0, BitSource(), grid=bad)
    with pytest.raises(ValueError, match="`sigma`"):
        grid_for(bad)
    with pytest.raises(ValueError, match="`grid`"):
        rounding_charge(3, bad)


def test_other_bad_parameters():
    """Grids that are no power of two, values that are no float64, dimensions below one."""
    with pytest.raises(ValueError, match="power of two"):
        add_gaussian(np.zeros(2), 1.0, BitSource(), grid=0.3)
    with pytest.raises(ValueError, match="`scale`"):
        add_gaussian(np.zeros(2), 1.0, BitSource(), grid=2.0**-60)
    for values in (
        np.zeros(2, dtype=np.float32),
        np.zeros(2, dtype=int),
        [0.0, 1.0],
        np.zeros(2, dtype=complex),
    ):
        with pytest.raises(TypeError, match="`values` must be a float64 array"):
            add_gaussian(values, 1.0, BitSource())
    with pytest.raises(ValueError, match="`dimension`"):
        rounding_charge(0, 1.0)
    for sigma in (1e-300, 1e300):
        with pytest.raises(ValueError, match="`sigma` must be between"):
            grid_for(sigma)


@given(st.floats(2.0**-900, 2.0**900))
def test_grid_for(sigma):
    """The grid is a power of two, 2**20 to 2**21 times finer than sigma."""
    grid = grid_for(sigma)
    assert math.frexp(grid)[0] == 0.5
    assert 2**20 <= sigma / grid < 2**21


def test_noise_is_added_on_the_grid():
    """The output is the rounded value plus the noise of the same bits, times the grid."""
    grid = 2.0**-10
    values = np.array([[0.5 * grid, 1.5 * grid, -0.5 * grid], [3.0, -0.3, 1e9]])
    noisy = add_gaussian(values, 0.7, open_streams(4).noise, grid=grid)
    drawn = rounded_normal((2, 3), 0.7 / grid, open_streams(4).noise)
    expected = np.array([[0, 2, 0], [3 * 1024, -307, 10**9 * 1024]]) + drawn  # ties go to even
    assert np.array_equal(noisy, expected * grid)


def test_noise_has_its_standard_deviation():
    """Mean and spread over many cells, through several chunks."""
    noisy = add_gaussian(np.full(200_000, 5.0), 3.0, open_streams(14).noise)
    assert abs(noisy.mean() - 5.0) < 5 * 3.0 / math.sqrt(noisy.size)
    assert abs(noisy.std() / 3.0 - 1) < 5 / math.sqrt(2 * noisy.size)


def test_non_finite_and_huge_values_do_not_raise():
    """NaN counts as zero; infinities and overflows are held at the end of the range."""
    values = np.array([np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 2.0**41, 5e-324])
    noisy = add_gaussian(values, 1.0, open_streams(3).noise, grid=2.0**-20)
    assert np.all(np.abs(noisy[[0, 6]]) < 10)
    assert np.all(np.abs(np.abs(noisy[1:6]) - 2.0**41) < 10)
    assert np.array_equal(np.sign(noisy[1:6]), [1, -1, 1, -1, 1])
    assert np.max(np.abs(noisy)) <= 2.0**41
    assert np.isnan(values[0])  # the input is left as it was


def test_non_contiguous_values():
    """Strided and transposed arrays keep their order."""
    values = np.arange(12.0).reshape(3, 4).T[::2] * 1e6  # (2, 3)
    noisy = add_gaussian(values, 1.0, open_streams(3).noise)
    assert np.all(np.abs(noisy - values) < 10)


# ---- Sensitivity -----------------------------------------------------------------------------------------

anything = st.floats(allow_nan=False, allow_infinity=True, width=64)
moderate = st.floats(-1e6, 1e6)


@settings(deadline=None)
@given(arrays(np.float64, 6, elements=moderate), arrays(np.float64, 6, elements=moderate), st.integers(-8, 8))
def test_rounding_charge_bounds_the_movement(left, right, exponent):
    """Two vectors drift apart by at most the charge, in exact arithmetic."""
    grid = 2.0**exponent
    steps = [[int(step) for step in noise._to_steps(each, grid)] for each in (left, right)]
    after = sum((a - b) ** 2 for a, b in zip(*steps, strict=True)) * Fraction(grid) ** 2
    before = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(left.tolist(), right.tolist(), strict=True))
    charge = Fraction(rounding_charge(6, grid))
    # sqrt(after) <= sqrt(before) + charge, squared twice to stay rational
    excess = after - before - charge**2
    assert excess <= 0 or excess**2 <= 4 * charge**2 * before


@given(anything, anything, st.integers(-60, 60))
def test_saturated_rounding_moves_a_coordinate_by_one_step_more_at_most(left, right, exponent):
    """Also for infinities and across the end of the range."""
    grid = 2.0**exponent
    steps = noise._to_steps(np.array([left, right]), grid).tolist()
    assert abs(steps[0]) <= 2**61
    if math.isfinite(left) and math.isfinite(right):
        distance = abs(Fraction(left) - Fraction(right)) / Fraction(grid)
        assert abs(steps[0] - steps[1]) <= distance + 1
    assert (steps[0] - steps[1]) * (left > right) >= 0  # monotone


def test_rounding_charge_is_reached():
    """The charge is not idle: values on either side of all half steps move apart by a full step each."""
    steps = noise._to_steps(np.full((2, 5), 0.5) + np.array([[-1e-9], [1e-9]]), 1.0)
    assert np.array_equal(steps[1] - steps[0], np.ones(5))


@given(st.integers(1, 10**30), st.integers(-100, 100))
def test_rounding_charge_is_rounded_up(dimension, exponent):
    """Never below sqrt(dimension) * grid, and within two units in the last place of it."""
    charge = Fraction(rounding_charge(dimension, 2.0**exponent)) / Fraction(2) ** exponent
    assert dimension <= charge**2 <= dimension * (1 + Fraction(1, 2**50))
