"""The exact δ(ε) against the definition: all neighbouring tables of three cells, all outputs."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.errors import InvalidPrivacy
from tabulary.perturb import Custom, Laplace, MaxEntropy, Normal
from tabulary.perturb.exact_delta import delta_between
from tabulary.perturb.perturbation import Row
from tests.unit.perturb import brute_force

FORGETS_ITS_ZEROS = Custom([{0: 1}, {-1: "1/2", 1: "1/2"}, {-2: "1/8", -1: "1/8", 0: "1/2", 2: "1/4"}])

LAWS = [
    Laplace(1, bound=1),
    Laplace("3/2", bound=3),
    Normal(1, bound=3),
    Normal(4, bound=2),
    Laplace(1, bound=3, sensitivity=2),
    Laplace(2, bound=3, sensitivity=3),
    Normal("7/10", bound=3, sensitivity=2),
    Custom({-1: "1/4", 0: "1/2", 1: "1/4"}),
    Custom({0: "1/2", 2: "1/2"}),
    FORGETS_ITS_ZEROS,
    MaxEntropy(1, bound=2),
    MaxEntropy(1, bound=2, nonnegative=True),
    MaxEntropy("3/2", bound=3, nonnegative=True, js=1, mono=True),
]
every_law = pytest.mark.parametrize("law", LAWS, ids=str)
epsilons = st.floats(min_value=0, max_value=4)


@st.composite
def custom_laws(draw):
    """One to three rows on the offsets -2, …, 2, with holes."""

    def row():
        weights = draw(st.lists(st.integers(0, 5), min_size=5, max_size=5).filter(any))
        return {k: f"{w}/{sum(weights)}" for k, w in zip(range(-2, 3), weights, strict=True)}

    return Custom([row() for _ in range(draw(st.integers(1, 3)))])


@every_law
@pytest.mark.parametrize("epsilon", [0, "1/4", 1, "3/2", 3])
def test_delta_is_that_of_the_definition_on_tables_of_three_cells(law, epsilon):
    expected = brute_force.delta(law, float(Fraction(epsilon)), largest=law.settled + 1)
    assert law.delta_at(epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@settings(max_examples=60)
@given(custom_laws(), epsilons)
def test_delta_of_any_rows_is_that_of_the_definition(law, epsilon):
    expected = brute_force.delta(law, epsilon, largest=law.settled + 1)
    assert law.delta_at(epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(
    st.sampled_from([Laplace, Normal]),
    st.fractions(min_value="1/20", max_value=5, max_denominator=50),
    st.integers(2, 9),
    st.integers(1, 5),
    epsilons,
)
def test_no_smaller_step_is_worse_hidden_than_the_largest(family, named, bound, sensitivity, epsilon):
    law = family(named, max(bound, sensitivity), sensitivity=sensitivity)
    here = law.row(0)
    steps = [
        max(delta_between(here, law.row(step), epsilon), delta_between(law.row(step), here, epsilon))
        for step in range(1, sensitivity + 1)
    ]
    assert law.delta_at(epsilon) == max(steps) == steps[-1]
    assert all(small <= large * (1 + 1e-12) for small, large in pairwise(steps))


@given(st.fractions(min_value="1/4", max_value=5, max_denominator=50), st.integers(1, 6), st.floats(0, 6))
def test_delta_of_laplace_without_a_bound_is_a_plain_sum(named, sensitivity, epsilon):
    rate = float(named) / sensitivity
    b = np.arange(-1_500, 1_500)
    one, other = (math.tanh(rate / 2) * np.exp(-rate * np.abs(b - a)) for a in (0, sensitivity))
    excess = one - math.exp(epsilon) * other
    expected = excess[excess > 1e-13 * one].sum()
    assert Laplace(named, sensitivity=sensitivity).delta_at(epsilon) == pytest.approx(
        expected, rel=1e-9, abs=1e-13
    )


@pytest.mark.parametrize("sensitivity", [1, 2, 3])
def test_at_its_own_epsilon_laplace_loses_exactly_its_outermost_values(sensitivity):
    law = Laplace("3/2", bound=7, sensitivity=sensitivity)
    outermost = law.pmf(range(8 - sensitivity, 8)).sum()
    assert law.delta == pytest.approx(outermost, rel=1e-12)


@given(custom_laws(), epsilons, epsilons)
def test_delta_never_rises_with_epsilon(law, one, other):
    small, large = sorted((one, other))
    assert law.delta_at(large) <= law.delta_at(small) * (1 + 1e-12)


def test_truncation_delta_is_the_likeliest_value_that_a_neighbour_forbids():
    assert Laplace("3/2", bound=7).truncation_delta == Laplace("3/2", bound=7).transition(3, 10)
    assert Normal(1, bound=10).truncation_delta == Normal(1, bound=10).transition(0, -10)
    assert Laplace(1).truncation_delta == 0
    # 0 is published as 0 always, and 1 never.
    assert FORGETS_ITS_ZEROS.truncation_delta == 0.5
    # Two values are forbidden here, so one of them is not a δ.
    assert Custom({0: "1/2", 2: "1/2"}).truncation_delta == 0.5
    assert Custom({0: "1/2", 2: "1/2"}).delta_at(5) == pytest.approx(1)


def test_what_a_row_leaves_out_counts_in_full():
    whole, cut = Row(0, np.array([0.5, 0.5])), Row(0, np.array([0.5, 0.25]), 0.25)
    assert delta_between(cut, whole, 1.0) == 0.25
    assert delta_between(whole, cut, math.log(2)) == pytest.approx(0, abs=1e-12)


@every_law
@pytest.mark.parametrize(
    ("epsilon", "reason"),
    [
        *((epsilon, "epsilon must not be negative") for epsilon in (-1, "-1/1000")),
        *((epsilon, "epsilon must be a whole number") for epsilon in (float("nan"), None, "much", True)),
    ],
)
def test_an_epsilon_that_cannot_be_is_refused(law, epsilon, reason):
    with pytest.raises(InvalidPrivacy, match=reason):
        law.delta_at(epsilon)


def test_an_epsilon_beyond_all_use_is_no_overflow():
    assert Laplace(1, bound=3).delta_at(10**9) == pytest.approx(Laplace(1, bound=3).truncation_delta)
