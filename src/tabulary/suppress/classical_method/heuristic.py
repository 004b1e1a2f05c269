"""A good pattern, not always the best: cell by cell along the cheapest ways, then without what has become superfluous.

For tables of any number of axes, and the first pattern of the exact search. It is the plan of the heuristics in use
(Kelly, Golden & Assad 1992; Fischetti & Salazar 2000): the targets are taken one after the other, the hardest first,
and each is given the cheapest cells that let it deviate as far as it must, those already suppressed being free. Then
every secondary cell, the dearest first, is published again if all targets are still met without it; and at last each
is forbidden in turn, which frees a search that has run into a corner.
"""

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.core.progress import Progress
from tabulary.errors import CannotProtect
from tabulary.suppress.classical_method.deviation_routes import Cells, DeviationRoutes
from tabulary.suppress.classical_method.rules import Mask
from tabulary.suppress.classical_method.suppression_problem import ProtectionTarget, SuppressionProblem

# Of a target: what is missing to it by rounding.
_ROUNDING = 1e-7


class PatternDraft:
    """A pattern in the making, with the cells that each target leans on: publishing any other cell leaves it met."""

    def __init__(
        self, problem: SuppressionProblem, routes: DeviationRoutes, *, pattern: Mask | None = None
    ) -> None:
        self.problem, self.routes = problem, routes
        self.pattern = (problem.primary if pattern is None else pattern).copy()
        self._leans: dict[ProtectionTarget, frozenset[int]] = {}
        # A cell that costs nothing is not used for nothing either, or ways would wander.
        self._hop = 1e-6 * max(1.0, float(problem.cost.mean()))

    def copy(self) -> "PatternDraft":
        """Return the same draft, to be changed."""
        twin = PatternDraft(self.problem, self.routes, pattern=self.pattern)
        twin._leans = dict(self._leans)
        return twin

    @property
    def cost(self) -> float:
        """What the pattern costs."""
        return self.problem.price(self.pattern)

    def complete(self, weight: Floats, *, progress: Progress | None = None) -> None:
        """Suppress cells of little weight until every target is met; cells of infinite weight never."""
        targets = self.problem.targets
        for number, target in enumerate(targets):
            if target not in self._leans:
                self._serve(target, weight)
            if progress is not None:
                progress("suppressing cells", number + 1, len(targets))

    def prune(self, weight: Floats, *, progress: Progress | None = None) -> None:
        """Publish what is superfluous, the dearest first."""
        secondary = np.flatnonzero(self.pattern & ~self.problem.primary)
        order = secondary[np.argsort(-weight.reshape(-1)[secondary], kind="stable")]
        for number, cell in enumerate(map(int, order)):
            self._publish(cell)
            if progress is not None:
                progress("publishing cells again", number + 1, order.size)

    def without(self, cell: int, weight: Floats) -> "PatternDraft":
        """Return a complete draft that does not use one of the secondary cells."""
        forbidden = weight.copy()
        forbidden.reshape(-1)[cell] = np.inf
        draft = self.copy()
        draft.pattern.reshape(-1)[cell] = False
        draft._leans = {target: cells for target, cells in self._leans.items() if cell not in cells}
        draft.complete(forbidden)
        draft.prune(weight)
        return draft

    def _publish(self, cell: int) -> bool:
        self.pattern.reshape(-1)[cell] = False
        changed: dict[ProtectionTarget, frozenset[int]] = {}
        for target in self.problem.targets:
            if cell not in self._leans[target]:
                continue
            up, through_up = self._reach(target, up=True)
            down, through_down = self._reach(target, up=False)
            if not _enough(up + down, target):
                self.pattern.reshape(-1)[cell] = True
                return False
            changed[target] = frozenset((*through_up.tolist(), *through_down.tolist()))
        self._leans |= changed
        return True

    def _serve(self, target: ProtectionTarget, weight: Floats) -> None:
        up, through_up = self._reach(target, up=True)
        down, through_down = self._reach(target, up=False)
        if _enough(up + down, target):
            self._leans[target] = frozenset((*through_up.tolist(), *through_down.tolist()))
            return
        # Whatever is missing may be found on either side.
        wanted = [(min(target.up, target.total - down), down), (up, min(target.down, target.total - up))]
        ways = [way for levels in wanted if (way := self._way(target, weight, *levels)) is not None]
        if not ways:
            high = self._farthest(target, weight, up=True)
            low = self._farthest(target, weight, up=False)
            wanted = [
                (high, min(target.down, target.total - high)),
                (min(target.up, target.total - low), low),
            ]
            ways = [way for levels in wanted if (way := self._way(target, weight, *levels)) is not None]
        if not ways:
            raise CannotProtect(
                "a sensitive cell cannot be protected by the cells that may be suppressed. Nothing was published."
            )
        cells = min(ways, key=lambda way: float(self._free(weight).reshape(-1)[way].sum()))
        self.pattern.reshape(-1)[cells] = True
        self._leans[target] = frozenset(cells.tolist())

    def _way(self, target: ProtectionTarget, weight: Floats, up: float, down: float) -> Cells | None:
        """Return the cells through which a target reaches so far up and so far down, or None."""
        found: list[Cells] = []
        if not _enough(max(up, 0.0) + max(down, 0.0), target):
            return None
        free = self._free(weight)
        for level, upward in ((up, True), (down, False)):
            if level > _ROUNDING * target.total:
                reached, cells = self.routes.cheapest(free, target.cell, up=upward, level=level)
                if reached < level * (1 - _ROUNDING):
                    return None
                found.append(cells)
        return np.unique(np.concatenate(found))

    def _reach(
        self, target: ProtectionTarget, *, up: bool, pattern: Mask | None = None
    ) -> tuple[float, Cells]:
        level = target.up if up else target.down
        if level <= 0:
            return 0.0, np.zeros(0, dtype=np.int64)
        given = self.pattern if pattern is None else pattern
        reached, cells = self.routes.reach(given, target.cell, up=up, level=level)
        return reached, cells

    def _farthest(self, target: ProtectionTarget, weight: Floats, *, up: bool) -> float:
        usable = np.isfinite(self._free(weight))
        return self._reach(target, up=up, pattern=usable)[0]

    def _free(self, weight: Floats) -> Floats:
        """The weights with everything suppressed free, and everything that must be published out of reach."""
        return np.where(self.pattern, self._hop, np.where(self.problem.kept, np.inf, weight + self._hop))


def heuristic(
    problem: SuppressionProblem,
    routes: DeviationRoutes,
    *,
    guide: Floats | None = None,
    swaps: bool = True,
    progress: Progress | None = None,
) -> Mask:
    """Return a pattern that meets every target.

    `guide` is the share of each cell that an optimal solution of a relaxation suppresses: such cells weigh less. With
    `swaps` each secondary cell is replaced by others if that is cheaper. Raises `CannotProtect` if no pattern meets
    the targets.
    """
    base = problem.cost
    weight = base if guide is None else base * (1 - guide)
    draft = PatternDraft(problem, routes)
    draft.complete(weight, progress=progress)
    draft.prune(base, progress=progress)
    improved = swaps
    while improved:
        improved = False
        secondary = np.flatnonzero(draft.pattern & ~problem.primary)
        for number, cell in enumerate(map(int, secondary)):
            if not draft.pattern.reshape(-1)[cell]:
                continue
            try:
                other = draft.without(cell, base)
            except CannotProtect:
                continue
            if other.cost < draft.cost * (1 - _ROUNDING):
                draft, improved = other, True
            if progress is not None:
                progress("replacing cells", number + 1, secondary.size)
    return draft.pattern


def unprotectable(problem: SuppressionProblem, routes: DeviationRoutes) -> list[int]:
    """Return the sensitive cells that stay unprotected even if everything that may be suppressed is."""
    found = set(problem.hopeless)
    everything = PatternDraft(problem, routes, pattern=~problem.kept | problem.primary)
    for target in problem.targets:
        if target.cell not in found:
            up, _ = everything._reach(target, up=True)
            down, _ = everything._reach(target, up=False)
            if not _enough(up + down, target):
                found.add(target.cell)
    return sorted(found)


def _enough(reached: float, target: ProtectionTarget) -> bool:
    return reached >= target.total * (1 - _ROUNDING)
