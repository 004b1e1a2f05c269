"""Whether a pattern of suppressed cells hides what it must: the attacker's own linear program.

He knows every published cell and sum, and looks for the largest and the least deviation of a suppressed cell. Nothing
here is shared with the ways in which patterns are found, so that it can tell whether they were found well.
"""

import highspy
import numpy as np

from tabulary.core.arrays import Floats
from tabulary.errors import NotCertified
from tabulary.linear_solver import simplex_solver
from tabulary.suppress.classical_method.rules import Mask
from tabulary.suppress.classical_method.suppression_problem import ProtectionTarget, SuppressionProblem, lines

# Of the largest number at hand: below this a deviation counts as none.
TOLERANCE = 1e-7
# Of a target: what the solver may be off by at most when it says that the target is met.
_PRECISE = 1e-3


class LinearAttacker:
    """The linear program of one who sees which cells are suppressed, in HiGHS: how far may each deviate?

    Each deviation that is found says something about every cell, so that few programs have to be solved to see that
    every cell is protected. With `most` no cell is looked at farther than that, which is all that a target of that much
    needs, and the solver is as precise as the target is small.
    """

    def __init__(self, problem: SuppressionProblem, pattern: Mask, *, most: float = np.inf) -> None:
        self._cells = np.flatnonzero(pattern)
        self._place = {int(cell): place for place, cell in enumerate(self._cells)}
        rise, fall = (
            np.minimum(side.reshape(-1)[self._cells], most) for side in (problem.rise, problem.fall)
        )
        ends = np.concatenate([rise, fall])
        self._scale = float(ends[np.isfinite(ends)].max(initial=0)) or 1.0
        self.highest = np.zeros(self._cells.size)
        self.lowest = np.zeros(self._cells.size)
        self._model = model = simplex_solver()
        number = self._cells.size
        model.addVars(number, -fall / self._scale, rise / self._scale)
        for line in lines(problem.shape):
            inside = np.array([self._place[cell] for cell in line if cell in self._place], dtype=np.int32)
            if inside.size:
                model.addRow(0.0, 0.0, inside.size, inside, np.ones(inside.size))

    def meets(self, target: ProtectionTarget) -> bool:
        """Return whether the attacker's interval reaches as far as it must."""
        place, slack = self._place[target.cell], self.slack
        for up, level in ((True, target.up), (False, target.down)):
            if self._reached(place, target) >= target.total - slack:
                return True
            if level > 0:
                self.reach(target.cell, up=up)
        return self._reached(place, target) >= target.total - slack

    @property
    def slack(self) -> float:
        """How far off the solver may be."""
        return TOLERANCE * self._scale

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

    def _reached(self, place: int, target: ProtectionTarget) -> float:
        return min(float(self.highest[place]), target.up) + min(float(self.lowest[place]), target.down)


def unmet(problem: SuppressionProblem, pattern: Mask) -> list[int]:
    """Return the cells that a pattern does not protect, by the attacker's own linear program."""
    attacker = LinearAttacker(problem, pattern)
    found = set()
    for target in problem.targets:
        met = attacker.meets(target)
        if met and attacker.slack > _PRECISE * target.total:
            met = LinearAttacker(problem, pattern, most=target.total).meets(target)
        if not met:
            found.add(target.cell)
    return sorted(found)


def deviations(problem: SuppressionProblem, pattern: Mask) -> tuple[Floats, Floats]:
    """Return how far each cell may lie below and above its value, as far as an attacker can tell; 0 if published."""
    attacker = LinearAttacker(problem, pattern)
    down, up = np.zeros(pattern.size), np.zeros(pattern.size)
    for cell in map(int, np.flatnonzero(pattern)):
        up[cell] = _snapped(attacker.reach(cell, up=True), attacker.slack)
        down[cell] = _snapped(attacker.reach(cell, up=False), attacker.slack)
    return down.reshape(pattern.shape), up.reshape(pattern.shape)


def _snapped(deviation: float, slack: float) -> float:
    """Return the whole number that a deviation cannot be distinguished from, or itself."""
    near = float(np.round(deviation))
    return near if np.isfinite(near) and abs(deviation - near) <= slack else deviation
