"""From a full table to what was measured of it, and back: a linear map that never becomes a matrix."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats


@dataclass(frozen=True)
class LinearMap(ABC):
    """What a reconstruction needs to know of a measurement: its noise-free part, a linear function of the full table.

    `shape` is the shape of the full table. A map must know how to go forward and back. What else is known in closed
    form makes the solvers faster.
    """

    shape: tuple[int, ...]

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of measured values."""

    @abstractmethod
    def forward(self, table: Floats) -> Floats:
        """Return what would be measured of `table` without noise, as one vector."""

    @abstractmethod
    def adjoint(self, values: Floats) -> Floats:
        """Return the transpose applied to measured values, as a table."""

    @property
    def orthogonal(self) -> bool:
        """Whether the rows of the map are orthogonal to each other."""
        return False

    def squared_norms(self) -> Floats:
        """Return the squared length of every row where it is known in closed form; otherwise ones."""
        return np.ones(self.size)

    def covering(self, scales: Floats) -> Floats | None:
        """Return multipliers y with Aᵀy ≥ 1 in every cell and a small Σ scale·y, or None if none are known."""
        return None

    def fast(self) -> "LinearMap":
        """Return the same map in the form that is fastest for a table of this size."""
        return self

    def columns(self, cells: NDArray[np.intp]) -> Floats:
        """Return what one unit in each of some cells adds to the measured values: one column for each cell.

        Cells are given by their flat index.
        """
        # One row for each axis. The table of no attributes has none, and one cell.
        if not self.shape:
            return self.columns_at(np.empty((0, cells.size), dtype=np.intp))
        return self.columns_at(np.array(np.unravel_index(cells, self.shape)))

    def columns_at(self, levels: NDArray[np.intp]) -> Floats:
        """Return the columns of the cells at these levels, one row for each axis and one column for each cell."""
        found = np.empty((self.size, levels.shape[1]))
        unit = np.zeros(self.shape)
        for i, cell in enumerate(levels.T):
            unit[tuple(cell)] = 1
            found[:, i] = self.forward(unit)
            unit[tuple(cell)] = 0
        return found


def product_columns(factors: list[Floats], cells: int) -> Floats:
    """Return the columns whose entries are products of one entry for each axis, the last axis fastest."""
    block = np.ones((1, cells))
    for entries in factors:
        block = (block[:, None, :] * entries[None, :, :]).reshape(len(block) * len(entries), cells)
    return block
