"""Weights of many rows, fitted to one table after the other."""

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats

Codes = NDArray[np.int32]


@compiled
def weighted_counts(
    codes: Codes, columns: NDArray[np.int64], strides: NDArray[np.int64], weights: Floats, counts: Floats
) -> None:
    """Add up the weights of the rows in each cell of a margin, into `counts`."""
    counts[:] = 0.0
    for row in range(codes.shape[0]):
        cell = 0
        for part in range(columns.size):
            cell += codes[row, columns[part]] * strides[part]
        counts[cell] += weights[row]


@compiled
def scale_weights(
    codes: Codes, columns: NDArray[np.int64], strides: NDArray[np.int64], weights: Floats, factors: Floats
) -> None:
    """Multiply the weight of each row by the factor of its cell."""
    for row in range(codes.shape[0]):
        cell = 0
        for part in range(columns.size):
            cell += codes[row, columns[part]] * strides[part]
        weights[row] *= factors[cell]
