r"""What a noisy residual says about an interaction: its posterior mean and spread, and the evidence for its base.

The difference d of the measured residual and that of a base b is interaction plus noise of variance s. With the prior
N(0, κ b) for the interaction of a cell, its mean given d is d · κb/(κb + s) and its variance κb s/(κb + s). κ is
φ² Σb²/Σb with the strength φ² of `planning.interaction_prior`; its posterior follows from all cells together, and mean
and variance are averaged over it, by the law of total variance. Cells count as independent; the exponent of the
likelihood corrects for the k - 1 degrees of freedom of a residual of k levels.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats
from tabulary.planning.interaction_prior import STRENGTHS, prior


@dataclass(frozen=True, eq=False)
class Judged:
    """A base, the difference of the measurement from it, and what that says about its strength."""

    base: Floats
    difference: Floats
    noise: float
    scales: Floats
    weights: Floats
    evidence: float

    def estimate(self) -> tuple[Floats, Floats, float, float]:
        """Return the posterior mean, its standard deviation, and the expected squared bias and squared error."""
        mean, spread = np.empty(self.base.size), np.empty(self.base.size)
        bias, whole = _posterior(
            self.base.reshape(-1), self.difference, self.noise, self.scales, self.weights, mean, spread
        )
        return mean.reshape(self.base.shape), spread.reshape(self.base.shape), bias, whole


def judged(base: Floats, residual: Floats, noise: float) -> Judged:
    """Return what a measured residual, with noise of this variance per cell, says about the interaction on a base.

    >>> base = np.array([[30.0, 10.0], [20.0, 40.0]])
    >>> sure = judged(base, np.array([[9.0, -9.0], [-9.0, 9.0]]), noise=0.01)
    >>> sure.estimate()[0].round(1)
    array([[29., 11.],
           [21., 39.]])
    >>> unsure = judged(base, np.array([[9.0, -9.0], [-9.0, 9.0]]), noise=1e6)
    >>> unsure.estimate()[0].round(1)
    array([[30., 10.],
           [20., 40.]])
    """
    shape = base.shape
    difference = np.empty(base.size)
    scales = np.empty(len(STRENGTHS))
    weights = np.empty(len(STRENGTHS))
    # A residual has Π (k - 1) degrees of freedom, fewer than cells.
    freedom = math.prod(k - 1 for k in shape) / base.size
    evidence = _judge(
        np.ascontiguousarray(base).reshape(-1),
        np.ascontiguousarray(residual).reshape(-1),
        np.array(shape),
        noise,
        freedom,
        STRENGTHS,
        _log_prior(len(shape)),
        difference,
        scales,
        weights,
    )
    return Judged(base, difference, noise, scales, weights, evidence)


@lru_cache
def _log_prior(order: int) -> Floats:
    found: Floats = np.log(prior(order))
    return found


@compiled
def _judge(
    base: Floats,
    residual: Floats,
    shape: NDArray[np.int64],
    noise: float,
    freedom: float,
    strengths: Floats,
    log_prior: Floats,
    difference: Floats,
    scales: Floats,
    weights: Floats,
) -> float:
    """Fill in the difference, and for each strength its scale and its posterior probability; return the evidence.

    Given a scale κ, d ~ N(0, noise + κ · base) in each cell; the evidence is the logarithm of the mean likelihood
    over the prior, up to a constant that all bases share.
    """
    cells = base.size
    total = 0.0
    squares = 0.0
    for c in range(cells):
        difference[c] = base[c]
        total += base[c]
        squares += base[c] * base[c]
    # The residual of the base: the average taken out of every axis.
    inner = cells
    for axis in range(shape.size):
        k = shape[axis]
        inner //= k
        for outer in range(cells // (k * inner)):
            for i in range(inner):
                start = outer * k * inner + i
                mean = 0.0
                for j in range(k):
                    mean += difference[start + j * inner]
                mean /= k
                for j in range(k):
                    difference[start + j * inner] -= mean
    for c in range(cells):
        difference[c] = residual[c] - difference[c]
    unit = squares / total if total > 0.0 else 0.0
    for g in range(strengths.size):
        scales[g] = strengths[g] * unit
        weights[g] = 0.0
    if unit <= 0.0 or noise <= 0.0:
        # Without an interaction to estimate, or without noise, the measured values are taken unchanged.
        weights[strengths.size - 1] = 1.0
        return 0.0
    top = -np.inf
    for g in range(strengths.size):
        scale = scales[g] / noise
        explained = 0.0
        logs = 0.0
        product = 1.0
        for c in range(cells):
            ratio = 1.0 + scale * base[c]
            explained += difference[c] * difference[c] / ratio
            product *= ratio
            # One logarithm per hundred digits, not one per cell.
            if product > 1e100:
                logs += np.log(product)
                product = 1.0
        weights[g] = log_prior[g] - 0.5 * freedom * (explained / noise + logs + np.log(product))
        top = max(top, weights[g])
    summed = 0.0
    for g in range(strengths.size):
        weights[g] = np.exp(weights[g] - top)
        # Very unlikely strengths are left out here and not cell by cell, so that the rest adds up to one.
        if weights[g] < 1e-9:
            weights[g] = 0.0
        summed += weights[g]
    for g in range(strengths.size):
        weights[g] /= summed
    return float(top + np.log(summed))


@compiled
def _posterior(
    base: Floats,
    difference: Floats,
    noise: float,
    scales: Floats,
    weights: Floats,
    mean: Floats,
    spread: Floats,
) -> tuple[float, float]:
    """Fill in the posterior mean and deviation of each cell; return the expected squared bias and error of all.

    The variance is the mean of the variances given each scale, and the variance of the means given each.
    """
    bias = 0.0
    whole = 0.0
    for c in range(base.size):
        kept = 0.0
        left = 0.0
        between = 0.0
        if base[c] > 0.0:
            for g in range(scales.size):
                if weights[g] > 0.0:
                    own = scales[g] * base[c]
                    share = own / (own + noise)
                    kept += weights[g] * share
                    left += weights[g] * (1.0 - share) * own
                    bias += weights[g] * (1.0 - share) * (1.0 - share) * own
            for g in range(scales.size):
                if weights[g] > 0.0:
                    own = scales[g] * base[c]
                    apart = (own / (own + noise) - kept) * difference[c]
                    between += weights[g] * apart * apart
        mean[c] = base[c] + kept * difference[c]
        spread[c] = np.sqrt(left + between)
        whole += left
    return bias, whole
