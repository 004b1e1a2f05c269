"""The sums behind the rounded Gaussian, in double precision.

They describe the law to analysts; no draw uses them. Sums over the integers converge fast for small σ, their twins by
Poisson summation for large: the law is a Gaussian blurred by a unit interval, at the integers.
"""

import math

import numpy as np
from numpy.typing import NDArray

_TERMS = np.arange(1, 41, dtype=np.float64)
# At σ = 1 the fourth image of the characteristic function is below 1e-100 of the first.
_IMAGES = np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0])
# From this σ on a probability is a density with corrections; below, a difference of tails.
_DENSITY_FROM = 512.0
# Tilts up to this keep the sums of forty terms complete and finite for σ below 1.
LARGEST_TILT = 16.0


def rounded_tail(square: float, k: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(X ≥ k) = P(Z > (k - ½)/σ) for k ≥ 1.

    >>> rounded_tail(1.0, np.array([1.0, 2.0])).round(6).tolist()
    [0.308538, 0.066807]
    """
    edge = (np.asarray(k) - 0.5) / math.sqrt(2 * square)
    return np.array([math.erfc(x) / 2 for x in edge.ravel()]).reshape(edge.shape)


def rounded_pmf(square: float, k: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(X = k) for k ≥ 0.

    The difference of two tails loses as many digits as σ has. From σ = 512 on it is therefore the density f
    and its even derivatives, f + f''/24 + f''''/1920; the next term is below 1e-12 of the sum wherever the
    sum is a float.

    >>> rounded_pmf(1.0, np.array([0.0, 1.0])).round(6).tolist()
    [0.382925, 0.24173]
    """
    sigma = math.sqrt(square)
    if sigma < _DENSITY_FROM:
        inside = rounded_tail(square, np.maximum(k, 1)) - rounded_tail(square, k + 1)
        return np.where(k == 0, math.erf(0.5 / math.sqrt(2 * square)), inside)
    z = k / sigma
    density = np.exp(-(z**2) / 2) / (sigma * math.sqrt(2 * math.pi))
    second, fourth = (z**2 - 1) / square, (z**4 - 6 * z**2 + 3) / square**2
    return np.asarray(density * (1 + second / 24 + fourth / 1920))


def rounded_variance(square: float) -> float:
    """Return the variance of the rounded law: σ² + 1/12 up to a term that vanishes like exp(-2π²σ²).

    >>> round(rounded_variance(1.0), 9), round(rounded_variance(0.01), 12)
    (1.083333322, 5.73303e-07)
    """
    if square < 1:
        return 2 * float(np.sum((2 * _TERMS - 1) * rounded_tail(square, _TERMS)))
    order = _TERMS[:4]
    signs = np.where(order % 2, -1.0, 1.0)
    images = np.exp(-2 * (math.pi * order) ** 2 * square) * (square + 1 / (2 * math.pi * order) ** 2)
    return square + 1 / 12 + 4 * float(np.sum(signs * images))


def log_rounded_characteristic(square: float, t: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return log E exp(itX) for t in [0, π], to full relative precision near t = 0.

    By Poisson summation E exp(itX) = Σ_j exp(-σ²(t + 2πj)²/2) · sin(t/2 + πj)/(t/2 + πj).

    >>> log_rounded_characteristic(100.0, np.array([0.0, 0.1])).round(6).tolist()
    [0.0, -0.500417]
    """
    if square < 1:
        probabilities = rounded_pmf(square, _TERMS)
        seen = int(np.sum(_TERMS**2 * probabilities > 1e-20 * probabilities[0]))
        terms, probabilities = _TERMS[:seen], probabilities[:seen]
        lost = 4 * probabilities @ np.sin(np.outer(terms, t / 2)) ** 2
        return np.asarray(np.log1p(-lost))
    shifts = 2 * math.pi * _IMAGES[:, np.newaxis]
    signs = np.where(_IMAGES % 2, -1.0, 1.0)
    # exp(-σ²((t + s)² - t²)/2), which no frequency in [0, π] can overflow.
    images = np.exp(-square / 2 * shifts * (shifts + 2 * t)) * t / (t + shifts)
    return np.asarray(-square * t**2 / 2 + _log_sinc(t / 2) + np.log1p(signs @ images))


def log_rounded_moment_bound(square: float, t: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return an upper bound of log E exp(tX).

    The images of the characteristic function at -it are at most exp(σ²t²/2 - 2π²j²σ²) · sinh(t/2)/(t/2), and
    sinh(y)/y ≤ exp(y²/6): the law is sub-Gaussian with parameter σ² + 1/12 up to a constant near zero. Below
    σ = 1 that constant is not small and the expectation itself is summed, for t up to 16.
    """
    if square < 1:
        probabilities = rounded_pmf(square, _TERMS)
        tilts = np.minimum(np.abs(t), LARGEST_TILT)[..., np.newaxis]
        excess = 4 * np.sum(probabilities * np.sinh(tilts * _TERMS / 2) ** 2, axis=-1)
        return np.where(np.abs(t) <= LARGEST_TILT, np.log1p(excess), np.inf)
    constant = math.log1p(2 * float(np.sum(np.exp(-2 * (math.pi * _TERMS[:4]) ** 2 * square))))
    return np.asarray((square + 1 / 12) * t**2 / 2 + constant)


def _log_sinc(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(sin(y)/y) for y in [0, π/2], from the series of sin(y)/y - 1."""
    square = y**2
    inner = np.ones_like(y)
    for order in range(12, 1, -1):
        inner = 1 - square / (2 * order * (2 * order + 1)) * inner
    return np.log1p(-square / 6 * inner)
