"""Half-widths of weighted sums, against many draws."""

import math

import numpy as np
import pytest

from tabulary.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian, weighted_half_width
from tests.entropy import SeededEntropy

FAMILIES = [DiscreteLaplace, DiscreteGaussian, RoundedGaussian]
every_law = pytest.mark.parametrize(
    "noise", [family(parameter) for family in FAMILIES for parameter in ("1/2", 40, 10**6)], ids=str
)
IRRATIONAL = math.sqrt(2)


@every_law
@pytest.mark.parametrize(
    "weights",
    [[1, IRRATIONAL], [1, 1e-3 * IRRATIONAL, 1e-3], [1.0, 0.5, 0.5, 0.25], np.linspace(0.1, 2, 15) ** 2],
    ids=["two", "one dominates", "halves", "fifteen"],
)
def test_draws_stay_within_the_half_width_as_often_as_it_says_and_not_within_less(noise, weights):
    weights = np.array(weights)
    draws = noise.sample((100_000, weights.size), SeededEntropy(31))
    sizes = np.abs(draws @ weights)
    for confidence in (0.5, 0.95, 0.99):
        h = weighted_half_width(noise, weights, confidence)
        error = 6 * math.sqrt(confidence * (1 - confidence) / sizes.size)
        assert np.mean(sizes <= h * (1 + 1e-12)) >= confidence - error
        # Sabotage: a tenth less covers too little, unless so much of the law is a gap.
        if noise.variance > 100:
            assert np.mean(sizes <= 0.9 * h) < confidence - error
