"""What one fit is to do: the options in one value, checked against the table's shape, then run.

Everything that can be refused is refused by `check`, from public facts, before the ledger is charged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privspan._lib import checks
from privspan.blocks.plan import rank_block_size
from privspan.cli import _console
from privspan.cli._groups import Learning
from privspan.cli._options import budget_float
from privspan.cli.exits import Complaint
from privspan.exact.exact import exact_subspace
from privspan.exact.plan import METHODS as EXACT_METHODS
from privspan.exact.plan import plan_exact
from privspan.pca import EVERYDAY, PCA_METHODS, PCASettings, check_pca, learn_pca, takes_sparse
from privspan.planner import Plan
from privspan.planner import plan as predict
from privspan.privacy import Release, UselessPlanWarning, WeakPrivacyWarning
from privspan.privacy.call import Call, weakness
from privspan.privacy.persons import by_person, for_persons
from privspan.private import ALGORITHMS
from privspan.rows import RowSource
from privspan.rows.table import Table

_MOST_DECIMALS = 300  # that `exact_subspace` takes


class Task(Learning):
    """The options of ``privspan fit`` that say what is learnt and at which cost."""

    @property
    def counted(self) -> bool:
        """Whether the dimension is a number, rather than found out privately."""
        return isinstance(self.k, int)

    def check_options(self) -> None:
        """Refuse options that do not go together."""
        known = EXACT_METHODS if self.exact else PCA_METHODS
        if self.method not in known:
            wants_exact = not self.exact and self.method in ("exact", *EXACT_METHODS)
            hint = " (for exact relations: --exact)" if wants_exact else ""
            raise Complaint(f"--method takes one of {', '.join(known)}{hint}; got {self.method!r}.")
        if self.exact and not self.counted:
            raise Complaint("--exact needs a number: --k 3; 'auto' and shares are for private PCA only.")
        if self.max_k is not None and self.counted:
            raise Complaint("--max-k goes with --k auto; leave it out.")
        not_exact: dict[str, object] = {
            "--gamma": self.gamma,
            "--no-center": not self.center or None,
            "--scale": self.scale or None,
        }
        not_exact |= {"--bounds": self.bounds, "--units": self.units, "--around": self.around}
        not_exact |= {"--robust": self.robust or None, "--scale-by": self.scale_by}
        if self.missing not in ("fill", "zero-row"):
            raise Complaint(f"--missing takes 'fill' or 'zero-row'; got {self.missing!r}.")
        only_exact = {"--decimals": self.decimals, "--affine": self.affine or None}
        for flag, value in (not_exact if self.exact else only_exact).items():
            if value is not None:
                advice = "leave it out" if self.exact else "add --exact, or leave it out"
                raise Complaint(f"{flag} {'does not go' if self.exact else 'goes'} with --exact; {advice}.")
        if self.scale_by not in (None, "ranks", "deviations"):
            raise Complaint(f"--scale-by takes 'ranks' or 'deviations'; got {self.scale_by!r}.")
        if self.scale_by is not None and not self.scale:
            raise Complaint("--scale-by goes with --scale; add it.")
        if self.scale and self.units is not None:
            raise Complaint("--scale measures the scales of the columns, and --units declares them; leave one out.")
        if self.around is not None and not self.center:
            raise Complaint("--around gives a centre, and --no-center turns centring off; leave one out.")
        checks.spendable(**self._budget())
        if self.decimals is not None and self.decimals > _MOST_DECIMALS:
            raise Complaint(f"--decimals takes at most {_MOST_DECIMALS}; got {self.decimals}.")

    def people(self, source: RowSource) -> Table:
        """Return the table as it is learnt from: of persons, where the file has person ids."""
        if source.person is None:
            return source
        return by_person(source, source.person, 1 if self.exact else self.max_rows, self.seed)

    def check(self, source: Table) -> tuple[float, float] | None:
        """Refuse what the shape of the table rules out, and warn about a budget that would be wasted.

        Return what the fit costs as a Gaussian release, if it is one: see `check_pca`.
        """
        n, d = source.shape
        weak = weakness(n, **self._budget())
        if weak is not None:
            _console.warn(weak)
        usable = n // 2 if self.center and not self.exact else n
        if self.counted and self.k > min(usable, d):
            what = "rows" if source.drawable else "persons"
            limit = f"the number of columns, {d:,}" if d <= usable else f"{usable:,}, as there are {n:,} {what}"
            raise Complaint(f"--k takes at most {limit}; got {self.k}.")
        if source.is_sparse and (self.exact or not takes_sparse(self.method)):
            known = ", ".join(filter(takes_sparse, PCA_METHODS))
            raise Complaint(f"a sparse table takes --method {known}; no --exact.")
        if self.exact:
            plan_exact(n, int(self.k) + self.affine, **self._budget(), method=self.method)  # type: ignore[arg-type]
            return None
        if self.k == "auto" and not self.scale:
            self._check_auto(usable, d)
        with _console.warnings_in_words((UselessPlanWarning, WeakPrivacyWarning)), self._call() as call:
            in_mu = check_pca(self._settings(source), call, source)
        if self.counted:
            _warn_if_useless(self._planned(n, d, int(self.k)))
        return in_mu

    def _planned(self, n: int, d: int, k: int) -> Plan:
        """Return what is predicted for the course that this fit takes."""
        numbers: dict[str, Any] = {**self._budget(), "gamma": self.gamma, "center": self.center}
        found = predict(n, d, k, **numbers, scale=self.center and self.scale)
        if self.method == "auto" and not self.robust:
            return found
        return next((one for one in found.alternatives if one.method == self.method), found)

    def _check_auto(self, usable: int, d: int) -> None:
        most = min(10, d - 1, usable // 2 - 1) if self.max_k is None else self.max_k
        if most < 1 or most >= d:
            raise Complaint(f"--k auto finds at most {d - 1} dimension(s) in {d} columns; give a number: --k 1.")
        if usable < rank_block_size(most):
            raise Complaint(f"--k auto needs more rows for up to {most} dimensions; add --max-k 2, or --k 1.")

    def rows_to_see(self, source: Table) -> float | None:
        """Return about how many rows will be looked at, or None if that tells nothing about the time."""
        if self.exact:
            return None
        # A look at some rows takes its own time, which nobody knows beforehand; then "auto" passes like "adaptive".
        named = ALGORITHMS["adaptive" if self.method == "auto" else self.method]
        settings = self._settings(source)
        passes = (EVERYDAY if settings.everyday or settings.standardised else named).passes
        width = source.width
        return None if passes is None else passes * source.shape[0] * width

    def run(self, source: Table) -> tuple[Release, Plan | None]:
        """Run the private step; from here on its budget is spent."""
        # What is weak or useless the command tells by itself, at a better moment.
        with _console.warnings_in_words((UselessPlanWarning, WeakPrivacyWarning)):
            release, plan = self._exact(source) if self.exact else self._pca(source)
        # What was run costs no more than the decimals that were typed; those are what people want to read.
        cost = replace(release.cost, epsilon=float(self.epsilon), delta=float(self.delta))
        release = replace(release, cost=cost)
        return (release if source.drawable else for_persons(release, source)), plan

    def _pca(self, source: Table) -> tuple[Release, Plan]:
        with self._call() as call:
            return learn_pca(self._settings(source), call, source)

    def _call(self) -> Call:
        """Open the door; the command has a charge of its own."""
        return Call("private_pca", budget_float(self.epsilon), budget_float(self.delta), self.seed)

    def _budget(self) -> dict[str, float]:
        return {"epsilon": budget_float(self.epsilon), "delta": budget_float(self.delta)}

    def _exact(self, source: Table) -> tuple[Release, None]:
        options: dict[str, Any] = {"method": self.method, "affine": self.affine, "decimals": self.decimals}
        names = None if source.names is None else list(source.names)
        release = exact_subspace(source, int(self.k), **self._budget(), **options, names=names, rng=self.seed)  # type: ignore[arg-type]
        return release, None

    def _settings(self, source: Table) -> PCASettings:
        """Return the choices as the library takes them, public numbers by the positions of columns."""
        options: dict[str, Any] = {"center": self.center, "scale": self.scale_by or self.scale, "robust": self.robust}
        declared = {"bounds": self.bounds, "units": self.units, "around": self.around}
        options |= {name: given.placed(source) for name, given in declared.items() if given is not None}
        options |= {"method": self.method, "gamma": self.gamma, "max_components": self.max_k}
        options |= {"missing": self.missing}
        return PCASettings(self.k, **options)


def _warn_if_useless(plan: Plan) -> None:
    if plan.useful:
        return
    if plan.captured is not None:
        _console.warn(plan.reason)
        return
    need = plan.needed_n(0.25)
    would = "no number of rows would do" if need is None else f"about {need:,} rows would be needed"
    error = f"error {plan.error:.2f}, for ideal data"
    _console.warn(f"the result is predicted to be useless ({error}); {would} for an error of 0.25.")
