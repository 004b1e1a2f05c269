"""The law of largest entropy that shares its values, mean and variance with a given one."""

import math
from typing import NamedTuple

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.perturb.perturbation import Row

_STEPS = 60
# A step that promises this much less moves no probability by more than its root.
_NEGLIGIBLE = 1e-22


def largest_entropy(row: Row, *, endless: bool = False) -> tuple[float, Row]:
    """Return the largest entropy of any law on the values of a row with its mean and variance, and that law.

    With z the value less the mean in standard deviations, it is p ∝ exp(αz + βz²), and its entropy the minimum of
    log Σ exp(αz + β(z² - 1)) over α and β: a convex function of two numbers, by Newton's method. Whatever the
    two are, that function is no less than the entropy of any law with these moments, so rounding never
    makes the largest entropy too small. If the values are `endless`, β > 0 belongs to no law: far away, a
    probability as small as one likes makes up the variance, and the largest entropy is that with the mean alone.

    >>> found, law = largest_entropy(Row(-1, np.array([0.25, 0.5, 0.25])))
    >>> round(found, 6), law.probabilities.round(4).tolist()
    (1.039721, [0.25, 0.5, 0.25])
    >>> geometric = 0.5 ** np.arange(1, 60)
    >>> round(largest_entropy(Row(0, geometric), endless=True)[0], 6)
    1.386294
    """
    possible = row.probabilities > 0
    values = row.values[possible].astype(np.float64)
    probabilities = row.probabilities[possible]
    mean = math.fsum(probabilities * values)
    spread = math.sqrt(math.fsum(probabilities * (values - mean) ** 2))
    if values.size == 1 or spread == 0:
        return 0.0, row
    z = (values - mean) / spread
    features = np.stack([z, z * z - 1])
    # Of the mean alone first: where β would then rise, endless values end the search.
    tilt = _minimum(features[:1], np.zeros(1))
    found = (
        tilt if endless and features[1] @ tilt.weights < 0 else _minimum(features, np.array([*tilt.theta, 0]))
    )
    law = np.zeros_like(row.probabilities)
    law[possible] = found.weights
    return found.value, Row(row.lowest, law, row.left_out)


class _Sum(NamedTuple):
    """The logarithm of Σ exp(θ · features), the share of each term in the sum, and θ."""

    value: float
    weights: Floats
    theta: Floats


def _minimum(features: Floats, start: Floats) -> _Sum:
    """Return where log Σ exp(θ · features) is smallest, by Newton's method with steps cut until they gain."""
    at = _log_sum(features, start)
    for _ in range(_STEPS):
        slope = features @ at.weights
        curvature = (features * at.weights) @ features.T - np.outer(slope, slope)
        # Two values leave θ undetermined; the shortest step is as good as any.
        step = -np.linalg.lstsq(curvature, slope, rcond=1e-13)[0]
        promised = -float(slope @ step)
        if promised < _NEGLIGIBLE:
            return at
        length = 1.0
        while (
            tried := _log_sum(features, at.theta + length * step)
        ).value > at.value - length * promised / 4:
            length /= 2
            if length * promised < 1e-14:
                # Nothing is left to gain but rounding.
                return at
        at = tried
    return at


def _log_sum(features: Floats, theta: Floats) -> _Sum:
    exponents = theta @ features
    top = float(exponents.max())
    weights = np.exp(exponents - top)
    total = float(weights.sum())
    return _Sum(top + math.log(total), weights / total, theta)
