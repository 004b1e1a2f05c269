"""Two released tables, each with its own noise: do they come from one distribution?"""

import numpy as np
import pytest
from scipy import stats

import tabulary as tb
from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.infer import CorrelatedNoise, IndependentNoise, homogeneity, independence
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler, Truncated
from tests.entropy import SeededEntropy

AGES = tb.Domain({"age": ["0-14", "15-64", "65+"], "sex": "FM"})
ONE = tb.Table(AGES, [[81, 92], [310, 295], [101, 83]])
TWO = tb.Table(AGES, [[160, 171], [590, 633], [215, 162]])


def test_the_naive_test_is_that_of_a_table_with_two_rows():
    found = homogeneity(ONE, TWO, "naive")
    peer = stats.chi2_contingency(
        [ONE.counts.reshape(-1), TWO.counts.reshape(-1)], correction=False, lambda_="log-likelihood"
    )
    assert found.statistic == pytest.approx(peer.statistic)
    assert found.degrees_of_freedom == peer.dof == 5
    assert found.p_value == pytest.approx(peer.pvalue)


def test_of_exact_counts_the_aware_statistic_is_the_naive_one():
    none = IndependentNoise.none(ONE.shape)
    found = homogeneity(ONE, TWO, noise=none, other_noise=none)
    assert found.statistic == pytest.approx(homogeneity(ONE, TWO, "naive").statistic, abs=1e-7)


def test_with_one_noise_it_is_independence_of_cell_and_table():
    stacked = tb.Table(
        tb.Domain({"table": "12", "cell": range(6)}),
        np.stack([ONE.counts.reshape(-1), TWO.counts.reshape(-1)]),
    )
    law = DiscreteLaplace(5)
    found, peer = homogeneity(ONE, TWO, noise=law, other_noise=law), independence(stacked, noise=law)
    assert found.statistic == pytest.approx(peer.statistic, abs=1e-7)
    assert found.p_value == pytest.approx(peer.p_value, abs=1e-7)
    assert found.hypothesis == "homogeneity"


def test_the_table_with_less_noise_weighs_more():
    """The same difference is surprising where both tables are nearly exact and not where one is noisy."""
    other = tb.Table(AGES, [[215, 171], [560, 620], [240, 132]])
    quiet, loud = DiscreteLaplace(1), DiscreteGaussian(900)
    assert homogeneity(ONE, other, noise=quiet, other_noise=quiet).p_value < 0.05
    assert homogeneity(ONE, other, noise=loud, other_noise=quiet).p_value > 0.05
    first = homogeneity(ONE, other, noise=loud, other_noise=quiet)
    turned = homogeneity(other, ONE, noise=quiet, other_noise=loud)
    assert first.statistic == pytest.approx(turned.statistic, abs=1e-7)


def test_released_tables_state_their_own_noise():
    plan = tb.plan(AGES, "[age sex]", privacy=tb.PureDP(1), mechanism="cells")
    rough = tb.plan(AGES, "[age sex]", privacy=tb.ZCDP("1/8"), mechanism="cells")
    sampler = ExactSampler(SeededEntropy(3))
    first, second = tb.release(ONE, plan, sampler=sampler), tb.release(TWO, rough, sampler=sampler)
    found = homogeneity(first["age", "sex"], second["age", "sex"])
    assert found.degrees_of_freedom == 5
    assert found.p_value > 0.001


def test_different_distributions_are_told_apart():
    other = tb.Table(AGES, [[300, 120], [310, 295], [21, 83]])
    law = Truncated(DiscreteLaplace(5), 15)
    assert homogeneity(ONE, other, noise=law, other_noise=law).p_value < 1e-6


def test_shared_noise_in_one_of_the_tables_is_weighed_with_its_covariance():
    covariance = 25 * (np.eye(6) + 0.5)
    found = homogeneity(ONE, TWO, noise=CorrelatedNoise(covariance, (3, 2)), other_noise=DiscreteGaussian(25))
    assert found.degrees_of_freedom == 5
    assert 0 < found.p_value < 1


def test_the_bootstrap_draws_both_tables():
    law = DiscreteLaplace(3)
    found = homogeneity(
        ONE, TWO, "bootstrap", noise=law, other_noise=law, repetitions=30, entropy=SeededEntropy(1)
    )
    assert found.statistic == homogeneity(ONE, TWO, noise=law, other_noise=law).statistic
    assert 1 / 31 <= found.p_value <= 1


def test_impossible_cells_are_compared_with_nothing():
    domain = tb.Domain({"age": "012", "job": "np"}, structural_zeros=[{"age": "0", "job": "p"}])
    one = tb.Table(domain, [[40, 0], [25, 61], [33, 20]])
    two = tb.Table(domain, [[44, 0], [20, 55], [39, 27]])
    law = DiscreteLaplace(2)
    assert homogeneity(one, two, "naive").degrees_of_freedom == 4
    assert homogeneity(one, two, noise=law, other_noise=law).degrees_of_freedom == 4


def test_tables_on_different_attributes_are_refused():
    with pytest.raises(InvalidTable, match="same attributes"):
        homogeneity(ONE, tb.Table(tb.Domain({"age": "012", "sex": "FM"}), TWO.counts), "naive")


def test_each_table_needs_its_noise():
    with pytest.raises(InvalidNoise, match="a table does not state its noise"):
        homogeneity(ONE, TWO, noise=DiscreteLaplace(1))
