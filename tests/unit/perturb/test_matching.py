"""Two families at the same δ: which bound, and by which measure."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.errors import InvalidNoise
from tabulary.perturb import Custom, Laplace, Normal, match_delta

epsilons = st.fractions(min_value="1/5", max_value=3, max_denominator=20)


@settings(max_examples=40)
@given(epsilons, st.integers(2, 9), st.integers(1, 2))
def test_no_other_bound_is_nearer_on_the_scale_of_the_root(epsilon, bound, sensitivity):
    law = Laplace(epsilon, bound, sensitivity=sensitivity)
    matched = match_delta(law, family=Normal)

    def gap(m):
        tried = Normal(epsilon, m, sensitivity=sensitivity)
        return abs(math.sqrt(tried.truncation_delta) - math.sqrt(law.truncation_delta))

    others = range(sensitivity, 2 * matched.bound + 5)
    assert gap(matched.bound) == min(map(gap, others))
    assert (matched.epsilon, matched.sensitivity) == (law.epsilon, sensitivity)


@settings(max_examples=40)
@given(epsilons, st.integers(2, 9))
def test_never_more_takes_the_smallest_bound_whose_delta_is_not_larger(epsilon, bound):
    law = Laplace(epsilon, bound)
    matched = match_delta(law, family=Normal, never_more=True)
    assert matched.truncation_delta <= law.truncation_delta
    if matched.bound > 1:
        assert Normal(epsilon, matched.bound - 1).truncation_delta > law.truncation_delta


@pytest.mark.parametrize("family", [Laplace, Normal])
def test_a_law_matches_itself(family):
    law = family("1/2", bound=9)
    assert match_delta(law, family=family) == law
    assert match_delta(law, family=family, never_more=True) == law


def test_normal_can_be_matched_by_laplace():
    matched = match_delta(Normal("1/2", bound=10), family=Laplace)
    assert isinstance(matched, Laplace)
    assert matched.bound == 7


def test_a_law_without_a_bound_cannot_be_matched():
    with pytest.raises(InvalidNoise, match="δ = 0"):
        match_delta(Laplace(1), family=Normal)


@pytest.mark.parametrize("family", [Custom, int, "Normal", None])
def test_only_families_with_a_bound_can_match(family):
    with pytest.raises(InvalidNoise, match="Laplace and Normal"):
        match_delta(Laplace(1, bound=7), family=family)
