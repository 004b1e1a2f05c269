"""The posterior of an interaction, against numerical integration."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from tabulary.core.residuals import centre
from tabulary.planning.interaction_prior import STRENGTHS, prior
from tabulary.reconstruct.shrinkage_posterior import judged


def integrated(base, difference, noise, scale):
    """The first two moments of base + u for u ~ N(0, scale·base) given difference ~ N(u, noise), on a fine grid."""
    u = math.sqrt(scale * base) * np.linspace(-12, 12, 40_001)
    weights = norm.pdf(u, 0, math.sqrt(scale * base)) * norm.pdf(difference, u, math.sqrt(noise))
    weights /= weights.sum()
    return np.array([weights @ (base + u), weights @ (base + u) ** 2])


@pytest.mark.parametrize("strength", [0.01, 0.4])
def test_mean_and_deviation_are_those_of_the_posterior(strength):
    generator = np.random.default_rng(2)
    base = np.outer([40.0, 10.0, 30.0], [20.0, 30.0, 30.0, 0.5]) / 80
    noise = 9.0
    residual = centre(base + math.sqrt(strength) * base * generator.standard_normal(base.shape)) + centre(
        3 * generator.standard_normal(base.shape)
    )
    found = judged(base, residual, noise)
    mean, spread, _, _ = found.estimate()
    # The weights of the strengths by brute force, with the degrees of freedom of a residual of 3 × 4 levels.
    difference = residual - centre(base)
    scales = STRENGTHS * (base**2).sum() / base.sum()
    logs = [norm.logpdf(difference, 0, np.sqrt(noise + k * base)).sum() * 6 / 12 for k in scales]
    weights = prior(2) * np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    assert found.weights == pytest.approx(weights, abs=1e-8)
    for cell in [(0, 0), (1, 3), (2, 1)]:
        moments = sum(
            w * integrated(base[cell], difference[cell], noise, k)
            for w, k in zip(weights, scales, strict=True)
        )
        assert mean[cell] == pytest.approx(moments[0], rel=1e-3)
        assert spread[cell] == pytest.approx(math.sqrt(moments[1] - moments[0] ** 2), rel=1e-3)


def test_evidence_is_the_likelihood_averaged_over_the_strengths():
    base = np.array([[30.0, 10.0], [20.0, 40.0]])
    residual = centre(base) + 5 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = judged(base, residual, 4.0)
    scales = STRENGTHS * (base**2).sum() / base.sum()
    likelihoods = [np.exp(norm.logpdf(5, 0, np.sqrt(4 + k * base)).sum() / 4) for k in scales]
    constant = norm.logpdf(0, 0, 2.0)
    assert found.evidence == pytest.approx(math.log(prior(2) @ likelihoods) - constant)


def test_a_base_that_explains_the_measurement_has_more_evidence():
    truth = np.array([[60.0, 5.0], [10.0, 50.0]])
    independent = np.outer(truth.sum(axis=1), truth.sum(axis=0)) / truth.sum()
    found = [judged(base, centre(truth), 9.0).evidence for base in (independent, truth)]
    assert found[1] > found[0]


def test_bias_is_part_of_the_error():
    base = np.full((4, 4), 20.0)
    generator = np.random.default_rng(0)
    for deviation in (0.1, 5.0, 1e4):
        residual = centre(deviation * generator.standard_normal((4, 4)))
        _, _, bias, whole = judged(base, residual, deviation**2).estimate()
        assert 0 <= bias <= whole
    # With nothing but noise almost all of the error is the interaction that was left out.
    assert bias > 0.99 * whole


@pytest.mark.parametrize(("base", "noise"), [(np.zeros((2, 3)), 4.0), (np.ones((2, 1)), 0.0)])
def test_where_nothing_is_there_or_nothing_hides_it_what_was_measured_is_taken(base, noise):
    mean, spread, bias, whole = judged(base, np.zeros(base.shape), noise).estimate()
    # A base of two equal levels has no residual, so nothing differs from it.
    assert mean == pytest.approx(base)
    assert not spread.any()
    assert bias == whole == 0


def test_a_sure_measurement_of_many_people_is_kept_to_the_last_of_them():
    base = np.outer([4e8, 6e8], [5e8, 5e8]) / 1e9
    apart = 1e8 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    mean, spread, _, _ = judged(base, centre(base) + apart, 1.0).estimate()
    assert mean == pytest.approx(base + apart, abs=0.01)
    assert spread == pytest.approx(np.ones((2, 2)), rel=0.3)
