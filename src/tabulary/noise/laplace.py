"""The discrete Laplace distribution, exactly."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.noise.entropy import Entropy
from tabulary.noise.integer import as_integers, check_half_width, exact_scale, sample_in_pieces
from tabulary.noise.inversion import Inversion
from tabulary.noise.slots import laplace_digit_slots, laplace_slots
from tabulary.noise.sums import chernoff_reach, half_width_of_sum

# Below a scale of 2**7 every value has its own boundary; above, blocks keep scale/block within [2**6, 2**7).
_BLOCK_SCALE_BITS = 6
_DIGIT_BITS = 12
# exp(-x) is no longer a float for x beyond this.
_LARGEST_TILT = 600.0


@dataclass(frozen=True)
class DiscreteLaplace:
    r"""Noise with P(k) = (1 - q) / (1 + q) · q**\|k\|, q = exp(-1/`scale`), on all integers.

    Added to integers of L1 sensitivity Δ it is (Δ/scale)-differentially private: Ghosh, Roughgarden &
    Sundararajan (2012). Unbiased. A draw costs one 64-bit word below a scale of 128, and one more for each
    factor of 4096 begun above it.

    >>> noise = DiscreteLaplace(Fraction(105))
    >>> noise.half_width(0.95)
    315
    >>> round(noise.variance, 2)
    22049.83
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", exact_scale(self.scale, name="scale"))

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent draws from exactly this law.

        >>> from tabulary.noise import SystemEntropy
        >>> DiscreteLaplace(3).sample((2, 4), SystemEntropy()).shape
        (2, 4)
        """
        block_bits = _block_bits(self.scale)
        block, *digits = _inversions(self.scale)

        def draw(count: int) -> NDArray[np.int64]:
            blocks = block.draw(count, entropy)
            if not digits:
                return blocks
            offsets = np.zeros(count, dtype=np.int64)
            for place, digit in enumerate(digits):
                offsets += digit.draw(count, entropy) << (place * _DIGIT_BITS)
            # The sign of block 0 is 0: it holds the value 0 alone, whatever the offset.
            return np.asarray(np.sign(blocks) * (1 + ((np.abs(blocks) - 1) << block_bits) + offsets))

        return sample_in_pieces(draw, size)

    @property
    def variance(self) -> float:
        """2q / (1 - q)², without cancellation at either end of the scales."""
        rate = float(1 / self.scale)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return P(X = k) for every integer k.

        >>> DiscreteLaplace(1).pmf([-1, 0, 1]).round(4).tolist()
        [0.17, 0.4621, 0.17]
        """
        rate = float(1 / self.scale)
        return np.asarray(math.tanh(rate / 2) * np.exp(-rate * np.abs(as_integers(k))))

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return P(X ≤ k) for every integer k.

        >>> DiscreteLaplace(1).cdf([-1, 0]).round(4).tolist()
        [0.2689, 0.7311]
        """
        values = as_integers(k)
        below = self._tail(np.where(values < 0, -values, values + 1))
        return np.where(values < 0, below, 1 - below)

    def half_width(self, confidence: float, terms: int = 1) -> int:
        r"""Return the smallest h with P(\|X₁ + … + X_terms\| ≤ h) ≥ `confidence`.

        Closed form for one draw; for sums see `half_width_of_sum`.

        >>> DiscreteLaplace(1).half_width(0.95), DiscreteLaplace(1).half_width(0.95, terms=4)
        (3, 5)
        """
        check_half_width(confidence, terms)
        if terms > 1:
            return half_width_of_sum(
                lambda t: -np.log1p(2 * self.variance * np.sin(t / 2) ** 2),
                terms,
                confidence,
                reach=self._reach(terms),
            )
        rate = float(1 / self.scale)
        guess = math.ceil(-(math.log1p(-confidence) - math.log(2) + math.log1p(math.exp(-rate))) / rate) - 1
        # The logarithm may land one to either side of the truth; the tail itself decides.
        for h in range(max(0, guess - 1), guess + 1):
            if 2 * float(self._tail(np.array(h + 1.0))) <= 1 - confidence:
                return h
        return max(0, guess + 1)

    def characteristic(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return E exp(itX) = 1 / (1 + 2·variance·sin²(t/2)).

        >>> DiscreteLaplace(1).characteristic([0.0, 1.0]).round(4).tolist()
        [1.0, 0.5416]
        """
        angles = np.asarray(t, dtype=np.float64)
        return np.asarray(1 / (1 + 2 * self.variance * np.sin(angles / 2) ** 2))

    def log_moment_bound(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return log E exp(tX), which is finite for t strictly between ±1/`scale`.

        >>> DiscreteLaplace(1).log_moment_bound([0.0, 0.5, 1.0]).round(4).tolist()
        [0.0, 0.2679, inf]
        """
        tilts = np.abs(np.asarray(t, dtype=np.float64))
        finite = tilts < min(float(1 / self.scale), _LARGEST_TILT)
        lost = 2 * self.variance * np.sinh(np.where(finite, tilts, 0.0) / 2) ** 2
        # Rounding may put a tilt beside the pole on the pole.
        finite &= lost < 1
        return np.where(finite, -np.log1p(-np.where(finite, lost, 0.0)), np.inf)

    def describe(self) -> dict[str, str]:
        """Return the family and the exact scale.

        >>> DiscreteLaplace("1/3").describe()
        {'family': 'discrete-laplace', 'scale': '1/3'}
        """
        return {"family": "discrete-laplace", "scale": str(self.scale)}

    def _tail(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(X ≥ k) = q**k / (1 + q) for k ≥ 1."""
        rate = float(1 / self.scale)
        return np.asarray(np.exp(-rate * k) / (1 + math.exp(-rate)))

    def _reach(self, terms: int) -> int:
        largest = min(float(1 / self.scale), _LARGEST_TILT)
        return chernoff_reach(self.log_moment_bound, terms, largest=largest)


def _block_bits(scale: Fraction) -> int:
    return max(0, int(scale).bit_length() - 1 - _BLOCK_SCALE_BITS)


@lru_cache(maxsize=32)
def _inversions(scale: Fraction) -> tuple[Inversion, ...]:
    """Return the inversion of the block, then those of the offset's digits, lowest place first."""
    block_bits = _block_bits(scale)
    places = range(0, block_bits, _DIGIT_BITS)
    return (
        Inversion(partial(laplace_slots, scale, block_bits)),
        *(
            Inversion(partial(laplace_digit_slots, scale, place, min(_DIGIT_BITS, block_bits - place)))
            for place in places
        ),
    )
