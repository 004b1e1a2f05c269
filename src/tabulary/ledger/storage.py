"""A ledger's SQLite file: durable, serialised transactions, and errors written for the reader."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from tabulary.errors import LedgerBusy, LedgerCorrupt, LedgerError, LedgerMissing
from tabulary.ledger.chain import Unsound

UNSPENT = "Nothing was measured, nothing was spent."


class Storage:
    """The open file of a ledger, shared by the threads of one process.

    A writing transaction takes SQLite's write lock before it reads (BEGIN IMMEDIATE), so that what it read
    still holds when it writes; its commit returns once the write-ahead log is on the disk (synchronous=FULL).
    """

    def __init__(self, path: Path, *, read_only: bool, timeout: float) -> None:
        self.path = path
        self.read_only = read_only
        self._timeout = timeout
        self._process = os.getpid()
        self._closed = False
        self._file = self._identify()
        # The address only names the dialect: the file is opened by _connect, which never creates one.
        self._engine = create_engine("sqlite+pysqlite://", creator=self._connect, poolclass=QueuePool)
        event.listen(self._engine, "begin", _begin)

    def close(self) -> None:
        """Close every connection. A second call does nothing."""
        self._closed = True
        # Another process's connections are not ours to close: SQLite's locks do not survive a fork.
        self._engine.dispose(close=os.getpid() == self._process)

    def use_write_ahead_log(self) -> None:
        """Switch a new, empty file to the write-ahead log, which it keeps."""
        with self._translated(), closing(self._connect()) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise LedgerError(
                f"the file system of {self._name} does not support SQLite's write-ahead log. "
                f"Keep the ledger on a local disk. {UNSPENT}"
            )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees one moment of the ledger."""
        with self._translated():
            self._refuse_stray_use()
            with self._engine.execution_options(ledger_lock="DEFERRED").begin() as connection:
                self._refuse_replaced_file()
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection that alone may write; leaving the block commits, an error takes all back."""
        with self._translated():
            self._refuse_stray_use()
            if self.read_only:
                raise LedgerError(f"{self._name} was opened read-only. Open it for writing. {UNSPENT}")
            with self._engine.execution_options(ledger_lock="IMMEDIATE").begin() as connection:
                # Under the lock, or a debit could go to a file that no longer stands at the path.
                self._refuse_replaced_file()
                yield connection

    def _connect(self) -> sqlite3.Connection:
        if not self.read_only:
            return self._open("mode=rw")
        try:
            return self._open("mode=ro")
        except sqlite3.OperationalError as error:
            locked_out = _primary_code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if not locked_out or journals_beside(self.path):
                raise
            # In a folder it may not write to, SQLite cannot set up a write-ahead log. With none there, no
            # entry is outside the file and the file can be read as it stands.
            return self._open("immutable=1")

    def _open(self, parameters: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.resolve().as_uri()}?{parameters}",
            uri=True,
            timeout=self._timeout,
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

    def _identify(self) -> tuple[int, int]:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            raise LedgerMissing(
                f"there is no ledger at {str(self.path)!r}. {UNSPENT} Check the path; a new ledger would "
                "know of no earlier spending."
            ) from None
        except OSError as error:
            raise LedgerError(f"{self._name} cannot be reached: {error.strerror}. {UNSPENT}") from None
        return status.st_dev, status.st_ino

    def _refuse_replaced_file(self) -> None:
        if self._identify() != self._file:
            raise LedgerError(
                f"{self._name} was replaced by another file while it was open. Open it again. {UNSPENT}"
            )

    def _refuse_stray_use(self) -> None:
        if self._closed:
            raise LedgerError(f"{self._name} is closed. Open it again. {UNSPENT}")
        if os.getpid() != self._process:
            raise LedgerError(
                f"{self._name} was opened by another process. Open it again in this one. {UNSPENT}"
            )

    @property
    def _name(self) -> str:
        return f"the ledger {str(self.path)!r}"

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except Unsound as error:
            raise self._corrupt(str(error)) from None
        except PoolTimeout:
            raise self._busy() from None
        except DBAPIError as error:
            raise self._translate(error.orig) from None
        except sqlite3.Error as error:
            raise self._translate(error) from None
        except UnicodeDecodeError:
            # SQLite quotes the file in its own messages, and a damaged file holds no text.
            raise self._corrupt("cannot be read") from None
        except SQLAlchemyError as error:
            raise LedgerError(f"{self._name} could not be used: {error}. {UNSPENT}") from None

    def _translate(self, error: BaseException | None) -> LedgerError:
        match _primary_code(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return self._busy()
            # The statements are fixed and correct: what SQLite cannot make of them is the file's fault.
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_ERROR:
                return self._corrupt(f"cannot be read ({error})")
            case sqlite3.SQLITE_CONSTRAINT:
                return self._corrupt(f"does not take what should come next ({error})")
            case sqlite3.SQLITE_FULL:
                return LedgerError(f"the disk of {self._name} is full. {UNSPENT} Free some space, try again.")
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
                return LedgerError(
                    f"{self._name} cannot be opened or written to. {UNSPENT} Check the permissions of the "
                    "file and of its folder, where SQLite keeps its log."
                )
            case sqlite3.SQLITE_IOERR:
                # A commit whose flush failed may still be found on the disk after a restart.
                return LedgerError(
                    f"the disk of {self._name} failed ({error}). Nothing was measured; whether the debit was "
                    "kept can be seen in the ledger's entries once the disk is well."
                )
            case _:
                return LedgerError(f"{self._name} could not be used ({error}). {UNSPENT}")

    def _corrupt(self, reason: str) -> LedgerCorrupt:
        return LedgerCorrupt(
            f"{self._name} {reason}. {UNSPENT} Keep the file for inquiry, restore the newest sound copy, and "
            "debit every release made since that copy."
        )

    def _busy(self) -> LedgerBusy:
        return LedgerBusy(
            f"another process kept {self._name} locked for more than {self._timeout:g} seconds. "
            f"{UNSPENT} Try again."
        )


def journals_beside(path: Path) -> list[Path]:
    """Return the journals next to `path` that hold transactions not yet in the file itself."""
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    return [journal for journal in beside if journal.is_file() and journal.stat().st_size > 0]


def _primary_code(error: BaseException | None) -> int:
    # The low byte says what went wrong, the rest where in SQLite it arose. Without a code, it was Python that
    # could not make sense of what SQLite read from the file.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code & 0xFF


def _begin(connection: Connection) -> None:
    lock: Literal["DEFERRED", "IMMEDIATE"] = connection.get_execution_options()["ledger_lock"]
    connection.exec_driver_sql(f"BEGIN {lock}")
