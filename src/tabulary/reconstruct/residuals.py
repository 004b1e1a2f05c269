r"""The best linear estimate of every residual from the parts that were measured of it.

A part (S, B) knows the residuals of the sets R between B and S, each with noise of covariance σ² P_R; those of
different sets are uncorrelated (`core.residuals`). So generalised least squares over all parts is, for each R by
itself, the mean of what its parts say, weighted by 1/σ². By Gauss and Markov no linear unbiased estimate of any
table from these measurements has a smaller variance in any cell.
"""

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Margin
from tabulary.core.residuals import add_up, component
from tabulary.planning import Measurement, Plan
from tabulary.planning.residual_errors import part_variance, subsets, subsets_within


def residual_estimates(measurement: Measurement) -> dict[Margin, Floats]:
    """Return the estimate of the residual of every set of the closure of the wanted tables.

    Each is a table over the levels of its set, every axis of which sums to zero; that of the empty set is the
    total. The estimate of R has covariance σ² P_R with σ² = `plan.residual_variances[R]`. Unbiased.
    Post-processing: reads no data, spends no budget.
    """
    plan = measurement.plan
    found: dict[Margin, Floats] = {}
    for position, (part, values) in enumerate(zip(plan.measured, measurement.values, strict=True)):
        for r in subsets_within(plan.residual_variances, part.margin, part.centred):
            told = told_by(plan, position, values, r)
            found[r] = found[r] + told if r in found else told
    # Nothing varies on one level, and nothing may have been measured there.
    return {r: found[r] if r in found else np.zeros(plan.domain.shape_of(r)) for r in plan.residual_variances}


def told_by(plan: Plan, position: int, values: NDArray[np.int64], r: Margin) -> Floats:
    """Return what one part adds to the estimate of the residual of r: what it says of it, times its share."""
    part = plan.measured[position]
    shape = plan.domain.shape_of(part.margin)
    levels = dict(zip(part.margin, shape, strict=True))
    variance = plan.residual_variances[r]
    own = part_variance(levels, part.margin, part.centred, r, plan.noise_variances[position])
    centred = [i for i, a in enumerate(part.margin) if a in part.centred]
    onto = [i for i, a in enumerate(part.margin) if a in r]
    return (variance / own if variance else 0.0) * component(values, shape, centred, onto)


def table_of(residuals: dict[Margin, Floats], margin: Margin, shape: tuple[int, ...]) -> Floats:
    """Return the table on `margin` with these residuals."""
    named = {tuple(i for i, a in enumerate(margin) if a in r): residuals[r] for r in subsets(margin)}
    return add_up(named, shape)
