"""Private PCA: how one budget pays for units, components, variances and a mean.

Standardised columns (``scale=True``) have a course of their own (`privspan.standard.course`).  Else: put the columns
into public units; choose the dimension (only for ``k="auto"``); then either the everyday course
(`privspan.sums.everyday`), which finds a centre, looks, and measures mean and variances on the way, or, where a
method or a robust target is asked for or nothing is to be centred, a subspace by that method, with shares for the
variances along it and for the mean.  What is done follows from public numbers and released ones.
Proofs: docs/explanation/planning.md, docs/explanation/everyday-tables.md, docs/explanation/standardised.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import Note, Parameter, ParameterError, ParameterTypeError
from privspan.approximate import BlockSettings
from privspan.blocks import plan as planner_blocks
from privspan.blocks.rank import check_choice, choose_dimension
from privspan.pca.outcome import Course, Learnt, Table, by_method, label, released, standardised
from privspan.planner import Plan, plan_pca, plan_standardised, plan_within
from privspan.privacy import Budget, Part, Release, UselessPlanWarning, share_mu
from privspan.privacy.call import Call
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import Child
from privspan.privacy.run import Run
from privspan.private import ALGORITHMS, PRIVATE_METHODS, methods_for
from privspan.rows.columns import PublicBounds, PublicNumbers, column_names, public_columns
from privspan.rows.shifting import less
from privspan.rows.table import Missing, check_missing
from privspan.rows.table import Table as Source
from privspan.stable import near
from privspan.stable.course import delta_share
from privspan.standard.course import STANDARD, Standard, chosen_course, standardised_pca
from privspan.standard.course import empty_share as standardised_empty_share
from privspan.subspace import Subspace
from privspan.sums.everyday import empty_share, everyday_pca, searches
from privspan.sums.gaps import Gaps, released_gaps
from privspan.sums.mean import empty_share as mean_empty_share
from privspan.sums.mean import mean_within
from privspan.sums.pca_result import Noisy
from privspan.sums.share import cut_to_share
from privspan.sums.variance import empty_share as variance_empty_share
from privspan.sums.variance import variance_within

Array = NDArray[np.float64]

PCA_METHODS = tuple(method for method in PRIVATE_METHODS if method != "exact")

_SCALES = 'True, False, "ranks" or "deviations"'
_MOST_DECLARED = 200  # columns whose public numbers are shown with a release


@dataclass(frozen=True)
class NamedTuning:
    """Of a private PCA by a named method: chosen by hand, in round numbers, and no script has fitted them.

    Shares are of mu² for methods that compose in mu, of epsilon and delta for the others.
    """

    by_pairs: tuple[tuple[str, float], ...] = (("subspace", 0.82), ("variances", 0.08), ("mean", 0.1))  # shares
    otherwise: tuple[tuple[str, float], ...] = (("subspace", 0.94), ("variances", 0.06))  # shares
    most_components: int = 10  # a vote among more would take more rows than most tables have

    def shares(self, centring: str) -> dict[str, float]:
        """Return the share of every step."""
        return dict(self.by_pairs if centring == "pair differences" else self.otherwise)


NAMED = NamedTuning()


@dataclass(frozen=True)
class PCASettings:
    """The public choices of one private PCA, named as in `private_pca`, and the steps that follow from them."""

    k: int | float | Literal["auto"]
    epsilon: float
    delta: float
    center: bool = True
    scale: bool | Standard = False
    robust: bool = False
    max_components: int | None = None
    bounds: PublicBounds | None = None
    units: PublicNumbers | None = None
    around: PublicNumbers | None = None
    missing: Missing = "fill"
    method: str = "auto"
    gamma: float | None = None

    def __post_init__(self) -> None:
        """Refuse values that no table could make sense of."""
        checks.budget(self.epsilon, self.delta)
        checks.one_of(PCA_METHODS, method=self.method)
        check_missing(self.missing)
        self._check_k()
        if not isinstance(self.robust, bool | np.bool_):
            raise ParameterTypeError("{robust} must be True or False.")
        if not isinstance(self.center, bool | np.bool_):
            raise ParameterTypeError("{center} must be True or False; a public centre goes into {around}.")
        if self.gamma is not None:
            checks.probability(gamma=self.gamma)
        if not isinstance(self.scale, bool | np.bool_ | str):
            raise ParameterTypeError("{scale} must be {known}; public units go into {units}.", known=_SCALES)
        if self._named_course not in (None, "ranks", "deviations"):
            raise checks.refusal(ParameterError, "scale", _SCALES, self._named_course)
        if self.around is not None and not self.center:
            raise ParameterError("{around} must be given only with {center:True}.")
        if self.units is not None and self.standardised:
            raise ParameterError("{units} must not be given with {scale:True}, which measures them.")
        if self.standardised and (self.method != "auto" or not self.center):
            raise ParameterError(
                '{scale:True} must be used with {method:"auto"} and {center:True}: correlations are computed '
                "about the mean, by a method of their own. Public {units} can be used with any method."
            )
        if self._named_course == "deviations" and self.robust:
            raise ParameterError('{scale} must be True or "ranks" with {robust:True}.')

    def _check_k(self) -> None:
        """Refuse a number of components that is none: a count, a share of the variance or "auto"."""
        known = 'an integer, at least 1, a share of the variance between 0 and 1, or "auto"'
        if isinstance(self.k, str) and self.k == "auto":
            return
        if self.share is None and not checks.is_integer(self.k):
            raise checks.refusal(ParameterTypeError, "k", known, self.k)
        if not (self.k >= 1 if self.share is None else 0.0 < self.share < 1.0):  # also for NaN
            raise checks.refusal(ParameterError, "k", known, self.k)

    @property
    def share(self) -> float | None:
        """The share of the variance that decides how many components are kept, if one does."""
        return float(self.k) if isinstance(self.k, float | np.floating) else None

    @property
    def _named_course(self) -> str | None:
        return self.scale if isinstance(self.scale, str) else None

    @property
    def standardised(self) -> bool:
        """Whether columns are to weigh the same, whatever their units."""
        return bool(self.scale)

    @property
    def everyday(self) -> bool:
        """Whether the everyday course is taken, rather than that of a named or robust method."""
        return self.method == "auto" and not self.robust and self.center and not self.standardised

    def learn(
        self, call: Call, X: object, names: Sequence[str] | None = None, declared: object = None
    ) -> tuple[Release, Plan]:
        """Do what `private_pca` promises; return the plan, which is public, beside the release.

        Names of the columns are those of a source that knows them, if none are given; their types are those of the
        table as it was `declared`, if that is not `X` itself.
        """
        table, budget = self._checked(call, X, names, X if declared is None else declared), call.budget
        if self.standardised:
            return self._standardised(call, table)
        considered, epsilon = self._vote(table, budget)
        k, most = considered[0], considered[-1]
        account = self._account(table, budget, epsilon)
        if self._plan_is_known:  # before anything is spent: a warning may be made an error
            _warn_if_useless(call, self._everyday_plan(table, k, account))
        gaussian = self.everyday or ALGORITHMS[self.method].in_mu  # all but the vote
        run = call.begin(account, gaussian=gaussian, vote=epsilon)
        gaps = self._gaps(table, run.on(Child.GAPS))
        units = self._units(table)
        rows = table.source if units is None else table.source.in_units(units)
        voting: tuple[Part, ...] = ()
        if self.k == "auto":
            k = choose_dimension(self._pairs(rows, run), most, epsilon=epsilon, run=run.on(Child.DIMENSION))
            voting = (Part("choice of the dimension", epsilon, 0.0),)
        by = self._by_looks if self.everyday else self._by_method
        learnt, plan = by(call, table, rows, units, k, run)
        result = learnt.result if gaps is None else learnt.result.of_present_cells(gaps)
        aside = (epsilon, account.set_aside) if gaussian else None
        cost = budget.cost(*voting, *learnt.parts, aside=aside, empty=account.empty)
        release = released(result, table, cost, run, method=learnt.method, units=units, abstained=learnt.abstained)
        return self._told(call, release, table, gaps, k), plan

    def _standardised(self, call: Call, table: Table) -> tuple[Release, Plan]:
        """Learn the components of the columns, all of which weigh the same."""
        n, d = table.source.shape
        course = self._standard_course(table)
        most = self._considered(table)[-1]
        plan = plan_standardised(n, d, most, call.budget, course)
        _warn_if_useless(call, plan)  # before anything is spent: a warning may be made an error
        gapped = int((~table.public.complete).sum()) if self._counts_gaps else 0
        empty = standardised_empty_share(table.source, call.budget.mu, course, gapped)
        run = call.begin(gaussian=True, empty=empty)
        gaps = released_gaps(table.source, ~table.public.complete, run) if self._counts_gaps else None
        learnt = standardised_pca(table.source, most, run, table.public, course=course, gaps=gaps)
        if self.k == "auto":
            learnt = learnt.leading(max(1, learnt.components.stands_out), run.streams.public)
        made = standardised(learnt, table, run)
        release = self._told(call, made, table, gaps, learnt.components.basis.shape[1])
        if self.share is not None and learnt.released is not None:  # what the components that were kept capture
            assert release.subspace is not None
            kept = learnt.leading(release.subspace.dimension, run.streams.public).components.captured
            release = replace(release, extras={**release.extras, **kept.named("captured_variance")})
        return release, plan

    def _standard_course(self, table: Table) -> Standard:
        """Return the course of standardised columns: the one asked for, or chosen from public numbers."""
        sparse = table.source.is_sparse
        n, d = table.source.shape
        if self._named_course == "deviations" and (sparse or d > STANDARD.widest_whole):
            what = (
                "a sparse table, which is never filled" if sparse else f"more than {STANDARD.widest_whole:,} columns"
            )
            raise ParameterError('{scale} must be True or "ranks" for {what}.', what=what)
        if self.k == "auto" and d > STANDARD.widest_whole:
            template = "{k} must be a number with {scale:True} and more than {widest_whole:,} columns."
            raise ParameterError(template, widest_whole=STANDARD.widest_whole)
        if self._named_course == "ranks" or self.robust:
            return "ranks"
        mu = Budget(self.epsilon, self.delta).mu
        return "deviations" if self._named_course == "deviations" else chosen_course(n, d, mu, sparse)

    def _told(self, call: Call, release: Release, table: Table, gaps: Gaps | None, k: int) -> Release:
        """Add what was asked for, and keep the components that hold a share if one was."""
        told = {**release.parameters, "robust": bool(self.robust), "scale": self.standardised}
        if declared := self._declared(table):
            told["declared"] = declared
        if not table.public.complete.all():
            filled = "not counted" if gaps is None else "counted"
            told["gaps"] = filled if self.missing == "fill" else "rows of zeros"
        chosen = {"n_components": k} if self.k == "auto" else {}
        release = replace(release, parameters=told, extras={**release.extras, **chosen})
        return release if self.share is None else self._cut(call, release, self.share)

    def _declared(self, table: Table) -> dict[str, dict[str, Any]]:
        """Return what was given as public about columns, by argument of `private_pca`; none where it is very much."""
        public, names = table.public, table.names or range(table.source.shape[1])
        given: dict[str, dict[str, Any]] = {"bounds": {}, "units": {}, "around": {}}
        for i, name in enumerate(names):
            if public.said and public.bounded[i] and not public.boolean[i]:
                given["bounds"][str(name)] = (float(public.low[i]), float(public.high[i]))
            if public.scaled[i]:
                given["units"][str(name)] = float(public.units[i])
            if np.isfinite(public.around[i]):
                given["around"][str(name)] = float(public.around[i])
        given["categories"] = dict(public.levels)
        return {what: by_name for what, by_name in given.items() if 0 < len(by_name) <= _MOST_DECLARED}

    def _cut(self, call: Call, release: Release, share: float) -> Release:
        """Keep the components that have the share, and warn where even all of them have not."""
        kept, enough = cut_to_share(release, share)
        if not enough:
            message = (
                f"The {kept.parameters['k']} components that were estimated do not hold {share:g} of the variance"
            )
            call.warn(f"{message}, or the table is too small to estimate it; see `max_components`.")
        return kept

    # ---- Refusals, from public facts alone -------------------------------------------------------------------------

    def check(self, call: Call, X: object) -> tuple[float, float] | None:
        """Refuse what `learn` would refuse, from types and shapes alone: no value is read and nothing is spent.

        Return what it will cost as a Gaussian release, mu and the delta that is set aside; None if it is not known to
        be one.
        """
        table, budget = self._checked(call, X, None, X), call.budget
        if self.standardised:
            return budget.mu, 0.0
        if not (self.everyday or ALGORITHMS[self.method].in_mu):
            return None
        vote = self._vote(table, budget)[1]
        return self._account(table, budget, vote).promise(vote)

    def _checked(self, call: Call, X: object, names: Sequence[str] | None, declared: object) -> Table:
        """Return the table as the steps take it, or refuse what cannot be done with it."""
        source = call.open(X, min_rows=2, accept_sparse=takes_sparse(self.method)).with_gaps(self.missing)
        names = names or column_names(source if column_names(X) is None else X)
        checks.distinct_names(names)
        given: Any = {"bounds": self.bounds, "units": self.units, "around": self.around}
        public = public_columns(declared, source.shape[1], names=names, **given)
        table = Table(source, public, tuple(names) if names else None)
        budget = Budget(self.epsilon, self.delta)
        considered = self._considered(table)
        if self.k != "auto":
            most = min((table.halves if self.center else source).shape)
            self._check_number(self.k if self.share is None else considered[-1], most)
        if self.k == "auto" and not self.standardised:  # which needs no vote
            check_choice(table.halves if self.center else source, considered[-1])
        if self.standardised:
            self._standard_course(table)
            return table
        if source.is_sparse and not self.everyday and self._centring(table) == "public centre":
            raise ParameterTypeError("{around} must not be given for a sparse table by a named or robust method.")
        self._check_blocks(table, budget)
        return table

    def _check_number(self, k: float, most: int) -> None:
        name = "k" if self.share is None else "max_components"
        checks.integer_at_least(1, **{name: k})
        if k > most:
            what = "pairs of rows" if self.center else "rows"
            smaller = f"{most}, the smaller of the number of columns and of {what}"
            raise ParameterError(
                "{name} must be at most {most}; got {got}.", name=Parameter(name), most=smaller, got=int(k)
            )
        if self.max_components is not None and self.share is None:
            raise ParameterError('{max_components} must be given only with {k:"auto"} or a share.')

    def _check_blocks(self, table: Table, budget: Budget) -> None:
        """Refuse what blocks would refuse, for every k that may be chosen: later, something would be spent."""
        if self.method != "approximate":
            return
        considered, epsilon = self._vote(table, budget)
        account = MuLedger(budget.less(epsilon))
        for k in considered[: min(table.halves.shape)]:
            course = self._course(table, k, account)
            by_pairs = course.centring == "pair differences"
            try:
                settings = BlockSettings(gamma=self.gamma)
                settings.check_table(
                    table.halves if by_pairs else table.source, k, course.accounts["subspace"].budget
                )
            except ValueError as refusal:
                if by_pairs:
                    refusal.add_note(Note("Centring makes one row of every two."))
                raise

    # ---- Units and dimension ---------------------------------------------------------------------------------------

    def _gaps(self, table: Table, run: Run) -> Gaps | None:
        """Count gaps where that is worth it and there can be any, by the course that can make use of the counts."""
        if not self._counts_gaps or not self.everyday:
            return None
        return released_gaps(table.source, ~table.public.complete, run)

    @property
    def _counts_gaps(self) -> bool:
        return self.missing == "fill"

    def _units(self, table: Table) -> Array | None:
        """Return the public units of the columns; None if they stay in their own."""
        public = table.public
        units = np.where(public.scaled, public.units, 1.0)
        if public.said:  # what is declared as booleans stays as it is unless the user says otherwise
            units = np.where(public.bounded & ~public.scaled, public.half_range, units)
        return None if (units == 1.0).all() else units

    def _considered(self, table: Table) -> range:
        """Return the dimensions among which k is chosen."""
        rows, most = table.halves if self.center else table.source, self.max_components
        if self.share is not None:
            most = min(NAMED.most_components, *rows.shape) if most is None else most
            checks.integer_at_least(1, max_components=most)
            return range(int(most), int(most) + 1)
        if self.k != "auto":
            checks.integer_at_least(1, k=self.k)
            return range(int(self.k), int(self.k) + 1)
        if most is None:
            most = min(NAMED.most_components, rows.shape[1] - 1, rows.shape[0] // 2 - 1)
            most = max(most, 1) if self.standardised else most
        checks.integer_at_least(1, max_components=most)
        return range(1, int(most) + 1)

    def _vote(self, table: Table, budget: Budget) -> tuple[range, float]:
        """Return the dimensions among which k is chosen privately, and the epsilon of choosing."""
        considered = self._considered(table)
        if self.k != "auto":
            return considered, 0.0
        rows, most = table.halves if self.center else table.source, considered[-1]
        blocks = rows.blocks(planner_blocks.rank_block_size(most))
        return considered, planner_blocks.rank_epsilon(blocks, most, budget.epsilon)

    def _pairs(self, rows: Source, run: Run) -> Source:
        return rows.pairs(run.on(Child.PAIRING).streams.public, less).settled() if self.center else rows

    # ---- The everyday course ---------------------------------------------------------------------------------------

    def _by_looks(
        self, call: Call, table: Table, rows: Source, units: Array | None, k: int, run: Run
    ) -> tuple[Learnt, Plan]:
        """Find the centre and look, with all that is left in the account."""
        plan = self._everyday_plan(table, k, run.account)
        if not self._plan_is_known:
            _warn_if_useless(call, plan)
        start, search = self._start(table, run.account)
        if start is not None and units is not None:
            start = start / units
        looking = run.on(Child.SUBSPACE)
        instead = near.NearCourse(rows, k, looking, run.on(Child.NEAR))
        result = everyday_pca(rows, k, looking, around=start, search=search, instead=instead)
        return Learnt(result, run.account.cost().parts), plan

    @property
    def _plan_is_known(self) -> bool:
        """Whether the plan of the everyday course depends on public numbers alone."""
        return self.everyday and self.k != "auto"

    def _everyday_plan(self, table: Table, k: int, account: MuLedger) -> Plan:
        n, d = table.source.shape
        return plan_pca(n, d, k, account.budget, self.gamma, self._start(table, account)[0] is not None)

    def _start(self, table: Table, account: MuLedger) -> tuple[Array | None, bool]:
        """Return a public centre, if it is of use, and whether to search from there.

        A centre that is given for every column is taken at the user's word.  The middle of bounds is often so far
        from the mean that differences of pairs do better; but a search may start there, where the data suffice.
        """
        public, given = table.public, np.isfinite(table.public.around)
        if given.all():
            return public.start, False
        enough = searches(table.source.shape[0], table.source.shape[1], account.mu)
        known = given | (public.bounded & public.said)
        return (public.start if enough and known.any() else None), True

    # ---- A subspace by a method ------------------------------------------------------------------------------------

    def _by_method(
        self, call: Call, table: Table, rows: Source, units: Array | None, k: int, run: Run
    ) -> tuple[Learnt, Plan]:
        """Learn the subspace of the centred rows, the variances along it, and the mean."""
        course = self._course(table, k, run.account)
        if self.method == "auto":  # before most is spent: a warning may be made an error
            _warn_if_useless(call, course.plan)
        centre = table.public.start
        if units is not None:
            centre = centre / units
        mean, steps, accounts = None, {}, course.accounts
        if course.centring == "public centre":
            rows, mean = rows.less(centre), Noisy(centre, math.inf)
        elif course.centring == "pair differences":
            measured = mean_within(run.on(Child.MEAN).within(accounts["mean"]), rows, None, None)
            steps["mean"], mean = measured.cost, Noisy(measured.mean, measured.noise)
            rows = self._pairs(rows, run)
        method, inner = course.method, accounts["subspace"]
        gamma = {"gamma": self.gamma} if method.gamma else {}
        subspace = method.prepare(call, rows, k, inner.budget, **gamma)(run.on(Child.SUBSPACE).within(inner))
        # After an abstention the variances are those along the first axes: nothing depends on having abstained.
        along = subspace.subspace or Subspace(np.eye(rows.shape[1], k))
        variances = variance_within(run.on(Child.VARIANCES).within(accounts["variances"]), rows, along, None)
        steps = {"subspace": subspace.cost, "variances": variances.cost, **steps}
        if method.in_mu:
            parts = tuple(part for cost in steps.values() for part in cost.parts)
        else:  # where they add up, each step counts as a whole
            parts = tuple(Part(step, cost.epsilon, cost.delta) for step, cost in steps.items())
        result = by_method(subspace, variances, mean, course.centring)
        return Learnt(result, parts, label(subspace.method), subspace.abstained), course.plan

    def _course(self, table: Table, k: int, account: MuLedger) -> Course:
        """Choose from public numbers how to go on once k is known, and share mu, or the budget, out."""
        centring, rest = self._centring(table), account.budget
        weights = NAMED.shares(centring)
        mus = share_mu(account.mu, *weights.values())
        n, d = (table.halves if centring == "pair differences" else table.source).shape
        methods = methods_for(table.source) if self.method == "auto" else (self.method,)
        plan = plan_within(n, d, k, Budget.for_mu(mus[0], rest.delta), self.gamma, methods, joint=False)
        method = ALGORITHMS[self.method]
        if not method.in_mu:
            accounts = [MuLedger(budget) for budget in rest.split([*weights.values()])]
        else:  # such steps compose in mu; what was set aside is for the subspace
            accounts = [MuLedger(rest, mu, f"{step}: ") for step, mu in zip(weights, mus, strict=True)]
            accounts[0] = account.sharing(mus[0], "subspace: ")
            for kept, step in zip(accounts, weights, strict=True):
                kept.empty = self._empty_of(step, table, account)
        return Course(centring, method, plan, dict(zip(weights, accounts, strict=True)))

    def _centring(self, table: Table) -> str:
        if not self.center:
            return "none"
        return "public centre" if np.isfinite(table.public.around).all() else "pair differences"

    def _account(self, table: Table, budget: Budget, vote: float) -> MuLedger:
        """Return the account of all steps but a vote, with what a test of stable leverage may need set aside.

        That is decided by public numbers, for up to as many components as may be chosen.
        """
        rest, most, share = budget.less(vote) if vote else budget, self._considered(table)[-1], 0.0
        if self.everyday:
            share = near.test_share(table.source, most, rest)
        elif self.method == "auto":
            centring = self._centring(table)
            rows = table.halves if centring == "pair differences" else table.source
            share = delta_share(rows, most, rest, NAMED.shares(centring)["subspace"], self.gamma)
        account = MuLedger(rest, test_share=share)
        account.empty = self._empty_share(table, account)
        return account

    def _empty_share(self, table: Table, account: MuLedger) -> float:
        """Return the share of mu² that an empty place can tell, from public numbers: docs/explanation/zero-out.md."""
        if not self.everyday:
            weights = NAMED.shares(self._centring(table))
            shares = (part * self._empty_of(step, table, account) for step, part in weights.items())
            return min(1.0, sum(shares) * (1.0 + 1e-9))
        if near.can_be_near(table.source, self._considered(table)[0], account.mu):
            return 1.0  # stable leverage may come, whose steps are counted without a gain
        return empty_share(table.source, account.mu, int((~table.public.complete).sum()) if self._counts_gaps else 0)

    def _empty_of(self, step: str, table: Table, account: MuLedger) -> float:
        """Return the same for one step of a named or robust method."""
        if step == "mean":
            return mean_empty_share(None)
        if step == "variances":
            return variance_empty_share(None)
        centring = self._centring(table)
        rows = table.halves if centring == "pair differences" else table.source
        # Where nothing is set aside, one algorithm is the adaptive one.
        method = "adaptive" if self.method == "auto" and not account.set_aside else self.method
        mu = share_mu(account.mu, *NAMED.shares(centring).values())[0]
        return ALGORITHMS[method].empty(rows.shape[0], mu, {})


def _warn_if_useless(call: Call, plan: Plan) -> None:
    if not plan.useful:
        call.warn(plan.reason, UselessPlanWarning)


def takes_sparse(method: str) -> bool:
    """Tell whether a private PCA by this method, or by the one that "auto" chooses, takes sparse tables."""
    return method == "auto" or (method in PCA_METHODS and ALGORITHMS[method].sparse)
