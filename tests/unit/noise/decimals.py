"""The normal law in decimal arithmetic, by other roads than the package takes."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

DIGITS = 300


def decimal(value) -> Decimal:
    fraction = Fraction(value)
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


@cache
def decimal_pi() -> Decimal:
    """π by the arithmetic-geometric mean of Gauss and Legendre."""
    with localcontext(prec=DIGITS + 20):
        a, b, t, p = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), 1
        for _ in range(12):
            a, b, t, p = (a + b) / 2, (a * b).sqrt(), t - p * ((a - b) / 2) ** 2, 2 * p
        return (a + b) ** 2 / (4 * t)


@cache
def decimal_normal_tail(square: Fraction) -> Decimal:
    """P(Z > √square) by the alternating series of the error function, good to some 200 digits up to 300."""
    with localcontext(prec=DIGITS):
        half = decimal(square) / 2
        term, total, order = Decimal(1), Decimal(1), 0
        while abs(term) > Decimal(10) ** -DIGITS or order < half:
            order += 1
            term *= -half / order
            total += term / (2 * order + 1)
        return Decimal("0.5") - total * (decimal(square) / (2 * decimal_pi())).sqrt()


def rounded_below(square: Fraction, k: int) -> Fraction:
    """P(X < k) of the rounded Gaussian with σ² = `square`."""
    tail = Fraction(decimal_normal_tail(Fraction((2 * k - 1) ** 2) / (4 * square)))
    return 1 - tail if k >= 1 else tail


def words_of(value: Fraction, words: int) -> list[int]:
    """The first binary digits of a number in the unit interval, as words of 64."""
    digits = int(value * 2 ** (64 * words))
    return [(digits >> (64 * (words - 1 - i))) & (2**64 - 1) for i in range(words)]
