r"""The log-linear model nearest to a table whose cells share their noise.

A table released through a linear mechanism is X = a + E with Poisson counts a and noise E of a known covariance Σ that
is not diagonal. Its exact likelihood is a sum over all tables. What is used instead is its mean and its covariance,
V = diag(μ) + Σ: a sum of many draws is nearly normal. The means solve the equations of generalised least squares with
V at the fit itself, J' V⁻¹ (x - μ) = 0 with J = diag(μ) D, and (x - μ)' V⁻¹ (x - μ) is χ² with the degrees of freedom
of the model: minimum chi-square (Neyman 1949; Ferguson 1958).

A few Laplace draws are not normal. The statistic is about e'Qe with e = x - μ a sum of independent parts A_d u_d, and
Q = V⁻¹ less what the fit takes away. Its mean is the degrees of freedom whatever the law; its variance is twice them
plus Σ κ₄(u_d) (A_d' Q A_d)², with the fourth cumulants of counts and draws. `tests/statistical/test_noise_aware.py`
holds the level of a test by these two moments to 3-7 % at a nominal 5 %; with 2·df alone it is 7 % behind the 16
draws of a 4 × 4 Fourier release, and more where counts are small.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.core.interruption import checkpoint
from tabulary.errors import NotCertified
from tabulary.infer.score import added_directions

_MOST_WEIGHTS, _MOST_STEPS = 100, 300
_PATIENCE = 10
_TOLERANCE = 1e-8
_LONGEST, _SHORTEST = 2.0, 1e-6
_LOWEST, _HIGHEST = -30.0, 40.0
_DAMPING = 1e-3
_FLAT = 1e-12
# A cell of fewer people than this varies as one of this many: a fitted mean of nobody would say that it cannot vary.
_FEWEST = 0.5
_RESTLESS = (
    "The model nearest to the released table was not found: the iteration does not come to rest, as it may not where "
    "the noise exceeds most counts. No test was made. Test a coarser table."
)


@dataclass(frozen=True, eq=False)
class NearestFit:
    """The fitted means, the remaining distance, and the number of free parameters that the cells determine."""

    means: Floats
    statistic: float
    rank: int


def nearest_log_linear(
    observed: Floats, covariance: Floats, design: Floats, *, offset: Floats | None = None
) -> NearestFit:
    """Return the means exp(offset + design · θ) nearest to released values, one row of `design` per cell.

    Costs a few inverses of the covariance: 2,500 cells take seconds. Raises NotCertified if the iteration does not
    come to rest.

    >>> design = np.array([[1.0, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    >>> fit = nearest_log_linear(np.array([25.0, 27, 52, 46]), 4 * np.eye(4) - 1, design)
    >>> fit.means.round(1).tolist(), round(fit.statistic, 2), fit.rank
    ([26.7, 25.3, 50.4, 47.6], 0.3, 3)
    """
    fixed = np.zeros(observed.size) if offset is None else offset

    def means_at(theta: Floats) -> Floats:
        return np.exp(np.clip(fixed + design @ theta, _LOWEST, _HIGHEST))

    start = np.maximum(observed, 1.0)
    gram = design.T @ (start[:, np.newaxis] * design)
    aimed = design.T @ (start * (np.log(start) - fixed))
    theta = np.asarray(np.linalg.lstsq(gram, aimed, rcond=_FLAT)[0], dtype=np.float64)
    rank = int(np.linalg.matrix_rank(design.T @ design, hermitian=True))
    distance = math.inf
    spread = means_at(theta)
    for turn in range(_MOST_WEIGHTS):
        checkpoint()
        before = distance
        weights = np.linalg.inv(covariance + np.diag(np.maximum(spread, _FEWEST)))
        theta, distance = _nearest(observed, weights, design, means_at, theta)
        if abs(distance - before) <= _TOLERANCE * (1 + distance):
            return NearestFit(means_at(theta), distance, rank)
        # Means that swing between two values are replaced by their average.
        spread = means_at(theta) if turn < _PATIENCE else (spread + means_at(theta)) / 2
    raise NotCertified(_RESTLESS)


def _nearest(
    observed: Floats, weights: Floats, design: Floats, means_at: Callable[[Floats], Floats], theta: Floats
) -> tuple[Floats, float]:
    """Return the parameters of the means nearest to the released values by these weights, and the distance left."""
    for _ in range(_MOST_STEPS):
        checkpoint()
        means = means_at(theta)
        residual = observed - means
        weighted = weights @ residual
        distance = float(residual @ weighted)
        slopes = means[:, np.newaxis] * design
        gradient = slopes.T @ weighted
        # A little of the information of exact counts keeps the step finite where a mean goes to zero.
        damped = slopes.T @ (weights @ slopes) + _DAMPING * design.T @ slopes
        step = np.linalg.lstsq(damped, gradient, rcond=_FLAT)[0]
        promised = float(gradient @ step)
        if promised <= _TOLERANCE * (1 + distance):
            return theta, distance
        size = min(1.0, _LONGEST / max(float(np.abs(design @ step).max()), _LONGEST))
        while size > _SHORTEST:
            left = observed - means_at(theta + size * step)
            if float(left @ (weights @ left)) <= distance - 1e-4 * size * promised:
                break
            size /= 2
        else:
            break
        theta = theta + size * step
    raise NotCertified(_RESTLESS)


def residual_directions(
    means: Floats, covariance: Floats, design: Floats, larger: Floats | None = None
) -> Floats:
    """Return W for which W'(x - μ) is uncorrelated with variance one at the fit of `design`.

    There is one column for each parameter that the design `larger` adds; None is the saturated model. The sum of
    squares of W'(x - μ) is the score statistic of the fitted model within the larger one, and within the saturated one
    it is the distance that is left.
    """
    whole = covariance + np.diag(np.maximum(means, _FEWEST))
    root: Floats = np.linalg.cholesky(whole)
    slopes: Floats = np.asarray(np.linalg.solve(root, means[:, np.newaxis] * design), dtype=np.float64)
    wider = None
    if larger is not None:
        wider = np.asarray(np.linalg.solve(root, means[:, np.newaxis] * larger), dtype=np.float64)
    return np.asarray(np.linalg.solve(root.T, added_directions(slopes, wider)), dtype=np.float64)


def excess_variance(
    means: Floats, directions: Floats, shares_of: Callable[[Floats], Floats], cumulants: Floats
) -> float:
    """Return by how much the variance of a sum of squares exceeds twice the number of its `residual_directions`.

    `shares_of(w)` gives, for weights on the cells, how much of each independent draw of the noise the weighted sum
    holds, and `cumulants` their fourth cumulants. That of a Poisson count is its mean.
    """
    of_counts = (directions**2).sum(axis=1)
    of_draws = np.zeros(cumulants.size)
    for column in directions.T:
        checkpoint()
        of_draws += shares_of(column) ** 2
    return float(means @ of_counts**2 + cumulants @ of_draws**2)
