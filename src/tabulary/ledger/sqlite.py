"""A ledger in an SQLite file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType

from sqlalchemy.engine import Connection

from tabulary.errors import LedgerError
from tabulary.ledger import schema
from tabulary.ledger.chain import Unsound
from tabulary.ledger.storage import UNSPENT, Storage, Structure
from tabulary.sql import DatabaseTrouble, open_sqlite, sqlite_engine, trouble_of, uses_write_ahead_log


class SQLiteStorage(Storage):
    """An SQLite file with a write-ahead log.

    A writing transaction begins with SQLite's write lock (BEGIN IMMEDIATE); its commit returns when the write-ahead
    log is on the disk (synchronous=FULL).
    """

    kept_in = "file"
    place = "path"
    access = "Check the permissions of the file and of its folder, where SQLite keeps its log."
    reading_options = MappingProxyType({"lock": "DEFERRED"})
    writing_options = MappingProxyType({"lock": "IMMEDIATE"})
    expected_guards = schema.SQLITE_TRIGGERS

    def __init__(self, path: Path, *, read_only: bool, timeout: float) -> None:
        self._path = path
        # The file is opened by _connect, which never creates one.
        engine = sqlite_engine(self._connect, timeout=timeout)
        super().__init__(str(path), engine, read_only=read_only, timeout=timeout)
        self._file = self._identify()

    @classmethod
    def claim(cls, path: Path, *, timeout: float) -> "SQLiteStorage":
        """Return an empty new file at `path`; refuse a path that exists."""
        if leftover := _journals_beside(path):
            raise LedgerError(
                f"there is a journal at {str(leftover[0])!r}: there was a ledger at {str(path)!r}, and its "
                f"file is missing. Restore it, or choose another path. {UNSPENT}"
            )
        try:
            # Exclusive, so that one of two processes that create the same ledger is refused.
            path.open("xb").close()
        except FileExistsError:
            raise LedgerError(
                f"{str(path)!r} already exists, and a ledger is never overwritten. Open it, or choose "
                f"another path. {UNSPENT}"
            ) from None
        except OSError as error:
            raise LedgerError(
                f"no ledger can be created at {str(path)!r}: {error.strerror}. {UNSPENT}"
            ) from None
        return cls(path, read_only=False, timeout=timeout)

    @contextmanager
    def founding(self) -> Iterator[Connection]:
        """Yield a connection to new, empty tables in the file; an error removes the file."""
        try:
            self._use_write_ahead_log()
            with self.writing() as connection:
                schema.create_tables(connection)
                for statement in schema.SQLITE_TRIGGERS.values():
                    connection.exec_driver_sql(statement)
                yield connection
        except BaseException:
            self.close()
            self._path.unlink(missing_ok=True)
            raise

    def structure(self, connection: Connection) -> Structure:
        """Return the tables and triggers of the file; refuse damaged pages."""
        if connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() != "ok":
            raise Unsound("has damaged pages")
        found = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master").all()
        return Structure(
            {name: _columns(connection, name) for kind, name, _ in found if kind == "table"},
            # An index changes no answer, and the integrity check has compared it with its table.
            {name: text for kind, name, text in found if kind not in ("table", "index")},
        )

    def _use_write_ahead_log(self) -> None:
        with self._translated(), closing(self._connect()) as connection:
            supported = uses_write_ahead_log(connection)
        if not supported:
            raise LedgerError(
                f"the file system of {self.name} does not support SQLite's write-ahead log. "
                f"Keep the ledger on a local disk, or in PostgreSQL. {UNSPENT}"
            )

    def _begin(self, connection: Connection, *, writing: bool) -> None:
        # Under the lock; otherwise a debit could go to a file that is no longer at the path.
        if self._identify() != self._file:
            raise LedgerError(
                f"{self.name} was replaced by another file while it was open. Open it again. {UNSPENT}"
            )

    def _connect(self) -> sqlite3.Connection:
        if not self.read_only:
            return self._open("mode=rw")
        try:
            return self._open("mode=ro")
        except sqlite3.OperationalError as error:
            if trouble_of(error) is not DatabaseTrouble.NO_ACCESS or _journals_beside(self._path):
                raise
            # In a read-only folder, SQLite cannot make a write-ahead log. If there is none, the file contains every
            # entry and can be read directly.
            return self._open("immutable=1")

    def _open(self, parameters: str) -> sqlite3.Connection:
        return open_sqlite(self._path, parameters, timeout=self._timeout)

    def _identify(self) -> tuple[int, int]:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            raise self._missing() from None
        except OSError as error:
            raise LedgerError(f"{self.name} cannot be reached: {error.strerror}. {UNSPENT}") from None
        return status.st_dev, status.st_ino

    @contextmanager
    def _translated(self, *, committing: bool = False) -> Iterator[None]:
        try:
            with super()._translated(committing=committing):
                yield
        except sqlite3.Error as error:
            raise self._translate(error, committing=committing) from None
        except UnicodeDecodeError:
            # SQLite quotes the file in its own messages, and the content of a damaged file is not text.
            raise self._corrupt("cannot be read") from None


def _journals_beside(path: Path) -> list[Path]:
    # These may contain transactions that are not yet in the file itself.
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    return [journal for journal in beside if journal.is_file() and journal.stat().st_size > 0]


def _columns(connection: Connection, table: str) -> list[str]:
    found = connection.exec_driver_sql("SELECT name FROM pragma_table_info(?)", (table,))
    return [name for (name,) in found]
