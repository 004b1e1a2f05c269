"""The Laplace mechanism for a statistic whose sensitivity is declared."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from numbers import Rational, Real
from typing import Unpack

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.errors import InvalidColumn, InvalidNoise
from tabulary.noise import DiscreteLaplace
from tabulary.toolbox.answer import Answer, Interval, inside, plain
from tabulary.toolbox.spending import UNSPENT, Debit, Terms

# The step of a statistic for which none is stated, as a part of its sensitivity: fine enough to cost nothing.
_STEPS = 1 << 10


def laplace(
    value: object,
    *,
    sensitivity: object,
    unit: object = None,
    **terms: Unpack[Terms],
) -> Answer:
    r"""Return `value` plus Laplace noise of scale `sensitivity`/ε, in whole steps of `unit`.

    The value is rounded to the nearest multiple of the unit u and integer noise is added to the multiple. Two
    numbers that are Δ apart are at most ⌈Δ/u⌉ apart once rounded, so noise of scale ⌈Δ/u⌉/ε is ε-differentially
    private: nothing is lost where u divides Δ. Without a unit it is Δ/1024. Unbiased about the rounded value.
    The variance is 2b² for the scale b, up to the square of the step over six.

    The promise is only as good as the declared Δ, the largest change that one person can cause in the statistic *as
    it was computed*: in floating point its rounding errors count too. `count`, `total`, `mean` and
    `standard_deviation` derive theirs.

    >>> from tabulary import PureDP
    >>> noisy = laplace(0.731, sensitivity="1/500", privacy=PureDP(1))
    >>> noisy.noise.scale, round(noisy.standard_error, 6)
    (Fraction(1024, 1), 0.002828)
    """
    most = exact_fraction(sensitivity, name="sensitivity", error=InvalidNoise)
    step = most / _STEPS if unit is None else exact_fraction(unit, name="unit", error=InvalidNoise)
    if most <= 0 or step <= 0:
        raise InvalidNoise(
            f"the sensitivity and the unit of a statistic must be positive, not {show_fraction(most)} and "
            f"{show_fraction(step)}. {UNSPENT}"
        )
    description = {"sensitivity": str(most), "unit": str(step)}
    debit = Debit.agree("laplace", description, **terms)
    exact = math.floor(_finite(value) / step + Fraction(1, 2))
    return noisy_multiple("value", exact, math.ceil(most / step), step, debit)


def noisy_multiple(
    statistic: str,
    exact: int,
    sensitivity: int,
    unit: Fraction,
    debit: Debit,
    *,
    possible: Interval = (-math.inf, math.inf),
) -> Answer:
    """Return the answer `unit` · (`exact` + noise), for an integer that one person changes by `sensitivity`.

    Ends of the interval outside the `possible` values are moved to the nearest possible ones: the interval contains
    the truth no less often.
    """
    noise = DiscreteLaplace(sensitivity / debit.privacy.epsilon)
    (measured,) = measure([exact], noise, debit)
    return Answer(
        statistic,
        plain(measured * unit),
        float(unit) * math.sqrt(noise.variance),
        debit.privacy,
        debit.neighbours,
        debit.guarantee,
        noise,
        (measured,),
        partial(_interval, measured, noise, unit, possible),
    )


def measure(exact: Sequence[int], noise: DiscreteLaplace, debit: Debit) -> tuple[int, ...]:
    """Return whole numbers with independent noise, paid for before it is drawn."""
    drawn = debit.pay().draw(noise, len(exact))
    return tuple(number + int(draw) for number, draw in zip(exact, drawn, strict=True))


def _interval(
    measured: int, noise: DiscreteLaplace, unit: Fraction, possible: Interval, confidence: float
) -> Interval:
    width = noise.half_width(confidence)
    return inside((plain((measured - width) * unit), plain((measured + width) * unit)), possible)


def _finite(value: object) -> Fraction:
    """Return the exact number in `value`, or refuse it without showing it."""
    if not isinstance(value, bool):
        if isinstance(value, Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, Real | Decimal) and math.isfinite(value):
            return Fraction(value) if isinstance(value, Decimal) else Fraction(float(value))
    raise InvalidColumn(f"the value of the statistic is not a finite number. {UNSPENT}")
