"""A table and its sums: what may be suppressed of them, and how they hang together."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain, Margin
from tabulary.suppress.classical_method.rules import Mask

# One index for each axis: all its levels but the total, or the total.
Part = tuple[slice | int, ...]


@dataclass(frozen=True)
class TableWithSums:
    """The cells of a table; with `sums`, the totals along every axis are cells like the others.

    >>> with_sums = TableWithSums(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), sums=True)
    >>> with_sums.of(np.array([[1, 2], [3, 4]])).tolist()
    [[1.0, 2.0, 3.0], [3.0, 4.0, 7.0], [4.0, 6.0, 10.0]]
    >>> with_sums.signs.tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    >>> with_sums.named(2), with_sums.named(8)
    ('sex=F', 'the total')
    """

    domain: Domain
    sums: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells there are along each axis."""
        return tuple(levels + self.sums for levels in self.domain.shape)

    @property
    def cells(self) -> Part:
        """Where the cells of the table itself stand."""
        return tuple(slice(levels) for levels in self.domain.shape)

    @property
    def margins(self) -> dict[Margin, Part]:
        """Where the sums by each set of attributes stand, if they are cells."""
        return {
            tuple(
                name for name, summed in zip(self.domain.attributes, over, strict=True) if not summed
            ): tuple(
                levels if summed else slice(levels)
                for levels, summed in zip(self.domain.shape, over, strict=True)
            )
            for over in product((False, True), repeat=len(self.domain.shape))
            if any(over)
        }

    @property
    def signs(self) -> Floats:
        """The sign with which each cell counts in the lines of the table, so that they sum to zero.

        A total is minus what it is the total of, and a total of totals minus that again.
        """
        total = [
            np.arange(size) == levels for size, levels in zip(self.shape, self.domain.shape, strict=True)
        ]
        return np.asarray(
            np.prod(np.meshgrid(*[np.where(t, -1.0, 1.0) for t in total], indexing="ij"), axis=0)
        )

    def of(self, values: NDArray[Any]) -> Floats:
        """Return values with their sums."""
        framed = np.asarray(values, dtype=np.float64)
        for axis in range(framed.ndim if self.sums else 0):
            framed = np.concatenate([framed, framed.sum(axis=axis, keepdims=True)], axis=axis)
        return framed

    def marked(self, cells: NDArray[np.bool_]) -> Mask:
        """Return marks of the cells of the table, and none of the sums."""
        marks = np.zeros(self.shape, dtype=np.bool_)
        marks[self.cells] = cells
        return marks

    def named(self, cell: int) -> str:
        """Return the labels of a cell, by its flat index."""
        index = np.unravel_index(cell, self.shape)
        labels = [
            f"{name}={levels[place]}"
            for name, levels, place in zip(self.domain.attributes, self.domain.levels, index, strict=True)
            if place < len(levels)
        ]
        return ", ".join(labels) or "the total"
