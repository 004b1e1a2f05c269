"""A table of a PostgreSQL database: one connection and one read-only transaction per tally."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import unquote

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from tabulary.confidential.engines.database.places import (
    Answer,
    Relation,
    SourceColumn,
    TableName,
    fetched,
    first_of,
    guarded,
    missing,
)
from tabulary.confidential.weights import Weights
from tabulary.core.urls import shown
from tabulary.errors import InvalidAddress, UnreadableSource

_DIALECT = "postgres"

_FORM = (
    "Nothing was counted. Write postgresql://user:password@host:port/database, with %40 for an @ and %2F for a / in "
    "the password, or leave the password to ~/.pgpass or PGPASSWORD."
)

_SECONDS_TO_CONNECT = 10

# One state of the database for all queries of a tally, without any right to change it. The SQL needs these
# settings: how a text is quoted, and the shortest text of a number.
_BEGIN = """
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL standard_conforming_strings = on;
SET LOCAL extra_float_digits = 1;
SET LOCAL datestyle = 'ISO, YMD';
SET LOCAL timezone = 'UTC'
"""

# A domain is resolved to its base type. An enum is recognised by its kind, not by its values.
_COLUMNS = """
WITH RECURSIVE kinds(place, name, oid, modifier, collation_of) AS (
  SELECT attnum, attname, atttypid, atttypmod, attcollation
  FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
  UNION ALL
  SELECT place, name, typbasetype, CASE modifier WHEN -1 THEN typtypmod ELSE modifier END, collation_of
  FROM kinds JOIN pg_catalog.pg_type AS t ON t.oid = kinds.oid WHERE typtype = 'd'
)
SELECT name::text, pg_catalog.format_type(kinds.oid, modifier), typtype::text, coalesce(collisdeterministic, true)
FROM kinds JOIN pg_catalog.pg_type AS t ON t.oid = kinds.oid
LEFT JOIN pg_catalog.pg_collation AS c ON c.oid = collation_of
WHERE typtype <> 'd' ORDER BY place
"""

# Signs in the message of a failed connection, and our own words instead: the message may name the user.
_CONNECTING = {
    "password authentication failed": "it does not accept this user with this password",
    "no password supplied": "it needs a password, and none was given",
    "authentication failed": "it does not accept this user",
    "no pg_hba.conf entry": "its rules do not allow this user to connect from here to this database",
    "permission denied for database": "this user may not connect to this database",
    "is not permitted to log in": "this user may not log in",
    'role "': "it does not know this user",
    'database "': "there is no such database",
    "resolve host": "this host name is unknown",
    "translate host name": "this host name is unknown",
    "refused": "no server listens there",
    "No such file or directory": "no server listens there",
    "imeout": f"it did not answer within {_SECONDS_TO_CONNECT} seconds",
    "SSL": "the client and the server do not agree about SSL",
    "certificate": "its certificate is not trusted",
    "too many": "it has no free connection",
    "connection slots": "it has no free connection",
    "starting up": "it is still starting",
    "shutting down": "it is shutting down",
}
_CHECK_ADDRESS = "Nothing was counted. Check the host, the port, the database, the user and the password."

# Our message for the server's own error code, by the first characters of the code.
_STATES = {
    "42501": "this user may not read it. Nothing was counted. Ask for GRANT SELECT on the table, USAGE on its schema",
    "42P01": "it no longer exists. Nothing was counted. Name a table or a view that exists",
    "42703": "a column of it no longer exists. Nothing was counted. Try again",
    "57014": (
        "the server cancelled a query, for example after statement_timeout. Nothing was counted. Ask "
        "for more time"
    ),
    "57P": "the server ended the connection. Nothing was counted. Try again when the server is available",
    "08": "the connection was lost. Nothing was counted. Try again",
    "25P": "the server ended a transaction that took too long. Nothing was counted. Ask for more time",
    "40001": (
        "a standby server no longer had the state that the query needed. Nothing was counted. Ask the "
        "primary server"
    ),
    "53": "the server ran out of memory, disk space or connections. Nothing was counted. Try again later",
    "55P03": "it is locked by somebody else. Nothing was counted. Try again",
}
_FAILED = "the database refused a query. Nothing was counted. The log of the server says why"


class Postgres:
    """A table or a view of a PostgreSQL database; see `Place`."""

    name = "postgresql"

    def __init__(self, address: str, table: str) -> None:
        self._table = TableName.read(table)
        self._shown = shown(address)
        self._called = self._table.of(address)
        self._options = _options(address)

    def __repr__(self) -> str:
        return f"<{self._called}>"

    @contextmanager
    def open(self, weights: Weights | None) -> Iterator["_Session"]:
        """Return a session, which is one transaction; see `Place.open`."""
        connection = self._connect()
        try:
            yield _Session(connection, self._table, self._called, self._shown)
        finally:
            # If the server does not receive this, the end of the connection has the same effect.
            with suppress(Exception):
                connection.execute("ROLLBACK")
            connection.close()

    def _connect(self) -> Any:
        try:
            import psycopg
        except ImportError:
            psycopg = None  # type: ignore[assignment]
        if psycopg is None:
            raise missing("psycopg")
        reason = ""
        try:
            return psycopg.connect(autocommit=True, **self._options)
        except psycopg.ProgrammingError:
            pass
        except Exception as problem:
            reason = first_of(_CONNECTING, str(problem), "it refuses the connection")
        # Raised here, outside the handler, so that the original error, which may name the user, is not even its
        # context.
        if not reason:
            raise InvalidAddress(
                f"the address of {self._shown} has an option that PostgreSQL does not know. {_FORM}"
            )
        raise UnreadableSource(f"the database {self._shown} cannot be reached: {reason}. {_CHECK_ADDRESS}")


class _Session:
    """One transaction; see `Session`."""

    dialect = _DIALECT
    collates = False

    def __init__(self, connection: Any, table: TableName, called: str, where: str) -> None:
        self._connection = connection
        self._called = called
        guarded(lambda: connection.execute(_BEGIN), called, _told)
        self.relations = (guarded(lambda: self._described(table, where), called, _told),)

    def answers(self, queries: Sequence[ir.Table]) -> Iterator[Answer]:
        for query in queries:
            yield guarded(partial(self._ask, query), self._called, _told)

    def _ask(self, query: ir.Table) -> Answer:
        # Binary, so that numbers are not converted to text and back.
        with self._connection.cursor(binary=True) as cursor:
            cursor.execute(ibis.to_sql(query, dialect=_DIALECT, pretty=False), prepare=False)
            return fetched(cursor)

    def _described(self, table: TableName, where: str) -> Relation:
        (found,) = self._connection.execute("SELECT to_regclass(%s)::oid", [table.quoted]).fetchone()
        if found is None:
            raise UnreadableSource(
                f"there is no table or view {str(table)!r} that this user can see at {where}. Nothing was "
                "counted. Write the name exactly, with its capital letters, and name the schema too."
            )
        rows = self._connection.execute(_COLUMNS, [found]).fetchall()
        return Relation(self._called, tuple(_column(*row) for row in rows), table.name, table.schema)


def _options(address: str) -> dict[str, Any]:
    """Return the parameters for psycopg. No message repeats what may be a user or a password."""
    url: URL | None = None
    with suppress(ArgumentError, ValueError):
        url = make_url(address)
    if url is None:
        raise InvalidAddress(f"the address of the database cannot be read. {_FORM}")
    # The part after an @ in a password would be read as the host, and printed.
    if address.count("@") > 1:
        raise InvalidAddress(f"the address of the database contains more than one @. {_FORM}")
    repeated = [key for key, value in url.query.items() if not isinstance(value, str)]
    if repeated:
        raise InvalidAddress(f"the address of the database gives an option twice. {_FORM}")
    given = {
        "user": url.username,
        "password": None if url.password is None else str(url.password),
        "host": url.host,
        "port": url.port,
        "dbname": unquote(url.database) if url.database else None,
    }
    defaults = {"connect_timeout": str(_SECONDS_TO_CONNECT), "fallback_application_name": "tabulary"}
    return defaults | dict(url.query) | {key: value for key, value in given.items() if value is not None}


def _column(name: str, declared: str, category: str, deterministic: bool) -> SourceColumn:
    from ibis.backends.sql.datatypes import PostgresType

    if not deterministic:
        return SourceColumn(
            name,
            name,
            None,
            "has a collation that treats different texts as equal, so it cannot be recoded",
        )
    if category == "e":
        return SourceColumn(name, name, dt.string)
    kind: dt.DataType = dt.unknown
    with suppress(Exception):
        kind = PostgresType.from_string(declared)
    return SourceColumn.of(name, kind, declared)


def _told(problem: Exception) -> str:
    """Return our message for an error during a session."""
    state = getattr(problem, "sqlstate", None)
    if state is None:
        lost = re.search("connection|server closed|terminat", str(problem))
        return f"{_STATES['08']}." if lost else f"{_FAILED}."
    return next((said for code, said in _STATES.items() if state.startswith(code)), _FAILED) + "."
