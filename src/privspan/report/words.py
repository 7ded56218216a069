"""What numbers mean, in words: the promise, its strength, the methods, and how to run them again.

The two bounds on what a release can do to a person are exact consequences of (epsilon, delta)-differential privacy;
see docs/explanation/promise.md.
"""

from __future__ import annotations

import math
import re

from privspan.ledger.release_file import KNOWN_METHODS
from privspan.privacy import PrivacyCost, Release
from privspan.private import Method

_UNKNOWN = Method(
    "", Release, "this method", "See the documentation of the method.", "See its documentation.", "index", call=None
)  # made by whoever made the release


def about_method(method: str) -> Method:
    """Return what is to be said about a method; of a private PCA, about how it found the subspace."""
    return KNOWN_METHODS.get(method, _UNKNOWN)


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
    method = about_method(release.method)
    if method.call is None:
        return None
    chosen = '"auto"' if "n_components" in release.extras else "k" if k is None else str(k)
    options = {"method": method.name} if method.options is None else method.options
    arguments = {"epsilon": release.cost.epsilon, "delta": release.cost.delta, **options, **_given(release, method)}
    if release.parameters.get("centring") == "none":
        arguments["center"] = False
    written = ", ".join(f"{name}={_quoted(value)}" for name, value in arguments.items())
    call = f"release = ps.{method.call}(table, {chosen}, {written})"
    write = 'ps.report.write_report("report.html", release, columns=names)'
    return "\n".join(["import privspan as ps", "", call, write])


def command(release: Release, k: int | None) -> str | None:
    """Return the same for the command line, which runs private PCAs and exact subspaces; None for the others."""
    method = about_method(release.method)
    if method.command is None:
        return None
    chosen = "auto" if "n_components" in release.extras else "K" if k is None else str(k)
    budget = f"--epsilon {release.cost.epsilon:.12g} --delta {release.cost.delta:.12g}"
    options = [
        f"--{name}" if value is True else f"--{name} {value}" for name, value in _given(release, method).items()
    ]
    if release.parameters.get("centring") == "none":
        options.append("--no-center")
    parts = ["privspan fit table.csv", f"--k {chosen}", budget, method.command, *options]
    return " ".join([*parts, "\\\n    -o subspace.npz --report report.html"])


def _given(release: Release, method: Method) -> dict[str, bool | int | float]:
    """Return the arguments to repeat: numbers and switches only, as text would be pasted into code or a shell."""
    public = {name: release.parameters.get(name) for name in method.repeats}
    return {name: value for name, value in public.items() if isinstance(value, int | float) and value is not False}


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
