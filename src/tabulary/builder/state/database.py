"""The database of the state: a SQLite file or a PostgreSQL schema, its transactions, and errors for the reader."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from sqlalchemy import event, text
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tabulary.errors import ServiceError
from tabulary.sql import (
    DatabaseTrouble,
    Where,
    address_of,
    open_sqlite,
    postgresql_engine,
    shown,
    sqlite_engine,
    sqlstate_of,
    trouble_of,
    uses_write_ahead_log,
)

SCHEMA = "tabulary_service"
"""The PostgreSQL schema of the state. The ledger and other data may be in the same database."""

PATIENCE = 5
"""Timeout in seconds: enough for another worker's transaction, and short enough for a waiting caller."""

# The advisory lock of migrations: a number that nothing else in the database locks, the ASCII of "tabulary".
_MIGRATING = int.from_bytes(b"tabulary", "big")


class Database(Protocol):
    """Where the state is kept. Safe to use from several threads; an error never names a user or a password."""

    @property
    def name(self) -> str:
        """The name of the database in errors."""
        ...

    def found(self) -> None:
        """Create the empty place for the tables, unless it exists."""
        ...

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that reads."""
        ...

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection that writes; the end of the block commits, and an error rolls everything back."""
        ...

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Yield a connection that writes; no other migration can run at the same time, in any process."""
        ...

    def close(self) -> None:
        """Close every connection. A second call does nothing."""
        ...


def database_at(where: Where) -> Database:
    """Return the database that a path or an address names; it is not opened yet.

    >>> database_at("state.sqlite").name
    "the state 'state.sqlite'"
    >>> database_at("postgresql://tabulary:secret@db/census").name
    "the state 'postgresql://db/census'"
    """
    address = address_of(where, "the state", ServiceError)
    return SQLite(Path(where)) if address is None else PostgreSQL(address)


class _Engine:
    """The common part of both kinds: transactions, and database errors as errors of the service."""

    access: str
    """What to check if access to the database is denied."""

    def __init__(self, name: str, engine: Engine) -> None:
        self.name = name
        self._engine = engine

    @contextmanager
    def _transaction(self, **options: str) -> Iterator[Connection]:
        with self._translated(), self._engine.execution_options(**options).begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            # A broken connection has no code of its own.
            gone = error.connection_invalidated
            raise self._meant(
                DatabaseTrouble.UNREACHABLE if gone else trouble_of(error.orig), error.orig
            ) from None
        except sqlite3.Error as error:
            raise self._meant(trouble_of(error), error) from None
        except SQLAlchemyError as error:
            raise self._meant(DatabaseTrouble.OTHER, error) from None

    def _meant(self, trouble: DatabaseTrouble, error: BaseException | None) -> ServiceError:
        # The message of a server may name users and addresses; its code is enough.
        match trouble:
            case DatabaseTrouble.BUSY:
                return ServiceError(f"another process kept {self.name} locked for too long. Try again.")
            case DatabaseTrouble.FULL:
                return ServiceError(f"the disk of {self.name} is full. Nothing was written. Free some space.")
            case DatabaseTrouble.NO_ACCESS:
                return ServiceError(
                    f"{self.name} is not there, or cannot be opened or written to. {self.access}"
                )
            case DatabaseTrouble.DAMAGED:
                return ServiceError(f"{self.name} is not a sound database. Restore it from a copy.")
            case DatabaseTrouble.UNREACHABLE:
                return ServiceError(
                    f"{self.name} cannot be reached. Check that the server runs, and that the address, the user and "
                    "the password are right; then try again."
                )
        detail = f"SQLSTATE {code}" if (code := sqlstate_of(error)) else type(error).__name__
        return ServiceError(f"{self.name} could not be used ({detail}). Try again.")


class SQLite(_Engine):
    """A file with a write-ahead log, which only its owner may read.

    A writing transaction takes the write lock before it reads (BEGIN IMMEDIATE), so migrations need no lock of
    their own.
    """

    access = "Check the path, and the permissions of the file and of its folder, where SQLite keeps its log."

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(f"the state {str(path)!r}", sqlite_engine(self._connect, timeout=PATIENCE))

    def found(self) -> None:
        """Create the file, unless it exists, and switch it permanently to the write-ahead log."""
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise ServiceError(f"{self.name} cannot be created or opened: {error.strerror}.") from None
        with self._translated(), closing(self._connect()) as connection:
            supported = uses_write_ahead_log(connection)
        if not supported:
            raise ServiceError(
                f"the file system of {self.name} does not support SQLite's write-ahead log. Keep the state on a local "
                "disk, or in PostgreSQL."
            )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees one moment of the file."""
        with self._transaction(lock="DEFERRED") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield the only connection that may write."""
        with self._transaction(lock="IMMEDIATE") as connection:
            yield connection

    migrating = writing

    def _connect(self) -> sqlite3.Connection:
        return open_sqlite(self._path, "mode=rw", timeout=PATIENCE)


class PostgreSQL(_Engine):
    """A separate schema in a PostgreSQL database; a connection that a restart broke is replaced silently."""

    access = f"Grant the user the rights on schema {SCHEMA}."

    def __init__(self, address: URL) -> None:
        engine = postgresql_engine(address, application="service", timeout=PATIENCE)
        super().__init__(f"the state {shown(address)!r}", engine)
        _look_first_in_the_schema(engine)

    def found(self) -> None:
        """Create the schema, unless it exists; the administrator creates the database itself."""
        with self.migrating() as connection:
            found = connection.execute(
                text("SELECT 1 FROM pg_namespace WHERE nspname = :name"), {"name": SCHEMA}
            )
            # A user of an existing schema may lack the right to create one.
            if found.first() is None:
                connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that reads."""
        with self._transaction() as connection:
            yield connection

    writing = reading

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Yield a connection that holds the lock of migrations until its transaction ends."""
        with self.writing() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
            yield connection


def _look_first_in_the_schema(engine: Engine) -> None:
    # Before SQLAlchemy first asks for the current schema, and outside a transaction that could be rolled back.
    @event.listens_for(engine, "connect", insert=True)
    def look(connection: object, _: object) -> None:
        connection.autocommit = True  # type: ignore[attr-defined]
        connection.execute(f"SET SESSION search_path TO {SCHEMA}")  # type: ignore[attr-defined]
        connection.autocommit = False  # type: ignore[attr-defined]
