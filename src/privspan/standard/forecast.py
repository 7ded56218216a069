"""What a standardised PCA is expected to capture, from public numbers: a curve through real tables.

Fitted on 27 real tables at four budgets; on 86 others (benchmarks/scripts/standardised_tables.py) it is .02 too low
on average, with a root mean square error of .06 to .09.  docs/explanation/standardised.md has the figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privspan.standard.course import data_per_column


@dataclass(frozen=True)
class CurveTuning:
    """Of the curve, as said above."""

    half: float = 22.0  # n mu / sqrt(d) at which half of what can be gained is
    slope: float = 1.3  # exponent: how fast it comes


CURVE = CurveTuning()


def expected_captured(n: int, d: int, k: int, mu: float) -> float:
    """Return the expected share of the best variance that k components of d standardised columns capture.

    Parameters
    ----------
    n, d, k : int
        Rows, columns and components.
    mu : float
        Of the whole budget.
    """
    by_chance = math.sqrt(k / d)  # about what components of pure noise capture
    missing = math.pow(CURVE.half / data_per_column(n, d, mu), CURVE.slope)
    return by_chance + (1.0 - by_chance) / (1.0 + missing)


def needed_rows(captured: float, d: int, k: int, mu: float) -> int | None:
    """Return about the smallest number of rows that is expected to capture so much; None if none is."""
    by_chance = math.sqrt(k / d)
    if captured <= by_chance:
        return 2
    if captured >= 1.0:
        return None
    data = CURVE.half / math.pow((1.0 - by_chance) / (captured - by_chance) - 1.0, 1.0 / CURVE.slope)
    return max(2, math.ceil(data * math.sqrt(d) / mu))
