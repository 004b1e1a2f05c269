"""How well two inputs can be told apart, against sums over all outcomes and closed forms."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.privacy import gaussian_delta
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from tabulary.workflows.auditing.curve import Moved, privacy_curve, statistic_law

LAWS = {DiscreteLaplace: Fraction(3), DiscreteGaussian: Fraction(9)}


def all_outcomes(moved, laws=None, reach=150):
    """The losses of all outcomes, and how likely they are."""
    losses, chances = np.zeros(1), np.ones(1)
    noise = np.arange(-reach, reach + 1)
    for each in moved:
        for _ in range(each.numbers):
            law = (laws or {}).get(each.law, each.law)
            losses = np.round((losses[:, None] + each.law.loss(noise, each.size)).ravel(), 9)
            losses, place = np.unique(losses, return_inverse=True)
            chances = np.bincount(place, (chances[:, None] * law.pmf(noise)).ravel())
    return losses, chances


@st.composite
def moves(draw):
    family = draw(st.sampled_from(sorted(LAWS, key=str)))
    scales = draw(st.lists(st.integers(1, 6), min_size=1, max_size=2, unique=True))
    return [Moved(family(LAWS[family] * s), draw(st.integers(1, 5)), draw(st.integers(1, 2))) for s in scales]


@given(moves(), st.floats(0, 3))
@settings(max_examples=15, deadline=None)
def test_delta_is_that_of_all_outcomes_and_never_below_it(moved, threshold):
    losses, chances = all_outcomes(moved)
    exact = float((chances * np.clip(1 - np.exp(threshold - losses), 0, None)).sum())
    found = privacy_curve(moved).delta(threshold)
    assert exact <= found + 1e-12
    assert found == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("threshold", [0.01, 0.5, 1.0, 4.0])
def test_the_curve_of_rounded_gaussian_noise_is_the_continuous_one(threshold):
    moved = [Moved(RoundedGaussian(Fraction(30)), 2, 20), Moved(RoundedGaussian(Fraction(5)), 3, 1)]
    rho = (Fraction(80, 30) + Fraction(9, 5)) / 2
    assert privacy_curve(moved).delta(threshold) == pytest.approx(gaussian_delta(threshold, rho), abs=1e-6)


def test_pure_noise_has_no_delta_at_its_epsilon():
    moved = [Moved(DiscreteLaplace(Fraction(1, 2)), 1, 1)]
    assert privacy_curve(moved).delta(2.0) < 1e-6
    assert privacy_curve(moved).delta(1.0) == pytest.approx((math.exp(2) - math.e) / (1 + math.exp(2)))


@pytest.mark.parametrize("factor", [Fraction(1), Fraction(7, 10)])
def test_the_law_of_the_twin_is_that_of_all_its_outcomes(factor):
    moved = [Moved(DiscreteLaplace(Fraction(7)), 5, 2), Moved(DiscreteLaplace(Fraction(4)), 3, 1)]
    losses, chances = all_outcomes(moved, {each.law: each.law.narrowed(factor) for each in moved})
    law = statistic_law(moved, factor)
    for threshold in (0.05, 0.61, 1.37):
        assert law.above(threshold) == pytest.approx(chances[losses > threshold].sum(), abs=1e-3)
        assert law.below(-threshold) == pytest.approx(chances[losses < -threshold].sum(), abs=1e-3)


def test_a_hundred_thousand_numbers_are_as_one_normal_number():
    moved = [Moved(DiscreteLaplace(Fraction(100)), 1, 100_000)]
    assert privacy_curve(moved).delta(0.0) == pytest.approx(math.erf(math.sqrt(10 / 8)), abs=2e-3)
