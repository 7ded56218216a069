"""Budgets, costs and releases; Gaussian noise, private selection and the randomness behind both."""

from privspan.privacy.cost import NEIGHBOURS, Part, PrivacyCost
from privspan.privacy.gdp import compose_mu, delta_from_mu, epsilon_from_mu, mu_from_budget, mu_from_epsilon, share_mu
from privspan.privacy.mu_ledger import Budget
from privspan.privacy.reading import PERSONS
from privspan.privacy.release import Release
from privspan.privacy.warned import (
    AbstentionWarning,
    IdentifierWarning,
    NotPrivateWarning,
    TransformedRowsWarning,
    UselessPlanWarning,
    WeakPrivacyWarning,
)
from privspan.privacy.zcdp import delta_from_rho, rho_from_budget

__all__ = [
    "NEIGHBOURS",
    "PERSONS",
    "AbstentionWarning",
    "Budget",
    "IdentifierWarning",
    "NotPrivateWarning",
    "Part",
    "PrivacyCost",
    "Release",
    "TransformedRowsWarning",
    "UselessPlanWarning",
    "WeakPrivacyWarning",
    "compose_mu",
    "delta_from_mu",
    "delta_from_rho",
    "epsilon_from_mu",
    "mu_from_budget",
    "mu_from_epsilon",
    "rho_from_budget",
    "share_mu",
]
