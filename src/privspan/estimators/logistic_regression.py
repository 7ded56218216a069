"""``PrivateLogisticRegression``: `private_classifier` as a scikit-learn estimator, and pipelines with one budget."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from privspan._lib.errors import ParameterError
from privspan.estimators._base import parameters_named_as_here, same_columns
from privspan.privacy import Budget, NotPrivateWarning
from privspan.privacy.call import LedgerLike, outside
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.rows.columns import column_names
from privspan.rows.door import given_table, taken
from privspan.rows.table import Missing
from privspan.subspace import Subspace
from privspan.sums.classifier import PrivateClassifier, private_classifier


@dataclass(eq=False, repr=False)
class PrivateLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multinomial logistic regression under differential privacy, on rows centred and scaled to unit length.

    What ``fit`` stores is private. ``predict`` and ``score`` are not: they reveal something about the rows passed in.
    After :class:`privspan.PrivatePCA` in a pipeline everything is private, at the sum of both budgets:
    :func:`privspan.budgeted_pipeline`.

    Parameters
    ----------
    classes : sequence
        The labels: public, two or more, text or whole numbers. They are not read off `y`.
    epsilon, delta : float
        The guarantee for everything that ``fit`` stores, together.
    subspace : Subspace, optional
        Public, or released at its own cost: only the coordinates in it are used.
    missing, max_rows
        As for :func:`privspan.private_classifier`.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**.
    ledger : path, Ledger or Page, default=None
        Where every fit is charged, before it reads any data; clones charge the same file.

    Attributes
    ----------
    classes_ : (n_classes,) array
    release_ : PrivateClassifier
        What was released, with its cost, its noise and its expected accuracy.
    n_features_in_ : int

    Guarantee
    ---------
    What ``fit`` stores is (epsilon, delta)-differentially private for replace-one neighbours (a row and its label),
    for all data, when `random_state` is None and each person is one row; the number of rows and columns, the classes
    and all parameters are public. With `person`, for replacing one person. Rows that another private step has made,
    each of its own row, count as the rows they were made of. Proof: ``docs/explanation/private-classifier.md``.

    Examples
    --------
    >>> import warnings
    >>> from privspan import NotPrivateWarning
    >>> y = np.repeat([0, 1], 5_000)
    >>> X = np.random.default_rng(0).standard_normal((10_000, 3)) + y[:, None]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPrivateWarning)
    ...     model = PrivateLogisticRegression([0, 1], epsilon=1.0, delta=1e-6, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.78)
    True
    """

    classes: Sequence[object]
    _: KW_ONLY
    epsilon: float
    delta: float
    subspace: Subspace | None = None
    max_rows: int = MOST_ROWS
    missing: Missing = "fill"
    random_state: RandomLike = None
    ledger: LedgerLike = None

    def fit(self, X: object, y: object, person: object = None) -> Self:
        """Learn privately.

        Parameters
        ----------
        X, y, person
            As for :func:`privspan.private_classifier`.
        """
        X = taken(X, person)
        with parameters_named_as_here():
            self.release_: PrivateClassifier = private_classifier(
                X,
                y,
                subspace=self.subspace,
                classes=self.classes,
                epsilon=self.epsilon,
                delta=self.delta,
                missing=self.missing,
                person=person,
                max_rows=self.max_rows,
                rng=self.random_state,
                ledger=self.ledger,
            )
        self.classes_ = np.asarray(self.classes)
        made = self.release_
        self.n_features_in_ = len(made.centre) if made.subspace is None else made.subspace.ambient_dimension
        names = None if isinstance(person, str) else column_names(X)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if not made.private:
            message = "`random_state` was given: the noise can be reproduced, so this fit is not private."
            warnings.warn(message, NotPrivateWarning, stacklevel=outside())
        return self

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the likeliest label of each row, (n_samples,). Not private where the rows are."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """Return how likely each class is, (n_samples, n_classes). Not private where the rows are."""
        check_is_fitted(self)
        X = taken(X)
        if (table := given_table(X)) is not None:
            names = getattr(self, "feature_names_in_", None)
            same_columns(table, self.n_features_in_, None if names is None else list(names))
        elif column_names(X) is not None:
            validate_data(self, X, reset=False, skip_check_array=True)
        return self.release_.probabilities(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a gap is filled; raising would tell
        tags.non_deterministic = self.random_state is None
        return tags


def budgeted_pipeline(
    *steps: BaseEstimator, epsilon: float, delta: float, shares: Sequence[float] | None = None
) -> Pipeline:
    """Return a pipeline of scikit-learn whose private steps share one budget.

    Parameters
    ----------
    *steps : estimators
        Steps with an `epsilon` and a `delta` are copied and get new ones; the others are used as they are, and must
        transform each row independently of the others.
    epsilon, delta : float
        For all private steps together: their epsilons and deltas sum to at most these. A fit may cost less, because
        Gaussian steps compose: ``sum`` of the ``release_.cost`` of the steps.
    shares : sequence of float, optional
        The weight of each private step; equal by default.

    Returns
    -------
    Pipeline

    Guarantee
    ---------
    What ``fit`` stores in the private steps is, together, (epsilon, delta)-differentially private for replace-one
    neighbours: each step is private for the rows that it gets, and such a row is made of its own row and of what
    steps before have released. Assumed: all other steps change each row by itself and learn nothing.
    Proof: docs/explanation/private-classifier.md.

    Examples
    --------
    >>> import privspan as ps
    >>> steps = ps.PrivatePCA(2, epsilon=1, delta=1e-6), ps.PrivateLogisticRegression([0, 1], epsilon=1, delta=1e-6)
    >>> [(step.epsilon, step.delta) for _, step in budgeted_pipeline(*steps, epsilon=2.0, delta=1e-5).steps]
    [(1.0, 5e-06), (1.0, 5e-06)]
    """
    private = [place for place, step in enumerate(steps) if hasattr(step, "epsilon") and hasattr(step, "delta")]
    if not private:
        raise ParameterError("{steps} must have a private one, with an epsilon and a delta.")
    shares = [1.0] * len(private) if shares is None else shares
    if len(shares) != len(private):
        raise ParameterError(
            "{shares} must have one number for each of the {count} private steps; got {got}.",
            count=len(private), got=len(shares),
        )  # fmt: skip
    made = list(steps)
    for place, part in zip(private, Budget(epsilon, delta).split(shares), strict=True):
        made[place] = clone(steps[place]).set_params(epsilon=part.epsilon, delta=part.delta)
    return make_pipeline(*made)
