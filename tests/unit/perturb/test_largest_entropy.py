"""The law of largest entropy with the values, mean and variance of another, against an independent solver."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from tabulary.perturb import Laplace, Normal
from tabulary.perturb.largest_entropy import largest_entropy
from tabulary.perturb.perturbation import Row


def entropy(probabilities):
    positive = probabilities[probabilities > 0]
    return -math.fsum(positive * np.log(positive))


def moments(row):
    mean = math.fsum(row.probabilities * row.values)
    return mean, math.fsum(row.probabilities * (row.values - mean) ** 2)


@st.composite
def rows(draw):
    """Rows of up to a dozen values, with holes, from nearly certain to even."""
    weights = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=12).filter(any))
    return Row(draw(st.integers(-20, 20)), np.array(weights) / sum(weights))


@given(rows())
@settings(deadline=None)
def test_the_law_found_has_the_same_values_mean_and_variance(row):
    _, found = largest_entropy(row)
    assert (found.probabilities[row.probabilities == 0] == 0).all()
    assert math.fsum(found.probabilities) == pytest.approx(1)
    assert moments(found) == pytest.approx(moments(row), rel=1e-6, abs=1e-6)


@given(rows())
@settings(deadline=None)
def test_no_law_with_these_moments_has_more_entropy_than_the_one_found(row):
    largest, found = largest_entropy(row)
    assert entropy(row.probabilities) <= largest + 1e-12
    assert entropy(found.probabilities) == pytest.approx(largest, abs=1e-6)


@given(rows())
@settings(deadline=None)
def test_the_logarithm_of_the_law_found_is_a_parabola(row):
    # The condition of Kuhn & Tucker, which is also sufficient: entropy is concave.
    _, found = largest_entropy(row)
    possible = found.probabilities > 1e-9
    values = found.values[possible] - found.values[possible].mean()
    if values.size < 4:
        return
    curve = np.polynomial.Polynomial.fit(values, np.log(found.probabilities[possible]), 2)
    assert curve(values) == pytest.approx(np.log(found.probabilities[possible]), abs=1e-6)


def test_it_agrees_with_a_general_solver():
    row = Laplace(0.8, bound=5).row(0)
    k, p = row.values, row.probabilities
    solved = optimize.minimize(
        lambda q: float(np.sum(q * np.log(q))),
        np.full(k.size, 1 / k.size),
        jac=lambda q: np.log(q) + 1,
        bounds=[(1e-12, 1)] * k.size,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1},
            {"type": "eq", "fun": lambda q: q @ k},
            {"type": "eq", "fun": lambda q: q @ k**2 - p @ k**2},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    largest, found = largest_entropy(row)
    assert largest == pytest.approx(-solved.fun, abs=1e-8)
    assert found.probabilities == pytest.approx(solved.x, abs=1e-4)


@pytest.mark.parametrize(("epsilon", "bound"), [("1/10", 8), (1, 10), (5, 3), ("1/2", 200)])
def test_a_truncated_normal_law_is_its_own_law_of_largest_entropy(epsilon, bound):
    law = Normal(epsilon, bound=bound)
    largest, found = largest_entropy(law.row(4))
    assert largest == pytest.approx(law.entropy(4), abs=1e-10)
    assert found.probabilities == pytest.approx(law.row(4).probabilities, abs=1e-7)


def test_a_law_far_narrower_than_its_range_is_solved_too():
    row = Laplace(9, bound=12).row(0)
    largest, found = largest_entropy(row)
    assert moments(found)[1] == pytest.approx(moments(row)[1], rel=1e-6)
    assert largest >= entropy(row.probabilities)


def test_one_value_has_no_entropy():
    row = Row(3, np.array([1.0]))
    assert largest_entropy(row) == (0.0, row)


def test_endless_values_with_more_variance_than_a_geometric_law_are_those_of_the_mean_alone():
    values = np.arange(5_000)
    heavy = (values + 1.0) ** -2.6
    row = Row(0, heavy / heavy.sum(), 1e-17)
    mean, variance = moments(row)
    assert variance > mean * (mean + 1)
    geometric = (mean + 1) * math.log(mean + 1) - mean * math.log(mean)
    assert largest_entropy(row, endless=True)[0] == pytest.approx(geometric, abs=1e-9)


def test_endless_values_with_less_variance_keep_it():
    row = Laplace(1).row(0)
    assert moments(largest_entropy(row, endless=True)[1]) == pytest.approx(moments(row), abs=1e-9)
