from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.long_form import long_columns
from tabulary.core.table import Table
from tabulary.errors import InvalidDomain, InvalidTable
from tests.unit.core.small_domains import domains

SMALL = Domain({"a": "xy", "b": "xyz"})


@st.composite
def tables(draw):
    domain = draw(domains())
    values = st.integers(-1000, 1000)
    counts = np.array(draw(st.lists(values, min_size=domain.size, max_size=domain.size))).reshape(
        domain.shape
    )
    return Table(domain, np.where(domain.impossible(domain.attributes), 0, counts))


def orders_of(table):
    """Some attributes of the table, in any order."""
    return st.lists(st.sampled_from(table.domain.attributes), unique=True)


@given(tables(), st.data())
def test_a_margin_sums_over_the_attributes_it_leaves_out_in_the_order_it_names(table, data):
    order = data.draw(orders_of(table))
    axes = range(table.counts.ndim)
    brute = np.einsum(table.counts, axes, [table.domain.position(a) for a in order])
    projected = table.project(order)
    assert projected.domain.attributes == tuple(order)
    assert np.array_equal(projected.counts, brute)
    assert np.array_equal(table.project(*order).counts, brute)


@given(tables(), st.data())
def test_a_margin_of_a_margin_is_the_margin(table, data):
    first = data.draw(orders_of(table))
    second = data.draw(st.lists(st.sampled_from(first), unique=True) if first else st.just([]))
    assert np.array_equal(table.project(first).project(second).counts, table.project(second).counts)


@given(tables(), st.data())
def test_the_total_is_the_same_in_every_margin(table, data):
    assert table.project(data.draw(orders_of(table))).total == table.total == table.counts.sum()


@given(tables(), st.data())
def test_a_transposed_table_has_the_same_cells(table, data):
    order = data.draw(st.permutations(table.domain.attributes))
    turned = table.transpose(order)
    assert turned.domain.attributes == tuple(order)
    for row in zip(*table.columns().values(), strict=True):
        labels = dict(zip(table.domain.attributes, row[:-1], strict=True))
        assert turned[tuple(labels[a] for a in order)] == row[-1]
    assert np.array_equal(
        turned.domain.impossible(turned.domain.attributes),
        np.transpose(
            table.domain.impossible(table.domain.attributes), [table.domain.position(a) for a in order]
        ),
    )


@given(tables(), st.data())
def test_a_slice_holds_the_cells_of_its_levels(table, data):
    attribute = data.draw(st.sampled_from(table.domain.attributes))
    level = data.draw(st.sampled_from(table.domain.levels_of(attribute)))
    at = table.domain.position(attribute)
    part = table.slice({attribute: level})
    assert attribute not in part.domain.attributes
    assert np.array_equal(part.counts, np.take(table.counts, table.domain.code(attribute, level), axis=at))


@given(tables())
def test_totals_stand_at_the_end_of_every_axis(table):
    array = table.with_totals()
    assert array[(-1,) * array.ndim] == table.total
    assert np.array_equal(array[(np.s_[:-1],) * array.ndim], table.counts)


@given(tables())
def test_the_long_form_has_a_row_a_cell_that_can_be_looked_up(table):
    columns = table.columns()
    assert tuple(columns) == (*table.domain.attributes, "count")
    rows = list(zip(*columns.values(), strict=True))
    assert len(rows) == table.domain.size
    assert all(table[row[:-1]] == row[-1] for row in rows)


def test_a_cell_is_found_by_its_labels():
    table = Table(SMALL, [[1, 2, 3], [4, 5, 6]])
    assert table["y", "z"] == 6
    assert isinstance(table["y", "z"], int)
    assert table.slice(a="x")["y"] == 2
    assert Table(SMALL, [[0.5, 2, 3], [4, 5, 6]])["x", "x"] == 0.5


def test_a_table_of_nothing_but_the_total_has_one_cell():
    total = Table(SMALL, [[1, 2, 3], [4, 5, 6]]).project()
    assert total.domain.attributes == ()
    assert total.total == total[()] == 21
    assert repr(total) == "<Table total>"


def test_the_total_has_a_long_form_of_one_row():
    total = Table(SMALL, [[1, 2, 3], [4, 5, 6]]).project()
    assert {name: list(column) for name, column in total.columns().items()} == {"count": [21]}


def test_a_printed_table_shows_its_shape_and_no_count():
    assert repr(Table(SMALL, np.full((2, 3), 7777))) == "<Table a 2 × b 3>"


def test_the_array_is_a_read_only_copy():
    given_counts = np.ones((2, 3), dtype=np.int64)
    table = Table(SMALL, given_counts)
    given_counts[0, 0] = 99
    assert table["x", "x"] == 1
    for part in (table, table.project("b"), table.transpose(["b", "a"]), table.slice(a="x")):
        with pytest.raises(ValueError, match="read-only"):
            part.counts[...] = 0
    with pytest.raises(FrozenInstanceError):
        table.counts = given_counts


def test_whole_numbers_stay_whole_and_real_ones_real():
    assert Table(SMALL, np.ones((2, 3), dtype=np.uint8)).counts.dtype == np.int64
    assert Table(SMALL, np.ones((2, 3), dtype=np.float32)).counts.dtype == np.float64


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_cell_that_is_not_a_number_is_refused(bad):
    with pytest.raises(InvalidTable, match="NaN or infinite"):
        Table(SMALL, [[1, 2, 3], [4, bad, 6]])


@pytest.mark.parametrize("shape", [(3, 2), (6,), (2, 3, 1), (2, 2), ()])
def test_a_wrong_shape_is_refused_with_both_shapes(shape):
    with pytest.raises(InvalidTable, match=r"domain's shape is \(2, 3\) but the array's is"):
        Table(SMALL, np.zeros(shape))


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ([["1"] * 3] * 2, "not <U1"),
        ([[True] * 3] * 2, "not bool"),
        ([[None] * 3] * 2, "not object"),
        ([[1j] * 3] * 2, "not complex128"),
        ([[2**70] * 3] * 2, "not object"),
        (np.full((2, 3), 2**63, dtype=np.uint64), "a count does not fit in 64 bits"),
    ],
)
def test_cells_that_are_not_64_bit_numbers_are_refused(counts, reason):
    with pytest.raises(InvalidTable, match=reason):
        Table(SMALL, counts)


def test_a_ragged_list_is_refused():
    with pytest.raises(InvalidTable, match="these rows have different lengths"):
        Table(SMALL, [[1, 2, 3], [4]])


def test_a_total_that_does_not_fit_64_bits_is_refused_or_right():
    try:
        total = Table(Domain({"a": "xy"}), [2**62, 2**62]).total
    except InvalidTable:
        return
    assert total == 2**63


def test_a_count_in_an_impossible_cell_is_refused():
    domain = Domain({"a": "xy", "b": "xy"}, [{"a": "x", "b": "y"}])
    Table(domain, [[1, 0], [2, 3]])
    with pytest.raises(InvalidTable, match="impossible is not zero"):
        Table(domain, [[1, 1], [2, 3]])


def test_a_cell_needs_a_label_for_every_attribute():
    table = Table(SMALL, np.zeros((2, 3)))
    for labels in ("x", ("x",), ("x", "y", "z"), ()):
        with pytest.raises(InvalidTable, match="2 labels"):
            table[labels]
    with pytest.raises(InvalidDomain, match="no level 'q'"):
        table["x", "q"]


def test_a_margin_that_names_an_unknown_attribute_or_one_twice_is_refused():
    table = Table(SMALL, np.zeros((2, 3)))
    with pytest.raises(InvalidDomain, match="no attribute 'c'"):
        table.project("a", "c")
    with pytest.raises(InvalidDomain, match="twice"):
        table.project("a", "a")
    with pytest.raises(InvalidDomain, match="no attribute 'c'"):
        table.slice(c="x")


@pytest.mark.parametrize("order", [["a"], ["a", "a"], ["a", "b", "a"], []])
def test_a_transposition_names_every_attribute_once(order):
    with pytest.raises(InvalidTable, match="name every attribute"):
        Table(SMALL, np.zeros((2, 3))).transpose(order)


def test_frames_hold_one_row_a_cell():
    table = Table(SMALL, [[1, 2, 3], [4, 5, 6]])
    pandas, polars = table.to_pandas(), table.to_polars()
    assert pandas.columns.tolist() == polars.columns == ["a", "b", "count"]
    assert pandas.set_index(["a", "b"])["count"].loc[("y", "z")] == 6
    assert polars.rows() == [tuple(row) for row in pandas.itertuples(index=False)]


def test_an_xarray_has_the_attributes_as_dimensions():
    array = Table(SMALL, [[1, 2, 3], [4, 5, 6]]).to_xarray()
    assert array.dims == ("a", "b")
    assert array.sel(a="y", b="z").item() == 6


def test_long_columns_carry_several_values_side_by_side():
    columns = long_columns(SMALL, {"count": np.arange(6).reshape(2, 3), "error": np.ones((2, 3))})
    assert list(columns) == ["a", "b", "count", "error"]
    assert columns["a"].tolist() == ["x"] * 3 + ["y"] * 3
    assert columns["b"].tolist() == ["x", "y", "z"] * 2
    assert columns["count"].tolist() == list(range(6))
