r"""Two numbers of released tables compared: their difference or their ratio, and whether noise alone explains it.

The numbers are counts, sums of counts, or percentages of a group; of one table, or of two releases, which have
independent noise. There are three ways to an interval:

* two counts: a weighted sum of cells, whose law is known (`infer.weighted_sums`), and Fieller's set for their ratio;
* two shares of one group: the difference of two counts per the count of the group, again Fieller's set;
* two percentages of different groups: each has its own set of Fieller, l to u about r, which knows both noises, their
  correlation, and what a percentage can be. The two are joined by recovering a variance from each side of each set
  (Zou & Donner 2008): r₁ - r₂ - √((r₁ - l₁)² + (u₂ - r₂)² - 2c (r₁ - l₁)(u₂ - r₂)) and likewise upwards, with c the
  correlation of their errors. Of exact binomial counts this is Newcombe's interval. The ratio ρ has the interval of all
  ρ for which that of r₁ - ρ r₂ holds zero. Where a denominator may be zero, a set reaches to what is still possible,
  and a ratio may be infinite.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument
from tabulary.infer.intervals import Selection, selected_weights
from tabulary.infer.sums import MOST_WEIGHTS
from tabulary.infer.table_noise import GivenNoise, unbiased_table
from tabulary.infer.weighted_sums import Interval, Sums, Target, check_interval
from tabulary.release import ReleasedTable

Scale = Literal["difference", "ratio"]
Verdict = Literal["clearly more", "clearly less", "not clear"]

# Normal scores between which a p-value is looked for, and how near it must be.
_NEAREST, _FARTHEST, _SCORE = 1e-6, 7.0, 1e-4
_MOST_STEPS = 40


@dataclass(frozen=True)
class Compared:
    """Two numbers, the interval of their difference or ratio, and how likely noise alone makes them so different.

    `standard_error` is that of the difference, infinite where a group of a percentage may be empty by its estimate.
    `p_value` belongs to the hypothesis that both numbers are equal.
    """

    first: Interval
    second: Interval
    interval: Interval
    standard_error: float
    p_value: float
    scale: Scale

    @property
    def estimate(self) -> float:
        """The difference, first less second, or the ratio, first per second."""
        return self.interval.estimate

    @property
    def direction(self) -> Verdict:
        """Which of the numbers is larger, whether that is clear or not."""
        return "clearly more" if self.first.estimate > self.second.estimate else "clearly less"

    @property
    def verdict(self) -> Verdict:
        """Whether the first number is clearly more or less than the second: equality is outside the interval."""
        equal = 0.0 if self.scale == "difference" else 1.0
        return "not clear" if equal in self.interval else self.direction

    def __str__(self) -> str:
        return f"{self.scale} {self.interval}, p = {self.p_value:.3g}: {self.verdict}"


@dataclass(frozen=True, eq=False)
class Pair:
    """Two numbers as weights on the cells of one or two tables: what is counted, and per what, None for counts."""

    sums: Sums
    tops: tuple[Floats, Floats]
    bottoms: tuple[Floats, Floats] | None

    def compared(self, scale: Scale) -> Compared:
        """Return the comparison, by difference or by ratio."""
        if scale not in get_args(Scale):
            raise InvalidArgument(f"numbers are compared by 'difference' or by 'ratio', not by {scale!r}.")
        first, second = self._numbers(self.sums)
        deviation, p_value = self._equality()
        found = Interval(*self._ends(self.sums, scale), self.sums.confidence, self.sums.target)
        return Compared(first, second, found, deviation, p_value, scale)

    @property
    def exists(self) -> bool:
        """Whether both numbers do: a percentage of a group that is impossible does not."""
        return self.bottoms is None or all(np.any(bottom * self.sums.possible) for bottom in self.bottoms)

    @property
    def _of_one_group(self) -> bool:
        return self.bottoms is not None and bool(np.array_equal(*self.bottoms))

    def _numbers(self, sums: Sums) -> tuple[Interval, Interval]:
        if self.bottoms is None:
            return sums.total(self.tops[0]), sums.total(self.tops[1])
        first, second = (sums.ratio(top, per) for top, per in zip(self.tops, self.bottoms, strict=True))
        return first, second

    def _ends(self, sums: Sums, scale: Scale) -> tuple[float, float, float]:
        """Return the difference or ratio and the ends of its interval."""
        one, other = self.tops
        if self.bottoms is None or self._of_one_group:
            if scale == "ratio":
                found = sums.ratio(one, other)
            elif self.bottoms is None:
                found = sums.total(one - other)
            else:
                found = sums.ratio(one - other, self.bottoms[0])
            return found.estimate, found.lower, found.upper
        joined = _joined_difference if scale == "difference" else _joined_ratio
        # The estimates are the same at every confidence, and so is their correlation.
        return joined(*self._numbers(sums), self._correlation)

    @cached_property
    def _correlation(self) -> float:
        """The correlation of the errors of two percentages."""
        sums = self.sums
        one, other = self._residuals
        variances = sums.covariance_of(one, one) * sums.covariance_of(other, other)
        return (
            float(np.clip(sums.covariance_of(one, other) / math.sqrt(variances), -1, 1))
            if variances > 0
            else 0.0
        )

    @property
    def _people(self) -> list[float]:
        """The estimated sizes of both groups."""
        assert self.bottoms is not None, "only percentages are per something"
        return [float(np.sum(bottom * self.sums.possible * self.sums.counts)) for bottom in self.bottoms]

    @cached_property
    def _residuals(self) -> tuple[Floats, Floats]:
        """The weights of what is counted less the percentage times what it is per."""
        assert self.bottoms is not None, "only percentages are per something"
        first, second = self._numbers(self.sums)
        one, other = (
            top - number.estimate * bottom
            for top, number, bottom in zip(self.tops, (first, second), self.bottoms, strict=True)
        )
        return one, other

    def _equality(self) -> tuple[float, float]:
        """Return the standard error of the difference, and the p-value of the hypothesis that there is none."""
        sums = self.sums
        if self.bottoms is None or self._of_one_group:
            value, variance, kurtosis = sums.law(self.tops[0] - self.tops[1])
            deviation = math.sqrt(variance)
            p_value = _two_sided(value, deviation, kurtosis)
            if self.bottoms is None:
                return deviation, p_value
            whole = self._people[0]
            return (deviation / whole if whole > 0 else math.inf), p_value
        if min(self._people) <= 0:
            return math.inf, self._p_of_percentages()
        one, other = (left / people for left, people in zip(self._residuals, self._people, strict=True))
        gap = one - other
        return math.sqrt(max(sums.covariance_of(gap, gap), 0.0)), self._p_of_percentages()

    def _p_of_percentages(self) -> float:
        """Return the p-value at which the interval of the difference of two percentages ends at zero."""

        def left(score: float) -> float:
            """Return how far the interval of this normal score is from zero; negative if it holds zero."""
            confidence = 2 * NormalDist().cdf(score) - 1
            _, lower, upper = self._ends(replace(self.sums, confidence=confidence), "difference")
            return max(lower, -upper)

        low, high = _NEAREST, _FARTHEST
        at_low, at_high = left(low), left(high)
        at_first = at_low
        if at_low <= 0 or at_high > 0:
            return 1.0 if at_low <= 0 else 2 * NormalDist().cdf(-high)
        # The false position of an end that is nearly linear in the score; the end that stays counts half (Illinois).
        for _ in range(_MOST_STEPS):
            middle = (low * at_high - high * at_low) / (at_high - at_low)
            here = left(middle)
            if here > 0:
                low, at_low, at_high = middle, here, at_high / 2
            else:
                high, at_high, at_low = middle, here, at_low / 2
            if high - low < _SCORE or abs(here) < _SCORE * at_first:
                break
        return 2 * NormalDist().cdf(-middle)


@dataclass(frozen=True, eq=False)
class Sides:
    """The tables of two numbers: one table, or two with independent noise, whose cells are then one row."""

    tables: tuple[Table, Table]
    sums: Sums
    apart: bool

    @classmethod
    def of(
        cls,
        table: Table | ReleasedTable,
        other: Table | ReleasedTable | None,
        confidence: float,
        target: Target,
        noise: GivenNoise | None = None,
        other_noise: GivenNoise | None = None,
        *,
        most_weights: int = MOST_WEIGHTS,
    ) -> "Sides":
        """Return the sides of a comparison of a table with another one, or with itself."""
        check_interval(confidence, target)
        first = unbiased_table(table)
        if other is not None and unbiased_table(other) is first:
            raise InvalidArgument(
                "both tables of the comparison are the same one, and share all of their noise. Give a table of another "
                "release, or leave `other` out and give two selections."
            )
        sums = Sums.of(table, noise, confidence, target, most_weights=most_weights)
        if other is None:
            return cls((first, first), sums, False)
        beside = Sums.of(other, other_noise, confidence, target, most_weights=most_weights)
        return cls((first, unbiased_table(other)), sums.beside(beside), True)

    def pair(self, first: Selection, second: Selection, per: Iterable[str] | None) -> "Pair":
        """Return two numbers: the selections of both sides, per the levels that they have of some attributes."""
        tops = self._placed(first, 0), self._placed(second, 1)
        if per is None:
            return Pair(self.sums, tops, None)
        named = self.tables[0].domain.margin(per)
        return Pair(
            self.sums, tops, (self._placed(_group(first, named), 0), self._placed(_group(second, named), 1))
        )

    def _placed(self, selection: Selection, side: int) -> Floats:
        """Return the weights of a selection of one side on the cells of both."""
        weights = selected_weights(self.tables[side], selection)
        if not self.apart:
            return weights
        both = [np.zeros(table.counts.size) for table in self.tables]
        both[side] = weights.reshape(-1)
        return np.concatenate(both)


def _group(selection: Selection, per: tuple[str, ...]) -> Selection:
    if not isinstance(selection, Mapping) or any(a not in selection for a in per):
        raise InvalidArgument(
            "a percentage is per the levels that its selection has of the attributes in `per`, and a selection has no "
            f"level of {', '.join(map(repr, per)) or 'any attribute'}. Name them, such as {{'sex': 'F', 'ill': 'yes'}} "
            "with per=['sex']."
        )
    return {a: selection[a] for a in per}


def _joined_difference(first: Interval, second: Interval, correlation: float) -> tuple[float, float, float]:
    """Return the difference of two estimates and the ends of its interval, from theirs."""

    def reach(one: float, other: float) -> float:
        if math.isinf(one) or math.isinf(other):
            return math.inf
        return math.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))

    gap = first.estimate - second.estimate
    lower = gap - reach(first.estimate - first.lower, second.upper - second.estimate)
    upper = gap + reach(first.upper - first.estimate, second.estimate - second.lower)
    return gap, max(lower, first.lower - second.upper), min(upper, first.upper - second.lower)


def _joined_ratio(first: Interval, second: Interval, correlation: float) -> tuple[float, float, float]:
    """Return the ratio of two estimates that are not negative, and the ends of its interval, from theirs.

    An end solves (r₁ - ρ r₂)² = a² + ρ² b² - 2c ρ a b, with a and b the sides of both intervals that face it.
    """
    r1, r2 = first.estimate, second.estimate
    # Two numbers that are both zero are equal.
    estimate = 1.0 if r1 == r2 else r1 / r2 if r2 > 0 else math.inf

    def roots(a: float, b: float) -> Floats:
        with np.errstate(all="ignore"):
            found = np.roots([r2**2 - b**2, 2 * (correlation * a * b - r1 * r2), r1**2 - a**2])
        return np.sort(found.real[(np.abs(found.imag) < 1e-9 * (1 + np.abs(found.real))) & (found.real >= 0)])

    below = roots(r1 - first.lower, second.upper - r2)
    lower = float(below[0]) if first.lower > 0 and below.size else 0.0
    above = roots(first.upper - r1, r2 - second.lower)
    upper = float(above[-1]) if second.lower > 0 and above.size else math.inf
    return estimate, min(lower, estimate), max(upper, estimate)


def _two_sided(value: float, deviation: float, kurtosis: float) -> float:
    """Return the probability of an error of this size or larger, from its deviation and its kurtosis.

    2 Φ(-z), z being the normal score whose quantile, corrected for the kurtosis (`planning.accuracy.heavy_quantile`),
    is the value; at most the bound of Chebyshev.
    """
    if deviation == 0:
        return 1.0 if value == 0 else 0.0
    size, heavy = abs(value) / deviation, max(kurtosis, 0.0)
    # z + (z³ - 3z) k/24 = |value| / deviation. Of several scores the smallest, which claims least.
    scores = np.roots([heavy / 24, 0.0, 1 - heavy / 8, -size])
    real = scores.real[(np.abs(scores.imag) < 1e-9) & (scores.real >= 0)]
    score = float(real.min()) if real.size else size
    return min(1.0, 2 * NormalDist().cdf(-score), 1 / size**2 if size > 1 else 1.0)
