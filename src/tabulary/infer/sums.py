"""The law of the error of a weighted sum of released cells, from the independent draws in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.arrays import Floats
from tabulary.core.table import Table
from tabulary.errors import InvalidNoise
from tabulary.infer.table_noise import CorrelatedNoise, GivenNoise, noise_of
from tabulary.noise import IntegerNoise, weighted_half_width
from tabulary.planning.accuracy import heavy_quantile
from tabulary.planning.covariance import CellCovariance, CountNoise, Draws
from tabulary.release import ReleasedTable

# A weight this small beside the largest is the rounding of a zero.
_DUST = 1e-12
# Sums of more draws than these, or with more different weights, are as good as normal.
_MOST_DRAWS = 20_000
MOST_WEIGHTS = 500


@dataclass(frozen=True, eq=False)
class GivenCovariance:
    """Noise of which only the covariance is known: it is taken as normal."""

    noise: CorrelatedNoise

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""
        return self.noise.shape

    def covariances(self, weights: Floats) -> Floats:
        """Return Σw."""
        return np.asarray(self.noise.covariance @ weights.reshape(-1)).reshape(self.shape)

    def draws(self, weights: Floats) -> Iterator[Draws]:
        """Yield nothing: what was drawn is not known."""
        yield from ()


@dataclass(frozen=True, eq=False)
class SideBySide:
    """The noise of two tables that have no draw in common, their cells in one row."""

    one: CellCovariance
    other: CellCovariance

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of both."""
        return (self.one.cells + self.other.cells,)

    def covariances(self, weights: Floats) -> Floats:
        """Return Σw, each table's by itself."""
        parts = zip((self.one, self.other), self._split(weights), strict=True)
        return np.concatenate([noise.covariances(own).reshape(-1) for noise, own in parts])

    def draws(self, weights: Floats) -> Iterator[Draws]:
        """Yield the draws of the first table, then those of the second."""
        for noise, own in zip((self.one, self.other), self._split(weights), strict=True):
            yield from noise.draws_of(own)

    def _split(self, weights: Floats) -> tuple[Floats, Floats]:
        first, second = np.split(weights, [self.one.cells])
        return first.reshape(self.one.shape), second.reshape(self.other.shape)


def shared_noise(table: Table | ReleasedTable, noise: GivenNoise | None = None) -> CellCovariance:
    """Return the covariance of the errors of the unbiased face of a released table, or raise InvalidNoise.

    >>> from tabulary import Domain
    >>> from tabulary.noise import DiscreteLaplace
    >>> table = Table(Domain({"sex": ["F", "M"]}), [120, -2])
    >>> round(shared_noise(table, DiscreteLaplace(3)).variance_of([1, 1]), 2)
    35.67
    """
    if isinstance(table, ReleasedTable) and table.unbiased.covariance is not None and noise is None:
        return table.unbiased.covariance
    known = noise_of(table, noise)
    if isinstance(known, CorrelatedNoise):
        return CellCovariance(GivenCovariance(known))
    if not isinstance(known.law, IntegerNoise) or known.minimum is not None:
        raise InvalidNoise(
            "the errors of sums are known only for symmetric noise that is the same for every count, if negative "
            "values are kept. This perturbation is of another kind. Ask for the intervals of its single cells."
        )
    return CellCovariance(CountNoise(known.law, known.terms))


@dataclass(frozen=True, eq=False)
class SumLaw:
    """The law of the error of a weighted sum of cells: symmetric, with this variance and these draws.

    >>> from tabulary.noise import DiscreteLaplace
    >>> three = CellCovariance(CountNoise(DiscreteLaplace(10), np.array([1, 1, 1])))
    >>> law = SumLaw.of(three, [1, 1, 0])
    >>> round(law.deviation, 2), round(law.kurtosis, 2), law.half_width(0.95)
    (19.99, 1.5, 41.0)
    """

    variance: float
    draws: tuple[Draws, ...]

    @classmethod
    def of(cls, covariance: CellCovariance, weights: ArrayLike) -> "SumLaw":
        """Return the law of the error of the cells summed with these weights."""
        return cls(covariance.variance_of(weights), tuple(covariance.draws_of(weights)))

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return float(np.sqrt(self.variance))

    @cached_property
    def fourth_cumulant(self) -> float:
        """How much heavier than normal the tails are, not divided by the variance."""
        return sum(d.copies * d.noise.fourth_cumulant * float(np.sum(d.weights**4)) for d in self.draws)

    @property
    def kurtosis(self) -> float:
        """The excess kurtosis."""
        return self.fourth_cumulant / self.variance**2 if self.variance > 0 else 0.0

    @cached_property
    def single(self) -> tuple[IntegerNoise, Floats] | None:
        """The law of all draws and the sizes of their weights; None if there are several laws or too many draws."""
        noises = {d.noise for d in self.draws if np.any(d.weights)}
        if len(noises) != 1:
            return None
        largest = max(float(np.abs(d.weights).max(initial=0.0)) for d in self.draws)
        kept = [(np.abs(d.weights[np.abs(d.weights) > _DUST * largest]), d.copies) for d in self.draws]
        if sum(weights.size * copies for weights, copies in kept) > _MOST_DRAWS:
            return None
        sizes = np.concatenate([np.repeat(weights, copies) for weights, copies in kept])
        return noises.pop(), sizes

    def half_width(self, confidence: float, *, most_weights: int = MOST_WEIGHTS) -> float:
        """Return h such that the error is within ±h with this probability.

        The smallest, exactly, for draws of one noise with few different weights, else the normal one corrected for
        the kurtosis. Different weights take a fraction of a second; one weight takes none.
        """
        if self.variance <= 0:
            return 0.0
        if self.single is not None:
            noise, sizes = self.single
            if np.unique(np.round(sizes / sizes.max(), 12)).size <= most_weights:
                return float(weighted_half_width(noise, sizes, confidence))
        return float(heavy_quantile(confidence, self.kurtosis)) * self.deviation
