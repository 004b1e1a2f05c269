"""Records with keys: the people in a cell decide what is added to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tabulary.cellkey.keys import RecordKeys, coinciding_pairs, pairs_of, refuse_repeated
from tabulary.cellkey.reading import DIGIT_BITS, Digits, encoded, encoded_table
from tabulary.confidential.coding import Coding
from tabulary.confidential.frames import pandas_table, polars_table
from tabulary.confidential.reading import files
from tabulary.confidential.reading.duckdb import DuckDBReader, check_columns
from tabulary.confidential.records import HeldRecords
from tabulary.confidential.store import Store
from tabulary.core.domain import MAX_CELLS, Domain, Margin
from tabulary.errors import InvalidArgument, InvalidColumn, UnreadableSource

Codings = Mapping[str, Coding]


class KeyedRecords(HeldRecords):
    """Confidential records, one per person, each with the attributes of a domain and a record key.

    Missing, negative, fractional or too large keys are refused, and so are keys that repeat more often than chance
    allows. A missing value of an attribute is an error unless its `Coding` gives it a level; then the cells of that
    level have the key sum of their own participants like any other cell, never a constant. The printed form shows
    the domain. The records cannot be copied or pickled.

    >>> people = pa.table({"sex": ["F", "M", "F"], "record_key": [17, 250, 3]})
    >>> KeyedRecords.from_frame(people, Domain({"sex": ["F", "M"]}), keys=RecordKeys(modulus=256))
    <KeyedRecords of sex 2, 256 keys>
    """

    def __init__(self, store: Store, domain: Domain, digits: Digits) -> None:
        super().__init__(store)
        self._store = store
        self._domain = domain
        self._digits = digits
        try:
            self._check_keys()
        except BaseException:
            self.close()
            raise

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        domain: Domain,
        codings: Codings | None = None,
        *,
        keys: RecordKeys,
        delimiter: str = ",",
    ) -> Self:
        """Return the records of a CSV or Parquet file, of a folder of them, or of a glob."""
        if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
            raise InvalidArgument(f"a delimiter must be one character such as ',' or ';', not {delimiter!r}.")
        kind, paths = files.find_files(path)
        digits = _digits(domain, codings, keys)
        return cls(encoded(DuckDBReader.of_files(kind, paths, delimiter=delimiter), digits), domain, digits)

    @classmethod
    def from_frame(
        cls, frame: Any, domain: Domain, codings: Codings | None = None, *, keys: RecordKeys
    ) -> Self:
        """Return the records of a pandas or polars frame, or of an Arrow table."""
        digits = _digits(domain, codings, keys)
        table, called = _arrow_table(frame, digits.columns())
        return cls(encoded_table(table, called, digits), domain, digits)

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        return self._domain

    @property
    def keys(self) -> RecordKeys:
        """The form of the record keys."""
        return self._digits.keys

    def sums(
        self, margin: Margin, *, max_cells: int = MAX_CELLS
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many participants each cell has, and the sum of their keys modulo `keys.modulus`. Confidential.

        One pass over the records; both results are exact for any number of records and keys.
        """
        # Loading the compiler takes longer than reading most sources.
        from tabulary.cellkey.kernels import add_index, add_records

        self._domain.check_cells(margin, max_cells)
        shape = self._domain.shape_of(margin)
        strides = np.append(np.cumprod(shape[:0:-1])[::-1], 1).tolist() if shape else []
        cells = np.zeros((self._domain.cells(margin), 2), dtype=np.uint64)
        modulus = np.uint64(self.keys.modulus)
        layout = self._store.layout
        for rows, matrices in self._store.read():
            index = np.zeros(rows, dtype=np.int64)
            for attribute, stride in zip(margin, strides, strict=True):
                add_index(index, layout.column(matrices, self._domain.position(attribute))[:rows], stride)
            add_records(index, self._keys_of(rows, matrices), modulus, cells)
        counts, sums = cells.astype(np.int64).T
        return counts.reshape(shape), sums.reshape(shape)

    def __repr__(self) -> str:
        shown = " × ".join(f"{a} {len(self._domain.levels_of(a))}" for a in self._domain.attributes)
        return f"<KeyedRecords of {shown}, {self.keys.modulus} keys>"

    def _digit(self, rows: int, matrices: Any, place: int) -> NDArray[Any]:
        position = self._digits.domain.position(self._digits.names[place])
        return self._store.layout.column(matrices, position)[:rows]

    def _keys_of(self, rows: int, matrices: Any) -> NDArray[np.uint64]:
        from tabulary.cellkey.kernels import add_digit

        keys = np.zeros(rows, dtype=np.uint64)
        for place in range(len(self._digits.names)):
            add_digit(keys, self._digit(rows, matrices, place), place * DIGIT_BITS)
        return keys

    def _check_keys(self) -> None:
        from tabulary.cellkey.kernels import count_codes

        times = np.zeros(self._digits.no_key + 1, dtype=np.int64)
        for rows, matrices in self._store.read():
            count_codes(times, self._digit(rows, matrices, 0))
        if times[self._digits.no_key]:
            raise InvalidColumn(_no_key(self.keys))
        if len(self._digits.names) == 1:
            pairs = pairs_of(times)
        else:
            found = [self._keys_of(rows, matrices) for rows, matrices in self._store.read()]
            pairs = coinciding_pairs(np.concatenate(found).astype(np.int64)) if found else 0
        refuse_repeated(self.keys.column, pairs, self._store.rows, self.keys.modulus)


def _digits(domain: Domain, codings: Codings | None, keys: RecordKeys) -> Digits:
    if not isinstance(keys, RecordKeys):
        raise InvalidArgument(f"`keys` must be a RecordKeys(...), not a {type(keys).__name__}.")
    strangers = set(codings or {}) - set(domain.attributes)
    if strangers:
        raise InvalidArgument(
            f"there is a coding for {sorted(strangers)}, but the domain has no such attribute."
        )
    return Digits(keys, domain, dict(codings or {}))


def _no_key(keys: RecordKeys) -> str:
    wanted = (
        f"whole numbers from 0 to {keys.modulus - 1}"
        if keys.digits is None
        else f"decimals from 0 up to 1 with at most {keys.digits} digits after the point"
    )
    return (
        f"column {keys.column!r} holds a record key that is missing, or not one of the declared keys, {wanted}, in at "
        "least one record. Nothing was published. Give every record a key."
    )


def _arrow_table(frame: Any, columns: list[str]) -> tuple[pa.Table, str]:
    """Return the wanted columns of a frame as an Arrow table, and the name of the frame in an error."""
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return frame, "the Arrow table"
    package = type(frame).__module__.partition(".")[0]
    if type(frame).__name__ != "DataFrame" or package not in ("pandas", "polars"):
        raise UnreadableSource(
            f"a frame must be a pandas or polars frame, or an Arrow table, not a {type(frame).__name__}. "
            "Nothing was read."
        )
    called = f"the {package} frame"
    check_columns(list(frame.columns), columns, called)
    table = pandas_table(frame, columns) if package == "pandas" else polars_table(frame, columns)
    return table, called
