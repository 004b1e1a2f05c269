from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.noise.normal import normal_tail, two_pi
from tests.unit.noise.decimals import decimal_normal_tail, decimal_pi

squares = st.fractions(min_value=Fraction(1, 10**9), max_value=300, max_denominator=10**9)


@settings(deadline=None)
@given(squares, st.integers(min_value=8, max_value=400))
def test_an_enclosure_of_the_normal_tail_holds_the_truth_and_is_narrow(square, precision):
    lower, upper = normal_tail(square, precision)
    truth = Fraction(decimal_normal_tail(square)) * 2**precision
    slack = Fraction(1, 10**60)
    assert lower - slack <= truth <= upper + slack
    assert 0 <= lower <= upper <= lower + 2


@pytest.mark.parametrize("precision", [10, 64, 300])
def test_the_enclosure_of_a_turn_holds_a_turn(precision):
    lower, upper = two_pi(precision)
    assert lower <= 2 * Fraction(decimal_pi()) * 2**precision <= upper
    assert upper - lower <= 64 * precision


@pytest.mark.parametrize("square", [Fraction(1, 2**160), Fraction(1, 10**60) + Fraction(1, 7**90)])
def test_a_tiny_square_costs_no_precision(square):
    lower, upper = normal_tail(square, 192)
    assert lower <= Fraction(decimal_normal_tail(square)) * 2**192 <= upper
    assert upper - lower <= 2


def test_a_tail_below_one_unit_costs_nothing():
    assert normal_tail(Fraction(10**4000), 64) == (0, 1)
