"""The joint account of coin and noise: against 50 digits, against integrals of pairs, and along replays."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from joint_truth import DIGITS, chances, delta_from_below, pair_stick, random_shares, stick, worst_stick
from runs import seeded
from scipy import stats

from privspan import private_subspace
from privspan.audit.replay import Transcript
from privspan.audit.tables import Levels, looked_at_pair, short_row_pair
from privspan.ledger import Ledger
from privspan.privacy import Budget, compose_mu
from privspan.privacy.coin import COIN_BITS, CoinTable, GaussianCoin
from privspan.privacy.gdp import hockey_stick_up
from privspan.privacy.joint import JointAccount, JointLedger, JointShares, joint_delta, largest_stick
from privspan.rows.door import open_table
from privspan.stable.course import course_within, single_account
from privspan.stable.plan import record_shares
from privspan.stable.records import stable_subspace
from privspan.stable.steepest import steepest

BUDGET = Budget(1.0, 1e-6)
T = np.array([-30.0, -3.0, -1.0, -0.3, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.1, 0.3, 1.0, 3.0, 9.0])


def numerators(*values):
    return tuple(int(value * 2.0**COIN_BITS) for value in values)


# ---- The bound -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.0, 1e-12, 1e-3, 0.05, 0.3, 1.0])
def test_a_hockey_stick_is_rounded_up_and_no_further(mu):
    found = hockey_stick_up(mu, T)
    with mpmath.workdps(900):  # for the smallest mu both terms agree in hundreds of digits
        exact = [stick(mpmath.mpf(mu), mpmath.mpf(float(t))) for t in T]
    for one, true in zip(found, exact, strict=True):
        assert true <= one <= true * (1 + mpmath.mpf("4e-9")) + mpmath.mpf("1e-323")


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_above_fifty_digits_and_near(seed):
    epsilon, shares = random_shares(seed)
    truth = delta_from_below(epsilon, shares)
    assert truth <= joint_delta(epsilon, shares) <= 1.01 * truth


@pytest.mark.parametrize("seed", range(6))
def test_the_largest_stick_is_that_of_all_margins_at_every_t(seed):
    _, shares = random_shares(seed)
    found = largest_stick(T, shares.coin, shares.yes, shares.no, shares.otherwise)
    with mpmath.workdps(DIGITS):
        exact = [worst_stick(shares, mpmath.mpf(float(t))) for t in T]
    for one, true in zip(found, exact, strict=True):
        assert true <= one <= true * (1 + mpmath.mpf("1e-8")) + mpmath.mpf("1e-300")


def test_a_pair_is_what_an_integral_over_coin_and_noise_says():
    """Of every two margins at most one apart, for either order and t of either sign: yes and no, then one number."""
    coin, yes, no = CoinTable(numerators(0.05, 0.2, 0.7)), 0.6, 0.3
    x = np.linspace(-12.0, 13.0, 40_001)
    known = [float(one) for one in chances(coin)]
    for i, j in product(range(len(known)), repeat=2):
        if abs(i - j) > 1:
            continue
        for t in (-1.5, -0.2, 0.0, 0.4, 1.1):
            direct = 0.0
            for a, b, mu in ((known[i], known[j], yes), (1 - known[i], 1 - known[j], no)):
                law = a * stats.norm.pdf(x, mu) - math.exp(t) * b * stats.norm.pdf(x)
                direct += float(np.trapezoid(np.maximum(law, 0.0), x))
            formula = float(pair_stick(*(mpmath.mpf(one) for one in (known[i], known[j], yes, no, t))))
            assert direct == pytest.approx(formula, abs=1e-6)
            bound = largest_stick(np.array([t]), coin, yes, no, 0.0)[0]
            assert direct <= bound + 1e-6


@pytest.mark.parametrize(
    "change",
    [{"before": 1.01}, {"yes": 1.01}, {"no": -0.1}, {"before": 0.0}, {"yes": math.nan}, {"rotation": math.nan}],
)
def test_what_the_bound_does_not_cover_is_refused(change):
    known = {"before": 0.1, "yes": 0.1, "no": 0.0, "otherwise": 0.0, "rotation": 0.0}
    coin = CoinTable(numerators(1e-8))
    assert JointAccount(1.0, 1e-3, JointShares(**known, coin=coin))
    with pytest.raises(ValueError, match="together cost more"):
        JointAccount(1.0, 1e-3, JointShares(**known | change, coin=coin))
    assert joint_delta(101.0, JointShares(**known, coin=coin)) == math.inf


@pytest.mark.parametrize("bad", [(), (0, 5), (5, 4), (2**COIN_BITS,)])
def test_a_table_holds_chances_that_do_not_fall(bad):
    with pytest.raises(ValueError, match="probabilities between 0 and 1"):
        CoinTable(bad)


# ---- Who is accepted -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "epsilon"), [(700, 1.0), (2_000, 0.5), (2_000, 1.0), (2_000, 3.0), (20_000, 1.0)])
def test_shares_of_records_are_those_that_were_accepted(n, epsilon):
    budget = Budget(epsilon, 1e-6)
    shares = record_shares(n, 3, budget, {})
    assert isinstance(shares.coin, CoinTable)
    first = [mu for mu in (shares.mu_scale, shares.mu_tail, shares.mu_long, shares.mu_signal) if mu]
    used = JointShares(compose_mu(*first), shares.mu_noise, 0.0, 0.0, shares.coin, shares.delta_rotation)
    assert 0.95e-6 < joint_delta(epsilon, used) <= 1e-6
    assert shares.cost(budget).mu is None
    for fixed in ("test", "noise", "delta_test"):
        assert isinstance(record_shares(n, 3, budget, {fixed: 0.3}).coin, GaussianCoin)


def test_hardly_any_room_means_no_table():
    assert steepest(1.0, 1e-6, 0.23, 0.2, 0.0, 0.0, 1e-9) is None
    assert steepest(1.0, 1e-40, 0.01, 0.01, 0.0, 0.0, 1e-43) is None
    assert steepest(9.0, 1e-6, 0.5, 1.2, 0.0, 0.0, 1e-9) is None


# ---- The ledger of a call ------------------------------------------------------------------------------------------

NEAR = looked_at_pair(700, 1_000, 1e-5, 1.42e-4)


def account():
    found = single_account(open_table(NEAR[0]), 1, BUDGET)
    assert isinstance(found, JointLedger)
    return found


def test_the_coin_comes_once_after_what_it_was_made_for():
    ledger = account()
    shares = ledger.joint
    JointAccount(BUDGET.epsilon, BUDGET.delta, shares)
    assert ledger.mu == shares.whole
    ledger.spend("first", 0.9 * (shares.before / ledger.mu) ** 2)
    assert ledger.toss() == shares.coin
    ledger.answered(False)
    assert (ledger.mu, ledger.left) == (shares.no, 1.0)
    ledger.spend("fall-back", 1.0)
    with pytest.raises(RuntimeError, match="would exceed one"):
        ledger.spend("more", 1e-9)
    with pytest.raises(RuntimeError, match="coin once"):
        ledger.toss()
    cost = ledger.cost()
    assert (cost.epsilon, cost.delta, cost.mu) == (1.0, 1e-6, None)
    assert [part.name for part in cost.parts] == ["first", "test", "fall-back"]
    with pytest.raises(RuntimeError, match="does not compose in mu"):
        ledger.promise()


def test_there_is_no_coin_after_more_than_it_was_made_for():
    ledger = account()
    ledger.spend("first", 1.01 * (ledger.joint.before / ledger.mu) ** 2)
    with pytest.raises(RuntimeError, match="coin once"):
        ledger.toss()
    with pytest.raises(RuntimeError, match="for the budget that it was made for"):
        JointLedger(Budget(1.0, 1e-5), JointAccount(1.0, 1e-6, ledger.joint))


@pytest.mark.filterwarnings("ignore")
def test_a_ledger_in_mu_has_no_joint_account_and_a_plain_one_enters_what_it_costs(tmp_path):
    options = {"epsilon": 1.0, "delta": 1e-6, "rng": 3}
    in_mu = private_subspace(NEAR[0], 1, **options, account="mu").cost
    together = private_subspace(NEAR[0], 1, **options).cost
    assert (in_mu.mu is None, together.mu is None) == (False, True)
    assert (together.epsilon, together.delta) == (1.0, 1e-6)
    ledger = Ledger(tmp_path / "ledger.json")
    limits = {"limit_epsilon": "4", "limit_delta": "1e-5"}
    assert private_subspace(NEAR[0], 1, **options, ledger=ledger.page("in mu", **limits)).cost.mu is not None
    page = ledger.page("plain", **limits, plain=True)
    assert private_subspace(NEAR[0], 1, **options, ledger=page).cost.mu is None
    (entry,) = ledger.account("plain").entries
    assert (float(entry.epsilon), float(entry.delta), entry.mu) == (1.0, 1e-6, None)


# ---- Replays -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("margin", [1, 2, 4, 12, 30])
def test_steps_of_records_stay_within_their_shares_at_every_margin(margin):
    levels = Levels(700, 120, 60, margin)
    shares = record_shares(700, 1, BUDGET, {})
    chance = [Fraction(0), *(Fraction(one, 2**COIN_BITS) for one in shares.coin.numerators)]

    def run(table, rng):
        return stable_subspace(table.copy(), 1, epsilon=1.0, delta=1e-6, rng=rng, **levels.options)

    transcript = Transcript(answer=margin > 1)
    (path,) = transcript.paths(run, *short_row_pair(levels))
    assert sorted(transcript.margins) == [margin - 1, margin]
    first = [mu for mu in (shares.mu_scale, shares.mu_tail, shares.mu_long, shares.mu_signal) if mu]
    if margin == 1:
        assert 0.0 < path.spent <= compose_mu(*first) ** 2
        return
    assert path.coin.before <= compose_mu(*first) ** 2
    assert {path.coin.chance, path.coin.other} == {float(chance[margin]), float(chance[margin - 1])}
    assert path.spent - path.coin.before - path.coin.cost <= shares.mu_noise**2
    for result in path.results:
        assert result.cost.mu is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("answer", [True, False])
def test_a_course_stays_within_its_shares_after_either_answer(answer):
    shares = account().joint

    def run(table, rng):
        return private_subspace(table, 1, epsilon=1.0, delta=1e-6, rng=rng)

    transcript = Transcript(answer=answer)
    (path,) = transcript.paths(run, *NEAR)
    assert len(transcript.margins) == 2
    before, cost = (path.coin.before, path.coin.cost) if path.coin else (0.0, 0.0)
    assert before <= shares.before**2
    after = shares.yes if answer else shares.no
    assert path.spent - cost <= shares.before**2 + after**2
    assert path.results[0].cost.mu is None


def test_a_course_without_a_coin_has_what_the_account_says():
    """Tails that are too long for a coin: the adaptive algorithm gets the rest of a fixed whole."""
    table = np.random.default_rng(0).standard_normal((700, 1_000))
    ledger = account()
    release = course_within(seeded(0).within(ledger), open_table(table), 1)
    assert release.method == "auto (adaptive)"
    spent = sum(Fraction(part.mu) ** 2 for part in release.cost.parts)
    assert spent <= Fraction(ledger.joint.whole) ** 2
    assert "test" not in [part.name for part in release.cost.parts]
