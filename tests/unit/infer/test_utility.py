import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary import Domain, Table
from tabulary.errors import InvalidTable
from tabulary.infer import loglinear, utility
from tabulary.noise import DiscreteLaplace
from tabulary.planning import CellErrors
from tabulary.release import ReleasedTable

DOMAIN = Domain({"A": "xy", "B": "xyz"})
tables = st.lists(st.integers(-3, 30), min_size=6, max_size=6).map(
    lambda c: Table(DOMAIN, np.reshape(c, (2, 3)))
)


@given(tables, tables)
def test_the_margins_differ_by_their_absolute_differences(one, two):
    found = utility.margin_l1(one, two, "[A][B][AB]")
    assert found[("A",)] == np.abs(one.counts.sum(axis=1) - two.counts.sum(axis=1)).sum()
    assert found[("B",)] == np.abs(one.counts.sum(axis=0) - two.counts.sum(axis=0)).sum()
    assert found[("A", "B")] == np.abs(one.counts - two.counts).sum()
    # Adding up can only cancel.
    assert found[("A",)] <= found[("A", "B")]


@given(tables, tables, tables)
def test_distances_of_distributions_are_distances(one, two, three):
    assert utility.distribution_l1(one, one) == 0
    assert utility.distribution_l1(one, two) == utility.distribution_l1(two, one)
    assert 0 <= utility.distribution_l1(one, two) <= 2 + 1e-12
    through = utility.distribution_l1(one, three) + utility.distribution_l1(three, two)
    assert utility.distribution_l1(one, two) <= through + 1e-12
    assert utility.total_variation(one, two) == utility.distribution_l1(one, two) / 2


@given(tables)
def test_total_variation_is_the_largest_difference_of_any_set_of_cells(one):
    even = Table(DOMAIN, np.ones((2, 3)))
    counts = np.maximum(one.counts, 0)
    share = counts / counts.sum() if counts.any() else np.full((2, 3), 1 / 6)
    assert utility.total_variation(one, even) == pytest.approx(np.maximum(share - 1 / 6, 0).sum())


def test_fits_are_compared_as_distributions():
    table = Table(DOMAIN, [[5, 2, 9], [1, 8, 4]])
    twice = Table(DOMAIN, 2 * table.counts)
    assert utility.fit_l1(table, twice, "[A][B]") == pytest.approx(0)
    other = Table(DOMAIN, [[5, 2, 4], [6, 8, 4]])
    fits = [loglinear(t, "[A][B]").fitted.counts for t in (table, other)]
    expected = np.abs(fits[0] / fits[0].sum() - fits[1] / fits[1].sum()).sum()
    assert utility.fit_l1(table, other, "[A][B]") == pytest.approx(expected)
    assert utility.fit_total_variation(table, other, "[A][B]") == pytest.approx(expected / 2)


def test_the_change_of_g2_is_that_of_the_released_table_as_it_stands():
    table, other = Table(DOMAIN, [[5, 2, 9], [1, 8, 4]]), Table(DOMAIN, [[5, 2, 4], [6, 8, 4]])
    released = ReleasedTable(other, CellErrors(DiscreteLaplace(2), np.ones((2, 3), dtype=np.int64)))
    change = loglinear(other, "[A][B]").g2 - loglinear(table, "[A][B]").g2
    assert utility.g2_change(table, released, "[A][B]") == change
    assert utility.g2_change(released, table, [("A",), ("B",)]) == -change


def test_tables_of_different_cells_are_not_compared():
    with pytest.raises(InvalidTable, match="Project or transpose"):
        utility.distribution_l1(Table(DOMAIN, np.ones((2, 3))), Table(Domain({"A": "xy"}), [1, 2]))
