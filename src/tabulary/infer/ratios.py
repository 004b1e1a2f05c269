r"""The ratios of two sums that released values do not contradict.

If ρ is the ratio of the true sums a and b, then x_a - ρ x_b holds nothing but error: ρ is in the set where
|x_a - ρ x_b| ≤ h(ρ), with h the half-width of the error of that difference (Fieller 1954). Nothing is divided, so that
the set holds the true ratio as often as stated even where the denominator may be zero; it then says honestly that the
ratio may be anything.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tabulary.infer.sums import SumLaw
from tabulary.planning.accuracy import heavy_quantile

_BISECTIONS = 80
_FARTHEST = 1e15
_GRID = 400
_BINOMIAL = np.array([1.0, 4.0, 6.0, 4.0, 1.0])


def _nothing(ratio: float) -> float:
    return 0.0


def _value(polynomial: tuple[float, ...], ratio: float) -> float:
    return sum(factor * ratio**power for power, factor in enumerate(polynomial))


@dataclass(frozen=True, eq=False)
class PairLaw:
    """The law of the error of the top less ρ times the bottom, for every ρ.

    `variances` and `cumulants` hold the variance and the fourth cumulant of that difference as polynomials in ρ, the
    constant first; `sampling(ρ)` is the variance that the sampling of records adds.
    """

    variances: tuple[float, float, float]
    cumulants: tuple[float, ...] = (0.0,)
    sampling: Callable[[float], float] = _nothing

    @classmethod
    def of(
        cls, top: SumLaw, bottom: SumLaw, covariance: float, sampling: Callable[[float], float] = _nothing
    ) -> "PairLaw":
        """Return the law of two sums of cells, from the draws that they share."""
        cumulants = np.zeros(5)
        for one, other in zip(top.draws, bottom.draws, strict=True):
            sums = [np.sum(one.weights ** (4 - i) * (-other.weights) ** i) for i in range(5)]
            cumulants += one.copies * one.noise.fourth_cumulant * _BINOMIAL * sums
        return cls((top.variance, -2 * covariance, bottom.variance), tuple(map(float, cumulants)), sampling)

    def excess(self, distance: float, ratio: float, confidence: float) -> float:
        """Return how far a difference is beyond its half-width, in standard deviations."""
        variance = max(0.0, _value(self.variances, ratio)) + self.sampling(ratio)
        if variance <= 0:
            return -math.inf if distance == 0 else math.inf
        kurtosis = max(0.0, _value(self.cumulants, ratio)) / variance**2
        return float(abs(distance) / math.sqrt(variance) - heavy_quantile(confidence, kurtosis))


def ratio_interval(
    top: float, bottom: float, law: PairLaw, confidence: float, *, bounds: tuple[float, float]
) -> tuple[float, float, float]:
    """Return the ratio that the released sums contradict least, and the ends of the set that they do not contradict.

    All are within `bounds`. The set may be two pieces; the ends are those of both together. If it is empty, all three
    are one.

    >>> low, high = ratio_interval(30.0, 60.0, PairLaw((4.0, 0.0, 9.0)), 0.95, bounds=(0, math.inf))[1:]
    >>> round(low, 3), round(high, 3)
    (0.423, 0.587)
    """

    def excess(ratio: float) -> float:
        return law.excess(top - ratio * bottom, ratio, confidence)

    inside = _least(excess, top, bottom, bounds)
    if excess(inside) > 0:
        return inside, inside, inside
    return inside, _end(excess, inside, bounds[0]), _end(excess, inside, bounds[1])


def _least(excess: Callable[[float], float], top: float, bottom: float, bounds: tuple[float, float]) -> float:
    """Return the ratio that is contradicted least: that of the sums if it is within bounds."""
    if bottom > 0 and bounds[0] <= top / bottom <= bounds[1]:
        return top / bottom
    if math.isfinite(bounds[1]):
        grid = np.linspace(*bounds, _GRID)
    else:
        grid = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, _GRID)])
        grid = grid if bounds[0] == 0 else np.concatenate([-grid[:0:-1], grid])
    return float(min(grid.tolist(), key=excess))


def _end(excess: Callable[[float], float], inside: float, bound: float) -> float:
    """Return the end of the set between a ratio inside it and a bound, which may be infinite."""
    outside = bound if math.isfinite(bound) else math.copysign(_FARTHEST, bound)
    if excess(outside) <= 0:
        return bound
    for _ in range(_BISECTIONS):
        middle = _between(inside, outside)
        inside, outside = (middle, outside) if excess(middle) <= 0 else (inside, middle)
    return inside


def _between(inside: float, outside: float) -> float:
    """Return a number between two, in the middle of their digits where they are far apart."""
    if inside * outside > 0 and max(inside / outside, outside / inside) > 4:
        return math.copysign(math.sqrt(inside * outside), inside)
    if abs(outside) > 4 * max(abs(inside), 1.0):
        return math.copysign(max(math.sqrt(abs(outside)), 2 * abs(inside)), outside)
    return (inside + outside) / 2
