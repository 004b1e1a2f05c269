"""Pearson's χ² and Cramér's V of a table taken at face value."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import tabulary as tb
from tabulary.errors import InvalidTable
from tabulary.studies.association import chi_squared, cramers_v


def table_of(counts):
    counts = np.asarray(counts)
    return tb.Table(tb.Domain({name: range(n) for name, n in zip("ab", counts.shape, strict=True)}), counts)


def test_the_census_table_has_the_association_of_its_page():
    census = tb.datasets.load("uk-census")
    assert chi_squared(census) == pytest.approx(3839.05, abs=0.005)
    assert cramers_v(census) == pytest.approx(0.25763, abs=5e-6)


@given(arrays(np.int64, st.tuples(st.integers(2, 6), st.integers(2, 6)), elements=st.integers(1, 500)))
def test_it_is_the_statistic_of_another_implementation(counts):
    expected = scipy.stats.chi2_contingency(counts, correction=False).statistic
    assert chi_squared(table_of(counts)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    association = scipy.stats.contingency.association(counts, method="cramer")
    assert cramers_v(table_of(counts)) == pytest.approx(association, rel=1e-9, abs=1e-6)


@given(arrays(np.int64, st.tuples(st.integers(2, 5), st.integers(2, 5)), elements=st.integers(0, 20)))
def test_it_lies_between_zero_and_one_and_does_not_care_for_order_or_empty_levels(counts):
    found = cramers_v(table_of(counts))
    assert 0 <= found <= 1 + 1e-12
    assert cramers_v(table_of(counts[::-1].T)) == pytest.approx(found, abs=1e-12)
    assert cramers_v(table_of(np.pad(counts, ((0, 1), (1, 0))))) == pytest.approx(found, abs=1e-12)


def test_it_is_one_for_full_association_and_zero_for_independence():
    assert cramers_v(table_of(np.diag([3, 5, 9]))) == pytest.approx(1)
    assert cramers_v(table_of(np.outer([1, 2, 3], [4, 5]))) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("counts", [[[0, 0], [0, 0]], [[3, 4], [0, 0]], [[3, 0], [7, 0]]])
def test_it_is_zero_where_nothing_varies_together(counts):
    assert cramers_v(table_of(counts)) == 0
    assert chi_squared(table_of(counts)) == 0


def test_other_tables_are_refused():
    with pytest.raises(InvalidTable, match="Project it on two"):
        cramers_v(tb.datasets.load("rochdale"))
    with pytest.raises(InvalidTable, match="minimum=0"):
        chi_squared(table_of([[1, -1], [2, 3]]))
