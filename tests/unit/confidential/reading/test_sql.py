"""What the reader of files takes for a number, and how it shows one."""

from decimal import Decimal

import pyarrow
import pytest

from tabulary.confidential.reading.duckdb import DuckDBReader
from tests.telling_values import by_edges, codes_of_reader, in_order


@pytest.mark.parametrize(
    "text", ["5", "+5", "5.", ".5", "05", "5e0", "5E-3", "1e308", "1e0000308", "9" * 100]
)
def test_a_text_is_a_number_in_plain_digits(text: str) -> None:
    assert number_in(text) == float(text)


@pytest.mark.parametrize(
    "text", ["", " 5", "5\n", "5e", "0x5", "5_0", "inf", "nan", "1e309", "1e1000", "9" * 101]
)
def test_any_other_text_is_no_number(text: str) -> None:
    assert number_in(text) is None
    table = pyarrow.table({"row": [0], "text": [text]})
    assert codes_of_reader(table, [by_edges("bins", "text", [-1.0])])[0].tolist() == [1]


def number_in(text: str) -> float | None:
    found = DuckDBReader.of_arrow(pyarrow.table({"text": [text]})).columns([], ["text"])
    number: float | None = found["text"][0].as_py()
    return number


def test_a_decimal_is_known_by_its_text_where_its_type_has_no_place_before_the_point() -> None:
    values = pyarrow.array([Decimal("0.500"), Decimal("-0.250"), Decimal("0.000")], pyarrow.decimal128(3, 3))
    table = pyarrow.table({"row": [0, 1, 2], "share": values})
    levels = in_order("levels", "share", ["0", "0.5", "-0.25", ".5"])
    assert codes_of_reader(table, [levels])[0].tolist() == [1, 2, 0]
