"""A prior from past tables: the probability in each cell, fitted to tables that are already public."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, psi, zeta

from tabulary.core.table import Table
from tabulary.errors import InvalidTable

# How many people the beta law weighs: from one, so that no cell is called as good as certain, to so many that no cell
# has a say.
_WEIGHTS = np.geomspace(1, 1e8, 33)
# A gain of less than this in the logarithm of the likelihood is no sign that cells differ.
_GAIN = 1e-4
_THIRDS = 32
_STEPS = 60
# Where the weight is large the slope is a small difference of digammas, and a mean is not told better than this.
_CLOSE = 1e-9
# From here on Stirling's series is good to the last digit.
_LARGE = 30.0


def fit_prior(
    people: Table | ArrayLike, counts: Table | ArrayLike, *, axis: int | None = None
) -> NDArray[np.float64]:
    r"""Return the probability that someone has the private attribute, for each cell of past tables.

    A cell's probability is taken as drawn from a beta law with mean m and weight s ≥ 1, its count as binomial; m and s
    are those of greatest likelihood over all cells, and what comes back is each cell's posterior mean (x + sm)/(n + s).
    A cell with few people leans on the others, one with many on itself, and an empty one has m. Where the counts vary
    no more than binomial ones s is infinite, and all cells have the pooled rate. Always strictly between 0 and 1: where
    nobody has the attribute, or everybody, it is (x + ½)/(n + 1) of all cells together.

    Several past tables are given as one array with an axis for the years, named by `axis`: people and counts are added
    up over it, so a change over the years is averaged.

    Give only tables that are *public already*. A prior fitted to the table that is to be released would carry its
    private counts into every decision, and none of them would be simulatable any more.

    >>> fit_prior([[200, 80], [10, 0]], [[101, 23], [9, 0]]).round(3).tolist()
    [[0.506, 0.302], [0.783, 0.539]]
    >>> fit_prior([[50, 50], [60, 40]], [[9, 25], [13, 19]], axis=0).round(3).tolist()
    [0.214, 0.472]
    """
    number, having = _past(people, "the people"), _past(counts, "the counts")
    if number.shape != having.shape:
        raise InvalidTable(
            f"the past people have shape {number.shape} but the past counts have {having.shape}. Give both for the "
            "same cells."
        )
    if (having > number).any():
        raise InvalidTable("a past count is above the number of people in its cell.")
    if axis is not None:
        if not -number.ndim <= axis < number.ndim:
            raise InvalidTable(f"the past tables have {number.ndim} axes, so there is no axis {axis}.")
        number, having = number.sum(axis=axis), having.sum(axis=axis)
    people_of_all, having_of_all = number.sum(), having.sum()
    if people_of_all == 0:
        raise InvalidTable("the past tables have no people, so no prior can be fitted.")
    if having_of_all in (0, people_of_all):
        return np.full(number.shape, (having_of_all + 0.5) / (people_of_all + 1))
    told = number > 0
    mean, weight = _beta(number[told], having[told])
    if np.isinf(weight):
        return np.full(number.shape, mean)
    return np.asarray((having + weight * mean) / (number + weight))


def _beta(number: NDArray[np.float64], having: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean and the weight of the beta law of greatest likelihood; the weight may be infinite."""
    pooled = float(having.sum() / number.sum())
    of_one_rate = float(having.sum() * np.log(pooled) + (number - having).sum() * np.log1p(-pooled))

    def likelihood(weight: float) -> float:
        mean = _mean(number, having, weight)
        return _log_likelihood(number, having, mean, weight)

    found = [likelihood(weight) for weight in _WEIGHTS]
    best = int(np.argmax(found))
    if best == len(_WEIGHTS) - 1 or found[best] < of_one_rate + _GAIN:
        return pooled, np.inf
    low, high = np.log(_WEIGHTS[max(best - 1, 0)]), np.log(_WEIGHTS[best + 1])
    for _ in range(_THIRDS):
        left, right = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (left, high) if likelihood(np.exp(left)) < likelihood(np.exp(right)) else (low, right)
    weight = float(np.exp((low + high) / 2))
    return _mean(number, having, weight), weight


def _mean(number: NDArray[np.float64], having: NDArray[np.float64], weight: float) -> float:
    """Return the best mean for a weight: by Newton's steps, and by halving where one would leave the bracket.

    The likelihood is concave in the mean, so its slope falls and has one zero.
    """
    low, high = 0.0, 1.0
    mean = float(having.sum() / number.sum())
    for _ in range(_STEPS):
        ones, zeros = weight * mean, weight * (1 - mean)
        slope = (psi(having + ones) - psi(ones) - psi(number - having + zeros) + psi(zeros)).sum()
        bend = (
            zeta(2, having + ones) - zeta(2, ones) + zeta(2, number - having + zeros) - zeta(2, zeros)
        ).sum()
        low, high = (mean, high) if slope > 0 else (low, mean)
        onward = mean - slope / (weight * bend) if bend < 0 else low
        onward = float(onward) if low < onward < high else (low + high) / 2
        done = abs(onward - mean) <= _CLOSE * min(mean, 1 - mean)
        mean = onward
        if done:
            break
    return mean


def _log_likelihood(
    number: NDArray[np.float64], having: NDArray[np.float64], mean: float, weight: float
) -> float:
    ones, zeros = weight * mean, weight * (1 - mean)
    rises = _log_rise(ones, having) + _log_rise(zeros, number - having) - _log_rise(weight, number)
    return float(rises.sum())


def _log_rise(start: float, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln Γ(start + steps) - ln Γ(start), without the cancellation of two large logarithms."""
    if start < _LARGE:
        return np.asarray(gammaln(start + steps) - gammaln(start))
    end = start + steps
    return np.asarray(
        (start - 0.5) * np.log1p(steps / start)
        + steps * np.log(end)
        - steps
        + _stirling(end)
        - _stirling(start)
    )


def _stirling(value: NDArray[np.float64] | float) -> NDArray[np.float64]:
    square = np.square(value)
    return np.asarray((1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / value)


def _past(given: Table | ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        array = np.array(given.counts if isinstance(given, Table) else given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTable(f"{name} of a past table are not numbers.") from None
    if not np.isfinite(array).all() or (array < 0).any() or (array != np.round(array)).any():
        raise InvalidTable(f"{name} of a past table are not all whole numbers of at least 0.")
    return array
