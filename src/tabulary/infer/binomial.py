r"""The likelihood of one released count of a known total.

a of n people have a property, a ~ Binomial(n, p), and x was released of it. Its probability is
L_x(p) = Σ_a Bin(a; n, p) P(x | a) (Rinott, O'Keefe, Shlomo & Skinner 2018, section 6.2). In the logit of p its
logarithm has the slope E[a | x] - n p.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.errors import InvalidTable
from tabulary.infer.count_likelihoods import CountLikelihoods, reach_of
from tabulary.infer.table_noise import IndependentNoise
from tabulary.noise import IntegerNoise

_STEPS = 200
_PRECISION = 1e-12
# The probability that is left out if a law is listed value by value, and the most sums that a list may take.
_LEFT_OUT = 1e-12
_MOST_SUMS = 20_000_000
# Where a likelihood may have several peaks, as many shares are tried.
_GRID = 64
# Statistics this close are equal.
_ALIKE = 1e-9


class OneCount:
    """The likelihood of p, and the law of its likelihood ratio, for a count of `n` people behind a noise."""

    def __init__(self, n: int, noise: IndependentNoise) -> None:
        self.n = n
        self._noise = noise
        self._terms = int(noise.terms.reshape(-1)[0])
        self._likelihoods = CountLikelihoods(noise)
        self._counts = np.arange(n + 1)
        self._log_choices = _log_choices(n)
        # A law that is log-concave, cut at a minimum or not, has a likelihood with one peak and ordered ratios.
        self._ordered = not self._terms or (isinstance(noise.law, IntegerNoise) and noise.law.log_concave)

    def statistic(self, x: int, p0: float) -> float:
        """Return 2 log(max L / L(p0))."""
        chances = self._likelihoods.log_chances(x, self._terms, self._counts)
        if not np.isfinite(chances).any():
            raise InvalidTable(
                "the released count is farther outside 0 to n than the stated noise allows. Check the count, the total "
                "and the noise: one of them does not fit the others."
            )
        return max(2 * (self._best(chances) - self._at(chances, p0)[0]), 0.0)

    def tail(self, x: int, p0: float) -> float | None:
        """Return the probability under p0 of all released values whose statistic is no smaller than that of x.

        Behind a log-concave noise the ratio of the likelihoods of two shares grows with x, so the statistic falls and
        then rises in x: the values in question are all up to one and all from another on, which bisection finds.
        Other laws are listed value by value; None where that would take too long.
        """
        return self._two_tails(x, p0) if self._ordered else self._listed_tail(x, p0)

    def _two_tails(self, x: int, p0: float) -> float:
        limit = self.statistic(x, p0)
        limit -= _ALIKE * (1 + limit)
        middle = round(self.n * p0)
        reach = reach_of(self._noise.law, self._terms, _LEFT_OUT) or (0, 0)
        lowest, highest = -reach[0], self.n + reach[1]
        if self._noise.minimum is not None:
            lowest = max(lowest, self._noise.minimum)
            middle = max(middle, lowest)

        def reaches(value: int) -> bool:
            return self.statistic(value, p0) >= limit

        below, above = min(x, lowest), max(x, highest)
        # The statistic is smallest near the middle. Beyond the reach probabilities are negligible.
        left = _last(reaches, below, middle + 1) if reaches(below) else below - 1
        right = _first(reaches, max(left, middle - 1), above) if reaches(above) else above + 1
        return min(1.0, self._up_to(left, p0) + self._from(right, p0))

    def _listed_tail(self, x: int, p0: float) -> float | None:
        reach = reach_of(self._noise.law, self._terms, _LEFT_OUT)
        if reach is None or (self.n + sum(reach)) * (self.n + 1) * _GRID > _MOST_SUMS:
            return None
        limit = self.statistic(x, p0)
        found = 0.0
        for value in range(-reach[0], self.n + reach[1] + 1):
            chances = self._likelihoods.log_chances(value, self._terms, self._counts)
            null = self._at(chances, p0)[0]
            if null > -math.inf and 2 * (self._best(chances) - null) >= limit - _ALIKE * (1 + limit):
                found += math.exp(null)
        return min(1.0, found)

    def _up_to(self, value: int, p0: float) -> float:
        """Return P(X ≤ value) under p0, for a noise that does not depend on the count."""
        if self._noise.minimum is not None and value < self._noise.minimum:
            return 0.0
        law: Any = self._noise.law
        below = law.cdf(value - self._counts) if self._terms else self._counts <= value
        return float(np.exp(self._log_weights(p0)) @ below)

    def _from(self, value: int, p0: float) -> float:
        """Return P(X ≥ value) under p0; the noise is symmetric."""
        if self._noise.minimum is not None and value <= self._noise.minimum:
            return 1.0
        law: Any = self._noise.law
        above = law.cdf(self._counts - value) if self._terms else self._counts >= value
        return float(np.exp(self._log_weights(p0)) @ above)

    def _best(self, chances: Floats) -> float:
        """Return the largest log L(p) of all p from 0 to 1."""
        ends = max(float(chances[0]), float(chances[-1]))
        low, high = 0.0, 1.0
        p = min(max(float(np.argmax(chances)) / self.n, 0.5 / self.n), 1 - 0.5 / self.n)
        if not self._ordered:
            grid = (np.arange(_GRID) + 0.5) / _GRID
            p = float(grid[int(np.argmax([self._at(chances, share)[0] for share in grid]))])
            low, high = max(0.0, p - 1 / _GRID), min(1.0, p + 1 / _GRID)
        value = -math.inf
        for _ in range(_STEPS):
            value, mean, variance = self._at(chances, p)
            gap = mean - self.n * p
            low, high = (p, high) if gap > 0 else (low, p)
            if abs(gap) <= _PRECISION * self.n or high - low <= _PRECISION:
                break
            # In the logit of p the slope is the gap, and the information n p (1 - p) - Var(a | x).
            spread = p * (1 - p)
            information = self.n * spread - variance
            step = gap * spread / information if information > 0 else 0.0
            p = p + step if step and low < p + step < high else (low + high) / 2
        return max(value, ends)

    def _at(self, chances: Floats, p: float) -> tuple[float, float, float]:
        """Return log L(p), E[a | x] and Var(a | x)."""
        terms = chances + self._log_weights(p)
        top = float(terms.max())
        if top == -math.inf:
            return -math.inf, 0.0, 0.0
        weights = np.exp(terms - top)
        total = float(weights.sum())
        mean = float(weights @ self._counts) / total
        return top + math.log(total), mean, float(weights @ (self._counts - mean) ** 2) / total

    def _log_weights(self, p: float) -> Floats:
        return np.asarray(
            self._log_choices + self._counts * math.log(p) + (self.n - self._counts) * math.log1p(-p)
        )


def _log_choices(n: int) -> Floats:
    """Return the logarithms of the binomial coefficients of n."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1, dtype=np.float64)))])
    return np.asarray(factorials[-1] - factorials - factorials[::-1])


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last value from `low` on for which a condition holds that holds at `low` and ends before `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first value up to `high` for which a condition holds that holds at `high` and begins after `low`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
