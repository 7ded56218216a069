"""Pictures: they show the numbers that were released, with their noise, whatever the names and the background."""

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Ellipse

import privspan as ps
from privspan.planner import USELESS
from privspan.plot.columns import _apart
from privspan.privacy import Part, PrivacyCost

NAMES = ["hiking", "cycling", "swimming in lakes, in rivers and in the sea, all year round", "costs in $ and $$"]
NAMES += ["reading", "cinema", "music", "<b>games</b>"]
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(autouse=True)
def _no_window(monkeypatch: pytest.MonkeyPatch):
    mpl.use("Agg")
    monkeypatch.setattr(plt, "show", lambda *_: pytest.fail("a plot must not be shown"))
    yield
    plt.close("all")


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    pattern = np.array([[4, 3, 2, 2, 0, 0, 0, 0], [0, 0, 0, 0, 2, 2, 1, 1]])
    rows = 20 + rng.standard_normal((6_000, 2)) @ pattern + 0.3 * rng.standard_normal((6_000, 8))
    return pd.DataFrame(rows, columns=NAMES)


@pytest.fixture(scope="module")
def model() -> ps.PrivatePCA:
    with pytest.warns(ps.NotPrivateWarning):
        fitted = ps.PrivatePCA(3, **BUDGET, random_state=1).fit(people())
    assert fitted.stands_out_ == 2
    return fitted


@pytest.fixture(scope="module")
def scaled() -> ps.PrivatePCA:
    with pytest.warns(ps.NotPrivateWarning):
        return ps.PrivatePCA(2, **BUDGET, scale=True, random_state=1).fit(people())


@pytest.fixture(scope="module")
def wide() -> ps.Release:
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.standard_normal((120, 120)))[0]
    rows = rng.standard_normal((4_000, 120)) * np.append([12.0, 8.0], np.ones(118)) @ turn
    return ps.private_pca(rows, 2, **BUDGET, rng=1)


class Map:
    """As much of a score map as is drawn."""

    counts = np.arange(12.0).reshape(3, 4) - 2.0
    edges = (np.linspace(-3, 3, 4), np.linspace(-1, 1, 5))
    noise, components = 2.0, (0, 2)

    def smoothed(self) -> np.ndarray:
        return np.maximum(self.counts, 0.0)


def segments(ax) -> np.ndarray:
    """The ends of the error bars, (bars, 2 ends, 2)."""
    return np.array([line for bars in ax.containers if hasattr(bars, "has_yerr") for line in _lines(bars)])


def _lines(bars) -> list:
    return [segment for collection in bars[2] for segment in collection.get_segments()]


# --- Components --------------------------------------------------------------------------------------------


def test_a_scree_plot_shows_shares_their_noise_and_what_is_noise(model):
    ax = ps.plot.scree(model)
    heights = {round(bar.get_x() + bar.get_width() / 2): bar for bar in ax.patches}
    for place, ratio in enumerate(model.explained_variance_ratio_, start=1):
        assert heights[place].get_height() == pytest.approx(ratio)
        assert (heights[place].get_alpha() == 1.0) is (place <= model.stands_out_)
    reach = np.ptp(segments(ax)[:, :, 1], axis=1) / 2
    np.testing.assert_allclose(reach, model.explained_variance_std_ / model.total_variance_)
    assert "captures about" in ax.get_title()
    assert [text.get_text() for text in ax.get_legend().get_texts()][1] == "cannot be distinguished from noise"


def test_a_scree_plot_needs_variances():
    release = ps.Release(ps.Subspace(np.eye(4, 2)), PrivacyCost(1.0, 1e-6), "adaptive")
    with pytest.raises(ValueError, match="holds no variances"):
        ps.plot.scree(release)
    with pytest.raises(TypeError, match="got ndarray"):
        ps.plot.scree(np.eye(2))


def test_loadings_are_those_of_the_model_with_errors_and_names(model):
    ax = ps.plot.loadings(model, 1, most=5)
    order = np.argsort(-np.abs(model.components_[1]))[:5]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], model.components_[1][order])
    np.testing.assert_allclose(np.ptp(segments(ax)[:, :, 0], axis=1) / 2, model.components_std_[1][order])
    assert len({bar.get_facecolor() for bar in ax.patches if bar.get_width() > 0}) == 1
    assert "the 5 largest of 8" in ax.get_xlabel()
    names = [label.get_text() for label in ps.plot.loadings(model).get_yticklabels()]
    assert max(map(len, names)) <= 30
    assert r"costs in \$ and \$\$" in names  # no formula
    assert "<b>games</b>" in names
    named = ps.plot.loadings(model.release_, columns=[f"question {i}" for i in range(8)])
    assert named.get_yticklabels()[0].get_text().startswith("question")


def test_a_component_that_is_noise_is_pale_and_has_no_error_bars(model):
    ax = ps.plot.loadings(model, 2)
    assert "cannot be distinguished from noise" in ax.get_title()
    assert all(bar.get_alpha() < 0.5 for bar in ax.patches)
    assert len(segments(ax)) == 0
    with pytest.raises(ValueError, match="below 3"):
        ps.plot.loadings(model, 3)


# --- Columns -----------------------------------------------------------------------------------------------


def tips(ax) -> np.ndarray:
    return np.array([note.xy for note in ax.texts if getattr(note, "arrow_patch", None)])


def test_a_rotation_is_drawn_like_components(model):
    rotated = model.rotate("oblimin")
    ax = ps.plot.loadings(rotated, 1)
    order = np.argsort(-np.abs(rotated.loadings[:, 1]), kind="stable")
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(rotated.loadings[order, 1].tolist())
    halves = np.diff(segments(ax)[:, :, 0])[:, 0] / 2.0
    assert halves == pytest.approx(rotated.loadings_std[order, 1])
    assert ax.get_title() == "factor 2, by oblimin"
    plane = ps.plot.biplot(rotated, (1, 0))
    assert (plane.get_xlabel(), plane.get_ylabel()) == ("factor 2", "factor 1")
    assert len([one for one in plane.patches if isinstance(one, Ellipse)]) == 8
    with pytest.raises(ValueError, match="`component` must be below 2"):
        ps.plot.loadings(rotated, 2)


def test_a_correlation_circle_shows_correlations_and_their_errors(scaled):
    ax = ps.plot.correlation_circle(scaled, most=8)
    correlations = scaled.components_ * np.sqrt(scaled.explained_variance_)[:, None]  # (2, d)
    order = np.argsort(-np.hypot(*correlations))
    np.testing.assert_allclose(tips(ax), correlations.T[order])
    hiking, cycling = tips(ax)[np.argsort(order)[:2]]  # columns that are all but proportional
    assert hiking @ cycling == pytest.approx(np.corrcoef(people().to_numpy().T)[0, 1], abs=0.25)
    (circle,) = (patch for patch in ax.patches if isinstance(patch, Circle))
    assert circle.get_radius() == 1.0
    ellipses = [patch for patch in ax.patches if isinstance(patch, Ellipse) and not isinstance(patch, Circle)]
    assert len(ellipses) == 8
    least = 2 * scaled.components_std_[0][order] * math.sqrt(scaled.explained_variance_[0])
    assert all(ellipse.width >= size for ellipse, size in zip(ellipses, least, strict=True))


def test_a_correlation_circle_needs_no_unit():
    """Rank correlations of a small table, for which no unit was measured."""
    X = np.random.default_rng(0).standard_normal((300, 4)) * [1.0, 1e3, 1e-3, 1.0]
    release = ps.private_pca(X, 2, epsilon=1.0, delta=1e-6, scale=True, rng=0)
    assert "scale" not in release.extras
    assert ps.plot.correlation_circle(release).patches


def test_a_correlation_circle_needs_standardised_columns(model):
    with pytest.raises(ValueError, match="scale=True"):
        ps.plot.correlation_circle(model)
    with pytest.raises(ValueError, match="two different"):
        ps.plot.biplot(model, (1, 1))


def test_names_of_many_columns_do_not_lie_upon_one_another(wide):
    ax = ps.plot.biplot(wide, most=20)
    assert len(tips(ax)) == 20
    ax.figure.canvas.draw()
    written = [note for note in ax.texts if note.get_text()]
    boxes = [note.get_window_extent() for note in written]
    assert len(boxes) == 20
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_heights_are_moved_as_little_as_needed():
    np.testing.assert_allclose(_apart(np.array([-0.5, 0.5]), 0.1, 1.0), [-0.5, 0.5])
    np.testing.assert_allclose(_apart(np.array([0.0, 0.0, 0.0]), 0.2, 1.0), [-0.2, 0.0, 0.2], atol=1e-12)
    crowded = _apart(np.full(30, 0.9), 0.2, 1.0)
    assert np.diff(crowded).min() > 0.06
    assert np.abs(crowded).max() <= 1.0 + 1e-12
    assert len(_apart(np.array([]), 0.1, 1.0)) == 0


# --- Plans and budgets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "place"), [(ps.plot.error_against_rows, "n"), (ps.plot.error_against_epsilon, "epsilon")]
)
def test_curves_pass_through_what_is_planned(draw, place):
    plan = ps.plan(5_000, 20, 2, **BUDGET, center=True)
    ax = draw(plan, wanted=0.1)
    curve = next(line for line in ax.lines if line.get_label() == "everyday, median")
    x, y = curve.get_data()
    assert np.interp(math.log(getattr(plan, place)), np.log(x), np.log(y)) == pytest.approx(
        math.log(plan.error), abs=0.02
    )
    assert y[0] > USELESS / 4 > y[-1]
    assert "for ideal data" in ax.get_ylabel()


def test_alternatives_are_drawn_and_those_that_abstain_are_dotted():
    plan = ps.plan(5_000, 20, 2, **BUDGET, center=True)
    ax = ps.plot.error_against_rows(plan, alternatives=True)
    drawn = {line.get_label(): np.isfinite(line.get_ydata()).any() for line in ax.lines}
    assert drawn["everyday"]
    assert drawn["robust"]
    assert not drawn["stable"]  # would abstain throughout
    with pytest.raises(TypeError, match="Plan"):
        ps.plot.error_against_rows(5_000)


def test_a_plan_of_standardised_columns_is_drawn():
    ax = ps.plot.error_against_rows(ps.plan(3_000, 10, 2, **BUDGET, center=True, scale=True))
    captured = ax.lines[0].get_ydata()
    assert (np.diff(captured) >= 0.0).all()
    assert captured[0] < 0.8 < 0.95 < captured[-1] <= 1.0
    assert "share" in ax.get_ylabel()


def test_a_budget_bar_is_whole(model):
    ax = ps.plot.budget(model)
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(1.0)
    assert len(ax.get_legend().get_texts()) == len(ax.patches)
    mixed = PrivacyCost(1.0, 1e-6, parts=(Part("choice", 0.25, 0.0), Part.gaussian("looks", 0.1, 1e-6)))
    assert [bar.get_width() for bar in ps.plot.budget(mixed).patches] == pytest.approx([0.75, 0.25])
    mean = ps.private_mean(people(), **BUDGET, norm_bound=100.0)
    assert [bar.get_width() for bar in ps.plot.budget(mean).patches] == [1.0]
    with pytest.raises(TypeError, match="cost"):
        ps.plot.budget(3)


def test_a_map_by_class_has_a_panel_for_each_and_one_for_all():
    X = people()
    made = ps.private_score_map(
        X, ps.Subspace(np.eye(8, 2)), **BUDGET, classes=X["music"] > 20, labels=[False, True], rng=0
    )
    figure = ps.plot.score_maps(made)
    assert [panel.get_title() for panel in figure.axes[:3]] == ["all", "False", "True"]
    with pytest.raises(TypeError, match="a map by class is needed"):
        ps.plot.score_maps(made.of(True))


def test_a_score_map_shows_the_smoothed_counts_or_the_noisy_ones():
    found = Map()
    ax = ps.plot.score_map(found)
    np.testing.assert_allclose(ax.collections[0].get_array(), found.smoothed().T)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component 1", "component 3")
    assert "noise ± 2 each" in ax.get_title()
    assert ax.get_xlim() == (-3.0, 3.0)
    with pytest.raises(TypeError, match="private_score_map"):
        ps.plot.score_map(np.eye(3))


# --- All of them -------------------------------------------------------------------------------------------


def every(model, scaled):
    plan = model.plan_
    return {
        "scree": lambda ax: ps.plot.scree(model, ax=ax),
        "loadings": lambda ax: ps.plot.loadings(model, ax=ax),
        "circle": lambda ax: ps.plot.correlation_circle(scaled, ax=ax),
        "biplot": lambda ax: ps.plot.biplot(model, ax=ax),
        "rows": lambda ax: ps.plot.error_against_rows(plan, ax=ax),
        "epsilon": lambda ax: ps.plot.error_against_epsilon(plan, ax=ax),
        "budget": lambda ax: ps.plot.budget(model, ax=ax),
        "map": lambda ax: ps.plot.score_map(Map(), ax=ax),
    }


@pytest.mark.parametrize("name", ["scree", "loadings", "circle", "biplot", "rows", "epsilon", "budget", "map"])
@pytest.mark.parametrize("ground", ["white", "#101418"])
def test_words_and_bars_can_be_read_on_every_background(name, ground, model, scaled):
    figure = Figure(facecolor=ground, layout="constrained")
    ax = figure.subplots()
    ax.set_facecolor(ground)
    assert every(model, scaled)[name](ax) is ax
    figure.canvas.draw()
    words = [ax.title, ax.xaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels(), *ax.texts]
    inside = [bar for bar in ax.patches if name == "budget"]  # whose words stand on bars
    for text in (text for text in words if text.get_text().strip() and not inside):
        assert contrast(text.get_color(), ground) > 3.0, text
    for bar in (bar for bar in ax.patches if not isinstance(bar, Circle | Ellipse) and bar.get_alpha() in (None, 1)):
        assert contrast(bar.get_facecolor(), ground) > 1.8


def contrast(one, other) -> float:
    """The contrast of two colours, as the web's accessibility guidelines define it."""
    lights = sorted((_light(one), _light(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _light(colour) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_a_model_draws_the_usual_three(model, scaled):
    panels = model.plot().axes
    assert [ax.get_title()[:11] for ax in panels] == ["captures ab", "component 1", "columns in "]
    assert "correlations" in scaled.plot().axes[2].get_title()
    parts = np.random.default_rng(0).integers(1, 90, (90, 2))
    exact = ps.PrivateSubspace(2, **BUDGET, method="exact").fit(np.column_stack([parts, parts.sum(axis=1)]))
    assert "one basis of many" in exact.plot().axes[1].get_title()


def test_matplotlib_is_loaded_when_it_is_needed_and_missed_in_words(model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'privspan\[plot\]'"):
        ps.plot.scree(model)
