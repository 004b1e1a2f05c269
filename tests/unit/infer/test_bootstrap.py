"""Tables drawn from a fitted hypothesis, and the rank of a statistic among them."""

import numpy as np
import pytest
from scipy import stats

import tabulary as tb
from tabulary.errors import InvalidArgument
from tabulary.infer import CorrelatedNoise, IndependentNoise, independence
from tabulary.infer.bootstrap import drawn_release, poisson_counts
from tabulary.noise import DiscreteLaplace
from tests.entropy import SeededEntropy

TABLE = tb.Table(tb.Domain({"a": range(2), "b": range(3)}), [[6, 2, 9], [3, 8, 1]])
NOISE = DiscreteLaplace(2)


def bootstrap(repetitions=40, seed=1, **options):
    return independence(
        TABLE, "bootstrap", noise=NOISE, repetitions=repetitions, entropy=SeededEntropy(seed), **options
    )


def test_the_statistic_is_that_of_the_aware_test_and_the_p_value_a_rank():
    found, aware = bootstrap(), independence(TABLE, noise=NOISE)
    assert found.statistic == aware.statistic
    assert found.degrees_of_freedom == aware.degrees_of_freedom
    assert found.method == "bootstrap"
    assert found.p_value * 41 == pytest.approx(round(found.p_value * 41))
    assert 1 / 41 <= found.p_value <= 1


def test_the_same_entropy_gives_the_same_rank():
    assert bootstrap().p_value == bootstrap().p_value


def test_a_table_that_fits_perfectly_is_surpassed_by_all():
    table = tb.Table(tb.Domain({"a": range(2), "b": range(2)}), [[50, 50], [50, 50]])
    found = independence(table, "bootstrap", noise=NOISE, repetitions=20, entropy=SeededEntropy(2))
    assert found.p_value == 1


def test_a_table_beyond_all_that_the_hypothesis_draws_has_the_smallest_rank():
    table = tb.Table(tb.Domain({"a": range(2), "b": range(2)}), [[300, 10], [10, 300]])
    found = independence(table, "bootstrap", noise=NOISE, repetitions=20, entropy=SeededEntropy(2))
    assert found.p_value == pytest.approx(1 / 21)


def test_progress_is_told_after_every_repetition():
    told = []
    bootstrap(5, progress=lambda _, done, of: told.append((done, of)))
    assert told == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize("repetitions", [0, -1, 1.5, True])
def test_repetitions_are_a_positive_whole_number(repetitions):
    with pytest.raises(InvalidArgument, match="repetitions"):
        bootstrap(repetitions)


@pytest.mark.parametrize("mean", [0.2, 3.0, 40.0, 5_000.0])
def test_poisson_counts_follow_their_law(mean):
    drawn = poisson_counts(np.full(20_000, mean), SeededEntropy(5))
    edges = np.unique(stats.poisson.ppf(np.linspace(0.05, 0.95, 19), mean))
    expected = np.diff(stats.poisson.cdf(edges, mean), prepend=0.0, append=1.0)
    observed = np.bincount(np.searchsorted(edges, drawn), minlength=expected.size)
    kept = expected > 0
    assert stats.chisquare(observed[kept], 20_000 * expected[kept]).pvalue > 1e-4
    # A law with a twentieth more is told from it.
    other = poisson_counts(np.full(20_000, mean * 1.05 + 0.05), SeededEntropy(5))
    observed = np.bincount(np.searchsorted(edges, other), minlength=expected.size)
    assert stats.chisquare(observed[kept], 20_000 * expected[kept]).pvalue < 1e-4


def test_a_mean_of_nobody_draws_nobody():
    assert not poisson_counts(np.zeros(50), SeededEntropy(1)).any()


def test_drawn_releases_have_the_spread_of_counts_and_noise_together():
    covariance = np.array([[30.0, 20.0], [20.0, 30.0]])
    noises = (IndependentNoise(DiscreteLaplace(3), np.array([1, 0])), CorrelatedNoise(covariance, (2,)))
    means = np.array([25.0, 25.0, 25.0, 25.0])
    entropy = SeededEntropy(6)
    drawn = np.array([drawn_release(noises, means, entropy) for _ in range(4_000)])
    found = np.cov(drawn.T)
    expected = np.diag([25 + DiscreteLaplace(3).variance, 25.0, 25.0, 25.0])
    expected[2:, 2:] += covariance
    assert drawn.mean(axis=0) == pytest.approx(means, abs=0.8)
    assert found == pytest.approx(expected, abs=7)
