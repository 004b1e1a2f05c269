"""What a shift promises, against brute force and simulation."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tabulary.core import basis
from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler
from tabulary.planning.queries import ContrastMap
from tabulary.reconstruct.shift import (
    contrast_weights,
    integer_shift,
    shifted,
    weighted_shift,
)

failures = st.floats(1e-6, 0.9)
noises = st.one_of(
    st.fractions(Fraction(1, 4), 12, max_denominator=8).map(DiscreteLaplace),
    st.fractions(Fraction(1, 4), 60, max_denominator=8).map(DiscreteGaussian),
)


def law_of_l1_norm(noise, count, reach=4_000):
    """P(Σ|e| = m) by plain convolution."""
    k = np.arange(reach)
    one = noise.pmf(k) * np.where(k > 0, 2, 1)
    law = np.ones(1)
    for _ in range(count):
        law = np.convolve(law, one)[:reach]
    return law


@settings(max_examples=60)
@given(noises, st.integers(1, 8), st.floats(1e-5, 0.9))
def test_the_integer_shift_is_the_smallest_that_keeps_the_promise(noise, count, failure):
    within = np.cumsum(law_of_l1_norm(noise, count))
    shift = integer_shift(noise, count, failure=failure)
    assert within[shift] >= 1 - failure - 1e-9
    assert shift == 0 or within[shift - 1] < 1 - failure + 1e-9


@pytest.mark.parametrize("scale", ["1/8", 1, 100, 2**30])
@pytest.mark.parametrize("count", [1, 22, 500])
def test_two_ways_to_the_laplace_quantile_meet(scale, count):
    noise = DiscreteLaplace(scale)
    exact = integer_shift(noise, count, failure=0.01)
    grid = weighted_shift(noise, np.ones(count), failure=0.01)
    assert exact <= grid + 1e-6
    assert grid <= exact * (1 + (count + 5) / 100_000) + 1


def test_the_continuous_quantile_is_no_bound_for_discrete_noise():
    assert integer_shift(DiscreteLaplace(1), 1, failure=0.5) == 1
    assert stats.gamma.isf(0.5, 1) < 1


def test_at_large_scales_discrete_and_continuous_noise_need_the_same_shift():
    continuous = stats.gamma.isf(0.05, 22, scale=5000)
    ratio = integer_shift(DiscreteLaplace(5000), 22, failure=0.05) / continuous
    assert ratio == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 2), (4, 3), (5,)])
def test_weights_are_what_a_unit_of_noise_can_do_to_a_cell(shape):
    sets = tuple(s for k in range(len(shape) + 1) for s in itertools.combinations(range(len(shape)), k))
    linear = ContrastMap(shape, sets)
    lengths = linear.forward(basis.table_of(basis.squared_norms(shape)))
    cells = math.prod(shape)
    largest = [np.abs(linear.adjoint(unit / lengths)).max() * cells for unit in np.eye(linear.size)]
    assert contrast_weights(shape, sets) == pytest.approx(largest)


def table_after(linear, counts, noise, shift):
    """The full table implied by noisy contrasts; contrasts that were not measured are those of the counts."""
    lengths = linear.forward(basis.table_of(basis.squared_norms(linear.shape)))
    moved = shifted(linear.forward(counts) + noise, linear.sets, shift) - linear.forward(counts)
    return counts + linear.adjoint(moved / lengths)


@settings(max_examples=40)
@given(st.sampled_from([(2, 2, 2), (3, 4), (2, 5)]), st.data())
def test_a_shift_of_the_weighted_norm_leaves_no_cell_negative(shape, data):
    sets = ((), *((axis,) for axis in range(len(shape))), (0, 1))
    linear = ContrastMap(shape, sets)
    noise = np.array(
        data.draw(st.lists(st.integers(-50, 50), min_size=linear.size, max_size=linear.size)), dtype=float
    )
    enough = float(contrast_weights(shape, sets) @ np.abs(noise))
    assert table_after(linear, np.zeros(shape), noise, enough).min() >= -1e-9


def test_on_binary_attributes_less_than_the_norm_is_not_always_enough():
    linear = ContrastMap((2, 2), ((), (0,), (1,), (0, 1)))
    noise = np.array([-3.0, -2.0, -4.0, -5.0])
    assert table_after(linear, np.zeros((2, 2)), noise, 14).min() == 0
    assert table_after(linear, np.zeros((2, 2)), noise, 13.9).min() < 0


def test_every_cell_of_a_margin_rises_by_the_stated_bias():
    linear = ContrastMap((2, 3, 2), ((), (0,), (1,), (0, 1)))
    risen = table_after(linear, np.zeros((2, 3, 2)), np.zeros(linear.size), 18.0)
    assert risen.sum(axis=2) == pytest.approx(np.full((2, 3), 18.0 / 6))


def failures_of(noise, count, shift, draws=20_000):
    return (np.abs(ExactSampler().draw(noise, (draws, count))).sum(axis=1) > shift).mean()


@pytest.mark.audit
@pytest.mark.parametrize(
    "noise",
    [DiscreteLaplace(3), DiscreteLaplace(200), DiscreteGaussian(400), DiscreteGaussian(250_000)],
    ids=str,
)
@pytest.mark.parametrize("count", [5, 22, 121])
def test_the_promise_is_kept_and_hardly_more_than_kept(noise, count):
    failure, draws = 0.05, 20_000
    shift = integer_shift(noise, count, failure=failure)
    # Five standard errors: α below 1e-6.
    slack = 5 * math.sqrt(failure * (1 - failure) / draws)
    assert failures_of(noise, count, shift, draws) <= failure + slack
    assert failures_of(noise, count, 0.98 * shift - 1, draws) > failure - slack
    # The twin with noise a third larger is caught.
    assert failures_of(noise, count, shift / 1.3, draws) > failure + slack


@pytest.mark.audit
def test_the_weighted_promise_is_kept_on_a_table_of_many_levels():
    sets = ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    weights = contrast_weights((4, 4, 16), sets)
    noise = DiscreteLaplace(30)
    shift = weighted_shift(noise, weights, failure=0.05)
    sums = np.abs(ExactSampler().draw(noise, (20_000, weights.size))) @ weights
    assert (sums > shift).mean() <= 0.05 + 0.0078
    assert shift <= 1.02 * np.quantile(sums, 0.95)


@pytest.mark.parametrize("failure", [0, 1, -0.1, 1e-10, math.nan])
def test_a_failure_probability_that_cannot_be_is_refused(failure):
    with pytest.raises(InvalidNoise, match="failure"):
        integer_shift(DiscreteLaplace(1), 3, failure=failure)


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_a_number_of_coefficients_that_cannot_be_is_refused(count):
    with pytest.raises(InvalidNoise, match="coefficients"):
        integer_shift(DiscreteLaplace(1), count, failure=0.05)


def test_noise_whose_tail_is_unknown_is_refused():
    with pytest.raises(InvalidNoise, match="no shift is known"):
        weighted_shift(object(), np.ones(3), failure=0.05)


@pytest.mark.parametrize("weights", [np.array([1.0, 0.0]), np.array([np.nan]), np.ones((2, 2))])
def test_weights_that_cannot_be_are_refused(weights):
    with pytest.raises(InvalidTable, match="a list of positive numbers"):
        weighted_shift(DiscreteLaplace(1), weights, failure=0.05)


def test_a_shift_without_a_total_or_below_zero_is_refused():
    with pytest.raises(InvalidTable, match="total"):
        shifted(np.zeros(1), ((0,),), 1.0)
    with pytest.raises(InvalidNoise, match="shift"):
        shifted(np.zeros(1), ((),), -1.0)
