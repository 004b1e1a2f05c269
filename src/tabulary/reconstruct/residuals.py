r"""The best linear estimate of every residual from the parts that were measured of it.

A part (S, B) knows the residuals of the sets R between B and S, each with noise of covariance σ² P_R; those of
different sets are uncorrelated (`core.residuals`). So generalised least squares over all parts is, for each R by
itself, the mean of what its parts say, weighted by 1/σ². By Gauss and Markov no linear unbiased estimate of any
table from these measurements has a smaller variance in any cell.
"""

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Margin
from tabulary.core.residuals import add_up, component
from tabulary.planning import Measurement
from tabulary.planning.residual_errors import part_variance, subsets, subsets_within

Floats = NDArray[np.float64]


def residual_estimates(measurement: Measurement) -> dict[Margin, Floats]:
    """Return the estimate of the residual of every set of the closure of the wanted tables.

    Each is a table over the levels of its set, every axis of which sums to zero; that of the empty set is the
    total. The estimate of R has covariance σ² P_R with σ² = `plan.residual_variances[R]`. Unbiased.
    Post-processing: reads no data, spends no budget.
    """
    plan = measurement.plan
    variances = plan.residual_variances
    levels = dict(zip(plan.domain.attributes, plan.domain.shape, strict=True))
    found: dict[Margin, Floats] = {}
    for part, v, values in zip(plan.measured, plan.noise_variances, measurement.values, strict=True):
        shape = tuple(levels[a] for a in part.margin)
        centred = [i for i, a in enumerate(part.margin) if a in part.centred]
        for r in subsets_within(variances, part.margin, part.centred):
            share = (
                variances[r] / part_variance(levels, part.margin, part.centred, r, v) if variances[r] else 0.0
            )
            onto = [i for i, a in enumerate(part.margin) if a in r]
            told = share * component(values, shape, centred, onto)
            found[r] = found[r] + told if r in found else told
    # Nothing varies on one level, and nothing may have been measured there.
    return {r: found[r] if r in found else np.zeros([levels[a] for a in r]) for r in variances}


def table_of(residuals: dict[Margin, Floats], margin: Margin, shape: tuple[int, ...]) -> Floats:
    """Return the table on `margin` with these residuals."""
    named = {tuple(i for i, a in enumerate(margin) if a in r): residuals[r] for r in subsets(margin)}
    return add_up(named, shape)
