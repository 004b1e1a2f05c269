import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import bin_labels
from tabulary.errors import InvalidArgument, InvalidColumn, InvalidDomain, UnreadableSource
from tabulary.toolbox import coarsen, k_anonymity, redact

PEOPLE = {"name": ["Ada", "Max", "Eva"], "age": [53, 61, 69], "zip": ["19104", "19147", "02139"]}
KINDS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "batch": lambda columns: pa.table(columns).to_batches()[0],
}
every_frame = pytest.mark.parametrize("kind", KINDS)


def columns_of(frame):
    if isinstance(frame, pd.DataFrame):
        return frame.to_dict(orient="list")
    return frame.to_dict(as_series=False) if isinstance(frame, pl.DataFrame) else frame.to_pydict()


@every_frame
def test_a_redacted_column_is_gone_and_the_others_are_as_they_were(kind):
    frame = KINDS[kind](PEOPLE)
    left = redact(frame, ["name", "zip"])
    assert columns_of(left) == {"age": PEOPLE["age"]}
    assert columns_of(frame) == PEOPLE
    if kind != "batch":
        assert type(left) is type(frame)


@every_frame
def test_coarsening_changes_the_named_columns_only_and_in_their_place(kind):
    frame = KINDS[kind](PEOPLE)
    coarse = coarsen(frame, bins={"age": [0, 50, 60]}, prefixes={"zip": 3})
    assert columns_of(coarse) == {
        "name": PEOPLE["name"],
        "age": ["50-59", "60+", "60+"],
        "zip": ["191**", "191**", "021**"],
    }
    assert list(columns_of(coarse)) == list(PEOPLE)
    assert columns_of(frame) == PEOPLE
    if kind != "batch":
        assert type(coarse) is type(frame)


@given(
    st.lists(st.integers(0, 120), min_size=1, max_size=30),
    st.lists(st.integers(1, 120), unique=True, max_size=5).map(lambda edges: [0, *sorted(edges)]),
)
def test_a_number_falls_into_the_last_bin_that_starts_at_or_below_it(ages, edges):
    labels = bin_labels(edges)
    coarse = coarsen(pa.table({"age": ages}), bins={"age": edges})["age"].to_pylist()
    assert coarse == [labels[max(i for i, edge in enumerate(edges) if edge <= age)] for age in ages]


@given(st.lists(st.text("0123456789é", min_size=1, max_size=7), min_size=1, max_size=10), st.integers(0, 8))
def test_a_prefix_stays_and_a_star_stands_for_every_other_character(codes, length):
    coarse = coarsen(pa.table({"zip": codes}), prefixes={"zip": length})["zip"].to_pylist()
    for before, after in zip(codes, coarse, strict=True):
        assert len(after) == len(before)
        assert after[:length] == before[:length]
        assert set(after[length:]) <= {"*"}


@given(
    st.lists(st.tuples(st.integers(0, 90), st.text("01", min_size=3, max_size=3)), min_size=1, max_size=20)
)
def test_coarsening_and_redaction_never_make_a_class_smaller(rows):
    ages, codes = zip(*rows, strict=True)
    fine = pa.table({"age": ages, "zip": codes})
    coarse = coarsen(fine, bins={"age": [0, 30, 60]}, prefixes={"zip": 1})
    smallest = [
        k_anonymity(fine, ["age", "zip"], k=2).smallest,
        k_anonymity(coarse, ["age", "zip"], k=2).smallest,
        k_anonymity(redact(coarse, ["zip"]), ["age"], k=2).smallest,
    ]
    assert smallest == sorted(smallest)


def test_numbers_have_no_prefix_because_their_zeros_are_lost():
    with pytest.raises(InvalidColumn, match="Read the column as text"):
        coarsen(pa.table({"zip": [2139]}), prefixes={"zip": 3})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (-987654, "below the first bin"),
        (None, "missing or empty"),
        (float("nan"), "missing or empty"),
    ],
)
def test_a_number_without_a_bin_is_refused_without_being_told(value, reason):
    with pytest.raises(InvalidColumn, match=reason) as caught:
        coarsen(pa.table({"age": pa.array([5.0, value])}), bins={"age": [0, 50]})
    assert "987654" not in str(caught.value)
    assert "'age'" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({}, InvalidArgument, "columns to coarsen must be a list of column names"),
        ({"bins": {"age": [0]}, "prefixes": {"age": 3}}, InvalidArgument, "has bins and a prefix"),
        ({"prefixes": {"zip": -1}}, InvalidArgument, "the prefix of 'zip' must be a number of characters"),
        ({"prefixes": {"zip": True}}, InvalidArgument, "the prefix of 'zip' must be a number of characters"),
        ({"bins": {"age": []}}, InvalidDomain, "at least one number, in strictly ascending order"),
        ({"bins": {"age": [5, 5]}}, InvalidDomain, "at least one number, in strictly ascending order"),
        ({"bins": {"zip": [0, 50]}}, InvalidColumn, "'zip' has no numbers"),
        ({"bins": {"height": [0, 50]}}, InvalidColumn, "no column 'height'"),
    ],
)
def test_a_coarsening_that_cannot_be_is_refused(options, error, reason):
    with pytest.raises(error, match=reason):
        coarsen(pa.table(PEOPLE), **options)


@pytest.mark.parametrize(
    ("columns", "error", "reason"),
    [
        ("name", InvalidArgument, "columns to redact must be a list of column names"),
        ([], InvalidArgument, "columns to redact must be a list of column names"),
        (["job"], InvalidColumn, "no column 'job' to redact"),
        (list(PEOPLE), InvalidArgument, "would have no column left"),
    ],
)
def test_a_redaction_that_cannot_be_is_refused(columns, error, reason):
    with pytest.raises(error, match=reason):
        redact(pa.table(PEOPLE), columns)


def test_what_is_no_frame_is_refused():
    with pytest.raises(UnreadableSource, match="not a list"):
        redact([1, 2], ["age"])
