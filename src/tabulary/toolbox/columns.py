"""Columns of a table of records, and the classes of records that agree in some of them. Confidential."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tabulary.confidential.coding import text_of
from tabulary.confidential.frames import pandas_table, polars_table
from tabulary.confidential.records import Records
from tabulary.confidential.weights import refuse_weights
from tabulary.errors import InvalidArgument, InvalidColumn, UnreadableSource, listed

Key = tuple[str, ...]
"""The texts of one class, in the order of its columns."""

UNCHECKED = "Nothing was checked."

# A date in pandas has a time of day; this is its text if the time says nothing.
_MIDNIGHT = re.compile(r"( 00:00:00)?(\.0+)?$")


@dataclass(frozen=True, repr=False)
class Classes:
    """Records with equal values in some columns: the key and the size of each class, and the class of each record."""

    names: tuple[str, ...]
    keys: tuple[Key, ...]
    sizes: NDArray[np.int64]
    member: NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Columns:
    """Some columns of records, each as codes of its distinct texts.

    Values are compared by their text, like levels (`confidential.coding.text_of`): 53, 53.0 and "53" are equal,
    "01" and "1" are not. A missing value is refused, because nobody knows which values it equals.
    """

    names: tuple[str, ...]
    codes: tuple[NDArray[np.int64], ...]
    texts: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, table: object, names: Sequence[str], called: str) -> "Columns":
        """Return the named columns of a frame, an Arrow table or Records; refuse what is missing or empty."""
        if isinstance(table, Records):
            return cls._of_records(table, names, called)
        arrow = arrow_columns(table, names, called)
        if not arrow.num_rows:
            raise UnreadableSource(f"{called} contain no record. {UNCHECKED}")
        pairs = [_encoded(arrow.column(name), name, called) for name in names]
        return cls(tuple(names), tuple(codes for codes, _ in pairs), tuple(texts for _, texts in pairs))

    @classmethod
    def _of_records(cls, records: Records, names: Sequence[str], called: str) -> "Columns":
        domain = records.domain
        _refuse_missing(domain.attributes, names, called)
        refuse_weights(records.weights, use="this check", state=UNCHECKED)
        margin = domain.margin(names)
        counts = records.tally([margin]).exact(margin)
        if not counts.any():
            raise UnreadableSource(f"{called} contain no record. {UNCHECKED}")
        cells = np.nonzero(counts)
        each = [np.repeat(place, counts[cells]) for place in cells]
        codes = tuple(each[margin.index(name)] for name in names)
        return cls(tuple(names), codes, tuple(domain.levels_of(name) for name in names))

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.codes[0])

    def classes(self, names: Sequence[str]) -> Classes:
        """Return the records in classes that agree in these columns.

        One column after the other, with new class numbers each time, so that no number exceeds the number of
        records times the number of levels of one column.
        """
        places = tuple(map(self.names.index, names))
        member = np.zeros(self.records, dtype=np.int64)
        for place in places:
            mixed = member * len(self.texts[place]) + self.codes[place]
            member = np.unique(mixed, return_inverse=True)[1].astype(np.int64)
        _, first, sizes = np.unique(member, return_index=True, return_counts=True)
        spelled = [[self.texts[place][code] for code in self.codes[place][first]] for place in places]
        return Classes(tuple(names), tuple(zip(*spelled, strict=True)), sizes.astype(np.int64), member)

    def values(self, classes: Classes, name: str) -> tuple[dict[str, int], ...]:
        """Return how often each value of a column occurs in each class."""
        texts, codes = self.texts[self.names.index(name)], self.codes[self.names.index(name)]
        mixed, times = np.unique(classes.member * len(texts) + codes, return_counts=True)
        found: tuple[dict[str, int], ...] = tuple({} for _ in classes.keys)
        for at, count in zip(mixed.tolist(), times.tolist(), strict=True):
            which, code = divmod(at, len(texts))
            found[which][texts[code]] = count
        return found

    def occurring(self, name: str) -> set[str]:
        """Return the values that occur in a column."""
        texts, codes = self.texts[self.names.index(name)], self.codes[self.names.index(name)]
        return {texts[code] for code in np.unique(codes)}


def named_columns(names: object, what: str) -> tuple[str, ...]:
    """Return names as a tuple, or refuse what is not a list of distinct names.

    >>> named_columns(["age", "zip"], "quasi-identifiers")
    ('age', 'zip')
    """
    given = () if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    if not given or not all(isinstance(name, str) and name for name in given):
        raise InvalidArgument(f"{what} must be a list of column names, such as ['age', 'zip']. {UNCHECKED}")
    if len(set(given)) < len(given):
        raise InvalidArgument(f"{what} must not be named twice, as in {listed(given)}. {UNCHECKED}")
    return given


def arrow_columns(table: object, names: Sequence[str], called: str) -> pa.Table:
    """Return the named columns of a frame, and no others, as an Arrow table."""
    _refuse_missing(column_names(table, called), names, called)
    if isinstance(table, pa.Table | pa.RecordBatch):
        batches = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
        return batches.select(list(names))
    convert: Any = pandas_table if _library(table) == "pandas" else polars_table
    found: pa.Table = convert(table, names)
    return found


def column_names(table: object, called: str) -> list[object]:
    """Return the names of a frame's columns, or refuse what is none."""
    if isinstance(table, pa.Table | pa.RecordBatch):
        return list(table.schema.names)
    if _library(table) in ("pandas", "polars") and type(table).__name__ == "DataFrame":
        return list(getattr(table, "columns", ()))
    raise UnreadableSource(
        f"{called} must be a pandas or polars frame, an Arrow table or Records, not a "
        f"{type(table).__name__}. {UNCHECKED}"
    )


def refuse_strangers(first: Columns, second: Columns, names: Iterable[str], called: str) -> None:
    """Refuse a column in which two tables have no value in common.

    A comparison would find nothing there, and that would look like safety.
    """
    for name in names:
        if first.occurring(name).isdisjoint(second.occurring(name)):
            raise InvalidColumn(
                f"column {name!r} has no value that occurs in both {called}, so nobody could be found. "
                f"{UNCHECKED} If the column is coarsened or spelled differently in the two, make them "
                "equal; if the tables are about different people, there is nothing to compare."
            )


def shown(names: Iterable[str]) -> str:
    """Return columns for a sentence.

    >>> shown(["age", "zip"])
    'age × zip'
    """
    return " × ".join(names)


def typed_text(value: Any) -> str:
    """Return the text by which a value is compared.

    >>> [typed_text(v) for v in (53.0, Decimal("53.00"), Decimal("0.50"), "053", True)]
    ['53', '53', '0.5', '053', 'true']
    """
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    return text_of(value)


def texts_of(known: Mapping[str, Any]) -> dict[str, str]:
    """Return values by column in the text in which they are compared."""
    return {name: typed_text(value) for name, value in known.items()}


def decoded(column: Any, name: str, called: str) -> Any:
    """Return an Arrow column without dictionaries, or refuse one with missing values or without text."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        # Text beyond two gigabytes stays in chunks.
        raise UnreadableSource(f"column {name!r} of {called} is too large to be checked at once. {UNCHECKED}")
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    if pa.types.is_string_view(whole.type):
        # As polars writes its text, which Arrow itself can hardly compute with.
        whole = whole.cast(pa.large_string())
    kind = whole.type
    if pa.types.is_floating(kind):
        incomplete = not np.isfinite(whole.to_numpy(zero_copy_only=False)).all()
    else:
        incomplete = whole.null_count > 0 or pa.types.is_null(kind)
        if is_text(kind) and not incomplete:
            incomplete = whole.index(pa.scalar("", kind)).as_py() >= 0
    if incomplete:
        raise InvalidColumn(
            f"column {name!r} of {called} has at least one missing or empty value. {UNCHECKED} Give such "
            "values their own text, such as '*', or leave the records out."
        )
    return whole


def is_text(kind: pa.DataType) -> bool:
    """Return whether the type of a decoded column is one of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _encoded(column: Any, name: str, called: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the codes of a column and the text of each code."""
    whole = decoded(column, name, called)
    kind = whole.type
    temporal = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    readable = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (temporal or readable or is_text(kind) or pa.types.is_boolean(kind)):
        raise InvalidColumn(
            f"column {name!r} of {called} has values other than text, numbers, truth values or dates. "
            f"{UNCHECKED} Convert it to text first."
        )
    if temporal:
        whole = whole.cast(pa.string())
    distinct = whole.dictionary_encode()
    values = distinct.dictionary.to_pylist()
    spelled = [_MIDNIGHT.sub("", value) if temporal else typed_text(value) for value in values]
    # Two values may share a text, as 0.0 and -0.0 do.
    texts = tuple(dict.fromkeys(spelled))
    place = {text: code for code, text in enumerate(texts)}
    recode = np.array([place[text] for text in spelled], dtype=np.int64)
    return recode[distinct.indices.to_numpy(zero_copy_only=False)], texts


def _refuse_missing(names: Sequence[object], wanted: Iterable[str], called: str) -> None:
    given = list(names)
    missing = [name for name in wanted if name not in given]
    if missing:
        raise InvalidColumn(f"{called} have no column {listed(missing)}. {UNCHECKED} Use the same spelling.")
    doubled = [name for name in wanted if given.count(name) > 1]
    if doubled:
        raise InvalidColumn(f"{called} have more than one column {listed(doubled)}. {UNCHECKED} Rename one.")


def _library(table: object) -> str:
    return type(table).__module__.partition(".")[0]
