"""Our draws beside OpenDP's: two samplers that share no line must give one law."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler, OpenDPSampler
from tests.entropy import SeededEntropy

pytest.importorskip("opendp")

LEVEL = 1e-6
DRAWS = 40_000
LAWS = [
    (DiscreteLaplace, 5),
    (DiscreteLaplace, 300),
    (DiscreteGaussian.from_sigma, 40),
    (DiscreteGaussian.from_sigma, 700),
]


def alike(first: np.ndarray, second: np.ndarray) -> float:
    """The p-value of the two-sample chi-square over the pooled quantiles."""
    edges = np.unique(np.quantile(np.concatenate([first, second]), np.arange(1, 60) / 60, method="lower"))
    table = [
        np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1) for draws in (first, second)
    ]
    filled = np.sum(table, axis=0) > 0
    return float(stats.chi2_contingency(np.array(table)[:, filled]).pvalue)


@pytest.mark.parametrize(
    ("family", "width"), LAWS, ids=["laplace", "wide laplace", "gaussian", "wide gaussian"]
)
def test_our_draws_and_those_of_opendp_come_from_one_law(family, width):
    sampler = ExactSampler(SeededEntropy(21))
    theirs = OpenDPSampler().draw(family(width), DRAWS)
    assert alike(sampler.draw(family(width), 10 * DRAWS), theirs) > LEVEL
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        assert alike(sampler.draw(family(width * factor), 10 * DRAWS), theirs) < LEVEL
