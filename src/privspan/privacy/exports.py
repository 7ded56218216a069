"""A cost in the terms of dp_accounting: loss distributions and events that are safe there.

Which event is right in which accountant, and the ones that are not: docs/explanation/pots.md.
"""

from __future__ import annotations

import math

from scipy.special import ndtr

from privspan._lib import checks
from privspan._lib.errors import MissingPackageError
from privspan.privacy.reading import Cost


def to_pld(cost: Cost, interval: float) -> object:
    """Return a loss distribution that dominates the cost: see `PrivacyCost.to_pld`."""
    checks.positive(interval=interval)
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        raise _missing("to_pld") from None
    aside = (cost.epsilon, cost.delta) if cost.mu is None else (cost.epsilon_aside, lost_outright(cost))
    known = privacy_loss_distribution.from_privacy_parameters(common.DifferentialPrivacyParameters(*aside), interval)
    if cost.mu is None:
        return known
    gaussian = privacy_loss_distribution.from_gaussian_mechanism(
        math.nextafter(1.0 / cost.mu, 0.0), value_discretization_interval=interval
    )
    return gaussian if aside == (0.0, 0.0) else gaussian.compose(known)


def lost_outright(cost: Cost) -> float:
    """Return the delta'' of lemma A: mu-GDP beside a loss of delta'' dominates hockey sticks of mu plus delta'."""
    kept = 2.0 * float(ndtr(-(cost.mu or 0.0) / 2.0)) * (1.0 - 1e-12)
    if cost.delta_aside == 0.0:
        return 0.0
    return min(1.0, math.nextafter(cost.delta_aside / kept, 1.0)) if kept > cost.delta_aside else 1.0


def to_dp_event(cost: Cost, accountant: str) -> object:
    """Return the event that is right in one accountant: see `PrivacyCost.to_dp_event`."""
    checks.one_of(("pld", "rdp"), accountant=accountant)
    try:
        from dp_accounting import dp_event
    except ImportError:
        raise _missing("to_dp_event") from None
    events = []
    if cost.mu is not None and cost.neighbours.startswith("zero-out"):
        events.append(dp_event.GaussianDpEvent(math.nextafter(1.0 / cost.mu, 0.0)))  # under REPLACE_SPECIAL
    elif cost.mu is not None and accountant == "pld":
        # Under REPLACE_ONE a Gaussian event is one of twice the sensitivity.  The other accountant would take it for
        # mu / 2 and refuses it only as a sample, here one of everybody; so would both for one added or removed row,
        # which they refuse only of randomised response, here one that tells next to nothing.
        noise = math.nextafter(2.0 / cost.mu, 0.0)
        events.append(dp_event.PoissonSampledDpEvent(1.0, dp_event.GaussianDpEvent(noise)))
        events.append(dp_event.RandomizedResponseDpEvent(1.0 - 2.0**-40, 2))
    elif cost.mu is not None:
        events.append(dp_event.ZCDpEvent(math.nextafter(cost.mu * cost.mu / 2.0, math.inf)))
    epsilon = cost.epsilon if cost.mu is None else cost.epsilon_aside
    if epsilon > 0.0:
        # Of two answers, with this chance drawn at random: the odds of the true one are e^epsilon.
        chance = 2.0 * math.exp(-epsilon) / (1.0 + math.exp(-epsilon)) * (1.0 - 1e-14)
        events.append(dp_event.RandomizedResponseDpEvent(chance, 2))
    if not events:
        return dp_event.NoOpDpEvent()
    return events[0] if len(events) == 1 else dp_event.ComposedDpEvent(events)


def _missing(name: str) -> MissingPackageError:
    template = "PrivacyCost.{name} needs the package dp-accounting: pip install dp-accounting"
    return MissingPackageError(template, name=name)
