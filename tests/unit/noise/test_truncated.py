"""Noise within a bound: the law it is cut from, given that it stays inside, and exactly so."""

import math
from bisect import bisect_right
from decimal import localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tabulary.errors import InvalidNoise
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, Truncated
from tabulary.noise.slots import truncated_slots
from tests.entropy import ScriptedEntropy, SeededEntropy
from tests.unit.noise.decimals import DIGITS, decimal

LAST_WORD = 2**64 - 1
LEVEL = 1e-6
DRAWS = 200_000

parameters = st.fractions(min_value="1/10", max_value=30, max_denominator=50)
bounds = st.integers(1, 40)
laws = st.one_of(parameters.map(DiscreteLaplace), parameters.map(DiscreteGaussian))
noises = st.builds(Truncated, laws, bounds)
NOISES = [
    Truncated(DiscreteLaplace("2/3"), 7),
    Truncated(DiscreteLaplace(20), 5),
    Truncated(DiscreteLaplace(20), 200),
    Truncated(DiscreteGaussian("25/3"), 12),
    Truncated(DiscreteGaussian(400), 25),
]
every_noise = pytest.mark.parametrize("noise", NOISES, ids=str)


def wider(noise, factor):
    """The same noise with the scale of its law multiplied."""
    law = noise.law
    if isinstance(law, DiscreteLaplace):
        return Truncated(DiscreteLaplace(law.scale * factor), noise.bound)
    return Truncated(DiscreteGaussian(law.variance_parameter * factor**2), noise.bound)


@given(noises)
def test_it_is_the_law_that_was_cut_given_that_it_stays_inside(noise):
    inside = noise.law.pmf(noise.support)
    assert noise.pmf(noise.support) == pytest.approx(inside / inside.sum(), rel=1e-10, abs=1e-300)
    assert noise.pmf([-noise.bound - 1, noise.bound + 1, 10**6]).tolist() == [0, 0, 0]


@given(noises)
def test_the_distribution_function_sums_the_probabilities(noise):
    k = range(-noise.bound - 2, noise.bound + 3)
    below = [noise.pmf(range(-noise.bound, v + 1)).sum() if v >= -noise.bound else 0.0 for v in k]
    assert noise.cdf(k) == pytest.approx(below, abs=1e-12)
    assert noise.cdf([-noise.bound - 1, noise.bound]).tolist() == [0.0, 1.0]


@given(noises)
def test_the_variance_is_a_plain_sum_and_below_that_of_the_law_that_was_cut(noise):
    k = noise.support
    assert noise.variance == pytest.approx(float((noise.pmf(k) * k**2).sum()), rel=1e-12)
    assert noise.variance <= noise.law.variance * (1 + 1e-12)


@settings(max_examples=50)
@given(noises, st.integers(1, 6), st.floats(0.05, 0.9999))
def test_the_half_width_of_a_sum_is_that_of_the_convolution(noise, terms, confidence):
    law = np.ones(1)
    for _ in range(terms):
        law = np.convolve(law, noise.pmf(noise.support))
    reach = noise.bound * terms
    width = noise.half_width(confidence, terms)
    held = law[reach - width : reach + width + 1].sum()
    assert held >= confidence - 1e-12
    if width:
        assert law[reach - width + 1 : reach + width].sum() < confidence + 1e-12


def test_the_half_width_of_a_long_sum_is_near_that_of_a_normal_law():
    """Two thousand terms: the circle of the transform is far smaller than the sum can reach."""
    noise = Truncated(DiscreteLaplace(3), 20)
    wanted = 1.959964 * math.sqrt(2_000 * noise.variance)
    assert noise.half_width(0.95, 2_000) == pytest.approx(wanted, rel=0.01)


@given(noises, st.floats(-3, 3))
def test_the_transforms_are_plain_sums(noise, t):
    k, p = noise.support, noise.pmf(noise.support)
    assert float(noise.characteristic(t)) == pytest.approx(float((p * np.cos(t * k)).sum()), abs=1e-12)
    assert float(noise.log_moment_bound(t)) == pytest.approx(
        math.log(float((p * np.exp(t * k)).sum())), abs=1e-10
    )


def test_the_logarithm_of_the_moment_does_not_overflow():
    noise = Truncated(DiscreteLaplace(3), 20)
    assert float(noise.log_moment_bound(1e6)) == pytest.approx(20e6, rel=1e-6)


# Draws


def chi_square(drawn, noise):
    """The probability of draws as unlikely as these, values of fewer than ten expected draws taken together."""
    expected = DRAWS * noise.pmf(noise.support)
    seen = np.bincount(drawn + noise.bound, minlength=expected.size).astype(float)
    rare = expected < 10
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        seen = np.append(seen[~rare], seen[rare].sum())
    keep = expected > 0
    return stats.chisquare(seen[keep], expected[keep] * seen[keep].sum() / expected[keep].sum()).pvalue


@every_noise
def test_draws_follow_the_law_and_not_one_at_seven_tenths_of_the_scale(noise):
    drawn = noise.sample(DRAWS, SeededEntropy(11))
    assert np.abs(drawn).max() <= noise.bound
    assert chi_square(drawn, noise) > LEVEL
    twin = wider(noise, Fraction(7, 10)).sample(DRAWS, SeededEntropy(11))
    assert chi_square(twin, noise) < LEVEL


@every_noise
def test_every_word_is_decided_as_the_exact_boundaries_say(noise):
    law = noise.law
    rate, power = (
        (1 / law.scale, 1) if isinstance(law, DiscreteLaplace) else (1 / (2 * law.variance_parameter), 2)
    )
    lowest, floors = truncated_slots(rate, power, noise.bound, 64)
    words = SeededEntropy(1).words(5_000)
    expected = [lowest + bisect_right(floors, int(word)) for word in words]
    assert noise.sample(words.size, SeededEntropy(1)).tolist() == expected


@every_noise
def test_the_ends_of_the_unit_interval_are_the_ends_of_the_bound(noise):
    """The tail is cut: however many bits agree, nothing lies beyond."""
    assert noise.sample(1, ScriptedEntropy([0, 0, 0])).item() == -noise.bound
    assert noise.sample(1, ScriptedEntropy([LAST_WORD, LAST_WORD, LAST_WORD])).item() == noise.bound


@pytest.mark.parametrize(
    ("rate", "power", "bound"), [("3/2", 1, 7), ("1/20", 1, 30), ("1/25", 2, 12), (5, 2, 2)]
)
@pytest.mark.parametrize("bits", [8, 64, 128])
def test_the_boundaries_are_those_of_the_law(rate, power, bound, bits):
    """Against weights in decimal arithmetic, to 300 digits."""
    with localcontext(prec=DIGITS):
        weights = {
            k: Fraction((-decimal(Fraction(rate) * abs(k) ** power)).exp()) for k in range(-bound, bound + 1)
        }
    total = sum(weights.values())
    lowest, floors = truncated_slots(Fraction(rate), power, bound, bits)
    assert lowest == -bound
    below = Fraction(0)
    for k, floor in zip(range(-bound, bound), floors, strict=True):
        below += weights[k]
        assert floor == math.floor(below / total * 2**bits)


# What it says, and what it refuses


def test_it_is_described_by_its_law_and_its_bound():
    assert Truncated(DiscreteGaussian("25/2"), 12).describe() == {
        "family": "truncated-discrete-gaussian",
        "variance_parameter": "25/2",
        "bound": "12",
    }


@pytest.mark.parametrize("bound", [0, -1, 1.0, True, None, "3", float("nan"), 10**5])
def test_a_bound_that_cannot_be_is_refused(bound):
    with pytest.raises(InvalidNoise, match="bound of a noise"):
        Truncated(DiscreteLaplace(1), bound)


@pytest.mark.parametrize("law", [None, 1, "laplace", Truncated(DiscreteLaplace(1), 3)])
def test_only_laplace_and_gaussian_noise_can_be_cut(law):
    with pytest.raises(InvalidNoise, match="Laplace and discrete Gaussian"):
        Truncated(law, 3)


@every_noise
@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        ((0.0, 1), "strictly between 0 and 1, not 0.0"),
        ((1.0, 1), "strictly between 0 and 1, not 1.0"),
        ((0.95, 0), "a positive whole number, not 0"),
        ((0.95, 1.5), "a positive whole number, not 1.5"),
        ((1 - 1e-12, 2), "known up to a confidence of 1 - 1e-10"),
    ],
)
def test_a_half_width_that_cannot_be_told_is_refused(noise, ask, reason):
    with pytest.raises(InvalidNoise, match=reason):
        noise.half_width(*ask)


@every_noise
def test_there_is_no_probability_between_the_integers(noise):
    for told in (noise.pmf, noise.cdf):
        with pytest.raises(InvalidNoise, match="integers"):
            told([0.5])


def test_the_largest_bound_can_be_drawn():
    noise = Truncated(DiscreteLaplace(10), 30_000)
    drawn = noise.sample(1_000, SeededEntropy(2))
    assert np.abs(drawn).max() < 400
