"""The tail of χ², against scipy's and against sums of exact decimals."""

import math
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from tabulary.errors import InvalidTable
from tabulary.infer.chi_squared import deviance, stirling_error, upper_tail


def even_tail(statistic, degrees):
    """e⁻ˣ Σ xᵏ/k! for an even number of degrees of freedom, to fifty digits."""
    with localcontext() as context:
        context.prec = 60
        x = Decimal(statistic) / 2
        term = total = Decimal(1)
        for k in range(1, degrees // 2):
            term *= x / k
            total += term
        return float(total * (-x).exp())


@given(st.floats(1e-6, 600), st.integers(1, 300))
def test_the_tail_agrees_with_scipy(statistic, degrees):
    assert upper_tail(statistic, degrees) == pytest.approx(
        float(special.gammaincc(degrees / 2, statistic / 2)), rel=1e-12, abs=1e-300
    )


@pytest.mark.parametrize("degrees", [2, 4, 82, 1000, 2402])
@pytest.mark.parametrize("multiple", [0.1, 0.7, 0.99, 1.0, 1.01, 1.3, 2.0, 4.0])
def test_the_tail_keeps_twelve_digits_where_the_degrees_are_many(degrees, multiple):
    statistic = degrees * multiple
    exact = even_tail(statistic, degrees)
    assert upper_tail(statistic, degrees) == pytest.approx(exact, rel=1e-12, abs=1e-290)


@given(st.floats(0.01, 100), st.floats(0.1, 80))
def test_the_degrees_of_freedom_need_not_be_whole(statistic, degrees):
    assert upper_tail(statistic, degrees) == pytest.approx(
        float(special.gammaincc(degrees / 2, statistic / 2)), rel=1e-11
    )


@given(st.floats(0, 200), st.floats(0, 50), st.integers(1, 100))
def test_a_larger_statistic_is_never_likelier(statistic, more, degrees):
    assert upper_tail(statistic + more, degrees) <= upper_tail(statistic, degrees) * (1 + 1e-12)


def test_the_ends_of_the_tail_are_one_and_zero():
    assert upper_tail(0.0, 5) == 1.0
    assert upper_tail(-1e-9, 5) == 1.0
    assert upper_tail(math.inf, 5) == 0.0
    assert upper_tail(1e9, 5) == 0.0


def test_with_no_degrees_of_freedom_nothing_but_zero_can_occur():
    assert upper_tail(0.0, 0) == 1.0
    assert upper_tail(1e-9, 0) == 0.0


@pytest.mark.parametrize(("statistic", "degrees"), [(math.nan, 3), (1.0, -1), (1.0, math.nan)])
def test_what_is_no_law_is_refused(statistic, degrees):
    with pytest.raises(InvalidTable, match="a finite number of degrees of freedom"):
        upper_tail(statistic, degrees)


@given(st.integers(1, 10**9))
def test_stirlings_error_is_that_of_the_factorial(n):
    direct = float(special.gammaln(n + 1)) - (0.5 * math.log(2 * math.pi * n) + n * math.log(n) - n)
    assert stirling_error(n) == pytest.approx(direct, abs=1e-13 * (1 + n * math.log(n + 1)))
    # Robbins' bounds.
    assert 1 / (12 * n + 1) * (1 - 1e-15) <= stirling_error(n) <= 1 / (12 * n) * (1 + 1e-15)


@given(st.floats(1e-3, 1e8), st.floats(0.2, 5))
def test_the_deviance_is_not_negative_and_that_of_the_formula(n, ratio):
    with localcontext() as context:
        context.prec = 50
        mean = Decimal(n * ratio)
        exact = Decimal(n) * (Decimal(n) / mean).ln() + mean - Decimal(n)
    found = deviance(n, n * ratio)
    assert found >= 0
    assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-300)
