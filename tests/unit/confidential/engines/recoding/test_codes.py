"""One meaning in every dialect: the codes that a database gives are those that the reader of files gives."""

import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import numpy as np
import psycopg
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding, text_of
from tabulary.confidential.engines.recoding.codes import code_of, is_readable, number_of
from tabulary.confidential.reading.duckdb import DuckDBReader
from tests.telling_values import (
    COLUMNS,
    UNSIGNED,
    Telling,
    by_edges,
    by_texts,
    codes_of_reader,
    in_order,
    table_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Asked = Callable[[ir.Table, str], dict[str, ir.Value]]
Ask = Callable[[pyarrow.Table, Asked], list[NDArray[Any]]]

# Ibis asks an older DuckDB.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

_SQLITE = {
    **dict.fromkeys(("row", "int8", "int16", "int32", "int64"), "INTEGER"),
    "float64": "REAL",
    "bool": "BOOLEAN",
    # A column's own way of comparing must not be seen.
    "text": "TEXT COLLATE NOCASE",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "uuid": "UUID",
}

_POSTGRES = {
    "row": "integer",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float32": "real",
    "float64": "double precision",
    "decimal_9_2": "numeric(9, 2)",
    "decimal_38_10": "numeric(38, 10)",
    "decimal_3_3": "numeric(3, 3)",
    "decimal_9_0": "numeric(9, 0)",
    "decimal_38_0": "numeric",
    "bool": "boolean",
    "text": "text",
    "day": "date",
    "moment": "timestamp",
    "uuid": "uuid",
}


def codes(recodings: Sequence[Recoding]) -> Asked:
    return lambda table, dialect: {
        f"k{place}": code_of(table[recoding.column], recoding, dialect).cast("int64")
        for place, recoding in enumerate(recodings)
    }


def answers(backend: Any, asked: Asked) -> list[NDArray[Any]]:
    table = backend.table("records")
    query = backend.compile(table.select(row=table["row"], **asked(table, backend.name)))
    return by_row(backend.con.execute(query).fetchall())


def by_row(found: Sequence[Sequence[Any]]) -> list[NDArray[Any]]:
    _, *columns = zip(*sorted(map(tuple, found), key=lambda row: row[0]), strict=True)
    return [np.array(column) for column in columns]


def ask_duckdb(table: pyarrow.Table, asked: Asked) -> list[NDArray[Any]]:
    backend = ibis.duckdb.connect()
    backend.con.register("records", table)
    with closing(backend.con):
        return answers(backend, asked)


@pytest.fixture
def ask_sqlite(tmp_path: Path) -> Ask:
    def ask(table: pyarrow.Table, asked: Asked) -> list[NDArray[Any]]:
        columns = ", ".join(f'"{name}" {_SQLITE[name]}' for name in table.column_names)
        rows = [tuple(map(as_sqlite, row.values())) for row in table.to_pylist()]
        backend = sqlite_with(tmp_path, columns, rows)
        with closing(backend.con):
            return answers(backend, asked)

    return ask


def sqlite_with(folder: Path, columns: str, rows: Sequence[tuple[Any, ...]]) -> Any:
    path = folder / "records.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE records ({columns})")
        connection.executemany(f"INSERT INTO records VALUES ({', '.join('?' for _ in rows[0])})", rows)
    return ibis.sqlite.connect(path)


def as_sqlite(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(" ").rstrip("0") if value.microsecond else value.isoformat(" ")
    return value.isoformat() if isinstance(value, date) else value


@pytest.fixture
def ask_postgresql(postgres_database: str) -> Ask:
    def ask(table: pyarrow.Table, asked: Asked) -> list[NDArray[Any]]:
        with psycopg.connect(postgres_database) as connection, connection.cursor() as cursor:
            columns = ", ".join(f'"{name}" {_POSTGRES[name]}' for name in table.column_names)
            cursor.execute(f"CREATE TABLE records ({columns})")
            with cursor.copy("COPY records FROM STDIN") as copy:
                for row in table.to_pylist():
                    copy.write_row(list(row.values()))
        backend = ibis.connect(postgres_database)
        with closing(backend.con):
            return answers(backend, asked)

    return ask


@pytest.fixture
def ask_spark(spark: "SparkSession", tmp_path: Path) -> Iterator[Ask]:
    def ask(table: pyarrow.Table, asked: Asked) -> list[NDArray[Any]]:
        pyarrow.parquet.write_table(table, tmp_path / "records.parquet")
        spark.read.parquet(f"file://{tmp_path}/records.parquet").createOrReplaceTempView("records")
        kinds = map(dt.DataType.from_pyarrow, table.schema.types)
        return answers_of_spark(spark, dict(zip(table.column_names, kinds, strict=True)), asked)

    zone = spark.conf.get("spark.sql.session.timeZone")
    # Where clocks are put forward and back, of which a moment without a zone must not know.
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield ask
    spark.conf.set("spark.sql.session.timeZone", zone)


def answers_of_spark(
    spark: "SparkSession", kinds: dict[str, dt.DataType], asked: Asked
) -> list[NDArray[Any]]:
    table = ibis.table(kinds, name="records")
    query = table.select(row=table["row"], **asked(table, ibis.pyspark.name))
    return by_row(spark.sql(ibis.to_sql(query, dialect="pyspark")).collect())


@pytest.fixture(params=["duckdb", "sqlite", "postgresql", "spark"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ask(dialect: str, request: pytest.FixtureRequest) -> Ask:
    """Ask a database of that dialect about the records of a table."""
    if dialect == "duckdb":
        return ask_duckdb
    found: Ask = request.getfixturevalue(f"ask_{dialect}")
    return found


def columns_of(dialect: str) -> list[Telling]:
    if dialect == "sqlite":
        return [column for column in COLUMNS if column.name in _SQLITE]
    return [*COLUMNS, *UNSIGNED] if dialect == "duckdb" else COLUMNS


def assert_recodes_as_the_reader_does(ask: Ask, table: pyarrow.Table, recodings: Sequence[Recoding]) -> None:
    found = ask(table, codes(recodings))
    for recoding, expected, given_codes in zip(
        recodings, codes_of_reader(table, recodings), found, strict=True
    ):
        differing = np.flatnonzero(given_codes != expected)
        values = [table[recoding.column][int(row)].as_py() for row in differing]
        assert not values, (recoding.attribute, values, given_codes[differing], expected[differing])


def test_a_database_recodes_as_the_reader_of_files_does(dialect: str, ask: Ask) -> None:
    columns = columns_of(dialect)
    recodings = [recoding for column in columns for recoding in column.recodings]
    assert_recodes_as_the_reader_does(ask, table_of(columns), recodings)


def test_a_database_reads_the_numbers_that_the_reader_of_files_reads(dialect: str, ask: Ask) -> None:
    columns = [
        column for column in columns_of(dialect) if column.name not in ("bool", "day", "moment", "uuid")
    ]
    if dialect == "spark":
        # Java shows those beyond with a digit too many, before version 19.
        single = Telling(
            "float32", pyarrow.float32(), [0.7, 12.34, -0.1, 1e-3, 16777216.0, math.inf, math.nan], ()
        )
        columns = [single if column.name == "float32" else column for column in columns]
    names = [column.name for column in columns]
    table = table_of(columns)
    expected = DuckDBReader.of_arrow(table).columns([], names)
    found = ask(table, lambda t, d: {name: number_of(t[name], d) for name in names})
    for name, numbers in zip(names, found, strict=True):
        np.testing.assert_array_equal(numbers.astype(float), expected[name].to_numpy(), err_msg=name)


def test_thousands_of_levels_are_found(dialect: str, ask: Ask) -> None:
    # SQLite compares one after the other.
    many = 500 if dialect == "sqlite" else 5000
    areas = [f"E{number * 7:08d}" for number in range(many)]
    numbers = [str(number * 3) for number in range(many)]
    texts = [areas[0], areas[-1], "E00000001", areas[1].lower()]
    table = table_of(
        [
            Telling("text", pyarrow.string(), texts, ()),
            Telling("int64", pyarrow.int64(), [0, int(numbers[-1]), int(numbers[-1]) + 1, -3, 2**62], ()),
        ]
    )
    recodings = [in_order("a", "text", areas), by_texts("b", "text", areas), in_order("c", "int64", numbers)]
    assert_recodes_as_the_reader_does(ask, table, recodings)


@settings(max_examples=12)
@given(st.data())
def test_any_values_are_recoded_as_the_reader_of_files_does(data: st.DataObject) -> None:
    def some(values: st.SearchStrategy[Any]) -> Any:
        return data.draw(st.lists(values, min_size=1, max_size=40))

    finite = st.floats(allow_nan=False, allow_infinity=False)
    columns = [
        Telling("text", pyarrow.string(), some(st.text(st.characters(exclude_categories=["Cs"]))), ()),
        Telling(
            "number_text", pyarrow.string(), some(finite.map(repr) | st.from_regex(r"[-+.e0-9]{0,12}")), ()
        ),
        Telling("float64", pyarrow.float64(), some(st.floats()), ()),
        Telling("float32", pyarrow.float32(), some(st.floats(width=32)), ()),
        Telling("int64", pyarrow.int64(), some(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)), ()),
        Telling("decimal", pyarrow.decimal128(18, 4), some(st.decimals(-(10**9), 10**9, places=4)), ()),
        Telling("moment", pyarrow.timestamp("us"), some(st.datetimes()), ()),
    ]
    recodings = []
    for column in columns:
        values = [value for value in column.values if value == value]
        shown = [as_sqlite(value) if isinstance(value, date) else text_of(value) for value in values]
        if column.name == "float32":
            shown = [text for value in values for text in (text_of(value), str(np.float32(value)))]
        if column.name == "decimal":
            shown = [format(value, "f").rstrip("0").rstrip(".") for value in values]
        texts = [text for text in shown if text and "\0" not in text]
        recodings.append(by_texts(column.name, column.name, [*texts, "0"]))
        edges = {float(edge) for edge in data.draw(st.lists(finite, max_size=3))}
        edges |= {float(value) for value in values if isinstance(value, float) and np.isfinite(value)}
        edges |= {float(str(np.float32(edge))) for edge in edges if abs(edge) < 1e38}
        recodings.append(by_edges(f"{column.name} in bins", column.name, sorted(edges | {0.0})))
    assert_recodes_as_the_reader_does(ask_duckdb, table_of(columns), recodings)


def test_what_sqlite_keeps_in_a_column_of_another_type_is_unknown(tmp_path: Path) -> None:
    rows = [
        (0, 5, 5.0, "5", True, 1),
        (1, "NA", "NA", b"5", "x", 2),
        (2, "", "", "", 2, 3),
        (3, 5.5, 7, "A", None, 4),
    ]
    columns = '"row" INTEGER, i INTEGER, f REAL, t TEXT COLLATE NOCASE, b BOOLEAN, d DECIMAL(9, 2)'
    backend = sqlite_with(tmp_path, columns, rows)
    recodings = [
        *(in_order("levels", column, ["5", "7", "a", "true", "false"]) for column in "iftb"),
        *(by_edges("bins", column, [0, 5, 6]) for column in "ift"),
    ]
    with closing(backend.con):
        found = [column.tolist() for column in answers(backend, codes(recodings))]
    assert found == [
        [0, 5, 5, 5],
        [0, 5, 5, 1],
        [0, 5, 5, 5],
        [3, 5, 5, 5],
        [1, 3, 3, 3],
        [1, 3, 3, 0],
        [1, 3, 3, 3],
    ]


def test_what_only_postgresql_has_is_recoded_by_its_value(postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE TYPE answer AS ENUM ('yes', 'no')")
        connection.execute(
            'CREATE TABLE records ("row" integer, padded char(5), answer answer, price money, n numeric, day date)'
        )
        connection.execute(
            "INSERT INTO records VALUES (0, 'yes', 'yes', 1.5, '1.50', 'infinity'), (1, 'no', 'no', 2, 'NaN', NULL), "
            "(2, '', NULL, NULL, '1e400', '2024-02-29'), (3, NULL, NULL, NULL, '1e-400', '-infinity'), "
            "(4, ' yes', NULL, NULL, '-Infinity', NULL)"
        )
    backend = ibis.connect(postgres_database)
    levels = ["yes", "no", "1.5", "2", "2024-02-29", "perhaps"]
    recodings = [
        *(in_order("levels", column, levels) for column in ("padded", "answer", "price", "n", "day")),
        by_edges("bins", "price", [0, 2]),
        by_edges("bins", "n", [-1, 0, 1.5]),
    ]
    with closing(backend.con):
        found = [column.tolist() for column in answers(backend, codes(recodings))]
    assert found[:5] == [[0, 1, 6, 6, 6], [0, 1, 6, 6, 6], [2, 3, 6, 6, 6], [2, 6, 6, 6, 6], [6, 6, 4, 6, 6]]
    assert found[5:] == [[1, 0, 2, 2, 2], [0, 3, 3, 1, 3]]


def test_a_collation_of_spark_does_not_make_texts_equal(spark: "SparkSession") -> None:
    texts = ", ".join(
        f"({place}, '{text}' COLLATE UTF8_LCASE)" for place, text in enumerate(["a", "A", "7", "7E0"])
    )
    spark.sql(f"SELECT * FROM VALUES {texts} AS t(row, text)").createOrReplaceTempView("records")
    recodings = [in_order("levels", "text", ["a", "7"]), by_edges("bins", "text", [0, 7])]
    found = answers_of_spark(spark, {"row": dt.int32, "text": dt.string}, codes(recodings))
    assert [column.tolist() for column in found] == [[0, 2, 1, 2], [2, 2, 0, 0]]


def test_a_collation_of_duckdb_does_not_make_texts_equal() -> None:
    backend = ibis.duckdb.connect()
    with closing(backend.con):
        backend.con.execute('CREATE TABLE records ("row" integer, text varchar COLLATE NOCASE)')
        backend.con.execute("INSERT INTO records VALUES (0, 'a'), (1, 'A')")
        (found,) = answers(backend, codes([in_order("levels", "text", ["a"])]))
    assert found.tolist() == [0, 1]


def test_moments_of_a_billionth_of_a_second_are_found_by_their_text() -> None:
    moments = pyarrow.array([1_709_208_000_000_000_001, 1_709_208_000_000_000_000], pyarrow.timestamp("ns"))
    table = pyarrow.table({"row": pyarrow.array([0, 1]), "moment": moments})
    levels = in_order("levels", "moment", ["2024-02-29 12:00:00", "2024-02-29 12:00:00.000000001"])
    assert_recodes_as_the_reader_does(ask_duckdb, table, [levels])
    assert ask_duckdb(table, codes([levels]))[0].tolist() == [1, 0]


@pytest.mark.parametrize(
    "kind", ["array<string>", "timestamp('UTC')", "binary", "time", "json", "struct<a: int8>"]
)
def test_a_type_whose_values_have_no_text_cannot_be_read(kind: str) -> None:
    assert not is_readable(dt.dtype(kind))


@pytest.mark.parametrize("kind", ["boolean", "date", "timestamp", "uuid"])
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres", "pyspark"])
def test_a_type_without_numbers_has_none_to_read(kind: str, dialect: str) -> None:
    assert number_of(ibis.table({"a": kind}, name="t").a, dialect) is None
