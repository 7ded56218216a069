"""Private PCA by a named or robust method, or of rows that are not centred: a subspace, variances along it, a mean.

The subspace is that of differences of pairs of rows, of rows about a public centre, or of rows as they are.  The
three steps have fixed shares: of mu² where the method composes in mu, of epsilon and delta where it does not.
Proof: docs/explanation/planning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib.errors import Note, ParameterTypeError
from privspan.approximate import BlockSettings
from privspan.blocks.rank import choose_dimension
from privspan.pca.outcome import finished, label, released, warn_if_useless
from privspan.pca.settings import PCASettings, PCATable
from privspan.planner import Plan, plan_within
from privspan.privacy import Budget, Part, Release, share_mu
from privspan.privacy.call import Call
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import Child
from privspan.private import ALGORITHMS, methods_for
from privspan.rows.table import Table
from privspan.stable.course import delta_share
from privspan.subspace import Subspace
from privspan.sums.loadings import errors_after_turning, told_errors
from privspan.sums.mean import empty_share as mean_empty_share
from privspan.sums.mean import mean_within
from privspan.sums.pairs import pair_differences
from privspan.sums.pca_result import Noisy, PCAResult
from privspan.sums.variance import empty_share as variance_empty_share
from privspan.sums.variance import variance_within

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NamedTuning:
    """Of a private PCA by a named method: chosen by hand, in round numbers, and no script has fitted them.

    Shares are of mu² for methods that compose in mu, of epsilon and delta for the others.
    """

    by_pairs: tuple[tuple[str, float], ...] = (("subspace", 0.82), ("variances", 0.08), ("mean", 0.1))  # shares
    otherwise: tuple[tuple[str, float], ...] = (("subspace", 0.94), ("variances", 0.06))  # shares

    def shares(self, centring: str) -> dict[str, float]:
        """Return the share of every step."""
        return dict(self.by_pairs if centring == "pair differences" else self.otherwise)


NAMED = NamedTuning()


def learn_named(settings: PCASettings, call: Call, table: PCATable) -> tuple[Release, Plan]:
    """Learn the subspace of the centred rows, the variances along it, and the mean; return the plan, too."""
    _refuse(settings, call, table)
    in_mu, k = ALGORITHMS[settings.method].in_mu, table.considered[0]
    vote, units, rows = table.vote, table.units, table.source
    account = _account(settings, table, call.budget)
    run = call.begin(account, gaussian=in_mu, vote=vote)
    rows = rows if units is None else rows.in_units(units)
    steps: tuple[Part, ...] = ()
    if settings.k == "auto":
        centred = pair_differences(rows, run.on(Child.PAIRING).streams.public) if settings.center else rows
        k = choose_dimension(centred, table.considered[-1], epsilon=vote, run=run.on(Child.DIMENSION))
        steps = (Part("choice of the dimension", vote, 0.0),)
    course = _course(settings, table, k, account)
    if settings.method == "auto":  # before most is spent: a warning may be made an error
        warn_if_useless(call, course.plan)

    accounts, mean, costs = course.accounts, None, {}
    if course.centring == "public centre":
        centre = table.public.start if units is None else table.public.start / units
        rows, mean = rows.less(centre), Noisy(centre, math.inf)
    elif course.centring == "pair differences":
        measured = mean_within(run.on(Child.MEAN).within(accounts["mean"]), rows, None, None)
        costs["mean"], mean = measured.cost, Noisy(measured.mean, measured.noise)
        rows = pair_differences(rows, run.on(Child.PAIRING).streams.public)
    gamma = {"gamma": settings.gamma} if ALGORITHMS[settings.method].gamma else {}
    learn = ALGORITHMS[settings.method].prepare(call, rows, k, accounts["subspace"].budget, **gamma)
    subspace = learn(run.on(Child.SUBSPACE).within(accounts["subspace"]))
    # After an abstention the variances are those along the first axes: nothing depends on having abstained.
    along = subspace.subspace or Subspace(np.eye(rows.shape[1], k))
    variances = variance_within(run.on(Child.VARIANCES).within(accounts["variances"]), rows, along, None)

    costs = {"subspace": subspace.cost, "variances": variances.cost, **costs}
    if in_mu:
        steps += tuple(part for cost in costs.values() for part in cost.parts)
    else:  # where they add up, each step counts as a whole
        steps += tuple(Part(step, cost.epsilon, cost.delta) for step, cost in costs.items())
    aside = (vote, account.set_aside) if in_mu else None
    cost = call.budget.cost(*steps, aside=aside, empty=account.empty)
    result = _result(subspace, variances, mean, course.centring)
    how, abstained = label(subspace.method), subspace.abstained
    release = released(result, table, cost, run, units=units, method=how, abstained=abstained)
    return finished(settings, call, release, table, None, k), course.plan


def promise_named(settings: PCASettings, call: Call, table: PCATable) -> tuple[float, float] | None:
    """Return mu and the delta that is set aside; None where a step is not Gaussian."""
    _refuse(settings, call, table)
    if not ALGORITHMS[settings.method].in_mu:
        return None
    return _account(settings, table, call.budget).promise(table.vote)


def _refuse(settings: PCASettings, call: Call, table: PCATable) -> None:
    """Refuse what the method would refuse, for every k that may be chosen: later, something would be spent."""
    if table.source.is_sparse and _centring(settings, table) == "public centre":
        raise ParameterTypeError("{around} must not be given for a sparse table by a named or robust method.")
    if settings.method != "approximate":
        return
    account = MuLedger(call.budget.less(table.vote))
    for k in table.considered[: min(table.source.halved().shape)]:
        course = _course(settings, table, k, account)
        try:
            blocks = BlockSettings(gamma=settings.gamma)
            blocks.check_table(_rows_of(table, course.centring), k, course.accounts["subspace"].budget)
        except ValueError as refusal:
            if course.centring == "pair differences":
                refusal.add_note(Note("Centring makes one row of every two."))
            raise


# ---- Shares of the budget ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Course:
    """How to go on once k is known: how rows are centred, what to expect, and the account of each step."""

    centring: str
    plan: Plan
    accounts: dict[str, MuLedger]


def _course(settings: PCASettings, table: PCATable, k: int, account: MuLedger) -> _Course:
    """Choose from public numbers how to go on, and share mu, or the budget, out."""
    centring, rest = _centring(settings, table), account.budget
    weights = NAMED.shares(centring)
    mus = share_mu(account.mu, *weights.values())
    n, d = _rows_of(table, centring).shape
    methods = methods_for(table.source) if settings.method == "auto" else (settings.method,)
    plan = plan_within(n, d, k, Budget.for_mu(mus[0], rest.delta), settings.gamma, methods, joint=False)
    if not ALGORITHMS[settings.method].in_mu:
        accounts = [MuLedger(budget) for budget in rest.split([*weights.values()])]
    else:  # such steps compose in mu; what was set aside is for the subspace
        accounts = [MuLedger(rest, mu, f"{step}: ") for step, mu in zip(weights, mus, strict=True)]
        accounts[0] = account.sharing(mus[0], "subspace: ")
        for kept, step in zip(accounts, weights, strict=True):
            kept.empty = _empty_of(step, settings, table, account)
    return _Course(centring, plan, dict(zip(weights, accounts, strict=True)))


def _centring(settings: PCASettings, table: PCATable) -> str:
    if not settings.center:
        return "none"
    return "public centre" if np.isfinite(table.public.around).all() else "pair differences"


def _rows_of(table: PCATable, centring: str) -> Table:
    """Return what stands for the rows that the method sees, of which only the numbers of rows mean anything."""
    return table.centred if centring == "pair differences" else table.source


def _account(settings: PCASettings, table: PCATable, budget: Budget) -> MuLedger:
    """Return the account of all steps but a vote, with what a test of stable leverage may need set aside.

    That is decided by public numbers, for up to as many components as may be chosen.
    """
    rest, share, centring = budget.less(table.vote), 0.0, _centring(settings, table)
    weights = NAMED.shares(centring)
    if settings.method == "auto":
        rows, most = _rows_of(table, centring), table.considered[-1]
        share = delta_share(rows, most, rest, weights["subspace"], settings.gamma)
    account = MuLedger(rest, test_share=share)
    shares = (part * _empty_of(step, settings, table, account) for step, part in weights.items())
    account.empty = min(1.0, sum(shares) * (1.0 + 1e-9))
    return account


def _empty_of(step: str, settings: PCASettings, table: PCATable, account: MuLedger) -> float:
    """Return the share of mu² that an empty place can tell in one step: docs/explanation/zero-out.md."""
    if step == "mean":
        return mean_empty_share(None)
    if step == "variances":
        return variance_empty_share(None)
    centring = _centring(settings, table)
    # Where nothing is set aside, one algorithm is the adaptive one.
    method = "adaptive" if settings.method == "auto" and not account.set_aside else settings.method
    mu = share_mu(account.mu, *NAMED.shares(centring).values())[0]
    return ALGORITHMS[method].empty(_rows_of(table, centring).shape[0], mu, {})


def _result(subspace: Release, variances: Release, mean: Noisy[Array] | None, centring: str) -> PCAResult:
    """Return what the method and the steps after it released: components by variance."""
    turned, along = variances.subspace, {name: np.asarray(value) for name, value in variances.extras.items()}
    assert turned is not None
    halved = 0.5 if centring == "pair differences" else 1.0  # differences vary twice as much as rows
    told = [along[name] * halved for name in ("explained_variance", "explained_variance_std")]
    total = [float(along[name]) * halved for name in ("total_variance", "total_variance_std")]
    error, errors = subspace.parameters.get("expected_error"), None
    if isinstance(error, float) and not subspace.abstained:
        directions = told_errors(subspace.parameters, len(told[0]))
        errors = errors_after_turning(turned.basis, told[0], float(told[1][0]), directions)
    clip: Any = variances.parameters["norm_bound"]
    return PCAResult(
        basis=turned.basis,
        ratios=Noisy(along["explained_variance_ratio"], math.nan),
        variances=Noisy(told[0], told[1]),
        total=Noisy(total[0], total[1]),
        course=subspace.method,
        mean=mean,
        components_std=errors,
        clip=clip,
        about={**subspace.parameters, "centring": centring},
    )
