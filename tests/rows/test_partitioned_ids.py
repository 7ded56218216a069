"""Whose row is whose in partitions: the same persons, by the same numbers, as in one table in memory."""

import subprocess
import sys
import uuid
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spread import cuts

from privspan._lib.identity import UntellableError, key_of, scattered
from privspan.rows import id_codes, partition_rows, partitioned
from privspan.rows.exchange import join_pieces
from privspan.rows.partitioned_ids import ROWS_OF_PARTITION, _keyed, _met, digest, partitioned_ids
from privspan.rows.persons import belongings


def persons_of(found):
    """The rows of every person, by row number in the whole table, in the order of the persons' numbers."""
    place, starts = found.table.place, np.cumsum([0, *found.table.lengths])
    listed = {}
    for owned, numbers in zip(place.fetch(found.buckets, [0] * len(found.buckets)), found.persons, strict=True):
        part, within = np.divmod(owned.order, ROWS_OF_PARTITION)
        rows = starts[part] + within
        for number, start, count in zip(numbers, owned.starts, owned.counts, strict=True):
            listed[int(number)] = rows[start : start + count].tolist()
    return [listed[number] for number in range(len(listed))]


def at_home(codes):
    owned = belongings(codes)
    ends = zip(owned.starts, owned.counts, strict=True)
    return [owned.order[start : start + count].tolist() for start, count in ends]


@given(codes=st.lists(st.integers(-1, 9), min_size=1, max_size=40), at=st.lists(st.integers(0, 40), max_size=4))
@settings(max_examples=150, deadline=None)
def test_persons_are_those_of_the_whole_table_and_have_its_numbers(codes, at):
    lengths = np.diff([0, *sorted(min(cut, len(codes)) for cut in at), len(codes)])
    words = [None if code < 0 else f"p{code}" for code in codes]
    found = partitioned_ids(partition_rows(np.zeros((len(codes), 1)), lengths.tolist()), words)
    assert persons_of(found) == at_home(np.array(codes))


@given(codes=st.lists(st.integers(-1, 5), min_size=1, max_size=30), seed=st.integers(0, 99))
def test_in_which_order_pieces_arrive_in_a_bucket_means_nothing(codes, seed):
    """A person's rows are in table order, so that slots do not follow what tasks end first."""
    rng = np.random.default_rng(seed)
    pieces = []
    for rows in np.array_split(np.arange(len(codes)), 3):
        keys = np.array([None if codes[row] < 0 else codes[row] for row in rows], dtype=object)
        pieces.append((keys, np.ones(len(rows), dtype=np.intp), rows))
    one, other = (_met("ids", join_pieces(*(pieces[at] for at in order))) for order in (range(3), rng.permutation(3)))
    for name in ("order", "starts", "counts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert [one.order[at : at + count].tolist() for at, count in zip(one.starts, one.counts, strict=True)] == at_home(
        np.array(codes)
    )


IN_A_PARTITION = st.lists(st.sampled_from(["a", "b", "c", None, 7, 2.5]), max_size=8)


@given(one=IN_A_PARTITION, other=IN_A_PARTITION)
def test_a_digest_tells_whose_each_row_is(one, other):
    """So that rows that came in another order are not taken for those of others."""
    same = [key_of(cell) for cell in one] == [key_of(cell) for cell in other]
    assert (digest(_keyed("ids", one)) == digest(_keyed("ids", other))) == same
    for at in range(len(one) - 1):
        swapped = [*one[:at], one[at + 1], one[at], *one[at + 2 :]]
        assert (digest(_keyed("ids", one)) == digest(_keyed("ids", swapped))) == (one == swapped)


N = 60
OWNERS = np.random.default_rng(0).integers(0, 12, N)
KINDS = {
    "whole numbers": OWNERS * 1000,
    "long numbers": OWNERS + 2**62,
    "floats": OWNERS / 8.0,
    "text": np.array([f"p{owner}" for owner in OWNERS]),
    "bytes": np.array([b"p%d" % owner for owner in OWNERS]),
    "dates": np.datetime64("2020-01-01") + OWNERS,
    "UUIDs": np.array([uuid.UUID(int=int(owner)) for owner in OWNERS], dtype=object),
    "tuples": [("clinic", int(owner)) for owner in OWNERS],
    "Decimals": [Decimal(int(owner)) / 8 for owner in OWNERS],
    "of several types": [int(owner) if row % 2 else f" {owner}" for row, owner in enumerate(OWNERS)],
}
SERIES = {
    "categories": pd.Series(pd.Categorical([f"p{owner}" for owner in OWNERS])),
    "nullable": pd.Series(pd.array([None if owner == 3 else int(owner) for owner in OWNERS])),
    "times": pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(OWNERS, unit="D")),
    "times of a zone": pd.Series(pd.Timestamp("2020-01-01", tz="Europe/Paris") + pd.to_timedelta(OWNERS, unit="D")),
    "periods": pd.Series(pd.PeriodIndex.from_ordinals(OWNERS, freq="D")),
    "Arrow text": pd.Series([f"p{owner}" for owner in OWNERS], dtype="string[pyarrow]"),
    "Arrow dates": pd.Series([date.fromordinal(700_000 + int(owner)) for owner in OWNERS]),
    "spans": pd.Series(pd.to_timedelta(OWNERS, unit="h")).mask(OWNERS == 3),
}


def on_dask(ids, lengths=None):
    if isinstance(ids, list):
        held = np.empty(len(ids), dtype=object)
        for at, one in enumerate(ids):
            held[at] = one
        ids = held
    return da.from_array(ids, chunks=(cuts(N) if lengths is None else lengths,))


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


ONE_BY_ONE = [
    1,
    "1",
    1.0,
    True,
    "True",
    0,
    -0.0,
    "0",
    "",
    "001",
    2**53,
    2**53 + 1,
    float(2**53),
    2**70,
    str(2**70),
    1e300,
]
ONE_BY_ONE += [
    uuid.UUID(int=5),
    str(uuid.UUID(int=5)),
    b"x",
    "x",
    " x",
    "x\0",
    "\ud800",
    None,
    np.nan,
    pd.NaT,
    pd.NA,
    float("inf"),
]
ONE_BY_ONE += [
    Decimal("NaN"),
    Decimal(1),
    Fraction(1, 3),
    1 / 3,
    np.float32(0.1),
    0.1,
    np.int8(1),
    date(2020, 1, 1),
    1j,
]
ONE_BY_ONE += [datetime(2020, 1, 1), pd.Timestamp("2020-01-01", tz="UTC"), ("a", 1), ["a", 1.0], frozenset([1]), {1}]
ONE_BY_ONE += [
    np.datetime64("NaT"),
    np.datetime64("2020-01-01"),
    pd.Interval(0, 1),
    pd.Interval(0.0, 1.0),
    pd.Period("2020-01", "M"),
]


@given(chosen=st.lists(st.integers(0, len(ONE_BY_ONE) - 1), min_size=1, max_size=30), data=st.data())
@settings(max_examples=100, deadline=None)
def test_ids_of_all_kinds_together_tell_the_same_persons_in_partitions(chosen, data):
    at = data.draw(st.lists(st.integers(0, len(chosen)), max_size=4))
    lengths = tuple(np.diff([0, *sorted(at), len(chosen)]).tolist())
    ids, rows = [ONE_BY_ONE[which] for which in chosen], np.zeros((len(chosen), 1))
    expected = at_home(id_codes(ids, len(ids)))
    table = da.from_array(rows, chunks=(lengths, 1))
    assert persons_of(partitioned_ids(table, on_dask(ids, lengths))) == expected
    assert persons_of(partitioned_ids(table, ids)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_any_kind_tell_the_same_persons_in_partitions(kind):
    ids, rows = KINDS[kind], np.zeros((N, 1))
    expected = at_home(id_codes(ids, N))
    assert len(expected) == len(set(OWNERS))
    for table in (partition_rows(rows, cuts(N)), da.from_array(rows, chunks=(cuts(N), 1))):
        assert persons_of(partitioned_ids(table, ids)) == expected
        assert persons_of(partitioned_ids(table, on_dask(ids))) == expected


@pytest.mark.parametrize("kind", SERIES)
def test_columns_of_any_type_tell_the_same_persons_in_partitions(kind):
    frames = pytest.importorskip("dask.dataframe")
    ids = SERIES[kind]
    expected = at_home(id_codes(ids, N))
    series = frames.from_pandas(ids, npartitions=4)
    lengths = [len(part) for part in series.partitions]
    rows = da.from_array(np.zeros((N, 1)), chunks=(tuple(lengths), 1))
    for handed in (ids, series):
        assert persons_of(partitioned_ids(rows, handed)) == expected


EQUAL = [
    (7, 7.0),
    (7, np.int8(7)),
    (7, "7"),
    (7, Fraction(7)),
    (7, Decimal("7.0")),
    (7, True + 6),
    (0.0, -0.0),
    (2**70, "1180591620717411303424"),
    ("a", " a"),
    (date(2020, 1, 2), datetime(2020, 1, 2)),
    (np.datetime64("2020-01-02"), pd.Timestamp("2020-01-02")),
    (("a", 7), ["a", 7.0]),
    (frozenset({1, "a"}), {"a", 1.0}),
    (uuid.UUID(int=5), uuid.UUID(int=5)),
    (pd.Period("2020-01", freq="M"), pd.Period(ordinal=600, freq="M")),
    (pd.Interval(0, 1), pd.Interval(0.0, 1.0)),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_ids_that_are_equal_are_sent_to_one_bucket(one, other):
    assert key_of(one) == key_of(other)
    assert scattered(key_of(one)) == scattered(key_of(other))


def test_processes_agree_where_an_id_is_sent():
    asked = "from privspan._lib.identity import scattered; print([scattered(k) for k in ('a', ('b', 5), 2.5, -9)])"
    runs = [
        subprocess.run(
            [sys.executable, "-c", asked], capture_output=True, text=True, env={"PYTHONHASHSEED": str(seed)}
        )
        for seed in (1, 2)
    ]
    assert runs[0].stdout == runs[1].stdout == f"{[scattered(key) for key in ('a', ('b', 5), 2.5, -9)]}\n"


def test_ids_in_a_row_are_spread_over_the_buckets():
    for step in (1, 64, 4096):
        counts = np.bincount([scattered(step * number) % 64 for number in range(6400)], minlength=64)
        assert counts.max() < 200


class Ward(Enum):
    """Ids that nothing else is equal to."""

    EAST = 1


class Chameleon:
    """An id that might be equal to anything."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def test_intervals_are_told_apart_by_where_they_are_sent():
    """So that rows that change places are noticed."""
    ends = [pd.Interval(0, 1), pd.Interval(1, 2), pd.Interval(0, 1, closed="left")]
    days = [pd.Interval(pd.Timestamp(0), pd.Timestamp(day, unit="D")) for day in (1, 2)]
    assert len({scattered(key_of(one)) for one in [*ends, *days]}) == 5


def frame_of(*columns):
    """Return a Dask frame whose partitions have these ids, whatever types a reader has made of them."""
    frames = pytest.importorskip("dask.dataframe")
    parts = [pd.DataFrame({"a": np.zeros(len(ids)), "patient": ids}) for ids in columns]
    delayed = [dask.delayed(part) for part in parts]
    with dask.config.set({"dataframe.convert-string": False}):
        return frames.from_delayed(delayed, meta=parts[0].iloc[:0], verify_meta=False)


LONG = 2**60 + np.arange(10)
READ_OTHERWISE = {
    "long numbers as floats": (LONG, np.append(LONG.astype(float), np.nan)),
    "numbers as text": (np.arange(9), pd.Series(["007", "A12"], dtype="str")),
    "floats as long numbers": (LONG.astype(float), LONG),
    "text as numbers": (pd.Series(["007", "7", "A12"], dtype="str"), pd.Series([7, 7])),
    "text as floats": (pd.Series(["7.50", "A12"], dtype="str"), pd.Series([7.5])),
}


@pytest.mark.parametrize("kind", READ_OTHERWISE)
def test_nobody_is_several_persons_because_a_reader_made_numbers_of_some_ids(kind):
    """As of Parquet files, whose column of whole numbers is one of floats wherever somebody's id is missing."""
    X = frame_of(*READ_OTHERWISE[kind])
    series = X["patient"]
    rows = da.from_array(np.zeros((sum(map(len, READ_OTHERWISE[kind])), 1)))
    rows = rows.rechunk((tuple(map(len, READ_OTHERWISE[kind])), 1))
    for held, person in ((X, "patient"), (rows, series)):
        with pytest.raises(ValueError, match="ids of its declared type in all partitions") as refusal:
            partitioned_ids(held, person)
        assert not any(letter in str(refusal.value) for letter in "07A")


@pytest.mark.parametrize(
    "columns",
    [
        (np.arange(10), np.append(np.arange(10.0), np.nan)),  # short numbers are told apart as floats, too
        (LONG.astype(float), np.append(LONG.astype(float), np.nan)),  # in all partitions alike
        (pd.Series(["7", "A12"], dtype="str"), pd.Series([np.nan, np.nan])),
        (np.arange(4), pd.Series([np.nan, np.inf])),
        (np.arange(4), pd.Series(["1", None, "2"], dtype="str")),
        (np.arange(4), pd.Categorical([1, 2, 2])),
        (np.arange(4), pd.array([1, None, 2], dtype="Int64")),
        (LONG, LONG.astype(object)),
    ],
)
def test_ids_of_another_type_that_says_as_much_are_taken(columns):
    expected = at_home(
        id_codes(np.concatenate([np.asarray(one, dtype=object) for one in columns]), sum(map(len, columns)))
    )
    assert persons_of(partitioned_ids(frame_of(*columns), "patient")) == expected


def test_ids_are_those_of_a_column_by_its_name():
    """Also in partitions whose columns stand in another order, where Dask takes them as they are."""
    frames = pytest.importorskip("dask.dataframe")
    whole = pd.DataFrame({"a": np.arange(8.0), "b": -np.arange(8.0), "patient": np.arange(8) % 3})
    kept, turned = whole[:4], whole[4:][["patient", "b", "a"]]
    for last, same in ((turned, True), (turned.rename(columns={"patient": "c"}), False)):
        parts = [dask.delayed(part) for part in (kept, last)]
        X = frames.from_delayed(parts, meta=whole[:0], verify_meta=False)
        if same:
            found = partitioned_ids(X, "patient")
            rows = np.concatenate(found.table.place.fetch(found.table.parts, found.table.lengths))
            assert np.array_equal(rows, whole[["a", "b"]])
            assert persons_of(found) == at_home(id_codes(whole["patient"], 8))
            plain = partitioned(X)
            assert np.array_equal(np.concatenate(plain.place.fetch(plain.parts, plain.lengths)), whole)
        else:
            with pytest.raises(ValueError, match="as its metadata say"):
                partitioned_ids(X, "patient").table.here()[:]


def test_objects_that_may_be_equal_to_others_are_refused():
    assert scattered(Ward.EAST) == scattered(Ward(1))
    assert scattered(pd.Interval(0, 1)) == scattered(pd.Interval(0.0, 1.0))
    with pytest.raises(UntellableError):
        scattered(Chameleon())
    with pytest.raises(TypeError, match="ids that can be compared"):
        partitioned_ids(partition_rows(np.zeros((2, 1)), (1, 1)), on_dask([Chameleon()] * 2, (1, 1)))
