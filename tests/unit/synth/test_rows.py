"""Synthetic records as a frame and as a file."""

import numpy as np
import pandas as pd
import pytest

import tabulary as tb
from tabulary.errors import InvalidTable, ReleaseError, ReleaseExists, TooManyCells
from tabulary.synth.rows import SyntheticRecords, check_rows

DOMAIN = tb.Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]},
    structural_zeros=[{"age": "0-14", "job": "paid"}],
)
CODES = np.array([[0, 0, 0], [1, 1, 1], [1, 2, 0], [0, 1, 1]])


def test_frames_hold_the_labels_of_the_domain_in_order():
    rows = SyntheticRecords(DOMAIN, CODES)
    expected = {
        "sex": ["F", "M", "M", "F"],
        "age": ["0-14", "15-64", "65+", "15-64"],
        "job": ["none", "paid", "none", "paid"],
    }
    assert rows.to_pandas().to_dict("list") == expected
    assert rows.to_polars().to_dict(as_series=False) == expected
    assert rows.to_arrow().to_pydict() == expected


def test_tables_count_the_rows():
    rows = SyntheticRecords(DOMAIN, CODES)
    assert rows.table("sex", "job").counts.tolist() == [[1, 1], [1, 1]]
    assert rows.table().counts.tolist() == 4


@pytest.mark.parametrize(
    ("codes", "reason"),
    [
        ([[0, 0]], "one column per attribute"),
        ([[0, 3, 0]], "a code that its attribute does not"),
        ([[-1, 0, 0]], "a code that its attribute does not"),
        ([[0.5, 0, 0]], "rows of whole codes"),
        ([[0, 0, 1]], "a cell that the domain declares impossible"),
    ],
    ids=["too few columns", "above the levels", "below zero", "not whole", "impossible cell"],
)
def test_codes_that_the_domain_does_not_have_are_refused(codes, reason):
    with pytest.raises(InvalidTable, match=reason):
        SyntheticRecords(DOMAIN, np.array(codes))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_file_holds_the_same_rows_and_is_not_overwritten(tmp_path, ending):
    rows = SyntheticRecords(DOMAIN, CODES)
    path = tmp_path / f"people{ending}"
    rows.write(path)
    read = pd.read_csv(path, dtype=str) if ending == ".csv" else pd.read_parquet(path).astype(str)
    assert read.to_dict("list") == rows.to_pandas().to_dict("list")
    with pytest.raises(ReleaseExists, match="already exists"):
        rows.write(path)
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_file_of_another_kind_or_in_no_folder_is_refused(tmp_path):
    rows = SyntheticRecords(DOMAIN, CODES)
    with pytest.raises(ReleaseError, match=r"csv or \.parquet"):
        rows.write(tmp_path / "people.xlsx")
    with pytest.raises(ReleaseError, match="could not be written"):
        rows.write(tmp_path / "nowhere" / "people.csv")


def test_more_rows_than_memory_are_refused_before_any_is_made():
    with pytest.raises(TooManyCells, match="GiB"):
        check_rows(10**12, 14)
    for wrong in (0, -3, 2.5, True, "many"):
        with pytest.raises(InvalidTable, match="the number of rows must be 1 or more"):
            check_rows(wrong, 3)
