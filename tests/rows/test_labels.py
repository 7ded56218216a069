"""Labels of rows: the same from every container, each from itself alone."""

import numpy as np
import pandas as pd
import pytest

from privspan import private_classifier
from privspan.rows import partition_rows

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def people() -> tuple[np.ndarray, np.ndarray]:
    """Three classes about means of their own."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 6_000)
    return 2.5 * np.eye(3, 4)[y] + rng.standard_normal((6_000, 4)), y


def weights_of(y, X=None, **options):
    X = people()[0] if X is None else X
    return private_classifier(X, y, **{"classes": (0, 1, 2), **BUDGET, "rng": 0, **options}).weights


def test_labels_say_the_same_from_every_container():
    y = people()[1]
    expected = weights_of(y)
    words = np.array(["a", "b", "c"])[y]
    made = [weights_of(held) for held in (y.tolist(), y.astype(float), y.astype(np.uint8), pd.Series(y))]
    made += [
        weights_of(pd.Series(words, dtype=kind), classes=["a", "b", "c"]) for kind in ("str", "category", object)
    ]
    made += [weights_of(words, classes=["a", "b", "c"]), weights_of(list(words), classes=("a", "b", "c"))]
    for one in made:
        np.testing.assert_array_equal(one, expected)
    two = np.minimum(y, 1)
    for held in (two == 1, pd.Series(two == 1), pd.Series(two == 1, dtype="boolean")):
        np.testing.assert_array_equal(weights_of(held, classes=[False, True]), weights_of(two, classes=[0, 1]))


def test_a_label_that_is_none_of_the_classes_counts_for_no_class_and_is_not_refused():
    X, y = people()
    unknown = y.astype(float)
    unknown[7] = np.nan
    stranger = y.copy()
    stranger[7] = 99
    np.testing.assert_array_equal(weights_of(unknown, X), weights_of(stranger, X))
    assert not np.array_equal(weights_of(stranger, X), weights_of(y, X))


def test_partitions_and_dask_give_the_same():
    X, y = people()
    parts = partition_rows(X, [4096, len(X) - 4096])
    np.testing.assert_allclose(weights_of(y, parts), weights_of(y, X), atol=1e-6)
    arrays = pytest.importorskip("dask.array")
    lazy = arrays.from_array(X, chunks=(4096, 4)), arrays.from_array(y, chunks=4096)
    np.testing.assert_allclose(weights_of(lazy[1], lazy[0]), weights_of(y, X), atol=1e-6)


@pytest.mark.parametrize(
    ("y", "classes", "error", "message"),
    [
        (np.zeros(9), (0, 1), ValueError, "one entry per row, 10; got 9"),
        (np.zeros((10, 2)), (0, 1), TypeError, "must hold a label for each row"),
        ("label", (0, 1), TypeError, "not the name of a column"),
        (np.zeros(10, complex), (0, 1), TypeError, "must hold a label for each row"),
        (np.zeros(10), (0,), ValueError, "two or more different labels"),
        (np.zeros(10), (0, 0.0), ValueError, "two or more different labels"),
        (np.zeros(10), (0, 0.5), ValueError, "two or more different labels"),
        (np.zeros(10), "ab", TypeError, "a sequence of labels"),
        (np.zeros(10), {0, 1}, TypeError, "a sequence of labels"),
    ],
)
def test_what_labels_cannot_be_is_refused(y, classes, error, message):
    with pytest.raises(error, match=message):
        private_classifier(np.ones((10, 2)), y, classes=classes, **BUDGET)
