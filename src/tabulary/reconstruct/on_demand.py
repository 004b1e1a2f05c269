"""Tables from residuals that are estimated when they are first needed."""

from collections.abc import Callable
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.cache import ArrayCache, Cache
from tabulary.core.domain import Margin
from tabulary.core.workload import MarginIndex
from tabulary.planning import Plan
from tabulary.planning.residual_errors import subsets
from tabulary.reconstruct.residuals import table_of, told_by


class TablesOnDemand:
    """The linear estimates of the tables of a plan, from the noisy values of no more parts than each needs.

    A table on A is the sum of the residuals of its subsets, and the estimate of the residual of R rests on the parts
    (S, B) with B ⊆ R ⊆ S (`reconstruct.residuals`). The same parts, added up in the same order, whatever was asked
    before: the same bits as from the whole measurement. Two tables are made of the same residuals on what they share,
    so they agree.

    `values` returns the noisy values of the part at a position of the plan. Post-processing: reads no data, spends no
    budget. Unbiased; a cell may come out negative. Its errors are `plan.error_of`. Estimated residuals are kept in a
    section of `cache`; those that were dropped are estimated again. Safe to use from several threads.
    """

    def __init__(
        self, plan: Plan, values: Callable[[int], NDArray[np.int64]], *, cache: Cache | None = None
    ) -> None:
        self.plan = plan
        self._values = values
        self._residuals: ArrayCache[Margin, np.float64] = ArrayCache(Cache() if cache is None else cache)
        # By what is centred: few of the thousands of parts of a plan tell of one residual.
        by_centred: dict[Margin, list[int]] = {}
        for position, part in enumerate(plan.measured):
            by_centred.setdefault(part.centred, []).append(position)
        self._telling = {
            centred: (positions, MarginIndex(plan.measured[i].margin for i in positions))
            for centred, positions in by_centred.items()
        }

    def table(self, margin: Margin) -> Floats:
        """Return the linear estimate of the table on `margin`, in the domain's order."""
        self.plan.check_measured(margin)
        residuals = {r: self.residual(r) for r in subsets(margin)}
        return table_of(residuals, margin, self.plan.domain.shape_of(margin))

    def residual(self, r: Margin) -> Floats:
        """Return the estimate of the residual of one set, read-only."""
        return self._residuals.get(r, lambda: self._estimated(r))

    def close(self) -> None:
        """Forget the residuals that are kept."""
        self._residuals.clear()

    def parts_of(self, r: Margin) -> list[int]:
        """Return where the parts stand in the plan that tell of the residual of r.

        >>> import tabulary as tb
        >>> domain = tb.Domain({"a": "xyz", "b": "xyz"})
        >>> plan = tb.plan(domain, "[][a][b][ab]", privacy=tb.ZCDP(1), mechanism="residual")
        >>> tables = TablesOnDemand(plan, lambda position: np.zeros(0, dtype=np.int64))
        >>> [plan.measured[i].margin for i in tables.parts_of(("a",))]
        [('a',)]
        """
        found: list[int] = []
        for order in range(len(r) + 1):
            for centred in combinations(r, order):
                if centred in self._telling:
                    positions, index = self._telling[centred]
                    found += [positions[i] for i in index.containing(r)]
        return sorted(found)

    def _estimated(self, r: Margin) -> Floats:
        told = [told_by(self.plan, position, self._values(position), r) for position in self.parts_of(r)]
        # Nothing varies on one level, and nothing may have been measured there.
        return reduce(np.add, told) if told else np.zeros(self.plan.domain.shape_of(r))
