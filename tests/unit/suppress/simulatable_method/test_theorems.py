"""Calculators of how likely a release is: exact ones beside enumeration, the paper's beside the exact ones."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tabulary.errors import InvalidPrivacy
from tabulary.suppress.simulatable_method.theorems import (
    LARGEST_CELL,
    breach_bound,
    full_release_bound,
    people_needed,
    people_needed_by_bound,
    release_bound,
    release_chance,
    unsafe_chance,
)
from tabulary.table_samplers.poisson_binomial import PoissonBinomial

PRIORS = st.sampled_from([0.05, 0.2, 0.3, 0.5, 0.6, 0.9])


def unsafe_by_data_sets(priors, epsilon):
    """The probability of a count that moves somebody by more than ε, through all data sets of these people."""
    data = np.array(list(product([0, 1], repeat=len(priors))))
    priors = np.array(priors)
    probability = np.where(data, priors, 1 - priors).prod(axis=1)
    unsafe = 0.0
    for count in range(len(priors) + 1):
        agrees = data.sum(axis=1) == count
        mass = probability[agrees].sum()
        posterior = probability[agrees] @ data[agrees] / mass
        moved = np.maximum(np.abs(1 - posterior / priors), np.abs(1 - (1 - posterior) / (1 - priors)))
        unsafe += mass * (moved.max() > epsilon + 1e-6)
    return unsafe


# ---- the exact figures ----------------------------------------------------------------------------------------------


@given(st.lists(PRIORS, min_size=1, max_size=8), st.sampled_from([0.1, 0.2, 0.5, 1, 3]))
def test_unsafe_chance_is_that_of_all_data_sets(priors, epsilon):
    count_law = PoissonBinomial([1] * len(priors), priors)
    assert unsafe_chance(count_law, epsilon=epsilon) == pytest.approx(
        unsafe_by_data_sets(priors, epsilon), abs=1e-12
    )


def test_one_person_is_never_safe_and_nobody_always_is():
    assert unsafe_chance(PoissonBinomial([1], [0.4]), epsilon=0.5) == pytest.approx(1)
    assert unsafe_chance(PoissonBinomial([], []), epsilon=0.5) == 0


@pytest.mark.parametrize("epsilon", ["1/5", 0.2])
def test_a_count_exactly_at_epsilon_is_safe_on_either_side(epsilon):
    # 40 or 60 of 100 move a prior of one half by exactly 0.2; rounding must not call one of them unsafe.
    inside = stats.binom.cdf(60, 100, 0.5) - stats.binom.cdf(39, 100, 0.5)
    assert unsafe_chance(PoissonBinomial([100], [0.5]), epsilon=epsilon) == pytest.approx(
        1 - inside, rel=1e-9
    )


def test_tails_that_one_minus_a_sum_would_lose_are_kept():
    tiny = unsafe_chance(PoissonBinomial([10_000], [0.4]), epsilon=0.2)
    expected = stats.binom.cdf(3199, 10_000, 0.4) + stats.binom.sf(4800, 10_000, 0.4)
    assert 0 < tiny == pytest.approx(expected, rel=1e-6)
    assert tiny < 1e-50


@given(st.integers(1, 300), PRIORS, st.sampled_from([0.05, 0.2, 0.5]), st.integers(1, 121))
def test_release_chance_is_the_binomial_law_of_the_unsafe_draws(people, prior, delta, decisions):
    count_law = PoissonBinomial([people], [prior])
    inverse = decisions / delta
    draws, hits = math.ceil(inverse * math.log(inverse)), math.floor(math.log(inverse) / 2)
    expected = stats.binom.cdf(hits, draws, unsafe_chance(count_law, epsilon=0.5))
    found = release_chance(count_law, epsilon=0.5, delta=delta, decisions=decisions)
    assert found == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(
    st.sampled_from([0.05, 0.1, 0.3, 0.5, 0.65, 0.9]),
    st.sampled_from([0.1, 0.25, 0.5, 0.9, 2.5]),
    st.sampled_from([0.5, 0.9, 0.99]),
    st.sampled_from([1, 9, 100]),
)
def test_people_needed_are_enough_and_one_fewer_are_not(prior, epsilon, chance, cells):
    needed = people_needed(prior, epsilon=epsilon, chance=chance, cells=cells)

    def safe(people):
        reach = (epsilon + 1e-6) * min(prior, 1 - prior)
        low, high = math.floor(people * (prior - reach)), math.ceil(people * (prior + reach))
        law = stats.binom(people, prior)
        return (1 - law.cdf(low) - law.sf(high - 1)) ** cells

    assert all(safe(people) >= chance - 1e-12 for people in range(needed, needed + 60))
    assert needed == 1 or safe(needed - 1) < chance


def test_people_needed_agree_with_the_unsafe_chance_of_a_crowd():
    needed = people_needed(0.3, epsilon=0.5, chance=0.99)
    assert unsafe_chance(PoissonBinomial([needed], [0.3]), epsilon=0.5) <= 0.01
    assert unsafe_chance(PoissonBinomial([needed - 1], [0.3]), epsilon=0.5) > 0.01


def test_people_needed_are_the_same_for_a_prior_and_its_opposite():
    assert people_needed(0.2, epsilon=0.3, chance=0.9) == people_needed(0.8, epsilon=0.3, chance=0.9)


def test_a_prior_that_no_count_can_move_by_epsilon_needs_one_person():
    assert people_needed(0.5, epsilon=1.01, chance=0.99, cells=1000) == 1


def test_so_small_an_epsilon_that_all_numbers_cannot_be_tried_is_refused():
    with pytest.raises(InvalidPrivacy, match=f"more than {LARGEST_CELL:,} people"):
        people_needed(0.01, epsilon=0.01, chance=0.99)


# ---- the theorems ---------------------------------------------------------------------------------------------------


@given(st.integers(1, 10**6), st.floats(0.01, 0.5), st.floats(0.01, 5), st.integers(1, 100))
def test_theorem_5_is_the_printed_formula_or_nothing(people, margin, epsilon, cells):
    rho = margin * math.log(1 + epsilon)
    tails = (math.exp(rho) / (1 + rho) ** (1 + rho)) ** (people * margin) + math.exp(
        -(rho**2) * people * margin / 2
    )
    printed = max(0.0, 1 - tails) ** cells
    found = full_release_bound(people, margin=margin, epsilon=epsilon, cells=cells)
    assert found == pytest.approx(printed, abs=1e-6)


@st.composite
def count_laws(draw):
    """People whose priors lie between a margin and its opposite, many of them at the ends, and the margin."""
    margin = draw(st.sampled_from([0.05, 0.1, 0.25, 0.4, 0.5]))
    kinds = draw(st.integers(1, 3))
    inside = st.sampled_from([margin, 1 - margin, 0.5])
    sizes = st.sampled_from([1, 5, 40, 300, 1500])
    return PoissonBinomial([draw(sizes) for _ in range(kinds)], [draw(inside) for _ in range(kinds)]), margin


@settings(max_examples=150)
@given(count_laws(), st.sampled_from([0.1, 0.2, 0.5, 1, 2, 8]))
def test_theorem_5_holds_and_is_never_above_the_exact_chance(drawn, epsilon):
    count_law, margin = drawn
    exact = 1 - unsafe_chance(count_law, epsilon=epsilon)
    assert full_release_bound(count_law.size, margin=margin, epsilon=epsilon) <= exact + 1e-9


@settings(max_examples=150)
@given(
    count_laws(),
    st.sampled_from([0.1, 0.5, 1, 2, 8]),
    st.sampled_from([0.01, 0.1, 0.3]),
    st.sampled_from([1, 4, 121]),
)
def test_theorem_6_holds_and_is_never_above_the_exact_chance(drawn, epsilon, delta, decisions):
    count_law, margin = drawn
    exact = release_chance(count_law, epsilon=epsilon, delta=delta, decisions=decisions)
    bound = release_bound(count_law.size, margin=margin, epsilon=epsilon, delta=delta, decisions=decisions)
    assert bound <= exact + 1e-9


@settings(max_examples=50)
@given(st.integers(3, 6), st.sampled_from([0.25, 0.4, 0.5]), st.sampled_from([0.05, 0.1, 0.3]))
def test_no_other_number_makes_theorem_6_say_more(magnitude, margin, delta):
    people = 10**magnitude
    tail = 1 - full_release_bound(people, margin=margin, epsilon=0.2)
    best = release_bound(people, margin=margin, epsilon=0.2, delta=delta)
    if tail < 1e-12:
        assert best > 0.999
        return
    for ell in np.linspace(2.001, max(delta / tail, 2.001), 200):
        if tail < delta / ell:
            exponent = math.log(1 / delta) / ell
            said = 1 - math.exp(exponent * (ell / 2 - 1 - ell / 2 * math.log(ell / 2)))
            assert said <= best + 1e-9


def test_theorem_6_says_nothing_where_the_tails_are_too_heavy():
    assert release_bound(100, margin=0.3, epsilon=0.5, delta=0.2) == 0
    assert release_bound(10**9, margin=0.5, epsilon=0.5, delta=0.2) == 1


@given(st.floats(0.02, 0.5), st.floats(0.05, 2), st.sampled_from([0.5, 0.9, 0.99]), st.integers(1, 100))
def test_people_needed_by_theorem_5_are_the_fewest_that_it_allows(margin, epsilon, chance, cells):
    needed = people_needed_by_bound(margin=margin, epsilon=epsilon, chance=chance, cells=cells)
    assert full_release_bound(needed, margin=margin, epsilon=epsilon, cells=cells) >= chance - 1e-9
    assert needed == 1 or full_release_bound(needed - 1, margin=margin, epsilon=epsilon, cells=cells) < chance


@pytest.mark.parametrize("prior", [0.1, 0.3, 0.5])
def test_theorem_5_asks_for_many_more_people_than_are_needed(prior):
    needed = people_needed(prior, epsilon=0.2, chance=0.99, cells=100)
    assert people_needed_by_bound(margin=prior, epsilon=0.2, chance=0.99, cells=100) > 10 * needed


# ---- Theorem 2 ------------------------------------------------------------------------------------------------------

INVERSES = [1.001, 1.3, 1.76, 2, 3, 5, 7.38, 7.4, 10, 25, 54, 55, 80, 605, 2980, 2981, 1e5, 1e7, 1e9, 1e12]


@pytest.mark.parametrize("inverse", INVERSES)
def test_a_breach_is_less_likely_than_delta_for_every_number_of_decisions(inverse):
    decisions = max(1, math.floor(inverse / 2))
    delta = decisions / inverse
    assert 0 < breach_bound(decisions, delta) < 0.45 * delta


@pytest.mark.parametrize("inverse", INVERSES)
def test_the_exchange_of_the_true_value_with_a_draw_proves_theorem_2(inverse):
    draws, hits = math.ceil(inverse * math.log(inverse)), math.floor(math.log(inverse) / 2)
    assert (hits + 1) / (draws + 1) <= 1 / inverse
    assert breach_bound(1, 1 / inverse) <= (hits + 1) / (draws + 1)


@pytest.mark.parametrize("inverse", [1.5, 7.5, 80, 605, 1e4])
def test_breach_bound_is_the_greatest_over_all_probabilities_of_an_unsafe_value(inverse):
    draws, hits = math.ceil(inverse * math.log(inverse)), math.floor(math.log(inverse) / 2)
    unsafe = np.concatenate([np.linspace(0, 1, 4001), np.linspace(0, 20 / draws, 4001)])
    greatest = (unsafe * stats.binom.cdf(hits, draws, np.minimum(unsafe, 1))).max()
    assert breach_bound(1, 1 / inverse) == pytest.approx(greatest, rel=1e-4)


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: full_release_bound(0, margin=0.5, epsilon=0.2), "people must be a whole number"),
        (lambda: full_release_bound(2.5, margin=0.5, epsilon=0.2), "people must be a whole number"),
        (lambda: full_release_bound(True, margin=0.5, epsilon=0.2), "people must be a whole number"),
        (lambda: full_release_bound(10, margin=0.6, epsilon=0.2), "margin, the distance of every prior"),
        (lambda: full_release_bound(10, margin=0, epsilon=0.2), "margin, the distance of every prior"),
        (lambda: full_release_bound(10, margin=0.5, epsilon=0), "epsilon must be above 0"),
        (lambda: full_release_bound(10, margin=0.5, epsilon="much"), "epsilon must be"),
        (lambda: full_release_bound(10, margin=0.5, epsilon=0.2, cells=0), "cells must be"),
        (lambda: release_bound(10, margin=0.5, epsilon=0.2, delta=1), "delta must be strictly between"),
        (
            lambda: release_chance(PoissonBinomial([5], [0.5]), epsilon=0.2, delta=0.1, decisions=0),
            "decisions must be",
        ),
        (lambda: people_needed(1, epsilon=0.2, chance=0.9), "a prior probability must be strictly between"),
        (lambda: people_needed(0.5, epsilon=0.2, chance=1), "the chance must be strictly between"),
        (lambda: breach_bound(5, 0), "delta must be strictly between"),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, said):
    with pytest.raises(InvalidPrivacy, match=said):
        call()
