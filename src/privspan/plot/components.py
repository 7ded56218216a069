"""How much variance each component has, and what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan._lib.in_words import number, share
from privspan.plot._drawing import Colours, axes, colours, name_of, plainly, reading_of
from privspan.privacy.reading import Reading
from privspan.privacy.rotated import Rotated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

_FAINT = 0.3  # opacity of what cannot be distinguished from noise
_FEW, _MANY = 3, 20  # components: there is room for a few, and with many, bars are drawn without gaps


def scree(source: object, *, ax: Axes | None = None) -> Axes:
    """Draw the share of the variance along each component, with the noise of each.

    Parameters
    ----------
    source : fitted model or Release
        Of a private PCA, or of another method that releases variances or eigenvalues.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import privspan as ps
    >>> from privspan.datasets import gaussian_subspace
    >>> X, _ = gaussian_subspace(5_000, 8, 2, gamma_w=0.1, rng=0)
    >>> ps.plot.scree(ps.private_pca(X, 3, epsilon=1.0, delta=1e-6)).get_xlabel()
    'component'
    """
    reading = reading_of(source, None)
    heights, noise, label = _heights(reading)
    ax = axes(ax, (6.0, 3.6))
    palette, places = colours(ax), np.arange(1, len(heights) + 1)
    for faint in (False, True):
        of = np.array([reading.is_noise(i) is faint for i in range(len(heights))], dtype=bool)
        if of.any():
            words = "cannot be distinguished from noise" if faint else "stands out of the noise"
            width = 0.7 if len(heights) <= _MANY else 1.0
            opacity = _FAINT if faint else 1.0
            ax.bar(places[of], heights[of], width=width, color=palette.blue, alpha=opacity, label=words)
    if noise is not None:
        caps = 3 if len(heights) <= _MANY else 0
        ax.errorbar(places, heights, yerr=noise, fmt="none", ecolor=palette.soft, capsize=caps, lw=1.2)
    ax.set(xlabel="component", ylabel=label, title=_captured(reading))
    ax.title.set_fontsize("medium")
    if len(heights) <= _MANY:
        ax.set_xticks(places)
    ax.set_xlim(0.4, max(len(heights), _FEW) + 0.6)  # so that a single bar is still a bar
    ax.set_ylim(bottom=0.0)
    if any(reading.is_noise(i) for i in range(len(heights))):
        ax.legend(frameon=False, labelcolor=palette.ink)
    plainly(ax, palette)
    return ax


def _heights(reading: Reading) -> tuple[Array, Array | None, str]:
    """Return what the bars show, its noise where that is told, and what it is called."""
    ratios, variances = reading.released("explained_variance_ratio"), reading.released("explained_variance")
    if ratios is not None:
        noise, total = reading.released("explained_variance_std"), reading.released("total_variance")
        if noise is not None and total is not None and total[0] > 0.0:
            return ratios, noise / total[0], "share of the variance, ± noise"
        return ratios, None, "share of the variance"
    for values, words in ((variances, "variance"), (reading.released("eigenvalues"), "eigenvalue")):
        if values is not None:
            return values, None, words
    raise ParameterError("this release holds no variances; those of `PrivatePCA` and `private_pca` do.")


def _captured(reading: Reading) -> str:
    if reading.captured is None:
        return ""
    about, error = reading.captured
    return f"captures about {about} ({error})\nof the variance that the best {reading.k} would"


def loadings(
    source: object,
    component: int = 0,
    *,
    most: int = 15,
    columns: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the largest loadings of a component, with their standard errors.

    Parameters
    ----------
    source : fitted model, Release or Rotated
        A fitted model or release with a subspace, or its rotation by ``rotate``.
    component : int, default=0
        Number of the component or factor, from 0.
    most : int, default=15
        How many columns to show, of those with the largest loadings.
    columns : sequence of str, optional
        Names of the columns; by default those of the model or release, or their numbers.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes
    """
    if isinstance(source, Rotated):
        (values, errors), names, noise = factor_of(source, component), columns or source.names, False
        title = f"factor {component + 1}, by {source.criterion}"
    else:
        reading = reading_of(source, columns)
        values, errors, names = component_of(reading, component), reading.loading_std(component), reading.names
        title, noise = _title(reading, component), reading.is_noise(component)
    order = largest(np.abs(values), most)
    ax = axes(ax, (6.0, 1.2 + 0.27 * len(order)))
    palette = colours(ax)
    _bars(ax, palette, values[order], None if errors is None else errors[order], _FAINT if noise else 1.0)
    ax.set_yticks(range(len(order)), [name_of(names[i]) for i in order])
    ax.invert_yaxis()
    shown = "" if len(order) == len(values) else f"; the {len(order)} largest of {number(len(values))}"
    ax.set_xlabel(f"loading{', ± standard error of the noise' if errors is not None else ''}{shown}")
    ax.set_title(title, fontsize="medium")
    plainly(ax, palette)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _bars(ax: Axes, palette: Colours, values: Array, errors: Array | None, opacity: float) -> None:
    tints = [palette.orange if value < 0 else palette.blue for value in values]
    ax.barh(range(len(values)), values, color=tints, alpha=opacity, height=0.72)
    if errors is not None:
        ax.errorbar(values, range(len(values)), xerr=errors, fmt="none", ecolor=palette.soft, capsize=2.5, lw=1.2)
    ax.axvline(0.0, color=palette.soft, lw=0.8)


def _title(reading: Reading, component: int) -> str:
    ratios = reading.released("explained_variance_ratio")
    part = "" if ratios is None else f": {share(float(ratios[component]))} of the variance"
    if not reading.is_pca and (reading.k or 1) > 1:
        return f"direction {component + 1} of one basis of many"
    noise = "\n(cannot be distinguished from noise)" if reading.is_noise(component) else ""
    return f"component {component + 1}{part}{noise}"


def component_of(reading: Reading, component: int) -> Array:
    """Return the loadings of a component, (d,), or refuse what there is not."""
    subspace = reading.release.subspace
    if subspace is None:
        raise ParameterError("nothing was released: the method abstained.")
    checks.integer_at_least(0, component=component)
    if component >= subspace.dimension:
        raise ParameterError(
            "{component} must be below {dimension}; got {got}.", dimension=subspace.dimension, got=int(component)
        )
    return np.asarray(subspace.basis[:, int(component)])


def factor_of(rotated: Rotated, factor: int) -> tuple[Array, Array | None]:
    """Return the loadings on a factor, (d,), and their errors, if these are told."""
    k = rotated.loadings.shape[1]
    checks.integer_at_least(0, component=factor)
    if factor >= k:
        raise ParameterError("{component} must be below {k}; got {got}.", k=k, got=int(factor))
    errors = rotated.loadings_std[:, int(factor)]
    return rotated.loadings[:, int(factor)], errors if np.isfinite(errors).all() else None


def largest(sizes: Array, most: int) -> NDArray[np.intp]:
    """Return the positions of the largest values, largest first."""
    checks.integer_at_least(1, most=most)
    return np.argsort(-sizes, kind="stable")[: int(most)]
