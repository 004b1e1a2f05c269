"""The linear estimate: each table is a fixed combination of the measured values. Unbiased; a cell may be negative."""

import sys

import numpy as np

from tabulary.core.cache import Cache
from tabulary.core.domain import Margin
from tabulary.core.table import CellCounts
from tabulary.planning import Measurement, Plan
from tabulary.planning.queries.query import Kept, Values


class TablesOnDemand:
    """The linear estimates of the tables of a plan, each from the noisy values of the parts that it needs.

    The result has the same bits as from the whole measurement, whatever tables were requested before. `values`
    returns the noisy values of the part at a position of the plan. Post-processing: reads no data, spends no budget.
    Unbiased; a cell may come out negative. Its errors are `plan.error_of`. Parts that tables share are kept in a
    section of `cache`; dropped parts are estimated again. Safe to use from several threads.
    """

    def __init__(self, plan: Plan, values: Values, *, cache: Cache | None = None) -> None:
        self.plan = plan
        self._values = values
        self._kept = Kept(Cache() if cache is None else cache)

    def table(self, margin: Margin) -> CellCounts:
        """Return the linear estimate of the table on `margin`, in the domain's order; impossible cells are zero."""
        self.plan.check_measured(margin)
        table = self.plan.estimator.table(margin, self._values, self._kept)
        if self.plan.domain.structural_zeros:
            table = np.where(self.plan.domain.impossible(margin), table.dtype.type(0), table)
        return table

    def close(self) -> None:
        """Forget the kept parts."""
        self._kept.clear()


def linear_estimates(measurement: Measurement) -> dict[Margin, CellCounts]:
    """Return every wanted table as the plan's linear function of the measurement.

    The type of the queries defines that function (`planning.queries`). Post-processing: reads no data, spends no
    budget. Unbiased; a cell may come out negative.
    """
    # All shared parts are kept: the next table needs them.
    tables = TablesOnDemand(measurement.plan, measurement.values.__getitem__, cache=Cache(sys.maxsize))
    return {margin: tables.table(margin) for margin in measurement.plan.workload}
