"""Differences of two cells, with their noise."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary import ZCDP, Domain, Table, infer, plan
from tabulary.infer.difference import difference
from tabulary.noise import DiscreteGaussian, DiscreteLaplace
from tabulary.release import ReleasedTable

DOMAIN = Domain({"sex": ["F", "M"], "age": ["a", "b", "c"]})


def test_the_standard_error_knows_which_draws_the_cells_share():
    made = plan(DOMAIN, "[sex age]", privacy=ZCDP("1/8"), mechanism="residual")
    table = ReleasedTable(Table(DOMAIN, [[10.0, 20.0, 30.0], [5.0, 5.0, 5.0]]), made.error_of(("sex", "age")))
    found = difference(table, {"sex": "F"}, {"sex": "M"})
    covariance = table.covariance.dense()
    weights = np.array([1, 1, 1, -1, -1, -1])
    assert found.standard_error == pytest.approx(np.sqrt(weights @ covariance @ weights))
    assert found.estimate == 45
    assert found.interval == infer.interval(table, {"sex": "F"}, minus={"sex": "M"})


@settings(max_examples=20)
@given(st.sampled_from([0.7, 4, 33.3]), st.integers(-300, 300))
def test_without_heavy_tails_the_p_value_is_the_normal_one(sigma, gap):
    table = Table(Domain({"sex": ["F", "M"]}), [1000 + gap, 1000])
    found = difference(table, {"sex": "F"}, {"sex": "M"}, noise=DiscreteGaussian.from_sigma(sigma))
    z = abs(gap) / found.standard_error
    assert found.p_value == pytest.approx(2 * NormalDist().cdf(-z), abs=1e-3)


def test_two_equal_counts_are_told_apart_at_level_5_percent_about_one_time_in_twenty():
    # The exact law of the difference of two Laplace draws: how often is the p-value at most 5 %?
    noise = DiscreteLaplace(5)
    offsets = np.arange(-400, 401)
    law = np.array([noise.pmf(int(k)) for k in offsets])
    of_difference = np.convolve(law, law[::-1])
    gaps = np.arange(of_difference.size) - (of_difference.size - 1) // 2
    rejected = 0.0
    for gap in range(120):
        table = Table(Domain({"sex": ["F", "M"]}), [500 + gap, 500])
        if difference(table, {"sex": "F"}, {"sex": "M"}, noise=noise).p_value <= 0.05:
            rejected += of_difference[np.abs(gaps) == gap].sum()
    assert 0.03 <= rejected <= 0.055
    # As if its tails were normal, it would be told apart too often: the correction is what holds the level.
    deviation = np.sqrt(2 * noise.variance)
    naive = of_difference[np.abs(gaps) > 2.5758 * deviation].sum()
    assert naive > 0.015


@settings(max_examples=30)
@given(st.integers(-500, 500))
def test_the_p_value_agrees_with_the_interval(gap):
    table = Table(Domain({"sex": ["F", "M"]}), [1000 + gap, 1000])
    found = difference(table, {"sex": "F"}, {"sex": "M"}, noise=DiscreteLaplace(20))
    assert 0 <= found.p_value <= 1
    if found.p_value < 0.04:
        assert 0 not in found.interval
    if found.p_value > 0.06:
        assert 0 in found.interval


def test_what_cannot_differ_has_p_value_one():
    table = Table(Domain({"sex": ["F", "M"]}), [7, 9])
    same = difference(table, {"sex": "F"}, {"sex": "F"}, noise=DiscreteLaplace(20))
    assert (same.estimate, same.standard_error, same.p_value) == (0.0, 0.0, 1.0)
