"""The source of randomness: always an argument, by default the operating system."""

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidNoise


class Entropy(Protocol):
    """A source of independent, uniform 64-bit words."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words. No word is ever returned twice."""
        ...


class SystemEntropy:
    """The operating system's cryptographic generator.

    It has no seed and keeps no state in this process, so nothing here can be replayed, forked or written
    into a release.

    >>> SystemEntropy().words(3).shape
    (3,)
    """

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` fresh words from `os.urandom`."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    def __repr__(self) -> str:
        return "SystemEntropy()"


def fresh_words(entropy: Entropy, count: int) -> NDArray[np.uint64]:
    """Return `count` words from `entropy`, or raise InvalidNoise.

    Without this check, numpy could repeat a single word over many cells, and their noise would cancel.
    """
    words = entropy.words(count)
    if words.shape != (count,) or words.dtype != np.uint64:
        raise InvalidNoise(
            f"{entropy!r} was asked for {count} words of 64 bits "
            f"and gave {words.dtype} of shape {words.shape}. Nothing was drawn."
        )
    return words
