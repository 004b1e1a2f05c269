"""The storage of a ledger: durable, serialised transactions, and errors written for the reader.

`SQLiteStorage` and `PostgreSQLStorage` are the two kinds.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from tabulary.errors import LedgerBehind, LedgerBusy, LedgerCorrupt, LedgerError
from tabulary.ledger.chain import Behind, Unsound

UNSPENT = "Nothing was measured, nothing was spent."

_NEWEST_COPY = "Restore the newest copy. If that is lost, stop: this copy does not know what was spent since."


@dataclass(frozen=True)
class Structure:
    """The structure of a database: the columns of each table, and the guards that keep them append-only."""

    tables: Mapping[str, list[str]]
    guards: Mapping[str, str]


class Storage(ABC):
    """The open database of a ledger, shared by the threads of one process.

    A writing transaction takes the write lock of the ledger before it reads, so that what it read is still true
    when it writes. Its commit returns when the entry is on the disk. `where` may be shown to anyone.
    """

    kept_in: str
    """The kind of place in a sentence: a file, a database."""

    reading_options: Mapping[str, Any]
    writing_options: Mapping[str, Any]

    expected_guards: Mapping[str, str]
    """The guards that `structure` finds in a sound ledger."""

    def __init__(self, where: str, engine: Engine, *, read_only: bool, timeout: float) -> None:
        self.where = where
        self.read_only = read_only
        self._engine = engine
        self._reader = engine.execution_options(**self.reading_options)
        self._writer = engine.execution_options(**self.writing_options)
        self._timeout = timeout
        self._process = os.getpid()
        self._closed = False

    @abstractmethod
    def founding(self) -> AbstractContextManager[Connection]:
        """Yield a connection to new, empty tables; an error in the block leaves nothing behind."""

    @abstractmethod
    def structure(self, connection: Connection) -> Structure:
        """Return the structure of the database; refuse a damaged one."""

    def close(self) -> None:
        """Close every connection. A second call does nothing."""
        self._closed = True
        # Another process must close its own connections: neither locks nor sessions survive a fork.
        self._engine.dispose(close=os.getpid() == self._process)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees one moment of the ledger."""
        with self._transaction(self._reader) as connection:
            self._begin(connection, writing=False)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield the only connection that may write; leaving the block commits, an error undoes everything."""
        if self.read_only:
            raise LedgerError(f"{self.name} was opened read-only. Open it for writing. {UNSPENT}")
        with self._transaction(self._writer) as connection:
            self._begin(connection, writing=True)
            yield connection

    @property
    def name(self) -> str:
        """The ledger, in a sentence."""
        return f"the ledger {self.where!r}"

    @abstractmethod
    def _begin(self, connection: Connection, *, writing: bool) -> None:
        """Make sure, inside the transaction, of what both kinds promise."""

    @abstractmethod
    def _translate(self, error: BaseException | None, *, committing: bool) -> LedgerError:
        """Return what an error of the database means; if `committing`, the debit may have been kept."""

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        self._refuse_stray_use()
        with self._translated(), engine.connect() as connection, connection.begin() as transaction:
            yield connection
            # If something fails from here on, the debit may have been kept.
            with self._translated(committing=True):
                transaction.commit()

    def _refuse_stray_use(self) -> None:
        if self._closed:
            raise LedgerError(f"{self.name} is closed. Open it again. {UNSPENT}")
        if os.getpid() != self._process:
            raise LedgerError(
                f"{self.name} was opened by another process. Open it again in this one. {UNSPENT}"
            )

    @contextmanager
    def _translated(self, *, committing: bool = False) -> Iterator[None]:
        try:
            yield
        except Behind as error:
            raise LedgerBehind(f"{self.name} {error}. {UNSPENT} {_NEWEST_COPY}") from None
        except Unsound as error:
            raise self._corrupt(str(error)) from None
        except PoolTimeout:
            raise self._busy() from None
        except DBAPIError as error:
            raise self._translate(error.orig, committing=committing) from None
        except SQLAlchemyError as error:
            raise LedgerError(f"{self.name} could not be used: {error}. {UNSPENT}") from None

    def _corrupt(self, reason: str) -> LedgerCorrupt:
        return LedgerCorrupt(
            f"{self.name} {reason}. {UNSPENT} Keep the {self.kept_in} for inquiry, restore the newest sound "
            "copy, and debit every release that was made after that copy."
        )

    def _busy(self) -> LedgerBusy:
        return LedgerBusy(
            f"another process kept {self.name} locked for more than {self._timeout:g} seconds. "
            f"{UNSPENT} Try again."
        )
