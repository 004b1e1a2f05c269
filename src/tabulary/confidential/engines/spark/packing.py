"""Codes packed into 64-bit words, so that a record of twenty columns leaves Spark as two numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.store import Codes

# The sign bit is not used: a word is never negative, in any language.
_WORD_BITS = 63


@dataclass(frozen=True)
class Packing:
    """Which bits of which word hold the code of each column.

    A column of n levels has the codes 0 to n, the last one for "not a level". Columns go into words in their order,
    each into the first word with room for it.

    >>> packing = Packing.of([2, 5, 70_000])
    >>> packing.shifts, packing.masks, packing.count
    ((0, 2, 5), (3, 7, 131071), 1)
    >>> Packing.of([70_000] * 4).words
    (0, 0, 0, 1)
    """

    words: tuple[int, ...]
    shifts: tuple[int, ...]
    masks: tuple[int, ...]

    @classmethod
    def of(cls, levels: Sequence[int]) -> "Packing":
        """Return a packing for columns with these numbers of levels."""
        words, shifts, filled = [], [], [0]
        widths = [n.bit_length() for n in levels]
        for width in widths:
            word = next((w for w, bits in enumerate(filled) if bits + width <= _WORD_BITS), len(filled))
            if word == len(filled):
                filled.append(0)
            words.append(word)
            shifts.append(filled[word])
            filled[word] += width
        return cls(tuple(words), tuple(shifts), tuple((1 << width) - 1 for width in widths))

    @property
    def count(self) -> int:
        """The number of words per record."""
        return max(self.words) + 1

    def unpack(self, words: Sequence[NDArray[np.int64]], columns: Sequence[Codes]) -> None:
        """Write the code of each column into the given array."""
        # Only executors unpack, so the compiler is loaded here.
        from tabulary.confidential.engines.spark.unpacking import unpack

        for word, shift, mask, column in zip(self.words, self.shifts, self.masks, columns, strict=True):
            unpack(words[word], shift, mask, column)
