"""Frames keep the order of the levels of a domain: what a reader sorts comes in the order of the custodian."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tabulary as tb
from tabulary.cellkey.table import CellKeyTable
from tabulary.core.long_form import LongForm
from tabulary.perturb import Laplace
from tabulary.synth.rows import SyntheticRecords

# Neither attribute is in the order of the alphabet, and numbers as text would be sorted as text.
DOMAIN = tb.Domain({"size": ["small", "medium", "large"], "age": ["0-4", "5-14", "15-64", "65+"]})
COUNTS = np.arange(12).reshape(3, 4)
TABLE = tb.Table(DOMAIN, COUNTS)
RELEASED = tb.release(TABLE, tb.plan(DOMAIN, "[size age]", privacy=tb.PureDP(1), reconstruct="none"))[
    "size", "age"
]
ROWS = SyntheticRecords(DOMAIN, np.argwhere(COUNTS >= 0))
FORMS = {
    "table": TABLE,
    "released table": RELEASED,
    "perturbed table": Laplace(1, bound=5).apply(TABLE),
    "intervals": tb.infer.intervals(RELEASED, ["size", "age"]),
    "synthetic rows": ROWS,
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
with_arrow = [form for form in FORMS.values() if hasattr(form, "to_arrow")]


def labels_of(attribute):
    """The labels of a column, the last attribute fastest."""
    places = np.indices(DOMAIN.shape)[DOMAIN.position(attribute)].reshape(-1)
    return [DOMAIN.levels_of(attribute)[place] for place in places]


@every_form
@pytest.mark.parametrize("attribute", DOMAIN.attributes)
def test_a_pandas_column_of_labels_is_an_ordered_categorical(form, attribute):
    column = form.to_pandas()[attribute]
    assert column.cat.ordered
    assert column.cat.categories.tolist() == list(DOMAIN.levels_of(attribute))
    assert column.tolist() == labels_of(attribute) == form.columns()[attribute].tolist()


@every_form
@pytest.mark.parametrize("attribute", DOMAIN.attributes)
def test_a_polars_column_of_labels_is_an_enum(form, attribute):
    column = form.to_polars()[attribute]
    assert column.dtype == pl.Enum(DOMAIN.levels_of(attribute))
    assert column.to_list() == labels_of(attribute)


@pytest.mark.parametrize("form", with_arrow, ids=lambda form: type(form).__name__)
@pytest.mark.parametrize("attribute", DOMAIN.attributes)
def test_an_arrow_column_of_labels_is_an_ordered_dictionary(form, attribute):
    column = form.to_arrow()[attribute].combine_chunks()
    assert pa.types.is_dictionary(column.type)
    assert column.type.ordered
    assert column.dictionary.to_pylist() == list(DOMAIN.levels_of(attribute))
    assert column.to_pylist() == labels_of(attribute)
    assert form.to_arrow().to_pandas()[attribute].cat.ordered


@every_form
def test_what_is_sorted_or_grouped_comes_in_the_order_of_the_levels(form):
    frame = form.to_pandas().sample(frac=1, random_state=1)
    assert frame.sort_values("size")["size"].unique().tolist() == ["small", "medium", "large"]
    assert frame.groupby("age", observed=True).size().index.tolist() == list(DOMAIN.levels_of("age"))
    assert (frame[frame["size"] >= "medium"]["size"] != "small").all()
    shuffled = form.to_polars().sample(fraction=1, shuffle=True, seed=1)
    assert shuffled.sort("age")["age"].unique(maintain_order=True).to_list() == list(DOMAIN.levels_of("age"))


@pytest.mark.parametrize("form", [TABLE, RELEASED], ids=["array", "dataset"])
def test_the_axes_of_an_xarray_are_ordered(form):
    made = form.to_xarray()
    for attribute in DOMAIN.attributes:
        index = made.indexes[attribute]
        assert isinstance(index, pd.CategoricalIndex)
        assert index.ordered
        assert index.tolist() == index.categories.tolist() == list(DOMAIN.levels_of(attribute))
    assert made.to_dataframe().reset_index()["size"].cat.ordered


def test_the_dataset_of_a_released_table_holds_its_counts_and_errors():
    made = RELEASED.to_xarray()
    assert list(made) == ["count", "standard_error", "lower_95", "upper_95"]
    assert made["count"].sel(size="large", age="0-4").item() == RELEASED["large", "0-4"]
    assert (made["standard_error"].values == RELEASED.standard_errors).all()


def test_a_withheld_count_is_missing_in_every_frame():
    counts = np.ma.MaskedArray(COUNTS, COUNTS < 3)
    table = CellKeyTable(DOMAIN, counts, "made up", 3)
    assert table.to_pandas()["count"].isna().sum() == 3
    assert table.to_polars()["count"].null_count() == 3
    assert table.to_arrow()["count"].null_count == 3
    assert table.to_pandas()["size"].cat.ordered
    assert table.to_arrow()["size"].type.ordered


def test_a_column_without_levels_has_no_order():
    expected = tb.plan(DOMAIN, "[size][age]", privacy=tb.PureDP(1)).expected_error()
    assert isinstance(expected, LongForm)
    assert not isinstance(expected.to_pandas()["margin"].dtype, pd.CategoricalDtype)


def test_a_total_has_one_row_and_no_labels():
    total = tb.Table(DOMAIN.project(()), COUNTS.sum())
    assert total.to_pandas().shape == total.to_polars().shape == (1, 1)
    assert total.to_xarray().item() == COUNTS.sum()
