"""Where a table of records is kept, and how it is asked: the ports, and what all of them share."""

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
"""The keys and the numbers of one answer: whole numbers, whatever was asked. Confidential."""

_BATCH_ROWS = 1 << 16
# Where Polars is imported, its handler of signals leaves a wait without an end asleep when Ctrl-C is pressed.
_SECONDS_BETWEEN_LOOKS = 0.5

_T = TypeVar("_T")


@dataclass(frozen=True)
class Column:
    """One column: its name in the source and in SQL, its type as Ibis has it, or else why it cannot be read."""

    name: str
    place: str
    kind: dt.DataType | None
    problem: str = ""

    @classmethod
    def of(cls, name: str, kind: dt.DataType, declared: str, *, place: str | None = None) -> "Column":
        """Return a column of a type that the source calls `declared`, which is told if it cannot be read."""
        if is_readable(kind):
            return cls(name, place or name, kind)
        return cls(name, place or name, None, f"has the type {declared}, which cannot be recoded")


@dataclass(frozen=True)
class Relation:
    """A table, a view or a file, with the names and types of its columns; no record of it has been seen."""

    called: str
    columns: tuple[Column, ...]
    name: str
    schema: str | None = None
    catalog: str | None = None

    def table(self, wanted: Sequence[str]) -> tuple[ir.Table, list[ir.Column]]:
        """Return a table of the wanted columns and no others, and its columns in the order of asking; or refuse one."""
        names = [column.name for column in self.columns]
        check_columns(names, wanted, self.called)
        chosen = [self.columns[names.index(name)] for name in wanted]
        kinds = {column.place: self._kind(column) for column in chosen}
        whole = ibis.table(kinds, name=self.name, database=self.schema, catalog=self.catalog)
        # By new names, so that no query says "all columns", some of which nobody may read.
        renamed = {place: f"tabulary_{number}" for number, place in enumerate(kinds)}
        table = whole.select(**{name: whole[place] for place, name in renamed.items()})
        return table, [table[renamed[column.place]] for column in chosen]

    def _kind(self, column: Column) -> dt.DataType:
        if column.kind is None:
            raise InvalidColumn(
                f"column {column.name!r} of {self.called} {column.problem}. Nothing was counted. Ask for a view that "
                "gives it another type."
            )
        return column.kind


class Session(Protocol):
    """A connection to a place, that sees one state of the records for as long as it lasts."""

    @property
    def dialect(self) -> str:
        """The SQL that is spoken there, by the name that Ibis has for it."""
        ...

    @property
    def collates(self) -> bool:
        """Whether a column may take texts of different characters for the same, and nothing but a trial tells."""
        ...

    @property
    def relations(self) -> Sequence[Relation]:
        """What holds the records, all of it together."""
        ...

    def answers(self, queries: Sequence[ir.Table]) -> Iterator[Answer]:
        """Yield the answers to queries of a column `key` and a column `number`, one after the other.

        An answer is fetched when it is asked for, so that what comes later is not even counted if it is not.
        """
        ...


class Place(Protocol):
    """Where records are. What it prints has no user and no password."""

    @property
    def name(self) -> str:
        """What a release calls the engine that counts there: public."""
        ...

    def open(self, weights: Weights | None) -> AbstractContextManager[Session]:
        """Return a session, which lets go of everything at its end, in whatever way it ends."""
        ...


@dataclass(frozen=True)
class TableName:
    """A table by its name, and its schema where that is told.

    >>> TableName.read("census.people")
    TableName(name='people', schema='census')
    """

    name: str
    schema: str | None

    @classmethod
    def read(cls, text: str) -> "TableName":
        """Return what `text` names: a table, or a schema and a table with a point between them."""
        parts = text.split(".") if isinstance(text, str) else []
        if not 1 <= len(parts) <= 2 or not all(parts) or "\0" in text:
            raise InvalidAddress(
                f"a table is named as in 'people' or 'census.people', not {text!r}. Nothing was counted."
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
        """Return what the table is called in an error."""
        return f"the table {str(self)!r} of {shown(address)}"


def guarded(action: Callable[[], _T], called: str, told: Callable[[Exception], str]) -> _T:
    """Return what the action returns; if it fails, say what `told` makes of it and forget the rest.

    A database's own error may quote a record, a user or a password. `told` says what went wrong and what to do, in
    words of ours.
    """
    try:
        return action()
    except (TabularyError, MemoryError):
        raise
    except Exception as problem:
        said = told(problem)
    # Raised out here, so that the other error is not even its context.
    raise UnreadableSource(f"{called} cannot be counted: {said}")


def first_of(signs: dict[str, str], text: str, otherwise: str) -> str:
    """Return what is said for the first sign that another system's message holds."""
    return next((said for sign, said in signs.items() if sign in text), otherwise)


def interruptible(action: Callable[[], _T], interrupt: Callable[[], None]) -> _T:
    """Return what the action returns, which is done in a thread of its own, so that Ctrl-C ends it at any moment."""
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
        # What has not begun never will; what has is asked to end until it does, for a query that is not yet at work
        # is not interrupted.
        outcome.cancel()
        begin.set()
        while not outcome.done():
            interrupt()
            wait((outcome,), timeout=_SECONDS_BETWEEN_LOOKS)
        raise


def fetched(cursor: Any) -> Answer:
    """Return the rows of an answer as arrays, a batch at a time: Python's own numbers take several times as much."""
    batches = [np.empty((0, 2), dtype=np.int64)]
    while rows := cursor.fetchmany(_BATCH_ROWS):
        batches.append(np.array(rows, dtype=np.int64))
    keys, numbers = np.concatenate(batches).T
    return keys, numbers


def missing(package: str) -> MissingExtra:
    """Return the error of who wants to count in a database and lacks a package."""
    return MissingExtra(
        f"counting in a database needs {package}, which is not installed. Install it: pip install 'tabulary[database]'."
    )
