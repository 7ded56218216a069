"""Analyze Gauss (Dwork, Talwar, Thakurta, Zhang, STOC 2014, algorithm 1) at its best calibration.

The second moment of the rows plus a symmetric Gaussian matrix, and its leading eigenvectors.  Best means: rows of
unit length, so that replacement moves the sum by sqrt(2) in Frobenius norm; noise of standard deviation 1/mu off the
diagonal and sqrt(2)/mu on it, which is what an isotropic Gaussian on symmetric matrices looks like; and mu taken
exactly from (epsilon, delta).  The SuLQ framework (Blum, Dwork, McSherry, Nissim, 2005) is this mechanism with an
older calibration.  Proof: docs/explanation/everyday-pca.md, lemmas 4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from privspan._lib import checks
from privspan.privacy import Budget, Release
from privspan.privacy.call import Call
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Learn, Run
from privspan.rows.table import Table
from privspan.subspace import Subspace
from privspan.sums.grid import MOMENTS, most_share
from privspan.sums.krylov import leading_pairs
from privspan.sums.lazy_gauss import LazyGauss, UnitGram
from privspan.sums.lifts import person_lift
from privspan.sums.loadings import separation_errors


@dataclass(frozen=True)
class GaussTuning:
    """Of how the noisy matrix is looked at; chosen by hand: the law of the noise is the same for any."""

    widest: int = 1024  # columns up to which the matrix is formed, as the paper says; beyond, it is only looked at
    passes: int = 24  # over the rows, at most: residuals have long ended the search by then
    oversampling: int = 7  # directions of a pass beyond k


GAUSS = GaussTuning()


def analyze_gauss(X: object, k: int, *, epsilon: float, delta: float, rng: RandomLike = None) -> Release:
    """Release the leading k-dimensional subspace of a noisy second moment.

    Up to d = 1024 the whole (d, d) matrix is formed.  Beyond, the same random matrix is looked at on a Krylov space
    only (`privspan.sums.lazy_gauss`), which has the same law and needs O(d k) memory.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row; rows are scaled to unit length, entries that are not finite count as 0.
    k : int
        Dimension.
    epsilon, delta : float
        Privacy budget.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.

    Returns
    -------
    Release
        Never abstains.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k are public.
    Proof: docs/explanation/everyday-pca.md, lemmas 1 to 5.

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(5_000, 20, 2, gamma_w=0.1, rng=0)
    >>> release = analyze_gauss(X, 2, epsilon=1.0, delta=1e-6, rng=1)
    >>> release.subspace.distance(truth) < 0.05
    True
    """
    with Call("analyze_gauss", epsilon, delta, rng) as call:
        learn = prepare_analyze_gauss(call, X, k, call.budget)
        return call.finish(learn(call.begin(gaussian=True, empty=most_share(0.0, MOMENTS))))


def prepare_analyze_gauss(call: Call, X: object, k: int, budget: Budget) -> Learn:
    """Refuse what `analyze_gauss` refuses, from public facts alone, and return what does the rest with a run."""
    source = call.open(X)
    checks.dimension(k=k, d=int(source.shape[1]), n=int(source.shape[0]))
    return partial(analyze_gauss_within, source=source, k=k)


def analyze_gauss_within(run: Run, source: Table, k: int, tuning: GaussTuning = GAUSS) -> Release:
    """Do what `analyze_gauss` does for the mu of a run: docs/explanation/everyday-pca.md, lemmas 1 to 5."""
    n, d = int(source.shape[0]), int(source.shape[1])
    mu = run.account.spend("noisy second moment", 1.0, MOMENTS)
    block = min(int(k) + tuning.oversampling, d)
    whole = d <= tuning.widest
    columns = d if whole else (tuning.passes + 1) * block
    rows = source.rows()
    gram = UnitGram(rows, person_lift(rows, 0.0))
    lazy = LazyGauss(gram, mu, run, most_columns=columns, most_passes=tuning.passes + 1)
    if whole:
        lazy.reveal_all()
    values, vectors = leading_pairs(lazy, int(k), block, tuning.passes, run.streams.public)
    parameters = {"n": n, "d": d, "k": int(k), "noise": lazy.noise, "whole_matrix": whole}
    if k < d:
        error = float(separation_errors(values, lazy.noise, float(n), d).max())
        parameters["expected_error"] = min(1.0, error)
    return Release(Subspace.from_spanning(vectors), run.account.cost(), "analyze-gauss", parameters, run.private)
