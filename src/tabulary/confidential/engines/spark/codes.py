"""A Spark frame's records as codes packed into words, by column position and in Spark's own compiled code."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import pyspark.sql.types as st
from ibis.backends.pyspark.datatypes import PySparkType
from ibis.backends.sql.compilers import PySparkCompiler
from sqlglot.expressions import Table

from tabulary.confidential.coding import Recoding
from tabulary.confidential.engines.recoding.codes import code_of, is_readable, number_of
from tabulary.confidential.engines.spark.packing import Packing
from tabulary.confidential.reading.duckdb import check_columns
from tabulary.confidential.weights import Weights
from tabulary.errors import InvalidColumn

_CALLED = "the Spark frame"

# Asking for the name loads the settings of the dialect; without them nothing can be compiled.
_DIALECT = ibis.pyspark.name

# Ibis knows a moment, which Spark shows in whatever zone a session has, as one without a zone.
_TYPES: dict[type[st.DataType], dt.DataType] = {
    st.TimestampType: dt.Timestamp(timezone="UTC"),
    st.CharType: dt.string,
    st.VarcharType: dt.string,
}


class Packed:
    """The words of each record (`Packing`), and last its weight as a double or null, in Spark's SQL.

    No expression can fail on any record: an executor would write its value into a log.
    """

    def __init__(self, schema: st.StructType, recodings: Sequence[Recoding], weights: Weights | None) -> None:
        names = [field.name for field in schema.fields]
        wanted = [recoding.column for recoding in recodings] + ([weights.column] if weights else [])
        check_columns(names, wanted, _CALLED)
        # Columns are used by position: Spark treats "Sex" and "sex" as one name, and a dot as a field.
        self._places = [f"c{place}" for place in range(len(names))]
        places = {column: self._places[names.index(column)] for column in wanted}
        kinds = {places[column]: _type_of(schema.fields[names.index(column)].dataType) for column in wanted}
        source = ibis.table(kinds, name="records")
        packing = Packing.of([recoding.unknown for recoding in recodings])
        words: list[list[Any]] = [[] for _ in range(packing.count)]
        for recoding, word, shift in zip(recodings, packing.words, packing.shifts, strict=True):
            if not is_readable(kinds[places[recoding.column]]):
                kind = schema.fields[names.index(recoding.column)].dataType
                raise InvalidColumn(
                    f"column {recoding.column!r} of {_CALLED} has the type {kind.typeName()}, whose values "
                    "have no text that can be a level. Nothing was counted."
                )
            code = code_of(source[places[recoding.column]], recoding, _DIALECT).cast("int64")
            words[word].append(code << shift if shift else code)
        columns = {f"w{word}": reduce(or_, codes) for word, codes in enumerate(words)}
        if weights is not None:
            columns["weight"] = _weight(source[places[weights.column]], weights)
        compiler = PySparkCompiler()
        query = compiler.to_sqlglot(source.select(**columns))
        self._called = query.find(Table).alias
        self._texts = [column.sql(dialect=compiler.dialect) for column in query.selects]

    def of(self, frame: Any) -> Any:
        """Return the frame of words and weights of a frame with that schema; nothing is read yet."""
        return frame.toDF(*self._places).alias(self._called).selectExpr(*self._texts)


def _weight(column: Any, weights: Weights) -> Any:
    # Spark's dates are recoded by their text, which is not a number.
    number = None if column.type().is_temporal() else number_of(column, _DIALECT)
    if number is None:
        raise InvalidColumn(
            f"column {weights.column!r} of {_CALLED} has a type whose values are not numbers, so they "
            "cannot be weights. Nothing was counted. Name a column of numbers."
        )
    return number


def _type_of(kind: st.DataType) -> dt.DataType:
    """Return Ibis's type of a column, or an unreadable type if Ibis has none."""
    if isinstance(kind, st.UserDefinedType):
        return dt.unknown
    try:
        return _TYPES.get(type(kind)) or PySparkType.to_ibis(kind)
    except Exception:
        return dt.unknown
