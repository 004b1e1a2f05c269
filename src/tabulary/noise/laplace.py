"""The discrete Laplace distribution, exactly."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.arrays import Floats
from tabulary.core.privacy import Loss, PureDP
from tabulary.errors import InvalidNoise
from tabulary.noise.checks import as_integers, check_half_width, exact_scale, sample_in_pieces
from tabulary.noise.count_likelihood import COLUMN, LAPLACE, CountLikelihood
from tabulary.noise.entropy import Entropy
from tabulary.noise.integer import IntegerNoise, shown
from tabulary.noise.inversion import Inversion
from tabulary.noise.slots import laplace_digit_slots, laplace_slots
from tabulary.noise.sums import chernoff_reach, half_width_of_sum

# Below a scale of 2**7 every value has its own boundary; above, blocks keep scale/block within [2**6, 2**7).
_BLOCK_SCALE_BITS = 6
_DIGIT_BITS = 12
# exp(-x) is no longer a float for x beyond this.
_LARGEST_TILT = 600.0
# The table of a sum of draws reaches this many scales; the cut makes this many at its end wrong.
_REACH, _SPOILT = 600.0, 25.0
_LARGEST_TABLE = 1 << 20


@dataclass(frozen=True)
class DiscreteLaplace(IntegerNoise):
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

    family: ClassVar[str] = "discrete-laplace"
    kind: ClassVar[str] = "Laplace"
    formula: ClassVar[str] = "P(k) ∝ e^{−|k| / scale}"
    log_concave: ClassVar[bool] = True
    power: ClassVar[int] = 1

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", exact_scale(self.scale, name="scale"))

    @property
    def rate(self) -> Fraction:
        r"""The rate at which log P(k) falls with \|k\|."""
        return 1 / self.scale

    @property
    def unit_costs(self) -> Mapping[type[Loss], Fraction]:
        """ε = 1/scale: no probability falls by more than that factor of e when the value moves by one."""
        return {PureDP: self.rate}

    @classmethod
    def costing(cls, currency: type[Loss], unit_cost: Fraction) -> Self:
        """Return the noise that costs ε = `unit_cost` per unit of change.

        >>> DiscreteLaplace.costing(PureDP, Fraction(1, 3))
        DiscreteLaplace(scale=Fraction(3, 1))
        """
        return cls(1 / unit_cost) if currency is PureDP else super().costing(currency, unit_cost)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return a law with one table of values, and a law that is drawn by blocks."""
        return cls(Fraction(3)), cls(Fraction(5000))

    def loss(self, noise: ArrayLike, shift: ArrayLike) -> Floats:
        r"""Return (\|k + shift\| - \|k\|) / scale, at infinite noise as well."""
        k, moved = np.asarray(noise, dtype=np.float64), np.asarray(shift, dtype=np.float64)
        far = np.abs(moved)
        return np.asarray(np.sign(moved) * np.clip(2 * k + moved, -far, far) / float(self.scale))

    def largest_noise(self, losses: Floats, shift: int) -> Floats:
        """Return the largest real noise with a loss of at most each of `losses`, infinite where there is none."""
        largest = shift / float(self.scale)
        inner = np.minimum((losses * float(self.scale) - shift) / 2, 0)
        return np.where(losses >= largest, np.inf, np.where(losses < -largest, -np.inf, inner))

    @property
    def reach(self) -> int:
        """An h with P(|X| > h) below 1e-30: the tail is at most 2 exp(-h/scale)."""
        return math.ceil(70 * self.scale)

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
            # The sign of block 0 is 0: it holds the value 0 alone, for every offset.
            return np.asarray(np.sign(blocks) * (1 + ((np.abs(blocks) - 1) << block_bits) + offsets))

        return sample_in_pieces(draw, size)

    @property
    def variance(self) -> float:
        """2q / (1 - q)², without cancellation at either end of the scales."""
        rate = float(1 / self.scale)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def fourth_cumulant(self) -> float:
        """2q (1 + 4q + q²) / (1 - q)⁴: that of the difference of two geometric numbers.

        >>> round(DiscreteLaplace(100).fourth_cumulant / DiscreteLaplace(100).variance ** 2, 2)
        3.0
        """
        q = math.exp(-1 / float(self.scale))
        return 2 * q * (1 + 4 * q + q * q) / math.expm1(-1 / float(self.scale)) ** 4

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
        # Rounding may move a tilt next to the pole onto the pole.
        finite &= lost < 1
        return np.where(finite, -np.log1p(-np.where(finite, lost, 0.0)), np.inf)

    @property
    def largest_tilt(self) -> float:
        """The largest t at which a moment is finite: 1/scale."""
        return float(1 / self.scale)

    def log_absolute_moment_bound(self, t: float) -> float:
        r"""Return log E exp(t\|X\|) itself."""
        rate = float(1 / self.scale)
        return (
            math.log(math.tanh(rate / 2)) + math.log1p(math.exp(t - rate)) - math.log(-math.expm1(t - rate))
        )

    def absolute_sum_tail(self, terms: int) -> Callable[[int], float]:
        r"""Return the function h ↦ P(\|X₁\| + … + \|X_terms\| > h).

        The absolute value has the generating function (1-q)/(1+q) · (1+qz)/(1-qz). Its power is that of a binomial
        plus an independent negative binomial number, Bin(terms, q/(1+q)) + NB(terms, 1-q), and this sum is evaluated.
        """
        return _absolute_sum_tail(float(1 / self.scale), terms)

    def likelihood(self, terms: int = 1) -> CountLikelihood:
        """Return log P(x | a): in closed form for one draw, as a table for a sum."""
        if terms > 1:
            return _sum_likelihood(self, terms)
        rate = float(1 / self.scale)
        return CountLikelihood(LAPLACE, rate, math.log(math.tanh(rate / 2)))

    def likelihood_at_minimum(self, minimum: int) -> CountLikelihood:
        """Return log P(a + X ≤ minimum): geometric in the count from the minimum on."""
        counts = np.arange(max(minimum, 0) + 2)
        return CountLikelihood(COLUMN, slope=-float(1 / self.scale), table=np.log(self.cdf(minimum - counts)))

    @property
    def words(self) -> str:
        """The law and its scale for a reader."""
        return f"discrete Laplace, scale {shown(self.scale)}"

    def _tail(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(X ≥ k) = q**k / (1 + q) for k ≥ 1."""
        rate = float(1 / self.scale)
        return np.asarray(np.exp(-rate * k) / (1 + math.exp(-rate)))

    def _reach(self, terms: int) -> int:
        largest = min(self.largest_tilt, _LARGEST_TILT)
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


def _absolute_sum_tail(rate: float, terms: int) -> Callable[[int], float]:
    """Return the function h ↦ P(Σ|X| > h) of `terms` draws with q = exp(-rate)."""
    q = math.exp(-rate)
    log_p = math.log(-math.expm1(-rate))
    one = math.log1p(q)
    ups = np.arange(1.0, terms + 1)
    ways = np.concatenate([[0.0], np.cumsum(np.log((terms + 1 - ups) / ups))])
    binomial = np.exp(ways - rate * np.arange(terms + 1.0) - terms * one)

    def negative_binomial_tails(h: int) -> Floats:
        """Return P(NB > h - j) for j = 0 … terms."""
        values = h - np.arange(terms + 1.0)
        tails = np.ones(terms + 1)
        inside = values >= 0
        # NB > m when m + terms trials of probability 1 - q succeed fewer than `terms` times.
        trials = (values[inside] + terms)[:, None]
        count = np.arange(1.0, terms)[None, :]
        logs = np.cumsum(np.log((trials - count + 1) / count) + log_p + rate, axis=1) - rate * trials
        tails[inside] = np.exp(-rate * trials[:, 0]) + np.sum(np.exp(logs), axis=1)
        return np.minimum(tails, 1.0)

    return lambda h: float(binomial @ negative_binomial_tails(h))


@lru_cache(maxsize=64)
def _sum_likelihood(law: DiscreteLaplace, terms: int) -> CountLikelihood:
    """Return the law of a sum of draws.

    One more draw is a geometric filter over the table forward and backward: positive terms only, so that every
    probability keeps its digits however small it is. The effect of the cut at the end of the table vanishes some
    scales before it; from there on the logarithm continues as a straight line, which it nearly is.
    """
    from tabulary.noise.geometric_filter import filtered

    scale = float(law.scale)
    reach = min(max(2, math.floor(_REACH * scale)), _LARGEST_TABLE)
    kept = reach - math.ceil(_SPOILT * scale) if scale > 0.1 else reach
    if kept < 12 * scale * math.sqrt(2 * terms):
        raise InvalidNoise(
            f"sums of {terms} draws of so wide a noise have millions of values, too many to list. Use a table in which "
            "every cell was measured by itself."
        )
    values = law.pmf(np.arange(-reach, reach + 1))
    for _ in range(terms - 1):
        values = filtered(values, math.exp(-1 / scale), math.tanh(1 / (2 * scale)))
    return CountLikelihood.symmetric(values[reach : reach + kept + 1], curvature=0.0, fallback=-1 / scale)
