from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.noise.enclosure import GUARDS, certain_floors, divide, exponential, multiply

exponents = st.fractions(min_value=0, max_value=300, max_denominator=10**6)


def decimal_exponential(exponent: Fraction) -> Fraction:
    """The value by another road: Python's decimal arithmetic, good to some 200 digits."""
    with localcontext() as context:
        context.prec = 220
        return Fraction((-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


@given(exponents, st.integers(min_value=8, max_value=300))
def test_an_enclosure_of_the_exponential_holds_the_truth_and_is_narrow(exponent, precision):
    lower, upper = exponential(exponent, precision)
    truth = decimal_exponential(exponent) * 2**precision
    slack = Fraction(1, 10**60)
    assert lower - slack <= truth <= upper + slack
    assert 0 <= lower <= upper <= lower + 3


def test_the_exponential_of_zero_is_one():
    assert exponential(Fraction(0), 64) == (2**64, 2**64)


def test_an_exponential_below_one_unit_costs_nothing():
    assert exponential(Fraction(10**4000), 64) == (0, 1)


@given(st.lists(st.integers(min_value=1, max_value=2**40), min_size=4, max_size=4))
def test_products_and_quotients_hold_every_product_and_quotient(ends):
    precision = 40
    left, right = tuple(sorted(ends[:2])), tuple(sorted(ends[2:]))
    unit = 2**precision
    for a in left:
        for b in right:
            low, high = multiply(left, right, precision)
            assert low <= Fraction(a * b, unit) <= high
            low, high = divide(left, right, precision)
            assert low <= Fraction(a * unit, b) <= high


def test_a_floor_that_straddles_is_asked_again_with_more_guard_bits():
    asked = []

    def enclose(precision):
        asked.append(precision)
        # A hair above 1/2, at first enclosed too widely to tell on which side.
        width = 2 ** (precision - 100) if len(asked) == 1 else 0
        return [((1 << (precision - 1)) + 1 - width, (1 << (precision - 1)) + 1)]

    assert certain_floors(enclose, 8) == [128]
    assert asked == [8 + GUARDS[0], 8 + GUARDS[1]]


def test_a_floor_that_no_precision_decides_is_refused_rather_than_guessed():
    def enclose(precision):
        return [((1 << (precision - 1)) - 1, (1 << (precision - 1)) + 1)]

    with pytest.raises(ArithmeticError, match="Nothing was drawn"):
        certain_floors(enclose, 8)
