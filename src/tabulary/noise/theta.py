"""The sums behind the discrete Gaussian, in double precision.

Every sum Σ exp(-k²/(2σ²)) over the integers has a twin by Poisson summation, √(2π)σ Σ exp(-2π²σ²j²): the one
converges fast for small σ, the other for large. At σ = 1 a dozen terms of either suffice.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_TERMS = np.arange(1, 13, dtype=np.float64)
# From this σ² on the tail is an integral with corrections; below, its terms are summed.
_SUMMED_BELOW = 2.0**20


def theta(square: float) -> float:
    """Return Σ exp(-k²/(2σ²)) over all integers k, σ² = `square`.

    >>> round(theta(1.0), 12), round(theta(1e-6), 12)
    (2.506628288043, 1.0)
    """
    if square < 1:
        return 1 + 2 * float(np.sum(np.exp(-(_TERMS**2) / (2 * square))))
    return math.sqrt(2 * math.pi * square) * _dual(square)


def theta_variance(square: float) -> float:
    """Return the variance of the discrete Gaussian with σ² = `square`.

    >>> round(theta_variance(1.0), 9), round(theta_variance(0.01), 24)
    (0.999999789, 3.86e-22)
    """
    if square < 1:
        return 2 * float(np.sum(_TERMS**2 * np.exp(-(_TERMS**2) / (2 * square)))) / theta(square)
    rates = (2 * math.pi * _TERMS) ** 2
    correction = 2 * float(np.sum(rates * np.exp(-rates * square / 2))) / _dual(square)
    return square * (1 - square * correction)


def log_gaussian_characteristic(square: float, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log E exp(itX) for t in [0, π], to full relative precision near t = 0.

    >>> log_gaussian_characteristic(100.0, np.array([0.0, 0.1])).tolist()
    [0.0, -0.5000000000000001]
    """
    if square < 1:
        weights = np.exp(-(_TERMS**2) / (2 * square))
        seen = int(np.sum(_TERMS**2 * weights > 1e-20 * weights[0]))
        lost = 4 * weights[:seen] @ np.sin(np.outer(_TERMS[:seen], t / 2)) ** 2 / theta(square)
        return np.asarray(np.log1p(-lost))
    # The fourth image is below 1e-50 of the first at any frequency in [0, π].
    shifts = 2 * math.pi * np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0])
    # exp(-σ²((t - s)² - t²)/2), which no frequency in [0, π] can overflow.
    images = np.exp(-square / 2 * shifts[:, np.newaxis] * (shifts[:, np.newaxis] - 2 * t))
    return np.asarray(-square * t**2 / 2 + np.log1p(np.sum(images, axis=0)) - math.log(_dual(square)))


def gaussian_tail(square: float, k: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(X ≥ k) for k ≥ 1, with a small relative error far out too.

    The terms are summed from the far end below σ = 1024. Above it Euler and Maclaurin's midpoint formula
    gives Σ f(i) over i ≥ k as the integral of f from a = k - ½ plus f'(a)/24 - 7f'''(a)/5760; the next term
    is below 1e-11 of the sum wherever the sum is a float.

    >>> gaussian_tail(1.0, np.array([1.0, 2.0])).round(6).tolist()
    [0.300529, 0.058558]
    """
    if square < _SUMMED_BELOW:
        tails = _summed_tails(square)
        return np.asarray(tails[np.minimum(k, tails.size).astype(np.intp) - 1])
    edge = np.asarray(k - 0.5)
    slope = edge / square
    density = np.exp(-edge * slope / 2)
    complement = np.array([math.erfc(x) for x in (edge / math.sqrt(2 * square)).ravel()]).reshape(edge.shape)
    integral = math.sqrt(math.pi * square / 2) * complement
    third = density * (3 * slope / square - slope**3)
    return np.asarray((integral - density * slope / 24 - 7 * third / 5760) / theta(square))


@lru_cache(maxsize=32)
def _summed_tails(square: float) -> NDArray[np.float64]:
    """Return P(X ≥ k) for k = 1, 2, …, down to zero."""
    # exp(-x) is no longer a float for x beyond 750.
    values = np.arange(1, math.ceil(math.sqrt(1500 * square)) + 2, dtype=np.float64)
    weights = np.exp(-(values**2) / (2 * square))
    tails = np.append(np.cumsum(weights[::-1])[::-1], 0.0) / theta(square)
    tails.flags.writeable = False
    return tails


def _dual(square: float) -> float:
    """Return Σ exp(-2π²σ²j²) over all integers j."""
    return 1 + 2 * float(np.sum(np.exp(-2 * (math.pi * _TERMS) ** 2 * square)))
