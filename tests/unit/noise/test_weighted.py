"""Half-widths of weighted sums, against plain convolution."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.errors import InvalidNoise
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian, weighted_half_width

FAMILIES = [DiscreteLaplace, DiscreteGaussian, RoundedGaussian]
every_family = pytest.mark.parametrize("family", FAMILIES)
every_law = pytest.mark.parametrize(
    "noise", [family(parameter) for family in FAMILIES for parameter in ("1/2", 40, 10**6)], ids=str
)
parameters = st.sampled_from(["1/9", "1/2", "1", "4", "10"])
multiples = st.lists(st.integers(min_value=1, max_value=12), min_size=2, max_size=4)
confidences = st.floats(min_value=0.05, max_value=0.9999)
# A step no weight shares with another: the blur has to see to the atoms.
IRRATIONAL = math.sqrt(2)
SLACK = 2.1e-3


def coverage(noise, weights) -> np.ndarray:
    """P(|S| ≤ h) for h = 0, 1, … and S a sum with whole weights, by plain convolution."""
    reach = noise.half_width(1 - 1e-15) + 2
    law = noise.pmf(np.arange(-reach, reach + 1))
    total = np.ones(1)
    for weight in weights:
        stretched = np.zeros(2 * reach * weight + 1)
        stretched[::weight] = law
        total = np.convolve(total, stretched)
    centre = total.size // 2
    return total[centre] + np.concatenate([[0.0], 2 * np.cumsum(total[centre + 1 :])])


@every_family
@settings(deadline=None, max_examples=40)
@given(
    parameter=parameters, weights=multiples, step=st.sampled_from([1.0, 0.25, 1 / 3, 0.1]), level=confidences
)
def test_whole_multiples_of_a_step_get_the_smallest_multiple_that_covers(
    family, parameter, weights, step, level
):
    noise = family(parameter)
    within = coverage(noise, weights)
    h = round(weighted_half_width(noise, np.array(weights) * step, level) / step, 3)
    assert h == int(h)
    assert within[int(h)] >= level - 1e-13
    assert h == 0 or within[int(h) - 1] < level + 2e-11


@every_family
@settings(deadline=None, max_examples=8)
@given(parameter=parameters, weights=multiples, level=confidences)
def test_a_blurred_half_width_covers_and_is_hardly_too_wide(family, parameter, weights, level):
    """Weights a hair off whole numbers have no step in common, and nearly the law of those that have."""
    noise = family(parameter)
    within = coverage(noise, weights)
    hair = 1e-7 / math.pi
    perturbed = np.array(weights) * (1 + hair * np.arange(1, len(weights) + 1))
    smallest = int(np.argmax(within >= level - 1e-13))
    surplus = int(np.argmax(within >= min(level + 1e-10, within[-1])))
    deviation = math.sqrt(noise.variance * sum(weight**2 for weight in weights))
    h = weighted_half_width(noise, perturbed, level)
    assert smallest <= h + 1e-3
    assert h <= surplus + SLACK * deviation + 1e-3


@every_law
def test_equal_weights_give_the_half_width_of_the_integer_sum(noise):
    for weight in (1.0, 0.1, 3.7):
        expected = noise.half_width(0.95, terms=5) * weight
        assert weighted_half_width(noise, [weight, -weight, weight, weight, -weight, 0.0], 0.95) == expected


@every_law
def test_the_sign_and_the_order_of_the_weights_do_not_matter(noise):
    weights = np.array([1.0, 2.5, IRRATIONAL, 0.3, 1.0])
    h = weighted_half_width(noise, weights, 0.9)
    assert weighted_half_width(noise, -weights[::-1], 0.9) == h
    assert weighted_half_width(noise, np.append(weights, 0.0), 0.9) == h


@every_law
def test_half_widths_scale_with_the_weights(noise):
    weights = np.array([1.0, 2.5, IRRATIONAL])
    h = weighted_half_width(noise, weights, 0.9)
    for factor in (1e-200, 1e-6, 1e6, 1e200):
        assert weighted_half_width(noise, factor * weights, 0.9) == pytest.approx(factor * h, rel=1e-4)


@pytest.mark.parametrize("family", [DiscreteGaussian, RoundedGaussian])
def test_a_thousand_weights_are_as_wide_as_the_normal_law_says(family):
    weights = np.random.default_rng(1).random(1_000)
    noise = family(1600)
    deviation = math.sqrt(noise.variance * np.sum(weights**2))
    h = weighted_half_width(noise, weights, 0.95)
    assert 1.959964 <= h / deviation <= 1.959964 + SLACK


def test_a_sum_of_nothing_is_zero():
    assert weighted_half_width(DiscreteLaplace(5), [], 0.95) == 0
    assert weighted_half_width(DiscreteLaplace(5), [0.0, 0.0], 0.95) == 0


def test_a_sum_of_draws_that_are_hardly_ever_drawn_is_zero():
    assert weighted_half_width(DiscreteGaussian.from_sigma("1/100"), [1.0, IRRATIONAL], 0.999) == 0
    assert weighted_half_width(DiscreteGaussian(Fraction(1, 2**80)), [1.0, IRRATIONAL], 0.999) == 0


@pytest.mark.parametrize("weights", [[1.0, math.nan], [math.inf, 1.0]])
def test_weights_that_are_no_numbers_are_refused(weights):
    with pytest.raises(InvalidNoise, match="finite"):
        weighted_half_width(DiscreteLaplace(5), weights, 0.95)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan])
def test_a_confidence_that_cannot_be_is_refused(confidence):
    with pytest.raises(InvalidNoise, match="confidence"):
        weighted_half_width(DiscreteLaplace(5), [1.0, 2.0], confidence)


def test_a_confidence_beyond_the_stated_error_is_refused():
    with pytest.raises(InvalidNoise, match="1e-10"):
        weighted_half_width(DiscreteLaplace(5), [1.0, 2.0], 1 - 1e-12)
