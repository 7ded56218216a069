"""A made-up clinic: several visits a patient, mixed units, words, and gaps.

Three things about a patient that nobody writes down, how old, how healthy and how well off they are, move everything
that is written down at each visit.  `Clinic` holds the visits as a clinic would have them, and the truth behind them.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.arrays import Reals
from privspan._lib.errors import ParameterError

Array = NDArray[np.float64]

SEXES, WARDS = ("f", "m"), ("medicine", "surgery", "maternity")
_NUMBERS = ("age", "bmi", "systolic", "income")
_DECIMALS = {"age": 0, "bmi": 1, "systolic": 0, "income": 0}
_MOST_VISITS = 40


@dataclass(frozen=True)
class Clinic:
    """Visits to a clinic, with gaps, and what they would be without.

    Attributes
    ----------
    patient : (n,) array of str
        Whose each visit is.
    columns : dict of str to (n,) object arrays
        ``age``, ``bmi``, ``systolic`` and ``income``, numbers; ``smoker``, 0 or 1; ``sex`` and ``ward``, words.  None
        is a gap.
    complete : (n, 10) array
        The same as numbers without gaps, words as columns of 0 and 1.
    names : tuple of str
        Of those ten columns.
    """

    patient: NDArray[np.str_]
    columns: dict[str, NDArray[np.generic]]
    complete: Array
    names: tuple[str, ...]

    @property
    def categories(self) -> dict[str, list[str]]:
        """The words that columns may hold, as ``private_pca(categories=…)`` takes them."""
        return {"sex": [*SEXES], "ward": [*WARDS]}

    @property
    def schema(self) -> str:
        """The schema of the file that `to_csv` writes, in TOML."""
        numbers = "".join(f'{name} = "number"\n' for name in _NUMBERS)
        words = "".join(
            f'\n[columns.{name}]\ntype = "category"\ncategories = {levels!r}\n'.replace("'", '"')
            for name, levels in self.categories.items()
        )
        return f'person = "patient"\n\n[columns]\n{numbers}smoker = "boolean"\n{words}'

    def of_patients(self) -> Array:
        """Return the weight of every visit, so that the visits of a patient count as one; (n,)."""
        _, owner, visits = np.unique(self.patient, return_inverse=True, return_counts=True)
        return np.asarray(1.0 / (visits[owner] * len(visits)))

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the visits, a gap as an empty cell."""
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["patient", *self.columns])
            for patient, *cells in zip(self.patient, *self.columns.values(), strict=True):
                writer.writerow([patient, *("" if cell is None else cell for cell in cells)])

    def to_pandas(self) -> Any:
        """Return a pandas data frame of nullable types; ``to_parquet`` of that writes a Parquet file."""
        import pandas as pd

        kinds = {**dict.fromkeys(_NUMBERS, "Float64"), "smoker": "boolean", "sex": "string"}
        table = {"patient": pd.array(self.patient, dtype="string")}
        table |= {name: pd.array(self.columns[name], dtype=kind) for name, kind in kinds.items()}
        table["ward"] = pd.Categorical(self.columns["ward"], categories=list(WARDS))
        return pd.DataFrame(table)[["patient", *self.columns]]


def clinic(
    patients: int = 6_000, visits: int = 20_000, *, gaps: float = 0.08, rng: int | np.random.Generator | None = None
) -> Clinic:
    """Make up a clinic.

    Parameters
    ----------
    patients, visits : int
        Every patient comes at least once, and at most 40 times.
    gaps : float
        Share of the cells that are missing, at random.
    rng : int or numpy.random.Generator, optional
        Source of randomness.

    Returns
    -------
    Clinic

    Examples
    --------
    >>> made = clinic(300, 1_000, rng=0)
    >>> made.complete.shape, made.names[4:7]
    ((1000, 10), ('smoker', 'sex=f', 'sex=m'))
    """
    checks.integer_at_least(1, patients=patients)
    checks.integer_at_least(patients, visits=visits)
    checks.non_negative(gaps=gaps)
    if visits > _MOST_VISITS * patients or gaps >= 1.0:
        raise ParameterError(
            "{visits} must be at most {most_visits} a patient, and {gaps} below 1.", most_visits=_MOST_VISITS
        )
    generator = np.random.default_rng(rng)
    owner = generator.permutation(_owners(patients, visits, generator))
    factors = generator.standard_normal((patients, 3))[owner]  # age, health, means; (visits, 3)
    columns = _columns(factors, owner, generator)
    words = [columns[name] == level for name, levels in (("sex", SEXES), ("ward", WARDS)) for level in levels]
    complete = np.column_stack([*(columns[name] for name in (*_NUMBERS, "smoker")), *words])
    names = (*_NUMBERS, "smoker", *(f"sex={sex}" for sex in SEXES), *(f"ward={ward}" for ward in WARDS))
    for name, values in columns.items():
        cells = np.array(values.tolist(), dtype=object)
        cells[generator.random(visits) < gaps] = None
        columns[name] = cells
    labels = np.array([f"P{number:05d}" for number in generator.permutation(patients)])
    return Clinic(labels[owner], columns, complete.astype(np.float64), names)


def _owners(patients: int, visits: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Return whose each visit is: everybody comes once, and those who like it more often; (visits,)."""
    places = np.repeat(np.arange(patients), _MOST_VISITS - 1)
    liking = np.repeat(generator.exponential(size=patients), _MOST_VISITS - 1)
    keys = generator.exponential(size=len(places)) / np.maximum(liking, 1e-9)
    return np.concatenate([np.arange(patients), places[np.argsort(keys)[: visits - patients]]])


def _columns(
    factors: Array, owner: NDArray[np.intp], generator: np.random.Generator
) -> dict[str, NDArray[np.generic]]:
    """Write down what the factors move, each patient's words and age the same at every visit."""
    age, health, means = factors.T
    people = int(owner.max()) + 1
    own = generator.standard_normal((people, 4))[owner]  # of the patient, beside the factors
    now = generator.standard_normal((len(owner), 4))  # of the day
    women = 0.9 * means + 0.4 * own[:, 0] > 0.0
    ill = 0.8 * health + 0.6 * own[:, 1]
    ward = np.where(ill > 0.6, 1, np.where(women & (age < 0.0), 2, 0))
    written = {
        "age": 48.0 + 17.0 * (0.97 * age + 0.24 * own[:, 2]),
        "bmi": 26.5 + 4.2 * (0.35 * age + 0.85 * health + 0.3 * own[:, 3] + 0.25 * now[:, 0]),
        "systolic": 128.0 + 16.0 * (0.75 * age + 0.5 * health + 0.4 * now[:, 1]),
        "income": 38_000.0 + 11_000.0 * (0.25 * age - 0.2 * health + 0.9 * means + 0.25 * now[:, 2]),
    }
    numbers: dict[str, Reals] = {name: np.round(values, _DECIMALS[name]) for name, values in written.items()}
    smoker = (0.9 * health + 0.4 * own[:, 0] > 0.5).astype(np.int64)
    words = {"sex": np.array(SEXES)[np.where(women, 0, 1)], "ward": np.array(WARDS)[ward]}
    return {**numbers, "smoker": smoker, **words}
