"""What is public about a column of numbers before anybody looks at it."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.errors import InvalidArgument, InvalidColumn
from tabulary.toolbox.spending import UNSPENT

# Up to here a double is exact for every whole number of units, and every scale of noise is possible.
_LARGEST_STEP = 1 << 52
_MOST_STEPS = 1 << 40


@dataclass(frozen=True, init=False)
class Bounds:
    """A public range [low, high] and the step to which its values are rounded; both are part of the mechanism.

    Every value becomes the nearest multiple of `unit`. The computation is then exact in whole numbers, so it is
    known exactly what one person can change. Rounding changes a value by at most unit/2, which no standard error
    includes. A value outside the range is refused, because wrong bounds are a mistake; with `clamp` it becomes the
    nearer end. The number of clamped values is never reported, because it depends on the records.

    Choose the range without looking at the data: a range that was chosen from the data reveals something about
    them.

    >>> Bounds(0, 110)
    Bounds(low=Fraction(0, 1), high=Fraction(110, 1), unit=Fraction(1, 1), clamp=False)
    >>> Bounds(0, 1, unit=0.25, clamp=True).steps([0.3, 0.9, 7]).tolist()
    [1, 4, 4]
    """

    low: Fraction
    high: Fraction
    unit: Fraction
    clamp: bool

    def __init__(self, low: object, high: object, *, unit: object = 1, clamp: bool = False) -> None:
        for name, value in (("low", low), ("high", high), ("unit", unit)):
            object.__setattr__(self, name, exact_fraction(value, name=name, error=InvalidArgument))
        object.__setattr__(self, "clamp", clamp)
        if not isinstance(clamp, bool):
            raise InvalidArgument(f"clamp must be True or False, not {clamp!r}.")
        if not self.low < self.high:
            raise InvalidArgument(
                f"the bounds need low < high, but {show_fraction(self.low)} is not below "
                f"{show_fraction(self.high)}."
            )
        if self.unit <= 0:
            raise InvalidArgument(f"the unit of bounds must be positive, not {show_fraction(self.unit)}.")
        if (self.low / self.unit).denominator != 1 or (self.high / self.unit).denominator != 1:
            raise InvalidArgument(
                f"both bounds must be multiples of the unit {show_fraction(self.unit)}, to which every value is "
                "rounded. Widen them to the next multiples."
            )
        if max(abs(self.lowest), abs(self.highest)) > _LARGEST_STEP or self.width > _MOST_STEPS:
            raise InvalidArgument(
                "the bounds contain more steps than noise can be drawn for. Choose a coarser unit."
            )

    @property
    def lowest(self) -> int:
        """The lower bound in units."""
        return int(self.low / self.unit)

    @property
    def highest(self) -> int:
        """The upper bound in units."""
        return int(self.high / self.unit)

    @property
    def width(self) -> int:
        """The length of the range in units."""
        return self.highest - self.lowest

    def steps(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return every value in whole units, or refuse them all."""
        given = numbers_of(values)
        if not self.clamp and not ((given >= float(self.low)) & (given <= float(self.high))).all():
            raise InvalidColumn(
                f"at least one value is outside its bounds {self}. {UNSPENT} Widen the bounds, or declare "
                "`clamp=True` to replace such values by the nearer end."
            )
        # Each result depends on one value only and is inside the bounds, with any rounding of the division.
        rounded = np.rint(np.clip(given, float(self.low), float(self.high)) / float(self.unit))
        return np.clip(rounded.astype(np.int64), self.lowest, self.highest)

    def describe(self) -> dict[str, str]:
        """Return the exact bounds as text.

        >>> Bounds(0, 1, unit="1/8").describe()
        {'low': '0', 'high': '1', 'unit': '1/8', 'clamp': 'False'}
        """
        return {name: str(getattr(self, name)) for name in ("low", "high", "unit", "clamp")}

    def __str__(self) -> str:
        return f"{show_fraction(self.low)} to {show_fraction(self.high)}"


def refuse_other_than_bounds(bounds: object) -> None:
    """Refuse bounds that are not declared as such.

    >>> refuse_other_than_bounds(Bounds(0, 1))
    """
    if not isinstance(bounds, Bounds):
        raise InvalidArgument(
            f"the range of the values must be Bounds(low, high), not a {type(bounds).__name__}. {UNSPENT}"
        )


def numbers_of(values: ArrayLike) -> NDArray[np.float64]:
    """Return a column of finite numbers of any length, or raise InvalidColumn, which shows no value.

    >>> numbers_of([1, 2.5]).tolist()
    [1.0, 2.5]
    """
    given = np.asarray(values)
    if given.ndim != 1:
        raise InvalidColumn(f"the values must be a column of numbers. {UNSPENT}")
    # A masked array would lose its mask here, and its hidden values would count.
    proper = not isinstance(values, np.ma.MaskedArray) and given.dtype.kind in "biufO"
    if given.dtype.kind == "O":
        proper = all(isinstance(value, Real | Decimal) for value in given)
    if not proper:
        raise InvalidColumn(f"at least one of the values is not a number. {UNSPENT}")
    found = given.astype(np.float64)
    if not np.isfinite(found).all():
        raise InvalidColumn(
            f"at least one of the values is missing or not finite. {UNSPENT} Give such records a value inside the "
            "bounds that does not depend on the data. With add-remove neighbours they may be left out instead."
        )
    return found
