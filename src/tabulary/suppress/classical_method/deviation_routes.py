"""How far a cell can deviate: through suppressed cells, or through the cheapest cells that could be suppressed."""

from typing import Protocol

import highspy
import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.errors import NotCertified
from tabulary.linear_solver import simplex_solver
from tabulary.suppress.classical_method.linear_attacker import TOLERANCE
from tabulary.suppress.classical_method.rules import Mask
from tabulary.suppress.classical_method.suppression_problem import SuppressionProblem, lines

Cells = NDArray[np.int64]


class DeviationRoutes(Protocol):
    """How far a cell deviates, and the flat indices of the other cells that let it."""

    def reach(self, pattern: Mask, cell: int, *, up: bool, level: float) -> tuple[float, Cells]:
        """Return how far, up to a level, a cell deviates when the cells of a pattern are suppressed."""
        ...

    def cheapest(self, weight: Floats, cell: int, *, up: bool, level: float) -> tuple[float, Cells]:
        """Return how far, up to a level, a cell could deviate, through cells of little weight together.

        Cells of infinite weight are not used.
        """
        ...


def routes_of(problem: SuppressionProblem) -> DeviationRoutes:
    """Return the ways of a table: flows if it is two-way, else a linear program."""
    return NetworkRoutes(problem) if len(problem.shape) == 2 else ProgramRoutes(problem)


class NetworkRoutes:
    """A two-way table is a network of rows and columns: largest flows, and successive shortest paths."""

    def __init__(self, problem: SuppressionProblem) -> None:
        # Compiled, and of use to two-way tables only.
        from tabulary.suppress.classical_method import flow_kernels

        self._kernels = flow_kernels
        self._rise, self._fall = problem.rise, problem.fall
        self._columns = problem.shape[1]

    def reach(self, pattern: Mask, cell: int, *, up: bool, level: float) -> tuple[float, Cells]:
        """Return how far a cell deviates through a pattern."""
        share = pattern.astype(np.float64)
        flow, through = self._kernels.reach(
            self._rise, self._fall, share, *divmod(cell, self._columns), up, level
        )
        return flow, np.flatnonzero(through)

    def cheapest(self, weight: Floats, cell: int, *, up: bool, level: float) -> tuple[float, Cells]:
        """Return how far a cell could deviate, path by path."""
        flow, through = self._kernels.cheapest(
            self._rise, self._fall, weight, *divmod(cell, self._columns), up, level
        )
        return flow, np.flatnonzero(through)


class ProgramRoutes:
    """Any table: a linear program over how far each cell rises and falls, in HiGHS.

    The cheapest deviation charges each cell for the part of its room that it uses, which is the linear relaxation of
    charging it whole.
    """

    def __init__(self, problem: SuppressionProblem) -> None:
        size = problem.rise.size
        self._problem = problem
        self._room = np.concatenate([problem.rise.reshape(-1), problem.fall.reshape(-1)])
        self._every = np.arange(2 * size, dtype=np.int32)
        self._model = model = simplex_solver()
        model.addVars(2 * size, np.zeros(2 * size), np.zeros(2 * size))
        for line in lines(problem.shape):
            cells = np.array(line)
            both = np.concatenate([cells, cells + size]).astype(np.int32)
            model.addRow(0.0, 0.0, both.size, both, np.repeat([1.0, -1.0], cells.size))

    def reach(self, pattern: Mask, cell: int, *, up: bool, level: float) -> tuple[float, Cells]:
        """Return how far a cell deviates through a pattern."""
        inside = np.tile(pattern.reshape(-1), 2)
        # A little on every cell, less than the deviation is worth, so that no more are used than are needed.
        charge = np.full(inside.size, 0.1 / inside.size)
        return self._solve(np.where(inside, self._room, 0.0), charge, cell, up=up, level=level, least=0.0)

    def cheapest(self, weight: Floats, cell: int, *, up: bool, level: float) -> tuple[float, Cells]:
        """Return how far a cell could deviate, all paths at once: to the level, or not at all."""
        both = np.tile(weight.reshape(-1), 2)
        usable = np.isfinite(both) & (self._room > 0)
        charge = np.where(usable, both, 0.0) / np.where(usable, np.minimum(self._room, level), level)
        charge = charge / max(float(charge.max(initial=0)), TOLERANCE) + TOLERANCE
        return self._solve(np.where(usable, self._room, 0.0), charge, cell, up=up, level=level, least=1.0)

    def _solve(
        self, room: Floats, charge: Floats, cell: int, *, up: bool, level: float, least: float
    ) -> tuple[float, Cells]:
        size = room.size // 2
        own, other = (cell, cell + size) if up else (cell + size, cell)
        # In units of the level no cell needs more room than one.
        lower, upper, cost = np.zeros(room.size), np.minimum(room / level, 1.0), charge.copy()
        lower[own], upper[own], upper[other], cost[own] = least, 1.0, 0.0, -1.0
        model = self._model
        model.changeColsBounds(room.size, self._every, lower, upper)
        model.changeColsCost(room.size, self._every, cost)
        model.run()
        status = model.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return 0.0, np.zeros(0, dtype=np.int64)
        if status != highspy.HighsModelStatus.kOptimal:
            raise NotCertified(
                f"the largest deviation of a cell could not be computed: the solver ended with {status.name}. "
                "Nothing was published."
            )
        found = np.asarray(model.getSolution().col_value)
        used = found > TOLERANCE
        used[[own, other]] = False
        return float(found[own]) * level, np.flatnonzero(used[:size] | used[size:])
