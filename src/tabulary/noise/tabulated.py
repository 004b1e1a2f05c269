"""Noise whose probabilities are written down one by one, as exact fractions."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.errors import InvalidNoise
from tabulary.noise.checks import as_integers, sample_in_pieces
from tabulary.noise.entropy import Entropy
from tabulary.noise.integer import AddedNoise
from tabulary.noise.inversion import Inversion
from tabulary.noise.slots import Slots
from tabulary.noise.truncated import LARGEST_BOUND


@dataclass(frozen=True)
class Tabulated(AddedNoise):
    """Noise with P(`lowest` + i) = `weights[i]` / Σ `weights`, drawn exactly.

    The weights are whole numbers, so the law is exact, without rounding. It need not be symmetric or unbiased. Zero
    weights at the ends are dropped. A draw costs one 64-bit word.

    >>> noise = Tabulated(-1, (1, 2, 1))
    >>> noise.pmf([-1, 0, 1, 2]).tolist(), noise.mean, noise.variance
    ([0.25, 0.5, 0.25, 0.0], 0.0, 0.5)
    """

    lowest: int
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        weights = tuple(self.weights)
        if not weights or any(isinstance(w, bool) or not isinstance(w, int) or w < 0 for w in weights):
            raise InvalidNoise("the weights of a tabulated noise must be whole numbers from zero on.")
        if sum(weights) == 0:
            raise InvalidNoise("at least one weight of a tabulated noise must be positive.")
        if isinstance(self.lowest, bool) or not isinstance(self.lowest, int):
            raise InvalidNoise(
                f"the lowest value of a tabulated noise must be a whole number, not {self.lowest!r}."
            )
        if max(abs(self.lowest), abs(self.lowest + len(weights))) > LARGEST_BOUND:
            raise InvalidNoise(f"the values of a tabulated noise must lie within ±{LARGEST_BOUND:,}.")
        first, last = (next(i for i, w in enumerate(side) if w) for side in (weights, weights[::-1]))
        # Values at an end that never occur are no part of the law, so no boundary of the sampler lies at 0 or 1.
        object.__setattr__(self, "lowest", self.lowest + first)
        object.__setattr__(self, "weights", weights[first : len(weights) - last])

    @classmethod
    def from_probabilities(
        cls, lowest: int, probabilities: NDArray[np.float64], *, bits: int = 62
    ) -> "Tabulated":
        """Return the law whose weights are `probabilities` in units of 2**-`bits`, rounded to the nearest.

        A numerical solver finds floats; the published and drawn law is this exact one.

        >>> Tabulated.from_probabilities(0, np.array([0.25, 0.75]), bits=2).weights
        (1, 3)
        """
        one = 1 << bits
        return cls(lowest, tuple(round(Fraction(float(p)) * one) for p in probabilities))

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent draws from exactly this law.

        >>> from tabulary.noise import SystemEntropy
        >>> Tabulated(3, (0, 1, 0)).sample(4, SystemEntropy()).tolist()
        [4, 4, 4, 4]
        """
        return sample_in_pieces(partial(_inversion(self).draw, entropy=entropy), size)

    @property
    def support(self) -> NDArray[np.int64]:
        """The values from the lowest to the highest listed one."""
        return np.arange(self.lowest, self.lowest + len(self.weights))

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The probability of every value of the support."""
        total = sum(self.weights)
        return np.array([float(Fraction(w, total)) for w in self.weights])

    @property
    def mean(self) -> float:
        """The expected value: zero if the noise is unbiased."""
        total = sum(self.weights)
        return float(Fraction(sum(w * (self.lowest + i) for i, w in enumerate(self.weights)), total))

    @property
    def variance(self) -> float:
        """The variance, about the mean."""
        total = sum(self.weights)
        mean = Fraction(sum(w * (self.lowest + i) for i, w in enumerate(self.weights)), total)
        square = Fraction(sum(w * (self.lowest + i) ** 2 for i, w in enumerate(self.weights)), total)
        return float(square - mean**2)

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return P(X = k) for every integer k."""
        places = as_integers(k) - self.lowest
        inside = (places >= 0) & (places < len(self.weights))
        return np.where(inside, self.probabilities[np.where(inside, places, 0).astype(np.intp)], 0.0)

    def describe(self) -> dict[str, str]:
        """Return the lowest value and the weights, exactly.

        >>> Tabulated(-1, (1, 2, 1)).describe()
        {'family': 'tabulated', 'lowest': '-1', 'weights': '1 2 1'}
        """
        # A common divisor says nothing.
        shared = math.gcd(*self.weights)
        weights = " ".join(str(w // shared) for w in self.weights)
        return {"family": "tabulated", "lowest": str(self.lowest), "weights": weights}


@lru_cache(maxsize=256)
def _inversion(noise: Tabulated) -> Inversion:
    total = sum(noise.weights)
    below = list(accumulate(noise.weights))[:-1]

    def slots(bits: int) -> Slots:
        return Slots(noise.lowest, tuple((w << bits) // total for w in below))

    return Inversion(slots)
