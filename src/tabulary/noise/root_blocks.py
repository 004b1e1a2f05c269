"""Blocks of integers by the distance of their roots from the root of a centre, in whole numbers.

They carry the proposals of `square_root.py`. Place 0 is the block of all b with |√b - √a| < w; place ±i, i ≥ 1, that
of all b with i·w ≤ ±(√b - √a) < (i + 1)·w. Every integer from 0 on lies in exactly one block.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from tabulary.noise.enclosure import Enclosure, certain_floors, divide, divide_up, exponential, multiply
from tabulary.noise.entropy import Entropy, fresh_words
from tabulary.noise.inversion import WORD_BITS
from tabulary.noise.slots import Slots

# A word and an exponent at distance i from the centre are computed in doubles with a dozen roundings, each of at
# most 2**-53 of a number below i + 1; a comparison closer than i + 1 times this is left to integers.
_MARGIN = 2.0**-48


@dataclass(frozen=True)
class RootBlocks:
    r"""The blocks about `centre` whose width w is the largest power of two with `rate`·w ≤ 1/2.

    >>> blocks = RootBlocks(Fraction(1, 2), 10)
    >>> blocks.width, [list(range(*blocks.ends(place))) for place in (-3, -2, -1, 0)]
    (Fraction(1, 1), [[0], [1], [2, 3, 4], [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]])
    """

    rate: Fraction
    centre: int = field(repr=False)

    @cached_property
    def width(self) -> Fraction:
        """The largest power of two that is at most 1/(2·`rate`)."""
        most = 1 / (2 * self.rate)
        if most >= 1:
            return Fraction(1 << (int(most).bit_length() - 1))
        return Fraction(1, 1 << (math.ceil(1 / most) - 1).bit_length())

    def ends(self, place: int) -> tuple[int, int]:
        """Return the first integer of a block and the one behind its last."""
        first = self._edge(place) if place > 0 else self._edge(place - 1) + 1
        end = self._edge(place) + 1 if place < 0 else self._edge(place + 1)
        return first, end

    def described(
        self, places: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the first integer of each block, its size, and the bits of the power of two not below its size.

        >>> [column.tolist() for column in RootBlocks(Fraction(1, 2), 10).described(np.array([0, -1, -3]))]
        [[5, 2, 0], [13, 3, 1], [4, 2, 0]]
        """
        distinct, rows = np.unique(places, return_inverse=True)
        table = []
        for place in distinct.tolist():
            first, end = self.ends(place)
            table.append((first, end - first, _padding(end - first)))
        firsts, sizes, bits = np.array(table, dtype=np.int64).reshape(-1, 3)[rows].T
        return firsts, sizes, bits

    def slots(self, bits: int) -> Slots:
        r"""Return the slots of the place of a proposal, as `slots.py` explains them.

        The block at distance i weighs 2**k·q**i, q = exp(-rate·w), with 2**k the first power of two that is not
        below its size; an empty block weighs nothing.

        >>> slots = RootBlocks(Fraction(1, 2), 10).slots(8)
        >>> slots.lowest, slots.floors[:8]
        (-3, (1, 3, 16, 103, 155, 187, 207, 219))
        """
        steps = self._steps(bits)
        behind = sum(self._edge(-i) >= 0 for i in range(1, steps + 1))

        def boundaries(precision: int) -> list[Enclosure]:
            # Half of the guard bits are left to the weights that are not summed one by one.
            halfway = (precision + bits) // 2
            ratio = exponential(self.rate * self.width, precision)
            powers = [(1 << precision, 1 << precision)]
            for _ in range(self._steps(halfway) - 1):
                powers.append(multiply(powers[-1], ratio, precision))
            rest = 1 << (precision - halfway)
            below = _tails([self._padded(-i, power) for i, power in enumerate(powers)], rest)[1:]
            above = _tails([self._padded(i, power) for i, power in enumerate(powers)], rest)
            total = (below[0][0] + above[0][0], below[0][1] + above[0][1])
            return [divide(tail, total, precision) for tail in (*below[:behind], *above[1 : steps + 1])]

        floors = certain_floors(boundaries, bits)
        last = (1 << bits) - 1
        return Slots(-behind, (*reversed(floors[:behind]), *(last - floor for floor in floors[behind:])))

    def keep(
        self, places: NDArray[np.int64], values: NDArray[np.int64], entropy: Entropy
    ) -> NDArray[np.bool_]:
        r"""Return, for each value b at its place, a coin flip of probability exp(-x), x = rate·(\|√b - √a\| - i·w).

        The exponent lies between 0 and 1/2. In a sequence of uniform numbers V₁, V₂, …, the first with Vₖ ≥ x/k has
        an odd k with probability exp(-x): Canonne, Kamath & Steinke (2020), Algorithm 1. Doubles compare where they
        can tell; the rest, one comparison in 2**40 or so, is settled by integer roots. No exponential is needed.
        """
        distances = np.abs(places).astype(np.float64)
        shifts = (values - self.centre).astype(np.float64)
        x = float(self.rate) * (root_distances(shifts, self.centre) - distances * float(self.width))
        margins = (distances + 1) * _MARGIN
        kept = np.empty(values.size, dtype=np.bool_)
        undecided = np.arange(values.size)
        order = 1
        while undecided.size:
            words = fresh_words(entropy, undecided.size)
            gaps = words * 2.0**-WORD_BITS - x[undecided] / order
            less = gaps < 0
            for unclear in np.flatnonzero(np.abs(gaps) <= margins[undecided]):
                place, value = int(places[undecided[unclear]]), int(values[undecided[unclear]])
                less[unclear] = self._settle(place, value, order, int(words[unclear]), entropy)
            kept[undecided[~less]] = order % 2 == 1
            undecided = undecided[less]
            order += 1
        return kept

    def _edge(self, steps: int) -> int:
        """Return the integer next to (√a + steps·w)², or on it, on the side away from a; -1 if there is none."""
        over, under = self.width.as_integer_ratio()
        square = (steps * over) ** 2 + under**2 * self.centre
        cross = _root_up(4 * (steps * over * under) ** 2 * self.centre)
        if steps > 0:
            return divide_up(square + cross, under**2)
        if (steps * over) ** 2 > under**2 * self.centre:
            return -1
        return (square - cross) // under**2

    def _steps(self, bits: int) -> int:
        r"""Return a number of blocks beyond which those of either side weigh less than 2**-bits together.

        The block at distance i ≥ 1 holds at most s = 2w√a + (2i + 1)w² + 1 integers and weighs less than 2s·q**i.
        As rate·w > 1/4, q < 2**-(1/3), and Σ q**j < 5, Σ j·q**j < 20 over all j ≥ 0. The sum from i on is
        therefore below q**i times 10s + 80w².
        """
        w, root = self.width, _root_up(self.centre)
        steps = 3 * bits
        while math.ceil(20 * w * root + (20 * steps + 90) * w * w + 10) << bits >= 1 << (steps // 3):
            steps += 3
        return steps

    def _padded(self, place: int, power: Enclosure) -> Enclosure:
        """Return the weight of a block at whose distance the law has fallen to `power`."""
        first, end = self.ends(place)
        if first >= end:
            return 0, 0
        padding = _padding(end - first)
        return power[0] << padding, power[1] << padding

    def _settle(self, place: int, value: int, order: int, word: int, entropy: Entropy) -> bool:
        """Return whether the uniform number that begins with the bits of `word` is below x / order."""
        prefix, bits = word, WORD_BITS
        while True:
            lower, upper = self._exponent(place, value, bits)
            if (prefix + 1) * order <= lower:
                return True
            if prefix * order >= upper:
                return False
            prefix = (prefix << WORD_BITS) | int(fresh_words(entropy, 1)[0])
            bits += WORD_BITS

    def _exponent(self, place: int, value: int, precision: int) -> Enclosure:
        r"""Return an enclosure of rate·(\|√b - √a\| - i·w), a few units of the rate wide."""
        larger, smaller = max(value, self.centre) << 2 * precision, min(value, self.centre) << 2 * precision
        edge = abs(place) * self.width * (1 << precision)
        lower = self.rate * (math.isqrt(larger) - _root_up(smaller) - edge)
        upper = self.rate * (_root_up(larger) - math.isqrt(smaller) - edge)
        return math.floor(lower), math.ceil(upper)


def root_distances(shifts: NDArray[np.float64], centre: int) -> NDArray[np.float64]:
    r"""Return \|√(a + shift) - √a\| as \|shift\| / (√(a + shift) + √a), which loses no digits.

    >>> root_distances(np.array([-19.0, 0.0, 21.0]), 100).tolist()
    [1.0, 0.0, 1.0]
    """
    roots = np.sqrt(np.maximum(centre + shifts, 0)) + math.sqrt(centre)
    # One of two different counts is at least 1; the distance of two zeros is 0.
    return np.asarray(np.abs(shifts) / np.maximum(roots, 1))


def _tails(weights: list[Enclosure], rest: int) -> list[Enclosure]:
    """Return Σ weight from each index on, where all that is not listed weighs at most `rest`."""

    def add(tail: Enclosure, weight: Enclosure) -> Enclosure:
        return tail[0] + weight[0], tail[1] + weight[1]

    return list(accumulate(reversed(weights), add, initial=(0, rest)))[::-1]


def _padding(size: int) -> int:
    """Return the bits of the first power of two that is not below `size`."""
    return (size - 1).bit_length() if size else 0


def _root_up(value: int) -> int:
    """Return the integer square root, rounded up."""
    root = math.isqrt(value)
    return root + (root * root < value)
