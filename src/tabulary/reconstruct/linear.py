"""The linear estimate: each table is a fixed combination of what was measured. Unbiased, and nothing more."""

import sys

from tabulary.core.cache import Cache
from tabulary.core.domain import Margin
from tabulary.core.table import CellCounts
from tabulary.planning import Measurement, Plan
from tabulary.planning.queries.query import Kept, Values


class TablesOnDemand:
    """The linear estimates of the tables of a plan, from the noisy values of no more parts than each needs.

    The same bits as from the whole measurement, whatever was asked before. `values` returns the noisy values of the
    part at a position of the plan. Post-processing: reads no data, spends no budget. Unbiased; a cell may come out
    negative. Its errors are `plan.error_of`. What tables share is kept in a section of `cache`; what was dropped is
    estimated again. Safe to use from several threads.
    """

    def __init__(self, plan: Plan, values: Values, *, cache: Cache | None = None) -> None:
        self.plan = plan
        self._values = values
        self._kept = Kept(Cache() if cache is None else cache)

    def table(self, margin: Margin) -> CellCounts:
        """Return the linear estimate of the table on `margin`, in the domain's order."""
        self.plan.check_measured(margin)
        return self.plan.estimator.table(margin, self._values, self._kept)

    def close(self) -> None:
        """Forget what is kept."""
        self._kept.clear()


def linear_estimates(measurement: Measurement) -> dict[Margin, CellCounts]:
    """Return every wanted table as the linear function of the measurement that the plan foresees.

    What that function is, the type of the queries says (`planning.queries`). Post-processing: reads no data, spends no
    budget. Unbiased; a cell may come out negative.
    """
    # All that tables share is kept: it is needed again at once.
    tables = TablesOnDemand(measurement.plan, measurement.values.__getitem__, cache=Cache(sys.maxsize))
    return {margin: tables.table(margin) for margin in measurement.plan.workload}
