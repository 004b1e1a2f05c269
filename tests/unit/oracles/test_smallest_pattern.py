from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tabulary.errors import InvalidTable
from tests.oracles.smallest_pattern import bridges, smallest_pattern

shapes = st.sampled_from([(2, 2), (2, 3), (3, 2), (3, 3), (2, 5), (3, 4)])


def disclosed(pattern):
    """Which suppressed cells follow from the sums: no table with zero sums, zero elsewhere, is non-zero there."""
    cells = np.argwhere(pattern)
    sums = np.zeros((sum(pattern.shape), len(cells)))
    for place, (row, column) in enumerate(cells):
        sums[row, place] = sums[pattern.shape[0] + column, place] = 1
    _, values, vectors = np.linalg.svd(sums)
    free = vectors[(values > 1e-9).sum() :]
    found = np.zeros(pattern.shape, dtype=bool)
    found[tuple(cells.T)] = (np.abs(free) < 1e-9).all(axis=0)
    return found


def least(primary):
    others = np.argwhere(~primary)
    for extra in range(len(others) + 1):
        for added in combinations(others, extra):
            pattern = primary.copy()
            for cell in added:
                pattern[tuple(cell)] = True
            if not (disclosed(pattern) & primary).any():
                return int(pattern.sum())
    return None


@given(shapes.flatmap(lambda shape: arrays.arrays(bool, shape)))
def test_bridges_are_the_cells_that_follow_from_the_sums(pattern):
    if pattern.any():
        np.testing.assert_array_equal(bridges(pattern), disclosed(pattern))


@settings(deadline=None, max_examples=60)
@given(shapes.flatmap(lambda shape: arrays.arrays(bool, shape)))
def test_the_smallest_pattern_is_the_least_over_all_patterns(primary):
    assert smallest_pattern(primary.shape, primary) == (least(primary) if primary.any() else 0)


def test_one_two_or_three_sensitive_cells_of_nabar_and_mishras_table_need_four_or_six():
    for cells in combinations(range(6), 1):
        assert smallest_pattern((2, 3), np.isin(np.arange(6), cells).reshape(2, 3)) == 4
    for cells in combinations(range(6), 2):
        # Two in a row of three columns: the four of their columns; never more than four.
        assert smallest_pattern((2, 3), np.isin(np.arange(6), cells).reshape(2, 3)) == 4
    assert smallest_pattern((2, 3), [[True, False, True], [False, True, False]]) == 6


def test_a_table_of_one_row_has_no_pattern():
    assert smallest_pattern((1, 4), [[True, False, False, False]]) is None
    assert smallest_pattern((1, 4), [[False] * 4]) == 0


@given(arrays.arrays(bool, (6, 6), elements=st.sampled_from([True, False, False, False])), st.randoms())
def test_the_order_of_rows_and_columns_does_not_matter(primary, random):
    rows, columns = (random.sample(range(6), 6) for _ in range(2))
    shuffled = primary[np.ix_(rows, columns)]
    assert smallest_pattern((6, 6), shuffled) == smallest_pattern((6, 6), primary)


def test_a_pattern_of_another_shape_is_refused():
    with pytest.raises(InvalidTable, match="shape"):
        smallest_pattern((2, 3), np.zeros((3, 2), dtype=bool))
