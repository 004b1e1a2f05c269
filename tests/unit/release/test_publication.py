"""A table with its words, and what a reader must know of each number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import InvalidTable
from tabulary.noise import DiscreteLaplace
from tabulary.planning import CellErrors, StatedErrors
from tabulary.release.publication import Publication, Status, plain_number, told_apart
from tabulary.release.table import ReleasedTable
from tests.unit.release.publications import a_publication, withheld_publication

SEX = Domain({"sex": ["F", "M"]})


def test_a_cell_is_estimated_doubted_or_impossible():
    assert a_publication().marks() == ["e", "z", "e", "e", "e", "u"]


def test_a_count_whose_interval_lies_below_zero_is_doubted():
    published = Publication(
        SEX, np.array([-40, 40]), (np.array([2.8, 2.8]), np.array([-46, 34]), np.array([-34, 46]))
    )
    assert published.marks() == ["u", "e"]


def test_a_zero_without_an_error_is_not_called_impossible_unless_the_domain_says_so():
    zero = StatedErrors(np.zeros(2), np.zeros(2))
    assert Publication.of(ReleasedTable(Table(SEX, [0, 0]), zero)).marks() == ["u", "u"]


def test_a_slice_keeps_its_impossible_cells():
    domain = Domain({"age": ["young", "old"], "job": ["none", "paid"]}, [{"age": "young", "job": "paid"}])
    table = ReleasedTable(
        Table(domain, [[30, 0], [50, 60]]), CellErrors(DiscreteLaplace(3), np.array([[1, 0], [1, 1]]))
    )
    assert Publication.of(table.slice(age="young")).marks() == ["e", "z"]


def test_without_known_errors_nothing_is_said_of_an_interval():
    published = withheld_publication()
    assert published.marks() == ["e", "c"]
    assert published.values("count") == [12, None]
    assert list(published.measures) == ["count"]
    assert "interval" not in " ".join(published.small_print())


def test_the_measures_and_the_meaning_tell_the_confidence():
    table = ReleasedTable(Table(SEX, [120, 1]), CellErrors(DiscreteLaplace(3), np.array([1, 1])))
    published = Publication.of(table, confidence=0.9)
    assert list(published.measures) == ["count", "standard_error", "lower_90", "upper_90"]
    assert published.values("upper_90") == table.interval(0.9)[1].tolist()
    assert "90 %" in published.meaning(Status.estimated)


def test_the_heading_is_the_title_or_what_the_table_is_by():
    assert a_publication().heading == "People by Age and job"
    assert a_publication(title="Work").heading == "Work"
    assert Publication(Domain({}), np.array(7), None).heading == "Number of people"


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ([1, 2, 3], "do not have the shape of its domain"),
        ([1.0, float("nan")], "a number that is not finite"),
        ([1.0, float("inf")], "a number that is not finite"),
    ],
)
def test_numbers_that_are_no_table_are_refused(counts, reason):
    with pytest.raises(InvalidTable, match=reason):
        Publication(SEX, np.array(counts), None)


@given(st.lists(st.sampled_from(["a", "a_2", "a_2_2", "b"])), st.sets(st.sampled_from(["a", "b_2"])))
def test_names_are_told_apart_and_those_that_are_free_stay(names, taken):
    found = told_apart(names, taken=taken)
    assert len({*found, *taken}) == len(found) + len(taken)
    for place, name in enumerate(names):
        if name not in taken and name not in names[:place]:
            assert found[place] == name


@given(st.one_of(st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_plain_number_has_no_exponent_and_reads_back(value):
    text = plain_number(value)
    assert "e" not in text
    assert type(value)(text) == value
