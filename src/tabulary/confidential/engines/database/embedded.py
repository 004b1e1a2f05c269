"""Tables that DuckDB counts in this process: files, and tables of a DuckDB or SQLite database file."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import numpy as np
import pyarrow
from ibis.backends.sql.datatypes import DuckDBType, SQLiteType

from tabulary.confidential.engines.database.places import (
    Answer,
    Relation,
    SourceColumn,
    TableName,
    fetched,
    first_of,
    guarded,
    interruptible,
)
from tabulary.confidential.engines.database.queries import UNITS
from tabulary.confidential.reading.duckdb import DuckDBReader, SourcePart, connect
from tabulary.confidential.reading.duckdb import guarded as guarded_reading
from tabulary.confidential.reading.sql import quoted
from tabulary.confidential.weights import Weights, in_units
from tabulary.core.urls import shown
from tabulary.errors import InvalidAddress, UnreadableSource

_CATALOG = "records"

_REASONS = {
    "is not a valid DuckDB database file": (
        "the file is not a DuckDB database. Nothing was counted. Name another file."
    ),
    "file is not a database": "the file is not an SQLite database. Nothing was counted. Name another file.",
    "lock": (
        "another program is writing to it. Nothing was counted. Try again when that program has finished."
    ),
    "already attached": "this program already has it open. Nothing was counted. Close it first.",
    "does not exist": "there is no such table or view in it. Nothing was counted. Name one that exists.",
    "no such table": "there is no such table or view in it. Nothing was counted. Name one that exists.",
    "Cannot access file": (
        "it reads other files, which is not allowed here. Nothing was counted. Name those files directly."
    ),
    "Out of Memory": "there is not enough memory. Nothing was counted. Ask for smaller tables.",
}
_FAILED = "the database refused a query, or is damaged. Nothing was counted. Name another table."


class DuckDBFiles:
    """The files of a reader, or its Arrow table, counted in an empty DuckDB; see `Place`."""

    name = "duckdb"

    def __init__(self, reader: DuckDBReader) -> None:
        self._reader = reader

    @contextmanager
    def open(self, weights: Weights | None) -> Iterator["_DuckDBSession"]:
        """Return a session with a view of every file; see `Place.open`."""
        with closing(connect(self._reader.allowed)) as connection:
            parts = [described() for described in self._reader.parts]
            relations = [
                guarded_reading(partial(_viewed, connection, number, part), part.called)
                for number, part in enumerate(parts)
            ]
            yield _DuckDBSession(
                connection, relations, weights, lambda action: _reading(action, parts), collates=False
            )


class DuckDBDatabase:
    """A table or a view of a DuckDB database; see `Place`. No other file can be opened through it."""

    name = "duckdb"

    def __init__(self, address: str, table: str) -> None:
        self._table = TableName.read(table)
        self._called = self._table.of(address)
        self._path = _file(address)

    def __repr__(self) -> str:
        return f"<{self._called}>"

    @contextmanager
    def open(self, weights: Weights | None) -> Iterator["_DuckDBSession"]:
        """Return a session, which is one transaction; see `Place.open`."""
        path = _existing(self._path, self._called)
        with closing(connect([path, path.with_name(f"{path.name}.wal")])) as connection:
            relation = _guarded(lambda: self._attached(connection, path), self._called)
            session = _DuckDBSession(
                connection, [relation], weights, lambda action: _guarded(action, self._called), collates=True
            )
            try:
                connection.execute("BEGIN TRANSACTION")
                yield session
            finally:
                with suppress(duckdb.Error):
                    connection.execute("ROLLBACK")

    def _attached(self, connection: Any, path: Path) -> Relation:
        connection.execute(f"ATTACH {quoted(str(path))} AS {_CATALOG} (READ_ONLY)")
        place = TableName(self._table.name, self._table.schema or "main")
        seen = connection.sql(f"SELECT * FROM {_CATALOG}.{place.quoted}")
        columns = tuple(_duckdb_column(n, str(k)) for n, k in zip(seen.columns, seen.types, strict=True))
        return Relation(self._called, columns, place.name, place.schema, _CATALOG)


class SQLiteDatabase:
    """A table or a view of an SQLite database; see `Place`."""

    name = "sqlite"

    def __init__(self, address: str, table: str) -> None:
        self._table = TableName.read(table)
        self._called = self._table.of(address)
        self._path = _file(address)

    def __repr__(self) -> str:
        return f"<{self._called}>"

    @contextmanager
    def open(self, weights: Weights | None) -> Iterator["_SQLiteSession"]:
        """Return a session, which is one transaction; see `Place.open`."""
        path = _existing(self._path, self._called)
        # In its own thread, one query after the other.
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        with closing(connection):
            yield _guarded(
                lambda: _SQLiteSession(connection, self._table, weights, self._called), self._called
            )


class _DuckDBSession:
    """See `Session`."""

    dialect = "duckdb"

    def __init__(
        self,
        connection: Any,
        relations: Sequence[Relation],
        weights: Weights | None,
        guard: Callable[[Callable[[], Answer]], Answer],
        *,
        collates: bool,
    ) -> None:
        self._connection = connection
        self.relations = relations
        self.collates = collates
        self._guard = guard
        if weights is not None:
            # The same function as in the compiled engine: a weight is the same number of units in both.
            connection.create_function(
                UNITS,
                lambda numbers: pyarrow.array(in_units(weights, np.asarray(numbers))[0].astype(np.int64)),
                [duckdb.sqltypes.DOUBLE],
                duckdb.sqltypes.BIGINT,
                type="arrow",
            )

    def answers(self, queries: Sequence[ir.Table]) -> Iterator[Answer]:
        for query in queries:
            yield self._guard(partial(self._ask, query))

    def _ask(self, query: ir.Table) -> Answer:
        sql = ibis.to_sql(query, dialect=self.dialect, pretty=False)
        found = interruptible(lambda: self._connection.sql(sql).to_arrow_table(), self._connection.interrupt)
        # A sum has 128 bits in DuckDB, and a double could not store it exactly.
        keys, numbers = (column.cast(pyarrow.int64()).to_numpy() for column in found.columns)
        return keys, numbers


class _SQLiteSession:
    """See `Session`."""

    dialect = "sqlite"
    collates = False

    def __init__(
        self, connection: sqlite3.Connection, table: TableName, weights: Weights | None, called: str
    ) -> None:
        from ibis.backends.sqlite import Backend

        # For the functions that SQLite lacks, in this connection only.
        Backend.from_connection(connection)
        if weights is not None:

            @lru_cache(maxsize=1 << 16)
            def units(number: float) -> int:
                return int(in_units(weights, np.array([number]))[0][0])

            connection.create_function(UNITS, 1, units, deterministic=True)
        self._connection = connection
        self._called = called
        connection.execute("BEGIN")
        schema = table.schema or "main"
        rows = connection.execute(
            "SELECT name, type FROM pragma_table_xinfo(?, ?) WHERE hidden <> 1", [table.name, schema]
        )
        columns = tuple(_sqlite_column(*row) for row in rows)
        if not columns:
            raise UnreadableSource(f"{called} cannot be counted: {_REASONS['no such table']}")
        self.relations = (Relation(called, columns, table.name, schema),)

    def answers(self, queries: Sequence[ir.Table]) -> Iterator[Answer]:
        for query in queries:
            yield _guarded(partial(self._ask, query), self._called)

    def _ask(self, query: ir.Table) -> Answer:
        sql = ibis.to_sql(query, dialect=self.dialect, pretty=False)
        return interruptible(lambda: fetched(self._connection.execute(sql)), self._connection.interrupt)


def _viewed(connection: Any, number: int, part: SourcePart) -> Relation:
    """Return the view of a part. Columns are used by position: DuckDB treats "Sex" and "sex" as one name."""
    if isinstance(part.data, pyarrow.RecordBatchReader):
        raise UnreadableSource(
            f"{part.called} can be read only once, but every margin needs to read it. Nothing was counted. "
            "Give it as a table."
        )
    if part.data is not None:
        connection.register("source", part.data)
    places = [f"c{place}" for place in range(len(part.names))]
    view = f"records_{number}"
    connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {part.relation} AS source({', '.join(places)})")
    kinds = connection.sql(f"SELECT * FROM {view}").types
    columns = zip(part.names, places, kinds, strict=True)
    return Relation(part.called, tuple(_duckdb_column(str(n), str(k), p) for n, p, k in columns), view)


def _reading(action: Callable[[], Answer], parts: Sequence[SourcePart]) -> Answer:
    # Nobody knows which of several files it was: a query may read all of them.
    return guarded_reading(action, parts[0].called if len(parts) == 1 else "one of the files")


def _duckdb_column(name: str, declared: str, place: str | None = None) -> SourceColumn:
    kind: dt.DataType = dt.unknown
    with suppress(Exception):
        kind = DuckDBType.from_string(declared)
    # A name made from values is not shown: the values may come from the records.
    return SourceColumn.of(name, kind, declared.partition("(")[0], place=place)


def _sqlite_column(name: str, declared: str) -> SourceColumn:
    if not declared:
        return SourceColumn(name, name, None, "has no declared type, so its values can be anything")
    kind: dt.DataType = dt.unknown
    with suppress(Exception):
        kind = SQLiteType.from_string(declared)
    return SourceColumn.of(name, kind, declared)


def _file(address: str) -> Path:
    """Return the path that an address means: a relative path after three slashes, an absolute path after four."""
    scheme, _, rest = address.partition("://")
    path = rest.removeprefix("/")
    if path == rest or not path or "?" in path or path == ":memory:":
        raise InvalidAddress(
            f"the address of a file is {scheme}:///people.{scheme}, or {scheme}:////data/people.{scheme} "
            f"with an absolute path, and has no options. The address {shown(address)} is different. Nothing "
            "was counted."
        )
    return Path(path)


def _existing(path: Path, called: str) -> Path:
    whole = path.absolute()
    if not whole.is_file():
        hint = (
            ""
            if path.is_absolute()
            else (
                f" An absolute path has one slash more: {path.name!r} is looked for in {str(whole.parent)!r}."
            )
        )
        raise UnreadableSource(
            f"{called} cannot be counted: there is no such file. Nothing was counted.{hint}"
        )
    return whole


def _guarded(action: Callable[[], Any], called: str) -> Any:
    return guarded(action, called, lambda problem: first_of(_REASONS, str(problem), _FAILED))
