"""The contributions to each cell, which the rules for tables of amounts compare."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.errors import InvalidColumn, InvalidTable, UnknownLevel


@dataclass(frozen=True, eq=False)
class Contributions:
    """The amounts that single contributors add to the cells of a table. Confidential: no amount is ever printed.

    `cells[k]` is the flat index, last axis fastest, of the cell that contributor k adds `amounts[k]` to. A firm that
    reports twice in one cell is one contributor there: add its amounts up beforehand.

    >>> given = Contributions((2, 2), cells=[0, 0, 3], amounts=[70.0, 20.0, 5.0])
    >>> given.largest(2)[0, 0].tolist(), given.total.tolist(), given.number.tolist()
    ([70.0, 20.0], [[90.0, 0.0], [0.0, 5.0]], [[2, 0], [0, 1]])
    """

    shape: tuple[int, ...]
    cells: NDArray[np.int64]
    amounts: NDArray[np.float64]

    def __post_init__(self) -> None:
        cells = np.array(self.cells, dtype=np.int64)
        amounts = np.array(self.amounts, dtype=np.float64)
        if cells.ndim != 1 or cells.shape != amounts.shape:
            raise InvalidTable("contributions must have one cell and one amount for each contributor.")
        if cells.size and not 0 <= cells.min() <= cells.max() < int(np.prod(self.shape)):
            raise InvalidTable(
                f"a contribution names a cell that a table of shape {self.shape} does not have."
            )
        if not np.isfinite(amounts).all() or (amounts < 0).any():
            raise InvalidColumn(
                "a contribution is negative, infinite or missing. The rules for amounts rank contributions by size. "
                "Correct or remove such records before the table is protected."
            )
        # The largest of each cell first: every question about a cell is then about its first few.
        order = np.lexsort((-amounts, cells))
        object.__setattr__(self, "shape", tuple(int(levels) for levels in self.shape))
        object.__setattr__(self, "cells", cells[order])
        object.__setattr__(self, "amounts", amounts[order])

    @classmethod
    def from_frame(cls, frame: Mapping[str, Any] | Any, *, value: str, domain: Domain) -> "Contributions":
        """Return the contributions of a frame, one row per contributor: its levels, and its amount in column `value`.

        The frame is pandas, polars, Arrow, or a mapping from names to columns.

        >>> firms = {"branch": ["mining", "trade", "mining"], "sales": [70, 5, 20]}
        >>> Contributions.from_frame(firms, value="sales", domain=Domain({"branch": ["mining", "trade"]}))
        <Contributions to a table of shape 2>
        """
        codes = []
        for attribute in domain.attributes:
            column = _column(frame, attribute)
            known = {level: code for code, level in enumerate(domain.levels_of(attribute))}
            try:
                codes.append(np.array([known[str(level)] for level in column], dtype=np.int64))
            except KeyError:
                raise UnknownLevel(
                    f"column {attribute!r} holds a value outside its domain in at least one record. "
                    "Add the level to the domain, or leave those records out."
                ) from None
        try:
            amounts = np.asarray(_column(frame, value), dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidColumn(f"column {value!r} must hold amounts, but a value is not a number.") from None
        return cls(domain.shape, np.ravel_multi_index(codes, domain.shape), amounts)

    @property
    def number(self) -> NDArray[np.int64]:
        """How many contribute to each cell."""
        return np.bincount(self.cells, minlength=self._size).reshape(self.shape)

    @property
    def total(self) -> NDArray[np.float64]:
        """The sum of the contributions to each cell."""
        totals = np.zeros(self._size)
        np.add.at(totals, self.cells, self.amounts)
        return totals.reshape(self.shape)

    def largest(self, number: int) -> NDArray[np.float64]:
        """Return the largest contributions to each cell, falling along the last axis; 0 where there are fewer."""
        first = np.searchsorted(self.cells, self.cells)
        rank = np.arange(self.cells.size) - first
        top = rank < number
        found = np.zeros((self._size, number))
        found[self.cells[top], rank[top]] = self.amounts[top]
        return found.reshape(*self.shape, number)

    def with_totals(self) -> "Contributions":
        """Return the contributions to the table with its totals appended along every axis.

        >>> Contributions((2,), [0, 1], [3.0, 4.0]).with_totals().largest(2).tolist()
        [[3.0, 0.0], [4.0, 0.0], [4.0, 3.0]]
        """
        shape = tuple(levels + 1 for levels in self.shape)
        codes = np.unravel_index(self.cells, self.shape)
        places = []
        for summed in product((False, True), repeat=len(shape)):
            here = [
                np.full_like(code, levels) if over else code
                for code, levels, over in zip(codes, self.shape, summed, strict=True)
            ]
            places.append(np.ravel_multi_index(here, shape))
        return Contributions(shape, np.concatenate(places), np.tile(self.amounts, len(places)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to a table of shape {' × '.join(map(str, self.shape))}>"

    @property
    def _size(self) -> int:
        return int(np.prod(self.shape))


def _column(frame: Mapping[str, Any] | Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(frame[name])
    except (KeyError, IndexError, ValueError):
        pass
    except Exception as error:  # each kind of frame has an error of its own for a column it does not have
        if "olumn" not in type(error).__name__:
            raise
    raise InvalidColumn(f"the frame has no column {name!r}.")
