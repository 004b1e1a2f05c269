import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tabulary.table_samplers.convergence import Convergence


def autoregression(
    correlation: float, chains: int = 4, records: int = 4000, statistics: int = 3, seed: int = 0
):
    """Chains whose correlation between records is known, from their stationary law on."""
    noise = np.random.default_rng(seed).normal(size=(chains, records, statistics))
    series = np.empty_like(noise)
    series[:, 0] = noise[:, 0]
    for record in range(1, records):
        series[:, record] = (
            correlation * series[:, record - 1] + math.sqrt(1 - correlation**2) * noise[:, record]
        )
    return series


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.97])
def test_the_effective_size_is_that_of_a_chain_whose_correlation_is_known(correlation):
    run = Convergence.of(autoregression(correlation, records=20_000))
    expected = 80_000 * (1 - correlation) / (1 + correlation)
    assert run.sizes == pytest.approx(expected, rel=0.15)
    assert run.correlation == pytest.approx(correlation, abs=0.04)


def test_chains_that_agree_have_a_ratio_of_one():
    assert Convergence.of(autoregression(0.5)).scale_reduction == pytest.approx(1, abs=0.005)


def test_chains_about_different_means_are_found_out():
    series = autoregression(0.5)
    series[0] += 0.5
    run = Convergence.of(series)
    assert run.scale_reduction > 1.01
    assert run.effective < Convergence.of(autoregression(0.5)).effective / 10


def test_chains_that_all_drift_the_same_way_are_found_out():
    # Whole chains have the same mean; only their halves tell.
    series = autoregression(0.5) + np.linspace(-1, 1, 4000)[None, :, None]
    assert Convergence.of(series).scale_reduction > 1.1


def test_one_statistic_that_has_not_settled_spoils_the_run():
    series = autoregression(0.5)
    series[0, :, 2] += 0.5
    run = Convergence.of(series)
    assert run.scale_reductions[0] < 1.01 < run.scale_reduction
    assert run.effective == run.sizes[2]


def test_what_never_moves_is_settled_and_what_chains_disagree_on_for_good_never_is():
    series = np.zeros((4, 100, 2))
    series[:, :, 1] = np.arange(4)[:, None]
    run = Convergence.of(series)
    assert run.scale_reductions.tolist() == [1, math.inf]
    assert run.sizes.tolist() == [400, 1]


def test_a_correlation_too_small_to_see_is_not_taken_for_none():
    assert Convergence.of(autoregression(0.0)).correlation >= 2 / math.sqrt(16_000)


@given(
    arrays.arrays(
        np.int32,
        st.tuples(st.integers(1, 4), st.integers(4, 40), st.integers(1, 3)),
        elements=st.integers(0, 5),
    )
)
def test_no_run_is_worth_more_than_its_records_or_correlated_by_one(series):
    run = Convergence.of(series)
    assert (run.sizes > 0).all()
    assert (run.sizes <= run.records).all()
    assert (run.scale_reductions > 0).all()
    assert run.correlation > 0
    assert run.correlation < 1 or run.records <= 4
