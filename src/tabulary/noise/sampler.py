"""The exact sampler, and the protocol for other samplers."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tabulary.noise.entropy import Entropy, SystemEntropy


class Drawable(Protocol):
    """Any exact law on the integers."""

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent draws from exactly this law, made from the words of `entropy`."""
        ...


class Sampler(Protocol):
    """Anything that can draw from an exact law."""

    def draw(self, noise: Drawable, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Return independent draws from `noise`."""
        ...


@dataclass(frozen=True)
class ExactSampler:
    """Draws from exactly the requested law, by lazily refined inversion.

    >>> from tabulary.noise import DiscreteLaplace
    >>> ExactSampler().draw(DiscreteLaplace(2), (3, 2)).shape
    (3, 2)
    """

    entropy: Entropy = field(default_factory=SystemEntropy)

    def draw(self, noise: Drawable, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Return independent draws from `noise`, made from this sampler's entropy."""
        return noise.sample(size, self.entropy)
