"""Counting where the records are: in PostgreSQL, DuckDB, SQLite and others, with one meaning and no word too much."""

import datetime
import importlib
import logging
import os
import re
import signal
import socket
import sqlite3
import sys
import threading
import traceback
import warnings
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from urllib.parse import quote

import duckdb
import ibis.expr.datatypes as dt
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.confidential.coding import Coding
from tabulary.confidential.engines.compiled import CompiledEngine
from tabulary.confidential.engines.database import elsewhere as elsewhere_module
from tabulary.confidential.engines.database import engine as module
from tabulary.confidential.engines.database.engine import DatabaseEngine
from tabulary.confidential.engines.database.places import Relation, SourceColumn, interruptible
from tabulary.confidential.engines.database.postgres import Postgres
from tabulary.confidential.reading.duckdb import DuckDBReader
from tabulary.confidential.records import Records
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain
from tabulary.errors import (
    ImpossibleRecord,
    InvalidAddress,
    InvalidColumn,
    MissingExtra,
    TabularyError,
    UnknownLevel,
    UnreadableSource,
    WeightsClipped,
)
from tests.databases import PASSWORD
from tests.pages import blocks
from tests.waiting import wait_until

PAGE = "docs/how-to/count-in-a-database.md"
NOTHING = "Nothing was counted."

SEX = Domain({"sex": ["F", "M"]})
PEOPLE = Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]})
MARGINS = [("sex", "age"), ("age", "job"), ("sex", "job"), ()]

USER, SECRET = "zquser", "s3@cr/et%7?"
"""A role's name and its password: neither may be found where it must not be."""


def write(url, table, columns, rows):
    """Create a table in a DuckDB, SQLite or PostgreSQL database."""
    with connection(url) as there:
        there.execute(f"CREATE TABLE {table} ({columns})")
        insert(there, table, rows)


def insert(there, table, rows):
    mark = "%s" if isinstance(there, psycopg.Connection) else "?"
    with closing(there.cursor()) as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join([mark] * len(rows[0]))})", rows)


@contextmanager
def connection(url):
    scheme, _, path = url.partition(":///")
    if scheme == "duckdb":
        opened = duckdb.connect(path)
    elif scheme == "sqlite":
        opened = sqlite3.connect(path, isolation_level=None)
    else:
        opened = psycopg.connect(url, autocommit=True)
    with closing(opened):
        yield opened


@pytest.fixture(params=["duckdb", "sqlite", "postgresql"])
def url(request, tmp_path):
    """The address of an empty database of each kind that is known."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_database")
    path = tmp_path / f"people.{request.param}"
    if request.param == "duckdb":
        duckdb.connect(str(path)).close()
    else:
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA journal_mode = WAL")
    return f"{request.param}:///{path}"


@pytest.fixture
def reader(postgres_server, postgres_database):
    """The address of a database with an empty role in it: it may connect, and nothing else."""
    with postgres_server.connect("shared") as there:
        there.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{SECRET}'")
        there.execute("REVOKE ALL ON SCHEMA public FROM public")
        there.execute(f"GRANT USAGE ON SCHEMA public TO {USER}")
    yield f"postgresql://{USER}:{quote(SECRET, safe='')}@127.0.0.1:{postgres_server.port}/shared"
    with postgres_server.connect("shared") as there:
        there.execute(f"DROP OWNED BY {USER}")
        there.execute(f"DROP ROLE {USER}")


def same(counts, others):
    assert counts.keys() == others.keys()
    for margin, cells in counts.items():
        assert cells.dtype == np.int64
        assert cells.shape == others[margin].shape
        assert np.array_equal(cells, others[margin]), margin


def outcome(make, margins):
    """Return the counts that an engine gives, or the error with which it refuses."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            counts = make().count(margins)
        except TabularyError as refused:
            return type(refused), str(refused)
        return counts, [str(warning.message) for warning in given]


def refusal(error, action, match="."):
    """Return an error that must not hold a secret, nor carry another error along."""
    with pytest.raises(error, match=match) as refused:
        action()
    problem = refused.value
    # Who opened files knows that an unknown level refuses them all.
    assert NOTHING in str(problem) or error is UnknownLevel
    assert problem.__cause__ is None
    assert problem.__context__ is None
    told = "".join(traceback.format_exception(problem)) + repr(problem)
    for secret in (PASSWORD, USER, SECRET, quote(SECRET, safe=""), *SECRET.split("/"), "cr/et"):
        assert secret not in told
    return problem


# ---------------------------------------------------------------------------- one meaning

ROWS = [
    # sex, years, job, income, score, born, member, weight
    ("F", 3, "none", 0.5, Decimal("1.50"), datetime.date(2020, 2, 29), True, 1.05),
    ("M", 70, "paid", 1000.0, Decimal("2.00"), datetime.date(1954, 1, 1), False, 0.25),
    ("M", 64, "paid", None, Decimal("3.25"), datetime.date(1960, 1, 1), True, 0.35),
    ("F", None, "none", 1.0, None, None, None, 7.0),
    ("x", 15, "paid", 2.5, Decimal("1.50"), datetime.date(2009, 1, 1), False, 0.0),
    ("f", -1, "", float("inf"), Decimal("0.00"), datetime.date(2020, 2, 29), False, 2.0),
    (None, 200, None, 1e300, Decimal("-1.50"), datetime.date(1, 1, 1), True, 0.15),
]
COLUMNS = (
    "sex TEXT, years INTEGER, job VARCHAR(9), income DOUBLE PRECISION, score NUMERIC(9, 2), born DATE, "
    "member BOOLEAN, weight DOUBLE PRECISION"
)
NAMES = ("sex", "years", "job", "income", "score", "born", "member", "weight")
WIDE = Domain(
    {
        "sex": ["F", "M", "other"],
        "age": ["0-14", "15-64", "65+"],
        "job": ["none", "paid", "?"],
        "income": ["0-0.99", "1-999", "1000+", "?"],
        "score": ["1.5", "2", "3.25", "?"],
        "born": ["2020-02-29", "1954-01-01", "?"],
        "member": ["true", "false", "?"],
    }
)
INCOME = Domain({"x": ["0-0", "1-999", "1000+"]})
CODINGS = {
    "sex": Coding(unknown="level:other"),
    "age": Coding("years", bins=[0, 15, 65], unknown="drop"),
    "job": Coding(unknown="level:?"),
    "income": Coding(
        mapping={0.5: "0-0.99", 1: "1-999", 2.5: "1-999", 1000: "1000+", 1e300: "1000+"}, unknown="level:?"
    ),
    "score": Coding(unknown="level:?"),
    "born": Coding(unknown="level:?"),
    "member": Coding(unknown="level:?"),
}
PAIRS = [(a, b) for a in WIDE.attributes for b in WIDE.attributes if WIDE.position(a) < WIDE.position(b)]


def arrow(rows=ROWS):
    return pa.table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True)))


def stored(url, rows):
    """Return the rows as a driver takes them."""
    if url.startswith("sqlite"):
        plain = {Decimal: float, datetime.date: str}
        return [[plain.get(type(value), lambda v: v)(value) for value in row] for row in rows]
    return rows


@pytest.mark.filterwarnings("ignore::tabulary.errors.WeightsClipped")
@pytest.mark.parametrize("weights", [None, Weights("weight", 2, unit="1/10")], ids=["records", "weights"])
def test_a_table_in_a_database_is_counted_as_the_compiled_engine_counts_it(url, weights):
    write(url, "people", COLUMNS, stored(url, ROWS))
    engine = DatabaseEngine.connect(url, "people", WIDE, CODINGS, weights=weights)
    assert engine.name == url.partition(":")[0]
    margins = [*PAIRS, WIDE.attributes[:4], ()]
    compiled = CompiledEngine(DuckDBReader.of_arrow(arrow()), WIDE, CODINGS, weights=weights)
    same(engine.count(margins), compiled.count(margins))
    # Again: a tally connects anew.
    same(engine.count([()]), compiled.count([()]))


@pytest.mark.parametrize("schema", ["census", "Census Bureau"])
def test_a_table_may_be_in_a_schema_and_names_are_exact(schema, postgres_database):
    with connection(postgres_database) as there:
        there.execute(f'CREATE SCHEMA "{schema}"')
        there.execute(f'CREATE TABLE "{schema}"."People" ("Sex" text, "sex" text, "it""s; --" int)')
        there.execute(f"INSERT INTO \"{schema}\".\"People\" VALUES ('F', 'M', 1), ('F', 'F', 2)")
    domain = Domain({"sex": ["F", "M"], "Sex": ["F", "M"], "n": [1, 2]})
    engine = DatabaseEngine.connect(postgres_database, f"{schema}.People", domain, {"n": Coding('it"s; --')})
    counts = engine.count([("sex", "Sex"), ("n",)])
    assert counts["sex", "Sex"].tolist() == [[1, 0], [1, 0]]
    assert counts["n",].tolist() == [1, 1]
    refusal(
        UnreadableSource,
        lambda: DatabaseEngine.connect(postgres_database, f"{schema}.people", SEX),
        "no table",
    )
    refusal(
        UnreadableSource, lambda: DatabaseEngine.connect(postgres_database, "People", SEX), "name the schema"
    )


def test_what_postgresql_alone_has_is_read_by_its_characters(postgres_database):
    with connection(postgres_database) as there:
        there.execute("CREATE TYPE mood AS ENUM ('sad', 'so so', 'glad')")
        there.execute("CREATE DOMAIN short AS varchar(9)")
        there.execute("CREATE DOMAIN shorter AS short")
        there.execute(
            "CREATE TABLE people (mood mood, name shorter, code char(4), id uuid, small smallint, n numeric)"
        )
        there.execute(
            "INSERT INTO people VALUES ('so so', 'it''s \\', 'ab', '00000000-0000-0000-0000-00000000000A', 1, 1.50),"
            "('glad', '100 %%s', 'cd', NULL, 2, 'NaN'), (NULL, '', '', NULL, NULL, NULL)"
        )
        there.execute("CREATE VIEW seen AS SELECT * FROM people")
    domain = Domain(
        {
            "mood": ["so so", "glad", "angry", "?"],
            "name": ["it's \\", "100 %%s", "?"],
            "code": ["ab", "cd", "?"],
            "id": ["00000000-0000-0000-0000-00000000000a", "?"],
            "small": [1, 2, "?"],
            "n": ["1.5", "?"],
        }
    )
    codings = {attribute: Coding(unknown="level:?") for attribute in domain.attributes}
    for table in ("people", "seen"):
        counts = DatabaseEngine.connect(postgres_database, table, domain, codings).count(
            [(a,) for a in domain.attributes]
        )
        assert [counts[a,].tolist() for a in domain.attributes] == [
            [1, 1, 0, 1], [1, 1, 1], [1, 1, 1], [1, 2], [1, 1, 1], [1, 2]
        ]  # fmt: skip


values = st.one_of(st.sampled_from(["F", "M", "f", "", " F", "1", "2", "3.5", "x'y\\", "é", "%s"]), st.none())
numbers = st.one_of(st.integers(-5, 20), st.none())
amounts = st.one_of(
    st.sampled_from([0.0, -0.0, 0.05, 0.15, 0.25, 1.0, 1.5, 2.0, 9.99, -1.0, float("nan")]), st.none()
)


@st.composite
def sources(draw):
    """Columns of text, whole numbers and doubles, with codings of every kind, structural zeros, and weights or none."""
    people = draw(st.integers(0, 12))

    def column(of):
        return draw(st.lists(of, min_size=people, max_size=people))

    unknown = st.sampled_from(["error", "drop", "level:?"])
    domain = Domain(
        # More cells than a byte has values, in which a database may hold a small code.
        {
            "a": ["F", "M", "x'y\\", "é", "%s", "?", *range(1000, 1030)],
            "b": [0, 1, 2, 3, "?"],
            "c": ["0-0", "1+", "?"],
        },
        draw(st.sampled_from([[], [{"a": "F", "b": "1"}, {"b": "2", "c": "1+"}], [{"a": ["é", "%s"]}]])),
    )
    table = pa.table(
        {
            "a": pa.array(column(values), pa.string()),
            "b": pa.array(column(numbers), draw(st.sampled_from([pa.int8(), pa.int64(), pa.float64()]))),
            "c": pa.array(column(amounts), pa.float64()),
            "w": pa.array(
                column(st.one_of(st.floats(0, 3), st.sampled_from([0.05, 0.15, 2.05]))), pa.float64()
            ),
        }
    )
    codings = {
        "a": Coding(unknown=draw(unknown)),
        "b": Coding(unknown=draw(unknown)),
        "c": Coding(bins=[0, 1], unknown=draw(unknown)),
    }
    weights = draw(st.sampled_from([None, Weights("w", 2, unit="1/10"), Weights("w", "4/3", unit="1/3")]))
    margins = draw(
        st.lists(st.sampled_from([("a",), ("a", "b"), ("c", "a"), ("a", "b", "c"), ()]), min_size=1)
    )
    return table, domain, codings, weights, [domain.margin(margin) for margin in margins]


@settings(max_examples=60)
@given(sources())
def test_duckdb_in_this_process_gives_the_counts_or_the_error_of_the_compiled_engine(source):
    table, domain, codings, weights, margins = source

    def engine(kind):
        return lambda: kind(DuckDBReader.of_arrow(table), domain, codings, weights=weights)

    ours, theirs = (
        outcome(engine(DatabaseEngine.of_reader), margins),
        outcome(engine(CompiledEngine), margins),
    )
    assert ours[1] == theirs[1]
    if isinstance(theirs[0], dict):
        same(ours[0], theirs[0])
    else:
        assert ours[0] is theirs[0]


weighted = st.tuples(
    st.lists(
        st.one_of(
            st.floats(0, 10, allow_subnormal=True),
            st.floats(0, 1e308),
            st.integers(0, 4000).map(lambda n: n / 2000),
            st.integers(0, 4000).map(lambda n: np.nextafter(n / 2000, 3)),
        ),
        min_size=40,
        max_size=40,
    ),
    st.sampled_from(
        [
            (2, "1/10"),
            (2, "1/100"),
            ("4/3", "1/3"),
            (10, "5/2"),
            ("1e100", "1e98"),
            ("3e-98", "1e-98"),
            (10**7, "1/100"),
        ]
    ),
)


def check_units(url, drawn):
    """Every weight in a cell of its own, so that each of them is compared."""
    found, (maximum, unit) = drawn
    found = [float(number) for number in found]
    weights = Weights("w", maximum, unit=unit)
    with connection(url) as there:
        there.execute("DELETE FROM people")
        insert(there, "people", list(enumerate(found)))
    domain = Domain({"id": range(len(found))})
    table = pa.table({"id": range(len(found)), "w": found})
    ours = outcome(lambda: DatabaseEngine.connect(url, "people", domain, weights=weights), [("id",)])
    theirs = outcome(lambda: CompiledEngine(DuckDBReader.of_arrow(table), domain, weights=weights), [("id",)])
    assert ours[1] == theirs[1]
    same(ours[0], theirs[0])


def test_a_weight_is_the_same_number_of_units_in_every_database(url):
    write(url, "people", "id INTEGER, w DOUBLE PRECISION", [(0, 0.0)])

    @settings(max_examples=10 if url.startswith("postgresql") else 6)
    @given(weighted)
    def check(drawn):
        check_units(url, drawn)

    check()


def test_weights_are_refused_and_clipped_as_the_compiled_engine_does(url):
    domain = Domain({"id": [1, 2, 3]}, [{"id": "3"}])
    weights = Weights("w", 2, unit="1/10")
    write(
        url,
        "people",
        "id INTEGER, w DOUBLE PRECISION, t TEXT, d BOOLEAN",
        [(1, 1.0, "1e0", None), (2, 2.5, "2", None)],
    )
    engine = DatabaseEngine.connect(url, "people", domain, weights=weights)
    with pytest.warns(WeightsClipped, match="public maximum"):
        assert engine.count([("id",)])["id",].tolist() == [10, 20, 0]
    text = DatabaseEngine.connect(url, "people", domain, weights=Weights("t", 2, unit="1/10"))
    assert text.count([("id",)])["id",].tolist() == [10, 20, 0]
    refusal(
        InvalidColumn,
        lambda: DatabaseEngine.connect(url, "people", domain, weights=Weights("d", 2, unit=1)),
        "cannot be weights",
    )
    with connection(url) as there:
        # A weight of nothing adds nothing to a sum: the record stands in its cell all the same.
        insert(there, "people", [(3, 0.0, "", None)])
    refusal(ImpossibleRecord, lambda: engine.count([("id",)]), "id '3'")
    with connection(url) as there:
        insert(there, "people", [(1, -1.0, "", None), (1, None, "", None)])
    refusal(
        InvalidColumn,
        lambda: engine.count([("id",)]),
        "missing or not a finite number, and one that is negative",
    )
    tiny = DatabaseEngine.connect(
        url, "people", Domain({"id": [1, 2, 3]}), weights=Weights("w", 10**9, unit=1)
    )
    with connection(url) as there:
        there.execute("DELETE FROM people WHERE w IS NULL OR w < 0")
    assert tiny.count([()])[()] == 3


def test_several_files_are_one_source_whatever_the_order_and_type_of_their_columns(tmp_path):
    pq.write_table(pa.table({"sex": ["F", "M"], "n": [1, 2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"n": ["1", "2"], "Sex": ["x", "x"], "sex": ["M", "M"]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"n": [2.0], "sex": ["F"]}), tmp_path / "3.parquet")
    domain = Domain({"n": [1, 2], "sex": ["F", "M"]})
    with Records.from_file(tmp_path, domain, engine="duckdb") as records:
        assert records.engine == "duckdb"
        assert records.tally([["n", "sex"]]).exact(["n", "sex"]).tolist() == [[1, 1], [1, 2]]
    pq.write_table(pa.table({"n": [7], "sex": ["F"]}), tmp_path / "4.parquet")
    pq.write_table(pa.table({"n": [1], "sex": ["?"]}), tmp_path / "5.parquet")
    with Records.from_file(tmp_path, domain, engine="duckdb") as records:
        # All files are looked at before one of them is refused.
        refusal(UnknownLevel, lambda: records.tally([["n"]]), "2 columns hold a value outside")


def test_fields_of_a_csv_file_are_text(tmp_path):
    (tmp_path / "people.csv").write_text("n,s\n1,F\n01,F\n,F\n", encoding="utf-8")
    domain = Domain({"n": ["1", "01", "?"]})
    with Records.from_file(tmp_path, domain, {"n": Coding(unknown="level:?")}, engine="duckdb") as records:
        assert records.tally([["n"]]).exact(["n"]).tolist() == [1, 1, 1]
        (tmp_path / "people.csv").write_text("n,s\n1,F,7\n", encoding="utf-8")
        refusal(UnreadableSource, lambda: records.tally([["n"]]), "more or fewer fields")


def test_what_can_be_read_only_once_is_not_counted_in_duckdb():
    once = pa.table({"sex": ["F"]}).to_reader()
    refusal(UnreadableSource, lambda: DatabaseEngine.of_reader(DuckDBReader.of_arrow(once), SEX), "only once")


# ---------------------------------------------------------------------------- what must not be counted


def test_unknown_values_refuse_drop_or_have_a_level(url):
    write(url, "people", "sex TEXT, age TEXT", [("F", "1"), ("x", "1"), ("M", "2"), (None, None)])
    domain = Domain({"sex": ["F", "M"], "age": [1, 2]})
    engine = DatabaseEngine.connect(url, "people", domain)
    refusal(UnknownLevel, lambda: engine.count([("sex",)]), "'sex', 'age'")
    engine = DatabaseEngine.connect(url, "people", domain, {"sex": Coding(unknown="drop")})
    # An unknown value in a column that refuses them counts even in a record that another column drops.
    refusal(UnknownLevel, lambda: engine.count([("sex",)]), "column 'age'")
    codings = {"sex": Coding(unknown="drop"), "age": Coding(unknown="level:2")}
    engine = DatabaseEngine.connect(url, "people", domain, codings)
    assert engine.count([("sex", "age"), ("age",)])["sex", "age"].tolist() == [[1, 0], [0, 1]]


def test_a_table_without_records_counts_like_one_without_admitted_records(url):
    write(url, "people", "sex TEXT", [("x",)])
    dropping = DatabaseEngine.connect(url, "people", SEX, {"sex": Coding(unknown="drop")})
    assert dropping.count([("sex",), ()])["sex",].tolist() == [0, 0]
    with connection(url) as there:
        there.execute("DELETE FROM people")
    for engine in (dropping, DatabaseEngine.connect(url, "people", SEX)):
        assert {m: n.tolist() for m, n in engine.count([("sex",), ()]).items()} == {("sex",): [0, 0], (): 0}


def test_a_record_in_an_impossible_cell_refuses_every_margin(url):
    domain = Domain({"age": ["0-14", "15+"], "job": ["none", "paid"]}, [{"age": "0-14", "job": "paid"}])
    write(url, "people", "age TEXT, job TEXT", [("15+", "paid"), ("0-14", "none")])
    engine = DatabaseEngine.connect(url, "people", domain)
    assert engine.count([("age",)])["age",].tolist() == [1, 1]
    with connection(url) as there:
        insert(there, "people", [("0-14", "paid")])
    refusal(ImpossibleRecord, lambda: engine.count([("job",)]), "age '0-14' with job 'paid'")


def test_columns_are_looked_at_when_the_records_are_opened(url):
    write(
        url, "people", '"Sex" TEXT, b BLOB' if "sqlite" in url else '"Sex" TEXT, b TIMESTAMPTZ', [("F", None)]
    )
    refusal(InvalidColumn, lambda: DatabaseEngine.connect(url, "people", SEX), "no column 'sex'")
    refusal(
        InvalidColumn,
        lambda: DatabaseEngine.connect(url, "people", SEX, {"sex": Coding("b")}),
        "column 'b' of the table 'people' .* has the type",
    )
    refusal(UnreadableSource, lambda: DatabaseEngine.connect(url, "nobody", SEX), "no (such )?table")


def test_a_column_that_takes_different_texts_for_the_same_is_refused(postgres_database, tmp_path):
    with connection(postgres_database) as there:
        # This server was built without the library that has such collations: one that calls itself so must do.
        there.execute("CREATE COLLATION loose (locale = 'C')")
        there.execute("UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'loose'")
    write(postgres_database, "people", "sex TEXT COLLATE loose, job TEXT", [("f", "F")])
    refusal(
        InvalidColumn,
        lambda: DatabaseEngine.connect(postgres_database, "people", SEX),
        "column 'sex' .*collation",
    )
    assert (
        DatabaseEngine.connect(postgres_database, "people", SEX, {"sex": Coding("job")}).count([()])[()] == 1
    )

    file = f"duckdb:///{tmp_path}/people.duckdb"
    write(
        file,
        "people",
        "sex VARCHAR COLLATE NOCASE, job VARCHAR COLLATE NOACCENT, age VARCHAR",
        [("f", "F", "F")],
    )
    for column in ("sex", "job"):
        engine = DatabaseEngine.connect(file, "people", SEX, {"sex": Coding(column)})
        refusal(InvalidColumn, lambda counted=engine: counted.count([()]), f"column '{column}' .*collation")
    assert DatabaseEngine.connect(file, "people", SEX, {"sex": Coding("age")}).count([()])[()] == 1


def test_sqlite_compares_by_characters_and_reads_what_a_column_says_it_holds(tmp_path):
    url = f"sqlite:///{tmp_path}/people.sqlite"
    write(
        url,
        "people",
        "sex TEXT COLLATE NOCASE, n INTEGER, any",
        [("f", 1, 1), ("F", "many", 1), ("F", 2.5, 1)],
    )
    codings = {"sex": Coding(unknown="level:?"), "n": Coding(bins=[0, 2], unknown="level:?")}
    domain = Domain({"sex": ["F", "?"], "n": ["0-1", "2+", "?"]})
    counts = DatabaseEngine.connect(url, "people", domain, codings).count([("sex",), ("n",)])
    assert counts["sex",].tolist() == [2, 1]
    assert counts["n",].tolist() == [1, 0, 2]
    refusal(
        InvalidColumn,
        lambda: DatabaseEngine.connect(url, "people", SEX, {"sex": Coding("any")}),
        "no declared type",
    )


def test_the_values_of_an_enum_are_not_told(tmp_path):
    url = f"duckdb:///{tmp_path}/people.duckdb"
    write(url, "people", "sex ENUM('F', 'secret'), pairs ENUM('F', 'secret')[]", [("F", None)])
    assert DatabaseEngine.connect(url, "people", SEX).count([()])[()] == 1
    told = refusal(
        InvalidColumn, lambda: DatabaseEngine.connect(url, "people", SEX, {"sex": Coding("pairs")})
    )
    assert "secret" not in str(told)


# ---------------------------------------------------------------------------- one state, and nothing but counts


@pytest.fixture
def small_covers(monkeypatch):
    """Every margin is a query of its own."""
    monkeypatch.setattr(module, "SUPER_CELLS", 1)


@pytest.mark.usefixtures("small_covers")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_table_that_changes_while_it_is_counted_is_counted_as_it_was(kind, request, tmp_path):
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path}/people.sqlite"
        with connection(url) as there:
            there.execute("PRAGMA journal_mode = WAL")
    else:
        url = request.getfixturevalue("postgres_database")
    row = ("F", "0-14", "none")
    write(url, "people", "sex TEXT, age TEXT, job TEXT", [row])
    engine = DatabaseEngine.connect(url, "people", PEOPLE)
    told = []

    def progress(*what):
        told.append(what)
        with connection(url) as there:
            insert(there, "people", [row])

    counts = engine.count(MARGINS[:3], progress=progress)
    assert told == [("counting", 33, 100), ("counting", 66, 100), ("counting", 100, 100)]
    assert {int(cells.sum()) for cells in counts.values()} == {1}
    assert engine.count([()])[()] == 4


def test_a_role_that_may_read_the_columns_and_nothing_else_is_enough(reader, postgres_database):
    write(postgres_database, "people", "sex TEXT, name TEXT, w NUMERIC", [("F", "Ada", 1), ("M", "Bob", 2)])
    refusal(
        UnreadableSource,
        lambda: DatabaseEngine.connect(reader, "people", SEX),
        "may not read it.*GRANT SELECT",
    )
    with connection(postgres_database) as there:
        there.execute(f"GRANT SELECT (sex, w) ON people TO {USER}")
        there.execute("REVOKE TEMPORARY ON DATABASE shared FROM public")
    try:
        engine = DatabaseEngine.connect(reader, "people", SEX, weights=Weights("w", 5, unit="1/2"))
        assert engine.count([("sex",)])["sex",].tolist() == [2, 4]
        refusal(
            UnreadableSource,
            lambda: DatabaseEngine.connect(reader, "people", SEX, {"sex": Coding("name")}),
            "may not read",
        )
        assert USER not in repr(vars(engine))
        assert SECRET not in repr(vars(engine))
    finally:
        with connection(postgres_database) as there:
            there.execute("GRANT TEMPORARY ON DATABASE shared TO public")


@pytest.fixture
def page_database(postgres_server, postgres_database):
    """The address of a database with the table that the how-to page names; its role is gone in the end."""
    with connection(postgres_database) as there:
        there.execute("CREATE SCHEMA census")
    columns = "name TEXT, sex TEXT, years INTEGER, seen TIMESTAMPTZ"
    write(postgres_database, "census.people", columns, [("Ada", "F", 36, "2026-05-01 12:00+00")])
    yield postgres_database
    with postgres_server.connect("shared") as there, suppress(psycopg.errors.UndefinedObject):
        there.execute("DROP OWNED BY reader")
        there.execute("DROP ROLE reader")


def test_the_role_of_the_page_may_count_its_columns_and_the_view_of_the_page_has_types_that_are_read(
    page_database, postgres_server
):
    role, view = blocks(PAGE, "sql")
    with connection(page_database) as there:
        there.execute(role)
        there.execute(view)
    (password,) = re.findall(r"PASSWORD '(.*)'", role)
    address = f"postgresql://reader:{quote(password)}@127.0.0.1:{postgres_server.port}/shared"
    ages = {"age": Coding("years", bins=[0, 15, 65])}
    domain = Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]})
    engine = DatabaseEngine.connect(address, "census.people", domain, ages)
    assert engine.count([("sex", "age")])["sex", "age"].tolist() == [[0, 1, 0], [0, 0, 0]]
    names = {"sex": Coding("name")}
    refusal(
        UnreadableSource, lambda: DatabaseEngine.connect(address, "census.people", SEX, names), "may not read"
    )
    days = Domain({"sex": ["F", "M"], "seen": ["2026-05-01"]})
    refusal(
        InvalidColumn, lambda: DatabaseEngine.connect(page_database, "census.people", days), "column 'seen'"
    )
    engine = DatabaseEngine.connect(page_database, "census.people_text", days)
    assert engine.count([("sex", "seen")])["sex", "seen"].tolist() == [[1], [0]]


class Proxy:
    """Stands between a client and a server, and keeps every byte that the server sends."""

    def __init__(self, port):
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.sent = bytearray()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                threading.Thread(target=self._pass, args=(client, server, None), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, self.sent), daemon=True).start()

    def _pass(self, source, sink, kept):
        with suppress(OSError), source, sink:
            while data := source.recv(1 << 16):
                if kept is not None:
                    kept += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._listener.close()

    def rows(self):
        """Return the rows that the server sent, each as a list of its fields."""
        found, at = [], 0
        while at < len(self.sent):
            kind, size = self.sent[at : at + 1], int.from_bytes(self.sent[at + 1 : at + 5])
            body, at = self.sent[at + 5 : at + 1 + size], at + 1 + size
            if kind == b"D":
                fields, place = [], 2
                for _ in range(int.from_bytes(body[:2])):
                    length = int.from_bytes(body[place : place + 4], signed=True)
                    fields.append(bytes(body[place + 4 : place + 4 + max(length, 0)]))
                    place += 4 + max(length, 0)
                found.append(fields)
        return found


@pytest.mark.usefixtures("small_covers")
def test_only_counts_and_yes_or_no_cross_the_wire(postgres_server, postgres_database):
    secrets = ["Qxylophone", "Wzeppelin", "Jquartz"]
    write(
        postgres_database,
        "people",
        "sex TEXT, age INTEGER, job TEXT, name TEXT",
        [("Qxylophone", 777_123, "Jquartz", "Ada")] * 300
        + [("Wzeppelin", 777_124, "unheard of", "Bob")] * 200,
    )
    domain = Domain({"sex": secrets[:2], "age": [777_123, 777_124], "job": ["Jquartz", "?"]})
    proxy = Proxy(postgres_server.port)
    address = postgres_database.replace(f":{postgres_server.port}/", f":{proxy.port}/") + "?sslmode=disable"
    try:
        engine = DatabaseEngine.connect(address, "people", domain, {"job": Coding(unknown="level:?")})
        proxy.sent.clear()
        counts = engine.count([("sex", "age"), ("age", "job"), ("sex",)])
    finally:
        proxy.close()
    assert counts["sex", "age"].tolist() == [[300, 0], [0, 200]]
    for value in (*secrets, "unheard of", "Ada", "Bob", "777123", "777124"):
        assert value.encode() not in proxy.sent
    # One row finds the table, four name its columns, one says that nothing is refused; the rest are two whole numbers.
    rows = proxy.rows()
    where = next(place for place, row in enumerate(rows) if row[0] == b"name") + 1
    assert len(rows[where:]) == 1 + 2 + 2
    for key, number in rows[where:]:
        assert len(key) in (4, 8)
        assert int.from_bytes(key) < 4
        assert int.from_bytes(number) in (0, 300, 200)


def test_one_tally_asks_for_few_super_margins_not_for_every_margin(postgres_database):
    attributes = [f"a{i}" for i in range(8)]
    domain = Domain({a: [0, 1, 2] for a in attributes})
    write(postgres_database, "people", ", ".join(f"{a} INTEGER" for a in attributes), [(0,) * 8, (1,) * 8])
    pairs = [(a, b) for a in attributes for b in attributes if a < b]
    engine = DatabaseEngine.connect(postgres_database, "people", domain)
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        execute = psycopg.Cursor.execute
        patch.setattr(
            psycopg.Cursor,
            "execute",
            lambda self, sql, *a, **k: asked.append(sql) or execute(self, sql, *a, **k),
        )
        counts = engine.count(pairs)
    assert sum("GROUP BY" in str(sql) for sql in asked) == 1
    assert all(cells.sum() == 2 for cells in counts.values())


# ---------------------------------------------------------------------------- what can go wrong on the way


@pytest.mark.parametrize(
    ("address", "match"),
    [
        (
            "postgresql://{user}:wrong-{password}@127.0.0.1:{port}/shared",
            "does not accept this user with this password",
        ),
        (
            "postgresql://no-{user}:{password}@127.0.0.1:{port}/shared",
            "does not accept this user with this password",
        ),
        ("postgresql://{user}@127.0.0.1:{port}/shared", "needs a password"),
        ("postgresql://{user}:{password}@127.0.0.1:{port}/nowhere", "there is no such database"),
        ("postgresql://{user}:{password}@127.0.0.1:{free}/shared", "no server listens there"),
        ("postgresql://{user}:{password}@no-such-host.invalid:5432/shared", "this host name is unknown"),
        ("postgresql://{user}:{password}@/shared?host=/nowhere", "no server listens there"),
        ("postgresql://{user}:{password}@127.0.0.1:{port}/shared?sslmode=require", "agree about SSL"),
    ],
)
def test_a_database_that_cannot_be_reached_says_why_and_names_nobody(
    address, match, reader, postgres_server, caplog, monkeypatch
):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    caplog.set_level(logging.DEBUG)
    with closing(socket.socket()) as taken:
        # Bound and not listening: nobody else takes it meanwhile.
        taken.bind(("127.0.0.1", 0))
        url = address.format(
            user=USER, password=quote(SECRET, safe=""), port=postgres_server.port, free=taken.getsockname()[1]
        )
        problem = refusal(UnreadableSource, lambda: DatabaseEngine.connect(url, "people", SEX), match)
    assert url.partition("?")[0].rpartition("@")[2].rpartition("/")[2] in str(problem)
    assert USER not in caplog.text
    assert SECRET not in caplog.text


def test_a_server_that_never_answers_is_given_up(monkeypatch):
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"postgresql://{USER}:{quote(SECRET)}@127.0.0.1:{silent.getsockname()[1]}/x?connect_timeout=2"
        refusal(UnreadableSource, lambda: DatabaseEngine.connect(url, "people", SEX), "did not answer")


def test_a_password_may_come_from_the_environment(reader, postgres_database, monkeypatch):
    write(postgres_database, "people", "sex TEXT", [("F",)])
    with connection(postgres_database) as there:
        there.execute(f"GRANT SELECT ON people TO {USER}")
    monkeypatch.setenv("PGPASSWORD", SECRET)
    without = reader.replace(f":{quote(SECRET, safe='')}@", "@")
    assert without != reader
    assert DatabaseEngine.connect(without, "people", SEX).count([()])[()] == 1


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://{USER}:s3@cr/et%7?@127.0.0.1/shared",
        f"postgresql://{USER}:s3@cr-et@127.0.0.1/shared",
        f"postgresql://{USER}:s3-cret@127.0.0.1:port/shared",
        f"postgresql://{USER}:s3-cret@127.0.0.1/shared?nonsense=1",
        f"postgresql://{USER}:s3-cret@127.0.0.1/shared?sslmode=a&sslmode=b",
        f"nosql://{USER}:s3-cret@127.0.0.1/shared",
        f"polars://{USER}:s3-cret@127.0.0.1/shared",
        "people.sqlite",
        "sqlite://people.sqlite",
        "sqlite:///",
        "duckdb:///:memory:",
        "duckdb:///people.duckdb?threads=9",
    ],
)
def test_an_address_that_cannot_be_is_refused_without_repeating_it(address):
    problem = refusal(InvalidAddress, lambda: DatabaseEngine.connect(address, "people", SEX))
    assert "s3" not in str(problem)


@pytest.mark.parametrize("table", ["", ".", "a.", "a.b.c", "a\0b", 7, None])
def test_a_table_is_a_name_or_two(table):
    with pytest.raises(InvalidAddress, match=r"'people' or 'census\.people'"):
        DatabaseEngine.connect("sqlite:///people.sqlite", table, SEX)


def test_a_file_that_is_no_database_or_is_not_there_is_refused(tmp_path, monkeypatch):
    (tmp_path / "notes").write_text("notes " * 1000, encoding="utf-8")
    for scheme in ("sqlite", "duckdb"):
        said = {"sqlite": "not an SQLite database", "duckdb": "not a DuckDB database"}[scheme]
        refusal(
            UnreadableSource,
            lambda s=scheme: DatabaseEngine.connect(f"{s}:///{tmp_path}/notes", "p", SEX),
            said,
        )
        nowhere = f"{scheme}:///{tmp_path}/nowhere"
        refusal(UnreadableSource, lambda n=nowhere: DatabaseEngine.connect(n, "p", SEX), "no such file")
        assert not (tmp_path / "nowhere").exists()
    monkeypatch.chdir(tmp_path)
    refusal(
        UnreadableSource,
        lambda: DatabaseEngine.connect("sqlite:///data/people.sqlite", "p", SEX),
        "one slash more",
    )


def test_a_database_file_is_not_changed_and_no_other_file_is_read(tmp_path):
    (tmp_path / "other.csv").write_text("sex\nF\n", encoding="utf-8")
    url = f"duckdb:///{tmp_path}/people.duckdb"
    with connection(url) as there:
        there.execute(f"CREATE VIEW people AS SELECT * FROM '{tmp_path}/other.csv'")
        there.execute("CREATE TABLE own AS SELECT 'F' AS sex")
    before = (tmp_path / "people.duckdb").read_bytes()
    refusal(UnreadableSource, lambda: DatabaseEngine.connect(url, "people", SEX), "other files")
    assert DatabaseEngine.connect(url, "own", SEX).count([()])[()] == 1
    assert (tmp_path / "people.duckdb").read_bytes() == before


@pytest.fixture
def slow(postgres_database):
    with connection(postgres_database) as there:
        there.execute("CREATE TABLE people (sex text)")
        there.execute("INSERT INTO people VALUES ('F')")
        there.execute("CREATE VIEW slow AS SELECT sex FROM people WHERE pg_sleep(30) IS NOT NULL")
        there.execute("GRANT SELECT ON slow TO public")
    return postgres_database


def running(there):
    asked = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%slow%' AND pid <> pg_backend_pid()"
    return there.execute(asked).fetchone()[0]


def test_a_statement_timeout_and_a_lost_connection_leave_no_counts(slow, reader, postgres_server):
    with postgres_server.connect("shared") as there:
        there.execute(f"ALTER ROLE {USER} SET statement_timeout = '100ms'")
        engine = DatabaseEngine.connect(reader, "slow", SEX)
        refusal(UnreadableSource, lambda: engine.count([("sex",)]), "statement_timeout")
        engine = DatabaseEngine.connect(slow, "slow", SEX)

        def cut():
            query = (
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE '%slow%' "
                "AND state = 'active' AND pid <> pg_backend_pid()"
            )
            wait_until(lambda: there.execute(query).fetchone()[0], "a query to cut off")

        cutting = threading.Thread(target=cut)
        cutting.start()
        refusal(
            UnreadableSource, lambda: engine.count([("sex",)]), "ended the connection|connection was lost"
        )
        cutting.join()


def interrupted(engine, begun):
    """Count, and press Ctrl-C when it has begun, in a process where Polars has a handler of its own for that."""
    import polars  # noqa: F401 - for its handler

    ended = threading.Event()

    def press():
        wait_until(begun, "the query to begin")
        # Again, as a person would, if another handler of signals took the first.
        while not ended.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            ended.wait(20)

    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.count([("sex",)])
    finally:
        ended.set()
    pressing.join()


def test_ctrl_c_ends_a_query_in_postgresql(slow):
    with connection(slow) as there:
        interrupted(DatabaseEngine.connect(slow, "slow", SEX), lambda: running(there))
        wait_until(lambda: not running(there), "the query to end")


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_ctrl_c_ends_a_query_in_this_process(kind, tmp_path):
    url = f"{kind}:///{tmp_path}/people"
    endless = {
        "duckdb": "SELECT 'F' AS sex FROM range(1000000) AS a, range(1000000) AS b WHERE a.range * b.range % 7 = 3",
        "sqlite": "SELECT sex FROM people WHERE sex IN (WITH RECURSIVE c(x) AS "
        "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0)",
    }[kind]
    write(url, "people", "sex TEXT", [("F",)])
    with connection(url) as there:
        there.execute(f"CREATE VIEW slow AS {endless}")
    asked = "tabulary-query"
    interrupted(
        DatabaseEngine.connect(url, "slow", SEX),
        lambda: any(thread.name.startswith(asked) for thread in threading.enumerate()),
    )
    with connection(url) as there:
        there.execute("DROP VIEW slow")


def test_a_query_is_asked_to_end_until_it_does(monkeypatch):
    begun, ended, asked = threading.Event(), threading.Event(), []

    def query():
        begun.set()
        ended.wait()

    def interrupt():
        # Too early, the first time.
        asked.append(begun.is_set())
        if len(asked) == 2:
            ended.set()

    def pressed(*_, **__):
        begun.wait()
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("tabulary.confidential.engines.database.places.wait", pressed)
    with pytest.raises(KeyboardInterrupt):
        interruptible(query, interrupt)
    assert asked == [True, True]


def test_a_query_that_has_not_begun_when_ctrl_c_is_pressed_never_does(monkeypatch):
    class Pressed(threading.Thread):
        def start(self):
            super().start()
            started.append(self)
            raise KeyboardInterrupt

    started, asked = [], []
    monkeypatch.setattr("tabulary.confidential.engines.database.places.Thread", Pressed)
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: asked.append("query"), lambda: asked.append("interrupt"))
    started[0].join()
    assert asked == []


# ---------------------------------------------------------------------------- any other database


@pytest.fixture
def elsewhere(monkeypatch):
    """As if nothing were known of DuckDB and SQLite but that Ibis has backends for them."""
    monkeypatch.setattr(module, "PLACES", {})


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_another_database_is_asked_in_one_statement(kind, tmp_path, monkeypatch):
    path = f"{kind}:///{tmp_path}/people.{kind}"
    write(path, "people", COLUMNS, stored(path, ROWS))
    url = path.replace("////", "///")
    engine = DatabaseEngine.connect(url, "people", WIDE, CODINGS)
    assert engine.name == kind
    compiled = CompiledEngine(DuckDBReader.of_arrow(arrow()), WIDE, CODINGS)
    monkeypatch.setattr(module, "SUPER_CELLS", 1)
    asked = []
    ask = elsewhere_module.ElsewhereSession.answers_to
    monkeypatch.setattr(
        elsewhere_module.ElsewhereSession,
        "answers_to",
        lambda self, query: asked.append(query) or ask(self, query),
    )
    same(engine.count(PAIRS), compiled.count(PAIRS))
    # Whether it understands us, and all the rest.
    assert len(asked) == 2
    with pytest.raises(InvalidAddress, match="weights cannot be summed"):
        DatabaseEngine.connect(url, "people", WIDE, CODINGS, weights=Weights("weight", 2, unit=1))


@pytest.mark.usefixtures("elsewhere")
def test_another_database_that_confuses_texts_is_refused(tmp_path, monkeypatch):
    url = f"duckdb://{tmp_path}/people.duckdb"
    write(f"duckdb:///{tmp_path}/people.duckdb", "people", "sex VARCHAR COLLATE NOCASE", [("f",)])
    engine = DatabaseEngine.connect(url, "people", SEX)
    refusal(InvalidColumn, lambda: engine.count([()]), "collation")
    refusal(UnreadableSource, lambda: DatabaseEngine.connect(url, "nobody", SEX), "refused a query")
    refusal(
        UnreadableSource,
        lambda: DatabaseEngine.connect(f"duckdb://{tmp_path}/no/where.duckdb", "people", SEX),
        "refuses the connection",
    )
    monkeypatch.setattr(elsewhere_module, "TELLING", (("A", "string", "a"),))
    refusal(
        UnreadableSource,
        lambda: DatabaseEngine.connect(url, "people", SEX),
        "treats different values as equal",
    )


def test_what_is_not_installed_is_named_with_the_command_that_installs_it(monkeypatch):
    with pytest.raises(MissingExtra, match=r"pip install 'ibis-framework\[mysql\]'"):
        DatabaseEngine.connect(f"mysql://{USER}:{SECRET}@127.0.0.1/x", "people", SEX)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"psycopg.*pip install 'tabulary\[database\]'"):
        DatabaseEngine.connect("postgresql://127.0.0.1/x", "people", SEX)
    monkeypatch.delitem(sys.modules, module.__name__)
    monkeypatch.setitem(sys.modules, "ibis", None)
    with pytest.raises(MissingExtra, match=r"Ibis.*pip install 'tabulary\[database\]'"):
        importlib.import_module(module.__name__)


# ---------------------------------------------------------------------------- the engine itself


class Told:
    """A place that answers what it is told to."""

    name = "told"
    dialect = "duckdb"
    collates = False

    def __init__(self, answers):
        self._answers = answers
        columns = [SourceColumn(name, name, dt.string) for name in (*PEOPLE.attributes, "w")]
        self.relations = [Relation("it", tuple(columns), "people")]

    @contextmanager
    def open(self, weights):
        yield self

    def answers(self, queries):
        for keys, numbers in self._answers[: len(queries)]:
            yield np.array(keys), np.array(numbers)


FINE = ([0], [0b1000])


@pytest.mark.usefixtures("small_covers")
@pytest.mark.parametrize(
    ("answers", "match"),
    [
        ([FINE, ([6], [1])], "a cell that does not exist"),
        ([FINE, ([-1], [1])], "a cell that does not exist"),
        ([FINE, ([0], [1]), ([0], [2])], "changed during the count"),
    ],
)
def test_an_answer_that_cannot_be_is_an_error_of_ours(answers, match):
    engine = DatabaseEngine(Told(answers), PEOPLE)
    refusal(UnreadableSource, lambda: engine.count([("sex", "age"), ("sex", "job")]), match)


def test_sums_that_might_not_fit_are_refused_before_they_are_made():
    answers = [([0], [0b1000000]), ([0], [2**40])]
    engine = DatabaseEngine(Told(answers), PEOPLE, weights=Weights("w", 10**9, unit=1))
    refusal(InvalidColumn, lambda: engine.count([("sex",)]), "may not fit in 64 bits")


def test_many_columns_are_looked_at_together(tmp_path):
    attributes = [f"a{i}" for i in range(100)]
    domain = Domain({a: ["x"] for a in attributes})
    table = pa.table({a: ["y" if a in ("a0", "a47", "a48", "a99") else "x"] for a in attributes})
    engine = DatabaseEngine.of_reader(DuckDBReader.of_arrow(table), domain)
    refusal(UnknownLevel, lambda: engine.count([()]), "4 columns .* 'a0', 'a47', 'a48', 'a99'")


def test_records_in_a_database_have_no_fingerprint_and_can_be_closed(tmp_path):
    url = f"sqlite:///{tmp_path}/people.sqlite"
    write(url, "people", "sex TEXT", [("F",)])
    records = Records.from_database(url, "people", SEX)
    assert repr(records) == "<Records of sex 2>"
    assert records.engine == "sqlite"
    with pytest.raises(InvalidAddress, match="Export them to Parquet"):
        records.fingerprint(b"key")
    records.close()
    with pytest.raises(UnreadableSource, match="closed"):
        records.tally([["sex"]])


def test_a_place_prints_neither_user_nor_password():
    for kind in (Postgres, elsewhere_module.Elsewhere):
        scheme = "postgresql" if kind is Postgres else "mysql"
        shown = repr(
            kind(f"{scheme}://{USER}:{quote(SECRET, safe='')}@db:1/census?sslmode=require", "people")
        )
        assert shown == f"<the table 'people' of {scheme}://db:1/census>"
