r"""Counts, totals, means and standard deviations, with their derived sensitivity.

Values are whole numbers of a public unit (`Bounds`), so every statistic here is an integer, or computed from
integers that were measured. In units, with W the width of the range and c the records of one person:

==================== ========================================= ============================================
statistic            add-remove                                replace, of n records
==================== ========================================= ============================================
count                c                                         c
total                c · max(\|low\|, \|high\|)                c · W
mean                 c · W, of two sums that share each value  c · W, of the total
standard deviation   c · W², of three such sums                W² · m(n - m), m = min(c, ⌊n/2⌋), of n² · variance
==================== ========================================= ============================================
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.neighbours import Neighbours
from tabulary.errors import InvalidColumn
from tabulary.noise import DiscreteLaplace
from tabulary.toolbox.answer import Answer, Interval, inside
from tabulary.toolbox.bounds import Bounds, refuse_other_than_bounds
from tabulary.toolbox.laplace import measure, noisy_multiple
from tabulary.toolbox.spending import UNSPENT, Debit, Terms

# A sum of squares is measured in steps so coarse that its sensitivity is about this: no digit of it is worth more.
_SENSITIVITY_BITS = 30


def count(flags: ArrayLike, **terms: Unpack[Terms]) -> Answer:
    """Return how many records have a property, with noise of scale c/ε for c records per person.

    `flags` has a truth value for each record. Adding, removing or replacing a record changes the count by at most
    one. Unbiased, so it may be negative; its interval is not.

    >>> from tabulary import PureDP
    >>> patients = count([True, False, True, True], privacy=PureDP("1/2"))
    >>> patients.noise.scale, round(patients.standard_error, 4)
    (Fraction(2, 1), 2.7992)
    >>> print(patients.spent)
    ε = 0.5
    """
    debit = Debit.agree("count", {}, **terms)
    given = np.asarray(flags)
    # A column without a record has whatever type its maker chose.
    proper = given.dtype == np.bool_ or not given.size
    if given.ndim != 1 or not proper or isinstance(flags, np.ma.MaskedArray):
        raise InvalidColumn(f"a count needs a column of truth values, one per record. {UNSPENT}")
    possible = (0, given.size if debit.neighbours.total_is_public else math.inf)
    exact = int(given.sum())
    return noisy_multiple("count", exact, debit.neighbours.records, Fraction(1), debit, possible=possible)


def total(values: ArrayLike, bounds: Bounds, **terms: Unpack[Terms]) -> Answer:
    r"""Return the sum of the values, rounded to the unit of `bounds`, plus noise of scale Δ/ε.

    Adding a record changes the sum by at most max(\|low\|, \|high\|), replacing one by at most high - low; c
    records per person make it c times that. Unbiased.

    >>> from tabulary import PureDP
    >>> hours = Bounds(0, 80)
    >>> worked = total([38, 40, 20, 60], hours, privacy=PureDP(1))
    >>> worked.noise.scale, round(worked.standard_error, 1)
    (Fraction(80, 1), 113.1)
    """
    refuse_other_than_bounds(bounds)
    debit = Debit.agree("total", bounds.describe(), **terms)
    steps = bounds.steps(values)
    possible = (-math.inf, math.inf)
    if debit.neighbours.total_is_public:
        possible = (float(steps.size * bounds.low), float(steps.size * bounds.high))
    return noisy_multiple(
        "total",
        sum(steps.tolist()),
        total_sensitivity(bounds, debit.neighbours),
        bounds.unit,
        debit,
        possible=possible,
    )


def mean(values: ArrayLike, bounds: Bounds, **terms: Unpack[Terms]) -> Answer:
    r"""Return the mean of the values, rounded to the unit of `bounds`.

    **Replace.** The number of records n is public, the total has sensitivity c·W, and the mean is the noisy total
    over n: the sensitivity W/n of the mean itself. Unbiased.

    **Add-remove.** The number of records is confidential too. Each record shares the width W between the two ends of
    the range: x - low is added to a sum A, high - x to a sum B. Together they change by exactly W, so noise of
    scale c·W/ε on each makes both of them ε-private, with no budget split between a count and a total. The
    mean is low + W·A/(A + B), pulled into the range: its error is no larger than with a public n, as Kulesza,
    Suresh & Wang (2024) find that it need not be. The standard error is that of the linearised ratio, and the
    bias, to the same order, at most its square over the length of the range.

    The interval of the ratio is Fieller's: for the true share m, (1 - m)A - mB is a weighted sum of two draws
    of noise, and no such sum strays further than b·ln(1/α) + 1 with probability above α. A discrete Laplace draw
    is within 1 of a continuous one, as geometric draws are the floors of exponential ones; and of all weights
    1 - m and m the extreme ones spread a sum of log-concave draws most (Proschan 1965).

    >>> from tabulary import PureDP
    >>> ages = Bounds(0, 110)
    >>> people = [23, 45, 31, 67, 52] * 200
    >>> noisy = mean(people, ages, privacy=PureDP(1))
    >>> 0.05 < noisy.standard_error < 0.3, len(noisy.measured)
    (True, 2)
    >>> round(mean(people, ages, privacy=PureDP(1), neighbours="replace").standard_error, 4)
    0.1556
    """
    refuse_other_than_bounds(bounds)
    debit = Debit.agree("mean", bounds.describe(), **terms)
    steps = bounds.steps(values)
    if debit.neighbours.total_is_public:
        if not steps.size:
            raise InvalidColumn(
                f"a mean needs at least one value; here it is public that there is none. {UNSPENT}"
            )
        # More records of one person than there are change no more than all of them.
        records = min(debit.neighbours.records, steps.size)
        return noisy_multiple(
            "mean",
            sum(steps.tolist()),
            records * bounds.width,
            bounds.unit / steps.size,
            debit,
            possible=(float(bounds.low), float(bounds.high)),
        )
    above = sum((steps - bounds.lowest).tolist())
    noise = DiscreteLaplace(debit.neighbours.records * bounds.width / debit.privacy.epsilon)
    a, b = measure([above, bounds.width * steps.size - above], noise, debit)
    share = min(max(a / (a + b), 0.0), 1.0) if a + b > 0 else 0.5
    length = float(bounds.high - bounds.low)
    error = math.sqrt(noise.variance) * math.hypot(share, 1 - share) / max(a + b, bounds.width)
    return Answer(
        "mean",
        float(bounds.low) + length * share,
        # No estimate inside the range errs by more than its length.
        length * min(error, 1.0),
        debit.privacy,
        debit.neighbours,
        debit.guarantee,
        noise,
        (a, b),
        partial(_mean_interval, a, b, float(noise.scale), bounds),
    )


def standard_deviation(values: ArrayLike, bounds: Bounds, **terms: Unpack[Terms]) -> Answer:
    r"""Return √(Σ(xᵢ - mean)²/n) of the values, rounded to the unit of `bounds`, by way of the variance.

    One person can change a standard deviation by W√(n-1)/n (`standard_deviation_sensitivity`), and noise of that
    size, W/(ε√n), drowns it. The variance changes by W²(n-1)/n² only: its noise moves the deviation σ by
    W²/(2σnε), a factor of √n less. So the variance is measured and the root is taken afterwards.

    **Replace.** n²·variance = n·Σx² - (Σx)² is an integer, and it is the sum of (xᵢ - xⱼ)² over all pairs. One
    record is in n - 1 of them. Replacing c records changes it by at most W²·m(n - m), m = min(c, ⌊n/2⌋): from
    all values alike to m of them at the other end. The integer is measured in steps of which the
    sensitivity has 2³⁰ or fewer.

    **Add-remove.** Each record shares W² among three sums, as (x - low)², 2(x - low)(high - x) and (high - x)².
    They change by W² together, so noise of scale c·W²/ε on each is ε-private. With A, B and C the variance is
    W²(AC - B²/4)/(A + B + C)².

    Biased: a noisy variance below zero is taken as zero, and a root is concave. The standard error is that of the
    linearised root, or of a variance of zero where that is smaller. Intervals are exact for replace, and for
    add-remove hold all roots that the three intervals at confidence 1 - α/3 allow.

    >>> from tabulary import PureDP
    >>> ages = Bounds(0, 110)
    >>> people = [23, 45, 31, 67, 52] * 2000
    >>> noisy = standard_deviation(people, ages, privacy=PureDP(1), neighbours="replace")
    >>> 0.04 < noisy.standard_error < 0.08
    True
    """
    refuse_other_than_bounds(bounds)
    debit = Debit.agree("standard deviation", bounds.describe(), **terms)
    steps = (bounds.steps(values) - bounds.lowest).tolist()
    once, twice = sum(steps), sum(step * step for step in steps)
    if debit.neighbours.total_is_public:
        return _deviation_of_known_number(len(steps), once, twice, bounds, debit)
    width = bounds.width
    noise = DiscreteLaplace(debit.neighbours.records * width**2 / debit.privacy.epsilon)
    sums = (twice, 2 * (width * once - twice), width**2 * len(steps) - 2 * width * once + twice)
    a, b, c = measure(sums, noise, debit)
    return _deviation_of_three(a, b, c, noise, bounds, debit)


def total_sensitivity(bounds: Bounds, neighbours: Neighbours) -> int:
    """Return the largest change of a total by one person, in units of `bounds`.

    >>> total_sensitivity(Bounds(-5, 3), Neighbours()), total_sensitivity(Bounds(-5, 3), Neighbours("replace", 2))
    (5, 16)
    """
    if neighbours.relation == "add-remove":
        return neighbours.records * max(abs(bounds.lowest), abs(bounds.highest))
    return neighbours.records * bounds.width


def variance_sensitivity(n: int, bounds: Bounds, neighbours: Neighbours) -> int:
    """Return the largest change of n² times the variance by replacing one person's records, in squared units.

    Exact. Σ over pairs of (xᵢ - xⱼ)² is convex in the new values, so these stand at the ends of the range; what
    the other n - c values add is linear in each of them, so these do too; and with p of them at the upper
    end the change is convex in p. What is left is i new values at one end and all the rest at the other, i(n - i).

    >>> variance_sensitivity(10, Bounds(0, 1), Neighbours("replace"))
    9
    """
    moved = min(neighbours.records, n // 2)
    return bounds.width**2 * moved * (n - moved)


def standard_deviation_sensitivity(n: int, length: float = 1.0) -> float:
    """Return the largest change of a standard deviation by replacing one of `n` values, √(n-1)/n times the range.

    With the other values' mean μ and variance s², the variance is (n-1)/n·s² + (n-1)/n²·(x - μ)². Its root changes
    most where s = 0, and there by √(n-1)/n·|x - μ|. The 1/√n that is often quoted is the sensitivity of the
    sample deviation, with divisor n - 1.

    >>> round(standard_deviation_sensitivity(100), 6)
    0.099499
    """
    return length * math.sqrt(n - 1) / n


def _deviation_of_known_number(n: int, once: int, twice: int, bounds: Bounds, debit: Debit) -> Answer:
    if n < 2:
        raise InvalidColumn(f"a standard deviation needs at least two values. {UNSPENT}")
    most = variance_sensitivity(n, bounds, debit.neighbours)
    step = 1 << max(0, most.bit_length() - _SENSITIVITY_BITS)
    # Rounded down to the step, two numbers are at most as many steps apart as their distance rounded up.
    noise = DiscreteLaplace(math.ceil(Fraction(most, step)) / debit.privacy.epsilon)
    (measured,) = measure([(n * twice - once * once) // step], noise, debit)
    # A step lost up to one by rounding; half of it is the best guess, none where nothing was rounded.
    shift = Fraction(step - 1, 2)
    to_variance = float(bounds.unit) ** 2 / n**2
    variance = max(0.0, float(measured * step + shift) * to_variance)
    spread = step * math.sqrt(noise.variance) * to_variance
    # E|X| of the discrete Laplace law: |√a - √b|² is at most |a - b|.
    at_most = math.sqrt(step / math.sinh(float(1 / noise.scale)) * to_variance)
    return Answer(
        "standard deviation",
        math.sqrt(variance),
        min(at_most, spread / (2 * math.sqrt(variance))) if variance else at_most,
        debit.privacy,
        debit.neighbours,
        debit.guarantee,
        noise,
        (measured,),
        partial(_known_interval, measured, noise, step, to_variance, _longest(bounds)),
    )


def _known_interval(
    measured: int, noise: DiscreteLaplace, step: int, to_variance: float, longest: float, confidence: float
) -> Interval:
    width = noise.half_width(confidence)
    low, high = (measured - width) * step, (measured + width + 1) * step - 1
    return inside((_root(low * to_variance), _root(high * to_variance)), (0.0, longest))


def _deviation_of_three(
    a: int, b: int, c: int, noise: DiscreteLaplace, bounds: Bounds, debit: Debit
) -> Answer:
    length = float(bounds.high - bounds.low)
    deviation = _root(_spread(a, b, c)) if a + b + c > 0 else 0.0
    number = max(a + b + c, bounds.width**2)
    # The slopes of (AC - B²/4)/N² in A, B and C.
    shared = 2 * deviation**2
    slopes = ((c / number - shared), (-b / number / 2 - shared), (a / number - shared))
    spread = math.sqrt(noise.variance) * math.hypot(*slopes) / number
    # Half the range is the largest deviation there is.
    error = min(spread / (2 * deviation) if deviation else math.sqrt(spread), 0.5)
    return Answer(
        "standard deviation",
        min(length * deviation, _longest(bounds)),
        length * error,
        debit.privacy,
        debit.neighbours,
        debit.guarantee,
        noise,
        (a, b, c),
        partial(_three_interval, (a, b, c), noise, bounds),
    )


def _mean_interval(a: int, b: int, scale: float, bounds: Bounds, confidence: float) -> Interval:
    """Return the shares m at which (1 - m)A - mB could be noise, as values."""
    width = scale * -math.log1p(-confidence) + 1
    low, high = float(bounds.low), float(bounds.high)
    if a + b <= 0:
        return low, high
    ends = ((a - width) / (a + b), (a + width) / (a + b))
    return inside((low + (high - low) * ends[0], low + (high - low) * ends[1]), (low, high))


def _three_interval(
    measured: Sequence[int], noise: DiscreteLaplace, bounds: Bounds, confidence: float
) -> Interval:
    """Return the least and the largest deviation of all A, B, C within their half-widths.

    (AC - B²/4)/N² falls in B wherever it is positive. In A it rises up to B + C + B²/(2C) and falls from there, and
    so it does in C. The least is thus at a corner, the largest at a corner or where an edge turns.
    """
    width = noise.half_width(1 - (1 - confidence) / 3)
    (a, a_), (b, b_), (c, c_) = ((max(0, m - width), max(0, m + width)) for m in measured)
    least = min(_spread(x, b_, z) for x, z in product((a, a_), (c, c_)))
    turns: list[tuple[float, float]] = [(_between(a, b + z + b * b / (2 * z), a_), z) for z in (c, c_) if z]
    turns += [(x, _between(c, b + x + b * b / (2 * x), c_)) for x in (a, a_) if x]
    largest = max(_spread(x, b, z) for x, z in [*product((a, a_), (c, c_)), *turns])
    length = float(bounds.high - bounds.low)
    return length * _root(least), min(length * _root(largest), _longest(bounds))


def _spread(a: float, b: float, c: float) -> float:
    """Return (AC - B²/4)/(A + B + C)², the variance over the squared range; zero where nothing is there."""
    number = a + b + c
    return (a / number) * (c / number) - (b / number) ** 2 / 4 if number else 0.0


def _between(low: float, value: float, high: float) -> float:
    return min(max(value, low), high)


def _root(value: float) -> float:
    return math.sqrt(max(0.0, value))


def _longest(bounds: Bounds) -> float:
    """Return the largest standard deviation that values inside the bounds can have."""
    return float(bounds.high - bounds.low) / 2
