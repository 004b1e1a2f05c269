r"""Residuals: what the table on a set of attributes adds to the tables on its subsets, in whole numbers.

On an attribute of k levels, P = I - J/k takes the average out. The residual of a set R is r_R = P_R x_R, with
P_R the product of P over the attributes of R and x_R their table; every table is the sum of the residuals of
its subsets, each spread evenly over the other attributes:

    x_A = Σ_{R ⊆ A} r_R / Π_{j ∈ A\R} k_j.

What is measured is a *part*: the table on a margin S with some of its axes B *centred*. A centred axis of
k ≥ 3 levels holds the k whole numbers (k·I - J) x, one of two levels the single difference x₀ - x₁, and one
of a single level nothing. Such a part knows the residuals of every R with B ⊆ R ⊆ S. With independent noise
of variance v on each of its values, the estimate of r_R has covariance σ² P_R, with

    σ² = v · Π_{j ∈ S\R} k_j · Π_{i ∈ B} h_i,    h = 1/k² for k ≥ 3 and 1/2 for k = 2:

summing over an axis adds up k draws, taking the average out of an axis leaves P, dividing k·I - J by k leaves
P/k², and the difference of two levels, halved and given both signs, has covariance v/4 · (2P) = v P/2.
Residuals of different sets are uncorrelated.
"""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import axes_outside
from tabulary.errors import InvalidTable


def residual_shape(shape: Sequence[int], centred: Collection[int]) -> tuple[int, ...]:
    """Return the shape of the values of a part: the table's, with one or no value on a short centred axis.

    >>> residual_shape((3, 2, 2, 1), centred=(0, 1))
    (3, 1, 2, 1)
    >>> residual_shape((3, 1), centred=(1,))
    (3, 0)
    """
    return tuple(_rows(levels) if axis in centred else levels for axis, levels in enumerate(shape))


def residual_values(table: NDArray[np.int64], centred: Collection[int]) -> NDArray[np.int64]:
    """Return the exact whole numbers of a part: the table with the average taken out of its centred axes.

    Confidential if the table is: nothing here adds noise.

    >>> residual_values(np.array([[1, 2, 6], [3, 5, 1]]), centred=(1,)).tolist()
    [[-6, -3, 9], [0, 6, -6]]
    >>> residual_values(np.array([[1, 2, 6], [3, 5, 1]]), centred=(0,)).tolist()
    [[-2, -3, 5]]
    """
    found = np.asarray(table, dtype=np.int64)
    # No value, nor any number on the way to it, exceeds the number of records times Π k.
    grown = math.prod(k for axis, k in enumerate(found.shape) if axis in centred)
    if grown * float(np.abs(found.astype(np.float64)).sum()) >= 2.0**62:
        raise InvalidTable("the counts of this table are so large that its residuals do not fit in 64 bits.")
    for axis in sorted(centred):
        levels = found.shape[axis]
        # On two levels one difference; on a single one none, for an axis of one level has none to take.
        found = (
            levels * found - found.sum(axis=axis, keepdims=True) if levels > 2 else -np.diff(found, axis=axis)
        )
    return found


def component(
    values: NDArray[np.int64] | NDArray[np.float64],
    levels: Sequence[int],
    centred: Collection[int],
    onto: Collection[int],
) -> NDArray[np.float64]:
    """Return the estimate of the residual on the axes `onto` from the values of a part, noisy or exact.

    A table over the levels of these axes, every axis of which sums to zero. `levels` is the shape of the
    part's table, and `onto` holds all its centred axes: a part knows nothing of other residuals.

    >>> values = residual_values(np.array([[1, 2, 6], [3, 5, 3]]), centred=(0,))
    >>> component(values, (2, 3), centred=(0,), onto=(0,)).tolist()
    [-1.0, 1.0]
    """
    if not set(centred) <= set(onto):
        raise ValueError("a part says nothing about residuals if it lacks one of its centred axes.")
    found = np.asarray(values, dtype=np.float64)
    found = found.sum(axis=axes_outside(range(len(levels)), onto), keepdims=True)
    for axis in sorted(onto):
        if axis not in centred:
            found = _centred_along(found, axis)
        elif levels[axis] >= 3:
            found = _centred_along(found, axis) / levels[axis]
        elif levels[axis] == 2:
            found = np.concatenate([found / 2, -found / 2], axis=axis)
        else:
            # Nothing varies on a single level: no value was measured, and the residual is zero.
            found = np.zeros([1 if i == axis else k for i, k in enumerate(found.shape)])
    return found.reshape([levels[axis] for axis in sorted(onto)])


def add_up(
    components: Mapping[tuple[int, ...], NDArray[np.float64]], shape: Sequence[int]
) -> NDArray[np.float64]:
    """Return the table of this shape with these residuals, each named by its axes; any other residual is zero.

    Axis by axis, so that what several residuals share is spread once.

    >>> add_up({(): np.array(9.0), (0,): np.array([2.0, -1.0, -1.0])}, (3,)).tolist()
    [5.0, 2.0, 2.0]
    """
    parts = {frozenset(axes): np.asarray(r, dtype=np.float64) for axes, r in components.items()}
    # From the last axis on: each table then holds the axes of its own before this one, and all after it.
    for axis in reversed(range(len(shape))):
        joined: dict[frozenset[int], NDArray[np.float64]] = {}
        for axes in {axes - {axis} for axes in parts}:
            place = sum(other < axis for other in axes)
            spread = parts.get(axes)
            own = parts.get(axes | {axis})
            if spread is None:
                assert own is not None
                joined[axes] = own
                continue
            even = np.expand_dims(spread / shape[axis], place)
            joined[axes] = np.repeat(even, shape[axis], axis=place) if own is None else own + even
        parts = joined
    return parts.get(frozenset(), np.zeros(shape))


def centre(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the residual of a table on all its axes: the average taken out of each.

    >>> centre(np.array([[1.0, 2.0], [3.0, 6.0]])).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    found = np.asarray(table, dtype=np.float64)
    for axis in range(found.ndim):
        found = _centred_along(found, axis)
    return found


def _centred_along(table: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    return np.asarray(table - table.mean(axis=axis, keepdims=True))


def _rows(levels: int) -> int:
    """The number of values of a centred axis."""
    return levels if levels >= 3 else levels - 1
