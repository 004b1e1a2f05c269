"""A crowd: the law of how many have the attribute, and of who they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tabulary.errors import InvalidTable
from tabulary.suppress.samplers.crowd import Crowd
from tests.suppressed_tables import law, priors

crowds = st.lists(st.tuples(st.integers(0, 6), st.floats(0.001, 0.999)), min_size=0, max_size=5).map(
    lambda kinds: Crowd([n for n, _ in kinds], [p for _, p in kinds])
)


@given(crowds)
def test_the_number_of_people_with_the_attribute_has_the_law_of_independent_people(crowd):
    np.testing.assert_allclose(np.exp(crowd.log_weights), law(priors(crowd)), rtol=1e-9)


@given(crowds)
def test_mean_and_variance_are_those_of_the_law(crowd):
    weights, counts = np.exp(crowd.log_weights), np.arange(crowd.size + 1)
    assert weights @ counts == pytest.approx(crowd.mean, abs=1e-9)
    assert weights @ (counts - crowd.mean) ** 2 == pytest.approx(crowd.variance, abs=1e-9)


@given(crowds)
def test_a_person_has_it_as_often_as_all_others_leave_room_for_it(crowd):
    everyone = law(priors(crowd))
    for kind, prior in enumerate(crowd.probability):
        others = priors(crowd)
        others.remove(prior)
        np.testing.assert_allclose(
            crowd.chances[kind], np.append(0, prior * law(others)) / everyone, rtol=1e-8, atol=1e-12
        )


@given(crowds)
def test_those_who_have_it_are_as_many_as_have_it(crowd):
    np.testing.assert_allclose(crowd.people @ crowd.chances, np.arange(crowd.size + 1), atol=1e-9)


@given(crowds, st.data())
def test_the_chances_between_two_counts_are_a_part_of_all(crowd, data):
    low = data.draw(st.integers(0, crowd.size))
    high = data.draw(st.integers(low, crowd.size))
    np.testing.assert_array_equal(crowd.chances_between(low, high), crowd.chances[:, low : high + 1])


@pytest.mark.parametrize("kinds", [2, 40])
def test_chances_stay_sound_where_the_law_underflows(kinds):
    generator = np.random.default_rng(5)
    crowd = Crowd(generator.integers(1, 12_000 // kinds, kinds), generator.uniform(0.001, 0.6, kinds))
    assert np.exp(crowd.log_weights[-1]) == 0
    assert ((crowd.chances >= 0) & (crowd.chances <= 1)).all()
    shared = crowd.people @ crowd.chances
    np.testing.assert_allclose(shared, np.arange(crowd.size + 1), rtol=1e-9, atol=1e-9)
    # Whoever is likelier to have it beforehand is likelier afterwards.
    assert (np.diff(crowd.chances, axis=0) >= -1e-12).all()


def test_ten_thousand_people_have_the_binomial_law():
    weights = Crowd([10_000], [0.3]).log_weights
    np.testing.assert_allclose(weights, stats.binom(10_000, 0.3).logpmf(np.arange(10_001)), rtol=1e-10)


def test_many_kinds_of_one_prior_are_one_kind():
    crowd = Crowd([10, 0, 20, 5], [0.3, 2.0, 0.3, 0.1])
    assert crowd.people.tolist() == [5, 30]
    assert crowd.probability.tolist() == [0.1, 0.3]


def test_crowds_merge_into_one_of_all_their_people():
    merged = Crowd.merged([Crowd([2], [0.5]), Crowd([1, 3], [0.1, 0.5]), Crowd([], [])])
    assert merged.people.tolist() == [1, 5]


def test_nobody_is_a_crowd_too():
    nobody = Crowd([], [])
    assert nobody.size == 0
    assert nobody.log_weights.tolist() == [0.0]
    assert nobody.deviation(nobody.posterior(np.ones(1))) == 0


@given(crowds.filter(lambda crowd: crowd.size > 0), st.data())
def test_the_deviation_is_the_largest_over_people_and_both_values(crowd, data):
    posterior = np.array([data.draw(st.floats(0, 1)) for _ in crowd.people])
    worst = max(
        max(abs(1 - q / p), abs(1 - (1 - q) / (1 - p)))
        for q, p in zip(posterior, crowd.probability, strict=True)
    )
    assert crowd.deviation(posterior) == pytest.approx(worst, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("people", "probability", "what"),
    [
        ([1, 2], [0.5], "one number of people and one probability"),
        ([[1]], [[0.5]], "one number of people and one probability"),
        ([-1], [0.5], "below zero"),
        ([1], [0.0], "not between 0 and 1"),
        ([1], [1.0], "not between 0 and 1"),
        ([1], [float("nan")], "not between 0 and 1"),
    ],
)
def test_people_or_priors_that_cannot_be_are_refused(people, probability, what):
    with pytest.raises(InvalidTable, match=what):
        Crowd(people, probability)


def test_a_crowd_shows_its_size_only():
    assert repr(Crowd([2_000], [0.5])) == "<Crowd of 2,000 people of 1 kinds>"
