"""The error of a published cell as a function of its count: one curve for all cells of a table."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.table import CellCounts
from tabulary.errors import InvalidTable
from tabulary.planning.accuracy import normal_quantile

CONFIDENCE = 0.95

# No table has larger counts, and so no larger error.
_LARGEST = 2.0**53
_NAMES = ("low", "high", "reach")


@dataclass(frozen=True)
class ErrorCurve:
    """The half-width of a 95 % interval as a function of the published count x: low + (high - low) · x/(x + reach).

    It rises from `low` in an empty cell towards `high` in a large one, and is half-way at `reach`. The law of errors of
    a shaped table has no closed form, so the standard error is defined from the half-width: it is that of a normal
    error with the same interval.

    >>> curve = ErrorCurve(low=6.0, high=10.0, reach=40.0)
    >>> curve.half_widths(np.array([0, 40, 1_000_000])).round(2).tolist()
    [6.0, 8.0, 10.0]
    >>> ErrorCurve.from_description(curve.describe()) == curve
    True
    """

    low: float
    high: float
    reach: float

    def __post_init__(self) -> None:
        numbers = (self.low, self.high, self.reach)
        if not all(_is_number(number) for number in numbers):
            raise InvalidTable("a curve of errors consists of finite numbers from 0 to 2**53.")
        if not (self.low <= self.high and self.reach > 0):
            raise InvalidTable("a curve of errors does not fall, and has a reach above zero.")

    def half_widths(self, counts: CellCounts) -> Floats:
        """Return the half-width of the 95 % interval of each count."""
        sizes = np.maximum(np.asarray(counts, dtype=np.float64), 0.0)
        found: Floats = self.low + (self.high - self.low) * (sizes / (sizes + self.reach))
        return found

    def standard_errors(self, counts: CellCounts) -> Floats:
        """Return the standard error of each count."""
        found: Floats = self.half_widths(counts) / normal_quantile(CONFIDENCE)
        return found

    def describe(self) -> dict[str, Any]:
        """Return the curve as plain data."""
        return {name: float(getattr(self, name)) for name in _NAMES}

    @classmethod
    def from_description(cls, described: Mapping[str, Any]) -> "ErrorCurve":
        """Return the curve that `describe` wrote; raise InvalidTable for anything else."""
        if not isinstance(described, Mapping) or set(described) != set(_NAMES):
            raise InvalidTable(f"a curve of errors has the fields {', '.join(_NAMES)}, and no others.")
        return cls(*(described[name] for name in _NAMES))


@dataclass(frozen=True, eq=False)
class CurveErrors:
    """The law of the errors of published counts that follow one curve. Impossible cells are exact."""

    counts: CellCounts
    curve: ErrorCurve
    impossible: NDArray[np.bool_]

    @property
    def standard_errors(self) -> Floats:
        """The standard error of each cell."""
        return np.where(self.impossible, 0.0, self.curve.standard_errors(self.counts))

    def half_widths(self, confidence: float) -> Floats:
        """Return how far each cell may be from the truth with this probability."""
        stretch = normal_quantile(confidence) / normal_quantile(CONFIDENCE)
        return np.where(self.impossible, 0.0, stretch * self.curve.half_widths(self.counts))

    def at(self, index: Any) -> "CurveErrors":
        """Return the law of the cells at a numpy index."""
        return CurveErrors(np.array(self.counts[index]), self.curve, np.array(self.impossible[index]))

    def transpose(self, order: list[int]) -> "CurveErrors":
        """Return the same law with the axes in another order."""
        return CurveErrors(self.counts.transpose(order), self.curve, self.impossible.transpose(order))


def _is_number(value: object) -> bool:
    """Return whether this is a number that a curve may hold; it may come from a file that anyone wrote."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= _LARGEST
        and math.isfinite(value)
    )
