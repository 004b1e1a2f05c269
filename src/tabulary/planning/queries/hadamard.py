"""The fast path of binary tables: the Walsh–Hadamard transform, compiled and in place.

Imported only when a large binary table is at hand, so that nobody else waits for the compiler.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats
from tabulary.errors import InvalidTable
from tabulary.planning.queries.contrasts import ContrastMap

# A block of 2¹² numbers, 32 KiB, stays in the first-level cache for all of its twelve passes.
_BLOCK = 1 << 12


@compiled
def _passes(values: Floats, start: int, stop: int, first: int, last: int) -> None:
    step = first
    while step < last:
        for block in range(start, stop, 2 * step):
            for i in range(block, block + step):
                left, right = values[i], values[i + step]
                values[i] = left + right
                values[i + step] = left - right
        step *= 2


@compiled
def _transform(values: Floats, block: int) -> None:
    block = min(block, values.size)
    for start in range(0, values.size, block):
        _passes(values, start, start + block, 1, block)
    _passes(values, 0, values.size, block, values.size)


def walsh_hadamard(values: Floats) -> None:
    """Replace 2**k numbers by their Walsh–Hadamard transform: `basis.contrasts` of a binary table, in place.

    k·2**k additions, no second array. The transform is its own transpose, and its own inverse up to 2**k.

    >>> table = np.array([1.0, 2.0, 3.0, 5.0])
    >>> walsh_hadamard(table)
    >>> table.tolist()
    [11.0, -3.0, -5.0, 1.0]
    """
    if values.ndim != 1 or values.size.bit_count() != 1 or not values.flags.c_contiguous:
        raise InvalidTable(
            f"a Walsh–Hadamard transform needs one contiguous vector of 2**k numbers, "
            f"but was given shape {values.shape}. Nothing was changed."
        )
    _transform(values, _BLOCK)


@dataclass(frozen=True)
class HadamardMap(ContrastMap):
    """A `ContrastMap` of a table with two levels on every axis: the same values, many times faster."""

    def __post_init__(self) -> None:
        if set(self.shape) != {2}:
            raise InvalidTable(f"a Hadamard map needs two levels on every axis, not shape {self.shape}.")

    def forward(self, table: Floats) -> Floats:
        """Return the coefficients of a full table."""
        values = np.array(table, dtype=np.float64).reshape(-1)
        walsh_hadamard(values)
        return values[self._places]

    def adjoint(self, values: Floats) -> Floats:
        """Return Σ value·row as a full table."""
        table = np.zeros(2 ** len(self.shape))
        table[self._places] = values
        walsh_hadamard(table)
        return table.reshape(self.shape)

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        last = len(self.shape) - 1
        return np.array([sum(1 << (last - axis) for axis in s) for s in self.sets], dtype=np.intp)
