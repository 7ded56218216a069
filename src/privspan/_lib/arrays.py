"""Kinds of arrays, as types."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Reals: TypeAlias = NDArray[np.bool_ | np.integer | np.floating]
"""Numbers of any type that a table may hold, from booleans to float64."""

Floats: TypeAlias = NDArray[np.floating]
"""Floats of either width that is computed in."""
