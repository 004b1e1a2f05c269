"""A count_law: the law of how many have the attribute, and of who they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tabulary.errors import InvalidTable
from tabulary.table_samplers.poisson_binomial import PoissonBinomial
from tests.suppressed_tables import law, priors

count_laws = st.lists(st.tuples(st.integers(0, 6), st.floats(0.001, 0.999)), min_size=0, max_size=5).map(
    lambda kinds: PoissonBinomial([n for n, _ in kinds], [p for _, p in kinds])
)


@given(count_laws)
def test_the_number_of_people_with_the_attribute_has_the_law_of_independent_people(count_law):
    np.testing.assert_allclose(np.exp(count_law.log_weights), law(priors(count_law)), rtol=1e-9)


@given(count_laws)
def test_the_variance_is_that_of_the_law(count_law):
    weights, counts = np.exp(count_law.log_weights), np.arange(count_law.size + 1)
    mean = weights @ counts
    assert weights @ (counts - mean) ** 2 == pytest.approx(count_law.variance, abs=1e-9)


@given(count_laws)
def test_a_person_has_it_as_often_as_all_others_leave_room_for_it(count_law):
    everyone = law(priors(count_law))
    for kind, prior in enumerate(count_law.probability):
        others = priors(count_law)
        others.remove(prior)
        np.testing.assert_allclose(
            count_law.chances[kind], np.append(0, prior * law(others)) / everyone, rtol=1e-8, atol=1e-12
        )


@given(count_laws)
def test_those_who_have_it_are_as_many_as_have_it(count_law):
    np.testing.assert_allclose(count_law.people @ count_law.chances, np.arange(count_law.size + 1), atol=1e-9)


@given(count_laws, st.data())
def test_the_chances_between_two_counts_are_a_part_of_all(count_law, data):
    low = data.draw(st.integers(0, count_law.size))
    high = data.draw(st.integers(low, count_law.size))
    np.testing.assert_array_equal(count_law.chances_between(low, high), count_law.chances[:, low : high + 1])


@pytest.mark.parametrize("kinds", [2, 40])
def test_chances_stay_sound_where_the_law_underflows(kinds):
    generator = np.random.default_rng(5)
    count_law = PoissonBinomial(
        generator.integers(1, 12_000 // kinds, kinds), generator.uniform(0.001, 0.6, kinds)
    )
    assert np.exp(count_law.log_weights[-1]) == 0
    assert ((count_law.chances >= 0) & (count_law.chances <= 1)).all()
    shared = count_law.people @ count_law.chances
    np.testing.assert_allclose(shared, np.arange(count_law.size + 1), rtol=1e-9, atol=1e-9)
    # Whoever is likelier to have it beforehand is likelier afterwards.
    assert (np.diff(count_law.chances, axis=0) >= -1e-12).all()


def test_ten_thousand_people_have_the_binomial_law():
    weights = PoissonBinomial([10_000], [0.3]).log_weights
    np.testing.assert_allclose(weights, stats.binom(10_000, 0.3).logpmf(np.arange(10_001)), rtol=1e-10)


def test_many_kinds_of_one_prior_are_one_kind():
    count_law = PoissonBinomial([10, 0, 20, 5], [0.3, 2.0, 0.3, 0.1])
    assert count_law.people.tolist() == [5, 30]
    assert count_law.probability.tolist() == [0.1, 0.3]


def test_a_group_without_people_has_a_law_too():
    nobody = PoissonBinomial([], [])
    assert nobody.size == 0
    assert nobody.log_weights.tolist() == [0.0]
    assert nobody.deviation(nobody.posterior(np.ones(1))) == 0


@given(count_laws.filter(lambda count_law: count_law.size > 0), st.data())
def test_the_deviation_is_the_largest_over_people_and_both_values(count_law, data):
    posterior = np.array([data.draw(st.floats(0, 1)) for _ in count_law.people])
    worst = max(
        max(abs(1 - q / p), abs(1 - (1 - q) / (1 - p)))
        for q, p in zip(posterior, count_law.probability, strict=True)
    )
    assert count_law.deviation(posterior) == pytest.approx(worst, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("people", "probability", "what"),
    [
        ([1, 2], [0.5], "one number of people and one probability"),
        ([[1]], [[0.5]], "one number of people and one probability"),
        ([-1], [0.5], "below zero"),
        ([1], [0.0], "not strictly between 0 and 1"),
        ([1], [1.0], "not strictly between 0 and 1"),
        ([1], [float("nan")], "not strictly between 0 and 1"),
    ],
)
def test_people_or_priors_that_cannot_be_are_refused(people, probability, what):
    with pytest.raises(InvalidTable, match=what):
        PoissonBinomial(people, probability)


def test_a_crowd_shows_its_size_only():
    assert repr(PoissonBinomial([2_000], [0.5])) == "<PoissonBinomial of 2,000 people of 1 kinds>"
