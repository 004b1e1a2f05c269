"""What a pattern of suppressed cells must hide, and whether it does: the problem of secondary suppression.

An attacker knows every published cell and sum, and bounds of every suppressed cell. What he does not know is the
*deviation* of the suppressed cells from their values: a table whose every line, along every axis, sums to zero. Sums that
may be suppressed are cells of a larger table, with the totals appended along every axis; counted with the sign
(-1)**(axes summed over) their lines sum to zero as well, so that one form serves both. Fischetti & Salazar (2000),
"Models and algorithms for optimizing cell suppression in tabular data with linear constraints".
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import highspy
import numpy as np

from tabulary.errors import NotCertified
from tabulary.suppress.rules import Floats, Levels, Mask

# Of the largest number at hand: below this a deviation counts as none.
TOLERANCE = 1e-7


class Target(NamedTuple):
    """A cell whose deviation must reach `up` or `down` so far that, each counted up to its level, they make `total`."""

    cell: int
    up: float
    down: float
    total: float


@dataclass(frozen=True, eq=False)
class Problem:
    """Cells, how far each may deviate if it is suppressed, what that costs, and which must be protected how well.

    `rise` and `fall` are how far an attacker thinks a cell may lie above and below its value; infinite where he knows no
    bound. `primary` cells are suppressed and `kept` ones never. The problem is confidential: it holds the values.
    """

    rise: Floats
    fall: Floats
    cost: Floats
    primary: Mask
    kept: Mask
    levels: Levels

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells there are along each axis."""
        return self.rise.shape

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """What must be reached, the hardest first."""
        found = []
        rise, fall = self.rise.reshape(-1), self.fall.reshape(-1)
        lower, upper, width = (
            level.reshape(-1) for level in (self.levels.lower, self.levels.upper, self.levels.width)
        )
        for cell in map(int, np.flatnonzero(self.primary)):
            if upper[cell] > 0:
                found.append(Target(cell, float(upper[cell]), 0.0, float(upper[cell])))
            if lower[cell] > 0:
                found.append(Target(cell, 0.0, float(lower[cell]), float(lower[cell])))
            # An interval that reaches both levels is as wide as their sum.
            wide = float(width[cell])
            if wide > upper[cell] + lower[cell]:
                found.append(Target(cell, min(wide, float(rise[cell])), min(wide, float(fall[cell])), wide))
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


class LinearAttacker:
    """The linear program of one who sees which cells are suppressed, in HiGHS: how far may each deviate?

    Each feasible deviation says something about every cell, so that few programs have to be solved to see that every
    cell is protected. It shares nothing with the ways in which patterns are found.
    """

    def __init__(self, problem: Problem, pattern: Mask) -> None:
        self._cells = np.flatnonzero(pattern)
        self._place = {int(cell): place for place, cell in enumerate(self._cells)}
        rise, fall = problem.rise.reshape(-1)[self._cells], problem.fall.reshape(-1)[self._cells]
        self._scale = max(1.0, *(float(side[np.isfinite(side)].max(initial=0)) for side in (rise, fall)))
        self.highest = np.zeros(self._cells.size)
        self.lowest = np.zeros(self._cells.size)
        self._model = model = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in {"output_flag": False, "presolve": "off", "solver": "simplex", "threads": 1}.items():
            model.setOptionValue(name, value)
        number = self._cells.size
        model.addVars(number, -fall / self._scale, rise / self._scale)
        for line in lines(problem.shape):
            inside = np.array([self._place[cell] for cell in line if cell in self._place], dtype=np.int32)
            if inside.size:
                model.addRow(0.0, 0.0, inside.size, inside, np.ones(inside.size))

    def meets(self, target: Target) -> bool:
        """Return whether the attacker's interval reaches as far as it must."""
        place = self._place[target.cell]
        slack = TOLERANCE * self._scale
        for up, level in ((True, target.up), (False, target.down)):
            if self._reached(place, target) >= target.total - slack:
                return True
            if level > 0:
                self.reach(target.cell, up=up)
        return self._reached(place, target) >= target.total - slack

    def reach(self, cell: int, *, up: bool) -> float:
        """Return how far a suppressed cell may deviate upward or downward."""
        place = self._place[cell]
        model = self._model
        model.changeColCost(place, -1.0 if up else 1.0)
        model.run()
        status = model.getModelStatus()
        model.changeColCost(place, 0.0)
        if status == highspy.HighsModelStatus.kUnbounded:
            (self.highest if up else self.lowest)[place] = np.inf
            return float(np.inf)
        if status != highspy.HighsModelStatus.kOptimal:
            raise NotCertified(
                f"the interval of a suppressed cell could not be computed: the solver ended with {status.name}. "
                "Nothing was published."
            )
        deviation = np.asarray(model.getSolution().col_value) * self._scale
        self.highest = np.maximum(self.highest, deviation)
        self.lowest = np.maximum(self.lowest, -deviation)
        return float((self.highest if up else self.lowest)[place])

    def _reached(self, place: int, target: Target) -> float:
        return min(float(self.highest[place]), target.up) + min(float(self.lowest[place]), target.down)


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


def unmet(problem: Problem, pattern: Mask) -> list[int]:
    """Return the cells that a pattern does not protect, by the attacker's own linear program."""
    attacker = LinearAttacker(problem, pattern)
    return sorted({target.cell for target in problem.targets if not attacker.meets(target)})


def deviations(problem: Problem, pattern: Mask) -> tuple[Floats, Floats]:
    """Return how far each cell may lie below and above its value, as far as an attacker can tell; 0 if published."""
    attacker = LinearAttacker(problem, pattern)
    down, up = np.zeros(pattern.size), np.zeros(pattern.size)
    for cell in map(int, np.flatnonzero(pattern)):
        up[cell] = attacker.reach(cell, up=True)
        down[cell] = attacker.reach(cell, up=False)
    return down.reshape(pattern.shape), up.reshape(pattern.shape)
