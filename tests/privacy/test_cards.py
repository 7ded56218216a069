"""Cards in notebooks: they say what a value says, cannot be broken into, and leave plain text where it was."""

import subprocess
import sys
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context

import privspan as ps
from privspan.datasets import gaussian_subspace

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
EVIL = ["<script>alert(1)</script>", "a & b", '"quoted"', "\u202eturned", *(f"column {i}" for i in range(11))]


class Reader(HTMLParser):
    """The words and the tags of a card; tags must close in order."""

    def __init__(self, card: str) -> None:
        super().__init__()
        self.words, self.tags, self.open = [], set(), []
        self.feed(card)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    X, _ = gaussian_subspace(3_000, 15, 2, gamma_w=0.1, rng=0)
    return pd.DataFrame(X + 1.0, columns=EVIL)


@pytest.fixture(scope="module")
def model(table) -> ps.PrivatePCA:
    with pytest.warns(ps.NotPrivateWarning):
        return ps.PrivatePCA(3, **BUDGET, random_state=1).fit(table)


def cards(model, table) -> dict[str, object]:
    numbers = table.to_numpy()
    parts = np.random.default_rng(0).integers(1, 90, (120, 2))
    whole = np.column_stack([parts, parts.sum(axis=1)])
    return {
        "PrivatePCA": model,
        "Release": model.release_,
        "Subspace": model.subspace_,
        "Plan": model.plan_,
        "PrivateMean": ps.private_mean(numbers, **BUDGET),
        "PrivateScales": ps.private_scales(table, **BUDGET),
        "PrivateStandardScaler": ps.PrivateStandardScaler(**BUDGET).fit(table),
        "PrivateSubspace": ps.PrivateSubspace(2, **BUDGET, method="exact").fit(whole),
    }


def test_every_card_is_whole_safe_and_says_what_it_shows(model, table):
    for name, value in cards(model, table).items():
        card = value._repr_html_()
        reader = Reader(card)
        assert reader.text.startswith(name)
        assert "ε = 1, δ = 1e-6" in reader.text or name == "Subspace"
        assert not reader.tags & {"script", "img", "link", "iframe"}
        assert "\u202e" not in card
        assert "http" not in card
        assert "\n" not in repr(value)[:60]  # plain text as before


def test_a_card_of_a_pca_tells_quality_noise_and_errors(model):
    text = Reader(model._repr_html_()).text
    assert "Captures about" in text
    assert "Not private" in text
    assert "The first 2 stand out of the noise; the other cannot be distinguished from noise." in text
    assert "noise: nothing can be read into it" in text
    assert "3,000 rows" in text
    best = int(np.abs(model.components_[0]).argmax())
    assert "±" in text.split(EVIL[best])[1][:20]


def test_a_seed_and_an_abstention_cannot_be_overlooked():
    X, _ = gaussian_subspace(400, 5, 1, gamma_w=0.1, rng=0)
    assert "Not private: a seed was given" in ps.private_pca(X, 1, **BUDGET, rng=1)._repr_html_()
    silent = ps.Release(None, ps.PrivacyCost(1.0, 1e-6), "stable", {"n": 9, "d": 5, "k": 1})
    assert "Abstained: nothing was released" in Reader(silent._repr_html_()).text
    useless = ps.plan(50, 400, 3, **BUDGET, center=True)
    assert "Expected to be useless." in Reader(useless._repr_html_()).text


def test_relations_are_the_card_of_an_exact_subspace(model, table):
    assert "x2 = x0 + x1" in cards(model, table)["PrivateSubspace"]._repr_html_()


def test_means_and_scales_stand_beside_their_noise(model, table):
    shown = cards(model, table)
    mean = shown["PrivateMean"]
    assert Reader(mean._repr_html_()).text.count("±") == 12  # and three more columns
    assert "… and 3 more." in mean._repr_html_()
    assert f"± {mean.noise:.2g}" in repr(mean)
    scaler = Reader(shown["PrivateStandardScaler"]._repr_html_()).text
    assert "a & b" in scaler
    assert "standard deviation" in scaler


def test_a_plan_is_one_line_and_prints_a_table(model):
    assert "\n" not in repr(model.plan_)
    assert repr(model.plan_).startswith("<Plan n=3000, d=15, k=3, epsilon=1, delta=1e-06: everyday, error 0.")
    assert len(str(model.plan_).splitlines()) == 7


def test_notebooks_get_both_forms_and_scikit_learns_own_before_a_fit(model):
    both = model._repr_mimebundle_()
    assert both["text/plain"] == repr(model)
    assert both["text/html"] == model._repr_html_()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unknown section Guarantee")
        assert "sk-" in ps.PrivatePCA(2, **BUDGET)._repr_html_()
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_no_warning_about_our_sections_even_where_warnings_are_errors():
    program = """
import privspan as ps
from sklearn.pipeline import make_pipeline
budget = {"epsilon": 1.0, "delta": 1e-6}
steps = ps.PrivateStandardScaler(**budget), ps.PrivatePCA(2, **budget), ps.PrivateSubspace(2, **budget)
print(sum(len(step._repr_html_()) for step in (*steps, make_pipeline(*steps))))
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert int(run.stdout) > 1_000


def test_the_card_of_a_plan_speaks_of_ideal_data_only_where_it_supposes_them() -> None:
    budget = {"epsilon": 1.0, "delta": 1e-6}
    assert "for ideal data" in ps.plan(5_000, 8, 2, **budget)._repr_html_()
    assert "for ideal data" not in ps.plan(5_000, 8, 2, **budget, scale=True)._repr_html_()
