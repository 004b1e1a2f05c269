"""From a full table to what was measured of it, and back: linear maps that never become a matrix."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tabulary.core import basis
from tabulary.core.arrays import Floats
from tabulary.core.residuals import residual_shape


class LinearMap(Protocol):
    """What a reconstruction needs to know of a measurement: the noise-free part of it, as a linear map."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the full table."""
        ...

    @property
    def size(self) -> int:
        """The number of measured values."""
        ...

    def forward(self, table: Floats) -> Floats:
        """Return what would be measured of `table` without noise, as one vector."""
        ...

    def adjoint(self, values: Floats) -> Floats:
        """Return the transpose applied to measured values, as a table."""
        ...


@dataclass(frozen=True)
class ContrastMap:
    """A table to its coefficients that vary on exactly each of `sets`: tuples of axes, in this order.

    The coefficients of one set are in the order of `basis.contrasts` of its margin, entry 0 of each axis left
    out; those of the empty set are the total.
    """

    shape: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return sum(basis.coefficients(tuple(self.shape[axis] for axis in s)) for s in self.sets)

    def forward(self, table: Floats) -> Floats:
        """Return the coefficients of a full table."""
        return basis.contrasts(table).reshape(-1)[self._positions]

    def adjoint(self, values: Floats) -> Floats:
        """Return Σ value·row as a full table."""
        scattered = np.zeros(int(np.prod(self.shape)))
        scattered[self._positions] = values
        return basis.adjoint(scattered.reshape(self.shape))

    @cached_property
    def _positions(self) -> NDArray[np.intp]:
        places = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        return np.concatenate(
            [
                places[tuple(slice(1, None) if axis in s else 0 for axis in range(len(self.shape)))].reshape(
                    -1
                )
                for s in self.sets
            ]
        )


@dataclass(frozen=True)
class MarginMap:
    """A table to the cells of each of its `margins`: tuples of axes, in this order."""

    shape: tuple[int, ...]
    margins: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """The number of cells of all margins."""
        return sum(int(np.prod([self.shape[axis] for axis in margin])) for margin in self.margins)

    def forward(self, table: Floats) -> Floats:
        """Return the cells of every margin."""
        return np.concatenate([np.asarray(table.sum(axis=self._summed(m))).reshape(-1) for m in self.margins])

    def adjoint(self, values: Floats) -> Floats:
        """Return each margin's values spread over the cells that it sums."""
        table = np.zeros(self.shape)
        start = 0
        for margin in self.margins:
            shape = [levels if axis in margin else 1 for axis, levels in enumerate(self.shape)]
            cells = int(np.prod(shape))
            table += values[start : start + cells].reshape(shape)
            start += cells
        return table

    def _summed(self, margin: Sequence[int]) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.shape)) if axis not in margin)


@dataclass(frozen=True)
class ResidualMap:
    """A table to its parts: the cells of a margin with the average taken out of some axes (`core.residuals`).

    `parts` are pairs of axes, in this order: those of the margin, ascending, and those of them that are centred.
    """

    shape: tuple[int, ...]
    parts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    @property
    def size(self) -> int:
        """The number of values of all parts."""
        return sum(math.prod(self._values_shape(*part)) for part in self.parts)

    def forward(self, table: Floats) -> Floats:
        """Return the values of every part."""
        found = []
        for margin, centred in self.parts:
            values = table.sum(axis=tuple(i for i in range(table.ndim) if i not in margin), keepdims=True)
            for axis in centred:
                levels = self.shape[axis]
                if levels >= 3:
                    values = levels * values - values.sum(axis=axis, keepdims=True)
                else:
                    values = -np.diff(values, axis=axis)
            found.append(np.asarray(values).reshape(-1))
        return np.concatenate(found)

    def adjoint(self, values: Floats) -> Floats:
        """Return each part's values, taken back to its margin, spread over the cells that it sums."""
        table = np.zeros(self.shape)
        start = 0
        for margin, centred in self.parts:
            shape = self._values_shape(margin, centred)
            end = start + math.prod(shape)
            back = values[start:end].reshape(shape)
            for axis in centred:
                levels = self.shape[axis]
                if levels >= 3:
                    # The matrix k·I - J is its own transpose.
                    back = levels * back - back.sum(axis=axis, keepdims=True)
                elif levels == 2:
                    back = np.concatenate([back, -back], axis=axis)
                else:
                    back = np.zeros([1 if i == axis else k for i, k in enumerate(back.shape)])
            table += back
            start = end
        return table

    def _values_shape(self, margin: Sequence[int], centred: Sequence[int]) -> tuple[int, ...]:
        """The shape of a part's values, one on the axes that are not in its margin."""
        kept = tuple(levels if axis in margin else 1 for axis, levels in enumerate(self.shape))
        return residual_shape(kept, centred)


def fast_map(linear_map: LinearMap) -> LinearMap:
    """Return the same map with the compiled transform where that is worth loading a compiler for."""
    if isinstance(linear_map, ContrastMap) and set(linear_map.shape) == {2} and len(linear_map.shape) > 12:
        from tabulary.reconstruct.hadamard import HadamardMap

        return HadamardMap(linear_map.shape, linear_map.sets)
    return linear_map


def columns_of(linear_map: LinearMap, cells: NDArray[np.intp]) -> Floats:
    """Return what one unit in each of some cells, given by their flat index, adds to the measured values.

    One column for a cell. Known in closed form for contrasts, margins and residuals; another map is asked cell by cell.

    >>> columns_of(MarginMap((2, 2), ((0,), (0, 1))), np.array([1, 2])).T.tolist()
    [[1.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]]
    """
    shape = linear_map.shape
    # One row per axis. The table of no attributes has none, and one cell.
    levels = np.array(np.unravel_index(cells, shape)) if shape else np.empty((0, cells.size), dtype=np.intp)
    if isinstance(linear_map, ContrastMap):
        return np.concatenate([_contrast_columns(shape, levels, s) for s in linear_map.sets])
    if isinstance(linear_map, MarginMap):
        return np.concatenate([_margin_columns(shape, levels, m) for m in linear_map.margins])
    if isinstance(linear_map, ResidualMap):
        return np.concatenate([_residual_columns(shape, levels, *part) for part in linear_map.parts])
    found = np.empty((linear_map.size, cells.size))
    unit = np.zeros(linear_map.shape)
    for i, cell in enumerate(cells):
        unit.flat[cell] = 1
        found[:, i] = linear_map.forward(unit)
        unit.flat[cell] = 0
    return found


def _contrast_columns(shape: tuple[int, ...], levels: NDArray[np.intp], axes: tuple[int, ...]) -> Floats:
    cells = levels.shape[1]
    block = np.ones((1, cells))
    for axis in sorted(axes):
        entries = basis.contrast_matrix(shape[axis])[1:, levels[axis]]
        block = (block[:, None, :] * entries[None, :, :]).reshape(len(block) * len(entries), cells)
    return block


def _margin_columns(shape: tuple[int, ...], levels: NDArray[np.intp], axes: tuple[int, ...]) -> Floats:
    cells = levels.shape[1]
    place, size = np.zeros(cells, dtype=np.intp), 1
    for axis in sorted(axes):
        place, size = place * shape[axis] + levels[axis], size * shape[axis]
    block = np.zeros((size, cells))
    block[place, np.arange(cells)] = 1.0
    return block


def _residual_columns(
    shape: tuple[int, ...], levels: NDArray[np.intp], axes: tuple[int, ...], centred: tuple[int, ...]
) -> Floats:
    cells = levels.shape[1]
    block = np.ones((1, cells))
    for axis in sorted(axes):
        k = shape[axis]
        units = np.eye(k)
        if axis in centred:
            units = k * units - 1 if k >= 3 else np.array([[1.0, -1.0]])[: k - 1]
        entries = units[:, levels[axis]]
        block = (block[:, None, :] * entries[None, :, :]).reshape(len(block) * len(entries), cells)
    return block
