"""Made-up tables of two attributes."""

import numpy as np
import pytest
from scipy import stats

from tabulary.errors import InvalidTable
from tabulary.infer import independence
from tabulary_papers.datasets.two_way import independent_table, log_linear_table

MAKERS = [
    lambda seed: independent_table((4, 5), 700, seed=seed),
    lambda seed: log_linear_table((4, 5), seed=seed),
]


def test_an_independent_table_holds_everybody():
    table = independent_table((10, 100), 10_000)
    assert table.shape == (10, 100)
    assert table.total == 10_000


@pytest.mark.parametrize("interaction", [0.0, 0.7])
def test_without_interaction_nothing_is_to_be_found_and_with_it_much(interaction):
    rejected = [
        independence(log_linear_table((10, 10), interaction=interaction, seed=seed), "naive").p_value <= 0.05
        for seed in range(60)
    ]
    # 60 tests of 5 % reject more than 9 with a probability of 0.002.
    assert sum(rejected) == 60 if interaction else sum(rejected) <= 9


def test_independent_tables_have_p_values_that_are_even():
    found = [independence(independent_table((4, 6), 5_000, seed=seed), "naive").p_value for seed in range(80)]
    assert stats.kstest(found, "uniform").pvalue > 1e-3
    # The test has power: half the p-values would be seen.
    assert stats.kstest(np.array(found) / 2, "uniform").pvalue < 1e-3


def test_a_larger_concentration_makes_levels_more_alike():
    spreads = [
        independent_table((20, 2), 100_000, concentration=c).project(["row"]).counts.std() for c in (1, 100)
    ]
    assert spreads[1] < spreads[0] / 3


def test_counts_are_as_large_as_the_level_says():
    means = [log_linear_table((10, 10), level=level).counts.mean() for level in (4.0, 5.9)]
    assert means[0] == pytest.approx(np.exp(4.0) * 1.085, rel=0.15)
    assert means[1] == pytest.approx(400, rel=0.15)


@pytest.mark.parametrize("make", MAKERS)
def test_the_same_seed_gives_the_same_table_and_another_one_another(make):
    first, again, other = (make(seed).counts for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("shape", [(0, 3), (3,), (2_000, 2_000), (-1, 2)])
def test_shapes_that_cannot_be_are_refused(shape):
    for make in (lambda: independent_table(shape, 10), lambda: log_linear_table(shape)):
        with pytest.raises(InvalidTable, match="rows and columns"):
            make()


def test_people_shares_and_logarithms_that_cannot_be_are_refused():
    for people in (0, 1.5, True):
        with pytest.raises(InvalidTable, match="number of people"):
            independent_table((2, 2), people)
    for concentration in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InvalidTable, match="concentration"):
            independent_table((2, 2), 10, concentration=concentration)
    for level in (31, float("nan")):
        with pytest.raises(InvalidTable, match="logarithms"):
            log_linear_table((2, 2), level=level)
