"""How often a guess between two neighbours is right: compared with every pair of laws that a search finds."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.guessing import guessing
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP, zcdp_to_approx

PARAMETERS = st.fractions(min_value="1/1000", max_value=20, max_denominator=1000)
ORDERS = np.concatenate([1 + np.logspace(-6, 3, 200), np.linspace(1.01, 40, 200)])


@st.composite
def guesses(draw):
    """How often a guess says "the first" of each of two neighbours: p of the first, q < p of the second."""
    q, p = sorted(draw(st.tuples(*[st.floats(0.001, 0.999)] * 2).filter(lambda pair: pair[0] != pair[1])))
    return p, q


def divergences(p, q):
    """The Rényi divergences of Bernoulli(p) from Bernoulli(q), a number for each of ORDERS."""
    terms = [ORDERS * np.log(a) + (1 - ORDERS) * np.log(b) for a, b in ((p, q), (1 - p, 1 - q))]
    return np.logaddexp(*terms) / (ORDERS - 1)


def relative_entropy(p, q):
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def concentration(p, q):
    """The least ρ for which the pair keeps ρ-zCDP, or a little less: the largest of some orders, 1 among them."""
    found = [relative_entropy(p, q), relative_entropy(q, p)]
    for there, back in ((p, q), (q, p)):
        found.append((divergences(there, back) / ORDERS).max())
    # At orders very near to 1 the divergence is a quotient of two roundings.
    return max(found[0], found[1], *(each * (1 - 1e-8) for each in found[2:]))


def right(p, q):
    return (1 + p - q) / 2


@given(guesses())
def test_no_guess_at_a_concentrated_promise_is_right_more_often(guess):
    assert right(*guess) <= guessing(ZCDP(concentration(*guess))) * (1 + 1e-12)


@given(PARAMETERS)
def test_at_a_concentrated_promise_some_guess_is_right_as_often(rho):
    bound = guessing(ZCDP(rho))
    p = bound - 1e-9
    # Every order is kept, and the first is what holds it back: a guess that were right a little more often breaks it.
    assert (divergences(p, 1 - p) <= float(rho) * ORDERS * (1 + 1e-8)).all()
    assert right(p, 1 - p) == pytest.approx(bound, abs=1.1e-9)
    if bound < 1 - 1e-6:
        assert relative_entropy(bound + 1e-7, 1 - bound - 1e-7) > rho


@pytest.mark.parametrize("rho", ["1/50", "1/8", "1/2", "2"])
def test_a_search_of_all_pairs_comes_as_near_as_its_steps_allow(rho):
    steps = np.linspace(0, 1, 402)[1:-1]
    allowed = float(Fraction(rho))
    q, p = np.meshgrid(steps, steps, indexing="ij")
    kept = q < p
    for order in (1.0001, 1.5, 2, 4, 16, 100):
        for a, b in ((p, q), (q, p)):
            terms = [order * np.log(x) + (1 - order) * np.log(y) for x, y in ((a, b), (1 - a, 1 - b))]
            kept &= np.logaddexp(*terms) <= (order - 1) * order * allowed
    best = right(p[kept], q[kept]).max()
    assert guessing(ZCDP(rho)) - 2 / 400 <= best <= guessing(ZCDP(rho)) + 1e-4


@given(guesses())
def test_no_guess_at_a_pure_promise_is_right_more_often(guess):
    p, q = guess
    epsilon = max(abs(math.log(p / q)), abs(math.log((1 - p) / (1 - q))))
    assert right(p, q) <= guessing(PureDP(epsilon)) * (1 + 1e-12)


@given(PARAMETERS)
def test_at_a_pure_promise_randomized_response_lets_a_guess_be_right_as_often(epsilon):
    bound = guessing(PureDP(epsilon))
    assert math.log(bound / (1 - bound)) == pytest.approx(float(epsilon), rel=1e-6)


@given(guesses(), PARAMETERS)
def test_no_guess_at_an_approximate_promise_is_right_more_often(guess, epsilon):
    p, q = guess
    factor = math.exp(epsilon)
    delta = max(a - factor * b for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)))
    promise = ApproxDP(epsilon, delta) if delta > 0 else PureDP(epsilon)
    assert right(p, q) <= guessing(promise) * (1 + 1e-12)


@given(PARAMETERS, st.fractions(min_value="1/1000000", max_value="999/1000"))
def test_at_an_approximate_promise_some_guess_is_right_as_often(epsilon, delta):
    bound = guessing(ApproxDP(epsilon, delta))
    # Bernoulli(bound) and Bernoulli(1 - bound) keep (ε, δ), and use all of it.
    assert bound - math.exp(epsilon) * (1 - bound) == pytest.approx(float(delta), rel=1e-5, abs=1e-7)


@given(PARAMETERS, st.fractions(min_value="1/1000000", max_value="999/1000"))
def test_the_number_is_the_next_double_above_the_truth(parameter, delta):
    with localcontext(prec=100):
        exact = Decimal(parameter.numerator) / parameter.denominator
        odds, rest = exact.exp(), Decimal(delta.numerator) / delta.denominator
        for promise, truth in (
            (PureDP(parameter), odds / (1 + odds)),
            (ApproxDP(parameter, delta), (odds + rest) / (1 + odds)),
        ):
            found = guessing(promise)
            assert Decimal(math.nextafter(found, 0)) < truth <= Decimal(found)

        def weight(g):
            return (2 * Decimal(g) - 1) * (Decimal(g) / (1 - Decimal(g))).ln()

        found = guessing(ZCDP(parameter))
        assert weight(math.nextafter(found, 0)) < exact <= weight(found)


@given(PARAMETERS, PARAMETERS)
def test_a_weaker_promise_never_lets_a_guess_be_right_less_often(one, other):
    low, high = sorted([one, other])
    for kind in (PureDP, ZCDP, lambda epsilon: ApproxDP(epsilon, "1/1000")):
        assert guessing(kind(low)) <= guessing(kind(high))
    assert guessing(PureDP(low)) <= guessing(ApproxDP(low, "1/1000")) <= guessing(ApproxDP(low, "1/10"))


@given(PARAMETERS)
def test_a_concentrated_promise_holds_back_more_than_cruder_inequalities_say_and_less_than_gaussian_noise(
    rho,
):
    found, exact = guessing(ZCDP(rho)), float(rho)
    assert NormalDist().cdf(math.sqrt(exact / 2)) < found
    assert found <= 0.5 + math.sqrt(exact / 8)
    assert found <= 0.5 + math.sqrt(-math.expm1(-exact)) / 2
    for delta in ("1/1000000", "1/100", "1/4"):
        assert found <= guessing(zcdp_to_approx(ZCDP(rho), delta))


@given(PARAMETERS)
def test_what_a_pure_promise_implies_as_a_concentrated_one_is_no_stronger(epsilon):
    assert guessing(PureDP(epsilon)) <= guessing(ZCDP(epsilon**2 / 2))


@pytest.mark.parametrize("kind", [PureDP, ZCDP, lambda value: ApproxDP(value, "1e-289")])
def test_a_promise_as_small_or_as_large_as_can_be_has_a_number_too(kind):
    assert 0.5 < guessing(kind("1e-289")) < 0.5 + 1e-15
    assert guessing(kind("1e289")) == 1.0
