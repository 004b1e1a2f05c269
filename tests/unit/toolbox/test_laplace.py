import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidColumn, InvalidNoise, InvalidPrivacy
from tabulary.toolbox import laplace
from tests.unit.toolbox.samplers import Given

ONE = tb.PureDP(1)
positive = st.fractions(Fraction(1, 60), 100, max_denominator=60)


@given(
    st.fractions(-100, 100, max_denominator=97), st.fractions(0, 1, max_denominator=50), positive, positive
)
# 0.4 and 1.9 are rounded to 0 and 2.
@example(Fraction(2, 5), Fraction(1), Fraction(3, 2), Fraction(1))
def test_values_within_the_sensitivity_are_measured_within_the_scale(value, part, sensitivity, unit):
    near = value + part * sensitivity
    here, there = (
        laplace(x, sensitivity=sensitivity, privacy=ONE, unit=unit, sampler=Given(0)) for x in (value, near)
    )
    assert abs(here.measured[0] - there.measured[0]) <= here.noise.scale


@given(positive, positive)
def test_the_scale_is_the_sensitivity_over_epsilon_and_no_larger_where_the_unit_divides_it(
    sensitivity, epsilon
):
    noisy = laplace(0, sensitivity=sensitivity, privacy=tb.PureDP(epsilon), sampler=Given(0))
    assert noisy.noise.scale == 1024 / epsilon


@given(st.floats(-1e6, 1e6), st.integers(-50, 50))
def test_the_value_is_the_rounded_statistic_plus_the_draw(value, draw):
    noisy = laplace(value, sensitivity=1, privacy=ONE, unit="1/8", sampler=Given(draw))
    assert abs(Fraction(noisy.value) - Fraction(draw, 8) - Fraction(value)) <= Fraction(1, 16)


def test_the_variance_is_twice_the_square_of_the_scale_and_not_twice_the_scale():
    noisy = laplace(0, sensitivity=5, privacy=ONE)
    assert noisy.standard_error**2 == pytest.approx(2 * 5**2, rel=1e-6)


def test_an_interval_covers_as_often_as_it_says_and_no_narrower_one_does():
    noisy = laplace(0, sensitivity=1, privacy=ONE, unit=1, sampler=Given(0))
    low, high = noisy.interval(0.9)
    inside = noisy.noise.pmf(np.arange(low, high + 1)).sum()
    narrower = noisy.noise.pmf(np.arange(low + 1, high)).sum()
    assert narrower < 0.9 <= inside


@pytest.mark.parametrize("value", [float("nan"), math.inf, None, "12", True, 1j, Decimal("nan")])
def test_a_statistic_that_is_no_number_is_refused_without_being_told(value):
    with pytest.raises(InvalidColumn, match="not a finite number"):
        laplace(value, sensitivity=1, privacy=ONE)


@pytest.mark.parametrize(
    "value", [3, 3.0, Fraction(3), Decimal(3), np.int64(3), np.float64(3), np.float32(3)]
)
def test_numbers_of_every_kind_are_taken(value):
    assert laplace(value, sensitivity=1, privacy=ONE, unit=1, sampler=Given(2)).value == 5


@pytest.mark.parametrize(
    ("sensitivity", "unit", "reason"),
    [
        (0, None, "must be positive, not 0 and"),
        (-1, None, "must be positive, not -1 and"),
        (1, 0, "must be positive, not 1 and 0"),
        (1, -1, "must be positive, not 1 and -1"),
        ("x", None, "sensitivity must be a whole number, .* not 'x'"),
    ],
)
def test_a_sensitivity_or_unit_that_cannot_be_is_refused(sensitivity, unit, reason):
    with pytest.raises(InvalidNoise, match=reason):
        laplace(0, sensitivity=sensitivity, unit=unit, privacy=ONE)


@pytest.mark.parametrize("privacy", [tb.ZCDP(1), tb.ApproxDP(1, "1/9"), 1])
def test_a_promise_that_the_mechanism_does_not_make_is_refused(privacy):
    with pytest.raises(InvalidPrivacy, match="pure differential privacy"):
        laplace(0, sensitivity=1, privacy=privacy)


def test_an_answer_says_in_words_what_it_promises():
    said = str(laplace(12, sensitivity=1, privacy=ONE, unit=1, neighbours="replace", sampler=Given(1)))
    assert said.startswith(
        "value 13, standard error 1.36, 95 % interval 10 to 16. ε = 1 (replace): no outcome"
    )
    assert said.endswith("through one person. The number of records is public.")
