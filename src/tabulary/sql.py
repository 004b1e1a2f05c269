"""The databases that Tabulary writes itself: how one is opened, and what an error of one means.

A ledger and the state of a service are each an SQLite file or a schema in PostgreSQL. Both are opened here, and both
turn an error of the database into a `DatabaseTrouble` here; each says in its own words what follows from it.
"""

import os
import sqlite3
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from tabulary.core.urls import scheme_of
from tabulary.errors import MissingExtra, PublicError

Where = str | os.PathLike[str]
"""The path of an SQLite file, or `postgresql://user:password@host:port/database`."""

_FORM = "Write postgresql://user:password@host:port/database, with %40 for an @ in the password."

# A server whose machine is gone is noticed within a minute, where TCP alone may wait for hours.
_KEEPALIVE = {"keepalives_idle": 15, "keepalives_interval": 10, "keepalives_count": 3}


class DatabaseTrouble(Enum):
    """What went wrong in a database, whichever kind it is."""

    BUSY = "another process kept the lock"
    CONFLICT = "another process wrote at the same moment"
    FULL = "the disk is full"
    DISK = "the disk failed"
    NO_ACCESS = "the file or the schema may not be used"
    READ_ONLY = "the server takes no writes"
    UNREACHABLE = "no server answers, or the connection broke"
    MISSING = "the tables are not there"
    CONSTRAINT = "the database refuses a row"
    DAMAGED = "the database cannot be read"
    UNREADABLE = "the database does not understand a statement"
    UNKNOWN = "the error has no code"
    OTHER = "anything else"


_SQLITE = {
    sqlite3.SQLITE_BUSY: DatabaseTrouble.BUSY,
    sqlite3.SQLITE_LOCKED: DatabaseTrouble.BUSY,
    sqlite3.SQLITE_FULL: DatabaseTrouble.FULL,
    sqlite3.SQLITE_IOERR: DatabaseTrouble.DISK,
    sqlite3.SQLITE_CANTOPEN: DatabaseTrouble.NO_ACCESS,
    sqlite3.SQLITE_READONLY: DatabaseTrouble.NO_ACCESS,
    sqlite3.SQLITE_PERM: DatabaseTrouble.NO_ACCESS,
    sqlite3.SQLITE_CONSTRAINT: DatabaseTrouble.CONSTRAINT,
    sqlite3.SQLITE_CORRUPT: DatabaseTrouble.DAMAGED,
    sqlite3.SQLITE_NOTADB: DatabaseTrouble.DAMAGED,
    sqlite3.SQLITE_ERROR: DatabaseTrouble.UNREADABLE,
}
# The whole SQLSTATE where it is listed, or else its class, the first two characters.
_POSTGRESQL = {
    "55P03": DatabaseTrouble.BUSY,
    "40": DatabaseTrouble.CONFLICT,
    "53100": DatabaseTrouble.FULL,
    "42501": DatabaseTrouble.NO_ACCESS,
    "25006": DatabaseTrouble.READ_ONLY,
    "42P01": DatabaseTrouble.MISSING,
    "3F000": DatabaseTrouble.MISSING,
    "23": DatabaseTrouble.CONSTRAINT,
    "XX001": DatabaseTrouble.DAMAGED,
    "XX002": DatabaseTrouble.DAMAGED,
    "0A": DatabaseTrouble.UNREADABLE,
    "22": DatabaseTrouble.UNREADABLE,
    "42": DatabaseTrouble.UNREADABLE,
    "08": DatabaseTrouble.UNREACHABLE,
    "25P03": DatabaseTrouble.UNREACHABLE,
    "28": DatabaseTrouble.UNREACHABLE,
    "3D": DatabaseTrouble.UNREACHABLE,
    "53": DatabaseTrouble.UNREACHABLE,
    "57014": DatabaseTrouble.OTHER,
    "57": DatabaseTrouble.UNREACHABLE,
}


def trouble_of(error: BaseException | None) -> DatabaseTrouble:
    """Return what an error of sqlite3 or of psycopg means.

    >>> with sqlite3.connect(":memory:") as connection:
    ...     try:
    ...         connection.execute("SELECT * FROM nowhere")
    ...     except sqlite3.Error as error:
    ...         print(trouble_of(error).value)
    the database does not understand a statement
    """
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        # The low byte says what went wrong, the rest where in SQLite it arose.
        return DatabaseTrouble.UNKNOWN if code is None else _SQLITE.get(code & 0xFF, DatabaseTrouble.OTHER)
    state = sqlstate_of(error)
    # Without one, the error arose on this side: no connection could be made, or it broke.
    return (
        _POSTGRESQL.get(state, _POSTGRESQL.get(state[:2], DatabaseTrouble.OTHER))
        if state
        else DatabaseTrouble.UNREACHABLE
    )


def sqlstate_of(error: BaseException | None) -> str:
    """Return PostgreSQL's code of an error, or an empty text."""
    return getattr(error, "sqlstate", None) or ""


def address_of(where: Where, what: str, error: type[PublicError]) -> URL | None:
    """Return the address that `where` is, or None where it is a path; raise `error` for an address of another kind.

    No refusal repeats what may be a password.

    >>> from tabulary.errors import LedgerError
    >>> address_of("ledger.sqlite", "the ledger", LedgerError) is None
    True
    >>> address_of("postgresql://tabulary:secret@db/census", "the ledger", LedgerError).database
    'census'
    """
    text = os.fspath(where)
    scheme = scheme_of(text)
    if scheme is None:
        return None
    if scheme != "postgresql":
        raise error(
            f"{what} is the path of a file or an address that begins with postgresql://, not {scheme}:. {_FORM}"
        )
    try:
        address = make_url(text)
    except (ArgumentError, ValueError):
        raise error(f"the address of {what} cannot be read. {_FORM}") from None
    # The part after an @ in a password would be read as the host, and printed.
    if "@" in f"{address.host}{address.database}":
        raise error(f"the address of {what} has an @ too many. {_FORM}")
    return address


def shown(address: URL) -> str:
    """Return an address without the user, the password and the options of the connection.

    >>> shown(make_url("postgresql://tabulary:secret@db:5433/census?sslmode=require"))
    'postgresql://db:5433/census'
    >>> shown(make_url("postgresql:///census?host=/run/postgresql"))
    'postgresql:///census?host=/run/postgresql'
    """
    port = f":{address.port}" if address.port else ""
    elsewhere = [f"{key}={value}" for key, value in address.query.items() if key in ("host", "port")]
    return f"postgresql://{address.host or ''}{port}/{address.database or ''}" + (
        f"?{'&'.join(elsewhere)}" if elsewhere else ""
    )


def postgresql_engine(address: URL, *, application: str, timeout: float) -> Engine:
    """Return an engine that waits for `timeout` seconds and replaces a connection that a restart broke."""
    usual = {
        "connect_timeout": max(2, round(timeout + 0.5)),
        "application_name": f"tabulary {application}",
        **_KEEPALIVE,
    }
    try:
        return create_engine(
            address.set(drivername="postgresql+psycopg"),
            connect_args={name: value for name, value in usual.items() if name not in address.query},
            pool_pre_ping=True,
            pool_timeout=timeout,
            hide_parameters=True,
        )
    except ModuleNotFoundError:
        raise MissingExtra(
            f"a {application} in PostgreSQL needs the package psycopg: pip install 'tabulary[serve]'"
        ) from None


def sqlite_engine(connect: Callable[[], sqlite3.Connection], *, timeout: float) -> Engine:
    """Return an engine over what `connect` opens.

    A transaction begins as its execution option `lock` says: DEFERRED to read, IMMEDIATE to take the write lock first.
    """
    # The address only names the dialect: `connect` opens the file.
    engine = create_engine(
        "sqlite+pysqlite://", creator=connect, poolclass=QueuePool, pool_timeout=timeout, hide_parameters=True
    )
    event.listen(engine, "begin", _begin)
    return engine


def open_sqlite(path: Path, parameters: str, *, timeout: float) -> sqlite3.Connection:
    """Return a connection to a file that exists; `parameters` are those of its URI, such as "mode=rw".

    A commit returns once it is on the disk (synchronous=FULL).
    """
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?{parameters}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def uses_write_ahead_log(connection: sqlite3.Connection) -> bool:
    """Switch a file to the write-ahead log, which it keeps; return False where its file system cannot."""
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    return bool(mode == "wal")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options()['lock']}")
