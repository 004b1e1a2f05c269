"""Coins that anyone can toss again.

A simulated table protects nobody and its randomness need not be secret: it estimates a probability that is public. So
the coins of a suppressor follow from a seed that is published with the table, and whoever doubts a decision tosses
them again. By default the seed follows from the public inputs, so that nobody can try seeds until a cell comes out.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

Stream = np.random.Generator


@dataclass(frozen=True)
class PublicSeed:
    """A published seed, and a stream of coins for each purpose.

    >>> PublicSeed("a seed").stream("cell", 3).random() == PublicSeed("a seed").stream("cell", 3).random()
    True
    """

    seed: str

    def stream(self, *purpose: object) -> Stream:
        """Return the coins for one purpose; draw `random()` only, whose values no version of numpy has changed."""
        name = "\x1f".join(map(str, (self.seed, *purpose)))
        return Stream(np.random.PCG64(int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")))
