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
from tabulary_papers.noise_aware_tests.printed import DEPENDENT, INDEPENDENT, NAIVE, ORIGINAL, RATIO, TABLE_3
from tabulary_papers.noise_aware_tests.study import INTERACTIONS, LEVEL, WEAKLY

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


# Table 3 as it stands on the page: ε = 0.1 and then 0.5, m = 10 at the left and 7 at the right.
PRINTED_TABLE_3 = """
    5.0 81.6 (0.395) 0.487 (0.009) 6.0 81.7 (0.423) 0.487 (0.009)
    86.7 124.5 (0.616) 0.027 (0.002) 53.3 105.1 (0.524) 0.123 (0.006)
    3.0 78.6 (0.388) 0.555 (0.009) 4.0 80.1 (0.400) 0.521 (0.009)
    79.3 118.8 (0.587) 0.044 (0.003) 87.3 124.8 (0.620) 0.027 (0.003)
    99.6 162.1 (0.792) 0.001 (0.000) 98.3 149.2 (0.742) 0.004 (0.001)
    51.0 103.6 (0.526) 0.140 (0.006) 73.3 114.5 (0.583) 0.066 (0.004)
    5.8 81.7 (0.414) 0.485 (0.009) 4.7 81.4 (0.395) 0.485 (0.009)
    25.4 92.9 (0.476) 0.274 (0.008) 18.7 90.8 (0.435) 0.299 (0.008)
    6.9 82.5 (0.419) 0.467 (0.009) 5.3 82.0 (0.391) 0.473 (0.009)
    82.1 118.3 (0.551) 0.041 (0.003) 81.3 119.6 (0.591) 0.040 (0.003)
    91.3 129.3 (0.601) 0.017 (0.002) 91.0 128.6 (0.627) 0.018 (0.002)
    76.3 114.8 (0.532) 0.054 (0.004) 76.9 116.2 (0.567) 0.051 (0.003)
"""


def test_the_study_holds_our_numbers_against_the_printed_table_3():
    numbers = np.array(PRINTED_TABLE_3.replace("(", "").replace(")", "").split(), dtype=float).reshape(
        12, 2, 5
    )
    places = [
        (epsilon, kind, test)
        for epsilon in ("0.1", "0.5")
        for kind in (INDEPENDENT, DEPENDENT)
        for test in (ORIGINAL, NAIVE, RATIO)
    ]
    for (epsilon, kind, test), line in zip(places, numbers, strict=True):
        for bound, values in zip((10, 7), line, strict=True):
            found = TABLE_3[epsilon, bound, kind, test]
            assert [100 * found.share, found.statistic, found.statistic_error, found.p, found.p_error] == (
                pytest.approx(values.tolist())
            )


def test_the_dependent_tables_of_table_3_do_not_have_the_interaction_that_is_stated():
    """Near independence the statistic is 81 more or less, and the interaction adds its noncentrality.

    Σ μ (γ - what row and column explain)², with 81 of 100 degrees of freedom left, γ even between -½ and ½ and a mean
    count of exp(4) (2 sinh ½)².
    """
    count = math.exp(LEVEL) * (2 * math.sinh(0.5)) ** 2
    expected = {kind: 81 + 81 * count * c**2 / 12 for kind, c in INTERACTIONS.items()}
    printed = [
        line.statistic
        for (_, _, kind, test), line in TABLE_3.items()
        if (kind, test) == (DEPENDENT, ORIGINAL)
    ]
    assert np.mean(printed) == pytest.approx(expected[WEAKLY], abs=3)
    assert expected[DEPENDENT] > 2 * max(printed)
