"""The discrete Gaussian distribution, exactly."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.privacy import ZCDP, Loss
from tabulary.noise.acceptance import accept
from tabulary.noise.checks import as_integers, check_half_width, folded, sample_in_pieces
from tabulary.noise.count_likelihood import GAUSSIAN, CountLikelihood
from tabulary.noise.entropy import Entropy, fresh_words
from tabulary.noise.gaussian_noise import GaussianNoise
from tabulary.noise.integer import shown
from tabulary.noise.inversion import WORD_BITS, Inversion
from tabulary.noise.slots import gaussian_slots
from tabulary.noise.sums import NEGLIGIBLE, half_width_of_sum, smallest
from tabulary.noise.theta import gaussian_tail, log_gaussian_characteristic, theta, theta_variance

# Below σ = 2**9 every value has its own boundary; above, blocks keep σ/block within [2**8, 2**9).
_BLOCK_SIGMA_BITS = 8


@dataclass(frozen=True)
class DiscreteGaussian(GaussianNoise):
    r"""Noise with P(k) ∝ exp(-k² / (2σ²)) on all integers, σ² = `variance_parameter`.

    Added to integers of L2 sensitivity Δ it is (Δ²/(2σ²))-zero-concentrated differentially private: Canonne,
    Kamath & Steinke (2020). Unbiased. Its variance is a little below σ², noticeably so only for σ < 1. A draw
    costs one 64-bit word below σ = 512, about three above.

    >>> noise = DiscreteGaussian.from_sigma(40)
    >>> noise.variance_parameter
    Fraction(1600, 1)
    >>> noise.half_width(0.95)
    78
    """

    family: ClassVar[str] = "discrete-gaussian"
    formula: ClassVar[str] = "P(k) ∝ e^{−k² / (2σ²)}"
    wide: ClassVar[float] = 3.0
    power: ClassVar[int] = 2

    @property
    def unit_costs(self) -> Mapping[type[Loss], Fraction]:
        """ρ = 1/(2σ²) for a change of one: Canonne, Kamath & Steinke (2020), Theorem 14."""
        return {ZCDP: self.rate}

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent draws from exactly this law.

        >>> from tabulary.noise import SystemEntropy
        >>> DiscreteGaussian(9).sample((2, 4), SystemEntropy()).shape
        (2, 4)
        """
        block_bits = _block_bits(self.variance_parameter)
        inversion = _inversion(self.variance_parameter)
        if not block_bits:
            return sample_in_pieces(lambda count: inversion.draw(count, entropy), size)

        def draw(count: int) -> NDArray[np.int64]:
            drawn = np.empty(count, dtype=np.int64)
            filled = 0
            while filled < count:
                blocks = inversion.draw(count - filled, entropy)
                offsets = (fresh_words(entropy, blocks.size) >> np.uint64(WORD_BITS - block_bits)).astype(
                    np.int64
                )
                # Block 0 holds the value 0 alone, and its weight is not an envelope.
                offsets[blocks == 0] = 0
                starts = 1 + ((np.abs(blocks) - 1) << block_bits)
                kept = accept(self.variance_parameter, starts, offsets, entropy)
                values = (np.sign(blocks) * (starts + offsets))[kept]
                drawn[filled : filled + values.size] = values
                filled += values.size
            return drawn

        return sample_in_pieces(draw, size)

    @property
    def variance(self) -> float:
        """The variance of the integer law, by the theta series that converges faster."""
        return theta_variance(float(self.variance_parameter))

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return P(X = k) for every integer k.

        >>> DiscreteGaussian(1).pmf([-1, 0, 1]).round(4).tolist()
        [0.242, 0.3989, 0.242]
        """
        square = float(self.variance_parameter)
        return np.asarray(np.exp(-(as_integers(k) ** 2) / (2 * square)) / theta(square))

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return P(X ≤ k) for every integer k.

        >>> DiscreteGaussian(1).cdf([-1, 0]).round(4).tolist()
        [0.3005, 0.6995]
        """
        values = as_integers(k)
        below = gaussian_tail(float(self.variance_parameter), np.where(values < 0, -values, values + 1))
        return np.where(values < 0, below, 1 - below)

    def half_width(self, confidence: float, terms: int = 1) -> int:
        r"""Return the smallest h with P(\|X₁ + … + X_terms\| ≤ h) ≥ `confidence`.

        From the tail itself for one draw; for sums see `half_width_of_sum`.

        >>> DiscreteGaussian(1).half_width(0.95), DiscreteGaussian(1).half_width(0.95, terms=4)
        (2, 4)
        """
        check_half_width(confidence, terms)
        square = float(self.variance_parameter)
        # The discrete Gaussian is sub-Gaussian with parameter σ²: Canonne, Kamath & Steinke (2020).
        reach = math.ceil(math.sqrt(2 * terms * square * math.log(2 / NEGLIGIBLE)))
        if terms > 1:
            return half_width_of_sum(
                partial(log_gaussian_characteristic, square), terms, confidence, reach=reach
            )

        def covers(h: int) -> bool:
            return h >= reach or 2 * float(gaussian_tail(square, np.array(h + 1.0))) <= 1 - confidence

        return smallest(covers, upper=reach)

    def characteristic(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return E exp(itX) for every real t.

        >>> DiscreteGaussian(1).characteristic([0.0, 1.0]).round(4).tolist()
        [1.0, 0.6065]
        """
        angles = folded(t)
        logarithms = log_gaussian_characteristic(float(self.variance_parameter), angles.ravel())
        return np.exp(logarithms).reshape(angles.shape)

    def log_moment_bound(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return σ²t²/2: the discrete Gaussian is sub-Gaussian, Canonne, Kamath & Steinke (2020).

        >>> DiscreteGaussian(1).log_moment_bound([0.0, 2.0]).tolist()
        [0.0, 2.0]
        """
        return np.asarray(float(self.variance_parameter) * np.asarray(t, dtype=np.float64) ** 2 / 2)

    def likelihood(self, terms: int = 1) -> CountLikelihood:
        """Return log P(x | a): exactly a parabola for one draw."""
        if terms > 1:
            return super().likelihood(terms)
        return CountLikelihood(GAUSSIAN, float(self.variance_parameter), math.log(float(self.pmf(0))))

    @property
    def words(self) -> str:
        """The law and its variance parameter for a reader."""
        return f"discrete Gaussian, σ² = {shown(self.variance_parameter)}"


def _block_bits(variance_parameter: Fraction) -> int:
    # The floor of σ is the integer square root of the floor of σ².
    return max(0, math.isqrt(int(variance_parameter)).bit_length() - 1 - _BLOCK_SIGMA_BITS)


@lru_cache(maxsize=32)
def _inversion(variance_parameter: Fraction) -> Inversion:
    return Inversion(partial(gaussian_slots, variance_parameter, _block_bits(variance_parameter)))
