"""Laplace and Normal perturbations: closed forms, parameters, and what they refuse."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.privacy import ApproxDP, PureDP
from tabulary.errors import InvalidNoise, InvalidPrivacy
from tabulary.perturb import Laplace, Normal

epsilons = st.fractions(min_value="1/20", max_value=6, max_denominator=100)
bounds = st.integers(1, 40)
sensitivities = st.integers(1, 4)


def plain_sum(law, function, reach):
    """Σ function(x) p(x) over all offsets, from the row of a count."""
    row = law.row(reach)
    return math.fsum(function(int(b) - reach) * p for b, p in zip(row.values, row.probabilities, strict=True))


@given(epsilons, bounds)
def test_laplace_is_the_exponential_of_the_distance_within_its_bound(epsilon, bound):
    law = Laplace(epsilon, bound)
    x = np.arange(-bound, bound + 1)
    weights = np.exp(-float(epsilon) * np.abs(x))
    assert law.pmf(x) == pytest.approx(weights / weights.sum(), rel=1e-12)
    assert law.pmf([-bound - 1, bound + 1]).tolist() == [0, 0]


@given(epsilons, bounds)
def test_normal_is_the_exponential_of_the_square_over_twice_the_bound_plus_one(epsilon, bound):
    law = Normal(epsilon, bound)
    x = np.arange(-bound, bound + 1)
    weights = np.exp(-float(epsilon) * x**2 / (2 * bound + 1))
    assert law.pmf(x) == pytest.approx(weights / weights.sum(), rel=1e-12)
    assert law.pmf([-bound - 1, bound + 1]).tolist() == [0, 0]


@given(epsilons, bounds, sensitivities)
def test_the_bound_and_the_sensitivity_stretch_the_rate(epsilon, bound, sensitivity):
    bound = max(bound, sensitivity)
    x = np.arange(-bound, bound + 1)
    laplace = np.exp(-float(epsilon) * np.abs(x) / sensitivity)
    normal = np.exp(-float(epsilon) * x**2 / (sensitivity * (2 * bound + sensitivity)))
    for family, weights in ((Laplace, laplace), (Normal, normal)):
        law = family(epsilon, bound, sensitivity=sensitivity)
        assert law.pmf(x) == pytest.approx(weights / weights.sum(), rel=1e-12)


@given(epsilons, bounds)
def test_the_absolute_loss_of_bounded_laplace_is_the_closed_form_of_the_paper(epsilon, bound):
    """Rinott et al. (2018), section 5.6.1."""
    alpha = math.exp(-float(epsilon))
    m = bound
    total = 1 + 2 * (alpha - alpha ** (m + 1)) / (1 - alpha)
    closed = 2 * alpha * (m * alpha ** (m + 1) - (m + 1) * alpha**m + 1) / (total * (alpha - 1) ** 2)
    assert Laplace(epsilon, bound).expected_loss("l1") == pytest.approx(closed, rel=1e-9)


@given(epsilons)
def test_without_a_bound_the_absolute_loss_is_twice_what_the_paper_prints(epsilon):
    """Its limit for m → ∞ lacks the factor 2 that the formula before it has."""
    alpha = math.exp(-float(epsilon))
    total = 1 + 2 * alpha / (1 - alpha)
    printed = alpha / (total * (alpha - 1) ** 2)
    law = Laplace(epsilon)
    assert law.expected_loss("l1") == pytest.approx(2 * printed, rel=1e-9)
    assert law.expected_loss("l1") == pytest.approx(plain_sum(law, abs, 3), rel=1e-9)


@given(epsilons, st.none() | bounds, sensitivities)
def test_closed_forms_of_laplace_agree_with_its_rows(epsilon, bound, sensitivity):
    law = Laplace(epsilon, None if bound is None else max(bound, sensitivity), sensitivity=sensitivity)
    assert law.expected_loss("l1") == pytest.approx(plain_sum(law, abs, 5), rel=1e-9)
    assert law.expected_loss("l2") == pytest.approx(plain_sum(law, lambda x: x * x, 5), rel=1e-9)
    assert law.variance() == pytest.approx(plain_sum(law, lambda x: x * x, 5), rel=1e-9)


@given(epsilons, bounds)
def test_the_squared_loss_of_normal_is_its_plain_sum(epsilon, bound):
    law = Normal(epsilon, bound)
    assert law.expected_loss("l2") == pytest.approx(plain_sum(law, lambda x: x * x, 5), rel=1e-12)
    assert law.variance() == pytest.approx(law.expected_loss("l2"), rel=1e-12)
    assert law.bias() == 0


@pytest.mark.parametrize("law", [Laplace("1/2"), Laplace("1/2", bound=7), Normal("1/2", bound=7)], ids=str)
def test_every_count_is_perturbed_alike(law):
    for original in (0, 3, 10**6):
        assert law.row(original).probabilities.tolist() == law.row(0).probabilities.tolist()
        assert int(law.row(original).values[0]) - original == int(law.row(0).values[0])
        assert law.drawn(original) == law.drawn(0)


@given(epsilons, bounds)
def test_a_bound_costs_exactly_the_outermost_probability(epsilon, bound):
    """(4.10) of Rinott et al. (2018); for Normal it belongs to a smaller ε than the one named."""
    for law in (Laplace(epsilon, bound), Normal(epsilon, bound)):
        assert law.delta == pytest.approx(law.transition(0, bound), rel=1e-12)
        assert law.truncation_delta == law.transition(0, bound)
    inside = Fraction(2 * bound - 1, 2 * bound + 1) * epsilon
    assert Normal(epsilon, bound).epsilon_at(law.delta) <= float(inside) * (1 + 1e-9)


def test_a_law_without_a_bound_is_purely_private_and_one_with_a_bound_is_not():
    assert Laplace("3/2").privacy() == PureDP("3/2")
    assert Laplace("3/2").delta == 0
    assert isinstance(Laplace("3/2", bound=7).privacy(), ApproxDP)
    assert isinstance(Normal("3/2", bound=7).privacy(), ApproxDP)


def test_parameters_are_described_exactly():
    assert Laplace(0.1).describe() == {"family": "laplace", "epsilon": "1/10"}
    assert Laplace(1.5, bound=7).describe() == {"family": "laplace", "epsilon": "3/2", "bound": "7"}
    assert Normal("1/3", bound=7, sensitivity=2).describe() == {
        "family": "normal",
        "epsilon": "1/3",
        "bound": "7",
        "sensitivity": "2",
    }
    assert str(Laplace(1.5, bound=7)) == "discrete laplace perturbation, ε = 1.5, at most ±7"
    assert str(Laplace(1.5)) == "discrete laplace perturbation, ε = 1.5"


def test_equal_parameters_make_equal_laws():
    assert Laplace(0.5, 7) == Laplace("1/2", bound=7)
    assert hash(Laplace(0.5, 7)) == hash(Laplace("1/2", bound=7))
    assert Laplace(0.5, 7) != Normal(0.5, 7)
    assert Laplace(0.5, 7) != Laplace(0.5, 7, sensitivity=2)


def test_a_tiny_epsilon_still_tells_what_has_a_closed_form():
    law = Laplace("1/10000000")
    assert law.delta == 0
    assert law.expected_loss("l1") == pytest.approx(1e7, rel=1e-6)
    assert law.expected_loss("l2") == pytest.approx(2e14, rel=1e-6)
    with pytest.raises(InvalidNoise, match="Give a bound"):
        law.row(0)


@pytest.mark.parametrize("family", [Laplace, Normal])
@pytest.mark.parametrize(
    ("epsilon", "reason"),
    [
        *((epsilon, "epsilon must be positive") for epsilon in (0, -1, "-1/2")),
        *((epsilon, "epsilon must be a whole number") for epsilon in (float("nan"), float("inf"))),
        *((epsilon, "epsilon must be a whole number") for epsilon in (None, True, "one", [1])),
    ],
)
def test_an_epsilon_that_cannot_be_is_refused(family, epsilon, reason):
    with pytest.raises(InvalidPrivacy, match=reason):
        family(epsilon, 7)


@pytest.mark.parametrize("family", [Laplace, Normal])
@pytest.mark.parametrize("bound", [0, -1, 1.5, 7.0, True, "7", 10**6, float("nan")])
def test_a_bound_that_cannot_be_is_refused(family, bound):
    with pytest.raises(InvalidNoise, match="bound"):
        family(1, bound)


def test_a_bound_of_zero_would_publish_the_exact_counts():
    with pytest.raises(InvalidNoise, match="exact counts would be published"):
        Laplace(1, 0)


def test_normal_needs_a_bound():
    with pytest.raises(InvalidNoise, match=r"needs a bound.*bound=10"):
        Normal(1)


@pytest.mark.parametrize("family", [Laplace, Normal])
@pytest.mark.parametrize("sensitivity", [0, -1, 1.5, True, "2", None])
def test_a_sensitivity_that_cannot_be_is_refused(family, sensitivity):
    with pytest.raises(InvalidNoise, match="sensitivity"):
        family(1, 7, sensitivity=sensitivity)


@pytest.mark.parametrize("family", [Laplace, Normal])
def test_a_bound_below_half_the_sensitivity_would_tell_neighbours_apart_for_sure(family):
    with pytest.raises(InvalidNoise, match="below half the sensitivity"):
        family(1, 2, sensitivity=5)
    assert family(1, 2, sensitivity=4).delta < 1
