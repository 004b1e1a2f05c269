import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.errors import InvalidTable
from tabulary.release.csv_table import value_columns
from tabulary.release.formats import csv_bytes

whole = st.integers(-(2**63), 2**63 - 1)
real = st.floats(allow_nan=False, allow_infinity=False)
labels = st.text(max_size=8).filter(lambda text: text.isprintable())


@given(st.lists(st.tuples(labels, whole, real, whole, real), min_size=1, max_size=20))
def test_the_numbers_are_read_as_they_were_written_whatever_the_labels_are(rows):
    names = ["label", "count", "standard_error", "lower", "upper"]
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    found = value_columns(csv_bytes(pa.table(columns)), len(rows), 4)
    for name, numbers in zip(names[1:], found, strict=True):
        assert numbers.tolist() == list(columns[name])
        assert numbers.dtype == (np.int64 if name in ("count", "lower") else np.float64)


def test_the_total_has_no_labels():
    assert [c.tolist() for c in value_columns(b"count,error\n12,0.5\n", 1, 2)] == [[12], [0.5]]


def test_more_rows_than_are_read_at_a_time_are_read():
    numbers = np.arange(200_000)
    data = csv_bytes(pa.table({"a": [f"a,{i % 7}" for i in numbers], "n": numbers, "m": numbers * 0.1}))
    whole_numbers, real_numbers = value_columns(data, 200_000, 2)
    assert np.array_equal(whole_numbers, numbers)
    assert np.array_equal(real_numbers, numbers * 0.1)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "2 rows"),
        (b"\n\n\n", "too few fields"),
        (b"a,n,m\nx,1,2\n", "2 rows"),
        (b"a,n,m\nx,1,2\nx,1,2\nx,1,2\n", "2 rows"),
        (b"a,n,m\nx,1,2\nx,1,2", "2 rows"),
        (b"a,n,m\nx,1,2\n1\n", "must be a number"),
        (b"a,n,m\nx,1,2\nx,1,\n", "must be a number"),
        (b"a,n,m\nx,1,2\nx,one,2\n", "must be a number"),
        (b"a,n,m\nx,1,2\nx,1.5,2\n", "must be a number"),
        (b"a,n,m\nx,1,2\nx,99999999999999999999,2\n", "must be a number"),
        (b"a,n,m\nx,1,2\nx," + b"9" * 5_000 + b",2\n", "must be a number"),
        (b"n\n1\n2\n", "too few fields"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(data, words):
    with pytest.raises(InvalidTable, match=words):
        value_columns(data, 2, 2)
