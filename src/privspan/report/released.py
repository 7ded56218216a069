"""The first half of the page: what was released, in a headline, figures, relations and pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privspan._lib.in_words import angle, at_most, number, share, share_with_noise, two_digits, with_noise
from privspan._lib.markup import Html, element, figure, join, listed, note
from privspan.privacy.reading import which_stand_out
from privspan.privacy.rotated import said
from privspan.report import pictures
from privspan.report.subject import Subject
from privspan.report.words import (
    about_method,
    chance_to_guess,
    course,
    gaps,
    one_column,
    shortened_rows,
    why_little_weight,
)
from privspan.subspace import Subspace

_MOST_BARS = 12
_MOST_COMPONENTS = 12
_CUT_TO_TELL = 0.01  # of the variance: less changes nothing that is shown
_SHORTEST_BAR = 0.03  # of the longest: below, there is nothing to see
_MOST_RELATIONS = 40
_MOST_CELLS = 400_000  # of all relations together: beyond, finding them takes longer than reading them

_NOT_PRIVATE = (
    " A seed was given, so the noise can be drawn again and nothing is promised. Good for tests and simulations; if "
    "the rows are real people's, treat this page like the rows themselves."
)
STANDARDISED = (
    "All columns weigh the same. Pairs of rows were compared column by column (larger, equal or smaller), so units, "
    "skewness and outliers do not matter. Components and shares are those of the rank correlations (Kendall's tau).",
    "All columns weigh the same: each was centred and divided by its standard deviation, both measured privately, "
    "with extreme cells cut off (winsorised). Components and shares are those of the correlations of these columns.",
)
_ABSTAINED = (
    " The method found nothing that it could release safely. This outcome is part of the promise and cost the full "
    "budget; trying again costs it again."
)


def headline(subject: Subject) -> str:
    """Return a title for a page whose owner gave none."""
    if subject.release.abstained:
        return "Nothing was released: the method abstained"
    what = "Private principal components" if subject.is_pca else "A private subspace"
    what = "An exact subspace, privately" if subject.is_exact else what
    return what if subject.release.private else f"{what} (simulation)"


def opening(subject: Subject, title: str) -> Html:
    """Say what this is, where it came from, and what nobody may overlook."""
    said = [element("h1", title)]
    if subject.record.source:
        said.append(element("p", subject.record.source, class_="source"))
    lead = _finding(subject)
    if subject.release.private:
        risk = at_most(chance_to_guess(subject.release.cost))
        lead += (
            " Suppose somebody knows that your record is one of two, and holds both for equally likely. After "
            f"reading this page they can be at most {risk} sure which one it is."
        )
    said.append(element("p", lead, class_="lead"))  # for someone who reads no further
    if not subject.release.private:
        said.append(element("p", element("b", "Not private."), _NOT_PRIVATE, class_="banner"))
    if subject.release.abstained:
        said.append(element("p", element("b", "Abstained."), _ABSTAINED, class_="banner"))
    return element("header", *said)


def _finding(subject: Subject) -> str:
    subspace = subject.release.subspace
    if subspace is None:
        return "No subspace was released."
    missing, d = subspace.ambient_dimension - subspace.dimension, number(subspace.ambient_dimension)
    ratios, quality = subject.released("explained_variance_ratio"), subject.captured
    noun = "direction" if ratios is None else "component"
    directions = f"{number(subspace.dimension)} {noun}{'s' * (subspace.dimension != 1)}"
    if subject.nothing_stands_out:
        return f"{directions} of {d} columns. {which_stand_out(0, subspace.dimension)}"
    if quality is not None and missing == 0:
        return f"{directions} of {d} columns, so they hold all of the variance."
    if quality is not None:
        capture = "captures" if subspace.dimension == 1 else "capture"
        lead = f"{directions} of {d} columns, which {capture} {subject.captured_of(directions)}."
        lead += f" {subject.whole_rows}" if subject.whole_rows else ""
        stand = "" if subject.stands_out is None else f" {which_stand_out(subject.stands_out, subspace.dimension)}"
        return f"{lead}{stand}"
    if ratios is not None:
        return f"{directions} of {d} columns, holding {share(float(ratios.sum()))} of the variance.{_told(subject)}"
    if subspace.exact is not None:
        holds = "1 exact relation holds" if missing == 1 else f"{number(missing)} exact relations hold"
        return f"{holds} between the {d} columns."
    return f"{directions} of {d} columns that the records lie close to.{_told(subject)}"


def _told(subject: Subject) -> str:
    """Say how many directions a method told from noise, if not all; it does not say which of the components."""
    found = subject.release.parameters.get("stands_out")
    if not isinstance(found, int) or subject.k is None or found >= subject.k:
        return ""
    return f" Only {number(found)} of the {number(subject.k)} could be distinguished from noise."


def facts(subject: Subject) -> Html:
    """Return the handful of numbers that a reader looks for first."""
    cost = subject.release.cost
    shown = []
    quality = subject.captured
    if quality is not None:
        shown.append(("variance captured", quality[0], f"{quality[1]}; the best would be 100\u00a0%"))
    if subject.k is not None and subject.stands_out is not None:
        rest = f"out of {number(subject.d or 0)} columns"
        if subject.is_noise(subject.k - 1):
            rest = (
                "the others are noise" if subject.stands_out else "they are noise" if subject.k > 1 else "it is noise"
            )
        shown.append(("components that stand out", f"{number(subject.stands_out)} of {number(subject.k)}", rest))
    elif subject.k is not None:
        out_of = "" if subject.d is None else f"out of {number(subject.d)} columns"
        chosen = "n_components" in subject.release.extras
        asked = "chosen privately" if chosen else "as asked for" if subject.told is None else _told_apart(subject)
        shown.append(("dimensions", number(subject.k), f"{asked}, {out_of}".rstrip(", ")))
    if subject.n is not None:
        shown.append(("took part" if subject.release.abstained else "learnt from", number(subject.n), subject.unit))
    promised = f"δ = {number(cost.delta)}, {cost.neighbours}"
    promised = promised if subject.release.private else "not promised: a seed was given"
    shown.append(("privacy", f"ε = {number(cost.epsilon)}", promised))
    if quality is None and subject.own_error is not None:
        shown.append(("turned by noise", angle(subject.own_error), "about; estimated from this release"))
    entries = (
        element("div", element("dt", name), element("dd", value, element("small", small)))
        for name, value, small in shown
    )
    return element("dl", *entries, class_="facts")


def _told_apart(subject: Subject) -> str:
    return "all above the noise" if (subject.told or 0) >= (subject.k or 0) else f"{subject.told} above the noise"


def section(subject: Subject) -> Html:
    """Describe what was released; what follows is all there is."""
    about = about_method(subject.release.method)
    how = course(subject.release) or about.how
    if subject.is_pca and subject.release.parameters.get("robust") is True:
        how += (
            " Robust, as asked for: every row has the same weight, however long; rows far off the subspace have less."
        )
    method = f"Method: {about.title} (in the code: {subject.release.method}). {how}"
    pieces = [element("h2", "What was released"), element("p", method)]
    subspace = subject.release.subspace
    if subspace is None:
        return join(*pieces, element("p", _after_abstention(subject)))
    drawn = (
        _relations(subject, subspace),
        _spectrum(subject),
        _loadings(subject, subspace),
        _rotated(subject),
        _weights(subject, subspace),
        _headed("Rows that were clipped", shortened_rows(subject.release)),
        _headed("Missing cells", gaps(subject.release, subject.names)),
        _units(subject),
        _unmeasured(subject),
    )
    return join(*pieces, *drawn)


def _after_abstention(subject: Subject) -> str:
    advice = f"Why that can happen: {about_method(subject.release.method).accuracy} "
    if subject.is_pca:
        advice += "The mean and the total variance were released all the same and stand in the table below. "
    hint = "tells what to expect of other methods and of more rows"
    return f"{advice}The section on accuracy {hint}." if subject.plan else f"{advice}privspan.plan {hint}."


# ---- Relations --------------------------------------------------------------------------------------------------


def _relations(subject: Subject, subspace: Subspace) -> Html:
    if subspace.exact is None:
        return join()
    missing = subspace.ambient_dimension - subspace.dimension
    if missing == 0:
        return element("p", "The subspace is the whole space: no relation holds between the columns.")
    title = element("h3", "Relations that hold between the columns")
    if missing * subspace.ambient_dimension > _MOST_CELLS:
        many = f"There are {number(missing)} independent relations; subspace.relations() lists them."
        return join(title, element("p", many))
    relations = subspace.relations()
    lines = [relation.describe(list(subject.names)) for relation in relations[:_MOST_RELATIONS]]
    more = len(relations) - len(lines)
    rest = f" {number(more)} more are in subspace.relations()." if more else ""
    words = f"Exact: they hold for every record that lies in the subspace, which nearly all do.{rest}"
    return join(title, listed(lines, class_="relations"), note(words))


# ---- Pictures ---------------------------------------------------------------------------------------------------


def _spectrum(subject: Subject) -> Html:
    ratios = subject.released("explained_variance_ratio")
    if ratios is None:
        return _eigenvalues(subject)
    parts = [(f"component {i + 1}", float(value)) for i, value in enumerate(ratios[:_MOST_COMPONENTS])]
    if len(ratios) > len(parts):
        others = f"components {_MOST_COMPONENTS + 1}–{len(ratios)}"
        parts.append((others, float(ratios[_MOST_COMPONENTS:].sum())))
    faint = [i for i in range(len(parts)) if subject.is_noise(i)]
    parts.append(("the rest", max(0.0, 1.0 - float(ratios.sum()))))
    noise = _share_noise(subject, ratios, len(parts))
    rows = [(name, value, _share(value, error)) for (name, value), error in zip(parts, noise, strict=True)]
    of_rows = subject.rows_in_short and f" of the {subject.rows_in_short}"
    words = f"How much of the variance{of_rows} lies along each component."
    words += " ± and thin lines: one standard deviation of the noise." if any(noise) else " Noise included."
    words += " Pale: cannot be distinguished from noise." if faint else ""
    words += " Because of the noise the shares add up to more than 100\u00a0%." if ratios.sum() > 1.005 else ""
    drawn = pictures.bars(rows, "Share of variance by component", faint=faint, noise=noise)
    return figure("Variance along the components", f"{words} {_total(subject)}".rstrip(), drawn)


def _share_noise(subject: Subject, ratios: NDArray[np.float64], count: int) -> list[float]:
    """Return the noise of the bars; that of the rest, and of several components together, is not told."""
    told = subject.released("explained_variance_ratio_std")
    noise, total = subject.released("explained_variance_std"), subject.released("total_variance")
    if told is None and (noise is None or total is None or total[0] <= 0.0):
        return [0.0] * count
    errors = noise / total[0] if told is None else told  # type: ignore[index]
    each = errors[: min(len(ratios), _MOST_COMPONENTS)].tolist()
    return [*each, *[0.0] * (count - len(each))]


def _share(part: float, noise: float) -> str:
    if noise == 0.0:
        return share(part)
    about, error = share_with_noise(part, noise)
    return f"{about[:-2]} {error.replace('less than', '<')}"  # one sign for both


def _total(subject: Subject) -> str:
    """Say what the shares are shares of, where that was measured."""
    total, noise = subject.released("total_variance"), subject.released("total_variance_std")
    return "" if total is None or noise is None else f"All of it: {with_noise(total[0], noise[0])}."


def _eigenvalues(subject: Subject) -> Html:
    values = subject.released("eigenvalues")
    if values is None and subject.is_exact:
        return join()
    if values is None:
        return note("This method releases the subspace only, without variances; PrivatePCA releases both.")
    rows = [(f"direction {i + 1}", float(value), number(float(value))) for i, value in enumerate(values)]
    words = "Of the sum of squares of unit-length records. Noise included."
    drawn = pictures.bars(rows[:_MOST_COMPONENTS], "Strength by direction")
    return figure("Strength of the directions (eigenvalues)", words, drawn)


def _loadings(subject: Subject, subspace: Subspace) -> Html:
    if subspace.exact is not None:  # any basis of it is as good as another; the relations say it all
        return join()
    count = min(subspace.dimension, _MOST_COMPONENTS)
    figures = [_component(subject, subspace.basis[:, i], i) for i in range(count)]
    words = "Columns of one colour move together, against those of the other. The squares of all loadings sum to 1."
    if any(subject.loading_std(i) is not None for i in range(count)):
        words += " ± and thin lines: one standard error, due to the noise."
    if not subject.is_pca:
        words += " The components below are one basis of many for the same subspace: read them together."
    one = one_column(subject)
    if count < subspace.dimension:
        words += f" The first {count} of {number(subspace.dimension)} are shown."
    title = element("h3", "Loadings: what each component is made of")
    said = [] if one is None else [element("p", one, class_="banner")]
    return join(title, *said, note(words), element("div", *figures, class_="gallery"))


def _rotated(subject: Subject) -> Html:
    """Show the components rotated to simple structure, if that was asked for."""
    turned = subject.rotated
    if turned is None:
        return join()
    figures, reach = [], max(1.0, float(np.abs(turned.loadings).max()))
    for factor in range(min(turned.loadings.shape[1], _MOST_COMPONENTS)):
        values, errors = turned.loadings[:, factor] / reach, np.nan_to_num(turned.loadings_std[:, factor]) / reach
        rows = [(turned.names[i], float(values[i]), float(errors[i])) for i in _largest(np.abs(values))]
        words = f"Explains {said(turned.variances[factor], turned.variances_std[factor])}."
        name = f"Factor {factor + 1}"
        figures.append(figure(name, words, pictures.diverging_bars(rows, f"Rotated loadings of {name}")))
    words = (
        f"The components rotated by {turned.criterion}, so that few columns have large loadings on each factor. The "
        "subspace and the variance in it are the same."
    )
    words += f" Bars are in units of {number(reach)}, the largest loading." if reach > 1.0 else ""
    pairs = [f"Correlations of the factors: {', '.join(turned.between())}."] if turned.oblique else []
    notes = [note(one) for one in (words, turned.about, *pairs) if one]
    return join(element("h3", "Rotated loadings"), *notes, element("div", *figures, class_="gallery"))


def _component(subject: Subject, loadings: NDArray[np.float64], position: int) -> Html:
    order = _largest(np.abs(loadings))
    errors = subject.loading_std(position)
    rows = [(subject.names[i], float(loadings[i]), 0.0 if errors is None else float(errors[i])) for i in order]
    name = f"Component {position + 1}"
    faint = subject.is_noise(position)
    words = f"{_variance(subject, position)} {_shown(order, loadings**2)}".strip()
    if faint:
        words = f"Cannot be distinguished from noise: read nothing into it. {words}"
    drawn = pictures.diverging_bars(rows, f"Loadings of {name}", faint=faint)
    return figure(name, words, drawn)


def _variance(subject: Subject, position: int) -> str:
    """Say how much variance a component has, with its noise where that is told."""
    ratio = subject.released("explained_variance_ratio")
    variance, noise = subject.released("explained_variance"), subject.released("explained_variance_std")
    if ratio is None:
        return ""
    if variance is None or noise is None:
        return f"{share(ratio[position])} of the variance."
    return f"{share(ratio[position])} of the variance: {with_noise(variance[position], noise[position])}."


def _largest(sizes: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the positions of the largest values that a bar can show, largest first."""
    order = np.argsort(-sizes, kind="stable")[:_MOST_BARS]
    return np.asarray(order[sizes[order] >= _SHORTEST_BAR * sizes[order[0]]])


def _shown(order: NDArray[np.intp], squares: NDArray[np.float64]) -> str:
    """Say which columns a picture shows, and how much they make up."""
    if len(order) == len(squares):
        return ""
    if len(order) < _MOST_BARS:
        return "All others are close to 0."
    part = float(squares[order].sum() / squares.sum())
    return f"The {len(order)} largest of {number(len(squares))}; together {share(part)} of the squares."


def _weights(subject: Subject, subspace: Subspace) -> Html:
    """Show how far each column's axis lies in the subspace; unlike loadings, the same for every basis."""
    if subject.is_pca or subject.is_exact or subspace.dimension == 1:
        return join()
    weights = (subspace.basis**2).sum(axis=1)  # (d,)
    order = _largest(weights)
    rows = [(subject.names[i], float(weights[i]), two_digits(float(weights[i]))) for i in order]
    words = "1 means that the column's own direction lies in the subspace, 0 that it is at right angles to it."
    drawn = pictures.bars(rows, "Share of each column in the subspace")
    return figure("Columns in the subspace", f"{words} {_shown(order, weights)}", drawn)


# ---- What was done to the table, and what was not -----------------------------------------------------------------


def _headed(title: str, said: str | None) -> Html:
    return join() if said is None else join(element("h3", title), element("p", said))


def _units(subject: Subject) -> Html:
    """Say what the columns were divided by, or how they were standardised."""
    if subject.estimates:
        paragraphs = [element("p", sentence) for sentence in standardised(subject)]
        return join(element("h3", "How the columns were standardised"), *paragraphs)
    if subject.released("scale") is None:
        return join()
    words = (
        "Every column was divided by its unit, which was given as public knowledge. Components and variances are "
        "those of columns in these units; means are in those of the table. The units are listed at the end of this "
        "page."
    )
    return _headed("Units of the columns", words)


def standardised(subject: Subject) -> list[str]:
    """Say what standardised columns are, and of which ones little is known."""

    def named(places: list[int]) -> str:
        shown = ", ".join(subject.names[place] for place in places[:_MOST_COMPONENTS])
        return shown if len(places) <= _MOST_COMPONENTS else f"{shown} and {len(places) - _MOST_COMPONENTS} more"

    said = [STANDARDISED[subject.release.parameters["course"] == "deviations"]]
    cut = subject.release.parameters.get("variance_cut", 0.0)
    if isinstance(cut, float) and cut >= _CUT_TO_TELL:
        said.append(f"Long rows were clipped as well: about {cut:.0%} of the variance of these columns is gone.")
    if subject.not_seen:
        said.append(
            f"These columns were given little weight, because {why_little_weight(subject.release)}: "
            f"{named(subject.not_seen)}."
        )
    if subject.mostly_one_value:
        said.append(
            "These columns hold one value in most rows; what counts of a cell is whether it lies above or below that "
            f"value: {named(subject.mostly_one_value)}."
        )
    if subject.without_units:
        said.append(
            f"No mean and no unit are known for {named(subject.without_units)}. Components and shares do not need "
            "them; scores do. Public bounds, more rows or a larger epsilon would provide them."
        )
    return said


def _unmeasured(subject: Subject) -> Html:
    missing = unmeasured(subject)
    if not missing:
        return join()
    return element("p", f"Not measured, because there were too few rows at this budget: {'; '.join(missing)}.")


def unmeasured(subject: Subject) -> list[str]:
    """List what a private PCA had too few rows to measure."""
    if subject.stands_out is None or subject.estimates:
        return []
    missing = []
    if subject.mean_is == "public":
        missing.append("the mean, for which the public centre stands")
    elif subject.mean_is == "absent":
        missing.append("the mean")
    if subject.released("explained_variance") is None:
        missing.append("the size of the variances, of which only shares are told")
    return missing
