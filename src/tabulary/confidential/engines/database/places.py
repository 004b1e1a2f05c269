"""The place where a table of records is stored, and how to ask it: the ports, and what all of them share."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Protocol, TypeVar

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.engines.recoding.codes import is_readable
from tabulary.confidential.reading.duckdb import check_columns
from tabulary.confidential.weights import Weights
from tabulary.core.urls import shown
from tabulary.errors import InvalidAddress, InvalidColumn, MissingExtra, TabularyError, UnreadableSource

KEY, NUMBER = "key", "number"

Answer = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The keys and the numbers of one answer, all whole numbers. Confidential."""

_BATCH_ROWS = 1 << 16
# If Polars is imported, its signal handler lets a wait without a time limit sleep through Ctrl-C.
_SECONDS_BETWEEN_LOOKS = 0.5

_T = TypeVar("_T")


@dataclass(frozen=True)
class SourceColumn:
    """One column: its name in the source and in SQL, its Ibis type, or else why it cannot be read."""

    name: str
    place: str
    kind: dt.DataType | None
    problem: str = ""

    @classmethod
    def of(cls, name: str, kind: dt.DataType, declared: str, *, place: str | None = None) -> "SourceColumn":
        """Return a column whose type the source calls `declared`; an error names that type."""
        if is_readable(kind):
            return cls(name, place or name, kind)
        return cls(name, place or name, None, f"has the type {declared}, which cannot be recoded")


@dataclass(frozen=True)
class Relation:
    """A table, a view or a file, with the names and types of its columns; no record has been read."""

    called: str
    columns: tuple[SourceColumn, ...]
    name: str
    schema: str | None = None
    catalog: str | None = None

    def table(self, wanted: Sequence[str]) -> tuple[ir.Table, list[ir.Column]]:
        """Return a table of only the wanted columns, and its columns in the order of the request; or refuse one."""
        names = [column.name for column in self.columns]
        check_columns(names, wanted, self.called)
        chosen = [self.columns[names.index(name)] for name in wanted]
        kinds = {column.place: self._kind(column) for column in chosen}
        whole = ibis.table(kinds, name=self.name, database=self.schema, catalog=self.catalog)
        # With new names, so that no query says "all columns": this user may not be allowed to read some of them.
        renamed = {place: f"tabulary_{number}" for number, place in enumerate(kinds)}
        table = whole.select(**{name: whole[place] for place, name in renamed.items()})
        return table, [table[renamed[column.place]] for column in chosen]

    def _kind(self, column: SourceColumn) -> dt.DataType:
        if column.kind is None:
            raise InvalidColumn(
                f"column {column.name!r} of {self.called} {column.problem}. Nothing was counted. Ask for a view that "
                "gives it another type."
            )
        return column.kind


class Session(Protocol):
    """A connection to a place; it sees one state of the records until it ends."""

    @property
    def dialect(self) -> str:
        """The SQL dialect of the place, by its Ibis name."""
        ...

    @property
    def collates(self) -> bool:
        """Whether a column may treat different texts as equal, so that only a trial can show it."""
        ...

    @property
    def relations(self) -> Sequence[Relation]:
        """Everything that contains the records."""
        ...

    def answers(self, queries: Sequence[ir.Table]) -> Iterator[Answer]:
        """Yield the answers to queries with a column `key` and a column `number`, one after the other.

        An answer is fetched when the caller asks for it, so a later query may never run.
        """
        ...


class Place(Protocol):
    """The place of the records. Its printed form has no user and no password."""

    @property
    def name(self) -> str:
        """The name of the engine in a release: public."""
        ...

    def open(self, weights: Weights | None) -> AbstractContextManager[Session]:
        """Return a session, which frees everything at its end, also after an error."""
        ...


@dataclass(frozen=True)
class TableName:
    """A table by its name, with its schema if that is given.

    >>> TableName.read("census.people")
    TableName(name='people', schema='census')
    """

    name: str
    schema: str | None

    @classmethod
    def read(cls, text: str) -> "TableName":
        """Return what `text` names: a table, or a schema and a table with a dot between them."""
        parts = text.split(".") if isinstance(text, str) else []
        if not 1 <= len(parts) <= 2 or not all(parts) or "\0" in text:
            raise InvalidAddress(
                f"the name of a table looks like 'people' or 'census.people', not {text!r}. Nothing was "
                "counted."
            )
        return cls(parts[-1], parts[0] if len(parts) == 2 else None)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name

    @property
    def quoted(self) -> str:
        """The name in SQL, as exactly as it is written."""
        return ".".join(
            '"' + part.replace('"', '""') + '"' for part in (self.schema, self.name) if part is not None
        )

    def of(self, address: str) -> str:
        """Return the name of the table in an error."""
        return f"the table {str(self)!r} of {shown(address)}"


def guarded(action: Callable[[], _T], called: str, told: Callable[[Exception], str]) -> _T:
    """Return what the action returns; if it fails, raise the message that `told` makes and forget the original error.

    A database's own error may quote a record, a user or a password. `told` says what went wrong and what to do, in
    our own words.
    """
    try:
        return action()
    except (TabularyError, MemoryError):
        raise
    except Exception as problem:
        said = told(problem)
    # Raised here, outside the handler, so that the original error is not even its context.
    raise UnreadableSource(f"{called} cannot be counted: {said}")


def first_of(signs: dict[str, str], text: str, otherwise: str) -> str:
    """Return our message for the first sign that occurs in another system's message."""
    return next((said for sign, said in signs.items() if sign in text), otherwise)


def interruptible(action: Callable[[], _T], interrupt: Callable[[], None]) -> _T:
    """Return what the action returns; it runs in its own thread, so that Ctrl-C ends it at any moment."""
    outcome: Future[_T] = Future()
    begin = Event()

    def run() -> None:
        begin.wait()
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            outcome.set_result(action())
        except BaseException as problem:
            outcome.set_exception(problem)

    try:
        Thread(target=run, name="tabulary-query", daemon=True).start()
        begin.set()
        while not outcome.done():
            wait((outcome,), timeout=_SECONDS_BETWEEN_LOOKS)
        return outcome.result()
    except BaseException:
        # What has not begun never starts. What has begun is interrupted until it ends, because an interrupt before
        # the query runs has no effect.
        outcome.cancel()
        begin.set()
        while not outcome.done():
            interrupt()
            wait((outcome,), timeout=_SECONDS_BETWEEN_LOOKS)
        raise


def fetched(cursor: Any) -> Answer:
    """Return the rows of an answer as arrays, batch by batch: Python's own numbers need several times the memory."""
    batches = [np.empty((0, 2), dtype=np.int64)]
    while rows := cursor.fetchmany(_BATCH_ROWS):
        batches.append(np.array(rows, dtype=np.int64))
    keys, numbers = np.concatenate(batches).T
    return keys, numbers


def missing(package: str) -> MissingExtra:
    """Return the error for a missing package that counting in a database needs."""
    return MissingExtra(
        f"counting in a database needs {package}, which is not installed. Install it: pip install 'tabulary[database]'."
    )
