"""The law of the likelihood ratio behind noise: χ² where Wilks' theorem holds, the noise's own where it does not."""

import numpy as np
import pytest

from tabulary.infer.chi_squared import upper_tail
from tabulary.infer.independence import two_way_design
from tabulary.infer.reference import cell_moments, matched_tail, scaled_tail
from tabulary.infer.table_noise import IndependentNoise
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, Tabulated, Truncated
from tabulary.perturb import Hellinger, MaxEntropy


def moments_of(law, means, terms=1, minimum=None):
    means = np.asarray(means, dtype=np.float64)
    noise = IndependentNoise(law, np.full(means.shape, terms), minimum)
    return cell_moments(noise, noise.terms, means)


@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(3), DiscreteGaussian(100), Truncated(DiscreteLaplace(10), 10), Tabulated(-1, (1, 2, 1))],
    ids=lambda law: type(law).__name__,
)
def test_with_large_counts_a_cell_adds_one_squared_normal_number(law):
    expected, variance, share, covariance = moments_of(law, [1e5])[:, 0]
    assert expected == pytest.approx(1, abs=0.01)
    assert variance == pytest.approx(2, abs=0.05)
    assert covariance == pytest.approx(2, abs=0.05)
    # Of the information of an exact count the noise leaves the share that its variance leaves of the whole.
    assert share == pytest.approx(1e5 / (1e5 + law.variance), rel=1e-3)


def test_behind_wide_laplace_noise_a_cell_adds_an_exponential_number_of_mean_two():
    expected, variance, _, _ = moments_of(DiscreteLaplace(200), [3_000.0])[:, 0]
    assert expected == pytest.approx(2, rel=0.2)
    assert variance == pytest.approx(4, rel=0.35)


def test_moments_are_those_of_simulated_cells():
    from tabulary.infer.likelihood import NoisyCells
    from tests.entropy import SeededEntropy

    law, mean, cells = DiscreteLaplace(10), 40.0, 20_000
    released = np.random.default_rng(1).poisson(mean, cells) + law.sample(cells, SeededEntropy(1))
    noisy = NoisyCells(released, IndependentNoise(law, np.ones(cells, dtype=np.int64)))
    logarithms, expected, _ = noisy.evaluate(np.full(cells, np.log(mean)))
    t = 2 * (noisy.saturated()[1] - logarithms)
    squares = (expected - mean) ** 2
    found = moments_of(law, [mean])[:, 0]
    assert found[0] == pytest.approx(t.mean(), rel=0.05)
    assert found[1] == pytest.approx(t.var(), rel=0.1)
    assert found[2] == pytest.approx(squares.mean() / mean, rel=0.05)
    assert found[3] == pytest.approx(np.cov(t, squares)[0, 1] / squares.mean(), rel=0.1)


def test_between_its_nodes_the_moments_are_smooth():
    means = np.exp(np.linspace(1, 6, 200))
    for row in moments_of(DiscreteLaplace(10), means):
        steps = np.abs(np.diff(row))
        assert steps.max() < 0.05 * (1 + np.abs(row).max())


def test_the_tail_is_that_of_chi_squared_where_wilks_theorem_holds():
    design = two_way_design((4, 5))
    means = np.full(20, 1e5)
    moments = moments_of(DiscreteLaplace(3), means)
    for statistic in (5.0, 12.0, 25.0):
        assert matched_tail(statistic, 12, moments, design, means) == pytest.approx(
            upper_tail(statistic, 12), rel=0.05
        )


def test_a_statistic_behind_wide_noise_is_less_surprising_and_one_behind_bounded_noise_more():
    design, means = two_way_design((10, 10)), np.full(100, 55.0)
    wide = matched_tail(110, 81, moments_of(DiscreteLaplace(10), means), design, means)
    bounded = matched_tail(95, 81, moments_of(Truncated(DiscreteLaplace(10), 10), means), design, means)
    assert wide > upper_tail(110, 81)
    assert bounded < upper_tail(95, 81)


def test_cells_with_a_minimum_sums_exact_cells_and_laws_by_count_have_moments_too():
    for found in (
        moments_of(DiscreteLaplace(5), [0.5, 3.0, 50.0], minimum=0),
        moments_of(DiscreteLaplace(5), [0.5, 3.0, 50.0], terms=4),
        moments_of(DiscreteLaplace(5), [0.5, 3.0, 50.0], terms=0),
        moments_of(MaxEntropy(2, bound=5, nonnegative=True), [0.5, 3.0, 50.0]),
    ):
        assert np.isfinite(found).all()
        assert (found[:2] > 0).all()


def test_a_law_without_a_bound_that_depends_on_the_count_has_none():
    assert moments_of(Hellinger(2), [5.0]) is None


def test_a_multiple_of_chi_squared_with_its_own_variance_is_itself():
    assert scaled_tail(30.0, 20, 40) == pytest.approx(upper_tail(30.0, 20))
    assert scaled_tail(60.0, 40, 160) == pytest.approx(upper_tail(30.0, 20))
