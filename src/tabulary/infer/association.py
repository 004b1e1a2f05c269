r"""How strongly two attributes are associated: χ², Cramér's V, odds ratios and rates, with and without the noise.

Noise scatters counts away from independence, so that χ² of a released table is too large: by what the noise adds to
it, Σ Var(d_ij)/E_ij with d the difference of a cell from what its margins let expect, E. That is known from the
release, and is subtracted.
"""

import math
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.table import Table
from tabulary.errors import InvalidTable
from tabulary.infer.intervals import Level, Selection, interval
from tabulary.infer.ratios import PairLaw, ratio_interval
from tabulary.infer.sums import shared_noise
from tabulary.infer.table_noise import GivenNoise, published_table, unbiased_table
from tabulary.infer.weighted_sums import Interval, Target, check_interval
from tabulary.planning.accuracy import normal_quantile
from tabulary.planning.covariance import CellCovariance
from tabulary.release import ReleasedTable
from tabulary.release.table import CONFIDENCE

# A level whose released total is within this many standard errors of zero cannot be distinguished from an empty one.
_TOLD = 2.0
# What a count may vary more than it seems to: one that is seen as zero may vary too.
_UNSEEN = 1.0


@dataclass(frozen=True)
class Association:
    """Cramér's V of a released table: as if the counts were exact, and with the noise taken out.

    `left_out` names the levels that may be empty; they were not counted. `estimate` is zero where
    the noise explains all of χ².

    >>> print(Association(0.31, Interval(0.12, 0.0, 0.27, 0.95, "records")))
    Cramér's V 0.12 (0 to 0.27 with 95 % confidence, in these records); 0.31 if the noise is not known of
    """

    naive: float
    interval: Interval
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def estimate(self) -> float:
        """V with the noise taken out."""
        return self.interval.estimate

    @property
    def lower(self) -> float:
        """The lower end of the interval."""
        return self.interval.lower

    @property
    def upper(self) -> float:
        """The upper end of the interval."""
        return self.interval.upper

    def __float__(self) -> float:
        return self.estimate

    def __str__(self) -> str:
        return f"Cramér's V {self.interval}; {self.naive:.3g} if the noise is not known of"


def chi_squared(table: Table) -> float:
    """Return Pearson's χ² statistic against independence of the two attributes of a table.

    Taken at face value: the noise in a perturbed table counts as association. Levels in which nobody is counted are
    left out.

    >>> from tabulary import datasets
    >>> round(chi_squared(datasets.load("uk-census")), 2)
    3839.05
    """
    return _chi_squared(_seen_levels(table))


@overload
def cramers_v(table: Table) -> float: ...


@overload
def cramers_v(table: ReleasedTable, *, confidence: float = ..., target: Target = ...) -> Association: ...


@overload
def cramers_v(
    table: Table, *, confidence: float = ..., target: Target = ..., noise: GivenNoise
) -> Association: ...


def cramers_v(
    table: Table | ReleasedTable,
    *,
    confidence: float = CONFIDENCE,
    target: Target = "records",
    noise: GivenNoise | None = None,
) -> float | Association:
    r"""Return Cramér's V, √(χ² / (n (k - 1))) with k the smaller number of levels: 0 for none, 1 for full association.

    Of a `Table` without noise it is that number. Levels in which nobody is counted say nothing and are left out; with
    fewer than two levels on either side nothing can vary together, and V is 0.

    Of a released table, or with `noise`, it is an `Association`: the naive value, with negative counts as zeros, and an
    estimate with an interval. From φ² = χ²/n the expected share of the noise is subtracted, for the population also
    that of sampling, (r - 1)(c - 1)/n (Bergsma 2013). The interval holds each φ² that is no farther from the estimate
    than its standard deviation times the normal quantile; the variance is that of a quadratic form in the errors at
    independence, heavy tails included, plus what association adds by the delta method. Levels whose released
    total is not twice its standard error are left out, for a share of nearly nothing is all noise.

    >>> from tabulary import datasets
    >>> round(cramers_v(datasets.load("uk-census")), 5)
    0.25763
    >>> from tabulary.noise import DiscreteLaplace
    >>> noisy = Table(datasets.load("hair-eye-gene").domain, [[98, 30, 15], [33, 99, 21], [47, 44, 66]])
    >>> print(cramers_v(noisy, noise=DiscreteLaplace(5)))
    Cramér's V 0.374 (0.304 to 0.459 with 95 % confidence, in these records); 0.381 if the noise is not known of
    """
    if isinstance(table, Table) and noise is None:
        seen = _seen_levels(table)
        return _naive_v(seen)
    check_interval(confidence, target)
    plain = unbiased_table(table)
    _check_two_way(plain)
    covariance = shared_noise(table, noise)
    naive = _naive_v(_without_empty(np.maximum(published_table(table).counts, 0).astype(np.float64)))
    kept, left_out = _told_levels(plain, covariance)
    smaller = min(map(len, kept))
    if smaller < 2:
        return Association(naive, Interval(0.0, 0.0, 1.0, confidence, target), left_out)
    index = np.ix_(*kept)
    noisy = _NoisySquare(plain.counts[index].astype(np.float64), covariance.at(index), target)
    estimate, lower, upper = (
        math.sqrt(min(max(square, 0.0) / (smaller - 1), 1.0)) for square in noisy.interval(confidence)
    )
    return Association(naive, Interval(estimate, lower, upper, confidence, target), left_out)


def odds_ratio(
    table: Table | ReleasedTable,
    rows: tuple[Level, Level] | None = None,
    columns: tuple[Level, Level] | None = None,
    *,
    confidence: float = CONFIDENCE,
    target: Target = "population",
    noise: GivenNoise | None = None,
) -> Interval:
    r"""Return the odds ratio (μ₁₁ μ₂₂)/(μ₁₂ μ₂₁) of two levels of each attribute, with the noise in its interval.

    `rows` and `columns` choose the levels of a larger table. For the true θ the difference x₁₁x₂₂ - θ x₁₂x₂₁ has mean
    zero, but for the covariance of shared noise, which is known and subtracted. The interval holds each θ for which
    it is within the normal quantile of its standard deviation (Fieller's way with products): no logarithm is taken, so
    that zero and negative counts are as good as any, and an end is 0 or infinite where the release leaves it open. For
    large counts this is the delta method for log θ with the noise in every variance. The counts' own variance is taken
    as what is seen and one more. In simulation a 95 % interval holds the truth at 94 to 96 % for counts above the
    noise, and up to 99 % below it.

    >>> from tabulary import Domain
    >>> from tabulary.noise import DiscreteLaplace
    >>> table = Table(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), [[40, 60], [20, 95]])
    >>> print(odds_ratio(table, noise=DiscreteLaplace(2)))
    3.17 (1.58 to 8.25 with 95 % confidence, in the population they are drawn from)
    """
    check_interval(confidence, target)
    plain = unbiased_table(table)
    _check_two_way(plain)
    index = np.ix_(*(_two_levels(plain, axis, levels) for axis, levels in enumerate((rows, columns))))
    x = plain.counts[index].astype(np.float64).reshape(4)
    shared = shared_noise(table, noise).at(index).dense()
    means = np.maximum(x, 0.0)
    sampled = np.diag(means + _UNSEEN) if target == "population" else np.zeros((4, 4))
    whole = shared + sampled
    top, bottom = (0, 3), (1, 2)
    law = PairLaw(
        (
            _product_covariance(means, whole, top, top),
            -2 * _product_covariance(means, whole, top, bottom),
            _product_covariance(means, whole, bottom, bottom),
        )
    )
    above, below = (float(x[i] * x[j] - shared[i, j]) for i, j in (top, bottom))
    found = ratio_interval(above, below, law, confidence, bounds=(0.0, math.inf))
    return Interval(*found, confidence, target)


def rate(
    table: Table | ReleasedTable,
    of: Selection,
    per: Selection | None = None,
    *,
    confidence: float = CONFIDENCE,
    target: Target = "population",
    noise: GivenNoise | None = None,
) -> Interval:
    """Return the rate of some cells among others, by default among all: `interval` with `per`, for the population.

    >>> from tabulary import Domain
    >>> from tabulary.noise import DiscreteLaplace
    >>> table = Table(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), [[40, 60], [20, 95]])
    >>> print(rate(table, {"sex": "F", "job": "paid"}, {"sex": "F"}, noise=DiscreteLaplace(2)))
    0.6 (0.495 to 0.699 with 95 % confidence, in the population they are drawn from)
    """
    return interval(
        table, of, per={} if per is None else per, confidence=confidence, target=target, noise=noise
    )


@dataclass(frozen=True, eq=False)
class _NoisySquare:
    """φ² = χ²/n of a noisy two-way table all of whose margins are positive."""

    counts: Floats
    covariance: CellCovariance
    target: Target

    def interval(self, confidence: float) -> tuple[float, float, float]:
        """Return φ² without what the noise adds, and the ends of its interval."""
        x = self.counts
        n = float(x.sum())
        rows, columns = x.sum(axis=1), x.sum(axis=0)
        expected = np.outer(rows, columns) / n
        naive = float(np.sum((x - expected) ** 2 / expected)) / n
        shared = self.covariance.dense()
        sampled = expected.reshape(-1) if self.target == "population" else np.zeros(x.size)
        whole = shared + np.diag(sampled)
        # χ² as a quadratic form in the errors: what is left of them after the margins, over what is expected.
        left = np.kron(np.eye(rows.size) - rows[:, None] / n, np.eye(columns.size) - columns[:, None] / n)
        form = left.T @ (left / expected.reshape(-1, 1))
        product = form @ whole
        added = float(np.trace(product)) / n
        spread = (2 * float(np.sum(product * product.T)) + self._heavy(form)) / n**2
        estimate = naive - added
        slope = self._gradient(rows, columns).reshape(-1)
        seen = (
            np.diag(np.maximum(x, 0.0).reshape(-1)) if self.target == "population" else np.zeros_like(whole)
        )
        # The variance that association adds grows with it; both are larger for the noise, and their ratio is not.
        share = float(slope @ (shared + seen) @ slope) / naive if naive > 0 else 0.0
        return (estimate, *_solved(estimate, spread, share, normal_quantile(confidence)))

    def _gradient(self, rows: Floats, columns: Floats) -> Floats:
        """Return the derivative of φ² = Σ x²/(r c) - 1 by each cell."""
        x = self.counts
        square = x**2 / np.outer(rows, columns)
        return np.asarray(
            2 * x / np.outer(rows, columns)
            - (square.sum(axis=1) / rows)[:, np.newaxis]
            - square.sum(axis=0) / columns
        )

    def _heavy(self, form: Floats) -> float:
        """Return what tails that are heavier than normal add to the variance of the quadratic form."""
        places = np.eye(self.counts.size).reshape(-1, *self.counts.shape)
        cells = [self.covariance.draws_of(unit) for unit in places]
        total = 0.0
        for group in zip(*cells, strict=True):
            cumulant = group[0].copies * group[0].noise.fourth_cumulant
            if cumulant:
                weights = np.array([draws.weights for draws in group])
                total += cumulant * float(np.sum(np.sum(weights * (form @ weights), axis=0) ** 2))
        return total


def _solved(estimate: float, spread: float, share: float, z: float) -> tuple[float, float]:
    """Return the smallest and the largest λ ≥ 0 with (estimate - λ)² ≤ z² (spread + share λ); both 0 if none is."""
    middle = estimate + z * z * share / 2
    within = middle**2 - estimate**2 + z * z * spread
    if within < 0:
        return 0.0, 0.0
    return max(middle - math.sqrt(within), 0.0), max(middle + math.sqrt(within), 0.0)


def _product_covariance(
    means: Floats, covariance: Floats, one: tuple[int, int], other: tuple[int, int]
) -> float:
    """Return Cov(x_i x_j, x_k x_l) of normal numbers with these means and this covariance."""
    (i, j), (k, m) = one, other
    linear = (
        means[i] * means[k] * covariance[j, m]
        + means[i] * means[m] * covariance[j, k]
        + means[j] * means[k] * covariance[i, m]
        + means[j] * means[m] * covariance[i, k]
    )
    return float(linear + covariance[i, k] * covariance[j, m] + covariance[i, m] * covariance[j, k])


def _told_levels(
    table: Table, covariance: CellCovariance
) -> tuple[list[NDArray[np.intp]], tuple[tuple[str, str], ...]]:
    """Return, for each attribute, the levels whose totals are clearly above zero, and the names of the others."""
    kept, left_out = [], []
    for axis, (attribute, levels) in enumerate(
        zip(table.domain.attributes, table.domain.levels, strict=True)
    ):
        told = []
        for place, level in enumerate(levels):
            weights = np.zeros(table.shape)
            weights[(slice(None),) * axis + (place,)] = 1.0
            total = float(np.sum(weights * table.counts))
            if total > _TOLD * math.sqrt(covariance.variance_of(weights)):
                told.append(place)
            else:
                left_out.append((attribute, level))
        kept.append(np.array(told, dtype=np.intp))
    return kept, tuple(left_out)


def _two_levels(table: Table, axis: int, levels: tuple[Level, Level] | None) -> list[int]:
    attribute = table.domain.attributes[axis]
    known = table.domain.levels[axis]
    chosen = known if levels is None else tuple(levels)
    if len(chosen) != 2 or len(set(chosen)) != 2:
        raise InvalidTable(
            f"an odds ratio compares two levels of each attribute, and for {attribute!r} there are {len(chosen)}. "
            f"Choose two of them, such as {'rows' if axis == 0 else 'columns'}={known[:2]!r}."
        )
    return [table.domain.code(attribute, level) for level in chosen]


def _naive_v(seen: Floats) -> float:
    smaller = min(seen.shape)
    return math.sqrt(_chi_squared(seen) / (seen.sum() * (smaller - 1))) if smaller > 1 else 0.0


def _chi_squared(seen: Floats) -> float:
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / max(seen.sum(), 1.0)
    return math.fsum(((seen - expected) ** 2 / expected).flat)


def _seen_levels(table: Table) -> Floats:
    """Return the counts of a two-way table without its empty rows and columns."""
    _check_two_way(table)
    if np.any(table.counts < 0):
        raise InvalidTable(
            "χ² needs a table without negative counts. Perturb with minimum=0, or reconstruct a table first. Or give "
            "the released table, or its noise: then cramers_v accepts negative counts."
        )
    return _without_empty(table.counts.astype(np.float64))


def _without_empty(counts: Floats) -> Floats:
    return counts[np.ix_(counts.sum(axis=1) > 0, counts.sum(axis=0) > 0)]


def _check_two_way(table: Table) -> None:
    if len(table.shape) != 2:
        raise InvalidTable(
            f"association is between two attributes, and this table has {len(table.shape)}. "
            "Project it on two of them."
        )
