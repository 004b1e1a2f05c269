"""A prior fitted to past tables: the likelihood it maximises, what it leans on, and what it refuses."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import InvalidTable
from tabulary.suppress.simulatable_method.priors import fit_prior
from tabulary.table_samplers.people import People


def likelihood(people, counts, mean, weight):
    return stats.betabinom.logpmf(counts, people, weight * mean, weight * (1 - mean)).sum()


def fitted_law(people, counts, prior):
    """The mean and weight of the beta law behind a prior, from an empty cell and one with people."""
    told = int(np.argmax(people))
    mean = prior[-1]
    # prior = (x + s m)/(n + s), solved for s.
    return mean, (counts[told] - people[told] * prior[told]) / (prior[told] - mean)


@st.composite
def past(draw):
    people = np.array(draw(st.lists(st.integers(0, 500), min_size=1, max_size=12)))
    counts = np.array([draw(st.integers(0, int(number))) for number in people])
    return people, counts


@settings(max_examples=50)
@given(past())
def test_every_probability_is_strictly_inside_and_between_the_cell_and_the_whole(tables):
    people, counts = tables
    if not people.sum():
        return
    # An empty cell tells the mean that the others are drawn to.
    prior = fit_prior(np.append(people, 0), np.append(counts, 0))
    assert ((prior > 0) & (prior < 1)).all()
    mean = prior[-1]
    own = counts / np.maximum(people, 1)
    low, high = np.minimum(own, mean), np.maximum(own, mean)
    given_people = people > 0
    assert (prior[:-1][given_people] >= low[given_people] - 1e-9).all()
    assert (prior[:-1][given_people] <= high[given_people] + 1e-9).all()


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_no_other_beta_law_has_a_greater_likelihood(seed):
    random = np.random.default_rng(seed)
    people = random.integers(5, 300, 40)
    counts = random.binomial(people, random.beta(2, 5, 40))
    prior = fit_prior(np.append(people, 0), np.append(counts, 0))
    mean, weight = fitted_law(people, counts, prior)
    best = likelihood(people, counts, mean, weight)
    for factor in (0.7, 0.98, 1.02, 1.4):
        assert likelihood(people, counts, mean, weight * factor) < best
        assert likelihood(people, counts, mean * factor, weight) < best
    for far in (1, 1e3, 1e5):
        assert likelihood(people, counts, mean, far) < best


def test_the_law_that_cells_were_drawn_from_is_found_again():
    random = np.random.default_rng(7)
    people = random.integers(20, 400, 4000)
    counts = random.binomial(people, random.beta(6, 14, 4000))
    prior = fit_prior(np.append(people, 0), np.append(counts, 0))
    mean, weight = fitted_law(people, counts, prior)
    assert mean == pytest.approx(0.3, abs=0.006)
    assert weight == pytest.approx(20, rel=0.1)


def test_it_is_nearer_to_the_truth_than_each_cell_by_itself_or_all_together():
    random = np.random.default_rng(8)
    people = random.integers(5, 60, 500)
    truth = random.beta(8, 12, 500)
    counts = random.binomial(people, truth)
    prior = fit_prior(people, counts)

    def error(estimate):
        return float(np.mean((estimate - truth) ** 2))

    assert error(prior) < 0.9 * error(counts / people)
    assert error(prior) < 0.9 * error(counts.sum() / people.sum())


def test_counts_that_vary_no_more_than_binomial_ones_get_the_pooled_rate():
    people = np.array([100, 200, 300, 0])
    prior = fit_prior(people, [20, 40, 60, 0])
    assert prior == pytest.approx(np.full(4, 0.2), rel=1e-12)


def test_a_cell_with_few_people_leans_on_the_others_and_one_with_many_on_itself():
    # Cells of 1000 at quite different rates, then two at the same rate of one half, of 4 and of 4000.
    people = [1000, 1000, 1000, 1000, 4, 4000]
    prior = fit_prior(people, [100, 150, 120, 200, 2, 2000])
    assert prior[5] == pytest.approx(0.5, abs=0.01)
    assert prior[4] < 0.4


@pytest.mark.parametrize("everybody", [False, True])
def test_where_nobody_or_everybody_has_it_the_prior_is_not_certain(everybody):
    people = np.array([[30, 12], [7, 50]])
    prior = fit_prior(people, people * everybody)
    certain = 99.5 if everybody else 0.5
    assert prior == pytest.approx(np.full((2, 2), certain / 100), rel=1e-12)


def test_cells_that_are_all_or_nothing_are_not_called_certain():
    assert fit_prior([1000, 1000], [1000, 0]) == pytest.approx([1000.5 / 1001, 0.5 / 1001], rel=1e-6)


@settings(max_examples=30)
@given(past())
def test_those_without_the_attribute_have_the_opposite_prior(tables):
    people, counts = tables
    if people.sum():
        assert fit_prior(people, people - counts) == pytest.approx(1 - fit_prior(people, counts), abs=1e-5)


def test_years_along_an_axis_are_added_up():
    random = np.random.default_rng(3)
    people = random.integers(10, 90, (4, 2, 3))
    counts = random.binomial(people, 0.3)
    together = fit_prior(people.sum(axis=0), counts.sum(axis=0))
    assert (fit_prior(people, counts, axis=0) == together).all()
    moved = fit_prior(np.moveaxis(people, 0, -1), np.moveaxis(counts, 0, -1), axis=-1)
    assert (moved == together).all()


def test_tables_are_taken_and_the_result_is_the_probability_of_people():
    domain = Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]})
    people, counts = Table(domain, [[200, 80], [100, 0]]), Table(domain, [[101, 23], [22, 0]])
    prior = fit_prior(people, counts)
    assert People.of(domain, [[10, 20], [30, 40]], prior).probability[..., 0].tolist() == prior.tolist()


def test_cells_of_millions_of_people_are_fitted_without_loss():
    random = np.random.default_rng(5)
    people = random.integers(500_000, 3_000_000, 400)
    counts = random.binomial(people, random.beta(20_000, 80_000, 400))
    prior = fit_prior(np.append(people, 0), np.append(counts, 0))
    mean, weight = fitted_law(people, counts, prior)
    assert mean == pytest.approx(0.2, abs=3e-4)
    assert math.log(weight / 100_000) == pytest.approx(0, abs=0.3)


@pytest.mark.parametrize(
    ("people", "counts", "axis", "said"),
    [
        ([5, 5], [6, 0], None, "above the number of people"),
        ([5, 5], [1, 2, 3], None, "shape"),
        ([[5, 5]], [5, 5], None, "shape"),
        ([0, 0], [0, 0], None, "no prior can be fitted"),
        ([], [], None, "no prior can be fitted"),
        ([5, -1], [1, 0], None, "whole numbers"),
        ([5, 5], [-1, 0], None, "whole numbers"),
        ([5, 5], [1.5, 0], None, "whole numbers"),
        ([5, 5], [float("nan"), 0], None, "whole numbers"),
        ([5, float("inf")], [1, 0], None, "whole numbers"),
        ([5, 5], ["one", 0], None, "not numbers"),
        ([[5, 5], [5]], [[1, 1], [1]], None, "not numbers"),
        ([5, 5], [1, 2], 1, "1 axes"),
    ],
)
def test_past_tables_that_cannot_be_are_refused(people, counts, axis, said):
    with pytest.raises(InvalidTable, match=said):
        fit_prior(people, counts, axis=axis)
