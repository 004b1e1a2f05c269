"""Every way to count one set of records: each takes an Arrow table to where its engine counts, and opens it there."""

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from tabulary.confidential.engines.compiled import CompiledEngine
from tabulary.confidential.reading.duckdb import DuckDBReader
from tabulary.confidential.records import Records
from tabulary.core.domain import Domain
from tests.clusters import GROUP
from tests.databases import PostgresServer


class Way(Protocol):
    """Opens records of a domain; what is given besides is what a constructor of `Records` takes."""

    def __call__(self, table: pa.Table, domain: Domain, **given: Any) -> Records: ...


def in_arrow(table: pa.Table, domain: Domain, **given: Any) -> Records:
    return Records.from_arrow(table, domain, **given)


def on_disk(table: pa.Table, domain: Domain, codings: Any = None, **given: Any) -> Records:
    return Records(CompiledEngine(DuckDBReader.of_arrow(table), domain, codings, memory_bytes=0, **given))


def in_pandas(table: pa.Table, domain: Domain, **given: Any) -> Records:
    return Records.from_pandas(pd.DataFrame(table.to_pydict()), domain, **given)


def in_polars(table: pa.Table, domain: Domain, **given: Any) -> Records:
    return Records.from_polars(pl.from_arrow(table), domain, **given)


def in_parquet(table: pa.Table, domain: Domain, **given: Any) -> Records:
    with tempfile.TemporaryDirectory() as folder:
        _write_halves(table, folder)
        return Records.from_file(folder, domain, **given)


def in_csv(table: pa.Table, domain: Domain, **given: Any) -> Records:
    with tempfile.TemporaryDirectory() as folder:
        pc.write_csv(table, Path(folder, "people.csv"))
        return Records.from_file(Path(folder, "people.csv"), domain, **given)


READ_HERE: list[Way] = [in_arrow, on_disk, in_pandas, in_polars, in_parquet, in_csv]
"""The ways that read every record and hold it encoded."""


class Places:
    """Where records are counted without being held here: a method a way. The files go when the tests are over."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._folder = folder
        self._request = request
        self._made = 0

    def duckdb_files(self, table: pa.Table, domain: Domain, **given: Any) -> Records:
        folder = self._new("files")
        folder.mkdir()
        _write_halves(table, folder)
        return Records.from_file(folder, domain, engine="duckdb", **given)

    def duckdb_csv(self, table: pa.Table, domain: Domain, **given: Any) -> Records:
        path = self._new("people.csv")
        pc.write_csv(table, path)
        return Records.from_file(path, domain, engine="duckdb", **given)

    def duckdb(self, table: pa.Table, domain: Domain, **given: Any) -> Records:
        path = self._new("people.duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.register("source", table)
            connection.execute("CREATE TABLE people AS SELECT * FROM source")
        return Records.from_database(f"duckdb:///{path}", "people", domain, **given)

    def sqlite(self, table: pa.Table, domain: Domain, **given: Any) -> Records:
        path = self._new("people.sqlite")
        kinds = {pa.string(): "TEXT", pa.int64(): "INTEGER", pa.float64(): "REAL"}
        connection = sqlite3.connect(path)
        with connection:
            declared = ", ".join(f'"{field.name}" {kinds[field.type]}' for field in table.schema)
            connection.execute(f"CREATE TABLE people ({declared})")
            marks = ", ".join("?" * table.num_columns)
            connection.executemany(f"INSERT INTO people VALUES ({marks})", _rows(table))
        connection.close()
        return Records.from_database(f"sqlite:///{path}", "people", domain, **given)

    def postgresql(self, table: pa.Table, domain: Domain, **given: Any) -> Records:
        server: PostgresServer = self._request.getfixturevalue("postgres_server")
        address = server.address(self._request.getfixturevalue("shared_database"))
        kinds = {pa.string(): "text", pa.int64(): "bigint", pa.float64(): "double precision"}
        self._made += 1
        name = f"people_{self._made}"
        declared = ", ".join(f'"{field.name}" {kinds[field.type]}' for field in table.schema)
        with psycopg.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} ({declared})")
            with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                for row in _rows(table):
                    copy.write_row(row)
        return Records.from_database(address, name, domain, **given)

    def spark(self, table: pa.Table, domain: Domain, **given: Any) -> Records:
        session = self._request.getfixturevalue("spark")
        return Records.from_spark(session.createDataFrame(table).repartition(3), domain, **given)

    def _new(self, name: str) -> Path:
        self._made += 1
        return self._folder / f"{self._made}-{name}"


ELSEWHERE = ["duckdb_files", "duckdb_csv", "duckdb", "sqlite", "postgresql"]
"""The ways that count in a database, as names of methods of `Places`."""

SPARK = GROUP
"""The way that counts on a cluster, which only one process starts."""


@pytest.fixture(scope="session")
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """Every place where records can be counted."""
    return Places(tmp_path_factory.mktemp("places"), request)


def _write_halves(table: pa.Table, folder: str | Path) -> None:
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), Path(folder, "1.parquet"))
    pq.write_table(table.slice(half), Path(folder, "2.parquet"))


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*table.to_pydict().values(), strict=True)
