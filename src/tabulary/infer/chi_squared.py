"""The upper tail of the χ² law, to twelve digits, and the two functions that keep the digits of such tails.

A Poisson probability of n at mean μ is exp(-n log(n/μ) - μ + n - error(n)) / √(2πn), with the error of Stirling's
formula: no large numbers cancel (Loader 2000, "Fast and accurate computation of binomial probabilities").
"""

import math

from tabulary.errors import InvalidTable

_PRECISION = 1e-17
# Too small to tell from zero.
_TINY = 1e-300


def upper_tail(statistic: float, degrees_of_freedom: float) -> float:
    """Return P(χ² ≥ statistic), to a relative 1e-12 as long as it is a float.

    With a = degrees/2 and x = statistic/2 it is the regularised incomplete gamma function Q(a, x): one minus the
    power series of P below a + 1, Lentz's continued fraction above. With no degrees of freedom χ² is 0.

    >>> round(upper_tail(3.841458820694124, 1), 12), upper_tail(0.0, 5)
    (0.05, 1.0)
    """
    if not (degrees_of_freedom >= 0 and math.isfinite(degrees_of_freedom)) or math.isnan(statistic):
        raise InvalidTable("a χ² law has a finite number of degrees of freedom, zero or more.")
    if statistic <= _TINY:
        return 1.0
    if degrees_of_freedom == 0 or statistic == math.inf:
        return 0.0
    a, x = degrees_of_freedom / 2, statistic / 2
    # xᵃ e⁻ˣ / Γ(a + 1), the Poisson probability for a real a.
    point = math.exp(-deviance(a, x) - stirling_error(a)) / math.sqrt(2 * math.pi * a)
    if x < a + 1:
        return 1 - point * _series(a, x)
    return point * a * _fraction(a, x)


def stirling_error(n: float) -> float:
    """Return log Γ(n + 1) - log(√(2πn) (n/e)ⁿ) for a positive n, to the last digits."""
    if n < 16:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - 0.9189385332046727
    s = 1 / (n * n)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - s / 1188) * s) * s) * s) / n


def deviance(n: float, mean: float) -> float:
    """Return n log(n/mean) + mean - n for positive numbers, without cancellation where they are near."""
    if abs(n - mean) >= 0.1 * (n + mean):
        return n * math.log(n / mean) + mean - n
    v = (n - mean) / (n + mean)
    total = (n - mean) * v
    power = 2 * n * v
    j = 1
    while True:
        power *= v * v
        more = total + power / (2 * j + 1)
        if more == total:
            return total
        total = more
        j += 1


def _series(a: float, x: float) -> float:
    """Return Σ xⁿ / ((a + 1) … (a + n))."""
    total = term = 1.0
    n = a
    while term > _PRECISION * total:
        n += 1
        term *= x / n
        total += term
    return total


def _fraction(a: float, x: float) -> float:
    """Return Γ(a, x) eˣ x⁻ᵃ, the continued fraction 1/(x + 1 - a - 1(1 - a)/(x + 3 - a - …))."""
    b = x + 1 - a
    c, d = 1 / _TINY, 1 / b
    found = d
    i = 0
    while True:
        i += 1
        factor = -i * (i - a)
        b += 2
        d = factor * d + b
        d = 1 / (d if abs(d) > _TINY else _TINY)
        c = b + factor / c
        c = c if abs(c) > _TINY else _TINY
        found *= d * c
        if abs(d * c - 1) < 4e-16:
            return found
