"""The linear estimate: each table is a fixed combination of what was measured. Unbiased, and nothing more."""

import sys
from collections.abc import Callable

from tabulary.core.domain import Margin
from tabulary.core.table import Counts
from tabulary.planning import Measurement, Plan
from tabulary.planning.queries.query import Values

CACHED_BYTES = 128 * 1024 * 1024
"""How many bytes of estimates that tables share are kept, unless told otherwise. What is not kept is made again."""


def linear_estimates(measurement: Measurement) -> dict[Margin, Counts]:
    """Return every wanted table as the linear function of the measurement that the plan foresees.

    What that function is, the type of the queries says (`planning.queries`). Post-processing: reads no data, spends no
    budget. Unbiased; a cell may come out negative.
    """
    plan = measurement.plan
    # All that tables share is kept: it is needed again at once.
    table = plan.estimator.on_demand(measurement.values.__getitem__, sys.maxsize)
    return {margin: table(margin) for margin in plan.workload}


class TablesOnDemand:
    """The linear estimates of the tables of a plan, from the noisy values of no more parts than each needs.

    The same tables as from the whole measurement, whatever was asked before. `values` returns the noisy values of the
    part at a position of the plan. Post-processing: reads no data, spends no budget. Unbiased; a cell may come out
    negative. Its errors are `plan.error_of`. Safe to use from several threads.
    """

    def __init__(self, plan: Plan, values: Values, *, cached_bytes: int = CACHED_BYTES) -> None:
        self.plan = plan
        self._estimated: Callable[[Margin], Counts] = plan.estimator.on_demand(values, cached_bytes)

    def table(self, margin: Margin) -> Counts:
        """Return the linear estimate of the table on `margin`, in the domain's order."""
        self.plan.check_measured(margin)
        return self._estimated(margin)
