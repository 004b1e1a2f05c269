"""A number that left through a mechanism, with everything that is known about its error."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.noise import DiscreteLaplace
from tabulary.noise.checks import check_half_width

Interval = tuple[float, float]


@dataclass(frozen=True)
class Answer:
    """A noisy statistic: its value, its standard error, an interval, what was promised and what was spent.

    All errors come from the noise. They say how far `value` may be from the same statistic of the rounded records,
    not from that of a population from which the records were drawn. `measured` are the noisy whole numbers from
    which everything else is computed, and `noise` is the law that was added to each of them.
    """

    statistic: str
    value: int | float
    standard_error: float
    spent: PureDP
    neighbours: Neighbours
    guarantee: str
    noise: DiscreteLaplace
    measured: tuple[int, ...]
    _interval: Callable[[float], Interval] = field(repr=False, compare=False)

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return two ends that contain the exact statistic with at least this probability."""
        check_half_width(confidence, 1)
        return self._interval(confidence)

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"{self.statistic} {_shown(self.value)}, standard error {self.standard_error:.3g}, 95 % interval "
            f"{_shown(low)} to {_shown(high)}. {self.guarantee}"
        )


def inside(ends: Interval, possible: Interval) -> Interval:
    """Return an interval without impossible values; if nothing is left, the nearest possible end.

    >>> inside((-2, 3), (0, 10)), inside((-2, -1), (0, 10))
    ((0, 3), (0, 0))
    """
    low, high = possible
    return min(max(ends[0], low), high), min(max(ends[1], low), high)


def plain(number: Fraction) -> int | float:
    """Return a fraction as an integer where it is one, otherwise as the nearest double.

    >>> plain(Fraction(3)), plain(Fraction(1, 4))
    (3, 0.25)
    """
    return number.numerator if number.denominator == 1 else float(number)


def _shown(number: int | float) -> str:
    """Return a number for a sentence, without an exponent where it is large."""
    return f"{number:.6g}" if abs(number) < 1e6 else f"{number:,.0f}"
