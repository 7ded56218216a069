"""Sums of costs keep what they are: mu and what is set aside, with the epsilon at any delta; and their exports."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from operator import add

import mpmath
import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import UnsupportedEventError
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

import privspan as ps
from privspan.privacy import Budget, PrivacyCost, compose_mu, delta_from_mu, mu_from_budget
from privspan.privacy.exports import lost_outright
from privspan.privacy.gdp import mu_from_epsilon

FIT = Budget(1.0, 1e-6).cost(aside=(0.0, 0.0))
WITH_TEST = Budget(1.0, 1e-6).cost(aside=(0.0, 5e-8))
REPLACE = NeighboringRelation.REPLACE_ONE


def many(cost: PrivacyCost, times: int) -> PrivacyCost:
    return reduce(add, [cost] * times)


@pytest.mark.parametrize(("times", "epsilon", "at_five"), [(10, 3.53, 3.14), (12, 3.90, 3.49), (52, 9.10, 8.33)])
def test_many_fits_cost_what_they_cost(times: int, epsilon: float, at_five: float) -> None:
    assert many(FIT, times).epsilon == pytest.approx(epsilon, abs=0.006)
    assert many(FIT, times).delta == 1e-6
    assert many(WITH_TEST, times).epsilon_at(1e-5) == pytest.approx(at_five, abs=0.006)
    assert many(WITH_TEST, times).delta_aside == pytest.approx(times * 5e-8)
    assert many(PrivacyCost(1.0, 1e-6), times).epsilon == times


def test_a_cost_without_mu_is_added_plainly_to_those_with_it() -> None:
    mixed = many(FIT, 10) + PrivacyCost(1.0, 1e-6)
    assert (mixed.epsilon, mixed.delta) == (pytest.approx(4.53, abs=0.006), pytest.approx(2e-6))
    assert mixed == PrivacyCost(1.0, 1e-6) + many(FIT, 10)
    mu, aside = mixed.in_mu()
    assert (PrivacyCost(9, 0.5, mu=mu, delta_aside=aside).epsilon_at(2e-6), aside) == (
        pytest.approx(7.45, abs=0.006),
        1e-6,
    )


small = st.floats(1e-9, 1e-3)
costs = st.builds(
    lambda epsilon, delta, share, vote, gaussian: (
        Budget(epsilon, delta).cost(aside=(vote * epsilon, share * delta))
        if gaussian
        else PrivacyCost(epsilon, delta)
    ),
    st.floats(1e-3, 5.0),
    small,
    st.sampled_from([0.0, 0.05, 0.5]),
    st.sampled_from([0.0, 0.1]),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(costs, min_size=2, max_size=4), st.floats(1e-8, 1e-3))
def test_a_sum_claims_no_less_than_its_terms_compose_to(terms: list[PrivacyCost], delta: float) -> None:
    total = reduce(add, terms)
    exact = [term._exactly() for term in terms]
    square, epsilon, aside = (sum(column, Fraction(0)) for column in zip(*exact, strict=True))
    if total.mu is None:
        assert (Fraction(total.epsilon), Fraction(total.delta)) >= (epsilon, aside)
        return
    assert Fraction(total.mu) ** 2 >= square
    assert Fraction(total.epsilon_aside) >= epsilon
    assert Fraction(total.delta_aside) >= aside
    # The claim, and what is read at another delta, hold for the composed mu with 50 digits.
    with mpmath.workdps(50):
        mu = mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)
        for read, at in ((total.epsilon, total.delta), (total.epsilon_at(delta), delta)):
            if math.isinf(read):
                assert delta <= total.delta_aside
                continue
            rest = mpmath.mpf(read) - mpmath.mpf(epsilon.numerator) / epsilon.denominator
            needed = mpmath.ncdf(-rest / mu + mu / 2) - mpmath.exp(rest) * mpmath.ncdf(-rest / mu - mu / 2)
            assert needed + mpmath.mpf(aside.numerator) / aside.denominator <= at
            assert total.delta_at(read) <= at * (1 + 1e-6)
    assert total.epsilon <= sum(term.epsilon for term in terms) * (1 + 1e-9)
    assert PrivacyCost.from_dict(total.to_dict()) == total


def test_the_larger_of_two_parts_keeps_mu() -> None:
    side = FIT.parallel(Budget(0.5, 1e-5).cost(aside=(0.0, 1e-7)))
    assert (side.mu, side.delta_aside, side.epsilon, side.delta) == (FIT.mu, 1e-7, 1.0, 1e-5)


def test_what_cannot_be_read_is_infinite() -> None:
    assert math.isinf(WITH_TEST.epsilon_at(5e-8))
    assert math.isinf(PrivacyCost(1.0, 1e-6).epsilon_at(1e-7))
    assert PrivacyCost(1.0, 1e-6).delta_at(0.5) == 1.0
    assert Budget(1.0, 1e-6).cost(aside=(0.5, 0.0)).delta_at(0.4) == 1.0


def test_a_release_keeps_the_mu_of_its_budget_and_not_that_of_its_path() -> None:
    X = np.random.default_rng(0).standard_normal((2_000, 6)) * [3, 2, 1, 1, 1, 1]
    for make in (
        lambda **o: ps.private_mean(X, **o),
        lambda **o: ps.private_pca(X, 2, **o),
        lambda **o: ps.private_pca(X, "auto", **o),
        lambda **o: ps.private_pca(X, 2, robust=True, **o),
        lambda **o: ps.private_pca(X, 2, scale=True, **o),
        lambda **o: ps.private_subspace(X, 2, **o),
        lambda **o: ps.private_pca(X, 2, method="analyze-gauss", **o),
    ):
        cost = make(epsilon=1.0, delta=1e-6, rng=0).cost
        assert cost.mu is not None
        rest = 1.0 - cost.epsilon_aside, 1e-6 - cost.delta_aside
        assert cost.mu == pytest.approx(mu_from_budget(*rest), rel=1e-9)
        spent = compose_mu(*(part.mu for part in cost.parts if part.mu is not None))
        assert cost.mu * (1 - 1e-6) <= spent <= cost.mu * (1 + 1e-12)  # all of it
        assert cost.epsilon_at(1e-6) == pytest.approx(1.0, rel=1e-6)
        assert cost.epsilon_aside == sum(part.epsilon for part in cost.parts if part.mu is None)
    for make in (ps.exact_subspace, ps.approximate_subspace):
        assert make(X, 2, epsilon=1.0, delta=1e-6, rng=0).cost.mu is None


# --- Conversions and exports ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.1, 0.9999, 1.0, 3.0, 40.0, 700.0, 1e4])
def test_mu_of_pure_epsilon_is_rounded_up(epsilon: float) -> None:
    mu = mu_from_epsilon(epsilon)
    with mpmath.workdps(60):
        log_of = [mpmath.log(mpmath.erfc(mpmath.mpf(one) / 2 / mpmath.sqrt(2)) / 2) for one in (mu, mu * (1 - 2e-10))]
        corner = -mpmath.log(1 + mpmath.exp(mpmath.mpf(epsilon)))
        assert log_of[0] <= corner < log_of[1]


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
def test_mu_of_pure_epsilon_dominates_randomised_response_and_no_smaller_one_does(epsilon: float) -> None:
    odds, t = 1 / (1 + math.exp(-epsilon)), np.linspace(0, 12, 4_001)
    response = np.maximum(odds - np.exp(t) * (1 - odds), 0)
    mu = mu_from_epsilon(epsilon)
    assert (np.array([delta_from_mu(mu, one) for one in t]) >= response - 1e-13).all()
    assert (np.array([delta_from_mu(mu * (1 - 1e-6), one) for one in t]) < response - 1e-13).any()


@pytest.mark.parametrize(("mu", "aside"), [(0.2367, 5e-8), (1.0, 1e-3), (2.0, 0.05)])
def test_lemma_a(mu: float, aside: float) -> None:
    lost = lost_outright(PrivacyCost(9.0, 0.9, mu=mu, delta_aside=aside))
    for t in np.linspace(0, 6, 601):
        stick = delta_from_mu(mu, float(t))
        assert lost + (1 - lost) * stick >= (stick + aside) * (1 - 1e-9)
    assert lost < 3.2 * aside


@pytest.mark.parametrize(("cost", "times"), [(FIT, 1), (FIT, 10), (WITH_TEST, 10), (PrivacyCost(0.1, 0.0), 12)])
def test_loss_distributions_dominate_and_are_not_loose(cost: PrivacyCost, times: int) -> None:
    found = cost.to_pld().self_compose(times).get_epsilon_for_delta(1e-5)
    total = many(cost, times)
    here = total.epsilon_at(1e-5)
    assert found >= here * (1 - 1e-9) if cost.mu is not None else found <= here
    assert found <= here * 1.005
    assert many(cost, times).to_pld().get_epsilon_for_delta(1e-5) <= here * 1.005


EVENTS = {
    "pld": lambda: PLDAccountant(REPLACE),
    "rdp": lambda: RdpAccountant(neighboring_relation=REPLACE),
}


def read(accountant: str, event: dp_event.DpEvent, times: int = 1, delta: float = 1e-6) -> float:
    return EVENTS[accountant]().compose(event, times).get_epsilon(delta)


@pytest.mark.parametrize(
    ("accountant", "once", "ten"), [("pld", (1.0, 1.0001), (3.5246, 3.5249)), ("rdp", (1.0, 1.09), (3.77, 3.78))]
)
def test_an_event_is_right_in_its_accountant_and_refused_by_the_other(accountant: str, once, ten) -> None:
    event = FIT.to_dp_event(accountant)
    assert once[0] - 1e-6 <= read(accountant, event) <= once[1]
    assert ten[0] <= read(accountant, event, 10) <= ten[1]
    assert ten[0] <= read(accountant, many(FIT, 10).to_dp_event(accountant)) <= ten[1]
    (other,) = set(EVENTS) - {accountant}
    with pytest.raises(UnsupportedEventError):
        read(other, event)


def test_an_event_is_refused_by_accountants_for_an_added_row() -> None:
    """They are so by default, and would take it for half of what it is."""
    for accountant in (PLDAccountant(), RdpAccountant()):
        with pytest.raises(UnsupportedEventError):
            accountant.compose(FIT.to_dp_event("pld"))


def test_the_obvious_events_are_wrong_in_one_accountant() -> None:
    """If these change, so may the events that are chosen: docs/explanation/pots.md."""
    mu = FIT.mu
    assert read("pld", dp_event.GaussianDpEvent(1 / mu)) == pytest.approx(2.12, abs=0.01)
    assert read("rdp", dp_event.GaussianDpEvent(1 / mu)) == pytest.approx(1.08, abs=0.01)
    assert read("pld", dp_event.GaussianDpEvent(2 / mu)) == pytest.approx(1.0, abs=1e-4)
    assert read("rdp", dp_event.GaussianDpEvent(2 / mu)) == pytest.approx(0.51, abs=0.01)


@pytest.mark.parametrize("accountant", EVENTS)
def test_pure_and_mixed_costs_have_events_too(accountant: str) -> None:
    pure = PrivacyCost(0.5, 0.0)
    assert 0.49 < read(accountant, pure.to_dp_event(accountant)) <= 0.51
    mixed = many(FIT, 3) + pure
    found = read(accountant, mixed.to_dp_event(accountant))
    assert many(FIT, 3).epsilon < found <= mixed.epsilon * (1.001 if accountant == "pld" else 1.1)
    plain = PrivacyCost(0.5, 1e-6)  # its delta is for the reader to add
    assert read(accountant, plain.to_dp_event(accountant)) == read(accountant, pure.to_dp_event(accountant))


def test_an_accountant_must_be_named() -> None:
    for wrong in ("PLD", "zcdp", "", None):
        with pytest.raises((ValueError, TypeError), match="accountant"):
            FIT.to_dp_event(wrong)
    assert isinstance(PrivacyCost(0.0, 0.0).to_dp_event("pld"), dp_event.NoOpDpEvent)


def test_costs_of_disjoint_parts_of_either_kind_go_on_adding_up() -> None:
    """Side by side, all of delta is set aside by the one, and mu is read at as much once more."""
    fit = PrivacyCost(1.0, 1e-6, mu=mu_from_budget(1.0, 1e-6))
    both = PrivacyCost(0.5, 1e-6).parallel(fit)
    twice = both + both
    assert (twice.epsilon_aside, twice.delta_aside, twice.delta) == (1.0, 2e-6, 3e-6)
    assert twice.epsilon == pytest.approx(1.0 + (fit + fit).epsilon)
