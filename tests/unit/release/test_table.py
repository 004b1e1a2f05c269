import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import InvalidTable
from tabulary.noise import DiscreteLaplace
from tabulary.planning import CellErrors
from tabulary.release import ReleasedTable
from tabulary.release.table import column_names
from tests.unit.release.releases import a_release


@pytest.fixture
def released():
    return a_release(work="[sex age job]")["sex", "age", "job"]


def test_a_cell_is_asked_for_by_its_labels(released):
    assert released["M", "65+", "none"] == released.counts[1, 2, 0]


def test_the_interval_is_the_count_with_the_half_width_on_either_side(released):
    lower, upper = released.interval(0.9)
    widths = released.errors.half_widths(0.9)
    assert upper - released.counts == pytest.approx(widths)
    assert released.counts - lower == pytest.approx(widths)


def test_a_wider_confidence_gives_a_wider_interval(released):
    possible = ~released.domain.impossible(released.margin)
    assert (released.half_widths(0.999) > released.half_widths(0.5))[possible].all()


def test_a_structural_zero_is_zero_without_error(released):
    lower, upper = released.interval()
    impossible = released.domain.impossible(released.margin)
    assert impossible.sum() == 2
    for values in (released.counts, released.standard_errors, lower, upper):
        assert not values[impossible].any()


def test_the_counts_cannot_be_changed(released):
    with pytest.raises(ValueError, match="read-only"):
        released.counts[0, 0, 0] = 1


def test_a_transposed_table_has_the_same_cells_and_errors(released):
    turned = released.transpose(["job", "sex", "age"])
    assert turned.margin == ("job", "sex", "age")
    assert turned["none", "M", "65+"] == released["M", "65+", "none"]
    assert np.array_equal(turned.standard_errors, released.standard_errors.transpose(2, 0, 1))


def test_a_slice_keeps_the_errors_of_its_cells(released):
    children = released.slice(age="0-14")
    assert children.margin == ("sex", "job")
    assert children["F", "none"] == released["F", "0-14", "none"]
    assert np.array_equal(children.standard_errors, released.standard_errors[:, 0])


def test_errors_of_another_shape_are_refused():
    table = Table(Domain({"sex": ["F", "M"]}), [1, 2])
    with pytest.raises(InvalidTable, match="do not describe the same cells"):
        ReleasedTable(table, CellErrors(DiscreteLaplace(1), np.array([1, 1, 1])))


@pytest.mark.parametrize("convert", ["to_pandas", "to_polars"])
def test_a_frame_has_a_row_a_cell_in_the_order_of_the_domain(released, convert):
    frame = getattr(released, convert)()
    assert list(frame.columns) == ["sex", "age", "job", "count", "standard_error", "lower_95", "upper_95"]
    assert list(frame["count"]) == released.counts.reshape(-1).tolist()
    assert list(frame["age"])[:3] == ["0-14", "0-14", "15-64"]


def test_an_arrow_table_has_labels_as_ordered_dictionaries(released):
    arrow = released.to_arrow()
    assert arrow.schema.field("age").type.ordered
    assert arrow.column("job").to_pylist()[:2] == ["none", "paid, or self"]
    assert arrow.column("count").to_pylist() == released.counts.reshape(-1).tolist()


def test_a_total_has_one_row_and_no_labels():
    total = a_release(work="[][sex]")[()]
    assert total.to_arrow().num_rows == len(total.to_pandas()) == len(total.to_polars()) == 1
    assert total[()] == total.total
    assert repr(total) == "<ReleasedTable total>"


def test_an_attribute_called_count_keeps_its_name_and_the_count_gives_way():
    table = Table(Domain({"count": ["one", "two"], "count_": ["x"]}), [[1], [2]])
    released = ReleasedTable(table, CellErrors(DiscreteLaplace(1), np.ones((2, 1), dtype=np.int64)))
    frame = released.to_pandas()
    assert list(frame["count"]) == ["one", "two"]
    assert list(frame["count__"]) == [1, 2]
    assert column_names(released.margin)[0] == "count__"


def test_the_repr_shows_the_shape(released):
    assert repr(released) == "<ReleasedTable sex 2 × age 3 × job 2>"
