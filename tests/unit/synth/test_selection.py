"""Report noisy max under zCDP: the rate, the law, and choosing several."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import chisquare

from tabulary.errors import InvalidNoise
from tabulary.noise import ExactSampler
from tabulary.synth.selection import choice_rate, noisy_largest
from tests.entropy import SeededEntropy

rhos = st.fractions(Fraction(1, 10**9), 50, max_denominator=10**9)


@given(rhos, st.integers(1, 1000))
def test_the_rate_is_the_root_of_two_rho_over_the_sensitivity_rounded_down(rho, sensitivity):
    rate = choice_rate(rho, sensitivity)
    exact = 2 * rho / sensitivity**2
    assert rate**2 <= exact < (rate * (1 + Fraction(1, 10**6))) ** 2


def _log_law(scores, rate):
    weights = float(rate) * np.asarray(scores, dtype=float)
    return weights - logsumexp(weights)


def _divergence(here, there, order):
    """The Rényi divergence of two laws, from their logarithms: a power of a small probability may not fit a number."""
    return logsumexp(order * here + (1 - order) * there) / (order - 1)


@given(
    rhos.filter(lambda rho: rho < 2),
    st.lists(st.integers(-20, 20), min_size=2, max_size=8),
    st.data(),
    st.floats(1.01, 40),
)
@settings(max_examples=100, deadline=None)
def test_no_neighbour_loses_more_than_rho_in_any_order(rho, scores, data, order):
    """zCDP: the Rényi divergence of order α is at most αρ, for all scores that move by at most the sensitivity."""
    sensitivity = data.draw(st.integers(1, 3))
    moved = [s + data.draw(st.integers(-sensitivity, sensitivity)) for s in scores]
    rate = choice_rate(rho, sensitivity)
    divergence = _divergence(_log_law(scores, rate), _log_law(moved, rate), order)
    assert divergence <= order * float(rho) * (1 + 1e-6) + 1e-9


def test_a_rate_one_tenth_higher_would_break_rho():
    """The bound is sharp for a choice of two whose scores move apart: half of ρ more is seen."""
    rate = choice_rate(Fraction(1, 200), 1) * Fraction(11, 10)
    divergence = _divergence(_log_law([0, 0], rate), _log_law([1, -1], rate), 1.01)
    assert divergence > 1.01 / 200


def test_choices_without_return_have_the_law_of_one_choice_after_the_other():
    scores = np.array([0, 2, 3, 2])
    rho, draws = Fraction(1, 2), 1_500
    sampler = ExactSampler(SeededEntropy(5))
    seen = dict.fromkeys(itertools.permutations(range(4), 2), 0)
    for _ in range(draws):
        seen[tuple(noisy_largest(scores, 2, rho=rho, sensitivity=1, sampler=sampler).tolist())] += 1
    weights = np.exp(float(choice_rate(rho, 1)) * scores)

    def probability(first, second):
        return weights[first] / weights.sum() * weights[second] / (weights.sum() - weights[first])

    expected = np.array([draws * probability(*pair) for pair in seen])
    assert chisquare(list(seen.values()), expected).pvalue > 1e-4
    # A draw that forgot to leave the first one out would have this law instead, and is told apart.
    other = np.array([weights[a] * weights[b] for a, b in seen])
    assert chisquare(list(seen.values()), other / other.sum() * draws).pvalue < 1e-9


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30), st.data())
@settings(max_examples=50, deadline=None)
def test_all_that_are_chosen_differ_even_where_few_are_far_ahead(scores, data):
    count = data.draw(st.integers(1, len(scores)))
    chosen = noisy_largest(
        np.array(scores), count, rho=Fraction(1), sensitivity=1, sampler=ExactSampler(SeededEntropy(1))
    )
    assert len(set(chosen.tolist())) == count
    assert set(chosen.tolist()) <= set(range(len(scores)))


def test_scores_far_apart_are_chosen_in_their_order():
    scores = np.array([10_000, 0, 30_000, 20_000])
    chosen = noisy_largest(scores, 4, rho=Fraction(1), sensitivity=1, sampler=ExactSampler(SeededEntropy(1)))
    assert chosen.tolist() == [2, 3, 0, 1]


@pytest.mark.parametrize("count", [0, 4])
def test_more_than_there_are_cannot_be_chosen(count):
    with pytest.raises(InvalidNoise, match="of 3 candidates"):
        noisy_largest(np.arange(3), count, rho=Fraction(1), sensitivity=1, sampler=ExactSampler())


@pytest.mark.parametrize(("rho", "sensitivity"), [(Fraction(0), 1), (Fraction(1), 0)])
def test_a_choice_needs_some_privacy_to_spend(rho, sensitivity):
    with pytest.raises(InvalidNoise, match="no choice has"):
        choice_rate(rho, sensitivity)
