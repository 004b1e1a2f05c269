"""Survey weights: how much one record counts, in whole units and up to a public maximum."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.errors import InvalidArgument, WeightedRecords

_MAX_UNITS = 10**9

# Weights outside these bounds are typing errors, and would not be exact as doubles.
_BOUND = Fraction(10) ** 100

# The decimal form of a double, the division and the unit as a double each have a relative error of at most 2**-53;
# their product has at most this error, with room to spare.
_DOUBT = 2.0**-50


@dataclass(frozen=True)
class Weights:
    """The column of survey weights, their public maximum, and the unit in which they are counted.

    A weighted table sums weights instead of counting records. One record more or less changes one cell by at most
    the maximal weight w (Rinott, O'Keefe, Shlomo & Skinner 2018, section 8), here by at most `sensitivity` = w /
    unit whole units: integers are measured, so integers are summed. A weight is read as the shortest decimal number
    of its double, clipped at the maximum, and rounded to the nearest unit, a tie to the even one. The maximum is a
    whole number of units, so rounding cannot exceed it.

    All three are public and must be chosen without looking at the weights: the largest weight in the data is a
    value of one record. The unit has no default, because only a person who knows how the weights were written knows
    how fine it must be: 1/100 keeps two decimals. Rounding changes a sum by at most half a unit per record, and a
    weight of less than half a unit counts nothing. A finer unit costs memory but no privacy, because noise grows
    with the maximum and not with the unit. Clipping biases sums downward.

    The promise holds if a record brings its own weight, as a design weight does. A weight that was calibrated to
    totals of the same sample depends on the other records: one record more or less would change the weights of all.
    Then the true sensitivity is larger than this one.

    >>> weights = Weights("w", 50, unit="1/100")
    >>> weights.sensitivity
    5000
    >>> print(weights)
    weights 'w' up to 50 in units of 0.01
    """

    column: str
    maximum: Fraction
    unit: Fraction

    def __init__(self, column: str, maximum: object, *, unit: object) -> None:
        if not isinstance(column, str) or not column:
            raise InvalidArgument(f"the name of the column of weights must be text, not {column!r}.")
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "maximum", _positive(maximum, "the maximum weight"))
        object.__setattr__(self, "unit", _positive(unit, "the unit of the weights"))
        units = self.maximum / self.unit
        if units.denominator != 1:
            nearest = -(-units.numerator // units.denominator) * self.unit
            raise InvalidArgument(
                f"the maximum weight {show_fraction(self.maximum)} is not a whole number of units of "
                f"{show_fraction(self.unit)}, in which weights are counted. Choose another unit, or a "
                f"maximum of {show_fraction(nearest)}."
            )
        if units > _MAX_UNITS:
            raise InvalidArgument(
                f"the maximum weight {show_fraction(self.maximum)} is more than {_MAX_UNITS:,} units of "
                f"{show_fraction(self.unit)}. Choose a larger unit."
            )

    @property
    def sensitivity(self) -> int:
        """The largest number of units that one record can add to one cell of a margin."""
        return (self.maximum / self.unit).numerator

    def __str__(self) -> str:
        return f"weights {self.column!r} up to {show_fraction(self.maximum)} in units of {show_fraction(self.unit)}"


def check_weights(weights: object) -> None:
    """Refuse survey weights that are not `Weights`."""
    if weights is not None and not isinstance(weights, Weights):
        raise InvalidArgument(
            "survey weights must be given as Weights('w', maximum=50, unit='1/100'), not as a "
            f"{type(weights).__name__}. Nothing was read."
        )


def refuse_weights(weights: Weights | None, *, use: str, state: str, remedy: str = "") -> None:
    """Raise WeightedRecords where records have weights and `use` is calibrated for records that count one each.

    One record with a weight moves a sum by up to the largest weight, so noise for counts would not hide it.

    >>> refuse_weights(Weights("w", 50, unit=1), use="a plan", state="Nothing was measured.")
    Traceback (most recent call last):
    ...
    tabulary.errors.WeightedRecords: these records have survey weights, but a plan counts every record as one. ...
    """
    if weights is not None:
        raise WeightedRecords(
            f"these records have survey weights, but {use} counts every record as one. {state} "
            f"{remedy or 'Open the records without weights.'}"
        )


def in_units(weights: Weights, numbers: NDArray[np.float64]) -> tuple[NDArray[np.uint32], bool]:
    """Return weights in whole units, and whether one of them was clipped. Confidential.

    Exactly min(round(number / unit), sensitivity) for finite numbers that are not negative, each read as its
    shortest decimal form. Doubles decide if they are certain; a number close to a tie or to the maximum is divided
    as a fraction, each different number once.

    >>> units, clipped = in_units(Weights("w", 2, unit="1/10"), np.array([0.25, 0.35, 1.0, 2.01]))
    >>> units.tolist(), clipped
    ([2, 4, 10, 20], True)
    """
    largest = weights.sensitivity
    # Numbers far above the maximum are cut before the division, so that nothing overflows.
    quotients = np.minimum(numbers, 2 * float(weights.maximum)) / float(weights.unit)
    slack = _DOUBT * quotients
    units = np.rint(quotients)
    from_tie = np.abs(quotients - np.floor(quotients) - 0.5)
    doubtful = (from_tie <= slack) | (np.abs(quotients - largest) <= slack)
    clipped = bool(np.any((quotients > largest) & ~doubtful))
    if doubtful.any():
        different, places = np.unique(numbers[doubtful], return_inverse=True)
        exact = [Fraction(repr(number)) / weights.unit for number in different.tolist()]
        units[doubtful] = np.array([round(quotient) for quotient in exact], dtype=np.float64)[places]
        clipped = clipped or any(quotient > largest for quotient in exact)
    return np.minimum(units, largest).astype(np.uint32), clipped


def _positive(value: object, name: str) -> Fraction:
    number = exact_fraction(value, name=name, error=InvalidArgument)
    if not 1 / _BOUND <= number <= _BOUND:
        raise InvalidArgument(
            f"{name} must be above zero, and neither tiny nor huge, not {show_fraction(number)}."
        )
    return number
