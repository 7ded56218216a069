"""URLs of tables: how they are read, and that nothing secret of them is shown."""

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspan._lib.errors import ParameterError
from privspan._lib.location import Location, is_url, location, place_of, shown

SIGNS = st.text("aZ0:/?#@%&=+ é'\"\\[]", min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("url", "name", "address"),
    [
        ("postgresql://db.example.org/clinic", "clinic", "postgresql://db.example.org/clinic"),
        ("postgres://ann:pw@DB.example.org:5432/clinic", "clinic", "postgresql://db.example.org/clinic"),
        ("postgresql://ann@db:6432/clinic?sslmode=require", "clinic", "postgresql://db:6432/clinic"),
        ("postgresql://a:1,b:2/clinic", "clinic", "postgresql://a:1,b:2/clinic"),
        ("postgresql:///clinic?host=/run/pg&port=6432&password=pw", "clinic", "postgresql://%2frun%2fpg:6432/clinic"),
        ("postgresql://a:1/one?dbname=clinic&host=b&host=DB&port=6432", "clinic", "postgresql://db:6432/clinic"),
        ("postgresql://a:1/clinic?host=db", "clinic", "postgresql://db:1/clinic"),
        ("postgresql://db/clinic?hostaddr=10.0.0.1&port=5432", "clinic", "postgresql://10.0.0.1/clinic"),
        ("postgresql:///?service=clinic", "clinic", "postgresql:///?service=clinic"),
        ("postgresql://", "the database", "postgresql:///"),
        ("postgresql://ann:p%40w@[::1]:5/clin%20ic", "clin ic", "postgresql://[::1]:5/clin%20ic"),
        ("duckdb:////data/people.duckdb", "people.duckdb", "/data/people.duckdb"),
        ("sqlite:////data/with%20space.db", "with space.db", "/data/with space.db"),
        ("file:///data/people.csv", "people.csv", "/data/people.csv"),
        ("s3://bucket/folder/people.parquet", "people.parquet", "s3://bucket/folder/people.parquet"),
        ("https://ann:pw@host:8/a/people.csv?token=x#part", "people.csv", "https://host:8/a/people.csv"),
        ("HTTPS://Host/A/people.csv", "people.csv", "https://host/A/people.csv"),
        ("https://host/a/store.zarr/", "store.zarr", "https://host/a/store.zarr/"),
        ("memory://people.csv", "people.csv", "memory://people.csv"),
        ("https://host/..%2F..%2Fpeople.csv", "people.csv", "https://host/..%2F..%2Fpeople.csv"),
    ],
)
def test_a_url_has_a_name_for_people_and_one_for_the_ledger(url: str, name: str, address: str) -> None:
    assert (location(url).name, location(url).address) == (name, address)
    assert url not in (repr(location(url)), str(location(url)))


def test_a_scheme_in_capitals_is_known_to_whoever_opens_it() -> None:
    assert location("PostgreSQL://Ann:Pw@Host/Clinic").url == "postgresql://Ann:Pw@Host/Clinic"
    assert location("S3://bucket/People.csv").address == "s3://bucket/People.csv"


def test_paths_of_database_files_are_relative_with_three_slashes(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert location("sqlite:///people.db").path == Path("people.db")
    assert location("sqlite:///people.db").address == location(f"sqlite:///{tmp_path}/people.db").address
    assert location(f"duckdb:///{tmp_path}/people.db").path == tmp_path / "people.db"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://ann:secret@host/people.csv",
        "sqlite://people-secret.db",
        "sqlite:///people.db?key=secret",
        "duckdb://",
        "file://secret/people.csv",
        "postgresql://ann:secret[@host/db",
        "postgresql://ann:sec#ret@host/db",
        "postgresql://ann:12/secret@host/db",
        "postgresql://ann:a@b/secret@host/db",
        "postgresql://ann:1?secret@host/db",
        "https://ann:1/secret@host/people.csv",
    ],
)
def test_what_cannot_be_read_is_refused_by_its_scheme_alone(url: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        location(url)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
    assert "secret" not in shown(url)


@given(user=SIGNS, password=SIGNS)
@pytest.mark.parametrize("scheme", ["postgresql", "https", "s3"])
def test_a_user_and_a_password_change_nothing_that_is_shown(scheme: str, user: str, password: str) -> None:
    written = f"{quote(user, safe='')}:{quote(password, safe='')}"
    found, plain = location(f"{scheme}://{written}@host/people.csv"), location(f"{scheme}://host/people.csv")
    assert (found.name, found.address, repr(found)) == (plain.name, plain.address, repr(plain))


def told(url: str) -> str:
    """Return all that is ever shown of a URL."""
    try:
        found = location(url)
    except ParameterError as refusal:
        return str(refusal)
    return f"{found.name} {found.address} {found}"


@given(password=SIGNS)
@pytest.mark.parametrize("scheme", ["postgresql", "https"])
def test_a_password_that_is_not_encoded_is_refused_or_not_shown(scheme: str, password: str) -> None:
    assert "Q" not in told(f"{scheme}://ann:Q{password}Q@host/people.csv")


@pytest.mark.parametrize("given", ["people.csv", "C:\\people.csv", "a b://c", "://", "/data/a://b", Path("s3://b/a")])
def test_other_names_are_files(given) -> None:
    assert not is_url(given)
    assert place_of(given) == Path(given)


def test_a_file_of_this_machine_is_a_path() -> None:
    assert place_of("file:///data/people.csv") == Path("/data/people.csv")
    assert isinstance(place_of("sqlite:///people.db"), Location)
