"""The boundaries of an inversion, each as the slot of width 2**-bits that it falls in.

Inversion returns the outcome whose stretch of the unit interval holds a uniform number U. The functions here
say where the stretches meet, as certain floors ⌊boundary · 2**bits⌋, for any number of bits. See
`docs/explanation/exact-noise.md` for the argument.

A large scale is cut into blocks of 2**`block_bits` values, so that no table grows with the scale:
block 0 holds the value 0 alone, and block ±j, j ≥ 1, holds the values ±(1 + 2**block_bits·(j - 1) + offset).
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from tabulary.noise.enclosure import Enclosure, certain_floors, divide, divide_up, exponential, multiply
from tabulary.noise.normal import normal_tail


class Slots(NamedTuple):
    """Ascending floors of the boundaries; left of the first one lies the outcome `lowest`."""

    lowest: int
    floors: tuple[int, ...]


@lru_cache(maxsize=16)
def laplace_slots(scale: Fraction, block_bits: int, bits: int) -> Slots:
    r"""Return the slots of the signed block of a discrete Laplace draw.

    With q = exp(-1/scale) and m = 2**block_bits, P(block ≥ j) = q**(1 + m(j - 1)) / (1 + q).

    >>> laplace_slots(Fraction(1), 0, 4)
    Slots(lowest=-3, floors=(0, 1, 4, 11, 14, 15))
    """

    def tails(precision: int) -> list[Enclosure]:
        one = 1 << precision
        step = exponential(Fraction(1 << block_bits) / scale, precision)
        ratio = exponential(1 / scale, precision)
        tail = divide(ratio, (one + ratio[0], one + ratio[1]), precision)
        found = [tail]
        while tail[1] >> (precision - bits):
            tail = multiply(tail, step, precision)
            found.append(tail)
        return found

    return two_sided_slots(tails, bits)


@lru_cache(maxsize=16)
def laplace_digit_slots(scale: Fraction, place_bits: int, digit_bits: int, bits: int) -> Slots:
    r"""Return the slots of one digit of the offset of a discrete Laplace draw inside its block.

    The offset has P(r) ∝ q**r, and q**(Σ digit · place) is a product, so its digits are independent. The
    digit of place 2**place_bits has θ = q**place and P(digit < j) = (1 - θ**j) / (1 - θ**radix).

    >>> laplace_digit_slots(Fraction(1000), 0, 2, 8)
    Slots(lowest=0, floors=(64, 128, 192))
    """
    radix = 1 << digit_bits

    def boundaries(precision: int) -> list[Enclosure]:
        one = 1 << precision
        step = exponential(Fraction(1 << place_bits) / scale, precision)
        powers = [step]
        while len(powers) < radix:
            powers.append(multiply(powers[-1], step, precision))
        whole = (one - powers[-1][1], one - powers[-1][0])
        if whole[0] <= 0:
            # Too coarse to distinguish θ**radix from 1: every boundary may be anywhere, and more bits are needed.
            return [(0, one)] * (radix - 1)
        return [divide((max(0, one - upper), one - lower), whole, precision) for lower, upper in powers[:-1]]

    return Slots(0, tuple(certain_floors(boundaries, bits)))


@lru_cache(maxsize=16)
def truncated_slots(rate: Fraction, power: int, bound: int, bits: int) -> Slots:
    r"""Return the slots of a draw with P(k) ∝ exp(-rate·\|k\|**power) for \|k\| ≤ bound.

    >>> truncated_slots(Fraction(1), 1, 2, 4)
    Slots(lowest=-2, floors=(1, 4, 11, 14))
    """

    def tails(precision: int) -> list[Enclosure]:
        one = 1 << precision
        lower = upper = 0
        sums = []
        for k in range(bound, 0, -1):
            weight = exponential(rate * k**power, precision)
            lower, upper = lower + weight[0], upper + weight[1]
            sums.append((lower, upper))
        total = (one + 2 * lower, one + 2 * upper)
        return [divide(tail, total, precision) for tail in reversed(sums)]

    return two_sided_slots(tails, bits)


@lru_cache(maxsize=16)
def gaussian_slots(variance_parameter: Fraction, block_bits: int, bits: int) -> Slots:
    r"""Return the slots of the signed block of a discrete Gaussian proposal.

    Block 0 weighs 1. Block ±j starts at a = 1 + m(j - 1), m = 2**block_bits, and weighs m·exp(-a²/(2σ²)): its
    size times its heaviest value. With m = 1 this is the discrete Gaussian itself; with m > 1 it is an
    envelope, from which `gaussian.py` rejects.

    >>> gaussian_slots(Fraction(1), 0, 4)
    Slots(lowest=-2, floors=(0, 4, 11, 15))
    """
    size = 1 << block_bits
    rate = 1 / (2 * variance_parameter)

    def tails(precision: int) -> list[Enclosure]:
        one = 1 << precision
        weight = exponential(rate, precision)
        ratio = exponential(rate * size * (2 + size), precision)
        step = exponential(2 * rate * size * size, precision)
        found = _summed_tails(weight, ratio, step, size, precision, bits)
        total = (one + 2 * found[0][0], one + 2 * found[0][1])
        return _inside([divide(tail, total, precision) for tail in found], precision, bits)

    return two_sided_slots(tails, bits)


@lru_cache(maxsize=16)
def rounded_gaussian_slots(variance_parameter: Fraction, bits: int) -> Slots:
    r"""Return the slots of a rounded Gaussian draw: P(X ≥ k) = P(Z > (k - ½)/σ) for a standard normal Z.

    >>> rounded_gaussian_slots(Fraction(1), 4)
    Slots(lowest=-3, floors=(0, 1, 4, 11, 14, 15))
    """

    def tails(precision: int) -> list[Enclosure]:
        found: list[Enclosure] = []
        while not found or found[-1][1] >> (precision - bits):
            edge = 2 * len(found) + 1
            found.append(normal_tail(edge * edge / (4 * variance_parameter), precision))
        return found

    return two_sided_slots(tails, bits)


@lru_cache(maxsize=16)
def half_line_slots(variance_parameter: Fraction, block_bits: int, bits: int) -> Slots:
    r"""Return the slots of the block of a proposal on the half line, for a Gaussian that is then rounded.

    Block j ≥ 0 is the interval from a = m·j to m·(j + 1), m = 2**block_bits, and weighs exp(-a²/(2σ²)): its
    length times its greatest density, up to a factor. `rounded_gaussian.py` rejects from this envelope.

    >>> half_line_slots(Fraction(4), 0, 4)
    Slots(lowest=0, floors=(5, 10, 13, 14, 15))
    """
    rate = Fraction(1 << (2 * block_bits)) / (2 * variance_parameter)

    def tails(precision: int) -> list[Enclosure]:
        one = 1 << precision
        weight, ratio, step = (exponential(times * rate, precision) for times in (1, 3, 2))
        found = _summed_tails(weight, ratio, step, 1, precision, bits)
        total = (one + found[0][0], one + found[0][1])
        return _inside([divide(tail, total, precision) for tail in found], precision, bits)

    last = (1 << bits) - 1
    return Slots(0, tuple(last - floor for floor in certain_floors(tails, bits)))


def _summed_tails(
    weight: Enclosure, ratio: Enclosure, step: Enclosure, size: int, precision: int, bits: int
) -> list[Enclosure]:
    """Return Σ size · weight over all blocks from j on, for j = 1, 2, ….

    The first weight is `weight`, each next one `ratio` times the last, and `ratio` shrinks by `step`.
    """
    one = 1 << precision
    # Half of the guard bits are left to the weights that are not summed one by one. They count `size`
    # times, and so do all but one of those in the total, so their share of it stays as small.
    negligible = 1 << ((precision - bits) // 2)
    weights = [weight]
    while (rest := _geometric_bound(weight[1], ratio[1], one)) is None or rest >= negligible:
        weight, ratio = multiply(weight, ratio, precision), multiply(ratio, step, precision)
        weights.append(weight)
    # The last weight and all that follow it lie between 0 and the geometric bound.
    lower, upper = 0, rest * size
    found = [(lower, upper)]
    for weight in reversed(weights[:-1]):
        lower, upper = lower + size * weight[0], upper + size * weight[1]
        found.append((lower, upper))
    found.reverse()
    return found


def _inside(tails: list[Enclosure], precision: int, bits: int) -> list[Enclosure]:
    """Return the tails that reach 2**-bits, and the first that does not."""
    inside = sum(1 for _, tail in tails if tail >> (precision - bits))
    return tails[: inside + 1]


def _geometric_bound(weight: int, ratio: int, one: int) -> int | None:
    """Return an upper bound of a sum whose terms start at `weight` and shrink at least by `ratio` each."""
    return divide_up(weight * one, one - ratio) if ratio < one else None


def two_sided_slots(tails: Callable[[int], list[Enclosure]], bits: int) -> Slots:
    """Return the slots of a symmetric law from the probabilities of its tails.

    `tails(precision)` returns enclosures of P(X ≥ j), j = 1, 2, …: all that reach 2**-bits and, for a law without a
    bound, the first that does not.

    ⌊(1 - t)·2**bits⌋ is 2**bits - 1 - ⌊t·2**bits⌋ unless the tail t is a multiple of 2**-bits, and then the
    slot that ends at 1 - t serves as well. The first and the last slot of a law without a bound always hold a
    boundary, so a word that falls there is a tie and the tail is never cut.
    """
    floors = certain_floors(tails, bits)
    last = (1 << bits) - 1
    return Slots(-len(floors), (*reversed(floors), *(last - floor for floor in floors)))
