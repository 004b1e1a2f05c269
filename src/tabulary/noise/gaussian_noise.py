"""The common base of the two Gaussian laws on the integers: a variance parameter, a loss and a likelihood."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.arrays import Floats
from tabulary.core.privacy import Loss
from tabulary.noise.checks import exact_scale
from tabulary.noise.count_likelihood import COLUMN, FAINT, GAUSSIAN, CountLikelihood
from tabulary.noise.integer import IntegerNoise


@dataclass(frozen=True)
class GaussianNoise(IntegerNoise):
    """Noise that resembles a Gaussian of variance σ² = `variance_parameter`: discrete or rounded."""

    kind: ClassVar[str] = "Gaussian"
    log_concave: ClassVar[bool] = True

    wide: ClassVar[float]
    """From this σ on, sums of draws have the probabilities of a Gaussian, to the last digits that matter."""
    rounding_variance: ClassVar[float] = 0.0
    """By how much the variance of a wide law exceeds σ²."""

    variance_parameter: Fraction

    def __post_init__(self) -> None:
        number = exact_scale(self.variance_parameter, name="variance_parameter", power=2)
        object.__setattr__(self, "variance_parameter", number)

    @classmethod
    def from_sigma(cls, sigma: object) -> Self:
        """Return the noise whose variance parameter is `sigma` squared.

        >>> from tabulary.noise import DiscreteGaussian, RoundedGaussian
        >>> DiscreteGaussian.from_sigma("1/2"), RoundedGaussian.from_sigma(3)
        (DiscreteGaussian(variance_parameter=Fraction(1, 4)), RoundedGaussian(variance_parameter=Fraction(9, 1)))
        """
        return cls(exact_scale(sigma, name="sigma") ** 2)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return a law with one table of values, and a law that is drawn by blocks."""
        return cls(Fraction(9)), cls(Fraction(10**8))

    @property
    def rate(self) -> Fraction:
        """1/(2σ²): at this rate log P(k) falls with k², and ρ grows with the square of a change."""
        return 1 / (2 * self.variance_parameter)

    @classmethod
    def costing(cls, currency: type[Loss], unit_cost: Fraction) -> Self:
        """Return the noise that costs ρ = `unit_cost` for a change of one."""
        law = cls(1 / (2 * unit_cost))
        return law if currency in law.unit_costs else super().costing(currency, unit_cost)

    def loss(self, noise: ArrayLike, shift: ArrayLike) -> Floats:
        """Return ((k + shift)² - k²) / (2σ²); for a rounded law, the loss of the Gaussian before it was rounded."""
        k, moved = np.asarray(noise, dtype=np.float64), np.asarray(shift, dtype=np.float64)
        return np.asarray((2 * k + moved) * moved / (2 * float(self.variance_parameter)))

    def largest_noise(self, losses: Floats, shift: int) -> Floats:
        """Return the real noise with each of these losses."""
        return np.asarray(losses * float(self.variance_parameter) / shift - shift / 2)

    @property
    def reach(self) -> int:
        """An h with P(|X| > h) below 1e-30: the tail at 12σ is below 4e-33, and rounding moves it by one."""
        return math.ceil(12 * math.sqrt(self.variance_parameter)) + 1

    @property
    def fourth_cumulant(self) -> float:
        """Zero: the tails are taken as normal."""
        return 0.0

    @property
    def largest_tilt(self) -> float:
        """The largest t at which a moment bound is of use."""
        return 20 / math.sqrt(float(self.variance_parameter))

    def likelihood(self, terms: int = 1) -> CountLikelihood:
        """Return log P(x | a): a parabola where the law is wide, otherwise a table."""
        square = float(self.variance_parameter)
        if math.sqrt(square) < self.wide:
            return _sum_likelihood(self, terms)
        variance = terms * (square + self.rounding_variance)
        return CountLikelihood(GAUSSIAN, variance, -math.log(2 * math.pi * variance) / 2)

    def likelihood_at_minimum(self, minimum: int) -> CountLikelihood:
        """Return log P(a + X ≤ minimum), as far as doubles hold it, and how it goes on."""
        sigma = math.sqrt(float(self.variance_parameter))
        counts = np.arange(max(minimum, 0) + math.ceil(36 * sigma) + 3)
        chances = self.cdf(minimum - counts)
        table = np.log(chances[: int((chances > FAINT).sum())])
        slope = float(table[-1] - table[-2]) if table.size > 1 else -1 / sigma**2
        return CountLikelihood(COLUMN, slope=slope, table=table)


@lru_cache(maxsize=64)
def _sum_likelihood(law: GaussianNoise, terms: int) -> CountLikelihood:
    square = float(law.variance_parameter)
    reach = math.ceil(38 * math.sqrt(square)) + 2
    single = law.pmf(np.arange(-reach, reach + 1))
    values = single
    for _ in range(terms - 1):
        values = np.convolve(values, single)
    half = values[values.size // 2 :]
    kept = min(half.size, math.ceil(37 * math.sqrt(square * terms)) + 1)
    curvature = 1 / (terms * square)
    return CountLikelihood.symmetric(half[:kept], curvature=curvature, fallback=-curvature / 2)
