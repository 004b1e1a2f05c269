"""Proven bounds on the tail of the normal law, in whole numbers.

Enclosures as in `enclosure.py`: pairs of integers whose ends are rounded outward at every step.
"""

import math
from fractions import Fraction
from functools import lru_cache

from tabulary.noise.enclosure import Enclosure, divide, divide_up, exponential, multiply, shift_up


def normal_tail(square: Fraction, precision: int) -> Enclosure:
    r"""Return an enclosure of P(Z > √`square`) at `precision`, for a standard normal Z and a positive square.

    With y the square, P(0 < Z < √y) = √(y / 2π) · exp(-y/2) · Σ yⁿ / (1·3·5···(2n + 1)), a series of positive
    terms. It is summed until its terms at least halve and one is below a unit; what is left out is then
    smaller than that term. The sum is at most exp(y/2), so the working precision has 3/4·y ≥ (y/2)·log₂e bits
    more than is asked for. Only the square has to be a fraction: the standard deviation may be irrational.

    >>> lower, upper = normal_tail(Fraction(4), 60)
    >>> lower <= Fraction("0.02275013194817920720028263716653") * 2**60 <= upper
    True
    >>> upper - lower <= 2
    True
    """
    if square >= 2 * precision:
        # P(Z > x) < exp(-x²/2) < 2**-precision.
        return 0, 1
    # The root of a small square loses half of the digits that the square has before its first one.
    small = max(0, square.denominator.bit_length() - square.numerator.bit_length())
    working = precision + int(3 * square / 4) + small // 2 + 24
    scaled = square.numerator << working
    y = scaled // square.denominator, divide_up(scaled, square.denominator)
    mass = multiply(_series(y, working), exponential(square / 2, working), working)
    mass = multiply(mass, _square_root(divide(y, two_pi(working), working), working), working)
    half = 1 << (working - 1)
    guard = working - precision
    return max(0, half - mass[1]) >> guard, shift_up(half - mass[0], guard)


def _series(y: Enclosure, working: int) -> Enclosure:
    """Return an enclosure of Σ yⁿ / (1·3·5···(2n + 1))."""
    lower = upper = term_lower = term_upper = 1 << working
    halves_from = 2 * (y[1] >> working) + 2
    odd = 1
    while term_upper > 1 or odd < halves_from:
        odd += 2
        term_lower = ((term_lower * y[0]) >> working) // odd
        term_upper = -((-term_upper * y[1] >> working) // odd)
        lower += term_lower
        upper += term_upper
    return lower, upper + term_upper


def _square_root(value: Enclosure, precision: int) -> Enclosure:
    """Return an enclosure of the square root of a non-negative number."""
    return math.isqrt(value[0] << precision), math.isqrt(value[1] << precision) + 1


@lru_cache(maxsize=64)
def two_pi(precision: int) -> Enclosure:
    """Return an enclosure of 2π = 32·arctan(1/5) - 8·arctan(1/239), Machin's formula."""
    fifth, small = _inverse_tangent(5, precision), _inverse_tangent(239, precision)
    return 32 * fifth[0] - 8 * small[1], 32 * fifth[1] - 8 * small[0]


def _inverse_tangent(cotangent: int, precision: int) -> Enclosure:
    """Return an enclosure of arctan(1/`cotangent`) by its alternating series."""
    lower = upper = 0
    odd, power = 1, cotangent
    while True:
        term_lower, term_upper = (1 << precision) // (odd * power), divide_up(1 << precision, odd * power)
        if odd % 4 == 1:
            lower, upper = lower + term_lower, upper + term_upper
        else:
            lower, upper = lower - term_upper, upper - term_lower
        if term_upper == 1:
            # The terms alternate and fall, so the rest is smaller than this one.
            return lower - 1, upper + 1
        odd, power = odd + 2, power * cotangent * cotangent
