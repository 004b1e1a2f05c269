"""Differences between databases: values outside a column's type, and how to find a text in a list."""

import json
from collections.abc import Mapping
from inspect import Parameter, Signature
from typing import Any
from zlib import crc32

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import sqlglot.expressions as sge

_BUCKET = dt.Map(dt.string, dt.int32)
_TABLE = dt.Array(_BUCKET)


def _function(name: str, *kinds: dt.DataType, returns: dt.DataType) -> Any:
    """Return a function of the database itself, which Ibis calls by name."""

    def called(*values: Any) -> None: ...

    names = [Parameter(f"value_{place}", Parameter.POSITIONAL_ONLY) for place in range(len(kinds))]
    called.__signature__ = Signature(names)  # type: ignore[attr-defined]
    return ibis.udf.scalar.builtin(called, name=name, signature=(kinds, returns))


_enum_code = _function("enum_code", dt.unknown, returns=dt.int64)
_field = _function("jsonb_object_field_text", dt.JSON(binary=True), dt.string, returns=dt.string)
_from_json = _function("from_json", dt.string, dt.string, returns=_TABLE)
_crc32 = _function("crc32", dt.string, returns=dt.int64)
_bucket_at = _function("element_at", _TABLE, dt.int32, returns=_BUCKET)
_value_at = _function("try_element_at", _BUCKET, dt.string, returns=dt.int32)
# To Spark's own kind of text, which is compared byte by byte, from any other.
_string = _function("string", dt.string, returns=dt.string)


def as_declared(column: ir.Value, dialect: str) -> ir.Value:
    """Return the column's values of its own type, null for others; texts are equal only if their characters are.

    SQLite stores any value in any column, such as the text NA among numbers; its dates are texts, and it has no
    decimals. PostgreSQL calls some types text that it compares in other ways (an enumeration, citext) or fills with
    blanks: the blanks at the end of a char(n) are not part of the value. Spark compares timestamps by a time zone,
    but shows a timestamp and a day as levels do.
    """
    kind = column.type()
    if dialect == "sqlite":
        stored = column.typeof()
        if isinstance(kind, dt.Integer | dt.Boolean):
            return ibis.cases((stored == "integer", column))
        if isinstance(kind, dt.Numeric):
            return ibis.cases((stored.isin(("integer", "real")), column.cast("float64")))
        # Joined with nothing, for the way a column is compared goes with the column.
        return ibis.cases((stored == "text", column.cast("string") + ""))
    if dialect == "postgres" and isinstance(kind, dt.String):
        return column + ""
    if dialect == "postgres" and isinstance(kind, dt.Decimal):
        # Money becomes a number so.
        return column.cast(dt.Decimal(None, None))
    if dialect == "pyspark" and isinstance(kind, dt.Date | dt.Timestamp):
        return column.cast("string")
    if dialect == "pyspark" and isinstance(kind, dt.String):
        return _string(column)
    if dialect == "duckdb" and isinstance(kind, dt.Timestamp) and kind.scale == 9:
        # Ibis has no moment of a billionth of a second.
        return column.cast("string")
    if dialect == "duckdb" and isinstance(kind, dt.Floating):
        # A Parquet file's statistics leave NaN out, and DuckDB takes a comparison that they decide as decided for all.
        return ibis.cases((~(column.isnan() | column.isinf()), column))
    return column


def code_of_text(text: ir.Value, codes: Mapping[str, int], unknown: int, dialect: str) -> ir.Value:
    """Return the code of each text, or `unknown`; thousands of texts take the same time as ten.

    A chain of comparisons takes time in proportion to its length, and Spark cannot compile a few thousand of them.
    DuckDB, PostgreSQL and Spark look a text up in one literal, byte by byte: an enumeration, a JSON object and a
    hash table.
    """
    if dialect in ("postgres", "sqlite"):
        # This character ends a query; PostgreSQL has no text with it.
        codes = {key: code for key, code in codes.items() if "\0" not in key}
    if not codes:
        return ibis.literal(unknown, "int32")
    if dialect == "duckdb":
        found = _in_enumeration(text, codes)
    elif dialect == "postgres":
        found = _field(ibis.literal(json.dumps(codes)).cast(dt.JSON(binary=True)), text).cast("int32")
    elif dialect == "pyspark":
        found = _in_hash_table(text, codes)
    else:
        return text.cases(*codes.items(), else_=unknown)
    return found.fill_null(unknown)


def _in_enumeration(text: ir.Value, codes: Mapping[str, int]) -> ir.Value:
    keys = [sge.Literal.string(key) for key in codes]
    kind = dt.Unknown(raw_type=sge.DataType(this=sge.DataType.Type.ENUM, expressions=keys))
    place = _enum_code(text.try_cast(kind))
    if list(codes.values()) == list(range(len(codes))):
        return place
    return ibis.literal(list(codes.values()), "array<int32>")[place]


def _in_hash_table(text: ir.Value, codes: Mapping[str, int]) -> ir.Value:
    # As many buckets as texts, so that most hold one or two. Spark builds the table before it reads a record.
    table: list[dict[str, int]] = [{} for _ in codes]
    for key, code in codes.items():
        table[crc32(key.encode()) % len(table)][key] = code
    # In a query Spark takes ${name} for a variable, even within a text; JSON can do without the sign.
    literal = json.dumps(table).replace("$", r"\u0024")
    place = (_crc32(text) % len(table) + 1).cast("int32")
    return _value_at(_bucket_at(_from_json(literal, "array<map<string,int>>"), place), text)
