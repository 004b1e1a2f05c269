r"""The means of a Poisson count that a noisy value of it does not contradict.

The records are a sample, and the number of them in some cells is Poisson with a mean μ that describes the population.
The interval holds every μ for which the released value x = N + error lies in neither tail: P(X ≤ x; μ) and P(X ≥ x; μ)
above (1 - confidence)/2 (without noise: Garwood 1936). Both are monotone in μ, so each end is found by bisection.

Where the error is a sum of whole draws of one noise, the tails are exact: on a circle of C whole numbers

    P(X ≤ x) = 1/2 - (1/C) Σ_j Im(φ(t_j) exp(-i t_j (x + 1/2))) / (2 sin(t_j/2)),   t_j = 2π (j + 1/2)/C,

with φ the characteristic function of X, up to the mass beyond the circle. Else the quantiles of X are those of Cornish
and Fisher with the variance, skewness and kurtosis of the Poisson count and the error together.
"""

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from tabulary.infer.sums import SumLaw
from tabulary.noise import IntegerNoise

# Above so many whole numbers a step of one no longer matters, and the tails are taken as smooth.
_LARGEST_CIRCLE = 1 << 16
# The mass that may be left outside the circle.
_OUTSIDE = 1e-9
# An end is known to this share of the range.
_PRECISION = 1e-9


def poisson_interval(value: float, law: SumLaw, confidence: float) -> tuple[float, float]:
    """Return the smallest and the largest mean that a released value does not contradict; both 0 if all do.

    >>> from tabulary.noise import DiscreteLaplace
    >>> from tabulary.planning.covariance import CellCovariance, CountNoise
    >>> law = SumLaw.of(CellCovariance(CountNoise(DiscreteLaplace(2), np.array([1]))), [1])
    >>> [round(end, 1) for end in poisson_interval(20, law, 0.95)]
    [10.7, 32.6]
    >>> [round(end, 1) for end in poisson_interval(20, SumLaw(0.0, ()), 0.95)]
    [12.2, 30.9]
    """
    tail = (1 - confidence) / 2
    # No mean outside of this is anywhere near the value.
    spread = law.deviation * 20 + 12
    highest = max(0.0, value) + spread + 12 * math.sqrt(max(0.0, value) + spread)
    not_above, not_below = _conditions(value, law, tail, highest)
    return _largest(lambda mean: not not_below(mean), highest), _largest(not_above, highest)


def _conditions(
    value: float, law: SumLaw, tail: float, highest: float
) -> tuple[Callable[[float], bool], Callable[[float], bool]]:
    """Return whether a mean is small enough, and whether it is large enough, for the released value."""
    whole = _whole_draws(law)
    if whole is not None and float(value).is_integer():
        noise, terms = whole
        reach = _reach(noise, terms) if noise is not None else 0
        circle = 2 * (reach + math.ceil(highest) + math.ceil(abs(value)) + 1)
        if circle <= _LARGEST_CIRCLE:
            tails = _Tails(noise, terms, circle)
            return (
                lambda mean: tails.at_most(value, mean) >= tail,
                lambda mean: 1 - tails.at_most(value - 1, mean) >= tail,
            )
    z = NormalDist().inv_cdf(1 - tail)

    def quantile(mean: float, z: float) -> float:
        # A count of nobody does not vary; the error may.
        variance = mean + law.variance
        if variance <= 0:
            return mean
        skewness = mean / variance**1.5
        kurtosis = (mean + law.fourth_cumulant) / variance**2
        tilted = z + skewness * (z * z - 1) / 6 + kurtosis * (z**3 - 3 * z) / 24
        tilted -= skewness**2 * (2 * z**3 - 5 * z) / 36
        return float(mean + math.sqrt(variance) * tilted)

    return (lambda mean: value >= quantile(mean, -z), lambda mean: value <= quantile(mean, z))


def _whole_draws(law: SumLaw) -> tuple[IntegerNoise | None, int] | None:
    """Return the noise and how many whole draws of it are added up, if that is what the error is."""
    if law.variance <= 0:
        return None, 0
    if law.single is None:
        return None
    noise, sizes = law.single
    return (noise, sizes.size) if np.all(sizes == 1) else None


def _reach(noise: IntegerNoise, terms: int) -> int:
    return noise.half_width(1 - _OUTSIDE, terms)


class _Tails:
    """The distribution function of a Poisson count plus whole noise, on a circle."""

    def __init__(self, noise: IntegerNoise | None, terms: int, circle: int) -> None:
        self._angles = 2 * np.pi / circle * (np.arange(circle // 2) + 0.5)
        damping = np.ones_like(self._angles) if noise is None else noise.characteristic(self._angles) ** terms
        self._weights = damping / (circle * np.sin(self._angles / 2))

    def at_most(self, value: float, mean: float) -> float:
        """Return P(X ≤ value)."""
        angles = self._angles
        size = np.exp(mean * (np.cos(angles) - 1)) * self._weights
        return 0.5 - float(np.sum(size * np.sin(mean * np.sin(angles) - angles * (value + 0.5))))


def _largest(holds: Callable[[float], bool], highest: float) -> float:
    """Return the largest mean for which a condition holds that holds up to some mean; 0 if it never does."""
    if not holds(0.0):
        return 0.0
    low, high = 0.0, highest
    while high - low > _PRECISION * highest:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
