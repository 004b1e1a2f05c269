"""What every noise promises."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tabulary.errors import InvalidNoise
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian, noise_from_description
from tests.entropy import SeededEntropy

every_family = pytest.mark.parametrize("family", [DiscreteLaplace, DiscreteGaussian, RoundedGaussian])
both_gaussians = pytest.mark.parametrize("family", [DiscreteGaussian, RoundedGaussian])
parameters = st.fractions(min_value=Fraction(1, 30), max_value=40, max_denominator=100)
small_parameters = st.fractions(min_value=Fraction(1, 10), max_value=12, max_denominator=20)
confidences = st.floats(min_value=0.01, max_value=0.9999)

SOME_OF_EVERY_SIZE = [
    *map(DiscreteLaplace, ("1/100", "1/2", 1, 105, 127, 128, "12345/77", 10**6, 2**40)),
    *map(DiscreteGaussian.from_sigma, ("1/100", "1/2", 1, 40, 511, 512, "12345/7", 10**6, 2**40)),
    *map(RoundedGaussian.from_sigma, ("1/100", "1/2", 1, 40, 255, 256, "12345/7", 10**6, 2**40)),
]
every_size = pytest.mark.parametrize("noise", SOME_OF_EVERY_SIZE, ids=str)


def brute_pmf(noise, reach=2_000):
    """The law on -reach … reach, by plain summation of its weights or by the normal law of scipy."""
    k = np.arange(-reach, reach + 1)
    if isinstance(noise, DiscreteLaplace):
        weights = np.exp(-np.abs(k) / float(noise.scale))
    elif isinstance(noise, RoundedGaussian):
        edges = np.abs(k)[:, np.newaxis] + np.array([-0.5, 0.5])
        weights = -np.diff(stats.norm.sf(edges, scale=float(noise.variance_parameter) ** 0.5)).ravel()
    else:
        weights = np.exp(-(k**2) / (2 * float(noise.variance_parameter)))
    return k, weights / weights.sum()


@every_family
@pytest.mark.parametrize(
    ("given_value", "meant"),
    [(3, Fraction(3)), ("1/3", Fraction(1, 3)), (0.1, Fraction(1, 10)), (Fraction(7, 2), Fraction(7, 2))],
)
def test_a_parameter_is_the_fraction_its_writer_meant(family, given_value, meant):
    noise = family(given_value)
    assert noise == family(meant)
    assert hash(noise) == hash(family(meant))


NO_NUMBER = "must be a whole number, a decimal such as 0.5 or a fraction"


@every_family
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (0, "must be positive"),
        (-1, "must be positive"),
        ("-1/2", "must be positive"),
        (float("nan"), NO_NUMBER),
        (float("inf"), NO_NUMBER),
        (True, NO_NUMBER),
        (None, NO_NUMBER),
        ("", NO_NUMBER),
        ("one", NO_NUMBER),
        ("1/0", NO_NUMBER),
        ([1], NO_NUMBER),
        (10**40, "must lie between"),
        (Fraction(1, 10**40), "must lie between"),
    ],
    ids=repr,
)
def test_a_parameter_that_cannot_be_is_refused(family, value, reason):
    with pytest.raises(InvalidNoise, match=reason):
        family(value)


@both_gaussians
def test_a_sigma_that_cannot_be_is_refused(family):
    with pytest.raises(InvalidNoise, match="sigma"):
        family.from_sigma(-2)


def test_a_parameter_beyond_floats_is_refused_with_words():
    with pytest.raises(InvalidNoise, match="a number far outside"):
        DiscreteLaplace(10**400)


@every_size
def test_a_sample_has_the_size_that_was_asked_for(noise):
    for size, shape in ((0, (0,)), (3, (3,)), ((2, 0), (2, 0)), ((2, 3, 4), (2, 3, 4)), ((), ())):
        drawn = noise.sample(size, SeededEntropy(1))
        assert drawn.shape == shape
        assert drawn.dtype == np.int64


@every_size
@pytest.mark.parametrize("size", [-1, (2, -1), True, (2.0,), "3"], ids=repr)
def test_a_size_that_cannot_be_is_refused(noise, size):
    with pytest.raises(InvalidNoise, match="the size of a sample must be non-negative whole numbers"):
        noise.sample(size, SeededEntropy(1))


@every_size
def test_the_same_entropy_gives_the_same_draws(noise):
    first = noise.sample(100_000, SeededEntropy(5))
    assert np.array_equal(first, noise.sample(100_000, SeededEntropy(5)))


@every_size
def test_draws_have_the_stated_variance(noise):
    drawn = noise.sample(100_000, SeededEntropy(6)).astype(float)
    # The fourth moment of every law is at most 6 variance² + variance, so six standard errors are this wide.
    tolerance = 6 * np.sqrt((5 * noise.variance**2 + noise.variance) / drawn.size)
    assert abs(np.mean(drawn**2) - noise.variance) <= tolerance
    assert abs(np.mean(drawn)) <= 6 * np.sqrt(noise.variance / drawn.size)


@every_family
@given(parameter=parameters)
def test_probabilities_agree_with_plain_summation(family, parameter):
    noise = family(parameter)
    k, brute = brute_pmf(noise)
    np.testing.assert_allclose(noise.pmf(k), brute, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(noise.cdf(k), np.cumsum(brute), rtol=0, atol=1e-12)
    assert noise.variance == pytest.approx(np.sum(k.astype(float) ** 2 * brute), rel=1e-11)


@every_family
@given(parameter=parameters, k=st.integers(min_value=-300, max_value=300))
def test_the_law_is_symmetric(family, parameter, k):
    noise = family(parameter)
    assert noise.pmf(k) == noise.pmf(-k)
    assert float(noise.cdf(k)) == pytest.approx(1 - float(noise.cdf(-k - 1)), abs=1e-15)


@every_size
def test_the_distribution_function_rises_by_the_probabilities(noise):
    spread = max(3, int(3 * noise.variance**0.5))
    k = np.unique(np.linspace(-spread, spread, 101).astype(np.int64))
    np.testing.assert_allclose(noise.cdf(k) - noise.cdf(k - 1), noise.pmf(k), rtol=1e-4, atol=1e-15)


@both_gaussians
@pytest.mark.parametrize("sigma", [511, 512, 1023, 1024, 3000])
def test_the_gaussian_tail_is_the_same_on_both_sides_of_the_switch(family, sigma):
    noise = family.from_sigma(sigma)
    values = np.arange(40 * sigma, -1, -1)
    summed = np.cumsum(noise.pmf(values))
    np.testing.assert_allclose(noise.cdf(-values[:-1]), summed[:-1], rtol=1e-10, atol=1e-300)


def test_the_variance_holds_at_both_ends_of_the_scales():
    assert DiscreteLaplace(2**40).variance == pytest.approx(2.0**81, rel=1e-12)
    assert DiscreteLaplace("1/100").variance == pytest.approx(2 * float(Decimal(-100).exp()), rel=1e-12)
    assert DiscreteLaplace(Fraction(1, 2**40)).variance == 0
    assert DiscreteGaussian.from_sigma(2**40).variance == pytest.approx(2.0**80, rel=1e-12)
    assert DiscreteGaussian.from_sigma("1/10").variance == pytest.approx(
        2 * float(Decimal(-50).exp()), rel=1e-12
    )
    assert RoundedGaussian.from_sigma(2**40).variance == pytest.approx(2.0**80, rel=1e-12)
    assert RoundedGaussian.from_sigma("1/10").variance == pytest.approx(2 * stats.norm.sf(5), rel=1e-12)


@both_gaussians
def test_the_variance_is_the_same_on_both_sides_of_the_switch(family):
    just_below, just_above = family("0.999999999999"), family("1.000000000001")
    assert just_below.variance == pytest.approx(just_above.variance, rel=1e-11)


def test_rounding_adds_a_twelfth_to_the_variance():
    assert RoundedGaussian(1600).variance == pytest.approx(1600 + 1 / 12, rel=1e-14)


def test_a_rounded_gaussian_covers_what_the_gaussian_before_rounding_covers():
    noise = RoundedGaussian(100)
    within = stats.norm.cdf(noise.half_width(0.95) + 0.5, scale=10) * 2 - 1
    assert 0.95 <= within < 0.95 + 2 * float(noise.pmf(noise.half_width(0.95)))


@every_family
@given(parameter=parameters, t=st.lists(st.floats(min_value=-50, max_value=50), min_size=1, max_size=5))
def test_the_characteristic_function_is_the_expected_cosine(family, parameter, t):
    noise = family(parameter)
    k, brute = brute_pmf(noise)
    expected = np.cos(np.outer(t, k)) @ brute
    np.testing.assert_allclose(noise.characteristic(t), expected, rtol=0, atol=1e-11)
    assert noise.characteristic(np.array(t).reshape(1, -1)).shape == (1, len(t))


@every_family
@given(parameter=parameters, tilt=st.floats(min_value=0.0, max_value=30.0))
def test_the_moment_bound_bounds_the_moment(family, parameter, tilt):
    noise = family(parameter)
    k, brute = brute_pmf(noise)
    # Up to rounding, and on integers so near that the exponential is a float.
    near = np.abs(k * tilt) < 600
    moment = np.log(np.sum(np.exp(k[near] * tilt) * brute[near]))
    for sign in (1, -1):
        assert float(noise.log_moment_bound(sign * tilt)) >= moment - 1e-12 * (1 + moment)


@every_family
@given(parameter=parameters)
def test_the_moment_bound_of_no_tilt_is_nearly_nothing(family, parameter):
    assert 0 <= float(family(parameter).log_moment_bound(0.0)) < 1e-8


@every_family
def test_a_probability_between_the_integers_is_refused(family):
    with pytest.raises(InvalidNoise, match="integers"):
        family(1).pmf(0.5)
    with pytest.raises(InvalidNoise, match="integers"):
        family(1).cdf([0.5])


@every_family
@settings(deadline=None)
@given(parameter=small_parameters, confidence=confidences, terms=st.integers(min_value=1, max_value=9))
def test_a_half_width_is_the_smallest_that_covers(family, parameter, confidence, terms):
    noise = family(parameter)
    _, brute = brute_pmf(noise, reach=700)
    total = brute
    for _ in range(terms - 1):
        # Convolved at full length, then cut back to the centre: what is cut is below 1e-15.
        total = np.convolve(total, brute, mode="same")
    centre = total.size // 2
    within = total[centre] + np.concatenate([[0.0], 2 * np.cumsum(total[centre + 1 :])])
    h = noise.half_width(confidence, terms)
    assert within[h] >= confidence - 1e-11
    assert h == 0 or within[h - 1] < confidence + 1e-11


@every_size
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_half_width_of_one_draw_agrees_with_the_distribution_function(noise, confidence):
    h = noise.half_width(confidence)
    assert 2 * (1 - noise.cdf(h)) <= 1 - confidence + 1e-15
    assert h == 0 or 2 * (1 - noise.cdf(h - 1)) > 1 - confidence - 1e-15


@pytest.mark.parametrize("noise", [noise for noise in SOME_OF_EVERY_SIZE if noise.variance > 0.1], ids=str)
def test_a_sum_of_very_many_draws_is_as_wide_as_the_normal_law_says(noise):
    terms = 1_000_000
    expected = 1.959963984540054 * (terms * noise.variance) ** 0.5
    assert noise.half_width(0.95, terms) == pytest.approx(expected, rel=1e-5, abs=1)


def test_a_sum_of_two_wide_laplace_draws_follows_the_continuous_law():
    # P(|X + Y| > h) = (1 + h/(2b)) exp(-h/b) for continuous draws of scale b.
    scale = 10**9
    h = DiscreteLaplace(scale).half_width(0.95, terms=2)
    assert (1 + h / scale / 2) * np.exp(-h / scale) == pytest.approx(0.05, rel=1e-8)


@every_size
def test_a_half_width_that_cannot_be_told_is_refused(noise):
    for confidence in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(InvalidNoise, match="confidence"):
            noise.half_width(confidence)
    for terms in (0, -1, True, 1.5):
        with pytest.raises(InvalidNoise, match="terms"):
            noise.half_width(0.5, terms)
    with pytest.raises(InvalidNoise, match="1e-10"):
        noise.half_width(1 - 1e-12, terms=2)


@every_size
def test_a_description_survives_json_and_comes_back_as_the_same_noise(noise):
    description = json.loads(json.dumps(noise.describe()))
    assert noise_from_description(description) == noise


NOT_EXACT = "must be an exact fraction such as '3/2'"


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ({}, "family None is unknown"),
        ({"family": "discrete-laplace"}, "is described by the keys"),
        ({"scale": "105"}, "family None is unknown"),
        ({"family": "laplace", "scale": "105"}, "family 'laplace' is unknown"),
        ({"family": ["discrete-laplace"], "scale": "105"}, r"family \['discrete-laplace'\] is unknown"),
        ({"family": "discrete-laplace", "scale": "105", "seed": "1"}, "is described by the keys"),
        ({"family": "discrete-laplace", "variance_parameter": "105"}, "is described by the keys"),
        ({"family": "discrete-laplace", "scale": 105}, NOT_EXACT),
        ({"family": "discrete-laplace", "scale": "1e999999999"}, NOT_EXACT),
        ({"family": "discrete-laplace", "scale": "1/0"}, NOT_EXACT),
        ({"family": "discrete-laplace", "scale": "-1"}, NOT_EXACT),
        ({"family": "discrete-laplace", "scale": "0"}, "scale must be positive"),
        ({"family": "discrete-gaussian", "variance_parameter": "nan"}, NOT_EXACT),
        ({"family": "discrete-gaussian", "variance_parameter": "1600 "}, NOT_EXACT),
        ({"family": "rounded-gaussian", "scale": "1600"}, "is described by the keys"),
        ("discrete-laplace", "must be a mapping, not a str"),
        (None, "must be a mapping, not a NoneType"),
    ],
    ids=repr,
)
def test_a_description_that_is_not_understood_is_refused(description, reason):
    with pytest.raises(InvalidNoise, match=reason):
        noise_from_description(description)
