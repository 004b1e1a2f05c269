"""Exact inversion: a uniform number whose bits are drawn only as far as they are needed."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tabulary.noise.entropy import Entropy, fresh_words
from tabulary.noise.slots import Slots

WORD_BITS = 64
_GUIDE_BITS = 16
_GUIDE_SHIFT = np.uint64(WORD_BITS - _GUIDE_BITS)
_UNCLEAR = np.iinfo(np.int16).min


class Inversion:
    """Draws outcomes whose probabilities are exactly the lengths between the boundaries of `slots`.

    `slots(bits)` gives the boundaries as certain floors at any number of bits. The first 16 bits of a word
    decide a draw whose cell of the unit interval holds no boundary; all 64 decide one whose slot holds none;
    a tie draws 64 more bits and is looked up in the table of 128, and so on until it is decided. No draw is
    ever rounded to an outcome.
    """

    def __init__(self, slots: Callable[[int], Slots]) -> None:
        self._slots = slots
        lowest, floors = slots(WORD_BITS)
        self._lowest = lowest
        self._floors = np.array(floors, dtype=np.uint64)
        cells = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << _GUIDE_SHIFT
        last_words = cells | np.uint64((1 << int(_GUIDE_SHIFT)) - 1)
        below = np.searchsorted(self._floors, cells, side="left")
        through = np.searchsorted(self._floors, last_words, side="right")
        if lowest <= _UNCLEAR or lowest + len(floors) >= -_UNCLEAR:
            raise ArithmeticError(
                f"{len(floors)} boundaries are more than the guide can hold. Nothing was drawn."
            )
        self._guide = np.where(below == through, below + lowest, _UNCLEAR).astype(np.int16)

    def draw(self, count: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return `count` independent outcomes; one word per draw, and one more for every tie."""
        words = fresh_words(entropy, count)
        outcomes: NDArray[np.int64] = self._guide[(words >> _GUIDE_SHIFT).astype(np.intp)].astype(np.int64)
        unclear = np.flatnonzero(outcomes == _UNCLEAR)
        left = np.searchsorted(self._floors, words[unclear], side="left")
        right = np.searchsorted(self._floors, words[unclear], side="right")
        outcomes[unclear] = left + self._lowest
        for tied in unclear[left != right]:
            outcomes[tied] = settle(self._slots, int(words[tied]), WORD_BITS, entropy)
        return outcomes


def settle(slots: Callable[[int], Slots], prefix: int, bits: int, entropy: Entropy) -> int:
    """Return the outcome of a uniform number that begins with the `bits` bits of `prefix`.

    Each round that stays undecided draws 64 more bits. The undecided part of the unit interval is at most
    (number of boundaries) · 2**-bits, so the rounds end with probability one; the outer boundaries move
    outward with the bits, so no outcome is out of reach.
    """
    while True:
        lowest, floors = slots(bits)
        left, right = bisect_left(floors, prefix), bisect_right(floors, prefix)
        if left == right:
            return lowest + left
        prefix = (prefix << WORD_BITS) | int(fresh_words(entropy, 1)[0])
        bits += WORD_BITS
