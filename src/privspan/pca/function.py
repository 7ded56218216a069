"""`private_pca`: open the table, refuse what can be refused, and take the course that is meant.

Also what the package knows of the ways it may take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from privspan.pca.everyday import learn_everyday, promise_everyday
from privspan.pca.named import learn_named, promise_named
from privspan.pca.outcome import LABEL, STANDARDISED, label
from privspan.pca.settings import PCA_METHODS, PCASettings, opened
from privspan.pca.standardised import learn_standardised, promise_standardised
from privspan.planner import Plan
from privspan.privacy import Release
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.private import ALGORITHMS, Method, PrivateMethod
from privspan.rows.categories import Categories
from privspan.rows.columns import PublicBounds, PublicNumbers
from privspan.rows.table import Missing
from privspan.standard.course import Standard


def private_pca(
    X: object,
    k: int | float | Literal["auto"],
    *,
    epsilon: float,
    delta: float,
    center: bool = True,
    scale: bool | Standard = False,
    robust: bool = False,
    max_components: int | None = None,
    bounds: PublicBounds | None = None,
    units: PublicNumbers | None = None,
    around: PublicNumbers | None = None,
    categories: Categories | None = None,
    person: object = None,
    max_rows: int = MOST_ROWS,
    missing: Missing = "fill",
    method: PrivateMethod = "auto",
    gamma: float | None = None,
    rng: RandomLike = None,
    ledger: LedgerLike = None,
) -> Release:
    """Learn the principal components of a table, their variances and the mean, under differential privacy.

    For any table of numbers with one row per person; no bounds on the values are needed.  With more rows, or a larger
    epsilon, the result approaches that of ordinary PCA.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, data frame, RowSource, or Dask array or dataframe
        One person per row, at least two.  Sparse tables are never densified; "stable" and "approximate" do not take
        them.
    k : int, float or "auto"
        Number of components.  A share of the variance, such as .9, keeps as many of `max_components` components as it
        needs: this is chosen from released numbers and costs nothing more.  "auto" chooses the number privately and
        spends a part of epsilon on it; with ``scale=True`` it is the number of components that stand out of the
        noise, which costs nothing.
    epsilon, delta : float
        The guarantee for everything that is released, together.
    center : bool, default=True
        Whether to subtract a private mean.
    scale : bool, "ranks" or "deviations", default=False
        True standardises the columns, so that all have the same weight whatever their units: PCA of correlations.
        "ranks" compares pairs of rows (rank correlations, from a few dozen rows on, for any skewness or outliers);
        "deviations" divides columns by private standard deviations, extreme cells cut off and long rows clipped
        (correlations of winsorised columns), and becomes PCA of the standardised table as data grow.  True takes the
        latter where there are data enough, n mu / sqrt(d) >= 700.
    robust : bool, default=False
        Whether to give every row the same weight, however long, and less to rows far from the subspace.  This finds
        the subspace that most people lie near, instead of the one of the largest variance.
    max_components : int, optional
        Largest number of components considered with ``k="auto"`` or a share; by default 10, or less where the table
        has fewer columns.
    bounds : mapping, (2,) or (2, d) array, optional
        Public bounds of columns, as in ``{"age": (0, 120)}``: never read off the data.  A column without another
        scale is divided by half of its range, and the search for the centre starts at the midpoint.  With
        ``scale=True`` means and scales are searched within the bounds, which replace them where there are too few
        rows to measure these.
    units : mapping or (d,) array, optional
        Public units that columns are divided by, as in ``{"income": 20_000}``, at no cost; components and variances
        are then those of the columns in these units.  Instead of `scale`.
    around : mapping or (d,) array, optional
        Public centre, as in ``{"age": 40}`` or one number per column: where the search for the mean starts.  It is
        used unchanged where the table is too small for a search.
    categories : mapping or "declared", optional
        Columns of words, with the allowed words, as in ``{"sex": ["f", "m"]}``: public, never those that occur. Each
        word becomes a column of 0 and 1, named ``"sex=f"``; any other word counts as a gap.  "declared" takes those
        of a pandas ``CategoricalDtype``, a polars ``Enum`` or an Arrow dictionary, of one column or of all.
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids.  The guarantee is then for persons, and n is their number: docs/explanation/several-rows.md.
    max_rows : int, default=8
        With `person`: the most rows that are used of one person.
    missing : {"fill", "zero-row"}, default="fill"
        How a gap (a missing or non-finite cell) is treated. It is filled with the centre that was released before (0
        without one), and counts as no difference in a pair of rows; or it makes its whole record a row of zeros.
    method : {"auto", "adaptive", "stable", "approximate", "analyze-gauss"}, default="auto"
        A named method learns the subspace of the rows scaled to unit length; "auto" with ``robust=True`` or
        ``center=False`` follows :func:`privspan.plan`.
    gamma : float, optional
        Standard deviation of the tail's largest direction over that of the last component, if it is public
        knowledge; used by "approximate", and for predictions, only.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    Release
        The basis of ``subspace`` is ordered by falling private variance, and the subspace goes through the mean when
        centred, both in the units of ``extras["scale"]`` if there are any; None after an abstention; only "stable"
        and "approximate" can abstain.  ``extras`` hold ``explained_variance`` (k,), ``explained_variance_ratio``
        (k,), ``total_variance`` and ``mean`` (d,), each with its standard error (``..._std``) where that is known;
        NaN, or an infinite error, marks what the table was too small to measure; ``components_std`` (k, d) are the
        standard errors of the loadings, due to the noise alone.  All of them are of the rows after clipping at the
        length ``clip`` about ``centre`` or, in small tables, after scaling them to one length.  With the default
        method also ``stands_out`` (how many components stand out of the noise) and, if any does,
        ``captured_variance`` and ``captured_variance_std`` (the estimated share of the variance of the best
        components that these capture).  Where clipped rows were counted there are ``rows_shortened`` and
        ``rows_shortened_std``, and ``captured_variance_at_least``: the same share, two standard errors down, for rows
        clipped at the length ``longest_counted`` instead. With ``k="auto"`` or a share, ``n_components``; where a
        share left components out there is no ``captured_variance``, which is that of all of them.  With `units` or
        `bounds`, ``scale`` (d,) and ``scale_std``.  With ``scale=True`` variances are those of the correlations that
        ``parameters["estimates"]`` names, and sum to d; components are those of the same correlations times
        ``column_weights`` (d,), about 1 and less for a column hidden by noise; ``mean``, ``scale``, ``low`` and
        ``high`` (d,) are those of the columns cut off at the last two, for scores only, and
        ``parameters["without_units"]`` lists the columns of which they are not known.  Where gaps were counted,
        ``gaps`` (d,) and ``gaps_std``: mean, variances and scales are then those of the cells without a gap (if gaps
        occur at random), otherwise of the filled table.  ``parameters`` name the method.

    Warns
    -----
    UselessPlanWarning
        If the predicted error, for ideal data, is .5 or more.
    WeakPrivacyWarning
        If the guarantee is weak for this number of rows; every private function warns of this.

    See Also
    --------
    privspan.PrivatePCA : the same as a scikit-learn estimator.
    privspan.private_subspace : the subspace alone, without centring and variances.

    Notes
    -----
    The budget is first spent on the centre and the clipping length, and the rest on the covariance. ``release.cost``
    lists the steps. By a named method the subspace gets 82 % of mu², the mean 10 % and the variances 8 % (94 and 6
    without a mean); methods that are not Gaussian throughout get the same shares of epsilon and delta.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for replace-one neighbours and every data set; n, d, declared types and all
    parameters are public.  Assumed: each person is one row, and `rng` is None.  With `person`, for replacing one
    person; their number is public, that of rows is not (docs/explanation/several-rows.md).
    Proof: docs/explanation/everyday-tables.md, docs/explanation/planning.md, docs/explanation/standardised.md.

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(20_000, 30, 2, gamma_w=0.1, rng=0)
    >>> release = private_pca(X + 1.0, 2, epsilon=1.0, delta=1e-6, rng=0)
    >>> bool(release.subspace.distance(truth) < 0.05), bool(release.extras["captured_variance"] > 0.9)
    (True, True)
    """
    settings = PCASettings(k, center, scale, robust, max_components, bounds, units, around, missing, method, gamma)
    with Call("private_pca", epsilon, delta, rng, ledger, X, person, k) as call:
        return call.finish(learn_pca(settings, call, call.persons(X, person, max_rows, categories))[0])


def learn_pca(
    settings: PCASettings, call: Call, X: object, names: Sequence[str] | None = None, declared: object = None
) -> tuple[Release, Plan]:
    """Do what `private_pca` promises; return the plan, which is public, beside the release.

    Names of the columns are those of a source that knows them, if none are given; their types are those of the table
    as it was `declared`, if that is not `X` itself.
    """
    table = opened(settings, call, X, names, X if declared is None else declared)
    if settings.standardised:
        return learn_standardised(settings, call, table)
    return (learn_everyday if settings.everyday else learn_named)(settings, call, table)


def check_pca(settings: PCASettings, call: Call, X: object) -> tuple[float, float] | None:
    """Refuse what `learn_pca` would refuse, from types and shapes alone: no value is read and nothing is spent.

    Return what it will cost as a Gaussian release, mu and the delta that is set aside; None if it is not known to be
    one.
    """
    table = opened(settings, call, X, None, X)
    if settings.standardised:
        return promise_standardised(settings, call, table)
    return (promise_everyday if settings.everyday else promise_named)(settings, call, table)


EVERYDAY = Method(
    "auto",
    "principal components about a private centre",
    "A centre is estimated in a few noisy rounds. Then the covariance is measured with noise, once with all rows "
    "scaled to length 1 and once with long rows clipped, and the two are combined. In small tables it is measured "
    "from differences of pairs of rows.",
    "The more rows per column, the closer to ordinary PCA. Variance that a few extreme rows carry is not measured.",
    "everyday-tables",
    sparse=True,
    partitions=True,
    passes=7.0,
    labels=(LABEL,),
    call="private_pca",
    options={},
    repeats=("scale", "robust"),
)
"""The course that ``PrivatePCA`` takes by itself."""


STANDARD = replace(
    EVERYDAY,
    title="principal components of standardised columns",
    how="Columns get the same weight, whatever their units. Their correlations are measured with noise.",
    accuracy="The more rows per column, the closer to PCA of the correlations. A column that hardly varies is "
    "measured poorly.",
    page="standardised",
    labels=(STANDARDISED,),
)
"""The course of ``scale=True``."""


BY_PCA = (
    EVERYDAY,
    STANDARD,
    *(
        replace(
            method,
            labels=tuple(map(label, method.labels)),
            call="private_pca",
            options={"method": method.name},
            repeats=(*method.repeats, "scale", "robust"),
        )
        for method in ALGORITHMS.values()
        if method.name in PCA_METHODS
    ),
)
"""The everyday course, and the methods as ways to learn the subspace of a private PCA."""
