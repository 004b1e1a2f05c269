"""The noisy Poisson likelihood of one released value, compiled: its logarithm, E[a | x] and Var(a | x).

A released value x has the probability f = Σ_a Pois(a; μ) P(x | a), the sum over all counts a that may lie behind it.
P(x | a), as a function of a, comes in one of five kinds:

* EXACT: a = x;
* LAPLACE: log p(k) = -rate·|k| + constant, k = x - a, at any distance;
* GAUSSIAN: log p(k) = -k²/(2·variance) + constant, at any distance;
* SYMMETRIC: a table of log p(k) for |k| up to its end, and from there on a parabola;
* COLUMN: a table of log P(x | a) for a run of counts, and beyond its end, where there is more, a straight line.

All but the last are log-concave in k, so the summand is log-concave in a: it is summed outward from its mode until
what is left is below 1e-20 of the sum. A column is summed whole.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats, Integers
from tabulary.infer.chi_squared import deviance, stirling_error
from tabulary.noise.count_likelihood import COLUMN, EXACT, GAUSSIAN, LAPLACE

# The columns of `numbers`, then those of `places`.
WIDTH, CONSTANT, SLOPE, CURVATURE = 0, 1, 2, 3
START, LENGTH, FIRST = 0, 1, 2

# Terms are left out once they are this small beside the largest.
_NEGLIGIBLE = 1e-22
_LOG_NEGLIGIBLE = -51.0
_STEPS = 200
# A mean in which nobody is expected: the maximum lies at zero.
_SMALLEST_MEAN = 1e-12


_stirling_error, _deviance = compiled(stirling_error), compiled(deviance)


@compiled
def log_poisson(n: float, mean: float) -> float:
    """Return log of the Poisson probability of n, for a positive mean."""
    if n == 0:
        return -mean
    return -_deviance(n, mean) - _stirling_error(n) - 0.9189385332046727 - 0.5 * math.log(n)


@compiled
def _log_noise(kind: int, numbers: Floats, places: Integers, table: Floats, k: float) -> float:
    """Return log p(k) of a log-concave kind."""
    if kind == LAPLACE:
        return float(numbers[CONSTANT] - numbers[WIDTH] * abs(k))
    if kind == GAUSSIAN:
        return float(numbers[CONSTANT] - k * k / (2 * numbers[WIDTH]))
    place = int(abs(k))
    last = places[LENGTH] - 1
    if place <= last:
        return float(table[places[START] + place])
    beyond = place - last
    end = table[places[START] + last]
    return float(end + numbers[SLOPE] * beyond - numbers[CURVATURE] * beyond * (beyond + 1) / 2)


@compiled
def _log_concave(
    kind: int, x: int, numbers: Floats, places: Integers, table: Floats, mean: float
) -> tuple[float, float, float]:
    log_mean = math.log(mean)
    # The mode lies between those of the two factors; the summand rises up to it and falls after it.
    low, high = min(max(x, 0), int(mean)), max(x, int(mean))
    while low < high:
        middle = (low + high) // 2
        rise = (
            log_mean
            - math.log(middle + 1.0)
            + _log_noise(kind, numbers, places, table, x - middle - 1.0)
            - _log_noise(kind, numbers, places, table, float(x - middle))
        )
        if rise > 0:
            low = middle + 1
        else:
            high = middle
    mode = low
    total, first, second = 1.0, 0.0, 0.0
    towards, away = 1.0, 1.0
    if kind == LAPLACE:
        towards, away = math.exp(numbers[WIDTH]), math.exp(-numbers[WIDTH])
    for direction in (1, -1):
        term = 1.0
        a = mode
        here = 0.0
        if kind != LAPLACE:
            here = _log_noise(kind, numbers, places, table, float(x - a))
        while True:
            if direction > 0:
                ratio = mean / (a + 1.0)
            elif a == 0:
                break
            else:
                ratio = a / mean
            if kind == LAPLACE:
                nearer = a < x if direction > 0 else a > x
                ratio *= towards if nearer else away
            else:
                there = _log_noise(kind, numbers, places, table, float(x - a - direction))
                ratio *= math.exp(there - here)
                here = there
            a += direction
            term *= ratio
            offset = float(a - mode)
            total += term
            first += offset * term
            second += offset * offset * term
            if term < _NEGLIGIBLE:
                break
    shift = first / total
    peak = log_poisson(float(mode), mean) + _log_noise(kind, numbers, places, table, float(x - mode))
    return peak + math.log(total), mode + shift, max(second / total - shift * shift, 0.0)


@compiled
def _column(numbers: Floats, places: Integers, table: Floats, mean: float) -> tuple[float, float, float]:
    start, length, first_count = places[START], places[LENGTH], places[FIRST]
    log_mean = math.log(mean)
    # The largest term first, so that nothing overflows and the moments are about a value near them.
    best, peak = -1, -np.inf
    pois = log_poisson(float(first_count), mean)
    for i in range(length):
        if i:
            pois += log_mean - math.log(float(first_count + i))
        if pois + table[start + i] > peak:
            best, peak = i, pois + table[start + i]
    last = first_count + length - 1
    slope = numbers[SLOPE]
    if slope < 0 and slope > -np.inf:
        # Beyond the table the summand is that of a Poisson law with the mean tilted by the slope.
        tilted = mean * math.exp(slope)
        a = max(last + 1, int(tilted))
        beyond = log_poisson(float(a), mean) + table[start + length - 1] + slope * (a - last)
        if beyond > peak:
            best, peak = a - first_count, beyond
    if best < 0:
        return -np.inf, 0.0, 0.0
    about = first_count + best
    total, first, second = 0.0, 0.0, 0.0
    pois = log_poisson(float(first_count), mean)
    for i in range(length):
        if i:
            pois += log_mean - math.log(float(first_count + i))
        term = math.exp(pois + table[start + i] - peak)
        offset = float(i - best)
        total += term
        first += offset * term
        second += offset * offset * term
    if slope < 0 and slope > -np.inf:
        begin = max(last + 1, int(mean * math.exp(slope)))
        for direction in (1, -1):
            a = begin if direction > 0 else begin - 1
            if a <= last:
                continue
            log_term = log_poisson(float(a), mean) + table[start + length - 1] + slope * (a - last) - peak
            while log_term > _LOG_NEGLIGIBLE and a > last:
                term = math.exp(log_term)
                offset = float(a - about)
                total += term
                first += offset * term
                second += offset * offset * term
                if direction > 0:
                    log_term += log_mean - math.log(a + 1.0) + slope
                else:
                    log_term -= log_mean - math.log(float(a)) + slope
                a += direction
    shift = first / total
    return peak + math.log(total), about + shift, max(second / total - shift * shift, 0.0)


@compiled
def _cell(
    kind: int, x: int, numbers: Floats, places: Integers, table: Floats, mean: float
) -> tuple[float, float, float]:
    """Return log f, E[a | x] and Var(a | x) of one cell with a mean of zero or more."""
    if mean <= 0:
        if kind == EXACT:
            return (0.0 if x == 0 else -np.inf), 0.0, 0.0
        if kind == COLUMN:
            alone = places[FIRST] == 0 and places[LENGTH] > 0
            return (table[places[START]] if alone else -np.inf), 0.0, 0.0
        return _log_noise(kind, numbers, places, table, float(x)), 0.0, 0.0
    if kind == EXACT:
        return log_poisson(float(x), mean), float(x), 0.0
    if kind == COLUMN:
        return _column(numbers, places, table, mean)
    return _log_concave(kind, x, numbers, places, table, mean)


@compiled
def evaluate(
    kinds: Integers,
    observed: Integers,
    numbers: Floats,
    places: Integers,
    table: Floats,
    means: Floats,
    logarithms: Floats,
    expected: Floats,
    variances: Floats,
) -> None:
    """Fill in log f, E[a | x] and Var(a | x) of every cell."""
    for c in range(kinds.size):
        logarithms[c], expected[c], variances[c] = _cell(
            kinds[c], observed[c], numbers[c], places[c], table, means[c]
        )


@compiled
def _root(
    kind: int, x: int, numbers: Floats, places: Integers, table: Floats, low: float, high: float, start: float
) -> float:
    """Return the mean in [low, high] at which E[a | x] = mean, which exceeds it below and falls short above.

    Newton's method on E/mean - 1 in the logarithm of the mean, inside a bracket that every step narrows.
    """
    mean = start
    for _ in range(_STEPS):
        _, expected, variance = _cell(kind, x, numbers, places, table, mean)
        if expected > mean:
            low = mean
        else:
            high = mean
        if abs(expected - mean) <= 1e-13 * mean or high - low <= 1e-15 * high:
            break
        information = mean - variance
        step = math.exp(min(max((expected - mean) / information, -3.0), 3.0)) if information > 0 else 0.0
        mean = mean * step
        if not low < mean < high:
            mean = (low + high) / 2 if low > 0 or high < 1e-3 else high / 8
        if high < _SMALLEST_MEAN:
            return 0.0
    return mean


@compiled
def saturate(
    kinds: Integers,
    observed: Integers,
    numbers: Floats,
    places: Integers,
    table: Floats,
    several: NDArray[np.bool_],
    means: Floats,
    logarithms: Floats,
) -> None:
    """Fill in the mean that makes each value by itself the likeliest, and log f there.

    Where P(x | a) rises and then falls in a, so does f in the mean, because the Poisson family is totally
    positive: one root of E[a | x] = mean is the maximum. Of laws with several peaks a grid finds the highest.
    """
    for c in range(kinds.size):
        kind, x, own, place = kinds[c], observed[c], numbers[c], places[c]
        if kind == EXACT:
            means[c] = float(x)
            logarithms[c] = _cell(kind, x, own, place, table, means[c])[0]
            continue
        start = max(float(x), 1.0)
        high = 2 * start + 1
        if kind == COLUMN:
            high = max(high, place[FIRST] + place[LENGTH] + 1.0)
        while _cell(kind, x, own, place, table, high)[1] > high:
            high *= 2
        low = 0.0
        if several[c]:
            points = 4 * (place[LENGTH] + 2)
            step = high / points
            top = -np.inf
            for i in range(1, points):
                value = _cell(kind, x, own, place, table, i * step)[0]
                if value > top:
                    top, start = value, i * step
            low, high = start - step, start + step
        best = _root(kind, x, own, place, table, low, high, min(start, 0.5 * (low + high)))
        value = _cell(kind, x, own, place, table, best)[0]
        nobody = _cell(kind, x, own, place, table, 0.0)[0]
        if nobody >= value:
            best, value = 0.0, nobody
        means[c], logarithms[c] = best, value


@compiled
def inverted_poisson(means: Floats, uniforms: Floats) -> Integers:
    """Return a Poisson count for each mean: outcomes in turn from the mode outward, until they hold the uniform."""
    found = np.zeros(means.size, dtype=np.int64)
    for i in range(means.size):
        mean, left = means[i], uniforms[i]
        if mean <= 0:
            continue
        mode = int(mean)
        up = down = math.exp(log_poisson(float(mode), mean))
        a, b = mode, mode
        found[i] = mode
        left -= up
        # What rounding leaves beyond the last float goes to the mode.
        while left > 0 and up + down > 1e-300:
            a += 1
            up *= mean / a
            left -= up
            if left <= 0:
                found[i] = a
                break
            if b > 0:
                down *= b / mean
                b -= 1
                left -= down
                if left <= 0:
                    found[i] = b
            else:
                down = 0.0
    return found
