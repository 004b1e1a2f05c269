"""The inner loops of the exact program."""

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled

# A stretch of the result that stays in the nearest cache while all the terms are added to it.
_STRETCH = 1024


@compiled
def spread(
    mass: NDArray[np.float64], shifts: NDArray[np.int64], weights: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Return the sum of `mass`, moved by each of the shifts, times its weight."""
    result = np.zeros(size)
    for start in range(0, size, _STRETCH):
        end = min(size, start + _STRETCH)
        for k in range(shifts.size):
            shift, weight = shifts[k], weights[k]
            first = max(start, shift)
            last = min(end, shift + mass.size)
            for place in range(first, last):
                result[place] += weight * mass[place - shift]
    return result


@compiled
def having_it(
    rest: NDArray[np.float64],
    targets: NDArray[np.int64],
    shifts: NDArray[np.int64],
    weights: NDArray[np.float64],
    places: NDArray[np.int64],
    chances: NDArray[np.float64],
    owner: NDArray[np.int64],
    size: int,
) -> NDArray[np.float64]:
    """Return, for each target, its mass, and the part of it where a person of each kind has the attribute.

    The mass of a target is that of the rest at target - shift, summed over a column's fillings. `places[k, i]` is
    where the law of cell i keeps the value that filling k gives it, `size` the length of all laws together;
    `chances[t]` are a kind's chances for each value of its cell, whose law begins at `owner[t]`.
    """
    kinds, values = chances.shape
    result = np.zeros((targets.size, kinds + 1))
    law = np.empty(size)
    for z in range(targets.size):
        law[:] = 0.0
        total = 0.0
        for k in range(shifts.size):
            part = weights[k] * rest[targets[z] - shifts[k]]
            total += part
            for i in range(places.shape[1]):
                law[places[k, i]] += part
        result[z, 0] = total
        for t in range(kinds):
            has_it = 0.0
            for x in range(min(values, size - owner[t])):
                has_it += law[owner[t] + x] * chances[t, x]
            result[z, t + 1] = has_it
    return result


@compiled
def convolve_rows(
    first: NDArray[np.float64], second: NDArray[np.float64], which: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the law of the sum of two counts in each row: `first[k]`, and `second[which[k]]`."""
    result = np.zeros((first.shape[0], first.shape[1] + second.shape[1] - 1))
    for k in range(first.shape[0]):
        for x in range(second.shape[1]):
            weight = second[which[k], x]
            if weight == 0.0:
                continue
            for y in range(first.shape[1]):
                result[k, x + y] += weight * first[k, y]
    return result
