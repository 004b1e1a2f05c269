"""The model nearest to a table whose cells share their noise, and the variance of the distance that is left."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import NotCertified
from tabulary.infer.hypothesis import LogLinearHypothesis
from tabulary.infer.independence import two_way_design
from tabulary.infer.minimum_chi_squared import (
    excess_variance,
    nearest_log_linear,
    residual_directions,
)
from tabulary.infer.table_noise import CorrelatedNoise, noise_of
from tabulary.noise import ExactSampler
from tests.entropy import SeededEntropy

SHAPE = (3, 4)
DESIGN = two_way_design(SHAPE)


def covariances(seed):
    factor = np.random.default_rng(seed).normal(size=(12, 12))
    return 3 * factor @ factor.T


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_the_fit_solves_the_equations_of_generalised_least_squares_at_itself(seed):
    generator = np.random.default_rng(seed)
    means = np.exp(4 + generator.uniform(-0.5, 0.5, (3, 1)) + generator.uniform(-0.5, 0.5, 4)).reshape(-1)
    covariance = covariances(seed)
    observed = generator.multivariate_normal(means, np.diag(means) + covariance)
    fit = nearest_log_linear(observed, covariance, DESIGN)
    weights = np.linalg.inv(np.diag(np.maximum(fit.means, 0.5)) + covariance)
    residual = observed - fit.means
    slopes = fit.means[:, np.newaxis] * DESIGN
    # Beside the scores themselves, whose size is the root of the information.
    scale = np.sqrt(np.diag(slopes.T @ weights @ slopes))
    assert np.abs(slopes.T @ weights @ residual / scale).max() < 1e-3
    assert fit.statistic == pytest.approx(residual @ weights @ residual, rel=1e-5, abs=1e-6)
    assert fit.rank == 6


def test_a_table_of_the_model_is_at_no_distance():
    means = np.outer([30.0, 50, 20], [0.1, 0.2, 0.3, 0.4]).reshape(-1)
    fit = nearest_log_linear(means, covariances(1), DESIGN)
    assert fit.statistic == pytest.approx(0, abs=1e-7)
    assert fit.means == pytest.approx(means, rel=1e-3)


def test_an_offset_fixes_shares():
    shares = np.array([0.2, 0.3, 0.5])
    fit = nearest_log_linear(200 * shares, 4 * np.eye(3), np.ones((3, 1)), offset=np.log(shares))
    assert fit.means == pytest.approx(200 * shares, rel=1e-4)


def test_noise_above_the_counts_is_fitted_or_refused_and_never_not_a_number():
    generator = np.random.default_rng(2)
    for _ in range(40):
        observed = generator.normal(2, 30, 12)
        try:
            fit = nearest_log_linear(observed, 900 * np.eye(12), DESIGN)
        except NotCertified:
            continue
        assert np.isfinite(fit.statistic)
        assert np.isfinite(fit.means).all()


def test_the_excess_variance_of_draws_in_single_cells_is_their_cumulants_by_the_form():
    means = np.full(12, 40.0)
    covariance = 9 * np.eye(12)
    cumulants = np.linspace(10, 20, 12)
    directions = residual_directions(means, covariance, DESIGN)
    found = excess_variance(means, directions, lambda weights: weights, cumulants)
    weights = np.linalg.inv(np.diag(means) + covariance)
    slopes = means[:, np.newaxis] * DESIGN
    form = weights - weights @ slopes @ np.linalg.pinv(slopes.T @ weights @ slopes) @ slopes.T @ weights
    assert found == pytest.approx(np.sum((means + cumulants) * np.diag(form) ** 2))


def test_the_squares_along_all_directions_are_the_distance_that_is_left():
    covariance = covariances(7)
    observed = np.random.default_rng(7).normal(60, 12, 12)
    fit = nearest_log_linear(observed, covariance, DESIGN)
    directions = residual_directions(fit.means, covariance, DESIGN)
    assert directions.shape == (12, 6)
    assert np.sum((directions.T @ (observed - fit.means)) ** 2) == pytest.approx(fit.statistic, rel=1e-4)
    # A larger model that adds two parameters takes two of the directions.
    larger = np.hstack([DESIGN, np.eye(12)[:, :2]])
    assert residual_directions(fit.means, covariance, DESIGN, larger).shape == (12, 2)
    assert residual_directions(fit.means, covariance, DESIGN, DESIGN).shape == (12, 0)


def test_the_variance_of_the_statistic_is_that_of_simulated_releases():
    """16 Laplace draws behind 16 cells: twice the degrees of freedom would be a fifth too little."""
    domain = tb.Domain({"a": range(4), "b": range(4)})
    plan = tb.plan(domain, "[a b]", privacy=tb.PureDP("1/2"), mechanism="fourier", reconstruct="none")
    means = np.full((4, 4), 200.0)
    generator, sampler = np.random.default_rng(5), ExactSampler(SeededEntropy(5))
    statistics, hypothesis, fit = [], None, None
    for _ in range(1_500):
        released = tb.release(tb.Table(domain, generator.poisson(means)), plan, sampler=sampler)["a", "b"]
        if hypothesis is None:
            hypothesis = LogLinearHypothesis(
                (noise_of(released),), two_way_design((4, 4)), np.ones(16, dtype=np.bool_)
            )
        fit = hypothesis.fitted(released.counts)
        statistics.append(fit.statistic)
    expected = 2 * 9 + hypothesis.excess_variance(fit)
    assert np.mean(statistics) == pytest.approx(9, abs=0.4)
    assert expected > 1.15 * 18
    assert np.var(statistics) == pytest.approx(expected, rel=0.2)


def test_without_its_draws_shared_noise_is_taken_as_normal():
    covariance = covariances(3)
    hypothesis = LogLinearHypothesis(
        (CorrelatedNoise(covariance, SHAPE),), DESIGN, np.ones(12, dtype=np.bool_)
    )
    fit = hypothesis.fitted(np.full(12, 50.0) + np.arange(12))
    # Counts alone are left, and they are nearly normal.
    assert 0 <= hypothesis.excess_variance(fit) < 0.5
