"""Sums of independent counts, in logarithms, so that no tail is lost; and who of them counts."""

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled

# A term that is this small beside the largest is less than the rounding of the sum.
_NEGLIGIBLE = 1e-20


@compiled
def log_convolution(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log weights of the sum of two independent counts with log-concave weights.

    Numbers of successes are log-concave, and so are their sums. For each value the terms rise to one peak and fall,
    and the peak moves by at most one step to the next value: the sum is taken outward from there, each term from the
    one before it by the ratios of neighbouring weights.
    """
    total = np.empty(first.size + second.size - 1)
    up, down = np.exp(np.diff(first)), np.exp(-np.diff(second))
    back_up, back_down = np.exp(-np.diff(first)), np.exp(np.diff(second))
    peak = 0
    for value in range(total.size):
        low = max(0, value - second.size + 1)
        high = min(first.size - 1, value)
        peak = min(max(peak, low), high)
        while peak < high and (
            first[peak + 1] + second[value - peak - 1] > first[peak] + second[value - peak]
        ):
            peak += 1
        part, term = 1.0, 1.0
        for step in range(peak, high):
            term *= up[step] * down[value - step - 1]
            if term < _NEGLIGIBLE:
                break
            part += term
        term = 1.0
        for step in range(peak - 1, low - 1, -1):
            term *= back_up[step] * back_down[value - step - 1]
            if term < _NEGLIGIBLE:
                break
            part += term
        total[value] = first[peak] + second[value - peak] + np.log(part)
    return total


@compiled
def chances_of(
    log_weights: NDArray[np.float64], odds: NDArray[np.float64], low: int, high: int
) -> NDArray[np.float64]:
    r"""Return the probability that a person of each odds is among v that have it, for v = low, ..., high.

    With W the weights of all and o the odds, leaving the person out gives c(v + 1) = o W(v)/W(v + 1) (1 - c(v)), from
    c(0) = 0, and backwards from c(size) = 1. An error is multiplied by -o W(v)/W(v + 1), or by its inverse backwards.
    W is log-concave, so that factor grows with v: forwards while it is below one, and backwards where it is above,
    every error shrinks.
    """
    size = log_weights.size - 1
    ratios = np.exp(log_weights[:-1] - log_weights[1:])
    chances = np.zeros((odds.size, high - low + 1))
    for kind in range(odds.size):
        v, chance = 0, 0.0
        while v <= high:
            if v >= low:
                chances[kind, v - low] = chance
            if v == size or odds[kind] * ratios[v] > 1:
                break
            chance = odds[kind] * ratios[v] * (1 - chance)
            v += 1
        turn = v
        v, chance = size, 1.0
        while v > turn and v >= low:
            if v <= high:
                chances[kind, v - low] = chance
            v -= 1
            chance = max(0.0, 1 - chance / (odds[kind] * ratios[v]))
    return chances
