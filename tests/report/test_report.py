"""The report: says what it should, cannot be broken into, holds public and released values only, and opens."""

import html
import json
import shutil
import subprocess
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privspan as ps
from privspan._lib.in_words import number, with_noise
from privspan._lib.markup import Html, element, shortened
from privspan.datasets import gaussian_subspace
from privspan.ledger.release_file import KNOWN_METHODS
from privspan.privacy import PERSONS, Part, PrivacyCost
from privspan.privacy.reading import plain_step
from privspan.report import Record, report_html, write_report
from privspan.report.words import about_method, chance_of_harm, chance_to_guess, program, why_little_weight
from privspan.rows import open_rows

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


class Reader(HTMLParser):
    """Collects the words and the tags of a page, and checks that tags close in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "title"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())  # no-break spaces become plain ones

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def pictures(page: str) -> list[str]:
    return [str(attributes["aria-label"]) for attributes in Reader(page).named("svg")]


@pytest.fixture(scope="module")
def pca() -> ps.PrivatePCA:
    X, _ = gaussian_subspace(3_000, 15, 2, gamma_w=0.1, rng=0)
    return ps.PrivatePCA(2, **BUDGET).fit(X + 1.0)


@pytest.fixture(scope="module")
def exact() -> ps.Release:
    parts = np.random.default_rng(0).integers(1, 100, (120, 2))
    table = np.column_stack([parts, parts.sum(axis=1)])
    return ps.exact_subspace(table, 2, **BUDGET, names=["rent", "food", "total"])


def a_release(method: str, subspace: ps.Subspace | None = None, **fields: object) -> ps.Release:
    return ps.Release(subspace, PrivacyCost(1.0, 1e-6), method, **fields)  # type: ignore[arg-type]


def a_subspace(d: int, k: int) -> ps.Subspace:
    return ps.Subspace.from_spanning(np.random.default_rng(d).standard_normal((d, k)))


# --- What it says --------------------------------------------------------------------------------------


def test_a_pca_shows_spectrum_loadings_plan_and_budget(pca: ps.PrivatePCA) -> None:
    names = [f"question {i}" for i in range(15)]
    page = report_html(pca.release_, plan=pca.plan_, columns=names, record=Record("A survey of 2025"))
    shown, text = pictures(page), Reader(page).text
    assert shown[0] == "Share of variance by component"
    assert shown[1:3] == ["Loadings of Component 1", "Loadings of Component 2"]
    assert {"Predicted error by method", "Shares of the budget by step"} <= set(shown)
    largest = names[int(np.abs(pca.components_[0]).argmax())]
    assert largest in text
    assert "A survey of 2025" in text
    assert f"for ideal data, the plan predicts an error of {number(pca.plan_.error, 2)}" in text
    assert "(3,000 rows, 15 columns" in text
    assert ps.__version__ in text


def test_a_rotation_is_shown_after_the_components(pca: ps.PrivatePCA) -> None:
    page = report_html(pca.release_, rotated=pca.rotate("promax"))
    assert {"Loadings of Component 1", "Rotated loadings of Factor 1"} <= set(pictures(page))
    text = Reader(page).text
    assert "The components rotated by promax" in text
    assert "Correlations of the factors: 1 and 2: " in text
    assert "Rotated loadings" not in report_html(pca.release_)


def test_a_pca_leads_with_what_it_captured_and_what_is_noise() -> None:
    release = everyday(found=1)
    text = Reader(report_html(release)).text
    assert "3 components of 4 columns, which capture about 93 % (± 8 %) of the variance that the best 3" in text
    assert "The first stands out of the noise; the other 2 cannot be distinguished from noise." in text
    assert text.count("Cannot be distinguished from noise: read nothing into it.") == 2
    assert "Component 1 50 % of the variance: 8.00 ± 0.25" in text.replace("Component 150", "Component 1 50")
    assert "About 12 rows (± 4) lay farther than 9.5 from the centre and were clipped to that distance" in text
    assert "estimated from noisy averages, in 3 rounds" in text
    page = report_html(release)
    assert page.count("bar faint") > 2
    whole = Reader(report_html(everyday(found=3))).text
    assert "All of them stand out of the noise." in whole
    assert "read nothing into it" not in whole


@pytest.mark.parametrize(
    ("course", "estimates", "said"),
    [
        ("ranks", "rank correlations", "Pairs of rows were compared column by column"),
        ("deviations", "correlations of winsorised columns", "divided by its standard deviation, both measured"),
    ],
)
def test_how_columns_were_standardised_is_said(course: str, estimates: str, said: str) -> None:
    units = {"scale": np.array([16.0, 3.0, 500.0, 1.0]), "scale_std": np.array([0.5, 0.1, 20.0, 0.0])}
    told = {"scale": True, "course": course, "estimates": estimates}
    told |= {"without_units": (3,), "not_seen": (1,), "mostly_one_value": (2,)}
    release, columns = everyday(extras=units, parameters=told), ["age", "bmi", "income", "visits"]
    text = Reader(report_html(release, columns=columns)).text
    assert said in text
    assert f"by {estimates}" in text
    assert f", by {estimates}" in release.headline
    assert "No mean and no unit are known for visits." in text
    assert "given little weight, because they vary too little to be seen at this budget: bmi." in text
    assert "above or below that value: income." in text
    assert "age 40.10 ± 0.25 16.00 ± 0.50" in spaced(release, columns)
    assert "visits not known not known" in spaced(release, columns)


def test_public_units_are_said_to_be_public() -> None:
    units = {"scale": np.array([16.0, 3.0, 500.0, 1.0]), "scale_std": np.array([0.5, 0.1, 20.0, 0.0])}
    public = everyday(extras=units, parameters={})
    assert "given as public knowledge" in Reader(report_html(public)).text
    assert "bounds= take them" in Reader(report_html(public)).text


@pytest.mark.parametrize(
    ("centring", "stands"), [("pair differences", "the mean;"), ("public centre", "public centre")]
)
def test_what_was_not_measured_is_said_so(centring: str, stands: str) -> None:
    absent = ("explained_variance", "explained_variance_std", "total_variance", "total_variance_std", "mean_std")
    short = everyday(without=(*absent, "clip"), parameters={"centring": centring, "course": "pairs", "rounds": 0})
    text = Reader(report_html(short)).text
    assert "Not measured, because there were too few rows at this budget: the mean" in text
    assert stands in text
    assert "rows were paired at random" in text
    assert "were clipped" not in text
    for word in ("nan", "inf"):
        assert f" {word} " not in text
    odd = a_release("private PCA", a_subspace(4, 2), extras={"total_variance": np.nan, "clip": np.inf})
    assert "not measured" in Reader(report_html(odd)).text
    assert "nan" not in Reader(report_html(odd)).text


@pytest.mark.parametrize(
    "course", ["clipped look", "two looks", "one look", "pairs", "centre not found", "near a subspace"]
)
def test_every_course_is_told_in_words(course: str) -> None:
    text = Reader(report_html(everyday(parameters={"course": course}))).text
    assert "rows" in text.split("(in the code: private PCA). ")[1][:200]
    assert about_method("private PCA").how not in text


def everyday(
    found: int = 3, extras: dict | None = None, parameters: dict | None = None, without: tuple[str, ...] = ()
) -> ps.Release:
    """A release as the everyday course makes it, of three components of four columns."""
    told = {"centring": "localised rounds", "course": "two looks", "rounds": 3, "n": 900, "d": 4, "scale": False}
    released = {
        "explained_variance_ratio": np.array([0.5, 0.2, 0.1]),
        "explained_variance": np.array([8.0, 3.2, 1.6]),
        "explained_variance_std": np.full(3, 0.25),
        "total_variance": 16.0,
        "total_variance_std": 0.5,
        "mean": np.array([40.1, 25.0, 3.0, 0.0]),
        "mean_std": np.full(4, 0.25),
        "captured_variance": 0.934,
        "captured_variance_std": 0.08,
        "stands_out": found,
        "clip": 9.5,
        "rows_shortened": 12.3,
        "rows_shortened_std": 4.1,
        **(extras or {}),
    }
    kept = {name: value for name, value in released.items() if name not in without}
    return a_release("private PCA", a_subspace(4, 3), parameters={**told, **(parameters or {})}, extras=kept)


def spaced(release: ps.Release, columns: list[str]) -> str:
    """The words of a page, with blanks between the cells of its tables."""
    return Reader(report_html(release, columns=columns).replace("</td>", " </td>")).text


def test_the_promise_is_translated(exact: ps.Release) -> None:
    text = Reader(report_html(exact)).text
    assert "at most 73.2 % of the time" in text
    assert "at most 2.8 % with yours" in text
    assert "one in 1,000,000" in text


def test_running_it_again_costs_as_much_again(exact: ps.Release) -> None:
    twice = f"ε = {number(2.0)}, δ = {number(2e-6)}"
    assert f"Running this again on the same people makes it {twice}" in Reader(report_html(exact)).text


def test_the_page_says_whether_rows_or_persons_are_hidden(exact: ps.Release) -> None:
    of_rows = Reader(report_html(exact)).text
    parameters = {**exact.parameters, "max_rows": 8}
    persons = replace(exact, cost=replace(exact.cost, neighbours=PERSONS), parameters=parameters)
    of_persons = Reader(report_html(persons)).text
    assert "What is hidden is any one record" in of_rows
    assert "What is hidden is any one person" not in of_rows
    assert "What is hidden is any one person" in of_persons
    assert "What is hidden is any one record" not in of_persons


def test_an_exact_release_is_told_in_relations(exact: ps.Release) -> None:
    text = Reader(report_html(exact)).text
    assert "total = rent + food" in text
    assert "1 exact relation holds between the 3 columns" in text
    renamed = Reader(report_html(exact, columns=["a", "b", "c"])).text
    assert "c = a + b" in renamed


def test_relations_too_many_to_list_are_counted() -> None:
    table = np.random.default_rng(0).integers(-9, 10, (80, 1)) * np.arange(1, 801)
    release = ps.exact_subspace(table, 1, **BUDGET)
    assert "There are 799 independent relations" in Reader(report_html(release)).text


def test_an_abstention_is_said_first_and_shows_no_components() -> None:
    variances = {"explained_variance": np.array([3.0, 1.0]), "total_variance": 9.0, "mean": np.array([5.0, 7.0])}
    page = report_html(a_release("private PCA (stable)", extras=variances), columns=["a", "b"])
    reader = Reader(page)
    assert "Nothing was released: the method abstained" in reader.text
    assert "cost the full budget" in reader.text
    assert "Share of variance by component" not in pictures(page)


def test_a_seeded_release_promises_nothing() -> None:
    text = Reader(report_html(a_release("adaptive", a_subspace(5, 2), private=False))).text
    assert "Not private." in text
    assert "Nothing is promised: a seed was given." in text
    assert "No seed: this does not hold here." in text
    assert "a strong promise" not in text
    assert "confidence" not in text


def test_large_tables_show_their_largest_loadings_only() -> None:
    names = [f"gene {i}" for i in range(5_000)]
    subspace = a_subspace(5_000, 20)
    page = report_html(a_release("stable", subspace), columns=names)
    text = Reader(page).text
    assert len(page) < 150_000
    assert names[int(np.abs(subspace.basis[:, 0]).argmax())] in text
    assert "The first 12 of 20 are shown." in text


def test_loadings_of_nothing_are_not_drawn() -> None:
    page = report_html(a_release("adaptive", ps.Subspace(np.eye(6)[:, :1])))
    assert "All others are close to 0." in Reader(page).text
    assert "column 2" not in page.split("What was released")[1].split("Privacy sheet")[0]


@pytest.mark.parametrize("method", [*ps.baselines.__all__, "approximate_subspace", "exact_subspace"])
def test_every_algorithm_can_be_reported(method: str) -> None:
    X = np.random.default_rng(0).integers(-5, 6, (60, 4)).astype(float)
    algorithm = getattr(ps.baselines, method, None) or getattr(ps, method)
    release = algorithm(X, 2, **BUDGET)
    text = Reader(report_html(release)).text
    assert release.method in text
    assert about_method(release.method).title in text


def test_a_method_of_the_future_is_reported_too() -> None:
    assert "a new method" in Reader(report_html(a_release("a new method", a_subspace(4, 1)))).text


def test_the_proofs_that_are_named_exist() -> None:
    folder = Path(__file__).parents[2] / "docs" / "explanation"
    assert [about.page for about in KNOWN_METHODS.values() if not (folder / f"{about.page}.md").exists()] == []


# --- Numbers in words ----------------------------------------------------------------------------------


def test_the_chance_to_guess_is_that_of_the_best_test() -> None:
    # Randomised response that reveals the truth with probability delta attains (epsilon, delta).
    for epsilon, delta in [(0.1, 0.0), (1.0, 1e-6), (2.0, 0.05), (800.0, 0.1)]:
        honest = (1.0 - delta) / (1.0 + np.exp(-epsilon)) + delta
        assert chance_to_guess(PrivacyCost(epsilon, delta)) == pytest.approx(honest)


def test_a_harm_grows_by_at_most_the_promise() -> None:
    assert chance_of_harm(PrivacyCost(1.0, 1e-3), 0.01) == pytest.approx(np.e / 100 + 1e-3)
    assert chance_of_harm(PrivacyCost(5_000.0, 0.0), 0.01) == 1.0


@pytest.mark.parametrize(
    ("value", "written"), [(1e-6, "1e-6"), (1500, "1,500"), (0.02345, "0.0234"), (1530.6, "1,531"), (1e20, "1e20")]
)
def test_numbers_are_written_for_people(value: float, written: str) -> None:
    assert number(value) == written


@pytest.mark.parametrize(
    ("value", "noise", "written"),
    [
        (4.9712, 0.214, "4.97 ± 0.21"),
        (36_491.0, 523.0, "36,490 ± 520"),
        (-0.5, 0.05, "−0.500 ± 0.050"),
        (3.0, 0.0, "3"),
        (1e-9, 1e-10, "1e−9 ± 1e−10"),
    ],
)
def test_noise_decides_how_many_digits_are_written(value: float, noise: float, written: str) -> None:
    assert with_noise(value, noise) == written


def test_of_budgets_of_two_kinds_gaussian_steps_share_what_others_leave_of_epsilon() -> None:
    parts = (Part("choice", 0.4, 0.0), Part("noise", 0.5, 1e-6, mu=0.1), Part("unit look", 0.4, 1e-6, mu=0.05))
    page = report_html(ps.Release(a_subspace(4, 2), PrivacyCost(1.0, 1e-6, parts=parts), "adaptive"))
    assert "Shares of the budget by step" in pictures(page)
    text = Reader(page).text
    assert "Its 3 steps" in text
    assert "noise 48 %" in text
    assert "choice 40 %" in text
    assert "covariance of rows scaled to length 1 12 %" in text  # in plain words


def test_an_exact_report_speaks_of_no_noise_and_draws_no_basis(exact: ps.Release) -> None:
    page = report_html(exact)
    text = Reader(page).text
    assert "it carries no noise" in text
    assert "Another run finds the same subspace, or abstains" in text
    assert "noise is fresh" not in text
    assert "dimensions 2 as asked for, out of 3 columns" in " ".join(Reader(page).words)
    assert not [label for label in pictures(page) if label.startswith("Loadings")]


def test_loadings_have_their_errors_in_pictures_and_tables(pca: ps.PrivatePCA) -> None:
    page = report_html(pca.release_)
    largest = int(np.abs(pca.components_[0]).argmax())
    value, error = pca.components_[0, largest], pca.components_std_[0, largest]
    text = Reader(page).text
    assert with_noise(value, error) in text
    assert f"{value:.2f} ± {np.ceil(100 * error) / 100:.2f}" in text
    assert page.count('class="whisker"') > 4


def test_a_method_leads_with_its_own_error_and_not_with_that_of_a_plan() -> None:
    released = a_release(
        "adaptive", a_subspace(9, 2), parameters={"expected_error": 0.05, "stands_out": 1, "k": 2, "d": 9}
    )
    plan = ps.plan(900, 9, 2, **BUDGET, center=False)
    text = Reader(report_html(released, plan=plan)).text
    assert "turned by noise" in text
    assert "planned error" not in text
    assert text.index("noise turned the directions by about 2.9°") < text.index("The plan, for ideal data")
    assert "Only 1 of the 2 could be distinguished from noise." in text
    for word in ("gamma", "kappa", "mu²"):
        assert word not in text.split("How to reproduce it")[0]


def test_the_program_runs_and_has_the_same_cost(pca: ps.PrivatePCA, exact: ps.Release, tmp_path: Path) -> None:
    table = np.random.default_rng(0).standard_normal((60, 4))
    for release in (
        pca.release_,
        exact,
        ps.approximate_subspace(table, 2, **BUDGET),
        ps.private_subspace(table, 2, **BUDGET, method="adaptive"),
    ):
        code = program(release, 2).replace("report.html", str(tmp_path / "report.html"))
        scope: dict[str, object] = {"table": table, "names": list("abcd")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.AbstentionWarning)
            warnings.simplefilter("ignore", ps.UselessPlanWarning)
            exec(code, scope)
        again = scope["release"] if "release" in scope else scope["model"].release_  # type: ignore[attr-defined]
        assert (again.method.split("/")[0], again.cost.epsilon) == (release.method.split("/")[0], 1.0)
    assert "<!DOCTYPE html>" in (tmp_path / "report.html").read_text("utf-8")


def test_the_code_repeats_what_was_declared() -> None:
    robust = a_release("private PCA (standardised columns)", parameters={"robust": True, "scale": True})
    assert "scale=True, robust=True)" in str(program(robust, 2))
    table = np.random.default_rng(0).standard_normal((900, 2)) + 3.0
    release = ps.private_pca(table, 1, **BUDGET, bounds={0: (0, 6)})
    assert release.parameters["declared"] == {"bounds": {"0": (0.0, 6.0)}}
    page = Reader(report_html(release)).text
    assert "Bounds: column 1 0 to 6." in page
    assert "bounds={0: (0.0, 6.0)}" in page


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": {"a": (-9, 9)}, "units": {"b": 2.0}, "around": {"a": 1.0, "b": 1.0}},
        {"categories": {"sex": ["f", "m"]}},
        {"scale": "ranks", "missing": "zero-row"},
        {"robust": True, "center": False},
        {"method": "adaptive"},
    ],
)
def test_the_code_on_the_page_makes_the_same_release_again(options: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((900, 3)) + 1.0, columns=list("abc"))
    if "categories" in options:
        table["sex"] = rng.choice(["f", "m"], 900)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.UselessPlanWarning)
        release = ps.private_pca(table, 1, **BUDGET, **options)
        again = ps.Release.load(release.save(tmp_path / "release"))  # a page is often made from a file
        scope: dict[str, Any] = {"table": table, "names": list(again.subspace.names)}
        exec(program(again, 1).replace("report.html", str(tmp_path / "report.html")), scope)
    public = ("declared", "robust", "scale", "course", "gaps", "centring", "n", "d", "k")
    for name in public:
        assert scope["release"].parameters.get(name) == release.parameters.get(name), name


def test_a_command_and_its_schema_are_shown_as_they_were_typed(pca: ps.PrivatePCA) -> None:
    record = Record(
        "people.csv", command="privspan fit people.csv --schema s.toml", schema='[columns]\nage = "number"'
    )
    text = Reader(report_html(pca.release_, record=record)).text
    assert "privspan fit people.csv --schema s.toml" in text
    assert 'age = "number"' in text
    assert "ps.private_pca" not in text


def test_the_circumstances_stand_on_the_page(pca: ps.PrivatePCA) -> None:
    bare = Reader(report_html(pca.release_)).text
    assert bare.count("not recorded") >= 3
    record = Record("Survey", by="Office", purpose="year book", date="2026-01-02", left_out=(("name", "text"),))
    text = Reader(report_html(pca.release_, record=record)).text
    for said in ("2026-01-02", "Office", "year book", "name (text)", "every row was taken as a different person"):
        assert said in text
    with pytest.raises(TypeError, match="of the wrong type"):
        Record(by=3)  # type: ignore[arg-type]


# --- What it must not do -------------------------------------------------------------------------------


def test_nothing_given_can_break_out_of_the_page() -> None:
    evil = "<script>alert(1)</script>\"'&\u202e\x00\ud800</svg>"
    release = a_release(evil, a_subspace(3, 2), parameters={evil: evil}, extras={evil: [evil]})
    page = report_html(
        release,
        columns=[evil + str(i) for i in range(3)],
        title=evil,
        record=Record(evil, by=evil, purpose=evil, left_out=((evil, evil),), ledger=(evil,), schema=evil),
    )
    reader = Reader(page)
    assert reader.named("script") == []
    assert "<script" not in page
    assert not {"\u202e", "\x00"} & set(page)
    assert '<script>alert(1)</script>"' in reader.text  # shown as text
    page.encode("utf-8")


def test_markup_escapes_strings_and_keeps_markup() -> None:
    assert element("p", "a < b", Html("<b>"), class_='x"y') == '<p class="x&quot;y">a &lt; b<b></p>'


def test_long_names_are_cut_in_the_middle() -> None:
    assert shortened("short", 10) == "short"
    assert shortened("a name that is far too long", 12) == "a name …long"
    assert len(shortened("列" * 40, 12)) <= 7


def test_the_page_loads_nothing(pca: ps.PrivatePCA) -> None:
    page = report_html(pca.release_, plan=pca.plan_)
    reader = Reader(page)
    assert {"script", "link", "img", "iframe", "object", "a", "image", "use"}.isdisjoint(
        {tag for tag, _ in reader.tags}
    )
    assert not any({"src", "href", "srcset", "style", "onload"} & set(attributes) for _, attributes in reader.tags)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_the_page_depends_on_the_release_only() -> None:
    # Two tables that differ everywhere, one release: an exact subspace carries no noise.
    rng = np.random.default_rng(0)
    pages = []
    for scale in (10, 10_000):
        parts = rng.integers(1, scale, (200, 2))
        release = ps.exact_subspace(np.column_stack([parts, parts.sum(axis=1)]), 2, **BUDGET)
        pages.append(report_html(release, columns=["a", "b", "total"]))
    assert pages[0] == pages[1]


def test_the_report_takes_no_data() -> None:
    # A table in the place of a release is refused, and not quoted.
    with pytest.raises(TypeError, match="got ndarray") as caught:
        report_html(np.full((2, 2), 31415.0))  # type: ignore[arg-type]
    assert "31415" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["only one"]}, "`columns` must hold 3 names"),
        ({"columns": "abc"}, "`columns` must be a sequence of str"),
        ({"columns": [1, 2, 3]}, "`columns` must be a sequence of str"),
        ({"plan": 0.1}, "`plan` must be a Plan"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str, exact: ps.Release) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        report_html(exact, **arguments)  # type: ignore[arg-type]


def test_a_file_is_replaced_whole_or_left_alone(tmp_path: Path, exact: ps.Release) -> None:
    path = tmp_path / "report.html"
    write_report(path, exact, title="First")
    with pytest.raises(ValueError, match="`columns`"):
        write_report(path, exact, columns=["a"])
    assert "<title>First</title>" in path.read_text("utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


# --- In a browser --------------------------------------------------------------------------------------

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


def browse(page: Path, tmp_path: Path) -> tuple[str, str]:
    """Return the document as the browser sees it, and what it wrote to its console."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", "--dump-dom"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    run = subprocess.run(
        [str(CHROMIUM), *options, profile, page.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    console = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    return run.stdout, "\n".join(console)


@needs_chromium
def test_a_browser_shows_the_figures_and_has_no_complaint(pca: ps.PrivatePCA, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(path, pca.release_, plan=pca.plan_, columns=[f"<b>{i}" for i in range(15)])
    document, console = browse(path, tmp_path)
    assert console == ""
    assert pictures(path.read_text("utf-8")) == pictures(document)
    assert document.count("<rect") > 30
    # The same browser does complain about a page that has something to complain about.
    path.write_text(path.read_text("utf-8").replace("</main>", "<script>alert(1)</script></main>"), encoding="utf-8")
    assert "Content Security Policy" in browse(path, tmp_path)[1]


@needs_chromium
def test_nothing_is_wider_than_a_phone(pca: ps.PrivatePCA, tmp_path: Path) -> None:
    page = report_html(pca.release_, plan=pca.plan_, columns=[f"{'long_name_' * 9}{i}" for i in range(15)])
    page = page.replace("<details>", "<details open>")
    measure = "root = this.contentDocument.documentElement; document.title = root.scrollWidth - root.clientWidth"
    frame = (
        f'<iframe width="360" height="800" style="border:0" srcdoc="{html.escape(page)}" onload="{measure}"></iframe>'
    )
    path = tmp_path / "frame.html"
    path.write_text(f"<!DOCTYPE html><title>-</title>{frame}", encoding="utf-8")
    document, _ = browse(path, tmp_path)
    assert "<title>0</title>" in document


# --- What somebody who has to approve it asks ----------------------------------------------------------


def test_the_sheet_has_every_point_and_an_entry_to_paste(pca: ps.PrivatePCA) -> None:
    record = Record("Survey", by="Office", purpose="year book", reviewed_by="A. Reader", left_out=(("name", "text"),))
    page = report_html(pca.release_, record=record)
    text = Reader(page).text
    sheet = text.split("Privacy sheet")[1]
    for point in ("Unit", "Relation", "Not protected", "Small groups", "Several releases", "Arithmetic", "A. Reader"):
        assert point in sheet
    assert "ε = 4" in sheet  # four rows together
    code = html.unescape(page.split("Entry for a registry")[1].split("<code>")[1].split("</code>")[0])
    entry = json.loads(code)
    assert entry["claims"] == pca.release_.sheet()["claims"]
    assert (entry["curator"], entry["unit_of_privacy"], entry["columns_left_out"]) == (
        "Office",
        "row",
        {"name": "text"},
    )


def test_a_release_with_a_seed_claims_nothing_in_its_sheet() -> None:
    release = replace(a_release("stable", a_subspace(4, 2)), private=False)
    page = report_html(release)
    assert "For other accountants" not in page
    assert "&quot;claims&quot;: []" in page


def test_running_twice_costs_what_it_composes_to(pca: ps.PrivatePCA) -> None:
    text = Reader(report_html(pca.release_)).text
    assert "Running this again on the same people makes it ε = 1.45, δ = 1e-6" in text


def test_a_component_that_is_one_column_is_told_with_the_remedy() -> None:
    rows = np.random.default_rng(0).standard_normal((3_000, 4)) * [1.0, 2.0, 3.0, 500.0]
    unscaled = ps.private_pca(rows, 1, **BUDGET)
    assert "nearly one column alone, column 4" in Reader(report_html(unscaled)).text
    assert "scale=True" in Reader(report_html(unscaled)).text
    for fine in (ps.private_pca(rows, 1, **BUDGET, scale=True), ps.private_pca(rows / [1, 2, 3, 500], 1, **BUDGET)):
        assert "nearly one column alone" not in report_html(fine)


def test_columns_without_numbers_have_no_mean() -> None:
    rows = np.random.default_rng(0).standard_normal((4_000, 3))
    rows[:, 1] = np.nan  # as a column of text in a CSV file
    text = Reader(report_html(ps.private_pca(rows, 1, **BUDGET), columns=["age", "rx", "bmi"])).text
    assert "Hardly any cell holds a number in: rx. If these are columns of text, leave them out" in text
    assert "rxnot known" in text.split("private mean")[-1]


@pytest.mark.parametrize("persons", [False, True])
def test_words_that_a_schema_declares_are_told_as_public(persons: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{i // 2},{rng.choice(['f', 'm'])},{rng.normal():.3f},{rng.normal():.3f}" for i in range(900)]
    (tmp_path / "t.csv").write_text("\n".join(["who,sex,a,b", *rows]))
    schema = (
        'columns = {who = "skip", sex = {type = "category", categories = ["f", "m"]}, a = "number", b = "number"}'
    )
    (tmp_path / "t.toml").write_text(schema.replace('who = "skip", ', "") if persons else schema)
    source = open_rows(tmp_path / "t.csv", schema=tmp_path / "t.toml", person="who" if persons else None)
    release = ps.private_pca(source, 1, **BUDGET, scale=True)
    assert release.parameters["declared"] == {"categories": {"sex": ("f", "m")}}
    text = Reader(report_html(release, columns=list(source.names))).text
    assert "Categories: sex (f, m). Each word is a column of 0 and 1." in text
    assert ("drawn at random" in text) is persons


def test_notes_in_a_schema_stay_with_whoever_keeps_the_data() -> None:
    record = Record(command="privspan fit t.csv", schema='# for our eyes only\n[columns]\na = "number"\n')
    text = Reader(report_html(everyday(), record=record)).text
    assert "our eyes" not in text
    assert "[columns]" in text


def test_columns_with_little_weight_may_be_columns_of_text_where_gaps_were_not_counted() -> None:
    told = {"gaps": "not counted", "not_seen": [1]}
    counted = why_little_weight(a_release("private PCA", parameters={**told, "gaps": "counted"}))
    assert counted == "they vary too little to be seen at this budget"
    assert "or hold hardly any number" in why_little_weight(a_release("private PCA", parameters=told))


def test_steps_have_plain_names() -> None:
    steps = {"range 3": "ranges of the columns", "subspace: clipped look": "subspace: covariance, long rows clipped"}
    assert {name: plain_step(name) for name in steps} == steps
    assert plain_step("gaps") == "gaps"


@pytest.mark.parametrize(
    ("rows", "columns", "options", "variances", "mean"),
    [
        (3_000, 6, {}, "clipped rows", "clipped rows"),
        (600, 15, {}, "rows scaled to one length", "rows scaled to one length"),
        (3_000, 6, {"method": "adaptive"}, "clipped differences of rows", "clipped rows"),
    ],
)
def test_variances_and_the_mean_are_named_after_the_rows_that_they_are_of(rows, columns, options, variances, mean):
    X = np.random.default_rng(0).standard_normal((rows, columns)) * np.where(np.arange(columns) < 2, 4.0, 1.0)
    text = Reader(report_html(ps.private_pca(X, 2, **BUDGET, **options))).text
    assert f"How much of the variance of the {variances} lies along each component." in text
    assert f"private mean of {mean}" in text
