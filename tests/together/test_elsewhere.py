"""The page for Spark, Snowflake and BigQuery: its code runs, and the release is that of the same rows in memory.

There is no server of Snowflake or BigQuery here.  `Cursor` and `RowIterator` stand in for theirs, with the methods
that the page calls and their signatures, which a slow test compares with the installed connectors.
"""

import inspect
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privspan as ps

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's, when it reads Parquet

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "spark-snowflake-bigquery.md"
ANSWER = re.compile(r"(epsilon=1\.0, delta=1e-6)")


def blocks_under(heading):
    section = PAGE.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [ANSWER.sub(r"\1, rng=7", block) for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL)]


def ran(blocks, **names):
    """Run blocks one after the other; return the releases that they leave."""
    releases, known = [], {"ps": ps, **names}
    for block in blocks:
        exec(block, known)
        releases.append(known.pop("release", None))
    return [release for release in releases if release is not None]


@pytest.fixture(scope="module")
def visits():
    """Rows of 800 patients, from one to seven each, some with gaps."""
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.repeat(np.arange(800), rng.integers(1, 8, 800)))
    columns = rng.standard_normal((len(patient), 3)) * [3.0, 2.0, 1.0] + patient[:, None] % 5
    columns[::50, 1] = np.nan
    numbers = dict(zip(("pulse", "pressure", "weight"), columns.T, strict=True))
    return pa.table({"patient": [f"p{number}" for number in patient], **numbers})


@pytest.fixture(scope="module")
def wanted(visits):
    return ps.private_pca(visits, 2, epsilon=1.0, delta=1e-6, person="patient", rng=7)


def same(release, other):
    assert release.cost.neighbours == "replace-one-person"
    assert repr(release.parameters) == repr(other.parameters)
    return np.array_equal(release.subspace.basis, other.subspace.basis)


def in_pieces(table, pieces=4):
    edges = np.linspace(0, len(table), pieces + 1).astype(int)
    return [table.slice(start, stop - start) for start, stop in pairwise(edges)]


class Connection:
    """What `snowflake.connector.connect` returns, as far as the page uses it."""

    def __init__(self, table):
        self._table = table

    def cursor(self):
        return Cursor(self._table)


class Cursor:
    """A `snowflake.connector.cursor.SnowflakeCursor` that has one answer."""

    def __init__(self, table):
        self._table = table

    def execute(
        self,
        operation,
        parameters=None,
        _is_put_get=None,
        num_statements=None,
        _skip_upload_on_content_match=False,
        *,
        params=None,
        _force_qmark_paramstyle=False,
        _statement_params=None,
        file_stream=None,
        **kwargs,
    ):
        assert operation.count("::") == 4  # every column is cast
        return self

    def fetch_arrow_batches(self, force_microsecond_precision=None):
        yield from in_pieces(self._table)

    def fetch_arrow_all(self, force_return_table=False, force_microsecond_precision=None):
        return self._table if len(self._table) or force_return_table else None


class Client:
    """A `google.cloud.bigquery.Client` that has one answer."""

    def __init__(self, table):
        self._table = table

    def query_and_wait(
        self,
        query,
        *,
        job_config=None,
        location=None,
        project=None,
        api_timeout=None,
        wait_timeout=None,
        retry=None,
        job_retry=None,
        page_size=None,
        max_results=None,
        query_results_format=None,
        compression_codec=None,
        timestamp_precision=None,
    ):
        return RowIterator(self._table)


class RowIterator:
    """A `google.cloud.bigquery.table.RowIterator`."""

    def __init__(self, table):
        self._table = table

    def to_arrow_iterable(self, bqstorage_client=None, max_queue_size=1, max_stream_count=None, timeout=None):
        for piece in in_pieces(self._table):
            yield from piece.combine_chunks().to_batches()

    def to_arrow(self, progress_bar_type=None, bqstorage_client=None, create_bqstorage_client=True, timeout=None):
        return self._table


def test_the_code_for_snowflake_gives_the_release_of_the_table_in_memory(visits, wanted):
    releases = ran(blocks_under("Snowflake"), connection=Connection(visits))
    assert len(releases) == 2
    assert all(same(release, wanted) for release in releases)


def test_the_code_for_bigquery_gives_the_release_of_the_table_in_memory(visits, wanted):
    imports = "from itertools import chain\nimport pyarrow as pa\n"  # as in the section before
    releases = ran([imports, *blocks_under("BigQuery")], client=Client(visits))
    assert len(releases) == 2
    assert all(same(release, wanted) for release in releases)


def test_parquet_that_another_system_wrote_in_several_files(visits, wanted, tmp_path):
    for number, piece in enumerate(in_pieces(visits)):
        pq.write_table(piece, tmp_path / f"part-{number:05d}.snappy.parquet")
    (tmp_path / "_SUCCESS").touch()
    releases = ran(blocks_under("Spark")[3:], folder=tmp_path)
    assert len(releases) == 2
    assert all(same(release, wanted) for release in releases)


def test_the_page_says_what_was_not_run_on_a_server():
    text = PAGE.read_text("utf-8")
    assert text.count("% skip: next") == text.count("```python") == 9
    assert "they have no server" in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_the_code_for_spark_gives_the_release_of_the_same_rows_in_memory(visits, wanted, tmp_path, monkeypatch):
    """On Spark itself, in local mode."""
    sql = pytest.importorskip("pyspark.sql", reason="needs pyspark: pip install --group spark")
    if shutil.which("java") is None:
        pytest.skip("needs a Java, such as Debian's default-jre-headless")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    settings = {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": str(tmp_path / "warehouse")}
    spark = sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        spark.createDataFrame(visits).createOrReplaceTempView("visits")
        rows = spark.table("visits").select("patient", "pulse", "pressure", "weight").toArrow()
        at_home = ps.private_pca(rows, 2, epsilon=1.0, delta=1e-6, person="patient", rng=7)
        assert same(at_home, wanted)  # Spark has kept the order
        releases = ran(blocks_under("Spark"), spark=spark, folder=str(tmp_path / "visits.parquet"))
    finally:
        spark.stop()
    assert len(releases) == 4  # the frame, its Arrow table, and its Parquet files here and on Dask
    assert all(same(release, wanted) for release in releases)


@pytest.mark.slow
def test_the_stand_ins_have_the_signatures_of_the_connectors():
    needed = "pip install --group warehouses"
    cursors = pytest.importorskip("snowflake.connector.cursor", reason=f"needs the connector: {needed}")
    bigquery = pytest.importorskip("google.cloud.bigquery", reason=f"needs the client: {needed}")
    tables = pytest.importorskip("google.cloud.bigquery.table", reason=f"needs the client: {needed}")
    for stand_in, theirs in (
        (Cursor, cursors.SnowflakeCursor),
        (Client, bigquery.Client),
        (RowIterator, tables.RowIterator),
    ):
        methods = [name for name, made in vars(stand_in).items() if inspect.isfunction(made) and name[0] != "_"]
        assert methods
        for name in methods:
            ours, real = (inspect.signature(getattr(kind, name)).parameters for kind in (stand_in, theirs))
            assert [(one.name, one.kind) for one in ours.values()] == [(one.name, one.kind) for one in real.values()]
