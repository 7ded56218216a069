"""Data for tests, examples and benchmarks: records with a known subspace, and the real tables used on this site.

Nothing here is private. The generators make up their own records and know the subspace behind them; the real tables
are public and come with Python packages, so nothing is ever downloaded.
"""

from privspan._lib.errors import MissingPackageError
from privspan.datasets.clinics import Clinic, clinic
from privspan.datasets.gaussian import TAILS, gaussian_subspace, heavy_tailed_subspace, spiked_subspace
from privspan.datasets.outliers import OUTLIERS, with_outliers
from privspan.datasets.signs import SignRows, sign_subspace
from privspan.datasets.tables import TABLES, RealTable, load

__all__ = [
    "OUTLIERS",
    "TABLES",
    "TAILS",
    "Clinic",
    "MissingPackageError",
    "RealTable",
    "SignRows",
    "clinic",
    "gaussian_subspace",
    "heavy_tailed_subspace",
    "load",
    "sign_subspace",
    "spiked_subspace",
    "with_outliers",
]
