"""Every registered law keeps its word: closed forms agree with what its probabilities give, costs with its ratios."""

from fractions import Fraction

import numpy as np
import pytest

from tabulary.core.privacy import ZCDP, GaussianDP, PureDP
from tabulary.errors import InvalidNoise
from tabulary.noise import LAWS, DiscreteGaussian, DiscreteLaplace, IntegerNoise, RoundedGaussian
from tabulary.noise.laws import SPENDING
from tabulary.workflows.auditing.curve import Moved, privacy_curve
from tests.geometric_mixture import GeometricMixture

CLOSED = (DiscreteLaplace("3/2"), DiscreteGaussian(5), RoundedGaussian(5))
EVERY = (*CLOSED, GeometricMixture("3/2"))
every_closed_form = pytest.mark.parametrize("law", CLOSED, ids=lambda law: law.family)
every_law = pytest.mark.parametrize("law", EVERY, ids=lambda law: law.family)


def default(name, law, *given):
    """What the base class computes from the probabilities alone."""
    found = vars(IntegerNoise).get(name) or getattr(IntegerNoise, name)
    return found.fget(law) if isinstance(found, property) else found(law, *given)


def test_every_law_of_the_product_is_among_these():
    assert {law.family for law in CLOSED} <= set(LAWS)
    assert set(SPENDING.values()) == {type(law) for law in CLOSED}


@every_closed_form
def test_closed_forms_are_what_the_probabilities_give(law):
    k = np.arange(-12, 13)
    angles = np.array([0.0, 0.4, 1.7, 3.0])
    assert default("variance", law) == pytest.approx(law.variance, rel=1e-12)
    assert default("cdf", law, k) == pytest.approx(law.cdf(k), abs=1e-13)
    assert default("characteristic", law, angles) == pytest.approx(law.characteristic(angles), abs=1e-12)
    tilts = np.array([0.0, 0.1, 0.3])
    assert (law.log_moment_bound(tilts) >= default("log_moment_bound", law, tilts) - 1e-12).all()
    for terms in (1, 4):
        for confidence in (0.5, 0.95, 0.999):
            assert default("half_width", law, confidence, terms) == law.half_width(confidence, terms)


def test_the_fourth_cumulant_of_a_laplace_law_is_that_of_its_probabilities():
    law = CLOSED[0]
    assert default("fourth_cumulant", law) == pytest.approx(law.fourth_cumulant, rel=1e-9)


@every_closed_form
@pytest.mark.parametrize("terms", [1, 3])
def test_the_likelihood_of_a_count_is_what_the_probabilities_give(law, terms):
    counts = np.arange(22)
    for x in (-3, 0, 17):
        expected = default("likelihood", law, terms).at(x, counts)
        assert law.likelihood(terms).at(x, counts) == pytest.approx(expected, abs=1e-6)


@every_closed_form
@pytest.mark.parametrize("minimum", [0, 3])
def test_the_likelihood_at_a_minimum_is_what_the_probabilities_give(law, minimum):
    counts = np.arange(20)
    expected = default("likelihood_at_minimum", law, minimum).at(minimum, counts)
    assert law.likelihood_at_minimum(minimum).at(minimum, counts) == pytest.approx(expected, abs=1e-6)


@every_law
@pytest.mark.parametrize("shift", [1, 3])
def test_no_shift_costs_more_than_the_law_says(law, shift):
    """ε bounds every ratio of probabilities, and ρ every Rényi divergence (Bun & Steinke 2016)."""
    k = np.arange(-25, 26)
    here, there = law.pmf(k), law.pmf(k + shift)
    ratios = np.log(here / there)
    for currency, cost in law.unit_costs.items():
        if currency is PureDP:
            assert np.abs(ratios).max() <= shift * float(cost) + 1e-9
        else:
            for order in (1.5, 2.0, 8.0):
                moment = np.log(np.sum(here * np.exp((order - 1) * ratios))) / (order - 1)
                assert moment <= order * shift**2 * float(cost) + 1e-9


@every_law
def test_a_law_of_a_given_cost_has_it_and_one_at_a_smaller_scale_costs_more(law):
    for currency, cost in law.unit_costs.items():
        assert law.unit_cost(currency) == cost
        assert type(law).costing(currency, cost) == law
        power = 1 if currency is PureDP else 2
        assert law.narrowed(Fraction(1, 2)).unit_cost(currency) == 2**power * cost
    for currency in {PureDP, ZCDP, GaussianDP} - set(law.unit_costs):
        with pytest.raises(InvalidNoise, match=currency.__name__):
            law.unit_cost(currency)
        with pytest.raises(InvalidNoise, match=currency.__name__):
            type(law).costing(currency, Fraction(1))


@pytest.mark.parametrize("law", CLOSED[:2], ids=lambda law: law.family)
def test_the_loss_of_a_shift_and_its_curve_are_what_the_probabilities_give(law):
    k = np.arange(-10, 11)
    for shift in (-2, 1, 5):
        assert law.loss(k, shift) == pytest.approx(default("loss", law, k, shift), abs=1e-9)

    class Listed(type(law)):
        """The same law, without what it knows in closed form of its loss."""

        loss, largest_noise = IntegerNoise.loss, IntegerNoise.largest_noise

    name = law.parameters()[0]
    listed = Listed(getattr(law, name))
    curve, twin = (privacy_curve([Moved(each, 2, 3)]) for each in (law, listed))
    for threshold in (0.0, 0.5, 1.0, 2.0):
        assert twin.delta(threshold) == pytest.approx(curve.delta(threshold), abs=1e-5)


@every_law
def test_a_law_has_words_and_a_formula_for_the_report(law):
    assert law.family.split("-")[-1] in law.words.lower()
    assert "e^{" in law.formula
    assert law.kind


def test_a_law_that_is_too_wide_to_list_says_so():
    with pytest.raises(InvalidNoise, match="too many to list"):
        GeometricMixture(10_000).cdf(0)


def test_a_law_that_earns_nothing_has_no_scale_and_no_cost():
    class Silent(GeometricMixture):
        """The mixture, without a statement of its cost."""

        unit_costs = {}  # noqa: RUF012

    with pytest.raises(InvalidNoise, match="no scale"):
        Silent(1).narrowed(Fraction(1, 2))
    with pytest.raises(InvalidNoise, match="could be audited"):
        _ = Moved(Silent(1), 1, 1).spread
