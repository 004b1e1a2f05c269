"""Tilted odds have the expected sums that are known, and the same law given them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.table_samplers.exponential_tilting import Tilt, TwoWayTable
from tabulary.table_samplers.poisson_binomial import PoissonBinomial
from tests.suppressed_tables import consistent_tables, small_tables


def _two_way(known):
    rows, columns = known.shape
    count_laws = tuple(tuple(known.count_law((i, j)) for j in range(columns)) for i in range(rows))
    return TwoWayTable(count_laws, known.lower, known.upper, *known.sums)


def _tilted_law(count_law, low, high, theta):
    law = np.exp(count_law.log_weights[low : high + 1] + np.arange(low, high + 1) * theta)
    return law / law.sum()


def _tilted_means(table, tilt):
    means = np.empty(table.shape)
    for i, j in np.ndindex(table.shape):
        low, high = table.lower[i, j], table.upper[i, j]
        means[i, j] = _tilted_law(table.count_laws[i][j], low, high, tilt.theta[i, j]) @ np.arange(
            low, high + 1
        )
    return means


@given(small_tables())
def test_the_law_given_the_sums_is_the_one_it_was(known):
    tables, probability = consistent_tables(known)
    table = _two_way(known.tightened())
    tilt = Tilt.of(table)
    weights = np.ones(len(tables))
    for i, j in np.ndindex(table.shape):
        low, high = table.lower[i, j], table.upper[i, j]
        weights *= _tilted_law(table.count_laws[i][j], low, high, tilt.theta[i, j])[tables[:, i, j] - low]
    np.testing.assert_allclose(weights / weights.sum(), probability, atol=1e-9)


@given(
    st.integers(1, 4), st.integers(1, 5), st.floats(0.02, 0.98), st.floats(0.02, 0.98), st.integers(0, 1_000)
)
def test_the_expected_sums_are_those_that_are_known(rows, columns, prior, share, seed):
    people = np.random.default_rng(seed).integers(40, 90, (rows, columns))
    counts = np.clip(np.round(people * share), 1, people - 1).astype(np.int64)
    count_laws = tuple(tuple(PoissonBinomial([n], [prior]) for n in row) for row in people)
    table = TwoWayTable(count_laws, np.zeros_like(people), people, counts.sum(axis=1), counts.sum(axis=0))
    means = _tilted_means(table, Tilt.of(table))
    np.testing.assert_allclose(means.sum(axis=1), table.row_sums, atol=1e-5)
    np.testing.assert_allclose(means.sum(axis=0), table.column_sums, atol=1e-5)


def test_sums_at_the_end_of_their_range_are_approached():
    table = TwoWayTable(
        (
            (PoissonBinomial([9], [0.5]), PoissonBinomial([9], [0.5])),
            (PoissonBinomial([9], [0.5]), PoissonBinomial([9], [0.5])),
        ),
        np.zeros((2, 2), dtype=np.int64),
        np.full((2, 2), 9),
        np.array([0, 9]),
        np.array([4, 5]),
    )
    tilt = Tilt.of(table)
    assert np.isfinite(tilt.theta).all()
    assert _tilted_means(table, tilt)[0].sum() == pytest.approx(0, abs=1e-3)


def test_the_variance_is_that_of_the_tilted_cells():
    count_law = PoissonBinomial([50], [0.2])
    table = TwoWayTable(
        ((count_law,),), np.zeros((1, 1), dtype=np.int64), np.full((1, 1), 50), np.array([25]), np.array([25])
    )
    tilt = Tilt.of(table)
    assert tilt.theta[0, 0] == pytest.approx(np.log(4))
    assert tilt.variance[0, 0] == pytest.approx(12.5)
