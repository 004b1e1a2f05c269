"""A table of any other database with an Ibis backend: one statement, after a check that the database understands it."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from typing import Any, TypeVar

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import numpy as np
import pyarrow
from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding
from tabulary.confidential.engines.database.places import (
    KEY,
    NUMBER,
    Answer,
    Relation,
    SourceColumn,
    TableName,
    guarded,
)
from tabulary.confidential.engines.recoding.codes import code_of
from tabulary.confidential.weights import Weights
from tabulary.core.urls import scheme_of, shown
from tabulary.errors import InvalidAddress, MissingExtra, UnreadableSource

_QUERY = "query"

_T = TypeVar("_T")

# Some backends of Ibis are not databases, or are reached in another way.
_NO_DATABASES = frozenset(["polars", "pyspark", "flink"])

_UNREACHED = (
    "it refuses the connection, or does not answer. Nothing was counted. Check the address, the user and "
    "the password."
)
_FAILED = (
    "the database refused a query, or the connection was lost. Nothing was counted. The log of the "
    "database says why."
)

# A check before any query about records: every database must say which of the texts below a value is.
_TEXTS = ("1", "0.5", "true", "a", "2024-02-29")
TELLING: tuple[tuple[object, str, str | None], ...] = (
    (1, "int64", "1"),
    (2, "int64", None),
    (1.0, "float64", "1"),
    (0.5, "float64", "0.5"),
    (True, "boolean", "true"),
    ("a", "string", "a"),
    ("A", "string", None),
    ("a ", "string", None),
    ("ä", "string", None),
    ("1.0", "string", None),
    ("", "string", None),
    (None, "string", None),
    ("2024-02-29", "date", "2024-02-29"),
)


class Elsewhere:
    """A table or a view of a database with an Ibis backend; see `Place`."""

    def __init__(self, address: str, table: str) -> None:
        self._table = TableName.read(table)
        self._address = address
        self._called = self._table.of(address)
        self.name = scheme_of(address) or ""
        known = {backend.name for backend in entry_points(group="ibis.backends")} - _NO_DATABASES
        if self.name not in known:
            raise InvalidAddress(
                f"no database is known at {self.name}://. Nothing was counted. An address begins with "
                "postgresql://, duckdb:// or sqlite://, or with the name of another Ibis backend: "
                f"{', '.join(sorted(known))}."
            )

    def __repr__(self) -> str:
        return f"<{self._called}>"

    @contextmanager
    def open(self, weights: Weights | None) -> Iterator["ElsewhereSession"]:
        """Return a session; see `Place.open`."""
        backend = self._connect()
        try:
            yield ElsewhereSession(backend, self._table, self._called)
        finally:
            with suppress(Exception):
                backend.disconnect()

    def _connect(self) -> Any:
        try:
            getattr(ibis, self.name)
        except (ImportError, AttributeError):
            found = False
        else:
            found = True
        if not found:
            raise MissingExtra(
                f"counting at {self.name}:// needs a driver that is not installed. Install it: "
                f"pip install 'ibis-framework[{self.name}]'."
            )
        return _quietly(
            lambda: ibis.connect(self._address), f"the database {shown(self._address)}", _UNREACHED
        )


class ElsewhereSession:
    """One connection; see `Session`. Its transactions are unknown, so everything is asked in one statement."""

    collates = True

    def __init__(self, backend: Any, table: TableName, called: str) -> None:
        self._backend = backend
        self._called = called
        self.dialect = str(backend.name)
        understood = _quietly(self._is_understood, called, _FAILED)
        if not understood:
            raise UnreadableSource(
                f"{called} cannot be counted: its database treats different values as equal, or does not "
                "know the types of levels. Nothing was counted. Export the records to Parquet, and count "
                "the file."
            )
        self.relations = (_quietly(lambda: self._described(table), called, _FAILED),)

    def answers(self, queries: Sequence[ir.Table]) -> Iterator[Answer]:
        """Yield the answer to each query, all from one state of the table."""
        tagged = [
            query.select(**{_QUERY: ibis.literal(number, "int64"), KEY: query[KEY], NUMBER: query[NUMBER]})
            for number, query in enumerate(queries)
        ]
        asked = ibis.union(*tagged) if len(tagged) > 1 else tagged[0]
        found = _quietly(lambda: self.answers_to(asked), self._called, _FAILED)
        for number in range(len(queries)):
            keys, numbers = found[found[:, 0] == number, 1:].T
            yield keys, numbers

    def answers_to(self, query: ir.Table) -> NDArray[np.int64]:
        """Return the rows of an answer; every value in it is a whole number."""
        found = self._backend.to_pyarrow(query)
        return np.column_stack([column.cast(pyarrow.int64()).to_numpy() for column in found.columns])

    def _described(self, table: TableName) -> Relation:
        schema = self._backend.table(table.name, database=table.schema).schema()
        columns = tuple(SourceColumn.of(name, kind, str(kind)) for name, kind in schema.items())
        return Relation(self._called, columns, table.name, table.schema)

    def _is_understood(self) -> bool:
        levels = tuple(range(len(_TEXTS)))
        recoding = Recoding("", "", _TEXTS, _TEXTS, (), levels, None, drop=False)
        asked = {}
        for n, (value, kind, _) in enumerate(TELLING):
            literal = (
                ibis.literal(value, "string").cast(kind)
                if kind == "date"
                else ibis.literal(value, dt.dtype(kind))
            )
            asked[f"v{n}"] = code_of(literal, recoding, self.dialect).cast("int64")
        expected = [len(_TEXTS) if text is None else _TEXTS.index(text) for _, _, text in TELLING]
        return bool(self.answers_to(_one_row(asked)).tolist() == [expected])


def _quietly(action: Callable[[], _T], called: str, said: str) -> _T:
    """Return what the action returns, or raise our own message; a driver's errors and warnings may quote a record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return guarded(action, called, lambda _: said)


def _one_row(values: dict[str, ir.Value]) -> ir.Table:
    first, *rest = (value.name(name) for name, value in values.items())
    row: ir.Table = first.as_table()
    return row.mutate(*rest) if rest else row
