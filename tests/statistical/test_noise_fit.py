"""Draws against the law they are meant to follow, and against laws that are one tenth too wide or too narrow.

A test that accepts the truth proves little by itself: each one here must also reject its sabotaged twins.
The level is one in a million and the entropy is seeded, so a failure is a defect and not bad luck.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tabulary.noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise, RoundedGaussian
from tests.entropy import SeededEntropy

LEVEL = 1e-6
DRAWS = 400_000
BINS = 800

# Below and above the switches from one value a block to many, far above them, and among the smallest.
WIDTHS = ["3/5", "3", "40", "105", "300", "1000", "4500", "1000000", "1000000000"]
every_width = pytest.mark.parametrize("width", [Fraction(width) for width in WIDTHS], ids=WIDTHS)
every_family = pytest.mark.parametrize(
    "family",
    [DiscreteLaplace, DiscreteGaussian.from_sigma, RoundedGaussian.from_sigma],
    ids=["laplace", "gaussian", "rounded gaussian"],
)
SABOTAGE = (Fraction(9, 10), Fraction(11, 10))


def quantiles(noise: IntegerNoise, probabilities: np.ndarray) -> np.ndarray:
    """The smallest integers at which the distribution function reaches the probabilities."""
    reach = noise.half_width(1 - 1e-9)
    low, high = np.full(probabilities.size, -reach), np.full(probabilities.size, reach)
    while (low < high).any():
        middle = (low + high) // 2
        reached = noise.cdf(middle) >= probabilities
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return low


def fit(draws: np.ndarray, noise: IntegerNoise) -> float:
    """The p-value of Pearson's chi-square over bins of equal probability and one bin for each tail."""
    edges = np.unique(quantiles(noise, np.concatenate([[1e-4], np.arange(1, BINS) / BINS, [1 - 1e-4]])))
    expected = np.diff(noise.cdf(edges), prepend=0.0, append=1.0)
    observed = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=edges.size + 1)
    kept = expected * draws.size >= 5
    observed = np.append(observed[kept], observed[~kept].sum())
    expected = np.append(expected[kept], expected[~kept].sum())
    filled = expected > 0
    statistic = np.sum(
        (observed[filled] - draws.size * expected[filled]) ** 2 / (draws.size * expected[filled])
    )
    return float(stats.chi2.sf(statistic, filled.sum() - 1))


def tail_fit(draws: np.ndarray, noise: IntegerNoise) -> float:
    """The p-value of the number of draws beyond the 98 % half-width."""
    h = noise.half_width(0.98)
    beyond = int(np.sum(np.abs(draws) > h))
    return float(stats.binomtest(beyond, draws.size, 2 * float(noise.cdf(-h - 1))).pvalue)


@every_family
@every_width
@pytest.mark.parametrize("test", [fit, tail_fit])
def test_draws_fit_their_law_and_no_law_a_tenth_away(family, width, test):
    noise = family(width)
    assert test(noise.sample(DRAWS, SeededEntropy(11)), noise) > LEVEL
    for factor in SABOTAGE:
        sabotaged = family(width * factor)
        assert test(sabotaged.sample(DRAWS, SeededEntropy(12)), noise) < LEVEL


@every_family
@pytest.mark.parametrize("width", [1000, 10**6])
def test_the_lowest_bits_of_wide_draws_are_as_even_as_the_law_says(family, width):
    noise = family(width)

    def evenness(draws: np.ndarray) -> float:
        # For so wide a law the remainders of |k| - 1 are uniform to one part in a hundred thousand.
        return float(stats.chisquare(np.bincount((np.abs(draws[draws != 0]) - 1) % 8, minlength=8)).pvalue)

    draws = noise.sample(DRAWS, SeededEntropy(13))
    assert evenness(draws) > LEVEL
    assert evenness(draws - draws % 2) < LEVEL


@every_family
@pytest.mark.parametrize("width", [40, 5000])
def test_a_draw_says_nothing_about_the_next(family, width):
    noise = family(width)

    def dependence(draws: np.ndarray) -> float:
        edges = quantiles(noise, np.arange(1, 8) / 8)
        cells = np.searchsorted(edges, draws, side="left")
        table = np.bincount(8 * cells[:-1:2] + cells[1::2], minlength=64).reshape(8, 8)
        return float(stats.chi2_contingency(table).pvalue)

    draws = noise.sample(DRAWS, SeededEntropy(14))
    assert dependence(draws) > LEVEL
    # Sabotage: one pair in fifty repeats its first draw.
    repeated = draws.copy()
    repeated[1::100] = repeated[0::100]
    assert dependence(repeated) < LEVEL


@pytest.mark.parametrize("sigma", [Fraction(3, 5), 3, 40, 300, 1000])
def test_rounded_draws_fit_the_normal_law_between_the_halves_and_no_law_a_tenth_away(sigma):
    """The law by scipy's normal distribution function, which shares no line with ours."""
    edges = np.unique(np.rint(stats.norm.ppf(np.arange(1, 200) / 200, scale=float(sigma)))) + 0.5
    expected = np.diff(stats.norm.cdf(edges, scale=float(sigma)), prepend=0.0, append=1.0)

    def fitting(draws: np.ndarray) -> float:
        observed = np.bincount(np.searchsorted(edges, draws), minlength=expected.size)
        return float(stats.chisquare(observed, draws.size * expected).pvalue)

    assert fitting(RoundedGaussian.from_sigma(sigma).sample(DRAWS, SeededEntropy(16))) > LEVEL
    for factor in SABOTAGE:
        assert fitting(RoundedGaussian.from_sigma(sigma * factor).sample(DRAWS, SeededEntropy(17))) < LEVEL


def test_a_rounded_gaussian_is_told_from_the_discrete_gaussian_where_they_differ():
    noise, other = RoundedGaussian(1), DiscreteGaussian(1)
    assert fit(noise.sample(DRAWS, SeededEntropy(18)), noise) > LEVEL
    assert fit(other.sample(DRAWS, SeededEntropy(19)), noise) < LEVEL


@every_family
def test_draws_of_a_tiny_noise_are_zero(family):
    assert not family(Fraction(1, 100)).sample(DRAWS, SeededEntropy(15)).any()
