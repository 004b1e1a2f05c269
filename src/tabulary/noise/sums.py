"""How far a sum of independent draws can be from zero."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidNoise

# Probabilities this small are left out: the mass beyond the reach and the frequencies beyond the cutoff.
NEGLIGIBLE = 1e-17
# The closest to 1 that a sum's confidence may come, given the rounding of the series below.
LARGEST_CONFIDENCE = 1 - 1e-10

LogCharacteristic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
LogMoment = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def half_width_of_sum(
    log_characteristic: LogCharacteristic, terms: int, confidence: float, *, reach: int
) -> int:
    r"""Return the smallest h with P(\|S\| ≤ h) ≥ `confidence` for the sum S of `terms` independent draws.

    `log_characteristic(t)` is log E exp(itX) on [0, π], real and falling for a symmetric law of the kinds we
    have; `reach` bounds the sum: P(\|S\| > reach) ≤ 1e-17. On the circle of N = 2·reach + 1 integers

        P(\|S\| ≤ h) = (1/N) Σ_j φ(t_j)**terms · sin((h + ½)t_j) / sin(t_j / 2),   t_j = 2πj/N,

    up to the mass that wraps around, which is at most 1e-17. The sum stops where φ**terms falls below 1e-17.
    This happens after at most a few hundred thousand frequencies for two Laplace draws, a few dozen for a
    Gaussian, at any scale, so that no normal approximation is ever needed. Probabilities come out to about
    1e-13; a confidence above 1 - 1e-10 is refused for sums.
    """
    check_sum_confidence(confidence)
    circle = 2 * reach + 1
    frequencies = _count_frequencies(log_characteristic, terms, circle)
    angles = 2 * np.pi / circle * np.arange(1, frequencies + 1, dtype=np.float64)
    weights = np.exp(terms * log_characteristic(angles)) / np.sin(angles / 2)

    def probability_within(h: int) -> float:
        return (2 * h + 1 + 2 * float(np.sum(weights * np.sin((h + 0.5) * angles)))) / circle

    return smallest(lambda h: h >= reach or probability_within(h) >= confidence, upper=reach)


def check_sum_confidence(confidence: float) -> None:
    """Raise InvalidNoise if a confidence is too close to 1 for the half-width of a sum."""
    if confidence > LARGEST_CONFIDENCE:
        raise InvalidNoise(
            f"the half-width of a sum is known up to a confidence of 1 - 1e-10, not {confidence!r}. Ask for a smaller "
            "confidence, or bound each term by itself."
        )


def smallest(holds: Callable[[int], bool], *, upper: int) -> int:
    """Return the smallest non-negative integer for which a monotone condition holds; it holds at `upper`.

    >>> smallest(lambda h: h * h >= 50, upper=100)
    8
    """
    low, high = 0, upper
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def chernoff_reach(log_moment_bound: LogMoment, terms: int, *, largest: float) -> int:
    r"""Return an h with P(\|S\| > h) ≤ 1e-17 for the sum S of `terms` independent draws.

    Chernoff: 2·exp(terms · log E exp(λX) - λh) for any λ in (0, `largest`); the best of a grid is taken.
    """
    tilts = largest * np.concatenate([np.geomspace(1e-9, 0.5, 400), 1 - np.geomspace(1e-4, 0.5, 100)])
    return math.ceil(np.min((math.log(2 / NEGLIGIBLE) + terms * log_moment_bound(tilts)) / tilts))


def _count_frequencies(log_characteristic: LogCharacteristic, terms: int, circle: int) -> int:
    """Return how many frequencies above zero carry more than a negligible weight."""
    cutoff = math.log(NEGLIGIBLE)

    def negligible(j: int) -> bool:
        angle = np.array([2 * np.pi / circle * (j + 1)])
        return bool(terms * log_characteristic(angle)[0] < cutoff)

    return smallest(lambda j: j >= circle // 2 or negligible(j), upper=circle // 2)
