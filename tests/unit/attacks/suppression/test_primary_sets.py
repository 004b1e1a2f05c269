"""The attack of somebody who knows how cells are suppressed, against every table that it may be."""

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from tabulary.attacks.suppression.primary_sets import primary_sets
from tabulary.attacks.suppression.published_tables import AttackedTables
from tabulary.core.domain import Domain
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.core.table import Table
from tabulary.errors import CannotProtect, InvalidArgument, InvalidTable, TooManyCells
from tabulary.suppress.classical_method.classical import classical
from tabulary.suppress.classical_method.rules import Threshold
from tests.published_tables import explanations, hidden, same_sums, smallest_protecting, two_way

SHAPES = st.sampled_from([(2, 2), (2, 3), (3, 2)])


@st.composite
def custodians(draw):
    """A table, the rule, and a smallest pattern that the custodian may have published it with."""
    shape = draw(SHAPES)
    rule = Threshold(draw(st.integers(0, 2)), zeros=draw(st.booleans()))
    values = draw(st.lists(st.integers(0, 4), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    counts = np.array(values).reshape(shape)
    primary = rule.sensitive(counts)
    choices = smallest_protecting(counts, primary, same_sums(counts))
    if not choices:
        return rule, counts, primary, None
    return rule, counts, primary, draw(st.sampled_from(choices))


def found(table, rule, **options):
    return primary_sets(AttackedTables.of([table]), rule=rule, **options)


@settings(max_examples=60, deadline=None)
@given(custodians())
def test_exactly_the_sets_and_bounds_of_all_tables_that_would_be_published_so_are_found(case):
    rule, counts, primary, pattern = case
    if pattern is None or not pattern.any():
        return
    table = two_way(counts, pattern)
    guessed = found(table, rule)
    sets = {each.numbers: (each.lower.ravel().tolist(), each.upper.ravel().tolist()) for each in guessed.sets}
    assert sets == explanations(table, rule)
    assert tuple((np.flatnonzero(primary) + 1).tolist()) in sets
    assert not (guessed.always & ~primary).any()
    assert not (primary & ~guessed.sometimes).any()


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_what_the_custodian_of_this_house_hid_is_among_the_sets(data):
    counts = np.reshape(data.draw(st.lists(st.integers(0, 12), min_size=12, max_size=12)), (3, 4))
    rule = Threshold(data.draw(st.integers(0, 2)), zeros=data.draw(st.booleans()))
    primary = rule.sensitive(counts)
    assume(0 < primary.sum() <= 4)
    try:
        made = classical(Table(Domain({"a": range(3), "b": range(4)}), counts), rule)
    except CannotProtect:
        reject()
    assert made.optimal
    sets = {each.numbers for each in found(made.published, rule).sets}
    assert tuple((np.flatnonzero(primary) + 1).tolist()) in sets


def test_the_sets_come_in_order_with_the_bounds_under_each():
    guessed = found(hidden(np.full((2, 3), np.nan), {"a": [110, 105], "b": [55, 105, 55]}), Threshold(5))
    assert [each.cells for each in guessed.sets] == [((0, 0), (0, 2), (1, 1)), ((0, 1), (1, 0), (1, 2))]
    assert guessed.sets[1].lower.tolist() == [[50, 0, 50], [0, 100, 0]]
    assert guessed.sets[1].upper.tolist() == [[55, 5, 55], [5, 105, 5]]
    assert not guessed.always.any()
    assert guessed.sometimes.all()
    lower, upper = guessed.bounds
    assert lower.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert upper.tolist() == [[55, 105, 55], [55, 105, 55]]


def test_empty_cells_protect_less_and_may_explain_a_larger_pattern():
    # Two empty cells side by side: neither can make room for the other, so four cells are not enough.
    guessed = found(two_way([[3, 3, 4], [0, 0, 4]], True), Threshold(0))
    assert [each.numbers for each in guessed.sets] == [(4, 5)]
    assert guessed.always.tolist() == [[False] * 3, [True, True, False]]
    assert guessed.bounds[0].tolist() == guessed.bounds[1].tolist() == [[3, 3, 4], [0, 0, 4]]


def test_without_minimality_every_set_that_the_rule_allows_is_possible():
    table = hidden(np.full((2, 3), np.nan), {"a": [110, 105], "b": [55, 105, 55]})
    guessed = found(table, Threshold(5), minimal=False)
    sets = {each.numbers for each in guessed.sets}
    assert {(1, 3, 5), (2, 4, 6), (1,), ()} <= sets
    # No two in a column, and no three in a row: the sums are too large.
    assert (1, 4) not in sets
    assert (1, 2, 3) not in sets
    assert not guessed.minimal


def test_a_three_way_table_is_attacked_with_the_rule_alone():
    table = hidden(
        np.full((2, 2, 2), np.nan), {"ab": [[9, 1], [9, 9]], "ac": [[5, 5], [9, 9]], "bc": [[9, 9], [5, 5]]}
    )
    with pytest.raises(InvalidArgument, match="minimal=False"):
        found(table, Threshold(2))
    guessed = found(table, Threshold(2), minimal=False)
    assert guessed.sets
    # The sum of these two is 1, so both are small, whatever else is.
    assert guessed.always[0, 1].all()


def test_other_tables_narrow_the_sets_down():
    table = hidden(np.full((2, 3), np.nan), {"a": [110, 105], "b": [55, 105, 55]})
    corner = hidden([[np.nan] * 3, [4, np.nan, np.nan]])
    (only,) = primary_sets(AttackedTables.of([table, corner]), rule=Threshold(5)).sets
    assert only.numbers == (2, 4, 6)


def test_a_table_made_in_another_way_has_no_set():
    # Nothing is sensitive under this rule, and yet four cells are suppressed.
    none = found(two_way([[30, 40], [40, 40]], True), Threshold(0, zeros=False))
    assert none.sets == ()
    assert none.bounds is None
    assert not none.always.any()
    assert not none.sometimes.any()


def test_a_published_cell_that_the_rule_calls_sensitive_is_refused():
    table = two_way([[3, 9, 9], [9, 9, 9], [9, 9, 9]], [[0, 0, 0], [0, 1, 1], [0, 1, 1]])
    with pytest.raises(InvalidTable, match="another rule"):
        found(table, Threshold(5))


def test_amounts_and_impossible_cells_are_refused():
    with pytest.raises(InvalidArgument, match="amounts"):
        found(two_way([[1.5, 2], [3, 4]], True, whole=False), Threshold(5))
    domain = Domain({"a": "xy", "b": "xy"}, [{"a": "x", "b": "x"}])
    table = SuppressedTable(domain, np.full((2, 2), np.nan), {("a",): [40, 90], ("b",): [70, 60]})
    with pytest.raises(InvalidArgument, match="structural zeros"):
        found(table, Threshold(5))
    assert [each.cells for each in found(table, Threshold(5), minimal=False).sets] == [()]


def test_too_many_guesses_are_refused():
    table = two_way(np.full((6, 6), 7), True)
    with pytest.raises(TooManyCells, match="more than 50 steps"):
        found(table, Threshold(5), steps=50)
    with pytest.raises(TooManyCells, match="table 1 has 64 suppressed cells"):
        found(two_way(np.full((8, 8), 7), True), Threshold(5))


def test_progress_is_told():
    told = []
    found(two_way([[1, 20], [30, 40]], True), Threshold(5), progress=lambda *step: told.append(step))
    assert told[0] == ("guessing the sensitive cells", 1, 0)
