"""Values that tell one way of recoding from another: those that two databases most easily read differently."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding
from tabulary.confidential.reading.duckdb import DuckDBReader

# fmt: off
# Texts that a number is known by, and such as look like one and are none.
_NUMBERS = [
    *("0", "1", "-1", "7", "01", "1.0", "-0", "+1", "-0.0", "0.0", "00", "1.", ".5", "100", "127", "-128"),
    "128",
    *("255", "256", "300", "32767", "-32768", "65535", "2147483647", "-2147483648", "2147483648"),
    "4294967295",
    *("9007199254740992", "9007199254740993", "9007199254740994", "9007199254740994.0", "-9007199254740992"),
    *("9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615"),
    *("100000000000000000000", "9" * 38, "-" + "9" * 38, "1e+38", "0.5", "-0.5", "0.50", "1.5", "1.50"),
    "1.25",
    *("12.34", "0.1", "0.7", "0.699999988079071", "0.3", "0.30000000000000004", "0.25", "0.001", "0.0001"),
    *("1e-05", "0.00001", "1e-5", "1e-07", "1e2", "1e+02", "1e16", "1e+16", "10000000000000000", "1e+17"),
    "1e+22",
    *("1e+300", "1.7976931348623157e+308", "5e-324", "3.4028235e+38", "3.4028234663852886e+38", "1e-45"),
    *("1.401298464324817e-45", "16777216", "16777217", "16777216.0", "3018356334166016", "3018356400000000"),
    *("3018356400000000.0", "9.1e+15", "9100000000000000.0", "9099999893159936", "0.999", ".999"),
    "0.0000000001",
    *("123456789.12", "nan", "NaN", "inf", "-inf", "Infinity", "true", "1_0"),
]

_DOUBLES = [
    *(0.0, -0.0, 1.0, -1.0, 7.0, 100.0, 128.0, 0.5, -0.5, 1.5, 1.25, 12.34, 0.1, 0.7, 0.3, 0.1 + 0.2, 0.25),
    *(0.001, 0.0001, 1e-5, 1e-7, 1e16, 1e17, 1e22, 1e38, 1e300, 1.7976931348623157e308),
    -1.7976931348623157e308,
    *(5e-324, 2.0**53, -(2.0**53), 2.0**53 + 2, 2.0**63, 3.4028234663852886e38, 1e-45, 16777216.0),
    16777217.0,
    *(0.6999999999999999, 0.7000000000000001, 0.699999988079071, 3018356400000000.0, 9.1e15, 123456789.12),
    *(float("nan"), float("inf"), float("-inf")),
]

_TEXTS = [
    *("", " ", "a", "A", "a ", " a", "é", "e\u0301", "É", "ß", "ss", "it's", '"x"', "`x`", "back\\slash"),
    *("\\", "\\\\"),
    *("new\nline", "tab\t", "cr\r", "\\n", "\\t", "\\u0041", "a\\'b", "'; --", "😀", "${env:HOME}"),
    "${spark.app.name}",
    *("%s", "%", "_", "{0}", ":p", "?", "$1", "@x", "--", "/* */", "NULL", "null", "true", "True", "x" * 300),
    *("2024-02-29", "1", "01", "1.0", "-0", "0", "-5", "+5", ".5", "5.", "-.5", "+.5e1", "5e", "5e+"),
    *("1e5", "1e-5"),
    *("1E+05", "1e005", "1e0000000005", "1e99", "-1e99", "1e-99", "1e300", "-1e-300", "-1e-310", "1e308"),
    "1e309",
    *("1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "1e999", "-1e999"),
    "1e-999",
    *("2e-324", "3e-324", "1e1000", "1e-1000", "1" * 100, "1" * 101, "0." + "0" * 99 + "1"),
    "0." + "0" * 100 + "1",
    *("1" * 100 + "." + "1" * 100 + "e999", " 5", "5 ", "5\n", "\n5", "5\r", "5\r\n", "5\u0085", "5\u2028"),
    "5\u00a0",
    *("1_000", "1,000", "0x10", "1d", "1f", "1L", "٣", "５", ".", "-", "+", "e5", "--5", "nan", "NaN"),
    *("inf", "-inf"),
    *("Infinity", "0.7", "0.69999999999999996", "0.7000000000000001", "0.6999999999999999", "7", "100"),
    "7.5",
    *("99.99", "0.1", "0.30000000000000004", "9007199254740993"),
]

_DAYS = [
    *(date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10), date(1969, 12, 31)),
    date(1970, 1, 1),
]
_DAY_TEXTS = [
    *("2024-02-29", "2024-2-29", "20240229", "2024-W09-4", "0001-01-01", "9999-12-31", "1582-10-10"),
    "1969-12-31",
    *("29.02.2024", "2023-02-29", "infinity", "epoch", "today"),
]

_MOMENTS = [
    *(datetime(2024, 2, 29), datetime(2024, 2, 29, 12), datetime(2024, 2, 29, 12, 0, 0, 500_000)),
    *(datetime(2024, 2, 29, 23, 59, 59, 999_999), datetime(2024, 2, 29, 12, 0, 0, 123_450)),
    datetime(1, 1, 1),
    *(datetime(9999, 12, 31, 23, 59, 59), datetime(1582, 10, 10, 1, 2, 3, 1), datetime(1969, 12, 31, 23)),
    # Times that a clock skips, and repeats, somewhere.
    *(datetime(2024, 3, 31, 2, 30), datetime(2024, 3, 31, 3, 30), datetime(2024, 10, 27, 2, 30)),
]
_MOMENT_TEXTS = [
    *("2024-02-29", "2024-02-29 00:00:00", "2024-02-29T00:00:00", "2024-02-29 12:00", "2024-02-29 12:00:00"),
    *("2024-02-29 12:00:00.0", "2024-02-29 12:00:00.5", "2024-02-29 12:00:00.500"),
    "2024-02-29 12:00:00.500000",
    *("2024-02-29 23:59:59.999999", "2024-02-29 12:00:00.12345", "2024-02-29 12:00:00+00:00"),
    "2024-02-29 12:00:00Z",
    *("0001-01-01 00:00:00", "9999-12-31 23:59:59", "1582-10-10 01:02:03.000001", "1969-12-31 23:00:00"),
    *("2024-03-31 02:30:00", "2024-03-31 03:30:00", "2024-10-27 02:30:00", "infinity"),
]

_UUIDS = ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"]

# fmt: on
_RUN = [str(number) for number in range(-3, 130)]
_EDGES = (
    (-0.5, 0.1, 0.3, 0.7, 7.0, 100.0),
    (-1e300, -1.0, 0.0, 1e-45, 2.0**53, 2.0**53 + 2, 1e38, 1e39),
)
_MANY_EDGES = tuple(float(edge) for edge in range(-10, 200, 3))


@dataclass(frozen=True)
class Telling:
    """A column of telling values, and the lists of texts and of edges that they are recoded by."""

    name: str
    kind: pyarrow.DataType
    values: Sequence[Any]
    texts: Sequence[Sequence[str]]
    edges: Sequence[Sequence[float]] = _EDGES

    @property
    def recodings(self) -> list[Recoding]:
        """One recoding for each list, and one of the last texts in their order."""
        return [
            in_order(f"{self.name} in order", self.name, self.texts[-1]),
            *(by_texts(f"{self.name} {place}", self.name, texts) for place, texts in enumerate(self.texts)),
            *(
                by_edges(f"{self.name} in bins {place}", self.name, edges)
                for place, edges in enumerate(self.edges)
            ),
        ]


def by_texts(attribute: str, column: str, texts: Sequence[str]) -> Recoding:
    """Return a recoding of texts to codes in an order of its own, two texts a code."""
    different = list(dict.fromkeys(texts))
    levels = (len(different) + 1) // 2
    codes = tuple((place * 7 + place // levels) % levels for place in range(len(different)))
    return Recoding(
        attribute, column, tuple(map(str, range(levels))), tuple(different), (), codes, None, drop=False
    )


def in_order(attribute: str, column: str, texts: Sequence[str]) -> Recoding:
    """Return a recoding of each text to its place."""
    return Recoding(
        attribute, column, tuple(texts), tuple(texts), (), tuple(range(len(texts))), None, drop=False
    )


def by_edges(attribute: str, column: str, edges: Sequence[float]) -> Recoding:
    """Return a recoding of numbers to bins, the last bin first."""
    codes = tuple(reversed(range(len(edges))))
    return Recoding(attribute, column, tuple(map(str, codes)), (), tuple(edges), codes, None, drop=False)


def table_of(columns: Sequence[Telling]) -> pyarrow.Table:
    """Return the columns as one table, the number of each row as `row`; every column ends with a null."""
    rows = max(len(column.values) for column in columns) + 1
    arrays = {
        column.name: pyarrow.array([*column.values, *[None] * (rows - len(column.values))], column.kind)
        for column in columns
    }
    return pyarrow.table({"row": pyarrow.array(range(rows), pyarrow.int32()), **arrays})


def codes_of_reader(table: pyarrow.Table, recodings: Sequence[Recoding]) -> list[NDArray[Any]]:
    """Return the codes of each recoding that the reader of files gives, in the order of the rows."""
    rows = in_order("row", "row", [str(row) for row in range(table.num_rows)])
    batches = list(DuckDBReader.of_arrow(table).batches([rows, *recodings]))
    order = np.argsort(np.concatenate([batch[0] for batch in batches]))
    return [
        np.concatenate([batch[place] for batch in batches])[order] for place in range(1, 1 + len(recodings))
    ]


def _integers(low: int, high: int) -> list[int]:
    known = {int(text) for text in _NUMBERS if text.removeprefix("-").isdigit()}
    return sorted(value for value in {*known, low, high, *range(-4, 12)} if low <= value <= high)


def _decimals(precision: int, scale: int) -> list[Decimal]:
    texts = [text for text in _NUMBERS if set(text) <= set("0123456789.-")]
    values = {Decimal(text) for text in texts if len(text.partition(".")[2].rstrip("0")) <= scale}
    return sorted(value for value in values if abs(value) < Decimal(10) ** (precision - scale))


def _whole_numbers(prefix: str, bits: int, low: int) -> Telling:
    name = f"{prefix}{bits}"
    lists = (_NUMBERS, _NUMBERS[:5], [*reversed(_RUN), "1000"], _RUN)
    return Telling(name, pyarrow.type_for_alias(name), _integers(low, low + 2**bits - 1), lists, _EDGES[:1])


COLUMNS = [
    *(_whole_numbers("int", bits, -(2 ** (bits - 1))) for bits in (8, 16, 32, 64)),
    Telling("float32", pyarrow.float32(), [v for v in _DOUBLES if not 3.5e38 < abs(v) < 1e309], (_NUMBERS,)),
    Telling("float64", pyarrow.float64(), _DOUBLES, (_NUMBERS, _NUMBERS[:5]), (*_EDGES, _MANY_EDGES)),
    *(
        Telling(f"decimal_{p}_{s}", pyarrow.decimal128(p, s), _decimals(p, s), (_NUMBERS, _RUN))
        for p, s in ((9, 2), (38, 10), (3, 3), (9, 0), (38, 0))
    ),
    Telling("bool", pyarrow.bool_(), [True, False], (["true", "false", "True", "1", "0", "t"],), _EDGES[:1]),
    Telling("text", pyarrow.string(), _TEXTS, (_TEXTS[1:], _TEXTS[2:7]), (*_EDGES, _MANY_EDGES)),
    Telling("day", pyarrow.date32(), _DAYS, (_DAY_TEXTS, _DAY_TEXTS[:3]), _EDGES[:1]),
    Telling("moment", pyarrow.timestamp("us"), _MOMENTS, (_MOMENT_TEXTS,), _EDGES[:1]),
    Telling("uuid", pyarrow.string(), _UUIDS, ([*_UUIDS, _UUIDS[0].upper(), "a0eebc99"],), _EDGES[:1]),
]
"""Columns that every database can have, each in the type that is closest."""

UNSIGNED = [_whole_numbers("uint", bits, 0) for bits in (8, 16, 32, 64)]
"""Columns that only DuckDB can have."""
