"""Proven bounds on exponentials, in whole numbers.

An enclosure at precision p is a pair of integers (lower, upper) that promises
lower ≤ x · 2**p ≤ upper. Lower ends are rounded down and upper ends up at every step, so the promise needs
no error analysis: it holds by construction, at every precision. Precision only decides how close the two ends are.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

Enclosure = tuple[int, int]

# The guard bits tried when a floor has to be certain. At the first of these an enclosure rarely contains a multiple
# of 2**-bits; if it still does at the last, the number equals that multiple.
GUARDS = (128, 256, 512, 1024, 2048, 4096)


def divide_up(numerator: int, denominator: int) -> int:
    """Return the quotient rounded towards plus infinity.

    >>> divide_up(7, 2), divide_up(-7, 2)
    (4, -3)
    """
    return -(-numerator // denominator)


def shift_up(value: int, bits: int) -> int:
    """Return `value` / 2**`bits` rounded towards plus infinity.

    >>> shift_up(9, 3), shift_up(8, 3)
    (2, 1)
    """
    return -(-value >> bits)


def multiply(left: Enclosure, right: Enclosure, precision: int) -> Enclosure:
    """Return an enclosure of the product of two non-negative numbers."""
    return (left[0] * right[0]) >> precision, shift_up(left[1] * right[1], precision)


def divide(left: Enclosure, right: Enclosure, precision: int) -> Enclosure:
    """Return an enclosure of the quotient of a non-negative by a positive number."""
    return (left[0] << precision) // right[1], divide_up(left[1] << precision, right[0])


def exponential(exponent: Fraction, precision: int) -> Enclosure:
    r"""Return an enclosure of exp(-`exponent`) at `precision`, for a non-negative exponent.

    The argument is halved until it is at most 2**-8; there the series Σ (-y)**n / n! alternates with
    decreasing terms, so what is left out is smaller than the last term that was added. Squaring undoes the
    halving and doubles the relative width each time, which the extra working bits pay for. The enclosure is
    at most a few units wide.

    >>> lower, upper = exponential(Fraction(1), 100)
    >>> lower <= 2**100 / Fraction("2.718281828459045235360287471352662497757") <= upper
    True
    >>> upper - lower <= 2
    True
    """
    if exponent == 0:
        return 1 << precision, 1 << precision
    if exponent >= precision:
        # exp(-x) < 2**-x, so the value is below one unit and its digits are not needed.
        return 0, 1
    halvings = (exponent.numerator // exponent.denominator).bit_length() + 8
    working = precision + halvings + 16
    numerator, denominator = exponent.numerator, exponent.denominator << halvings
    term_lower = term_upper = lower = upper = 1 << working
    order = 0
    while term_upper > 1:
        order += 1
        term_lower = term_lower * numerator // (denominator * order)
        term_upper = divide_up(term_upper * numerator, denominator * order)
        if order % 2:
            lower, upper = lower - term_upper, upper - term_lower
        else:
            lower, upper = lower + term_lower, upper + term_upper
    lower, upper = lower - 1, upper + 1
    for _ in range(halvings):
        lower, upper = (lower * lower) >> working, shift_up(upper * upper, working)
    return lower >> (working - precision), shift_up(upper, working - precision)


def certain_floors(enclose: Callable[[int], Sequence[Enclosure]], bits: int) -> list[int]:
    """Return ⌊x · 2**`bits`⌋ for every number x that `enclose` encloses, each one certain.

    `enclose(precision)` gives the enclosures; where a pair straddles a multiple of 2**-bits it is asked
    again with more guard bits. Refuses, rather than guesses, when no precision decides.

    >>> certain_floors(lambda precision: [exponential(Fraction(1), precision)], 4)
    [5]
    """
    for guard in GUARDS:
        enclosures = enclose(bits + guard)
        floors = [lower >> guard for lower, _ in enclosures]
        if all(upper >> guard == floor for (_, upper), floor in zip(enclosures, floors, strict=True)):
            return floors
    raise ArithmeticError(
        f"a probability could not be distinguished from a multiple of 2**-{bits} with {GUARDS[-1]} guard bits. "
        "Nothing was drawn."
    )
