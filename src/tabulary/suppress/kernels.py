"""Sums of independent counts, in logarithms, so that no tail is lost."""

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled

# Terms this far below the largest are less than the rounding of the sum.
_NEGLIGIBLE = 45.0


@compiled
def log_convolution(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log weights of the sum of two independent counts with log-concave weights.

    Numbers of successes are log-concave, and so are their sums. For each value the terms rise to one peak and fall,
    and the peak moves by at most one step to the next value: the sum is taken outward from there.
    """
    total = np.empty(first.size + second.size - 1)
    peak = 0
    for value in range(total.size):
        low = max(0, value - second.size + 1)
        high = min(first.size - 1, value)
        peak = min(max(peak, low), high)
        while peak < high and (
            first[peak + 1] + second[value - peak - 1] > first[peak] + second[value - peak]
        ):
            peak += 1
        top = first[peak] + second[value - peak]
        part = 1.0
        for step in range(peak + 1, high + 1):
            below = first[step] + second[value - step] - top
            if below < -_NEGLIGIBLE:
                break
            part += np.exp(below)
        for step in range(peak - 1, low - 1, -1):
            below = first[step] + second[value - step] - top
            if below < -_NEGLIGIBLE:
                break
            part += np.exp(below)
        total[value] = top + np.log(part)
    return total
