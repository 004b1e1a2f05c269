"""Random numbers that anyone can draw again.

A simulated table protects nobody, and its randomness need not be secret: it estimates a probability that is public. So
the random numbers of a suppressor follow from a seed that is published with the table, and anyone who doubts a decision
can repeat it. By default the seed follows from the public inputs, so nobody can try seeds until a cell is released.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

Stream = np.random.Generator


@dataclass(frozen=True)
class PublicSeed:
    """A published seed, and a stream of random numbers for each purpose.

    >>> PublicSeed("a seed").stream("cell", 3).random() == PublicSeed("a seed").stream("cell", 3).random()
    True
    """

    seed: str

    def stream(self, *purpose: object) -> Stream:
        """Return the random numbers for one purpose. Use `random()` only: numpy has never changed its values."""
        name = "\x1f".join(map(str, (self.seed, *purpose)))
        return Stream(np.random.PCG64(int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")))
