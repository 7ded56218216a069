"""Columns named like an identifier: one rule for files, frames and drafts of schemas."""

import re
import tomllib
import warnings

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import privspan as ps
from privspan import IdentifierWarning
from privspan.rows import draft_schema, open_rows
from privspan.rows.identifiers import identifiers, looks_like_identifier

BUDGET = {"epsilon": 1.0, "delta": 1e-6}

SAYS_SO = """
id; ID; _id; uid; uuid; guid; user_id; userid; userId; UserID; customerID; patient.id; PatientId; subjectid; person-id
session_uuid; index; rowid; row_id; rownames; rowname; row.names; row_number; row_nr; __index_level_0__; order:id
employeeUUID; Order ID; Unnamed: 0; Unnamed: 0.1; row names; device guid; study uid
"""
SAYS_NOTHING = """
bid; paid; unpaid; prepaid; humid; covid; grid; acid; amino_acid; void; avoid; solid; fluid; lipid; steroid; thyroid
hybrid; orchid; pyramid; rapid; valid; invalid; maid; raid; said; laid; android; liquid; carotid; braid; madrid; vivid
candid; candida; placid; splendid; timid; lucid; morbid; rigid; rabid; torrid; squid; droid; toroid; centroid; typhoid
ellipsoid; sigmoid; rheumatoid; arachnoid; asteroid; mastoid; adenoid; deltoid; alkaloid; opioid; cannabinoid; druid
fetid; florid; forbid; gravid; horrid; insipid; intrepid; limpid; livid; lurid; myeloid; overbid; pallid; putrid; quid
sapid; skid; slid; sordid; staid; stolid; stupid; tepid; torpid; triploid; diploid; turbid; turgid; viscid; width
idle; idea; ideal; identity; idx_of_life; indexed; body_mass_index; bmi_index; reindex; price_index; row; rows
row_sum; id_count; ids; unnamed; covid19; COVID; GRID; HUMID; PAID; fluidity; guidance; guide; Acid; kids; eyelid; aid
hid; kid; first_aid; band_aid; lid; mid; rid; did; cupid; pid; cid; acidity; arid; avid; Unnamed: 1; Unnamed: 10
price paid; bid price; amount paid; carbonic acid; total bid
"""
IDENTIFIERS, NO_IDENTIFIERS = (re.split("; |\n", text.strip()) for text in (SAYS_SO, SAYS_NOTHING))


def test_the_rule():
    assert [name for name in IDENTIFIERS if not looks_like_identifier(name)] == []
    assert [name for name in NO_IDENTIFIERS if looks_like_identifier(name)] == []


@given(st.from_regex(r"[a-z]{0,12}[b-hj-z]id|[A-Z]{1,12}ID|[a-z]{1,12}(id|uid|guid)[a-z]{1,4}", fullmatch=True))
def test_a_word_that_merely_contains_the_letters_is_no_identifier(name):
    whole = name.lower().removesuffix("id")
    if name.lower() not in ("uid", "uuid", "guid", "rowid") and not looks_like_identifier(f"{whole}id"):
        assert not looks_like_identifier(name)
    assert looks_like_identifier(f"{name}_id")
    assert looks_like_identifier(f"{name} ID")


def table(names):
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.normal(size=60) for name in names})


KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "dask": lambda frame: dd.from_pandas(frame, npartitions=2),
}

CALLS = {
    "private_mean": lambda X, **more: ps.private_mean(X, norm_bound=3.0, **BUDGET, **more),
    "private_pca": lambda X, **more: ps.private_pca(X, 1, **BUDGET, **more),
    "private_subspace": lambda X, **more: ps.private_subspace(X, 1, method="adaptive", **BUDGET, **more),
    "baseline": lambda X: ps.baselines.analyze_gauss(X, 1, **BUDGET),
    "PrivatePCA": lambda X, person=None: ps.PrivatePCA(1, **BUDGET).fit(X, person=person),
    "PrivateStandardScaler": lambda X, person=None: ps.PrivateStandardScaler(**BUDGET).fit(X, person=person),
}


def fitted_with(call, X, **more):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = call(X, **more)
    return result, [str(warning.message) for warning in seen if warning.category is IdentifierWarning]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_frames_keep_the_column_and_warn_once_with_both_remedies(name, kind):
    result, told = fitted_with(CALLS[name], KINDS[kind](table(["age", "user_id", "humid", "bid"])))
    remedy = "" if name == "baseline" else ", or say that the rows of a person share it: person='user_id'"
    start = "Column 'user_id' of X is named like an identifier, and used like any other number. Drop it"
    assert told == [f"{start}{remedy}. Rename it if it holds measurements."]
    if name.startswith("Private"):
        assert list(result.feature_names_in_) == ["age", "user_id", "humid", "bid"]
    if name == "private_mean":
        assert result.mean.shape == (4,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_frames_without_one_are_fitted_silently(name, kind):
    assert fitted_with(CALLS[name], KINDS[kind](table(["age", "paid", "humid", "body_mass_index"])))[1] == []


@pytest.mark.parametrize("name", [name for name in CALLS if name != "baseline"])
def test_the_column_of_persons_is_no_reason_to_warn(name):
    frame = table(["age", "bmi"]).assign(user_id=np.arange(60) // 2)
    assert fitted_with(CALLS[name], frame, person="user_id")[1] == []
    told = fitted_with(CALLS[name], frame.assign(uuid=1.0), person="user_id")[1]
    drop = "Drop it. Rename it if it holds measurements."
    assert told == [f"Column 'uuid' of X is named like an identifier, and used like any other number. {drop}"]


def test_a_cross_validation_is_told_once():
    """However often it fits, and though scikit-learn resets what Python has shown."""
    frame, steps = table(["age", "bmi", "searched_id"]), [("pca", ps.PrivatePCA(1, **BUDGET)), ("rest", Ridge())]
    search = GridSearchCV(Pipeline(steps), {"pca__n_components": [1, 2]}, cv=2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        search.fit(frame, frame["age"])
    assert sum(warning.category is IdentifierWarning for warning in seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdentifierWarning)
        for _ in range(2):
            with pytest.raises(IdentifierWarning):
                ps.PrivatePCA(1, **BUDGET).fit(frame)


def test_several_columns_are_named_together():
    told = fitted_with(CALLS["private_mean"], table(["index", "age", "Unnamed: 0"]))[1]
    start = "Columns 'index', 'Unnamed: 0' of X are named like an identifier, and used like any other number. "
    ids = "Drop them, or say that the rows of a person share it: person='index'"
    assert told == [f"{start}{ids}. Rename them if they hold measurements."]


def test_an_error_made_of_the_warning_costs_nothing(tmp_path):
    ledger = ps.ledger.Ledger(tmp_path / "ledger.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdentifierWarning)
        with pytest.raises(IdentifierWarning):
            ps.private_mean(table(["id", "age"]), norm_bound=3.0, ledger=ledger, **BUDGET)
    assert not (tmp_path / "ledger.json").exists()


def test_names_and_types_decide_and_no_cell_does():
    frame = table(["user_id", "age"]).assign(order_id="a", when_id=pd.Timestamp("2020-01-01"))
    assert identifiers(frame) == identifiers(frame.iloc[:0]) == ["user_id"]
    assert identifiers(frame.assign(user_id=np.nan)) == ["user_id"]
    assert identifiers(np.zeros((3, 2))) == identifiers([[1.0]]) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_files_leave_out_what_frames_warn_of(tmp_path, suffix):
    path, frame = tmp_path / f"people.{suffix}", table([*IDENTIFIERS[:12], *NO_IDENTIFIERS[:40]])
    if suffix == "csv":
        frame.to_csv(path, index=False)
    else:
        whole = pa.Table.from_pandas(frame, preserve_index=False)
        parquet.write_table(whole, path) if suffix == "parquet" else pa.feather.write_feather(whole, path)
    rows = open_rows(path)
    left = [column.name for column in rows.left_out]
    assert left == identifiers(frame) == IDENTIFIERS[:12]
    assert {column.reason for column in rows.left_out} == {"named like an identifier"}
    drafted = tomllib.loads(draft_schema(path))["columns"]
    assert [name for name, column in drafted.items() if column["type"] == "skip"] == left


def test_words_of_a_category_are_no_names():
    frame = table(["age"]).assign(document=["id", "pass"] * 30)
    call = lambda X: ps.private_pca(X, 1, categories={"document": ["id", "pass"]}, **BUDGET)  # noqa: E731
    for X in (frame, pa.Table.from_pandas(frame).to_reader()):
        assert fitted_with(call, X)[1] == []


def test_a_category_is_not_used_like_any_other_number():
    frame = table(["age", "user_id"]).assign(ward_id=[1, 2, 3] * 20)
    call = lambda X: ps.private_pca(X, 1, categories={"ward_id": [1, 2, 3]}, **BUDGET)  # noqa: E731
    for X in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame).to_reader()):
        (told,) = fitted_with(call, X)[1]
        assert "'user_id'" in told
        assert "ward_id" not in told


def test_names_of_rows_are_known_however_a_package_calls_them(tmp_path):
    """As R and pandas write them: in a first column without a name."""
    path = tmp_path / "people.csv"
    table(["age", "bmi"]).to_csv(path)
    for X in (pd.read_csv(path), pl.read_csv(path), pa.csv.read_csv(path), pl.scan_csv(path)):
        assert len(fitted_with(CALLS["private_mean"], X)[1]) == 1
        if not isinstance(X, pl.LazyFrame):
            assert len(fitted_with(CALLS["baseline"], X)[1]) == 1
    parquet.write_table(pa.csv.read_csv(path), tmp_path / "people.parquet")
    for suffix in ("csv", "parquet"):
        rows = open_rows(tmp_path / f"people.{suffix}")
        assert (rows.names, len(rows.left_out)) == (("age", "bmi"), 1)
        assert tomllib.loads(draft_schema(tmp_path / f"people.{suffix}"))["columns"][""]["type"] == "skip"
