"""The Gaussian distribution rounded to integers, exactly."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.arrays import Floats
from tabulary.core.privacy import ZCDP, GaussianDP, Loss
from tabulary.noise.acceptance import accept_points
from tabulary.noise.checks import as_integers, check_half_width, folded, sample_in_pieces
from tabulary.noise.entropy import Entropy, fresh_words
from tabulary.noise.gaussian_noise import GaussianNoise
from tabulary.noise.integer import shown
from tabulary.noise.inversion import WORD_BITS, Inversion
from tabulary.noise.rounding import (
    LARGEST_TILT,
    log_rounded_characteristic,
    log_rounded_moment_bound,
    rounded_pmf,
    rounded_tail,
    rounded_variance,
)
from tabulary.noise.slots import half_line_slots, rounded_gaussian_slots
from tabulary.noise.sums import chernoff_reach, half_width_of_sum, smallest

# Below σ = 2**8 every value has its own boundary; above, blocks keep σ/block within [2**8, 2**9).
_BLOCK_SIGMA_BITS = 8
# One bit of the word that places a point is its sign.
_POSITION_BITS = WORD_BITS - 1


@dataclass(frozen=True)
class RoundedGaussian(GaussianNoise):
    r"""Noise with the law of a continuous Gaussian rounded to the nearest integer, σ² = `variance_parameter`.

    P(k) = Φ((k + ½)/σ) - Φ((k - ½)/σ). For an integer n and a real x, n + round(x) = round(n + x) unless x
    lies on a half, which has probability zero. So adding this noise to a vector of integers has exactly the
    law of adding continuous Gaussian noise and rounding the result: post-processing, which costs nothing.
    So every privacy theorem about the continuous Gaussian mechanism holds, in any dimension. For L2 sensitivity Δ
    these are the exact (ε, δ) curve of Balle & Wang (2018), δ = Φ(Δ/(2σ) - εσ/Δ) - exp(ε)·Φ(-Δ/(2σ) - εσ/Δ), and
    (Δ²/(2σ²))-zero-concentrated differential privacy. Unbiased. Its variance is σ² + 1/12 for all but the smallest σ:
    the price of rounding. A draw costs one 64-bit word below σ = 256, about three above.

    >>> noise = RoundedGaussian.from_sigma(40)
    >>> noise.half_width(0.95), round(noise.variance, 4)
    (78, 1600.0833)
    """

    family: ClassVar[str] = "rounded-gaussian"
    formula: ClassVar[str] = "k = round(x), density ∝ e^{−x² / (2σ²)}"
    # A Gaussian whose variance is larger by 1/12 has the same probabilities, to six digits within thirteen deviations.
    wide: ClassVar[float] = 64.0
    rounding_variance: ClassVar[float] = 1 / 12

    @property
    def unit_costs(self) -> Mapping[type[Loss], Fraction]:
        """ρ = 1/(2σ²) for a change of one, of the exact Gaussian curve and of the zCDP that it implies."""
        return {GaussianDP: self.rate, ZCDP: self.rate}

    def unrounded_cdf(self, noise: Floats, shift: int) -> Floats:
        """Return the probability of at most noise + shift under the Gaussian before it is rounded."""
        from scipy.special import ndtr

        return np.asarray(ndtr((noise + shift) / math.sqrt(self.variance_parameter)))

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent draws from exactly this law.

        A wide law is drawn as the continuous Gaussian itself: a block of the half line, a point in the block with as
        many bits as needed, a coin that accepts or rejects it, a sign. The first bit after the integer part of the
        point rounds it.

        >>> from tabulary.noise import SystemEntropy
        >>> RoundedGaussian(9).sample((2, 4), SystemEntropy()).shape
        (2, 4)
        """
        block_bits = _block_bits(self.variance_parameter)
        inversion = _inversion(self.variance_parameter)
        if block_bits is None:
            return sample_in_pieces(lambda count: inversion.draw(count, entropy), size)
        fraction_bits = _POSITION_BITS - block_bits

        def draw(count: int) -> NDArray[np.int64]:
            drawn = np.empty(count, dtype=np.int64)
            filled = 0
            while filled < count:
                starts = inversion.draw(count - filled, entropy) << block_bits
                words = fresh_words(entropy, starts.size)
                positions = words & np.uint64((1 << _POSITION_BITS) - 1)
                kept = accept_points(self.variance_parameter, starts, positions, fraction_bits, entropy)
                halves = (positions[kept] >> np.uint64(fraction_bits - 1)).astype(np.int64)
                magnitudes = starts[kept] + ((halves + 1) >> 1)
                signs = 1 - 2 * (words[kept] >> np.uint64(_POSITION_BITS)).astype(np.int64)
                drawn[filled : filled + signs.size] = signs * magnitudes
                filled += signs.size
            return drawn

        return sample_in_pieces(draw, size)

    @property
    def variance(self) -> float:
        """The variance of the rounded law, not of the Gaussian that was rounded."""
        return rounded_variance(float(self.variance_parameter))

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return P(X = k) for every integer k.

        >>> RoundedGaussian(1).pmf([-1, 0, 1]).round(4).tolist()
        [0.2417, 0.3829, 0.2417]
        """
        return rounded_pmf(float(self.variance_parameter), np.abs(as_integers(k)))

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return P(X ≤ k) for every integer k.

        >>> RoundedGaussian(1).cdf([-1, 0]).round(4).tolist()
        [0.3085, 0.6915]
        """
        values = as_integers(k)
        below = rounded_tail(float(self.variance_parameter), np.where(values < 0, -values, values + 1))
        return np.where(values < 0, below, 1 - below)

    def half_width(self, confidence: float, terms: int = 1) -> int:
        r"""Return the smallest h with P(\|X₁ + … + X_terms\| ≤ h) ≥ `confidence`.

        From the tail itself for one draw; for sums see `half_width_of_sum`.

        >>> RoundedGaussian(1).half_width(0.95), RoundedGaussian(1).half_width(0.95, terms=4)
        (2, 4)
        """
        check_half_width(confidence, terms)
        square = float(self.variance_parameter)
        reach = chernoff_reach(self.log_moment_bound, terms, largest=self.largest_tilt)
        if terms > 1:
            return half_width_of_sum(
                partial(log_rounded_characteristic, square), terms, confidence, reach=reach
            )

        def covers(h: int) -> bool:
            return h >= reach or 2 * float(rounded_tail(square, np.array(h + 1.0))) <= 1 - confidence

        return smallest(covers, upper=reach)

    def characteristic(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return E exp(itX) for every real t.

        >>> RoundedGaussian(1).characteristic([0.0, 1.0]).round(4).tolist()
        [1.0, 0.5816]
        """
        angles = folded(t)
        logarithms = log_rounded_characteristic(float(self.variance_parameter), angles.ravel())
        return np.exp(logarithms).reshape(angles.shape)

    def log_moment_bound(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return an upper bound of log E exp(tX), infinite beyond t = 16 for σ below 1.

        >>> RoundedGaussian(1).log_moment_bound([0.0, 2.0]).round(4).tolist()
        [0.0, 2.1667]
        """
        return log_rounded_moment_bound(float(self.variance_parameter), np.asarray(t, dtype=np.float64))

    @property
    def largest_tilt(self) -> float:
        """The largest t at which a moment bound is of use."""
        return LARGEST_TILT if self.variance_parameter < 1 else super().largest_tilt

    @property
    def words(self) -> str:
        """The law and its variance parameter for a reader."""
        return f"rounded Gaussian, σ² = {shown(self.variance_parameter)}"


def _block_bits(variance_parameter: Fraction) -> int | None:
    """Return the bits of a block's length, or None where every value has its own boundary."""
    # The floor of σ is the integer square root of the floor of σ².
    bits = math.isqrt(int(variance_parameter)).bit_length() - 1 - _BLOCK_SIGMA_BITS
    return bits if bits >= 0 else None


@lru_cache(maxsize=32)
def _inversion(variance_parameter: Fraction) -> Inversion:
    """Return the inversion of the value, or of the block for a wide law."""
    block_bits = _block_bits(variance_parameter)
    if block_bits is None:
        return Inversion(partial(rounded_gaussian_slots, variance_parameter))
    return Inversion(partial(half_line_slots, variance_parameter, block_bits))
