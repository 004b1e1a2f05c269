"""Recoding as Ibis expressions: one meaning in every SQL dialect, and on Spark.

The meaning is the same as in `reading.sql`, which reads files: text is compared by its characters, everything else
by value. No expression can fail on any record, because a database's own error may quote it.
"""

import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from tabulary.confidential.coding import Recoding
from tabulary.confidential.engines.recoding.dialects import as_declared, code_of_text
from tabulary.confidential.engines.recoding.level_values import (
    date_of,
    decimal_of,
    double_of,
    integer_of,
    least_single,
    moment_of,
    single_of,
)
from tabulary.confidential.reading.sql import NUMBER

_LARGEST = sys.float_info.max

# Values closer to infinity than to the largest double, or closer to zero than to the smallest: PostgreSQL turns
# neither into a double.
_TOO_LARGE = Decimal(2**1024 - 2**970)
_TOO_SMALL = Decimal("2.4704e-324")

# Up to this number a chain of comparisons is as fast as a search.
_FEW = 8

# Decimals with this many digits fit in 64 bits, and whole numbers below this in 32, with any code added.
_DIGITS = 18
_SMALL = 2**30


def is_readable(kind: dt.DataType) -> bool:
    """Return whether a column of this type has a text that can be a level.

    A timestamp with a time zone has none: every reader sees a different text.

    >>> kinds = ("int8", "float32", "decimal(9, 2)", "string", "date", "timestamp", "timestamp('UTC')", "array<int8>")
    >>> [is_readable(dt.dtype(kind)) for kind in kinds]
    [True, True, True, True, True, True, False, False]
    """
    if isinstance(kind, dt.Timestamp):
        return kind.timezone is None
    read = (dt.Integer, dt.Float32, dt.Float64, dt.Decimal, dt.Boolean, dt.String, dt.UUID, dt.Date)
    return isinstance(kind, read)


def code_of(column: ir.Value, recoding: Recoding, dialect: str) -> ir.Value:
    """Return the code of each value's level, or `recoding.unknown`: small integers, never null.

    `dialect` is Ibis's name of the database, "pyspark" for Spark's SQL. The time hardly depends on the number of
    levels or bins, except for numbers with decimals, which a tree of comparisons finds.

    >>> recoding = Recoding("sex", "SEX", ("F", "M"), ("1", "2"), (), (0, 1), None, drop=False)
    >>> people = ibis.table({"SEX": "int64"}, name="people")
    >>> print(ibis.to_sql(code_of(people.SEX, recoding, "duckdb").name("sex"), dialect="duckdb"))
    SELECT
      CASE WHEN "t0"."SEX" BETWEEN 1 AND 2 THEN CAST("t0"."SEX" AS INT) + -1 ELSE 2 END AS "sex"
    FROM "people" AS "t0"
    """
    column = as_declared(column, dialect)
    kind = column.type()
    if recoding.edges:
        return _bin_of(column, recoding, dialect)
    if isinstance(kind, dt.Decimal) and kind.scale == 0 and kind.precision and kind.precision <= _DIGITS:
        # Where a database has no other whole numbers, codes are often stored in this way.
        column, kind = column.cast("int64"), dt.int64
    if isinstance(kind, dt.Integer):
        return _integer(column, recoding, dialect)
    if isinstance(kind, dt.String | dt.UUID):
        return _text(column, recoding, dialect)
    return _value(column, recoding)


def number_of(column: ir.Value, dialect: str) -> ir.Value | None:
    """Return each value as a finite double, or null; None if the type contains no numbers.

    Texts may be numbers, as in `reading.sql.numbers`. A number of 32 bits is read as it is shown. Spark shows it as
    Java does: before version 19 a very large or very small number has one digit too many, but is in the correct
    bin.
    """
    # Of its own type: where a day is a text, it still is no number.
    holds_numbers = isinstance(column.type(), dt.Integer | dt.Floating | dt.Decimal | dt.String)
    found = _number(as_declared(column, dialect), dialect) if holds_numbers else None
    if found is None:
        return None
    conditions, number = found
    return _if_all(conditions, number, ibis.null("float64"))


def _number(column: ir.Value, dialect: str) -> tuple[list[ir.Value], ir.Value] | None:
    """Return when a value is a finite number, and the number; a condition is tested only if the earlier ones hold."""
    kind = column.type()
    double = column.cast("float64")
    if isinstance(kind, dt.Integer):
        return [], double
    if isinstance(kind, dt.Float64):
        return [_is_finite(column)], column
    if isinstance(kind, dt.Float32):
        return [_is_finite(double)], column.cast("string").cast("float64")
    if isinstance(kind, dt.Decimal):
        if kind.precision is not None:
            return [], double
        size = column.abs()
        nearest = ibis.cases((size < _decimal(_TOO_SMALL, kind), _double(0.0)), else_=double)
        return [size < _decimal(_TOO_LARGE, kind)], nearest
    if isinstance(kind, dt.String):
        # Nothing is left of a number without its number. ($ is the end of a text in some dialects only.)
        looks_like_one = (column.re_replace(NUMBER, "") == "") & (column != "")
        inner = column.cast(dt.Decimal(None, None)) if dialect == "postgres" else double
        found = _number(inner, dialect)
        return found and ([looks_like_one, *found[0]], found[1])
    return None


def _bin_of(column: ir.Value, recoding: Recoding, dialect: str) -> ir.Value:
    found = _number(column, dialect)
    if found is None:
        return _code(recoding.unknown)
    conditions, number = found
    edges: Sequence[float] = recoding.edges
    if isinstance(column.type(), dt.Float32):
        number, edges = column.cast("float64"), [least_single(edge) for edge in edges]
    # Where an edge is infinite only an infinity reaches it, which is no number.
    known = [
        (_double(edge), code) for edge, code in zip(edges, recoding.codes, strict=True) if edge <= _LARGEST
    ]
    if not known:
        return _code(recoding.unknown)
    return _if_all(
        [*conditions, number >= known[0][0]], _last_reached(number, known), _code(recoding.unknown)
    )


def _if_all(conditions: Sequence[ir.Value], value: ir.Value, otherwise: ir.Value) -> ir.Value:
    # One within the other: the two sides of an AND may be looked at in any order.
    for condition in reversed(conditions):
        value = ibis.cases((condition, value), else_=otherwise)
    return value


def _last_reached(number: ir.Value, edges: Sequence[tuple[ir.Value, int]]) -> ir.Value:
    middle = len(edges) // 2
    if not middle:
        return _code(edges[0][1])
    lower, upper = _last_reached(number, edges[:middle]), _last_reached(number, edges[middle:])
    return ibis.cases((number >= edges[middle][0], upper), else_=lower)


def _integer(column: ir.Value, recoding: Recoding, dialect: str) -> ir.Value:
    bounds = column.type().bounds
    pairs = _pairs(recoding, integer_of)
    runs = _runs([(value, code) for value, code in pairs if bounds.lower <= value <= bounds.upper])
    if len(runs) > _FEW:
        return _text(column, recoding, dialect)
    branches = []
    for low, high, code in runs:
        if low == high:
            branches.append((column == _whole(low), _code(code)))
        else:
            branches.append((column.between(_whole(low), _whole(high)), column.cast("int32") + (code - low)))
    return _first(branches, recoding.unknown)


def _runs(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return the first value, the last one and the first one's code of each run of values and codes without a gap.

    >>> _runs([(1, 0), (2, 1), (3, 2), (9, 3)])
    [(1, 3, 0), (9, 9, 3)]
    """
    runs: list[tuple[int, int, int]] = []
    for value, code in pairs:
        if runs and abs(value) < _SMALL:
            low, high, first = runs[-1]
            if (value, code) == (high + 1, first + value - low) and abs(low) < _SMALL:
                runs[-1] = (low, value, first)
                continue
        runs.append((value, value, code))
    return runs


def _text(column: ir.Value, recoding: Recoding, dialect: str) -> ir.Value:
    text = column if isinstance(column.type(), dt.String) else column.cast("string")
    return code_of_text(
        text, dict(zip(recoding.texts, recoding.codes, strict=True)), recoding.unknown, dialect
    )


def _value(column: ir.Value, recoding: Recoding) -> ir.Value:
    kind = column.type()
    value_of: Callable[[str], Any] = {"true": True, "false": False}.get
    literal: Callable[[Any], ir.Value] = ibis.literal
    if isinstance(kind, dt.Float64):
        value_of, literal = double_of, _double
    elif isinstance(kind, dt.Float32):
        column = column.cast("float64")
        value_of, literal = single_of, _double
    elif isinstance(kind, dt.Decimal):
        value_of, literal = lambda t: decimal_of(t, kind.precision, kind.scale), lambda v: _decimal(v, kind)
    elif isinstance(kind, dt.Date):
        value_of, literal = date_of, lambda v: ibis.literal(v.isoformat()).cast("date")
    elif isinstance(kind, dt.Timestamp):
        value_of, literal = moment_of, lambda v: ibis.literal(v.isoformat(" ")).cast("timestamp")
    pairs = [(literal(value), code) for value, code in _pairs(recoding, value_of)]
    return _equal(column, pairs, recoding.unknown)


def _pairs(recoding: Recoding, value_of: Callable[[str], Any]) -> list[tuple[Any, int]]:
    """Return the values of the texts that have one in this type, in order, and the code of each."""
    found = ((value_of(text), code) for text, code in zip(recoding.texts, recoding.codes, strict=True))
    return sorted(pair for pair in found if pair[0] is not None)


def _equal(column: ir.Value, pairs: Sequence[tuple[ir.Value, int]], unknown: int) -> ir.Value:
    if len(pairs) <= _FEW:
        return _first([(column == value, _code(code)) for value, code in pairs], unknown)
    middle = len(pairs) // 2
    lower, upper = _equal(column, pairs[:middle], unknown), _equal(column, pairs[middle:], unknown)
    return ibis.cases((column < pairs[middle][0], lower), else_=upper)


def _first(branches: Sequence[tuple[ir.Value, ir.Value]], unknown: int) -> ir.Value:
    return ibis.cases(*branches, else_=_code(unknown)) if branches else _code(unknown)


def _is_finite(number: ir.Value) -> ir.Value:
    # No database takes NaN for less than a number.
    return number.between(_double(-_LARGEST), _double(_LARGEST))


def _code(code: int) -> ir.Value:
    return ibis.literal(code, "int32")


def _whole(value: int) -> ir.Value:
    return ibis.literal(value, "uint64" if value >= 2**63 else "int64")


def _double(value: float) -> ir.Value:
    # As a text: most dialects take 0.7 for a decimal.
    return ibis.literal(repr(value)).cast("float64")


def _decimal(value: Decimal, kind: dt.Decimal) -> ir.Value:
    # DuckDB's largest integers are decimals to Ibis, and to be compared as integers.
    if kind.scale == 0 and abs(value) < 2**63:
        return _whole(int(value))
    return ibis.literal(f"{value:f}").cast(kind)
