"""Which of scikit-learn's own tests of PCA hold for PrivatePCA at the largest epsilon, and which cannot?

The tests come with scikit-learn; here they run with PrivatePCA in the place of PCA. Solvers and their options are
dropped, as there is one way to fit. ``--page`` writes the page of the site.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import warnings
from collections import Counter
from pathlib import Path

import pytest
import sklearn
from sklearn.decomposition.tests import test_pca as theirs

import privspan as ps
from privspan._lib.checks import EPSILONS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scikit-learn-tests.md"
LEFT_OUT = "not sparse and not array_api"  # the former take half an hour, the latter need other packages
NOISE = "asks for more digits than noise and clipped rows leave, also at this epsilon"
PAIRS = "asks for more components than there are pairs of rows, which is refused"
NONE = "None for all components is refused: a private fit has to be told what to find"
MLE = 'about `n_components="mle"`, which is not offered; `"auto"` chooses privately'
FITS = "compares two fits to many digits, and each draws noise of its own"
WHY = {
    "test_no_empty_slice_warning": PAIRS,
    "test_whitening": NOISE,
    "test_pca_solver_equivalence": FITS,
    "test_pca_explained_variance_empirical": NOISE,
    "test_pca_singular_values_consistency": FITS,
    "test_pca_singular_values": NOISE,
    "test_pca_check_projection_list": NOISE,
    "test_pca_inverse": NOISE,
    "test_pca_validation": "asks for the words of scikit-learn's refusals; ours say what is allowed here",
    "test_n_components_none": NONE,
    "test_n_components_mle": MLE,
    "test_n_components_mle_error": MLE,
    "test_pca_dim": MLE,
    "test_infer_dim_1": NOISE,
    "test_pca_score": "asks that `whiten` changes the likelihood of rows; here it changes `transform` only",
    "test_pca_score3": "asks for no components, which is refused",
    "test_pca_zero_noise_variance_edge_cases": PAIRS,
    "test_pca_svd_solver_auto": "about the solver that scikit-learn chose; there is one way to fit here",
    "test_pca_deterministic_output": FITS,
    "test_pca_dtype_preservation": "scores of float32 rows are float32; components and variances stay float64",
    "test_pca_n_components_mostly_explained_variance_ratio": NONE,
    "test_mle_redundant_data": MLE,
    "test_fit_mle_too_few_samples": MLE,
    "test_mle_simple_case": MLE,
    "test_feature_names_out": "names of scores begin with the name of the class, which is another",
    "test_variance_correctness": NONE,
}


def private(n_components=None, *, whiten=False, random_state=None, **_solver):
    """Stand in for scikit-learn's PCA."""
    seed = 0 if random_state is None else random_state
    options = {"epsilon": EPSILONS[1], "delta": 0.01, "whiten": whiten, "random_state": seed}
    return ps.PrivatePCA(n_components, **options)


class Outcomes:
    """Counts what became of every test, by its name without parameters."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}

    def pytest_runtest_logreport(self, report) -> None:
        name = report.nodeid.split("::")[-1].split("[")[0]
        if report.when == "call" or report.outcome == "skipped":
            self.counts.setdefault(name, Counter())[report.outcome] += 1


def run() -> dict[str, Counter[str]]:
    """Run the tests of the installed scikit-learn with PrivatePCA."""
    theirs.PCA, outcomes = private, Outcomes()
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        "-c",
        "/dev/null",
        "-W",
        "ignore",
        "-k",
        LEFT_OUT,
    ]
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.main([*options, theirs.__file__], plugins=[outcomes, Replaced()])
    return outcomes.counts


class Replaced:
    """Puts PrivatePCA into the module that pytest imports, which may be another copy."""

    def pytest_collection_modifyitems(self, items) -> None:
        for item in items:
            item.module.PCA = private


def page(counts: dict[str, Counter[str]]) -> str:
    """Return the table of what holds and what differs, with the reason."""
    rows = []
    for name, outcome in counts.items():
        ran = outcome["passed"] + outcome["failed"]
        holds = "skipped" if not ran else "all" if not outcome["failed"] else f"{outcome['passed']} of {ran}"
        rows.append(f"| `{name}` | {holds} | {'' if holds in ('all', 'skipped') else WHY[name]} |")
    passed, failed = (sum(outcome[what] for outcome in counts.values()) for what in ("passed", "failed"))
    return "\n".join(
        [
            "# scikit-learn's own tests of PCA",
            "",
            f"The tests of `PCA` in scikit-learn {sklearn.__version__}, with {{class}}`privspan.PrivatePCA` in its",
            f"place at the largest epsilon, {EPSILONS[1]:g}: {passed} hold, {failed} do not, for",
            "the reason beside it. Tests of sparse tables (slow) and of arrays of other packages are left out.",
            "Written by `python benchmarks/scripts/scikit_learn_tests.py --page`.",
            "",
            "| test | holds | what is different on purpose |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Print the table, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the page of the site")
    options = parser.parse_args()
    text = page(run())
    if options.page:
        PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
