"""A column of independent counts given its sum: how it may be filled, and how likely each filling is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidTable
from tabulary.table_samplers.poisson_binomial import PoissonBinomial

# What is this narrow is not cut: there is nothing to gain, and small tables stay exact to the last value.
WHOLE = 32

# What a cell's own law may lose before the column's sum is taken into account.
_OUTERMOST = 1e-30


@dataclass(frozen=True, eq=False)
class Column:
    """The law of a column given its sum, where cell i takes the values `low[i]`, ..., `low[i] + len(laws[i]) - 1`.

    `laws` are the cells' own, tilted; `sum_chance` is how likely they are to add up to the sum. `dropped` bounds the
    probability, given the sum, of what lies outside these values.
    """

    low: NDArray[np.int64]
    laws: tuple[NDArray[np.float64], ...]
    given_out: int
    sum_chance: float
    dropped: float

    @classmethod
    def of(
        cls,
        count_laws: Sequence[PoissonBinomial],
        lower: NDArray[np.int64],
        upper: NDArray[np.int64],
        theta: NDArray[np.float64],
        total: int,
        *,
        cut: float,
    ) -> "Column":
        """Return the column whose cells may each lose `cut` of the law given the sum, on either side."""
        low = np.empty(len(count_laws), dtype=np.int64)
        laws, lost = [], 0.0
        for i, count_law in enumerate(count_laws):
            logs = (
                count_law.log_weights[lower[i] : upper[i] + 1] + np.arange(upper[i] - lower[i] + 1) * theta[i]
            )
            law = np.exp(logs - logs.max())
            law /= law.sum()
            first, last, tails = window(law, min(cut, _OUTERMOST))
            low[i] = lower[i] + first
            laws.append(law[first:last])
            lost += tails
        others = _all_but_one(laws)
        rest = total - int(low.sum())
        sum_chance = float(_given(laws[0], others[0], rest).sum())
        if sum_chance <= 0 and cut > 0:
            return cls.of(count_laws, lower, upper, theta, total, cut=0.0)
        if sum_chance <= 0:
            raise InvalidTable("a sum contradicts its cells: no table has both.")
        dropped = lost / sum_chance
        for i, law in enumerate(laws):
            marginal = _given(law, others[i], rest) / sum_chance
            first, last, tails = window(marginal, cut)
            low[i] += first
            laws[i] = law[first:last]
            dropped += tails
        return cls(low, tuple(laws), total - int(low.sum()), sum_chance, dropped)

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """How many values each cell takes."""
        return np.array([law.size for law in self.laws], dtype=np.int64)

    @cached_property
    def high(self) -> NDArray[np.int64]:
        """The largest value of each cell."""
        return self.low + self.widths - 1

    @cached_property
    def fillings(self) -> float:
        """How many fillings there are; no list is made."""
        ways = np.ones(1)
        for width in self.widths:
            ways = _running_sum(ways, int(width))[: self.given_out + 1]
        return float(ways[self.given_out]) if 0 <= self.given_out < ways.size else 0.0

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Every filling in order, one row each, counted from `low`; a beginning that no end completes is not made."""
        filled = np.zeros((1, 0), dtype=np.int64)
        left = np.array([self.given_out])
        for i, width in enumerate(self.widths):
            ahead = int((self.widths[i + 1 :] - 1).sum())
            least = np.maximum(0, left - ahead)
            most = np.minimum(width - 1, left)
            choices = np.maximum(0, most - least + 1)
            before = np.repeat(np.arange(len(filled)), choices)
            number = np.arange(before.size) - np.repeat(np.cumsum(choices) - choices, choices)
            value = least[before] + number
            filled = np.hstack([filled[before], value[:, None]])
            left = left[before] - value
        return filled

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The probability of each filling, given the sum."""
        weights = np.full(len(self.cells), 1 / self.sum_chance)
        for i, law in enumerate(self.laws):
            weights *= law[self.cells[:, i]]
        return weights


def window(law: NDArray[np.float64], cut: float) -> tuple[int, int, float]:
    """Return the first value to keep, the one after the last, and what is lost: at most `cut` on either side."""
    if law.size <= WHOLE or cut <= 0:
        return 0, law.size, 0.0
    below, above = np.cumsum(law), np.cumsum(law[::-1])
    first = int(np.searchsorted(below, cut, side="right"))
    last = law.size - int(np.searchsorted(above, cut, side="right"))
    if last - first < 1:
        return 0, law.size, 0.0
    lost = (below[first - 1] if first else 0.0) + (above[law.size - last - 1] if last < law.size else 0.0)
    return first, last, float(lost)


def _given(law: NDArray[np.float64], others: NDArray[np.float64], rest: int) -> NDArray[np.float64]:
    """Return the probability of each value of one cell together with the sum."""
    value = rest - np.arange(law.size)
    possible = (value >= 0) & (value < others.size)
    return np.where(possible, law * others[np.clip(value, 0, others.size - 1)], 0.0)


def _all_but_one(laws: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Return the law of the sum of all the other cells, for each cell."""
    before, after = [np.ones(1)], [np.ones(1)]
    for law in laws[:-1]:
        before.append(np.convolve(before[-1], law))
    for law in laws[:0:-1]:
        after.append(np.convolve(after[-1], law))
    return [np.convolve(b, a) for b, a in zip(before, reversed(after), strict=True)]


def _running_sum(ways: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    added = np.concatenate([[0.0], np.cumsum(np.concatenate([ways, np.zeros(width - 1)]))])
    return np.asarray(added[1:] - added[np.maximum(0, np.arange(1, added.size) - width)])
