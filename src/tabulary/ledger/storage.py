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

from tabulary.errors import LedgerBehind, LedgerBusy, LedgerCorrupt, LedgerError, LedgerMissing
from tabulary.ledger.chain import Behind, Unsound
from tabulary.sql import DatabaseTrouble, sqlstate_of, trouble_of

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

    place: str
    """What leads to it: a path, an address."""

    access: str
    """What to check where it may not be used."""

    reading_options: Mapping[str, Any]
    writing_options: Mapping[str, Any]

    expected_guards: Mapping[str, str]
    """The guards that `structure` finds in a sound ledger."""

    def __init__(
        self, where: str, engine: Engine, *, read_only: bool, timeout: float, password: str = ""
    ) -> None:
        self.where = where
        self.read_only = read_only
        self.engine = engine
        self._password = password
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
        self.engine.dispose(close=os.getpid() == self._process)

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

    def _translate(self, error: BaseException | None, *, committing: bool) -> LedgerError:
        """Return what an error of the database means; if `committing`, the debit may have been kept."""
        detail = f"SQLSTATE {code}" if (code := sqlstate_of(error)) else str(error)
        match trouble_of(error):
            case DatabaseTrouble.BUSY:
                return self._busy()
            case DatabaseTrouble.CONFLICT:
                return LedgerBusy(
                    f"another process wrote to {self.name} at the same moment. {UNSPENT} Try again."
                )
            case DatabaseTrouble.FULL:
                return LedgerError(f"the disk of {self.name} is full. {UNSPENT} Free some space, try again.")
            case DatabaseTrouble.DISK:
                # A commit whose flush failed may still be found on the disk after a restart.
                return LedgerError(
                    f"the disk of {self.name} failed ({detail}). Nothing was measured. When the disk works "
                    "again, the ledger's entries show whether the debit was kept."
                )
            case DatabaseTrouble.NO_ACCESS:
                return LedgerError(f"{self.name} cannot be opened or written to. {UNSPENT} {self.access}")
            case DatabaseTrouble.READ_ONLY:
                return self._takes_no_writes()
            case DatabaseTrouble.MISSING:
                return self._missing()
            case DatabaseTrouble.CONSTRAINT:
                return self._corrupt(f"does not accept the next entry ({detail})")
            # The statements are fixed and correct: what the database cannot make of them is its own fault.
            case DatabaseTrouble.DAMAGED | DatabaseTrouble.UNREADABLE | DatabaseTrouble.UNKNOWN:
                return self._corrupt(f"cannot be read ({detail})")
            case DatabaseTrouble.UNREACHABLE:
                return self._out_of_reach(error, committing=committing)
        return LedgerError(f"{self.name} could not be used ({detail}). {UNSPENT}")

    def _out_of_reach(self, error: BaseException | None, *, committing: bool) -> LedgerError:
        if committing:
            problem = LedgerError(
                f"the connection to {self.name} was lost in the middle of a commit. Nothing was measured. "
                "When the server is back, the ledger's entries show whether the debit was kept."
            )
        else:
            problem = LedgerError(
                f"{self.name} cannot be reached, or its server stopped. {UNSPENT} Check that the server runs, and "
                "that host, port, database, user and password are right; then try again."
            )
        # The server's own words name users and hosts: they are for the terminal or the log, not for a reader.
        said = " ".join(str(error).split())
        problem.add_note(f"PostgreSQL: {said.replace(self._password, '***') if self._password else said}")
        return problem

    def _takes_no_writes(self) -> LedgerError:
        return LedgerError(
            f"the server of {self.name} accepts no writes: it is a replica, or read-only. {UNSPENT} Give "
            "the address of the primary server."
        )

    def _missing(self) -> LedgerMissing:
        return LedgerMissing(
            f"there is no ledger at {self.where!r}. {UNSPENT} Check the {self.place}; a new ledger would "
            "not know earlier spending."
        )

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
