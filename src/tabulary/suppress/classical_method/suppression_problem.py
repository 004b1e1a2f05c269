"""What a pattern of suppressed cells must hide: the problem of secondary suppression.

An attacker knows every published cell and sum, and bounds of every suppressed cell. What he does not know is the
*deviation* of the suppressed cells from their values: a table whose every line, along every axis, sums to zero. Sums
that may be suppressed are cells of a larger table, with the totals appended along every axis; counted with the sign
(-1)**(axes summed over) their lines sum to zero as well, so one form serves both (see `TableWithSums`). Fischetti &
Salazar (2000), "Models and algorithms for optimizing cell suppression in tabular data with linear constraints".
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.suppress.classical_method.rules import Mask, ProtectionLevels


class ProtectionTarget(NamedTuple):
    """A cell whose deviation must reach `up` or `down` so far that, each counted up to its level, they make `total`."""

    cell: int
    up: float
    down: float
    total: float


@dataclass(frozen=True, eq=False, repr=False)
class SuppressionProblem:
    """Cells, how far each may deviate if it is suppressed, what that costs, and which must be protected how well.

    `rise` and `fall` are how far an attacker thinks a cell may lie above and below its value; infinite where he knows
    no bound. `primary` cells are suppressed and `kept` ones never. Confidential: it holds the values.
    """

    rise: Floats
    fall: Floats
    cost: Floats
    primary: Mask
    kept: Mask
    levels: ProtectionLevels

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", self.levels.stretched(self.rise.shape))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of shape {' × '.join(map(str, self.shape))}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells there are along each axis."""
        return self.rise.shape

    @cached_property
    def targets(self) -> tuple[ProtectionTarget, ...]:
        """What must be reached, the hardest first."""
        found = []
        rise, fall = self.rise.reshape(-1), self.fall.reshape(-1)
        lower, upper, width = (
            level.reshape(-1) for level in (self.levels.lower, self.levels.upper, self.levels.width)
        )
        for cell in map(int, np.flatnonzero(self.primary)):
            if upper[cell] > 0:
                found.append(ProtectionTarget(cell, float(upper[cell]), 0.0, float(upper[cell])))
            if lower[cell] > 0:
                found.append(ProtectionTarget(cell, 0.0, float(lower[cell]), float(lower[cell])))
            # An interval that reaches both levels is as wide as their sum.
            wide = float(width[cell])
            if wide > upper[cell] + lower[cell]:
                found.append(
                    ProtectionTarget(cell, min(wide, float(rise[cell])), min(wide, float(fall[cell])), wide)
                )
        return tuple(sorted(found, key=lambda target: (-target.total, target)))

    @property
    def hopeless(self) -> list[int]:
        """The cells that cannot deviate as far as they must, whatever else is suppressed."""
        rise, fall = self.rise.reshape(-1), self.fall.reshape(-1)
        return [
            cell
            for cell, up, down, total in self.targets
            if up > rise[cell] or down > fall[cell] or up + down < total or self.kept.reshape(-1)[cell]
        ]

    @property
    def step(self) -> float:
        """What every cost is a whole multiple of, or 0: no two patterns differ by less."""
        if (self.cost != np.round(self.cost)).any() or self.cost.max(initial=0) > 2.0**40:
            return 0.0
        return float(np.gcd.reduce(self.cost.astype(np.int64).reshape(-1)))

    def price(self, pattern: Mask) -> float:
        """Return what a pattern costs."""
        return float(self.cost[pattern].sum())


def lines(shape: tuple[int, ...]) -> list[list[int]]:
    """Return the cells of every line of a table, along every axis.

    >>> lines((2, 2))
    [[0, 2], [1, 3], [0, 1], [2, 3]]
    """
    cells = np.arange(int(np.prod(shape))).reshape(shape)
    found: list[list[int]] = []
    for axis, length in enumerate(shape):
        found += np.moveaxis(cells, axis, -1).reshape(-1, length).tolist()
    return found
