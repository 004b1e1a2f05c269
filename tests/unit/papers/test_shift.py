"""The shift of Dwork, McSherry & Talwar (2007), made exact and as published."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tabulary.errors import InvalidNoise
from tabulary_papers.shift import nonnegative_shift, published_failure, published_shift

failures = st.floats(1e-6, 0.9)


@given(st.integers(1, 400), failures, st.fractions(Fraction(1, 100), 1000, max_denominator=100))
def test_the_continuous_shift_is_a_gamma_quantile(count, failure, scale):
    shift = nonnegative_shift(scale, count, failure=failure)
    exact = stats.gamma.isf(failure, count, scale=float(scale))
    assert shift == pytest.approx(exact, rel=1e-9)


def test_the_shift_costs_less_than_half_of_the_published_one():
    exact = nonnegative_shift(Fraction(1), 22, failure=0.05)
    assert exact / 22 == pytest.approx(1.3745, abs=1e-4)
    assert exact < published_shift(Fraction(1), 22, t=-math.log(0.05)) / 2


def test_the_published_corollary_fails_more_often_than_it_says():
    assert published_failure(12, t=1) == pytest.approx(stats.gamma.sf(12, 12))
    assert published_failure(12, t=1) == pytest.approx(0.46, abs=0.005)
    assert published_failure(12, t=1) > math.exp(-1) + 0.09
    assert published_failure(12, t=3) < math.exp(-3) / 1000


def test_a_published_shift_needs_a_positive_t():
    with pytest.raises(InvalidNoise, match="t must be positive"):
        published_shift(Fraction(1), 3, t=0)
