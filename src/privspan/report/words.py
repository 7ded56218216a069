"""What numbers mean, in words: the promise, its strength, the methods, and how to run them again.

The two bounds on what a release can do to a person are exact consequences of (epsilon, delta)-differential privacy;
see docs/explanation/promise.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from privspan._lib.in_words import number
from privspan.ledger.release_file import KNOWN_METHODS
from privspan.privacy import PERSONS, PrivacyCost, Release
from privspan.privacy.reading import Reading
from privspan.private import Method

MOST_NAMED = 60  # columns that are listed by name
NOT_RECORDED = "not recorded"
_MOST_COLUMNS = 12  # whose missing cells are told one by one
_NEARLY_ALL = 0.95  # of the first component, by squared loading: what one column has to carry to be named
_MOST_OF_IT = 0.5  # of the variance: what that component has to hold

_UNKNOWN = Method(
    "", "this method", "See the documentation of the method.", "See its documentation.", "index", call=None
)  # made by whoever made the release


def about_method(method: str) -> Method:
    """Return what is to be said about a method; of a private PCA, about how it found the subspace."""
    return KNOWN_METHODS.get(method, _UNKNOWN)


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


# ---- What a private PCA says of itself --------------------------------------------------------------------------

_COURSES = {
    "clipped look": "The covariance was then measured with noise, with long rows clipped. That was clear enough, so "
    "no second measurement was needed.",
    "two looks": "The covariance was then measured twice, with noise: once with all rows scaled to length 1, so that "
    "no row counts more than another, and once with long rows clipped. The two are combined so that they capture as "
    "much variance as possible.",
    "one look": "The covariance was then measured once, with noise, with all rows scaled to length 1. There were too "
    "few rows at this budget for a second measurement with rows at their own length.",
    "pairs": "There were too few rows at this budget to estimate a centre. So rows were paired at random, and the "
    "covariance of their differences, which need no centre, was measured once, with noise.",
    "centre not found": "The search for a centre, with noise, did not succeed. So rows were paired at random, and "
    "the covariance of their differences, which need no centre, was measured once, with noise.",
    "near a subspace": "A first noisy measurement showed that most rows lie close to a few directions. These were "
    "then estimated with noise in proportion to how close the rows lie.",
}


def course(release: Release) -> str | None:
    """Return how a private PCA went about this table, for readers without mathematics; None where nothing is told."""
    told, rounds = release.parameters.get("course"), release.parameters.get("rounds")
    if not isinstance(told, str) or told not in _COURSES:
        return None
    centre = "The centre was given as public knowledge. "
    if rounds:
        times = "1 round" if rounds == 1 else f"{rounds} rounds"
        centre = f"The centre was estimated from noisy averages, in {times}. "
    return _COURSES[told] if told in ("pairs", "centre not found") else centre + _COURSES[told]


def shortened_rows(release: Release) -> str | None:
    """Say how many rows were clipped, and what of them is not measured; None if none had to be."""
    clip, count, noise = (release.extras.get(name) for name in ("clip", "rows_shortened", "rows_shortened_std"))
    if not (_finite(clip) and _finite(count) and _finite(noise)):
        return None
    many, give_or_take = (number(max(0, round(float(size)))) for size in (count, noise))  # type: ignore[arg-type]
    about = f"About {many} rows (± {give_or_take})"
    if release.cost.neighbours == PERSONS:
        about = f"As many rows as about {many} persons have (± {give_or_take})"
    return (
        f"{about} lay farther than {number(float(clip))} from the centre and were clipped to that distance. "  # type: ignore[arg-type]
        "Variance beyond it is not measured."
    )


def gaps(release: Release, names: Sequence[str]) -> str | None:
    """Say what was done about missing cells, and what means and variances are of; None if there could be none."""
    done, counts, std = release.parameters.get("gaps"), release.extras.get("gaps"), release.extras.get("gaps_std")
    if done == "rows of zeros":
        return "A record with a missing cell counted as a row of zeros, as asked for."
    if done == "counted" and isinstance(counts, np.ndarray) and _finite(std):
        noise = float(std)  # type: ignore[arg-type]
        seen = [i for i in np.argsort(-counts, kind="stable")[:_MOST_COLUMNS] if counts[i] > 2.0 * noise]
        listed = ", ".join(f"{number(round(float(counts[i])))} in {names[i]}" for i in seen)
        more = " and others" if np.count_nonzero(counts > 2.0 * noise) > len(seen) else ""
        about = f"about {listed}{more}" if seen else "no column has more of them than the noise"
        said = f"Missing cells {_done_with_gaps(release)}. "
        said += f"How many there are, ± {number(round(noise))} each: {about}."
        said += " Means and variances are those of the cells that are there, if cells are missing at random."
        empty = [names[i] for i in without_numbers(release)]
        return said if not empty else f"{said} {_EMPTY.format(', '.join(empty[:_MOST_COLUMNS]))}"
    if done == "not counted":
        said = f"Missing cells, if there are any, {_done_with_gaps(release)}."
        return f"{said} How many there are was not measured, so variances are of the table with these cells in it."
    return None


def why_little_weight(release: Release) -> str:
    """Say why hardly anything was measured of some columns."""
    why = "they vary too little to be seen at this budget"
    counted = release.parameters.get("gaps") != "not counted"  # then empty columns are named as such
    return why if counted else f"{why}, or hold hardly any number (text counts as missing)"


_EMPTY = (
    "Hardly any cell holds a number in: {0}. If these are columns of text, leave them out or declare their "
    "categories; their means and loadings say nothing."
)


def without_numbers(release: Release) -> list[int]:
    """Return the columns, by position, that hold hardly any number, by the released counts of missing cells."""
    counts, std, n = release.extras.get("gaps"), release.extras.get("gaps_std"), release.parameters.get("n")
    if not isinstance(counts, np.ndarray) or not _finite(std) or not isinstance(n, int):
        return []
    return np.flatnonzero(counts + 4.0 * float(std) > n).tolist() if n > 16.0 * float(std) else []  # type: ignore[arg-type]


def one_column(subject: Reading) -> str | None:
    """Say that the first component is nearly one column, as it is where columns have different units."""
    found, ratios = subject.release.subspace, subject.released("explained_variance_ratio")
    if found is None or ratios is None or subject.estimates or subject.is_noise(0) or found.ambient_dimension < 3:
        return None
    squares = found.basis[:, 0] ** 2
    if squares.max() < _NEARLY_ALL or ratios[0] < _MOST_OF_IT:
        return None
    return (
        f"The first component is nearly one column alone, {subject.names[int(squares.argmax())]}, which varies most "
        "in its unit. If columns have different units, standardise them: scale=True (--scale on the command line)."
    )


def _done_with_gaps(release: Release) -> str:
    if release.parameters.get("course") == "ranks":
        return "were taken as equal to whatever they were compared with"
    return "were filled with the private centre"


def _finite(value: object) -> bool:
    return isinstance(value, float | int) and math.isfinite(value)


# ---- How to run it again ----------------------------------------------------------------------------------------


def program(release: Release, k: int | None) -> str | None:
    """Return Python code that runs the method again; None for a method that this package does not have."""
    method = about_method(release.method)
    if method.call is None:
        return None
    asked = release.parameters.get("share", "auto" if "n_components" in release.extras else k)
    chosen = "k" if asked is None else _quoted(asked)
    options = {"method": method.name} if method.options is None else method.options
    arguments: dict[str, object] = {"epsilon": release.cost.epsilon, "delta": release.cost.delta}
    arguments |= {**options, **_given(release, method)}
    if release.parameters.get("centring") == "none":
        arguments["center"] = False
    if release.parameters.get("gaps") == "rows of zeros":
        arguments["missing"] = "zero-row"
    if arguments.get("scale") is True and release.parameters.get("course") in ("ranks", "deviations"):
        arguments["scale"] = release.parameters["course"]
    arguments |= declared(release)
    written = ", ".join(f"{name}={_quoted(value)}" for name, value in arguments.items())
    if release.cost.neighbours == PERSONS:
        several = method.call not in ("exact_subspace", "stable_subspace", "boosted_subspace")
        written += ", person=ids" + (f", max_rows={release.parameters['max_rows']}" if several else "")
    call = f"release = ps.{method.call}(table, {chosen}, {written})"
    write = 'ps.report.write_report("report.html", release, columns=names)'
    return "\n".join(["import privspan as ps", "", call, write])


def to_give_again(release: Release) -> str | None:
    """Say which public numbers the code above does not repeat, where they were too many to keep."""
    if declared(release) or not declared_units(release):
        return None
    return "Add the centre, units or bounds that were given for the columns: around=, units= and bounds= take them."


def declared(release: Release) -> dict[str, dict[str | int, Sequence[object] | float]]:
    """Return what was given as public about columns, by argument; by position where columns have no names."""
    given = release.parameters.get("declared")
    named = release.subspace is None or release.subspace.names is not None
    return {
        argument: {name if named else int(name): values for name, values in by_name.items()}
        for argument, by_name in (given.items() if isinstance(given, Mapping) else ())
    }


def declared_units(release: Release) -> bool:
    """Tell whether public numbers of columns were used."""
    public_units = "scale" in release.extras and release.parameters.get("scale") is not True
    return public_units or release.parameters.get("centring") == "public centre"


def _given(release: Release, method: Method) -> dict[str, bool | int | float]:
    """Return the arguments to repeat: numbers and switches only, as text would be pasted into code or a shell."""
    public = {name: release.parameters.get(name) for name in method.repeats}
    return {name: value for name, value in public.items() if isinstance(value, int | float) and value is not False}


def _quoted(value: object) -> str:
    if isinstance(value, Mapping):
        return repr({name: tuple(one) if isinstance(one, list) else one for name, one in value.items()})
    return f'"{value}"' if isinstance(value, str) else repr(value)
