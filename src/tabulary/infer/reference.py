r"""The law of the likelihood ratio when the hypothesis holds, where noise is not small compared with the counts.

Wilks' χ² is the limit for large counts: then every cell adds a squared normal number to the statistic. Behind noise it
need not be near. A cell whose noise is a wide Laplace law adds about 2|noise|/scale, which is exponential with mean 2
where χ² with one degree of freedom has 1, and a test by χ² would reject most true hypotheses; behind bounded noise a
cell adds less than 1. But a cell's law is known. With t(x) = 2 (log f at the best mean - log f at μ) and the score
s(x) = E[a | x] - μ, sums over all released values x give E t, Var t, the information I = E s² and Cov(t, s²). Fitting p
parameters takes s' D (D' I D)⁻¹ D' s away, a quadratic form of mean p and variance 2p whose covariance with the t of a
cell is its leverage h times Cov(t, s²)/I. So the statistic has

    mean M = Σ E t - p,    variance W = Σ Var t + 2p - 2 Σ h Cov(t, s²)/I,

and is taken as a multiple of χ² with these two moments: W/(2M) times χ² with 2M²/W degrees of freedom (Satterthwaite
1946). Where Wilks' theorem holds, E t = 1 and Var t = Cov(t, s²)/I = 2, and this is χ² with the usual degrees of
freedom.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.interruption import checkpoint
from tabulary.infer.chi_squared import upper_tail
from tabulary.infer.count_likelihoods import CountLikelihoods, reach_of
from tabulary.infer.likelihood import NoisyCells
from tabulary.infer.table_noise import CountLaw, IndependentNoise

# Moments are computed at the means exp(k/4) and interpolated between.
_STEP = 0.25
# The probability that is left out of the law of a released value, and the approximate number of values that are used.
_LEFT_OUT = 2e-9
_POINTS = 600
# A Poisson count is followed for so many standard deviations, and so many counts more.
_DEVIATIONS, _MORE = 6.5, 12
# The least mean of the statistic, beside that of χ².
_LEAST = 0.1


def matched_tail(
    statistic: float, degrees_of_freedom: int, moments: Floats, design: Floats, means: Floats
) -> float:
    """Return the probability of a statistic this large or larger, from the `cell_moments` of a hypothesis.

    `design` has a row for each cell and determines cells - `degrees_of_freedom` parameters.
    """
    parameters = len(means) - degrees_of_freedom
    expected, variances, shares, covariances = moments
    information = shares * means
    scale = np.sqrt(np.maximum(information @ design**2, 1e-300))
    gram = design.T @ (information[:, np.newaxis] * design) / np.outer(scale, scale)
    scaled = design / scale
    leverages = information * np.einsum(
        "ij,jk,ik->i", scaled, np.linalg.pinv(gram, hermitian=True), scaled, optimize=True
    )
    mean = max(float(expected.sum()) - parameters, _LEAST * degrees_of_freedom)
    variance = float(variances.sum()) + 2 * parameters - 2 * float(leverages @ covariances)
    return scaled_tail(statistic, mean, max(variance, 2 * _LEAST * mean))


def scaled_tail(statistic: float, mean: float, variance: float) -> float:
    """Return P(c χ² ≥ statistic) for the multiple of χ² with this mean and variance.

    >>> round(scaled_tail(30.0, 20, 40), 4), round(scaled_tail(30.0, 20, 46), 4)
    (0.0699, 0.082)
    """
    return upper_tail(2 * mean * statistic / variance, 2 * mean**2 / variance)


def cell_moments(noise: IndependentNoise, terms: NDArray[np.int64], means: Floats) -> Floats | None:
    """Return four rows: E t, Var t, E s²/μ and Cov(t, s²)/E s², for cells with `terms` draws and these means.

    None for a perturbation without a bound whose law depends on the count.
    """
    if reach_of(noise.law, 1, _LEFT_OUT) is None:
        return None
    law: Any = noise.law
    places = np.log(means) / _STEP
    below = np.floor(places).astype(np.int64)
    share = places - below
    # The cubic through the four nodes about each place.
    weights = (
        -share * (share - 1) * (share - 2) / 6,
        (share + 1) * (share - 1) * (share - 2) / 2,
        -(share + 1) * share * (share - 2) / 2,
        (share + 1) * share * (share - 1) / 6,
    )
    found = np.zeros((4, means.size))
    for shift, weight in enumerate(weights, start=-1):
        pairs, which = np.unique(np.stack([terms, below + shift]), axis=1, return_inverse=True)
        nodes = np.array([_moments_at(law, t, noise.minimum, node) for t, node in pairs.T.tolist()])
        found += weight * nodes[which].T
    return found


@lru_cache(maxsize=8192)
def _moments_at(law: Any, terms: int, minimum: int | None, node: int) -> tuple[float, float, float, float]:
    """Return the moments of a cell with the mean exp(node/4)."""
    checkpoint()
    mean = math.exp(node * _STEP)
    values, spacing = _values(law, terms, minimum, mean)
    if terms and isinstance(law, CountLaw):
        # Some values, such as negative ones, are never published.
        likelihoods = CountLikelihoods(IndependentNoise(law, np.array([terms]), minimum))
        tables = [likelihoods.of(x, terms).table for x in values.tolist()]
        heard = np.array([table is not None and bool(np.isfinite(table).any()) for table in tables])
        values, spacing = values[heard], spacing[heard]
    noise = IndependentNoise(law, np.full(values.size, terms), minimum) if terms else None
    cells = NoisyCells(values, noise)
    logarithms, expected, _ = cells.evaluate(np.full(values.size, math.log(mean)))
    t = 2 * (cells.saturated()[1] - logarithms)
    weights = np.exp(logarithms) * spacing
    weights /= weights.sum()
    squares = (expected - mean) ** 2
    mean_t, information = float(weights @ t), float(weights @ squares)
    variance = float(weights @ (t - mean_t) ** 2)
    covariance = float(weights @ ((t - mean_t) * (squares - information)))
    return mean_t, variance, information / mean, covariance / information


def _values(law: Any, terms: int, minimum: int | None, mean: float) -> tuple[NDArray[np.int64], Floats]:
    """Return the released values of a cell that matter, and the number of values that each one represents."""
    reach = reach_of(law, terms, _LEFT_OUT)
    assert reach is not None, "a law without a reach has no moments"
    below, above = reach
    spread = _DEVIATIONS * math.sqrt(mean)
    lowest = max(0, math.floor(mean - spread)) - below
    highest = math.ceil(mean + spread) + _MORE + above
    if minimum is not None and terms:
        lowest = max(lowest, minimum)
    # A minimum gathers the values below it, and stands for itself alone.
    stride = max(1, (highest - lowest) // _POINTS)
    values = np.concatenate([[lowest], np.arange(lowest + 1, highest + stride, stride)])
    spacing = np.full(values.size, float(stride))
    spacing[0] = 1.0
    return values, spacing
