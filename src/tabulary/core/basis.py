"""The integer contrast basis: how a table splits into its total, main effects and interactions.

On an attribute of k levels the basis is Helmert's, in whole numbers: a row of ones, then for i = 1 … k - 1
the row with ones at levels 0 … i - 1 and -i at level i. Rows are orthogonal, entries are integers, and every
level has absolute entries that add up to the same number, k - 1, over the rows after the first. On two levels
this is (1, 1) and (1, -1): the Walsh–Hadamard transform.

On a table the basis is the product over its attributes. A row that is constant on all attributes but those of
a set S depends on the margin of S alone; the rows that vary on exactly S span what the margin of S adds to
those of its subsets (the Efron–Stein component of S, or on binary attributes one Fourier coefficient).
Transforms work axis by axis with running sums, never with a matrix.
"""

import math
from functools import reduce
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", np.int64, np.float64)


def contrasts(table: NDArray[Number]) -> NDArray[Number]:
    """Return every coefficient of a table: along each axis, entry 0 is the sum and entry i the i-th contrast.

    Exact on integers.

    >>> contrasts(np.array([[1, 2], [3, 5]])).tolist()
    [[11, -3], [-5, 1]]
    >>> contrasts(np.array([4, 1, 1])).tolist()
    [6, 3, 3]
    """
    return reduce(_contrasts_along, range(table.ndim), table)


def adjoint(coefficients: NDArray[Number]) -> NDArray[Number]:
    """Return the table Σ c·row over all rows: the transpose of `contrasts`.

    >>> adjoint(np.array([1, 0, 1])).tolist()
    [2, 2, -1]
    """
    return reduce(_adjoint_along, range(coefficients.ndim), coefficients)


def table_of(coefficients: NDArray[Number]) -> NDArray[np.float64]:
    """Return the table with these coefficients: the inverse of `contrasts`.

    >>> table_of(np.array([6, 3, 3])).tolist()
    [4.0, 1.0, 1.0]
    """
    return adjoint(coefficients / squared_norms(coefficients.shape))


def squared_norms(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the squared length of every row of the basis: k, then i(i + 1), multiplied over the attributes.

    >>> squared_norms((3,)).tolist()
    [3.0, 2.0, 6.0]
    """
    norms = np.ones(shape)
    for axis, levels in enumerate(shape):
        steps = np.arange(levels, dtype=np.float64)
        norms *= _along(np.where(steps == 0, levels, steps * (steps + 1)), axis, len(shape))
    return norms


def level_l1(levels: int) -> int:
    """Return Σ |entry| over the contrasts of an attribute, the same at every level: k - 1."""
    return levels - 1


def level_l2_squared(levels: int) -> NDArray[np.int64]:
    """Return Σ entry² over the contrasts of an attribute, for each level i: i² + k - 1 - i.

    >>> level_l2_squared(3).tolist()
    [2, 2, 4]
    """
    steps = np.arange(levels, dtype=np.int64)
    return steps * steps + levels - 1 - steps


def contrast_matrix(levels: int) -> NDArray[np.int64]:
    """Return the basis of one attribute as a matrix, for small tables and for tests.

    >>> contrast_matrix(3).tolist()
    [[1, 1, 1], [1, -1, 0], [1, 1, -2]]
    """
    return _contrasts_along(np.eye(levels, dtype=np.int64), 0)


def coefficients(shape: tuple[int, ...]) -> int:
    """Return how many coefficients vary on all attributes of a margin: Π (k - 1).

    >>> coefficients((4, 16)), coefficients(())
    (45, 1)
    """
    return math.prod(levels - 1 for levels in shape)


def _contrasts_along(table: NDArray[Number], axis: int) -> NDArray[Number]:
    sums = np.cumsum(table, axis=axis)
    levels = table.shape[axis]
    found = np.empty_like(table)
    found[_at(axis, slice(0, 1), table.ndim)] = sums[_at(axis, slice(levels - 1, levels), table.ndim)]
    steps = _along(np.arange(1, levels, dtype=table.dtype), axis, table.ndim)
    later = _at(axis, slice(1, levels), table.ndim)
    found[later] = sums[_at(axis, slice(0, levels - 1), table.ndim)] - steps * table[later]
    return found


def _adjoint_along(values: NDArray[Number], axis: int) -> NDArray[Number]:
    # Level j meets the row of ones, -j of its own contrast, and every later contrast.
    levels = values.shape[axis]
    later = np.flip(np.cumsum(np.flip(values, axis), axis=axis), axis) - values
    first = values[_at(axis, slice(0, 1), values.ndim)]
    steps = _along(np.arange(levels, dtype=values.dtype), axis, values.ndim)
    found: NDArray[Number] = first + later - steps * values
    return found


def _along(values: NDArray[Number], axis: int, dimensions: int) -> NDArray[Number]:
    return values.reshape([-1 if i == axis else 1 for i in range(dimensions)])


def _at(axis: int, part: slice, dimensions: int) -> tuple[slice, ...]:
    return tuple(part if i == axis else slice(None) for i in range(dimensions))
