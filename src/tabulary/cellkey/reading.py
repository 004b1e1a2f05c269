"""From a source to encoded records with their keys: each digit of the key is read like one more attribute.

So a key of any size is in the same store as the levels, with the same guarantees, and a record that a coding drops
takes its key along. A column that is already plain in memory (whole numbers, text, categories, nothing missing,
nothing unknown) is encoded directly; the reader of files recodes everything else.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tabulary.cellkey.keys import RecordKeys
from tabulary.confidential.coding import Coding, Recoding, resolve_all
from tabulary.confidential.encoding import encode
from tabulary.confidential.reading import Batch, Reader
from tabulary.confidential.reading.duckdb import DuckDBReader, SourcePart, check_columns
from tabulary.confidential.store import MEMORY_BYTES, Codes, Store, code_type
from tabulary.core.domain import Domain
from tabulary.core.long_form import value_name

DIGIT_BITS = 12
"""A digit of a key is a number below 2**12, so that the usual 256 or 4,096 keys have one."""

NO_KEY = "none"
"""The level of the lowest digit that means "not a key"."""

_BATCH_ROWS = 1 << 17
_MOST_SPAN = 1 << 16

_SIZES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_WHOLE = ", ".join(f"'{sign}{size}'" for sign in ("", "U") for size in _SIZES)


class Digits:
    """The digits of a key as attributes, in addition to those of a domain."""

    def __init__(self, keys: RecordKeys, domain: Domain, codings: dict[str, Coding]) -> None:
        self.keys = keys
        base = min(keys.modulus, 1 << DIGIT_BITS)
        count = -(-(keys.modulus - 1).bit_length() // DIGIT_BITS)
        self.names = tuple(value_name(f"record key {place}", domain.attributes) for place in range(count))
        levels = {a: domain.levels_of(a) for a in domain.attributes}
        for place, name in enumerate(self.names):
            levels[name] = (*map(str, range(base)), *([NO_KEY] if place == 0 else []))
        self.domain = Domain(levels, [dict(zero) for zero in domain.structural_zeros])
        # A value that is not a key has no digits; the lowest digit says so.
        unknown = [f"level:{NO_KEY}"] + ["level:0"] * (count - 1)
        coded = {name: Coding(unknown=said) for name, said in zip(self.names, unknown, strict=True)}
        self.recodings = resolve_all(self.domain, codings | coded)

    @property
    def no_key(self) -> int:
        """The code of the lowest digit where there is no key."""
        return len(self.domain.levels_of(self.names[0])) - 1

    def columns(self) -> list[str]:
        """Return the columns that the source must have, each once."""
        named = [recoding.column for recoding in self.recodings if recoding.attribute not in self.names]
        return list(dict.fromkeys([*named, self.keys.column]))


def encoded(reader: DuckDBReader, digits: Digits, *, memory_bytes: int = MEMORY_BYTES) -> Store:
    """Return the records of a source of any kind, encoded with the digits of their keys."""
    return encode(_KeyedReader(reader, digits), digits.domain, digits.recodings, memory_bytes=memory_bytes)


def encoded_table(table: pa.Table, called: str, digits: Digits, *, memory_bytes: int = MEMORY_BYTES) -> Store:
    """Return the records of an Arrow table, encoded with the digits of their keys."""
    check_columns(table.column_names, digits.columns(), called)
    columns = _plain_columns(table, digits)
    if columns is None:
        return encoded(DuckDBReader.of_arrow(table, called), digits, memory_bytes=memory_bytes)
    reader: Reader = _PlainReader(columns)
    return encode(reader, digits.domain, digits.recodings, memory_bytes=memory_bytes)


class _KeyedReader(DuckDBReader):
    """A source with one more column per digit of the key."""

    def __init__(self, source: DuckDBReader, digits: Digits) -> None:
        super().__init__([partial(_with_digits, part, digits) for part in source.parts], source.allowed)


def _with_digits(described: Callable[[], SourcePart], digits: Digits) -> SourcePart:
    part = described()
    check_columns(part.names, digits.columns(), part.called)
    columns = ", ".join(f"c{i}" for i in range(len(part.names)))
    key = _key(f"c{part.names.index(digits.keys.column)}", digits.keys)
    shown = ", ".join(
        f"(whole_key >> {place * DIGIT_BITS}) & {(1 << DIGIT_BITS) - 1}" for place in range(len(digits.names))
    )
    inner = f"SELECT *, {key} AS any_key FROM {part.relation} AS source({columns})"
    whole = (
        f"SELECT *, CASE WHEN any_key BETWEEN 0 AND {digits.keys.modulus - 1} THEN any_key END AS whole_key"
    )
    relation = f"(SELECT {columns}, {shown} FROM ({whole} FROM ({inner})))"
    return SourcePart(relation, (*part.names, *digits.names), part.called, part.data)


def _key(column: str, keys: RecordKeys) -> str:
    """Return the SQL of a key as a whole number, or null; nothing is rounded into a key."""
    text = f"CAST({column} AS VARCHAR)"
    if keys.digits is not None:
        # Read by its shortest text, so that 0.3 is three tenths; a number with more digits than declared is not a
        # key.
        short, full = (
            f"TRY_CAST({text} AS DECIMAL(18, {keys.digits}))",
            f"TRY_CAST({text} AS DECIMAL(38, 30))",
        )
        return (
            f"CASE WHEN {short} = {full} AND {full} >= 0 AND {full} < 1 "
            f"THEN CAST(replace(CAST({short} AS VARCHAR), '.', '') AS BIGINT) END"
        )
    number = f"TRY_CAST({column} AS DOUBLE)"
    return (
        f"CASE WHEN typeof({column}) IN ({_WHOLE}) THEN TRY_CAST({column} AS BIGINT) "
        f"WHEN typeof({column}) IN ('FLOAT', 'DOUBLE') THEN "
        f"CASE WHEN {number} = trunc({number}) AND abs({number}) <= {2**53} THEN TRY_CAST({number} AS BIGINT) END "
        f"WHEN regexp_full_match({text}, '[0-9]{{1,19}}') THEN TRY_CAST({text} AS BIGINT) END"
    )


class _PlainReader:
    """Codes that already exist, given out in batches."""

    def __init__(self, columns: Sequence[Codes]) -> None:
        self._columns = columns

    def batches(self, recodings: Sequence[Recoding], weights: str | None = None) -> Iterator[Batch]:
        """Yield the codes; see `Reader.batches`."""
        for start in range(0, len(self._columns[0]), _BATCH_ROWS):
            yield tuple(column[start : start + _BATCH_ROWS] for column in self._columns)


def _plain_columns(table: pa.Table, digits: Digits) -> list[Codes] | None:
    """Return the codes of every recoding if all of their columns are plain, or None."""
    keys = table.column(digits.keys.column)
    if digits.keys.digits is not None or not pa.types.is_integer(keys.type):
        return None
    columns: list[Codes] = []
    for recoding in digits.recodings:
        column = keys if recoding.attribute in digits.names else table.column(recoding.column)
        codes = np.empty(len(column), dtype=code_type(len(recoding.levels)))
        if recoding.edges or column.null_count or not _fill_plain(column, recoding, digits, codes):
            return None
        columns.append(codes)
    return columns


def _fill_plain(column: pa.ChunkedArray, recoding: Recoding, digits: Digits, codes: Codes) -> bool:
    # Loading the compiler takes longer than reading most sources.
    from tabulary.cellkey.kernels import look_up_codes, split_digit

    kind = column.type
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if recoding.attribute in digits.names:
        place = digits.names.index(recoding.attribute) * DIGIT_BITS
        return split_digit(array.to_numpy(), digits.keys.modulus, place, DIGIT_BITS, codes)
    if pa.types.is_integer(kind):
        low, span = _span(recoding)
        return look_up_codes(array.to_numpy(), low, span, codes)
    if pa.types.is_dictionary(kind) and _is_text(kind.value_type):
        levels = _codes_by_place(recoding)[_places(array.dictionary, recoding)]
        return look_up_codes(array.indices.to_numpy(), 0, levels, codes)
    return _is_text(kind) and look_up_codes(_places(array, recoding), 0, _codes_by_place(recoding), codes)


def _span(recoding: Recoding) -> tuple[int, Codes]:
    """Return the smallest whole number that is a level, and the codes from there on; none if they are far apart."""
    known = {int(t): c for t, c in zip(recoding.texts, recoding.codes, strict=True) if _is_integer(t)}
    kind = code_type(len(recoding.levels))
    if not known or max(known) - min(known) >= _MOST_SPAN:
        return 0, np.empty(0, dtype=kind)
    low, high = min(known), max(known)
    return low, np.array([known.get(value, recoding.unknown) for value in range(low, high + 1)], dtype=kind)


def _places(texts: Any, recoding: Recoding) -> NDArray[np.int32]:
    """Return the position of each text among those of the recoding, the last position plus one for any other text."""
    places = pc.index_in(texts, pa.array(recoding.texts, texts.type))
    found: NDArray[np.int32] = pc.fill_null(places, len(recoding.texts)).to_numpy()
    return found


def _codes_by_place(recoding: Recoding) -> Codes:
    """Return the code of each of the recoding's texts, and last the code of any other text."""
    return np.array([*recoding.codes, recoding.unknown], dtype=code_type(len(recoding.levels)))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text
