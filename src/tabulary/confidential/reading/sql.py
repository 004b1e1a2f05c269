"""Recoding in DuckDB's SQL: from a column of some type to small whole numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding
from tabulary.confidential.store import code_type

_INTEGERS = frozenset(
    [
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
    ]
)
_FLOATS = frozenset(("FLOAT", "DOUBLE"))
_TEXTS = ("VARCHAR", "ENUM", "UUID", "DATE", "TIMESTAMP")

# No spaces, no underscores and no "inf", which a cast alone would accept. No more digits than these, so that every
# database can check such a number before it casts it to a double.
NUMBER = r"^[+-]?([0-9]{1,100}(\.[0-9]{0,100})?|\.[0-9]{1,100})([eE][+-]?0*[0-9]{1,3})?"
"""The form of a number at the start of a text: the text is a number if nothing else follows."""

# Up to this number of texts a chain of comparisons is faster than a dictionary.
_FEW_TEXTS = 16

# The widest range of integer levels that is read by subtraction and a lookup table.
_MAX_SPAN = 1 << 16


@dataclass(frozen=True)
class Recoded:
    """An expression for a column's raw numbers, never null, and the level code of each raw number.

    Without codes the expression gives the column's own numbers as doubles; anything that is not a finite number is
    null.
    """

    expression: str
    codes: NDArray[np.generic] | None
    texts: tuple[str, ...] = ()
    """The texts of the dictionary type that the expression needs, if it needs one."""


def quoted(text: str) -> str:
    """Return a text as an SQL literal.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def is_readable(kind: str) -> bool:
    """Return whether a column of this DuckDB type has a text that can be a level.

    A time with a zone has none: its text differs between readers.

    >>> [is_readable(kind) for kind in ("DECIMAL(9,2)", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "VARCHAR[]")]
    [True, True, False, False]
    """
    if kind.endswith(("]", "WITH TIME ZONE")):
        return False
    return kind in _INTEGERS or kind in _FLOATS or kind == "BOOLEAN" or kind.startswith((*_TEXTS, "DECIMAL"))


def numbers(column: str, kind: str) -> Recoded | None:
    """Return how to read the numbers of a column of DuckDB type `kind`; None if that type has no numbers.

    Texts may be numbers, as they are in every CSV file; dates, booleans and lists are not.
    """
    listed = kind.endswith("]")
    if (
        kind in _INTEGERS
        or kind in _FLOATS
        or (kind.startswith(("DECIMAL", "VARCHAR", "ENUM")) and not listed)
    ):
        return Recoded(_number(column, kind), None)
    return None


def recoded(recoding: Recoding, column: str, kind: str, dictionary: str) -> Recoded:
    """Return how to recode a column of DuckDB type `kind`.

    Numbers are compared by value and text by its characters. The raw number is the position among the recoding's
    texts or bins, or the distance from the smallest integer level; one more means any other value.
    """
    if recoding.edges:
        return _bins(recoding, _number(column, kind))
    if kind in _INTEGERS:
        integers = {int(t): c for t, c in zip(recoding.texts, recoding.codes, strict=True) if is_integer(t)}
        if integers and max(integers) - min(integers) < _MAX_SPAN and -(2**62) < min(integers) < 2**62:
            return _span(recoding, column, integers)
    return _texts(recoding, text_of(column, kind), dictionary)


def _span(recoding: Recoding, column: str, integers: dict[int, int]) -> Recoded:
    low, high = min(integers), max(integers)
    size = high - low + 1
    codes = [integers.get(low + step, recoding.unknown) for step in range(size)]
    kind = _sql_type(size)
    # Within the range the difference fits any type; the cast keeps DuckDB from widening what it compares.
    inside = f"CAST(CAST({column} AS BIGINT) - ({low}) AS {kind})" if low else f"CAST({column} AS {kind})"
    expression = f"CASE WHEN {column} BETWEEN {low} AND {high} THEN {inside} ELSE {size}::{kind} END"
    return Recoded(expression, _lookup(recoding, codes))


def _texts(recoding: Recoding, text: str, dictionary: str) -> Recoded:
    size = len(recoding.texts)
    kind = _sql_type(size)
    codes = _lookup(recoding, recoding.codes)
    if size <= _FEW_TEXTS:
        cases = " ".join(f"WHEN {quoted(t)} THEN {i}::{kind}" for i, t in enumerate(recoding.texts))
        return Recoded(f"CASE {text} {cases} ELSE {size}::{kind} END", codes)
    place = f"enum_code(TRY_CAST({text} AS {dictionary}))"
    return Recoded(f"CAST(coalesce({place}, {size}) AS {kind})", codes, recoding.texts)


def _bins(recoding: Recoding, number: str) -> Recoded:
    size = len(recoding.edges)
    kind = _sql_type(size)
    # From the last edge down, so that the first that is reached is the bin; a null reaches none.
    cases = " ".join(
        f"WHEN {number} >= {edge!r}::DOUBLE THEN {place}::{kind}"
        for place, edge in reversed(list(enumerate(recoding.edges)))
    )
    return Recoded(f"CASE {cases} ELSE {size}::{kind} END", _lookup(recoding, recoding.codes))


def text_of(column: str, kind: str) -> str:
    """Return the column as the text of a level: 1 for 1.0 and for 1.00, null for a missing value."""
    if kind == "VARCHAR":
        return column
    if kind in _FLOATS:
        whole = f"{column} = trunc({column}) AND abs({column}) <= {2**53}"
        return (
            f"CASE WHEN NOT isfinite({column}) THEN NULL WHEN {whole} "
            f"THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) ELSE CAST({column} AS VARCHAR) END"
        )
    if kind.startswith("DECIMAL"):
        # DuckDB shows no zero before the point where the type has no place for one.
        text = rf"regexp_replace(CAST({column} AS VARCHAR), '^(-?)[.]', '\10.')"
        return f"CASE WHEN contains({text}, '.') THEN rtrim(rtrim({text}, '0'), '.') ELSE {text} END"
    return f"CAST({column} AS VARCHAR)"


def _number(column: str, kind: str) -> str:
    """Return the column as a finite DOUBLE or null."""
    number = f"CAST({column} AS DOUBLE)"
    if kind == "FLOAT":
        # By way of its text: 0.7 in 32 bits is a little less than 0.7, and would fall below an edge of 0.7.
        number = f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)"
    elif kind not in _INTEGERS and kind != "DOUBLE" and not kind.startswith("DECIMAL"):
        text = f"CAST({column} AS VARCHAR)"
        pattern = quoted(f"{NUMBER}$")
        number = f"CASE WHEN regexp_matches({text}, {pattern}) THEN TRY_CAST({text} AS DOUBLE) END"
    return f"(CASE WHEN isfinite({number}) THEN {number} END)"


def _lookup(recoding: Recoding, codes: Sequence[int]) -> NDArray[np.generic]:
    return np.array([*codes, recoding.unknown], dtype=code_type(len(recoding.levels)))


def _sql_type(largest: int) -> str:
    return {1: "UTINYINT", 2: "USMALLINT", 4: "UINTEGER"}[code_type(largest).itemsize]


def is_integer(text: str) -> bool:
    """Return whether a text is the text of a whole number, with no more digits than any type has."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 39 and str(int(text)) == text
