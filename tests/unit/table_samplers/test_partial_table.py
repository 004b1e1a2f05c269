"""What is known of a table: its groups, its sums, and the bounds of its cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.errors import InvalidTable
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion
from tabulary.table_samplers.people import People
from tests.suppressed_tables import consistent_tables, known_table, small_tables

PEOPLE = People.of(
    Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark", "red"]}), [[5, 6, 7], [4, 3, 2]], 0.3
)
COUNTS = np.array([[2, 3, 1], [1, 0, 2]])


def _known(released=None):
    return known_table(PEOPLE.in_cells, 0.3, COUNTS, released=released)


def test_at_first_the_total_is_all_that_is_known():
    known = PartialTable.total(PEOPLE, 9)
    assert known.shape == (1, 1)
    assert known.count_law((0, 0)).size == 27
    assert known.upper.tolist() == [[27]]


def test_a_split_makes_two_groups_of_one_and_the_rest_follows():
    known = PartialTable.total(PEOPLE, 9).answered(SplitQuestion(axis=1, group=0, cut=1), 3)
    assert known.groups == (((0, 2),), ((0, 1), (1, 3)))
    assert known.sums[1].tolist() == [3, 6]
    assert known.count_law((0, 0)).size == 9
    again = known.answered(SplitQuestion(axis=1, group=1, cut=2), 3)
    assert again.groups[1] == ((0, 1), (1, 2), (2, 3))
    assert again.sums[1].tolist() == [3, 3, 3]


def test_a_released_cell_has_both_bounds_at_its_value():
    known = _known().answered(CellQuestion((0, 1)), 3)
    assert known.lower[0, 1] == known.upper[0, 1] == 3
    assert known.upper[0, 0] == 5


def test_a_table_is_known_by_its_sums_and_its_released_cells():
    cells = np.full((2, 3), np.nan)
    cells[1, 2] = 2
    known = PartialTable.table(PEOPLE, (COUNTS.sum(axis=1), COUNTS.sum(axis=0)), cells)
    assert known.shape == (2, 3)
    assert known.lower[1, 2] == known.upper[1, 2] == 2
    assert known.upper[0].tolist() == [5, 6, 7]


def test_an_answer_leaves_what_was_known_before_as_it_was():
    before = _known()
    before.answered(CellQuestion((0, 0)), 2)
    assert before.lower[0, 0] == 0


@pytest.mark.parametrize(
    ("contradiction", "what"),
    [
        (lambda: PartialTable.total(PEOPLE, 28), "contradicts its cells"),
        (lambda: PartialTable.total(PEOPLE, -1), "contradicts its cells"),
        (lambda: PartialTable.total(PEOPLE, 9).answered(SplitQuestion(0, 0, 1), 10), "contradicts its cells"),
        (
            lambda: PartialTable.total(PEOPLE, 25).answered(SplitQuestion(0, 0, 1), 10),
            "contradicts its cells",
        ),
        (lambda: PartialTable.table(PEOPLE, (np.array([6, 3]), np.array([3, 3, 4]))), "the same total"),
        (lambda: PartialTable.table(PEOPLE, (np.array([6, 3]), np.array([6, 3]))), "one sum for each group"),
        (lambda: _known().answered(CellQuestion((0, 1)), 7), "contradict its old bounds"),
        (lambda: _known().answered(CellQuestion((0, 1)), -1), "contradict its old bounds"),
        (lambda: _known().answered(CellQuestion((1, 0)), 4), "contradicts its cells"),
        (
            lambda: _known().answered(CellQuestion((0, 1)), 3).answered(CellQuestion((0, 1)), 2),
            "contradict its old bounds",
        ),
        (lambda: _known().bounded((0, 1), 3, 2), "lower bound is above"),
        (
            lambda: PartialTable.table(
                PEOPLE, (np.array([6, 3]), np.array([3, 3, 3])), np.array([[9.0, 0, 0], [0, 0, 0]])
            ),
            "above the number of people",
        ),
        (
            lambda: PartialTable.table(
                PEOPLE, (np.array([6, 3]), np.array([3, 3, 3])), np.array([[-1.0, 0, 0], [0, 0, 0]])
            ),
            "below zero",
        ),
        (lambda: PartialTable.total(PEOPLE, 9).answered(SplitQuestion(1, 0, 3), 3), "cannot be split"),
        (lambda: PartialTable.total(PEOPLE, 9).answered(SplitQuestion(1, 0, 0), 3), "cannot be split"),
    ],
)
def test_what_contradicts_itself_is_refused(contradiction, what):
    with pytest.raises(InvalidTable, match=what):
        contradiction()


@pytest.mark.parametrize("value", [0, 2])
def test_groups_are_not_split_once_a_cell_is_known(value):
    known = (
        PartialTable.total(PEOPLE, 9)
        .answered(SplitQuestion(0, 0, 1), 6)
        .answered(SplitQuestion(1, 0, 1), 3)
        .answered(CellQuestion((0, 0)), value)
    )
    with pytest.raises(InvalidTable, match="after a cell was released"):
        known.answered(SplitQuestion(1, 1, 2), 3)


@given(small_tables())
def test_bounds_that_follow_from_the_sums_lose_no_table(known):
    tighter = known.tightened()
    assert (tighter.lower >= known.lower).all()
    assert (tighter.upper <= known.upper).all()
    np.testing.assert_array_equal(consistent_tables(known)[0], consistent_tables(tighter)[0])


@given(small_tables(levels=2))
def test_the_bounds_of_a_table_of_two_rows_and_columns_are_all_that_can_be_said(known):
    tables, tighter = consistent_tables(known)[0], known.tightened()
    np.testing.assert_array_equal(tables.min(axis=0), tighter.lower)
    np.testing.assert_array_equal(tables.max(axis=0), tighter.upper)


@given(small_tables(axes=3, levels=2, people=3))
def test_bounds_follow_in_three_dimensions_too(known):
    tables, tighter = consistent_tables(known)[0], known.tightened()
    assert (tables >= tighter.lower).all()
    assert (tables <= tighter.upper).all()


def test_cells_that_no_table_can_have_are_found_out():
    known = PartialTable.table(
        People.of(Domain({"x": range(2), "y": range(2)}), [[3, 3], [3, 3]], 0.5),
        (np.array([3, 3]), np.array([3, 3])),
        np.array([[3, np.nan], [np.nan, 2.0]]),
    )
    with pytest.raises(InvalidTable, match="contradict"):
        known.tightened()


@given(small_tables(grouped=True), st.data())
def test_a_table_of_groups_has_the_people_of_all_their_levels(known, data):
    index = tuple(data.draw(st.integers(0, size - 1)) for size in known.shape)
    block = tuple(slice(*groups[i]) for groups, i in zip(known.groups, index, strict=True))
    assert known.count_law(index).size == known.people.in_cells[block].sum() == known.upper[index]
