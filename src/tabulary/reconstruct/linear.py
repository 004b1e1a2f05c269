"""The linear estimate: each table is a fixed combination of what was measured. Unbiased, and nothing more."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabulary.core import basis
from tabulary.core.bits import from_bits
from tabulary.core.domain import Margin
from tabulary.core.table import Counts
from tabulary.planning import Measurement
from tabulary.reconstruct.residuals import residual_estimates, table_of


def linear_estimates(measurement: Measurement) -> dict[Margin, Counts]:
    """Return every wanted table as the linear function of the measurement that the plan foresees.

    Counts: the sum of the noisy cells below, from the measurement that gives it with the smallest error.
    Contrasts: the inverse transform of the noisy coefficients of its subsets. Residuals: the sum of the best
    estimates of the residuals of its subsets, by generalised least squares over all that was measured.

    Post-processing: reads no data, spends no budget. Unbiased; a cell may come out negative. Tables from one
    measurement agree with each other on their common margins; counts of different ones do not. Of contrasts,
    impossible cells are set to zero; where there are some, the tables no longer agree.
    """
    if measurement.plan.query == "counts":
        return {margin: _from_counts(measurement, margin) for margin in measurement.plan.workload}
    if measurement.plan.query == "residuals":
        shape_of = measurement.plan.domain.shape_of
        residuals = residual_estimates(measurement)
        return {m: table_of(residuals, m, shape_of(m)) for m in measurement.plan.workload}
    parts = dict(zip(measurement.plan.value_sets(), measurement.values, strict=True))
    return {margin: _from_contrasts(measurement, parts, margin) for margin in measurement.plan.workload}


def _from_counts(measurement: Measurement, margin: Margin) -> Counts:
    position = measurement.plan.source_position(margin)
    source, values = measurement.plan.measured[position].margin, measurement.values[position]
    summed = tuple(i for i, attribute in enumerate(source) if attribute not in margin)
    return np.asarray(values.sum(axis=summed), dtype=np.int64)


def _from_contrasts(
    measurement: Measurement, parts: dict[Margin, NDArray[np.int64]], margin: Margin
) -> Counts:
    plan = measurement.plan
    named = plan.measured_margin(margin)
    coefficients = np.zeros(plan.measured_domain.shape_of(named))
    for s in (s for k in range(len(named) + 1) for s in combinations(named, k)):
        coefficients[tuple(slice(1, None) if a in s else 0 for a in named)] = parts[s]
    table = basis.table_of(coefficients)
    if plan.encoding == "bits":
        table = from_bits(plan.domain, margin, table)
    return np.where(plan.domain.impossible(margin), 0.0, table) if plan.domain.structural_zeros else table
