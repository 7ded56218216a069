"""Pictures of what was released or planned, with matplotlib (``pip install 'privspan[plot]'``).

Every function takes a fitted model or a release (or a plan), draws into the axes that it is given or into new ones,
and returns them; nothing is shown or saved.  Colours follow the background, light or dark.  Standard errors are drawn
wherever they are known, and what cannot be distinguished from noise is pale.

All of it is post-processing of released and public numbers, which costs no privacy: docs/explanation/promise.md.
"""

from privspan.plot.columns import biplot, correlation_circle
from privspan.plot.components import loadings, scree
from privspan.plot.planned import error_against_epsilon, error_against_rows
from privspan.plot.scores import score_map, score_maps
from privspan.plot.spent import budget
from privspan.plot.usual import overview

__all__ = [
    "biplot",
    "budget",
    "correlation_circle",
    "error_against_epsilon",
    "error_against_rows",
    "loadings",
    "overview",
    "score_map",
    "score_maps",
    "scree",
]
