import math

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.planning import StatedErrors
from tabulary.release import ReleasedTable
from tabulary.release.figure import cells_of
from tabulary.release.relative_errors import (
    largest_relative_errors,
    median_relative_error,
    relative_errors,
    show_share,
)
from tests.unit.release.releases import a_release
from tests.unit.release.test_heat_map import table_of


def by_hand(table):
    """The error of every possible cell beside its count, one by one."""
    return [
        cell.half_width / cell.count if cell.count > 0 else math.inf
        for cell in cells_of(table)
        if not cell.impossible
    ]


@pytest.mark.parametrize("margin", [("sex",), ("age", "job"), ("sex", "age", "job")])
def test_cells_are_counted_by_how_large_their_error_is_beside_the_count(margin):
    table = a_release(mechanism="margins", reconstruct="none")[margin]
    found, shares = relative_errors(table), by_hand(table)
    assert found.cells == len(shares)
    assert found.above == (
        sum(s > 0.1 for s in shares),
        sum(s > 0.5 for s in shares),
        sum(s >= 1 for s in shares),
    )
    assert found.median == pytest.approx(np.median(shares))
    assert found.worst.relative == max(s for s in shares if math.isfinite(s))


def test_a_count_that_is_not_positive_has_no_relative_error_and_is_counted():
    found = relative_errors(table_of([[0, -5], [500, 20]]))
    assert found.without == 2
    assert found.above[0] >= 2
    assert found.worst.count == 20
    assert relative_errors(table_of([[0, -5], [0, 0]])).worst is None
    assert math.isinf(relative_errors(table_of([[0, -5], [0, 5]])).median)


def test_the_largest_relative_errors_come_from_all_tables_and_the_largest_first():
    tables = [table_of([[3, 900], [5, 7]]), table_of([[1, 2], [4, 800]], ("first", "second"))]
    found = largest_relative_errors(tables, 4, most_of_one=2)
    assert [cell.count for cell in found] == [1, 2, 3, 5]
    assert found[0].named == "first: first 0; second: second 0"
    assert found[0].shown == f"1 ± {found[0].half_width}"
    assert len(largest_relative_errors(tables, 2, most_of_one=2)) == 2


def test_an_error_of_a_tenth_or_less_is_not_among_the_largest():
    table = table_of([[1000, 900], [800, 12]])
    assert [cell.count for cell in largest_relative_errors([table], 10, most_of_one=10)] == [12]


def test_a_count_that_prints_as_zero_is_not_a_positive_one():
    table = Table(Domain({"a": "xyz"}), [1e-31, 0.04, 60.0])
    released = ReleasedTable(table, StatedErrors(np.full(3, 3.0), np.full(3, 6.0)))
    assert relative_errors(released).without == 2
    assert [cell.count for cell in largest_relative_errors([released], 10, most_of_one=10)] == []
    assert relative_errors(released).worst.count == 60


def test_the_median_is_over_the_cells_of_all_tables():
    tables = tuple(a_release(mechanism="margins", reconstruct="none"))
    assert median_relative_error(tables) == pytest.approx(np.median([s for t in tables for s in by_hand(t)]))


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0, "0 %"), (0.004, "0.4 %"), (0.0994, "9.9 %"), (0.0996, "10 %"), (math.inf, "no positive count")],
)
def test_a_share_is_shown_with_the_digits_that_matter(share, shown):
    assert show_share(share) == shown
