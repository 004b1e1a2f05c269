"""What protects a cell when others are empty, against the attacker's own programs and against all patterns."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.attacks.suppression.empty_cells import exposed, protected_by
from tabulary.attacks.suppression.intervals import intervals
from tabulary.attacks.suppression.published_tables import AttackedTables
from tests.oracles.smallest_pattern import bridges, smallest_pattern
from tests.published_tables import two_way


def cells(mask):
    return frozenset(tuple(cell) for cell in np.argwhere(mask).tolist())


@st.composite
def masks(draw, shape):
    size = shape[0] * shape[1]
    return np.reshape(draw(st.lists(st.booleans(), min_size=size, max_size=size)), shape)


@st.composite
def patterns(draw):
    shape = draw(st.integers(2, 3)), draw(st.integers(2, 4))
    return draw(masks(shape)), draw(masks(shape))


@settings(max_examples=60, deadline=None)
@given(patterns())
def test_exposed_are_the_cells_whose_interval_is_one_value(case):
    pattern, empty = case
    table = two_way(np.where(empty, 0, 5), pattern)
    known = {each.place.index for each in intervals(AttackedTables.of([table])) if each.disclosed}
    assert exposed(cells(pattern), cells(empty)) == known


@given(patterns())
def test_without_empty_cells_they_are_those_on_no_cycle(case):
    pattern, _ = case
    assert exposed(cells(pattern), frozenset()) == cells(bridges(pattern))


@settings(deadline=None)
@given(patterns())
def test_so_many_cells_protect_if_some_pattern_of_so_many_does(case):
    primary, empty = cells(case[0] & (np.cumsum(case[0]).reshape(case[0].shape) <= 4)), cells(case[1])
    shape = case[0].shape
    rest = [cell for cell in np.ndindex(shape) if cell not in primary]
    enough = next(
        (
            len(primary) + more
            for more in range(len(rest) + 1)
            if any(not exposed(primary.union(added), empty) & primary for added in combinations(rest, more))
        ),
        np.inf,
    )
    for most in range(len(rest) + len(primary) + 1):
        assert protected_by(primary, empty, shape, most) == (most >= enough)


@given(patterns())
@settings(max_examples=50, deadline=None)
def test_without_empty_cells_the_fewest_are_those_of_the_smallest_pattern(case):
    primary = case[0] & (np.cumsum(case[0]).reshape(case[0].shape) <= 4)
    needed = smallest_pattern(primary.shape, primary)
    for most in range(primary.size + 1):
        assert protected_by(cells(primary), frozenset(), primary.shape, most) == (
            needed is not None and most >= needed
        )
