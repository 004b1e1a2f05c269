"""Numbers that Rinott, O'Keefe, Shlomo & Skinner (2018) print about tests: UK census association, and section 6.2.

What they simulate once in 500 values is computed exactly here, so a printed number may be off by its own noise.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tabulary import datasets
from tabulary.infer import IndependentNoise, goodness_of_fit, independence
from tabulary.infer.binomial import OneCount
from tabulary.noise import DiscreteLaplace, Truncated
from tabulary.perturb import Laplace

TOTAL, TRUTH = 80, 0.5
# The standard error of a share of 500 simulated values near 0.95.
STANDARD_ERROR = math.sqrt(0.95 * 0.05 / 500)


def law_of_statistics(bound, p0):
    """The statistic of every released value when p = 0.5, and the probability of the value."""
    noise = Truncated(DiscreteLaplace(2), bound)
    count = OneCount(TOTAL, IndependentNoise(noise, np.array([1])))
    values = np.arange(-bound, TOTAL + bound + 1)
    counts = np.arange(TOTAL + 1)
    chances = np.array([stats.binom.pmf(counts, TOTAL, TRUTH) @ noise.pmf(x - counts) for x in values])
    return np.array([count.statistic(int(x), p0) for x in values]), chances


def test_uk_census_table_has_the_association_that_is_recomputed_from_it():
    table = datasets.load("uk-census")
    found = independence(table, "naive", statistic="x2")
    assert found.statistic == pytest.approx(3839.05, abs=0.005)
    assert found.degrees_of_freedom == 110
    assert math.sqrt(found.statistic / (table.total * 10)) == pytest.approx(0.25763, abs=5e-6)
    assert found.p_value < 1e-300


def test_uk_census_association_is_found_behind_the_perturbation_of_the_paper():
    published = Laplace(1.5, bound=7).apply(datasets.load("uk-census"))
    found = independence(published)
    assert found.degrees_of_freedom == 110
    assert found.p_value < 1e-100


@pytest.mark.parametrize(("bound", "critical", "power"), [(5, 3.36, 0.95), (10, 3.82, 0.92)])
def test_figure_4_has_the_critical_value_and_the_power_of_the_exact_law(bound, critical, power):
    statistics, chances = law_of_statistics(bound, 0.5)
    assert chances.sum() == pytest.approx(1)
    # The statistic takes few values, and the printed critical one is one of them.
    nearest = statistics[np.argmin(np.abs(statistics - critical))]
    assert nearest == pytest.approx(critical, abs=0.005)
    # It is the empirical point with 95 % below: with and without its own probability it spans that, or nearly.
    below = chances[statistics < nearest - 1e-9].sum()
    up_to = chances[statistics <= nearest + 1e-9].sum()
    assert below - 3 * STANDARD_ERROR <= 0.95 <= up_to + 3 * STANDARD_ERROR
    against, _ = law_of_statistics(bound, 0.7)
    exact = chances[against > critical].sum()
    assert exact == pytest.approx(power, abs=3 * STANDARD_ERROR)


def test_figure_4_loses_little_power_to_the_noise():
    """0.96 without noise, printed; the power of the same test on exact counts at the limit of χ²."""
    counts = np.arange(TOTAL + 1)
    exact = np.array([goodness_of_fit(int(x), TOTAL, 0.7, method="chi-squared").statistic for x in counts])
    power = stats.binom.pmf(counts, TOTAL, TRUTH)[exact > 3.84].sum()
    assert power == pytest.approx(0.96, abs=3 * STANDARD_ERROR)


def test_figure_4_resembles_chi_squared_with_one_degree_of_freedom():
    statistics, chances = law_of_statistics(5, 0.5)
    assert chances[statistics > 3.84].sum() == pytest.approx(0.05, abs=0.01)
    assert float(chances @ statistics) == pytest.approx(1, abs=0.05)
