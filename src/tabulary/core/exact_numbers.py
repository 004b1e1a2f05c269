"""Numbers as their writer intended them: exact fractions inside, plain numbers at the edge."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from tabulary.errors import PublicError

_NUMBER = "a whole number, a decimal such as 0.5 or a fraction such as '1/8'"

_LONGEST = 300


def exact_fraction(value: object, *, name: str, error: type[PublicError]) -> Fraction:
    """Return `value` as the fraction that its writer intended, or raise `error` with `name`.

    A float is read through its shortest decimal form, so 0.1 is one tenth and not the nearest double.

    >>> exact_fraction(0.1, name="epsilon", error=PublicError)
    Fraction(1, 10)
    >>> exact_fraction("1/8", name="rho", error=PublicError)
    Fraction(1, 8)
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal | str):
        raise error(f"{name} must be {_NUMBER}, not {type(value).__name__}.")
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    text = str(value).strip()
    # A short text such as 1e999999999 would otherwise become a number of a billion digits.
    _, _, exponent = text.lower().partition("e")
    if len(text) > _LONGEST or len(exponent.lstrip("+-0")) > 3:
        raise error(f"{name} is beyond all bounds: it has more digits than any number that is meant.")
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise error(f"{name} must be {_NUMBER}, not {value!r}.") from None


def exact_sum(weights: Sequence[Fraction], numbers: Sequence[int]) -> Fraction:
    """Return Σ weight · number with one product per distinct weight, because thousands of parts share a few.

    >>> exact_sum([Fraction(1, 2), Fraction(1, 3), Fraction(1, 2)], [1, 3, 5])
    Fraction(4, 1)
    """
    times: Counter[Fraction] = Counter()
    for weight, number in zip(weights, numbers, strict=True):
        times[weight] += number
    by_denominator: Counter[int] = Counter()
    for weight, number in times.items():
        by_denominator[weight.denominator] += weight.numerator * number
    terms = [Fraction(numerator, denominator) for denominator, numerator in by_denominator.items()]
    # In pairs, so that the denominators of most sums stay short.
    while len(terms) > 1:
        terms = [sum(terms[i : i + 2], Fraction(0)) for i in range(0, len(terms), 2)]
    return terms[0] if terms else Fraction(0)


def show_fraction(value: Fraction) -> str:
    """Return the shortest text from which the exact value can be read back.

    >>> [show_fraction(Fraction(x)) for x in ("1", "1/2", "1/3", "1/1000000000", "123456.75")]
    ['1', '0.5', '1/3', '1e-9', '123456.75']
    """
    if max(abs(value.numerator), value.denominator) >= 10**_LONGEST:
        return "a number of hundreds of digits"
    if value.denominator == 1:
        return str(value.numerator)
    ratio = f"{value.numerator}/{value.denominator}"
    decimal = f"{float(value):.12g}"
    if Fraction(decimal) != value:
        return ratio
    mantissa, separator, exponent = decimal.partition("e")
    return f"{mantissa}e{int(exponent)}" if separator else decimal
