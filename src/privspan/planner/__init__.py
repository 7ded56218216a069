"""Which method, what error, how many rows: answers from public numbers alone.

`plan` predicts the error of every method for n rows of d columns, says what ``method="auto"`` would do and why, and
how many rows a wanted error would take.  It never sees data, so asking costs nothing.  Predictions are for
normal records with equal signal variances and a flat tail; unequal variances, heavy tails and outliers make them
optimistic.  Derivations and how far they were checked: docs/explanation/planning.md.
"""

from privspan.planner.forecasts import METHODS, MOST_STABLE_ROWS
from privspan.planner.plans import Plan, plan, plan_pca, plan_standardised, plan_within
from privspan.planner.setting import CROWDED, USELESS

__all__ = [
    "CROWDED",
    "METHODS",
    "MOST_STABLE_ROWS",
    "USELESS",
    "Plan",
    "plan",
    "plan_pca",
    "plan_standardised",
    "plan_within",
]
