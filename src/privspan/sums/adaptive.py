"""Everyday private PCA: find the subspace coarsely, then measure only what is off it.

The first look is Analyze Gauss with a small share of the budget.  Where it finds the subspace, localised rounds
measure the residuals, which are short, with noise in proportion to their length; where it finds some directions
only, preconditioned rounds look for the rest; where localising would not help, the rest of the budget strengthens
the first look.  All steps are Gaussian, every decision rests on released values, and the shares of mu² never sum
above one.  Proofs: docs/explanation/everyday-pca.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import ParameterTypeError
from privspan.privacy import Budget, Release
from privspan.privacy.call import Call
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Learn, Run
from privspan.rows.about import WIDEST_DENSE
from privspan.rows.table import Table
from privspan.subspace import Subspace
from privspan.sums import plan as planner
from privspan.sums.adaptive_tuning import ADAPTIVE, AdaptiveTuning
from privspan.sums.estimate import Estimate, first_estimate, residual_size, widened
from privspan.sums.first_look import FirstLook, count_found, first_look
from privspan.sums.grid import MOMENTS, most_share
from privspan.sums.lazy_gauss import LazyGauss, UnitGram, within_memory
from privspan.sums.loadings import separation_errors, spiked_eigenvalues
from privspan.sums.off_constant import beside
from privspan.sums.preconditioned import ShrunkLook, leading_directions, preconditioned_look
from privspan.sums.rounds import Rounds

Array = NDArray[np.float64]

_OPTIONS: checks.Checks = {"first_share": checks.probability, "most_rounds": partial(checks.integer_at_least, 1)}


def adaptive_subspace(
    X: object,
    k: int,
    *,
    epsilon: float,
    delta: float,
    robust: bool = True,
    options: Mapping[str, object] | None = None,
    rng: RandomLike = None,
    **settings: object,
) -> Release:
    """Learn the leading k-dimensional subspace of the rows of X.

    Rows are scaled to unit length, so no bound on them is needed and the answer does not depend on their lengths.
    The localised rounds weight rows down that lie far off, which makes the target a robust subspace: for elliptical
    data it is that of PCA, in general it is not.  ``robust=False`` spends the whole budget on Analyze Gauss.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row, at least k rows.  An entry that is not finite counts as 0.
    k : int
        Dimension.
    epsilon, delta : float
        Privacy budget.
    robust : bool, default=True
        Whether rows may be weighted.
    options : mapping, optional
        Expert settings by name, each also taken as a keyword argument: public, never chosen by looking at the data.
        ``first_share`` (float): share of mu² for the first look.  ``most_rounds`` (int, 5 by default): most localised
        rounds.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.

    Returns
    -------
    Release
        Never abstains.  ``parameters`` tells the shares, the number of directions told from noise and from directions
        that are left out (``stands_out``, the others are guesses) and the error to be expected from the private noise
        (``expected_error``; beside guesses also ``expected_error_of_found``).

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d and all parameters are
    public.  Assumed: float64 arithmetic, and that the products of a matrix library compute every output row from its
    own input row in the same way whatever the other rows hold.  Proof: docs/explanation/everyday-pca.md.

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(5_000, 20, 2, gamma_w=0.1, rng=0)
    >>> release = adaptive_subspace(X, 2, epsilon=1.0, delta=1e-6, rng=1)
    >>> release.subspace.distance(truth) < 0.02
    True
    """
    with Call("adaptive_subspace", epsilon, delta, rng, k=k) as call:
        learn = prepare_adaptive(call, X, k, call.budget, robust=robust, options=options, **settings)
        empty = empty_share(call.rows, call.budget.mu, {"options": options, **settings})
        return call.finish(learn(call.begin(gaussian=True, empty=empty)))


def empty_share(n: int, mu: float, options: Mapping[str, Any]) -> float:
    """Return the share of mu² that an empty place can tell: docs/explanation/zero-out.md.

    Typical lengths, asked for so often at most, are like counts; all else are second moments, and sums of residuals.
    """
    given = {**(options.get("options") or {}), **options}
    questions = ADAPTIVE.most_looks + int(given.get("most_rounds") or ADAPTIVE.most_rounds) + 2
    return most_share(questions * planner.probe_share(n, mu), MOMENTS)


def prepare_adaptive(
    call: Call,
    X: object,
    k: int,
    budget: Budget,
    *,
    robust: bool = True,
    options: Mapping[str, object] | None = None,
    **settings: object,
) -> Learn:
    """Refuse what `adaptive_subspace` refuses, from public facts alone, and return what does the rest with a run."""
    if not isinstance(robust, bool):
        raise ParameterTypeError("{robust} must be True or False.")
    expert = checks.options(_OPTIONS, options, settings)
    source = call.open(X)
    checks.dimension(k=k, d=int(source.shape[1]), n=int(source.shape[0]))
    return partial(adaptive_within, source=source, k=k, robust=robust, expert=expert)


def adaptive_within(
    run: Run,
    source: Table,
    k: int,
    *,
    robust: bool = True,
    expert: Mapping[str, Any] | None = None,
    tuning: AdaptiveTuning = ADAPTIVE,
    constant: bool = False,
) -> Release:
    """Do what `adaptive_subspace` does for the mu of a run: docs/explanation/everyday-pca.md, lemma 2."""
    n, d = int(source.shape[0]), int(source.shape[1])
    if k == d:
        outcome = _Outcome(np.eye(d), d, 0.0, "whole space")
    else:
        given = expert or {}
        most_rounds = int(given.get("most_rounds") or tuning.most_rounds)
        course = _Course(source, int(k), run, most_rounds, tuning, constant=constant)
        outcome = course.adaptively(given.get("first_share")) if robust else course.plainly()
    parameters = {
        "n": n,
        "d": d,
        "k": int(k),
        "robust": robust,
        "course": outcome.course,
        "stands_out": outcome.stands_out,
        "expected_error": outcome.error,
        "shares": run.account.shares,
    }
    if outcome.error_of_found is not None:
        parameters["expected_error_of_found"] = outcome.error_of_found
    subspace = Subspace.from_spanning(outcome.basis)
    return Release(subspace, run.account.cost(), "adaptive", parameters, run.private)


@dataclass(frozen=True)
class _Outcome:
    """What a run ends with: a basis (d, k), how many directions are sure, the expected error, and how it went."""

    basis: Array
    stands_out: int
    error: float
    course: str
    error_of_found: float | None = None  # the same for those alone


def _block_size(k: int, d: int, tuning: AdaptiveTuning) -> int:
    """Return how many directions a pass asks for: of many columns a multiple of what is multiplied together."""
    block = k + tuning.oversampling
    return block if d <= WIDEST_DENSE else (block + tuning.together // 2 - 1) // tuning.together * tuning.together


class _Course:
    """One run of the algorithm: the data, what is left of the budget, and the steps in their order."""

    def __init__(
        self,
        source: Table,
        k: int,
        run: Run,
        most_rounds: int,
        tuning: AdaptiveTuning = ADAPTIVE,
        *,
        constant: bool = False,
    ) -> None:
        self._k, self._run, self._constant, self._tuning = k, run, constant, tuning
        self._rows = rows = source.rows()
        self._looked_at = source.looked_at(rows)
        self._wanted = k - 1 if constant else k  # directions that are looked for
        self._n, self._d = rows.shape
        self._block = min(_block_size(k, self._d, tuning), self._d)
        self._rounds = Rounds(rows, self._looked_at, run, most_rounds, tuning, constant=constant)

    # ---- Analyze Gauss: alone, first, or to finish ----------------------------------------------------------

    def plainly(self) -> _Outcome:
        """Spend everything on Analyze Gauss."""
        lazy = self._lazy("Analyze Gauss", self._run.account.left)
        look = self._pairs(lazy, self._tuning.first_passes + self._tuning.finish_passes)
        return self._plain_outcome(look)

    def adaptively(self, first_share: float | None) -> _Outcome:
        """Follow the order of the design: first look, weak directions, localised rounds, or a plain finish."""
        if first_share is None:
            left = self._run.account.left  # 1, unless other steps came before
            mu = self._run.account.mu * math.sqrt(left)
            first_share = left * planner.first_share(self._n, self._d, self._wanted, mu)
        look = self._pairs(self._lazy("first look", first_share), self._tuning.first_passes)
        off = residual_size(look.explained, tuning=self._tuning)
        if look.stands_out == 0 or look.no_gap or (look.stands_out < self._wanted and off * off > 0.3):
            return self._finish(look)
        found = slice(0, look.stands_out)
        estimate = first_estimate(look.vectors[:, found], look.eigenvalues[found], look.lazy.noise, self._n)
        if look.mean is not None:
            estimate = beside(estimate, look.mean)
        guesses = look.vectors[:, look.stands_out :]
        if look.stands_out < self._wanted:
            estimate, guesses = self._weak_directions(estimate, guesses, off)
            return self._localised(estimate, guesses, None)
        return self._localised(estimate, guesses, look)

    def _lazy(self, name: str, share: float) -> LazyGauss:
        passes = 2 * (self._tuning.first_passes + self._tuning.finish_passes)
        columns = (self._tuning.first_passes + self._tuning.finish_passes + 1) * self._block
        mu = self._run.account.spend(name, share, MOMENTS)
        most = within_memory(max(columns, 257), self._d)
        return LazyGauss(UnitGram(self._looked_at), mu, self._run, most_columns=most, most_passes=passes)

    def _pairs(self, lazy: LazyGauss, passes: int) -> FirstLook:
        """Find leading pairs and decide which directions stand out of the noise."""
        options: dict[str, Any] = {"constant": self._constant, "tuning": self._tuning}
        return first_look(lazy, self._n, self._wanted, self._block, passes, self._run.streams.public, **options)

    def _finish(self, look: FirstLook) -> _Outcome:
        """Give the rest of the budget to the matrix of the first look."""
        look.lazy.strengthen(self._run.account.spend("finish", self._run.account.left, MOMENTS))
        return self._plain_outcome(self._pairs(look.lazy, self._tuning.finish_passes))

    def _plain_outcome(self, look: FirstLook) -> _Outcome:
        """Report what was found: a direction that stands out of the noise must also stand out of the others."""
        errors = separation_errors(look.values, look.lazy.noise, self._n, self._d)  # (k,)
        spread = 1.0 + math.sqrt(self._k / self._d)  # of the largest angle over that of one direction
        found = count_found(errors, look.eigenvalues, self._tuning)
        basis = look.whole(look.vectors)
        return _Outcome(basis, found, min(1.0, spread * float(errors[-1])), "Analyze Gauss")

    # ---- Weak directions --------------------------------------------------------------------------------------

    def _weak_directions(self, estimate: Estimate, guesses: Array, off: float) -> tuple[Estimate, Array]:
        """Look for the missing directions, up to three times, each time with the known ones shrunk."""
        looks: list[ShrunkLook] = []
        while len(estimate.eigenvalues) < self._k and len(looks) < self._tuning.most_looks:
            if self._run.account.left <= 5.0 * self._rounds.probe:
                break
            known = len(estimate.eigenvalues)
            look, estimate = self._look_again(estimate, off, len(looks))
            looks.append(look)
            missing = self._k - known
            public = self._run.streams.public
            others = public.standard_normal((self._d, max(missing + 6 - guesses.shape[1], 2)))
            start, passes = np.hstack([guesses, others]), self._tuning.first_passes
            directed = missing, start, passes, public, self._tuning.small
            values, directions, noise = leading_directions(looks, estimate.basis, *directed)
            eigenvalues = spiked_eigenvalues(values, noise, self._d) / self._n  # (missing + 1,)
            late = len(looks) == self._tuning.most_looks
            bar = self._tuning.found_late if late else self._tuning.found
            seen, new = self._told_apart(values, eigenvalues, noise, off, bar)
            if new:
                estimate = widened(estimate, directions[:, :new], eigenvalues[:new], noise, self._n)
                off = residual_size(eigenvalues[:new], off * off, self._tuning)
            guesses = directions[:, new:]
            if seen > new:  # no noise hides them: they are no more than others, and another look would show the same
                break
        return estimate, guesses

    def _told_apart(self, values: Array, eigenvalues: Array, noise: float, off: float, bar: float) -> tuple[int, int]:
        """Count the leading directions that stand out of the noise, and of these the ones that do of others."""
        errors = noise * math.sqrt(self._d) / (eigenvalues[:-1] * self._n)
        among = separation_errors(values, noise, self._n * off * off, self._d)
        alone = eigenvalues[:-1] * self._tuning.apart > eigenvalues[-1]
        return int((errors < bar).sum()), int(((errors < bar) & (among < bar) & alone).sum())

    def _look_again(self, estimate: Estimate, off: float, earlier: int) -> tuple[ShrunkLook, Estimate]:
        """Run one preconditioned round with its share: .3, then .5, then all that is left."""
        left = self._run.account.left
        share = (max(0.3 * left, 0.15), 0.5 * left, left)[earlier]
        share = min(share, left - self._rounds.probe)
        mu_probe = self._run.account.spend("typical length", self._rounds.probe)
        mu_gram = self._run.account.spend("preconditioned look", min(share, self._run.account.left), MOMENTS)
        columns = within_memory((self._tuning.most_looks * (self._tuning.first_passes + 1)) * self._block, self._d)
        options: dict[str, Any] = {"columns": columns, "tuning": self._tuning}
        return preconditioned_look(self._rows, estimate, off, mu_probe, mu_gram, self._run, **options)

    # ---- Localised rounds -------------------------------------------------------------------------------------

    def _localised(self, estimate: Estimate, guesses: Array, look: FirstLook | None) -> _Outcome:
        """Run localised rounds until the budget is spent; `look` is what a plain finish would build on."""
        if look is None:
            estimate = self._rounds.until_spent(estimate)
        else:
            first = self._rounds.first(estimate)
            if first is None:
                return self._finish(look)
            estimate = self._rounds.until_spent(first, 1)
        found = len(estimate.eigenvalues)
        basis, error = estimate.basis, min(1.0, estimate.error_but_last if self._constant else estimate.error)
        found_directions = found - int(self._constant)
        if found == self._k:
            return _Outcome(basis, found_directions, error, "localised")
        rest = guesses - basis @ (basis.T @ guesses)
        basis = np.hstack([basis, np.linalg.qr(rest)[0][:, : self._k - found]])
        return _Outcome(basis, found_directions, 1.0, "localised", error)
