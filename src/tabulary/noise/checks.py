"""The numbers that a law of noise accepts."""

from collections.abc import Callable
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.arrays import Floats, Integers
from tabulary.core.exact_numbers import exact_fraction
from tabulary.errors import InvalidNoise

# Within these bounds every draw that could occur in the life of the universe fits 64 bits, and every formula
# stays inside double precision. A scale outside them is a mistake.
SMALLEST_SCALE = Fraction(1, 2**40)
LARGEST_SCALE = Fraction(2**40)

# Draws are made in pieces that stay in the processor's cache.
_PIECE = 1 << 16


def exact_scale(value: object, *, name: str, power: int = 1) -> Fraction:
    """Return `value` as an exact fraction within the bounds a noise can be drawn at, or raise InvalidNoise.

    `power` is 2 for a parameter that is the square of a scale.

    >>> exact_scale(0.1, name="scale")
    Fraction(1, 10)
    """
    number = exact_fraction(value, name=name, error=InvalidNoise)
    if number <= 0:
        raise InvalidNoise(f"{name} must be positive, not {value}. Nothing was drawn.")
    if not SMALLEST_SCALE**power <= number <= LARGEST_SCALE**power:
        raise InvalidNoise(
            f"{name} must lie between 2**-{40 * power} and 2**{40 * power}, and {_short(number)} does not. "
            "Nothing was drawn. Count in other units, or spend another budget."
        )
    return number


def _short(number: Fraction) -> str:
    """Return a short text for a number of any size."""
    try:
        return f"{float(number):.6g}"
    except OverflowError:
        return "a number far outside"


def sample_in_pieces(draw: Callable[[int], Integers], size: int | tuple[int, ...]) -> Integers:
    """Return an array of shape `size`, filled by calls of `draw(count)`."""
    shape = (size,) if isinstance(size, int) else tuple(size)
    if any(isinstance(side, bool) or not isinstance(side, int) or side < 0 for side in shape):
        raise InvalidNoise(f"the size of a sample must be non-negative whole numbers, not {size!r}.")
    drawn = np.empty(prod(shape), dtype=np.int64)
    for start in range(0, drawn.size, _PIECE):
        piece = drawn[start : start + _PIECE]
        piece[:] = draw(piece.size)
    return drawn.reshape(shape)


def as_integers(k: ArrayLike) -> Floats:
    """Return whole numbers as floats, or raise InvalidNoise.

    Above 2**53 a float no longer holds every integer; there the probability of every noise within the bounds
    is below the smallest float, so nothing is lost.
    """
    values = np.asarray(k)
    if not np.issubdtype(values.dtype, np.integer):
        raise InvalidNoise(
            f"the values of a noise are integers. It has no probability at values of type {values.dtype}."
        )
    return values.astype(np.float64)


def folded(t: ArrayLike) -> Floats:
    """Return the angles of [0, π] at which a symmetric law on the integers has the same characteristic.

    >>> folded([-1.0, 7.0]).round(4).tolist()
    [1.0, 0.7168]
    """
    turn = 2 * np.pi
    angles = np.asarray(t, dtype=np.float64)
    return np.minimum(np.abs(angles - turn * np.round(angles / turn)), np.pi)


def check_confidence(confidence: float) -> None:
    """Raise InvalidNoise unless this is a probability strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise InvalidNoise(f"a confidence must lie strictly between 0 and 1, not {confidence!r}.")


def check_half_width(confidence: float, terms: int) -> None:
    """Raise InvalidNoise unless a sum of `terms` draws has a half-width at this confidence."""
    check_confidence(confidence)
    if isinstance(terms, bool) or not isinstance(terms, int) or terms < 1:
        raise InvalidNoise(f"the number of terms of a sum must be a positive whole number, not {terms!r}.")
