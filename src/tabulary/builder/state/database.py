"""The database of the state: a SQLite file or a PostgreSQL schema, its transactions, and errors for the reader."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from tabulary.errors import LedgerError, MissingExtra, ServiceError
from tabulary.ledger.address import Where, address_of, shown

SCHEMA = "tabulary_service"
"""The PostgreSQL schema of the state: the ledger, or anything else, may share the database."""

# Long enough for another worker's transaction, short enough for a caller who waits for an answer.
_PATIENCE = 5

# So that a request notices within half a minute that the server's machine is gone, where TCP may wait for hours.
_KEEPALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}

# The advisory lock of migrations: any number that nothing else in the database locks. The ASCII of "tabulary".
_MIGRATING = int.from_bytes(b"tabulary", "big")


class Database(Protocol):
    """Where the state is kept. Safe to use from several threads; an error never names a user or a password."""

    @property
    def name(self) -> str:
        """What an error calls the database."""
        ...

    def found(self) -> None:
        """Make the empty place for the tables, unless it is there."""
        ...

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that reads."""
        ...

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection that writes; leaving the block commits, an error takes all back."""
        ...

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Yield a connection that writes and that no other migration runs beside, whichever process it is in."""
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
    try:
        address = address_of(where)
    except LedgerError:
        # The ledger reads addresses for both of us, and speaks of itself.
        raise ServiceError(
            "the state is kept at the path of a SQLite file or at an address that begins with postgresql://, and the "
            "address cannot be read. Write postgresql://user:password@host:port/database, with %40 for an @ in the "
            "password."
        ) from None
    return SQLite(Path(where)) if address is None else PostgreSQL(address)


class SQLite:
    """A file with a write-ahead log, which its owner alone may read.

    A writing transaction takes the write lock before it reads (BEGIN IMMEDIATE), so migrations need no lock of
    their own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # The address only names the dialect: the file is opened by _connect, which never creates one.
        self._engine = create_engine(
            "sqlite+pysqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            pool_timeout=_PATIENCE,
            hide_parameters=True,
        )
        event.listen(self._engine, "begin", _begin)
        self._reader = self._engine.execution_options(lock="DEFERRED")
        self._writer = self._engine.execution_options(lock="IMMEDIATE")

    @property
    def name(self) -> str:
        """What an error calls the file."""
        return f"the state {str(self._path)!r}"

    def found(self) -> None:
        """Create the file, unless it is there, and switch it to the write-ahead log, which it keeps."""
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise ServiceError(f"{self.name} cannot be created or opened: {error.strerror}.") from None
        with self._translated(), closing(self._connect()) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise ServiceError(
                f"the file system of {self.name} does not support SQLite's write-ahead log. Keep the state on a local "
                "disk, or in PostgreSQL."
            )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees one moment of the file."""
        with self._translated(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection that alone may write."""
        with self._translated(), self._writer.begin() as connection:
            yield connection

    migrating = writing

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.resolve().as_uri()}?mode=rw",
            uri=True,
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA trusted_schema=OFF")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._translate(error.orig) from None
        except sqlite3.Error as error:
            raise self._translate(error) from None
        except SQLAlchemyError as error:
            raise ServiceError(
                f"{self.name} could not be used ({type(error).__name__}). Try again."
            ) from None

    def _translate(self, error: BaseException | None) -> ServiceError:
        # The low byte says what went wrong, the rest where in SQLite it arose.
        match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return ServiceError(f"another process kept {self.name} locked for too long. Try again.")
            case sqlite3.SQLITE_FULL:
                return ServiceError(f"the disk of {self.name} is full. Nothing was written. Free some space.")
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                return ServiceError(
                    f"{self.name} is not there, or cannot be opened or written to. Check the path, and the permissions "
                    "of the file and of its folder, where SQLite keeps its log."
                )
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                return ServiceError(f"{self.name} is not a sound SQLite file. Restore it from a copy.")
            case _:
                return ServiceError(f"{self.name} could not be used ({type(error).__name__}). Try again.")


class PostgreSQL:
    """A schema of its own in a PostgreSQL database; a connection that a restart broke is replaced unseen."""

    def __init__(self, address: URL) -> None:
        self._name = f"the state {shown(address)!r}"
        usual = {"connect_timeout": _PATIENCE, "application_name": "tabulary service", **_KEEPALIVE}
        try:
            self._engine = create_engine(
                address.set(drivername="postgresql+psycopg"),
                connect_args={name: value for name, value in usual.items() if name not in address.query},
                pool_pre_ping=True,
                pool_timeout=_PATIENCE,
                hide_parameters=True,
            )
        except ModuleNotFoundError:
            raise MissingExtra(
                "a state in PostgreSQL needs the package psycopg: pip install 'tabulary[serve]'"
            ) from None
        _look_first_in_the_schema(self._engine)

    @property
    def name(self) -> str:
        """What an error calls the database."""
        return self._name

    def found(self) -> None:
        """Create the schema, unless it is there; the database itself is the administrator's."""
        with self.migrating() as connection:
            found = connection.execute(
                text("SELECT 1 FROM pg_namespace WHERE nspname = :name"), {"name": SCHEMA}
            )
            # Whoever may use a schema that is there need not have the right to create one.
            if found.first() is None:
                connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that reads."""
        with self._translated(), self._engine.begin() as connection:
            yield connection

    writing = reading

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Yield a connection that holds the lock of migrations until its transaction ends."""
        with self.writing() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._translate(error) from None
        except SQLAlchemyError as error:
            raise ServiceError(
                f"{self.name} could not be used ({type(error).__name__}). Try again."
            ) from None

    def _translate(self, error: DBAPIError) -> ServiceError:
        # The words of the server may name users and addresses; its code says enough.
        code = getattr(error.orig, "sqlstate", None)
        if code == "53100":
            return ServiceError(f"the disk of {self.name} is full. Nothing was written. Free some space.")
        if code == "42501":
            return ServiceError(
                f"{self.name} cannot be used by this user. Grant the rights on schema {SCHEMA}."
            )
        if code is None or code[:2] in ("08", "28", "3D", "53", "57") or error.connection_invalidated:
            return ServiceError(
                f"{self.name} cannot be reached. Check that the server runs, and that the address, the user and the "
                "password are right; then try again."
            )
        return ServiceError(f"{self.name} could not be used (SQLSTATE {code}). Try again.")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options()['lock']}")


def _look_first_in_the_schema(engine: Engine) -> None:
    # Before SQLAlchemy first asks which schema it is in, and outside a transaction that could be taken back.
    @event.listens_for(engine, "connect", insert=True)
    def look(connection: object, _: object) -> None:
        connection.autocommit = True  # type: ignore[attr-defined]
        connection.execute(f"SET SESSION search_path TO {SCHEMA}")  # type: ignore[attr-defined]
        connection.autocommit = False  # type: ignore[attr-defined]
