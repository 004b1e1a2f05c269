r"""The cheapest pattern of a two-way table, with a proof: branch and cut.

Fischetti & Salazar (1999), "Models and algorithms for the 2-dimensional cell suppression problem in statistical
disclosure control". Let x be 1 for each suppressed cell. A target is met if the attacker's network has room for it,
and that it has if every cut has, since the largest flow is the narrowest cut: for every set of rows and columns that
parts the target's column from its row,

    Σ min(room of the cell across the cut, level) · x  ≥  level.

There are too many cuts to write down, so the linear program min Σ cost · x gets those that its own solution violates,
found by largest flows on fractional x. Cells that are suppressed anyway move to the right-hand side, and what is left
of it caps the weights. What a *cover* of other cells leaves is a cut as well (Carr, Fleischer, Leung & Phillips 2000):
with F any set of cells,

    Σ_{not in F} min(weight, rest) · x  ≥  rest,    rest = level - Σ_F weight > 0.

Where the solution is fractional and satisfies all of them, one cell is decided both ways; the cuts hold in all
branches.
"""

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.progress import Progress
from tabulary.errors import NotCertified
from tabulary.linear_solver import simplex_solver
from tabulary.suppress.classical_method.deviation_routes import DeviationRoutes
from tabulary.suppress.classical_method.heuristic import PatternDraft, heuristic
from tabulary.suppress.classical_method.rules import Mask
from tabulary.suppress.classical_method.suppression_problem import ProtectionTarget, SuppressionProblem

Decisions = tuple[tuple[int, bool], ...]
Places = NDArray[np.int32]

# By how much of itself a cut must be violated to be added.
_VIOLATED = 1e-6
# How near to 0 or 1 a cell counts as decided, and how near to a cost a bound as that cost.
_NEAR = 1e-6
# After so many rounds of cuts at one branch, more must raise the bound by this share of what is open.
_ROUNDS, _WORTH = 8, 1e-3
# Covers are tried on cuts whose left-hand side is below this many times the right-hand side.
_TIGHT = 1.3
# How many cuts the linear program holds before the first ones are taken out.
_FEW = 400
# A pattern is looked for near the fractional solution of every so many branches.
_EVERY = 20


@dataclass(frozen=True, eq=False)
class CheapestPattern:
    """A pattern, what it costs, and what every pattern costs at least; they are equal if it is `optimal`."""

    pattern: Mask
    cost: float
    lower_bound: float
    optimal: bool


def cheapest_pattern(
    problem: SuppressionProblem,
    routes: DeviationRoutes,
    *,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> CheapestPattern:
    """Return the cheapest pattern of a two-way table that meets every target, or the best before the time was up.

    Some pattern must meet them all. Raises `NotCertified` if the solver ends with neither an optimum nor a proof that
    there is none.
    """
    return _Search(problem, routes, time_limit, progress).run()


class _Search:
    """The best pattern so far, the branches still to be looked at, and the linear program that they share."""

    def __init__(
        self,
        problem: SuppressionProblem,
        routes: DeviationRoutes,
        time_limit: float | None,
        progress: Progress | None,
    ) -> None:
        self._problem, self._routes, self._progress = problem, routes, progress
        self._deadline = np.inf if time_limit is None else time.monotonic() + time_limit
        self._relaxation = _Relaxation(problem)
        self._gains = _Gains(problem.cost.reshape(-1))
        self._step = problem.step
        self._best: Mask | None = None
        self._cost = np.inf
        self._root: _Point | None = None

    def run(self) -> CheapestPattern:
        """Return the cheapest pattern."""
        branches = 0
        heap: list[_Node] = []
        nodes = [_Node(self._problem.price(self._problem.primary), 0, ())]
        while nodes or heap:
            # First the branch that has one cell more suppressed: it comes to a pattern soonest.
            node = nodes.pop() if nodes else heapq.heappop(heap)
            if self._beaten(node.bound):
                continue
            branches += 1
            found = self._settle(node)
            if found is None:
                continue
            if branches % _EVERY == 1:
                guide = found.share.reshape(self._problem.shape)
                self._offer(heuristic(self._problem, self._routes, guide=guide, swaps=branches == 1))
            if self._late:
                heap.append(_Node(found.value, branches, node.decisions))
                break
            cell = self._gains.most(found.share)
            heapq.heappush(heap, _Node(found.value, branches, (*node.decisions, (cell, False))))
            nodes.append(_Node(found.value, branches, (*node.decisions, (cell, True))))
            if self._progress is not None:
                self._progress("searching for the cheapest pattern", branches, 0)
        return self._result([node.bound for node in heap + nodes])

    def _settle(self, node: "_Node") -> "_Point | None":
        """Return the solution at which a branch must be divided, or None if it cannot give a better pattern."""
        lower, upper = self._limits(node.decisions)
        last, rounds = node.bound, 0
        while True:
            point = self._relaxation.solve(lower, upper)
            if rounds == 0 and node.decisions:
                self._gains.learn(
                    *node.decisions[-1], (np.inf if point is None else point.value) - node.bound
                )
            if point is None or self._beaten(point.value):
                return None
            if not node.decisions:
                self._root = point
            whole = bool((np.abs(point.share - np.round(point.share)) < _NEAR).all())
            share = np.round(point.share) if whole else point.share
            met, fresh = self._cut(share.reshape(self._problem.shape))
            if whole and met:
                self._offer(share.reshape(self._problem.shape) > 0.5)
                return None
            if whole and not fresh:
                raise NotCertified(
                    "the search for the cheapest pattern ran into rounding errors: a cut that it needs is already "
                    "there. Nothing was published. Use method='heuristic', or costs of similar size."
                )
            if met and not node.decisions:
                fresh = self._relaxation.add_covers(share)
            rounds += 1
            slow = rounds >= _ROUNDS and point.value - last < _WORTH * (self._cost - point.value)
            if not fresh or (slow and not whole) or self._late:
                return point
            last = point.value

    @property
    def _late(self) -> bool:
        return time.monotonic() > self._deadline

    def _cut(self, share: Floats) -> tuple[bool, bool]:
        """Return whether every target is met, and whether a new cut was added for one that is not."""
        met, fresh = True, False
        for target in self._problem.targets:
            for weights, least in capacity_cuts(self._problem, share, target):
                met = False
                fresh |= self._relaxation.add(weights.reshape(-1), least)
        return met, fresh

    def _limits(self, decisions: Decisions) -> tuple[Floats, Floats]:
        """Return between which values each cell is, given the decisions and what would be too dear."""
        lower = self._problem.primary.reshape(-1).astype(np.float64)
        upper = np.where(self._problem.kept.reshape(-1), lower, 1.0)
        if self._root is not None:
            # To suppress such a cell raises the bound above what is known to be possible.
            least = self._root.value + self._root.reduced
            upper = np.where(
                (least > self._cost - self._step + _NEAR * self._scale) & (lower == 0), 0.0, upper
            )
        for cell, suppressed in decisions:
            lower[cell] = upper[cell] = float(suppressed)
        return lower, upper

    def _offer(self, pattern: Mask) -> None:
        cost = self._problem.price(pattern)
        if cost < self._cost:
            self._best, self._cost = pattern.copy(), cost

    def _beaten(self, bound: float) -> bool:
        return self._rounded(bound) >= self._cost - _NEAR * self._scale * (self._step == 0)

    def _rounded(self, bound: float) -> float:
        """The least cost of a pattern that is not below a bound."""
        if not np.isfinite(bound) or self._step == 0:
            return bound
        return float(np.ceil(bound / self._step - _NEAR * self._scale / self._step) * self._step)

    @property
    def _scale(self) -> float:
        return max(1.0, self._cost if np.isfinite(self._cost) else 1.0) if self._step == 0 else 1.0

    def _result(self, waiting: list[float]) -> CheapestPattern:
        if self._best is None:
            raise NotCertified(
                "the search for the cheapest pattern ended without one. Nothing was published."
            )
        # What costs nothing is published again all the same where it can be.
        draft = PatternDraft(self._problem, self._routes, pattern=self._best)
        draft.complete(np.full(self._problem.shape, np.inf))
        draft.prune(self._problem.cost)
        bound = min((self._rounded(value) for value in waiting), default=np.inf)
        return CheapestPattern(draft.pattern, draft.cost, min(bound, draft.cost), bound >= draft.cost)


@dataclass(frozen=True, order=True)
class _Node:
    """A branch: what it costs at least, its number, and the cells decided in it."""

    bound: float
    number: int
    decisions: Decisions


@dataclass(frozen=True, eq=False)
class _Point:
    """A solution of the relaxation: its value, how much of each cell is suppressed, and the reduced costs."""

    value: float
    share: Floats
    reduced: Floats


class _Gains:
    """What a decision on a cell has raised the bound by so far: cells are decided where both ways raise it most."""

    def __init__(self, cost: Floats) -> None:
        # As if each had been tried once and had raised it by a third of the cost of the cell.
        self._sum = np.stack([cost, cost]) / 3
        self._tries = np.ones_like(self._sum)

    def learn(self, cell: int, suppressed: bool, gain: float) -> None:
        """Take note of what a decision gained."""
        if np.isfinite(gain):
            self._sum[int(suppressed), cell] += gain
            self._tries[int(suppressed), cell] += 1

    def most(self, share: Floats) -> int:
        """Return the undecided cell whose decision promises to raise the bound most."""
        open_cells = np.flatnonzero(np.abs(share - np.round(share)) >= _NEAR)
        published, suppressed = (self._sum / self._tries)[:, open_cells]
        score = np.maximum(published * share[open_cells], _NEAR) * np.maximum(
            suppressed * (1 - share[open_cells]), _NEAR
        )
        return int(open_cells[np.argmax(score)])


class _Relaxation:
    """The linear program of the cuts that have been of use lately, in HiGHS."""

    def __init__(self, problem: SuppressionProblem) -> None:
        self._primary = problem.primary.reshape(-1)
        # In the order of the rows: those in the program, then those that wait to be added.
        self._rows: dict[bytes, tuple[Places, Floats]] = {}
        self._most = _FEW
        size = problem.cost.size
        self._lower, self._upper = np.zeros(size), np.ones(size)
        self._model = model = simplex_solver()
        model.addVars(size, self._lower, self._upper)
        model.changeColsCost(size, np.arange(size, dtype=np.int32), problem.cost.reshape(-1))

    def solve(self, lower: Floats, upper: Floats) -> _Point | None:
        """Return the solution between bounds, or None if there is none."""
        changed = np.flatnonzero((lower != self._lower) | (upper != self._upper)).astype(np.int32)
        if changed.size:
            self._model.changeColsBounds(changed.size, changed, lower[changed], upper[changed])
            self._lower, self._upper = lower, upper
        self._enter()
        self._model.run()
        status = self._model.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise NotCertified(
                f"the search for the cheapest pattern was stopped: the solver ended with {status.name}. Nothing was "
                "published. Use method='heuristic'."
            )
        solution = self._model.getSolution()
        share = np.clip(np.asarray(solution.col_value), 0.0, 1.0)
        point = _Point(self._model.getObjectiveValue(), share, np.asarray(solution.col_dual))
        self._forget(np.asarray(solution.row_value))
        return point

    def add(self, weights: Floats, least: float) -> bool:
        """Add Σ weights · x ≥ least, with the cells that are suppressed anyway on the right; False if it is there."""
        rest = least - float(weights[self._primary].sum())
        if rest <= _VIOLATED * least:
            return False
        scaled = np.where(self._primary, 0.0, np.minimum(weights, rest) / rest)
        cells = np.flatnonzero(scaled)
        return self._add(cells.astype(np.int32), scaled[cells])

    def add_covers(self, share: Floats) -> bool:
        """Add what is left of cuts when a cover of their cells is suppressed, where the solution violates that."""
        fresh = False
        for cells, weights in list(self._rows.values()):
            # Where every cell is enough alone there is no cover, and a cut that is far from violated has no bad one.
            tight = float(weights.min()) < 1 and float(weights @ share[cells]) < _TIGHT
            found = _cover_cut(weights, share[cells]) if tight else None
            if found is not None:
                fresh |= self._add(cells[found > 0], found[found > 0])
        return fresh

    def _add(self, cells: Places, weights: Floats) -> bool:
        name = cells.tobytes() + np.round(weights, 9).tobytes()
        return self._rows.setdefault(name, (cells, weights))[0] is cells

    def _enter(self) -> None:
        """Put the cuts that wait into the program."""
        waiting = list(self._rows.values())[self._model.getNumRow() :]
        if waiting:
            number = len(waiting)
            ends = np.cumsum([cells.size for cells, _ in waiting])
            self._model.addRows(
                number,
                np.ones(number),
                np.full(number, highspy.kHighsInf),
                int(ends[-1]),
                np.concatenate([[0], ends[:-1]]).astype(np.int32),
                np.concatenate([cells for cells, _ in waiting]),
                np.concatenate([weights for _, weights in waiting]),
            )

    def _forget(self, left: Floats) -> None:
        """Take the cuts that do not bind out of a program that has grown long. Each time it may grow longer."""
        if left.size < self._most:
            return
        idle = left > 1 + _NEAR
        self._model.deleteRows(int(idle.sum()), np.flatnonzero(idle).astype(np.int32))
        self._rows = {name: row for (name, row), out in zip(self._rows.items(), idle, strict=True) if not out}
        self._most = int(1.2 * self._most)


def capacity_cuts(
    problem: SuppressionProblem, share: Floats, target: ProtectionTarget
) -> Iterator[tuple[Floats, float]]:
    """Yield the weights and right-hand sides of cuts that a target needs and that a solution violates.

    They are narrowest cuts of the attacker's network, the ones nearest to either end of it. A target that may be met on
    both sides needs a cut on each, together. Of all pairs, those of one cut with itself are looked at first, in an
    undirected network: there a fractional solution cannot count a cell twice.
    """
    # Compiled, and only needed here.
    from tabulary.suppress.classical_method.flow_kernels import narrowest_cuts

    row, column = divmod(target.cell, problem.shape[1])
    if target.up > 0 and target.down > 0:
        room = problem.rise + problem.fall
        flow, across = narrowest_cuts(room, room, share, row, column, True, target.total)
        if flow < target.total * (1 - _VIOLATED):
            yield from ((weights, target.total) for weights in across)
            return
    reached, missing = 0.0, target.total
    across = np.zeros((2, *problem.shape))
    for up, level in ((True, target.up), (False, target.down)):
        if level > 0:
            flow, cuts = narrowest_cuts(problem.rise, problem.fall, share, row, column, up, level)
            reached += flow
            across += cuts
            # A side that is reached in full adds what it is worth, whatever is suppressed.
            missing -= level * (flow >= level)
    if reached < target.total * (1 - _VIOLATED):
        yield from ((weights, missing) for weights in across)


def _cover_cut(weights: Floats, share: Floats) -> Floats | None:
    """Return the most violated of the cuts that are left when the most suppressed cells of a cut are, one by one."""
    rest, worst, found = 1.0, 0.01, None
    left = weights.copy()
    for place in np.argsort(-share, kind="stable"):
        if share[place] <= _NEAR:
            break
        if weights[place] < rest - _NEAR:
            rest -= weights[place]
            left[place] = 0.0
            scaled = np.minimum(left, rest) / rest
            violated = 1.0 - float(scaled @ share)
            if violated > worst:
                worst, found = violated, scaled
    return found
