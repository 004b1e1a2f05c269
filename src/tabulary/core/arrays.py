"""The two array types of all computations, and the margin of an array."""

from collections.abc import Container, Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Real numbers in double precision."""

Integers = NDArray[np.int64]
"""Whole numbers in 64 bits."""

Number = TypeVar("Number", bound=np.generic)


def axes_outside(axes: Iterable[object], kept: Container[object]) -> tuple[int, ...]:
    """Return the positions of the axes that are not in `kept`: those that a margin sums over.

    >>> axes_outside(("sex", "age", "job"), ("age",))
    (0, 2)
    """
    return tuple(position for position, axis in enumerate(axes) if axis not in kept)


def sum_onto(table: NDArray[Number], axes: Iterable[object], kept: Container[object]) -> NDArray[Number]:
    """Return the margin of a table on the axes that are in `kept`, in the order that they have in `axes`.

    >>> sum_onto(np.array([[1, 2, 3], [4, 5, 6]]), ("sex", "age"), ("sex",)).tolist()
    [6, 15]
    """
    # A sum over no axes copies; one over all axes gives a scalar of the same kind.
    return np.asarray(table.sum(axis=axes_outside(axes, kept)))
