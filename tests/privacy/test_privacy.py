"""Conversions against high precision and dp_accounting; budgets as exact rationals; releases that stay put."""

from __future__ import annotations

import json
import math
import pickle
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event, gaussian_mechanism, privacy_accountant
from dp_accounting.pld import accountant as pld_accountant
from dp_accounting.pld import common as pld_common
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfcx

from privspan._lib import rounding as _rounding
from privspan.privacy import (
    NEIGHBOURS,
    Budget,
    Part,
    PrivacyCost,
    compose_mu,
    delta_from_mu,
    delta_from_rho,
    epsilon_from_mu,
    gdp,
    mu_from_budget,
    rho_from_budget,
    share_mu,
)

EPSILONS = [1e-3, 0.03, 0.5, 1.0, 3.0, 10.0, 50.0]
DELTAS = [1e-12, 1e-9, 1e-6, 1e-3, 0.1]

positives = st.floats(min_value=1e-6, max_value=1e6)
weights = st.lists(st.floats(min_value=1e-3, max_value=1e3), min_size=1, max_size=6)
budgets = st.builds(Budget, positives, st.floats(min_value=1e-12, max_value=0.9))


def exact_delta(mu, epsilon, digits=60):
    """delta(mu, epsilon) by its definition, with so many digits that the cancellation does not matter."""
    with mpmath.workdps(digits):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)


def exact_rho_bound(rho, epsilon):
    """The bound of Canonne, Kamath and Steinke, minimised over the order with many digits."""
    with mpmath.workdps(50):
        rho, epsilon = mpmath.mpf(rho), mpmath.mpf(epsilon)

        def slope(a):
            return (2 * a - 1) * rho - epsilon + mpmath.log1p(-1 / a)

        low, high = 1 + mpmath.mpf(10) ** -30, mpmath.mpf(10) ** 12
        for _ in range(300):
            middle = mpmath.sqrt((low - 1) * (high - 1)) + 1
            low, high = (low, middle) if slope(middle) > 0 else (middle, high)
        return mpmath.exp((low - 1) * (low * rho - epsilon)) / (low - 1) * (1 - 1 / low) ** low


# --- Gaussian differential privacy


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_mu_from_budget_is_safe_and_tight(epsilon, delta):
    mu = mu_from_budget(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mu * (1 + 1e-8), epsilon) > delta


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_evaluation_error_is_far_below_the_slack(epsilon, delta):
    mu = mu_from_budget(epsilon, delta)
    for factor in (0.5, 1.0, 1.5):
        log_exact = mpmath.log(exact_delta(mu * factor, epsilon, digits=200))
        error = abs(float(mpmath.mpf(gdp._log_delta(mu * factor, epsilon)) - log_exact))
        assert error < 0.01 * gdp._SLACK


def test_the_special_function_is_as_accurate_as_the_proof_assumes():
    points = np.concatenate([np.linspace(-0.4, 3.0, 1500), np.geomspace(3.0, 1e3, 500)])
    with mpmath.workdps(40):
        for x, value in zip(points.tolist(), erfcx(points).tolist(), strict=True):
            exact = mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(mpmath.mpf(x))
            assert abs(mpmath.mpf(value) / exact - 1) < 5e-15


@given(
    st.floats(min_value=-12, max_value=6).map(lambda e: 10.0**e),
    st.floats(min_value=-300, max_value=-0.001).map(lambda e: 10.0**e),
)
@settings(max_examples=25, deadline=None)
def test_mu_from_budget_is_safe_far_outside_the_usual_range(epsilon, delta):
    mu = mu_from_budget(epsilon, delta)
    assert exact_delta(mu, epsilon, digits=700) <= delta


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(5e-324, 5e-324), (1e-300, 1e-300), (1e300, 1e-6), (1.0, math.nextafter(1.0, 0.0))]
)
def test_extreme_budgets_have_a_mu(epsilon, delta):
    mu = mu_from_budget(epsilon, delta)
    assert 0 < mu < math.inf
    assert delta_from_mu(mu, epsilon) <= delta


def test_noise_of_the_design():
    # The analytic Gaussian mechanism of Balle and Wang at epsilon = 1, delta = 1e-6.
    assert 1 / mu_from_budget(1.0, 1e-6) == pytest.approx(4.2247, abs=5e-5)


@pytest.mark.parametrize("mu", [1e-4, 0.1, 0.999, 1.0, 1.001, 3.0, 12.0, 80.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1, 1.0, 8.0, 60.0])
def test_delta_from_mu_rounds_up_slightly(mu, epsilon):
    exact = exact_delta(mu, epsilon, digits=700)
    delta = delta_from_mu(mu, epsilon)
    assert exact <= delta <= exact * (1 + mpmath.mpf(3e-10)) + 2 * sys.float_info.min
    assert 0 < delta <= 1


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_from_mu_is_safe_and_tight(mu, delta):
    epsilon = epsilon_from_mu(mu, delta)
    assert exact_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert exact_delta(mu, epsilon * (1 - 1e-8)) > delta


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_inversions_agree(epsilon, delta):
    mu = mu_from_budget(epsilon, delta)
    assert epsilon_from_mu(mu, delta) == pytest.approx(epsilon, rel=1e-8)
    assert epsilon_from_mu(mu, delta) <= epsilon * (1 + 2**-49)
    assert delta_from_mu(mu, epsilon) == pytest.approx(delta, rel=1e-8)
    assert delta_from_mu(mu, epsilon) <= delta


def test_epsilon_from_mu_at_the_ends():
    assert epsilon_from_mu(1e-3, 0.5) == 0.0
    assert epsilon_from_mu(1e200, 1e-6) == math.inf


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-6), (1.0, 1e-9), (4.0, 1e-3), (20.0, 1e-6)])
def test_mu_agrees_with_the_calibrations_of_dp_accounting(epsilon, delta):
    sigma = 1 / mu_from_budget(epsilon, delta)
    assert gaussian_mechanism.get_sigma_gaussian(epsilon, delta) == pytest.approx(sigma, rel=1e-7)
    parameters = pld_common.DifferentialPrivacyParameters(epsilon, delta)
    assert pld_accountant.get_smallest_gaussian_noise(parameters, 1) == pytest.approx(sigma, rel=1e-3)


@pytest.mark.parametrize(("mu", "epsilon"), [(0.3, 1.0), (1.0, 1.0), (2.0, 5.0)])
def test_delta_agrees_with_the_privacy_loss_distribution(mu, epsilon):
    distribution = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
    assert distribution.get_delta_for_epsilon(epsilon) == pytest.approx(delta_from_mu(mu, epsilon), rel=2e-3)


def test_composed_mu_agrees_with_composed_loss_distributions():
    steps = [pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4) for mu in (0.2, 0.3, 0.6)]
    composed = steps[0].compose(steps[1]).compose(steps[2])
    mu = compose_mu(0.2, 0.3, 0.6)
    assert composed.get_delta_for_epsilon(1.0) == pytest.approx(delta_from_mu(mu, 1.0), rel=5e-3)


@given(st.lists(positives, min_size=1, max_size=6))
def test_compose_mu_rounds_up_by_one_float_at_most(mus):
    exact = sum(Fraction(mu) ** 2 for mu in mus)
    mu = compose_mu(*mus)
    assert Fraction(mu) ** 2 >= exact
    assert Fraction(math.nextafter(mu, 0)) ** 2 < exact


@given(positives, weights)
def test_share_mu_never_exceeds(mu, shares):
    mus = share_mu(mu, *shares)
    assert sum(Fraction(part) ** 2 for part in mus) <= Fraction(mu) ** 2
    for part, weight in zip(mus, shares, strict=True):
        assert part == pytest.approx(mu * math.sqrt(weight / math.fsum(shares)), rel=1e-14)


def test_single_mu_is_unchanged():
    assert compose_mu(0.1) == 0.1
    assert share_mu(0.1, 7.0) == (0.1,)


@pytest.mark.parametrize("call", [lambda: compose_mu(), lambda: share_mu(1.0), lambda: Budget(1, 0.1).split([])])
def test_nothing_to_share(call):
    with pytest.raises(ValueError, match="at least one"):
        call()


# --- zero-concentrated differential privacy


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0, 50.0])
def test_delta_from_rho_rounds_up_slightly(rho, epsilon):
    exact = min(mpmath.mpf(1), exact_rho_bound(rho, epsilon))
    delta = delta_from_rho(rho, epsilon)
    assert delta >= exact or delta == 1.0
    assert delta <= exact * (1 + mpmath.mpf(1e-8)) + 2 * sys.float_info.min


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_rho_from_a_budget_is_safe_and_tight(epsilon, delta):
    rho = rho_from_budget(epsilon, delta)
    assert exact_rho_bound(rho, epsilon) <= delta
    assert exact_rho_bound(rho * (1 + 1e-8), epsilon) > delta


@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-6), (0.1, 1e-6), (0.5, 1e-9), (2.0, 1e-5)])
def test_rho_agrees_with_the_renyi_accountant(rho, delta):
    # Gaussian noise of sigma is 1 / (2 sigma^2)-zCDP; a fine grid of orders makes their minimum ours.
    orders = 1 + np.geomspace(0.05, 500, 4000)
    relation = privacy_accountant.NeighboringRelation.REPLACE_SPECIAL
    accountant = rdp_privacy_accountant.RdpAccountant(orders, relation)
    accountant.compose(dp_event.GaussianDpEvent(1 / math.sqrt(2 * rho)))
    epsilon = accountant.get_epsilon(delta)
    assert rho_from_budget(epsilon, delta) == pytest.approx(rho, rel=1e-5)
    assert delta_from_rho(rho, epsilon * (1 + 1e-9)) <= delta


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
def test_concentrated_accounting_is_never_better_than_gaussian(mu):
    for epsilon in (0.1, 1.0, 6.0):
        assert delta_from_rho(mu**2 / 2, epsilon) >= exact_delta(mu, epsilon)  # mu-GDP is mu**2 / 2-zCDP


def test_rho_at_the_ends():
    assert delta_from_rho(1e300, 1e-6) == 1.0
    assert 0 < delta_from_rho(1e-300, 1.0) < 1e-300
    with pytest.raises(ValueError, match="`delta` must be larger"):
        rho_from_budget(1e-300, 1e-300)


@pytest.mark.parametrize(
    "call",
    [
        lambda: delta_from_mu(0.0, 1.0),
        lambda: delta_from_mu(1.0, -1.0),
        lambda: mu_from_budget(math.nan, 1e-6),
        lambda: mu_from_budget(1.0, 0.0),
        lambda: epsilon_from_mu(1.0, 1.0),
        lambda: compose_mu(1.0, -1.0),
        lambda: share_mu(1.0, 0.0),
        lambda: delta_from_rho(math.inf, 1.0),
        lambda: rho_from_budget(0.0, 1e-6),
        lambda: rho_from_budget(1.0, 0.0),
        lambda: delta_from_rho(-1.0, 1.0),
        lambda: Budget(1.0, 1.0),
        lambda: Budget(1.0, 0.1).split([1.0, -1.0]),
        lambda: Budget(1.0, 0.1).reserve_delta(1.0),
        lambda: PrivacyCost(-1.0, 0.0),
        lambda: PrivacyCost(1.0, 1.5),
        lambda: Part("x", 1.0, 0.0, mu=0.0),
    ],
)
def test_bad_parameters_are_refused(call):
    with pytest.raises(ValueError, match=r"^`\w+` must be .*; got .*\.$"):
        call()


# --- rounding


@given(st.fractions())
def test_directed_rounding_is_tight(value):
    low, high = _rounding.down(value), _rounding.up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high in (low, math.nextafter(low, math.inf))


def test_directed_rounding_beyond_the_floats():
    huge = Fraction(10) ** 400
    assert (_rounding.down(huge), _rounding.up(huge)) == (sys.float_info.max, math.inf)
    assert (_rounding.down(-huge), _rounding.up(-huge)) == (-math.inf, -sys.float_info.max)
    assert (_rounding.down(1 / huge), _rounding.up(1 / huge)) == (0.0, 5e-324)


@given(st.fractions(min_value=0), st.integers(-300, 300))
def test_directed_roots(value, exponent):
    value *= Fraction(10) ** exponent
    low, high = _rounding.sqrt_down(value), _rounding.sqrt_up(value)
    assert Fraction(low) ** 2 <= value <= Fraction(high) ** 2
    assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)


# --- budgets and costs


@given(budgets, budgets)
def test_sequential_composition_rounds_up(first, second):
    total = first.cost() + second.cost()
    assert Fraction(total.epsilon) >= Fraction(first.epsilon) + Fraction(second.epsilon)
    assert total.delta == 1.0 or Fraction(total.delta) >= Fraction(first.delta) + Fraction(second.delta)
    assert total.epsilon == pytest.approx(first.epsilon + second.epsilon, rel=1e-15)


def test_rounding_up_is_visible():
    # 0.1 + 0.7 as floats is below the sum of the two numbers.
    assert Fraction(0.1 + 0.7) < Fraction(0.1) + Fraction(0.7)
    assert (PrivacyCost(0.1, 0) + PrivacyCost(0.7, 0)).epsilon > 0.1 + 0.7


def test_composition_keeps_parts_and_caps_delta():
    first = PrivacyCost(1, 0.6, parts=(Part("vote", 1, 0.6),))
    second = PrivacyCost(2, 0.7, parts=[Part("sum", 2, 0.7, mu=1)])
    both = first + second
    assert (both.epsilon, both.delta) == (3.0, 1.0)
    assert [part.name for part in both.parts] == ["vote", "sum"]
    side = first.parallel(second)
    assert (side.epsilon, side.delta, len(side.parts)) == (2.0, 0.7, 2)


def test_other_neighbours_do_not_mix():
    ours, theirs = PrivacyCost(1, 0), PrivacyCost(1, 0, neighbours="add-remove")
    assert ours.neighbours == NEIGHBOURS == "replace-one"
    for combine in (ours.__add__, ours.parallel):
        with pytest.raises(ValueError, match="'replace-one' and 'add-remove'"):
            combine(theirs)
    with pytest.raises(TypeError):
        ours + 1


def test_costs_are_frozen_values():
    cost = PrivacyCost(1, 1e-6, parts=(Part("vote", 1, 1e-6),))
    assert hash(cost) == hash(pickle.loads(pickle.dumps(cost)))
    with pytest.raises(AttributeError):
        cost.epsilon = 0.1
    with pytest.raises(TypeError, match="parts"):
        PrivacyCost(1, 0, parts=("vote",))
    with pytest.raises(TypeError, match="neighbours"):
        PrivacyCost(1, 0, neighbours=None)


def test_cost_in_words():
    assert str(PrivacyCost(1, 1e-6)) == "(1, 1e-06)-DP, replace-one"
    assert str(PrivacyCost(0.1, 0) + PrivacyCost(0.2, 0)) == "(0.3, 0)-DP, replace-one"


def test_cost_survives_json():
    cost = PrivacyCost(0.1 + 0.2, 1 / 3, parts=(Part("vote", 0.1, 0.0), Part("sum", 0.2, 0.3, mu=0.7)))
    assert PrivacyCost.from_dict(json.loads(json.dumps(cost.to_dict()))) == cost


@pytest.mark.parametrize(
    "values",
    [
        {},
        [],
        None,
        {"epsilon": 1, "delta": 0, "neighbours": "replace-one"},
        {"epsilon": 1, "delta": 0, "neighbours": "replace-one", "parts": [1]},
        {"epsilon": 1, "delta": 0, "neighbours": "replace-one", "parts": [{"who": 1}]},
        {"epsilon": "1", "delta": 0, "neighbours": "replace-one", "parts": []},
        {"epsilon": 1, "delta": 2, "neighbours": "replace-one", "parts": []},
    ],
)
def test_foreign_dictionaries_are_refused(values):
    with pytest.raises(ValueError, match="must be"):
        PrivacyCost.from_dict(values)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.25, 0.01), (3.0, 0.0)])
def test_loss_distribution_of_a_cost(epsilon, delta):
    distribution = PrivacyCost(epsilon, delta).to_pld()
    assert distribution.get_delta_for_epsilon(epsilon) == pytest.approx(delta, abs=1e-15)
    assert distribution.get_delta_for_epsilon(0.9 * epsilon) > 1.01 * delta


def test_composed_loss_distributions_are_between_one_and_basic():
    cost = PrivacyCost(1.0, 1e-6)
    one, ten = cost.to_pld(), cost.to_pld().self_compose(10)
    two = one.compose(cost.to_pld())
    assert two.get_delta_for_epsilon(2.0) == pytest.approx(1 - (1 - 1e-6) ** 2, rel=1e-6)
    assert two.get_delta_for_epsilon(1.5) > 2e-6
    assert 1.0 < ten.get_epsilon_for_delta(1e-3) < 10.0


def test_to_pld_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(ImportError, match="pip install dp-accounting"):
        PrivacyCost(1, 0).to_pld()
