from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.noise.summation import POINTS, sum_rule

DEGREE = 2 * POINTS - 1


@given(length=st.integers(min_value=1, max_value=3_000), degree=st.integers(min_value=0, max_value=DEGREE))
def test_a_run_is_summed_exactly_for_polynomials(length, degree):
    """Powers of the place within the run, counted from its end to its end as 0 to 1."""
    points, weights = sum_rule(np.array([length]))
    scale = max(1, length - 1)
    exact = sum(Fraction(i**degree, scale**degree) for i in range(length))
    assert float(np.sum(weights * (points / scale) ** degree)) == pytest.approx(float(exact), rel=1e-12)


def test_one_degree_more_is_no_longer_exact():
    """So the test above can fail: about the middle, the next even power shows what the rule leaves out."""
    length = 10_000
    points, weights = sum_rule(np.array([length]))
    middle = Fraction(length - 1, 2)
    for degree, agrees in ((DEGREE - 1, True), (DEGREE + 1, False)):
        exact = sum(((i - middle) / middle) ** degree for i in range(length))
        found = np.sum(weights * ((points - float(middle)) / float(middle)) ** degree)
        assert (abs(float(found / float(exact)) - 1) < 1e-10) == agrees


@pytest.mark.parametrize("length", [1, 15, 16])
def test_a_short_run_is_summed_point_by_point(length):
    points, weights = sum_rule(np.array([length]))
    assert points[weights > 0].tolist() == list(range(length))
    assert weights.sum() == length


def test_the_weights_are_positive_and_add_up_to_the_lengths():
    lengths = np.array([3, 17, 40, 10**6, 2**60])
    points, weights = sum_rule(lengths)
    np.testing.assert_allclose(weights.sum(axis=1), lengths, rtol=1e-13)
    assert (weights[1:] > 0).all()
    assert (points[1:] >= 0).all()
    assert (points[1:] <= lengths[1:, np.newaxis] - 1).all()


def test_no_runs_have_no_points():
    points, weights = sum_rule(np.array([], dtype=np.int64))
    assert points.shape == weights.shape == (0, POINTS)
