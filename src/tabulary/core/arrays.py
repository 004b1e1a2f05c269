"""The two array types of all computations, and the margins of an array."""

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import product
from typing import Any, TypeVar

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


def with_last_places(shape: Sequence[int], block: Callable[[tuple[bool, ...]], NDArray[Any]]) -> NDArray[Any]:
    """Return an array with one more place along each axis, such as its total.

    `block` gives the numbers for one boolean per axis: False means the last place of that axis.

    >>> table = np.array([[1, 2], [3, 4]])
    >>> with_last_places((2, 2), lambda kept: sum_onto(table, (0, 1), np.flatnonzero(kept))).tolist()
    [[1, 2, 3], [3, 4, 7], [4, 6, 10]]
    """
    blocks = {kept: block(kept) for kept in product((True, False), repeat=len(shape))}
    made = np.empty([size + 1 for size in shape], dtype=np.result_type(*blocks.values()))
    for kept, numbers in blocks.items():
        sizes = [size for size, keep in zip(shape, kept, strict=True) if keep]
        place = tuple(slice(size) if keep else size for size, keep in zip(shape, kept, strict=True))
        made[place] = numbers.reshape(sizes)
    return made
