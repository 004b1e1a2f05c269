"""The intervals of weighted sums of released cells, and of their ratios."""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument, InvalidTable
from tabulary.infer.poisson import poisson_interval
from tabulary.infer.ratios import PairLaw, ratio_interval
from tabulary.infer.sums import MOST_WEIGHTS, SideBySide, SumLaw, shared_noise
from tabulary.infer.table_noise import GivenNoise, unbiased_table
from tabulary.noise.checks import check_confidence
from tabulary.planning.accuracy import heavy_quantile
from tabulary.planning.covariance import CellCovariance
from tabulary.release import ReleasedTable

Target = Literal["records", "population"]


@dataclass(frozen=True)
class Interval:
    """An estimate and the values that the release does not contradict; none of them is ever NaN.

    An end may be infinite. `target` is "records", what was in these records, or "population", what they are a sample
    of.

    >>> interval = Interval(12.0, 3.0, 21.0, 0.95, "records")
    >>> print(interval)
    12 (3 to 21 with 95 % confidence, in these records)
    >>> 20 in interval
    True
    """

    estimate: float
    lower: float
    upper: float
    confidence: float
    target: Target

    def __post_init__(self) -> None:
        if any(math.isnan(v) for v in (self.estimate, self.lower, self.upper)):
            raise InvalidTable("no interval exists for these counts: one of its ends is not a number.")

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        whose = "in these records" if self.target == "records" else "in the population they are drawn from"
        return (
            f"{_shown(self.estimate)} ({_shown(self.lower)} to {_shown(self.upper)} with "
            f"{100 * self.confidence:g} % confidence, {whose})"
        )


def check_interval(confidence: float, target: object) -> None:
    """Raise unless an interval exists for this confidence and this target."""
    check_confidence(confidence)
    if target not in get_args(Target):
        raise InvalidArgument(
            f"the target of an interval is 'records' (the value in these records) or 'population' (the value in the "
            f"population that they are a sample of), not {target!r}."
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """The weighted sums of released cells: unbiased counts, which of them may hold anyone, and their noise."""

    counts: NDArray[Any]
    possible: NDArray[np.bool_]
    covariance: CellCovariance
    confidence: float
    target: Target
    most_weights: int = MOST_WEIGHTS

    @classmethod
    def of(
        cls,
        table: Table | ReleasedTable,
        noise: GivenNoise | None,
        confidence: float,
        target: Target,
        *,
        most_weights: int = MOST_WEIGHTS,
    ) -> "Sums":
        """Return the sums of the unbiased face of one table."""
        plain = unbiased_table(table)
        possible = ~plain.domain.impossible(plain.domain.attributes)
        return cls(plain.counts, possible, shared_noise(table, noise), confidence, target, most_weights)

    def beside(self, other: "Sums") -> "Sums":
        """Return the cells of two tables with independent noise as one row of cells."""
        return Sums(
            np.concatenate([self.counts.reshape(-1), other.counts.reshape(-1)]),
            np.concatenate([self.possible.reshape(-1), other.possible.reshape(-1)]),
            CellCovariance(SideBySide(self.covariance, other.covariance)),
            self.confidence,
            self.target,
            self.most_weights,
        )

    def law(self, weights: Floats) -> tuple[float, float, float]:
        """Return a weighted sum, the variance of its error (with sampling for a population) and its excess kurtosis."""
        weights = weights * self.possible
        noise = SumLaw.of(self.covariance, weights)
        variance = noise.variance + (self._sampled(weights) if self.target == "population" else 0.0)
        kurtosis = noise.fourth_cumulant / variance**2 if variance > 0 else 0.0
        return float(np.sum(weights * self.counts)), variance, kurtosis

    def covariance_of(self, one: Floats, other: Floats) -> float:
        """Return the covariance of two weighted sums."""
        one, other = one * self.possible, other * self.possible
        shared = float(np.sum(one * self.covariance.covariances(other)))
        people = np.maximum(self.counts, 0) if self.target == "population" else 0.0
        return shared + float(np.sum(one * other * people))

    def total(self, weights: Floats) -> Interval:
        """Return the interval of a sum or a difference."""
        weights = weights * self.possible
        if not np.any(weights):
            return Interval(0.0, 0.0, 0.0, self.confidence, self.target)
        value = float(np.sum(weights * self.counts))
        law = SumLaw.of(self.covariance, weights)
        size = float(weights.max(initial=0.0))
        if self.target == "records":
            half = law.half_width(self.confidence, most_weights=self.most_weights)
            ends = value - half, value + half
        elif size > 0 and np.all((weights == 0) | (weights == size)):
            unit = SumLaw.of(self.covariance, weights / size)
            lower, upper = poisson_interval(value / size, unit, self.confidence)
            ends = lower * size, upper * size
        else:
            _, variance, kurtosis = self.law(weights)
            half = float(heavy_quantile(self.confidence, kurtosis)) * math.sqrt(variance)
            ends = value - half, value + half
        if np.all(weights >= 0):
            ends = max(ends[0], 0.0), max(ends[1], 0.0)
        return Interval(value, *ends, self.confidence, self.target)

    def ratio(self, top: Floats, bottom: Floats) -> Interval:
        """Return the interval of a ratio of two sums."""
        top, bottom = top * self.possible, bottom * self.possible
        if not np.any(bottom):
            raise InvalidTable("a ratio needs a denominator, but `per` selects no possible cell.")
        above, below = (float(np.sum(weights * self.counts)) for weights in (top, bottom))
        plain = all(np.all((weights == 0) | (weights == 1)) for weights in (top, bottom))
        plain_bottom = bool(np.all((bottom == 0) | (bottom == 1)))
        part = plain and bool(np.all(top <= bottom))
        apart = plain and not np.any(top * bottom)

        def sampling(ratio: float) -> float:
            if self.target == "records":
                return 0.0
            if part:
                return ratio * (1 - ratio) * max(below, 0.0)
            if apart:
                # Given both together, the upper one is binomial with odds of the ratio.
                return ratio * max(above + below, 0.0)
            return self._sampled(top - ratio * bottom)

        lowest = 0.0 if np.all(top >= 0) and np.all(bottom >= 0) else -math.inf
        within = plain_bottom and bool(np.all(np.abs(top) <= bottom))
        bounds = (max(lowest, -1.0), 1.0) if within else (lowest, math.inf)
        law = PairLaw.of(
            SumLaw.of(self.covariance, top),
            SumLaw.of(self.covariance, bottom),
            float(np.sum(top * self.covariance.covariances(bottom))),
            sampling,
        )
        found = ratio_interval(above, below, law, self.confidence, bounds=bounds)
        return Interval(*found, self.confidence, self.target)

    def _sampled(self, weights: Floats) -> float:
        """Return the variance that sampling adds to a sum: a Poisson count varies by as much as it is."""
        return float(np.sum(weights**2 * np.maximum(self.counts, 0)))


def _shown(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:,.0f}" if value.is_integer() or abs(value) >= 1000 else f"{value:.3g}"
