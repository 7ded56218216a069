"""What numbers mean, in words: the promise, its strength, the methods, and how to run them again.

The two bounds on what a release can do to a person are exact consequences of (epsilon, delta)-differential privacy;
see docs/explanation/promise.md.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from privspan.ledger.release_file import KNOWN_METHODS
from privspan.privacy import PrivacyCost, Release


@dataclass(frozen=True)
class About:
    """A method for people: its name, what it does, when it is accurate, and the page that proves it private."""

    name: str
    how: str
    accuracy: str
    page: str


ABOUT_METHODS = {
    "adaptive": About(
        "adaptive noisy PCA",
        "A first noisy look at the sum of squares finds the rough directions; rounds of ever less noise refine them. "
        "Records are scaled one by one, so no bound on the values is needed.",
        "The more rows per dimension, the better. Directions of much less variance than the first take more rows, "
        "and records far off the subspace count less than in ordinary PCA.",
        "everyday-pca",
    ),
    "analyze-gauss": About(
        "Analyze Gauss",
        "Gaussian noise is added to the sum of squares of unit-length records.",
        "The noise grows with the number of columns; it takes many rows to outweigh it.",
        "baselines",
    ),
    "stable": About(
        "stable leverage",
        "Records that a direction depends on alone are left out, a private test makes sure that they are few, and "
        "the noise is scaled to the little that one record can still do, whatever the number of columns.",
        "Records must lie very close to a subspace and be alike in how far off they are; otherwise it abstains.",
        "stable-leverage",
    ),
    "approximate (stable)": About(
        "stable groups",
        "The rows are divided into blocks at random. Every block has its own subspace, and stable leverage combines "
        "them.",
        "The subspaces of small blocks must already agree; otherwise it abstains.",
        "approximate-case",
    ),
    "approximate (histogram)": About(
        "cells of a histogram",
        "The rows are divided into blocks at random. Every block votes for a cell of a random grid, and a cell with "
        "a clear majority is released.",
        "Records must lie extremely close to a subspace; otherwise it abstains.",
        "approximate-case",
    ),
    "boosted": About(
        "boosted subspace",
        "Many runs on disjoint rows each learn a subspace; one that most of the others lie near is released.",
        "More than half of the runs must succeed; otherwise it abstains.",
        "boosted",
    ),
    "exact": About(
        "exact subspace",
        "The subspace that holds the most records is found in exact arithmetic. It is released as it is, without "
        "noise, if it leads by enough; a private decision says whether.",
        "Nearly all records must lie in the subspace with no error at all; otherwise it abstains.",
        "exact-case",
    ),
    "baseline": About(
        "a prior system, for comparison",
        "A published method, calibrated anew for the same promise.",
        "See the page on baselines.",
        "baselines",
    ),
}

_UNKNOWN = About("this method", "See the documentation of the method.", "See its documentation.", "index")


def about_method(method: str) -> About:
    """Return what is to be said about a method; of a private PCA, about how it found the subspace."""
    inner = re.sub(r"^private PCA \((.*)\)$", r"\1", method)
    fitting = [key for key in ABOUT_METHODS if inner == key or inner.startswith((f"{key}/", f"{key} ("))]
    return ABOUT_METHODS[fitting[0]] if fitting else _UNKNOWN


def number(value: float, digits: int = 3) -> str:
    """Return a number as a person would write it: 1e-6, 0.023, 1,500."""
    if isinstance(value, int) or (abs(value) < 1e15 and float(value).is_integer()):
        return f"{int(value):,}"
    if 1e3 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return _short_exponent(f"{value:.{digits}g}")


def two_digits(value: float) -> str:
    """Return a number with two digits that count, and a true minus sign: 0.50, −0.014."""
    return _short_exponent(f"{value:#.2g}").replace("-", "−")


def _short_exponent(text: str) -> str:
    return re.sub(r"e([+-])0*(\d)", lambda match: f"e{match[1].replace('+', '')}{match[2]}", text)


def angle(sine: float) -> str:
    """Return the angle of a sine in degrees, to two digits."""
    degrees = math.degrees(math.asin(min(1.0, max(0.0, sine))))
    return f"{degrees:.0f}°" if degrees >= 9.95 else f"{degrees:.2g}°"


def share(part: float) -> str:
    """Return a share in per cent, to one decimal unless that is a zero."""
    return f"{round(100.0 * part, 1):g}\u00a0%"


def at_most(probability: float) -> str:
    """Return a probability in per cent, rounded up to one decimal, as a bound must be."""
    return f"{math.ceil(round(min(1.0, probability) * 1000.0, 9)) / 10.0:g}\u00a0%"


def chance_to_guess(cost: PrivacyCost) -> float:
    """Return the largest chance of telling which of two records was in the table, both equally likely before.

    For (epsilon, delta)-differential privacy that is (e^epsilon + delta) / (e^epsilon + 1).
    """
    shrink = math.exp(-cost.epsilon)
    return min(1.0, (1.0 + cost.delta * shrink) / (1.0 + shrink))


def chance_of_harm(cost: PrivacyCost, before: float) -> float:
    """Return the largest chance of an event that has the chance `before` when one's record is another one."""
    return min(1.0, math.exp(min(cost.epsilon, 700.0)) * before + cost.delta)


def strength(epsilon: float) -> str:
    """Return what is usually said of such an epsilon."""
    if epsilon <= 1.0:
        return "a strong promise"
    if epsilon <= 3.0:
        return "a fair promise"
    return "a weak promise" if epsilon <= 10.0 else "hardly a promise"


# ---- How to run it again ----------------------------------------------------------------------------------------


def program(release: Release, k: int | None) -> str | None:
    """Return Python code that runs the method again; None for a method that this package does not have."""
    if release.method not in KNOWN_METHODS:
        return None
    call, result = _call(release, "k" if k is None else str(k))
    write = f'ps.report.write_report("report.html", {result}, columns=names)'
    return "\n".join(["import privspan as ps", "", call, write])


def command(release: Release, k: int | None) -> str | None:
    """Return the same for the command line, which runs private PCAs and exact subspaces; None for the others."""
    public = release.parameters
    if release.method not in KNOWN_METHODS:
        return None
    if release.method.startswith("exact/"):
        options = ["--exact", *(["--affine"] if public.get("affine") is True else [])]
        if isinstance(public.get("decimals"), int):  # text would be pasted into a shell
            options.append(f"--decimals {public['decimals']:d}")
    elif release.method.startswith("private PCA ("):
        options = [f"--method {_pca_method(release)}"]
        options += ["--no-center"] if public.get("centring") == "none" else []
    else:
        return None
    dimension = "auto" if "n_components" in release.extras else "K" if k is None else str(k)
    budget = f"--epsilon {release.cost.epsilon:.12g} --delta {release.cost.delta:.12g}"
    parts = ["privspan fit table.csv", f"--k {dimension}", budget, *options]
    return " ".join([*parts, "\\\n    -o subspace.npz --report report.html"])


def _pca_method(release: Release) -> str:
    """Return the method that the subspace of a private PCA was learnt with, as its parameter is spelt."""
    return release.method.removeprefix("private PCA (").removesuffix(")").split(" ")[0]


def _call(release: Release, k: str) -> tuple[str, str]:
    """Return the statement that fits, and the expression that holds its release."""
    budget = f"epsilon={release.cost.epsilon!r}, delta={release.cost.delta!r}"
    if release.method.startswith("private PCA ("):
        components = '"auto"' if "n_components" in release.extras else k
        centring = ", center=False" if release.parameters.get("centring") == "none" else ""
        made = f'ps.PrivatePCA({components}, {budget}, method="{_pca_method(release)}"{centring})'
        return f"model = {made}.fit(table)", "model.release_"
    function, options = _function(release)
    return f"release = ps.{function}(table, {k}, {budget}{options})", "release"


def _function(release: Release) -> tuple[str, str]:
    family, _, kind = release.method.partition("/") if "/" in release.method else release.method.partition(" ")
    public = release.parameters
    if family == "exact":
        return "exact_subspace", "".join(_given(release, name) for name in ("affine", "decimals") if public.get(name))
    if family == "baseline":
        return f"baselines.{kind}", ""
    if family == "boosted":
        return "boosted_subspace", _given(release, "alpha") + _given(release, "beta")
    if family == "approximate":
        return "approximate_subspace", f", aggregate={kind.strip('()')!r}"
    return "private_subspace", f', method="{family}"'


def _given(release: Release, name: str) -> str:
    """Return the argument, if it is a number or a truth value: anything else is not pasted into code."""
    value = release.parameters.get(name)
    return f", {name}={value!r}" if isinstance(value, bool | int | float) else ""
