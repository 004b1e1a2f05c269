"""The linear estimate: each table is the sum of the noisy cells below it. Unbiased, and nothing more."""

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Margin
from tabulary.planning import Measurement


def linear_estimates(measurement: Measurement) -> dict[Margin, NDArray[np.int64]]:
    """Return every wanted table from the measurement that gives it with the smallest error.

    Post-processing: reads no data, spends no budget. Unbiased; a cell may come out negative. Tables from one
    measurement agree with each other on their common margins; tables from different ones do not.
    """
    plan = measurement.plan
    tables = {}
    for margin in plan.workload:
        source = plan.source_of(margin)
        values = measurement.values[plan.measured.index(source)]
        summed = tuple(i for i, attribute in enumerate(source.margin) if attribute not in margin)
        tables[margin] = np.asarray(values.sum(axis=summed), dtype=np.int64)
    return tables
