"""A column split in two: the law of the first part of each cell, given the column."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tabulary.table_samplers.columns import Column, window
from tabulary.table_samplers.poisson_binomial import PoissonBinomial


class ColumnSplit:
    r"""The law of the first part's sum, for each filling of a column, and of every person given that sum.

    Given that z of a cell's people have the attribute, x of them in the first part have weight w₁(x) w₂(z - x),
    independently of all other cells. The weights of counts are log-concave, so x grows with z in distribution
    (Efron 1965): what lies below the range of the smallest z, or above that of the largest, is rarer for every other.
    `dropped` bounds it, whatever the filling.
    """

    def __init__(
        self,
        column: Column,
        wholes: Sequence[PoissonBinomial],
        parts: Sequence[tuple[PoissonBinomial, PoissonBinomial]],
        *,
        cut: float,
    ) -> None:
        self._column = column
        self._parts = parts
        self._first: list[NDArray[np.int64]] = []
        self._laws: list[NDArray[np.float64]] = []
        self.dropped = 0.0
        for i, (whole, (first, second)) in enumerate(zip(wholes, parts, strict=True)):
            low, high = int(column.low[i]), int(column.high[i])
            start, _, below = _range(whole, first, second, low, cut)
            _, end, above = _range(whole, first, second, high, cut)
            counts = np.arange(start, end)
            self._first.append(counts)
            self._laws.append(_laws(whole, first, second, np.arange(low, high + 1), counts))
            self.dropped += below + above
        self.low = sum(int(counts[0]) for counts in self._first)
        self.width = sum(counts.size - 1 for counts in self._first) + 1

    @property
    def work(self) -> float:
        """Roughly how many elementary operations it takes."""
        widths = [law.shape[1] for law in self._laws]
        return float(self._column.fillings * sum(width * (self.width - width + 1) for width in widths))

    def first_part(self) -> NDArray[np.float64]:
        """Return the law of the first part's sum, counted from `low`, for each filling of the column."""
        last = len(self._parts) - 1
        return self._added(self._without(last), last)

    def persons(self, mass: NDArray[np.float64]) -> Iterator[tuple[PoissonBinomial, NDArray[np.float64]]]:
        """Yield the law of each split cell, and the mass of each sum where a person of each kind has it.

        `mass` is that of each filling. Kinds along the first axis, sums along the second.
        """
        for i, ((first, second), counts, law) in enumerate(
            zip(self._parts, self._first, self._laws, strict=True)
        ):
            weighted = mass[:, None] * self._without(i)
            # All that matters of the other cells, for each value of this one: the law of what they bring.
            others = np.zeros((law.shape[0], weighted.shape[1]))
            np.add.at(others, self._column.cells[:, i], weighted)
            in_first = np.zeros((counts.size, self.width))
            in_second = np.zeros((law.shape[0] + counts.size - 1, self.width))
            for x in range(counts.size):
                together = law[:, x, None] * others
                sums = slice(x, x + others.shape[1])
                in_first[x, sums] = together.sum(axis=0)
                in_second[counts.size - 1 - x :, sums][: law.shape[0]] += together
            yield first, first.chances_between(int(counts[0]), int(counts[-1])) @ in_first
            least = int(self._column.low[i] - counts[-1])
            start, end = max(0, -least), min(len(in_second), second.size - least + 1)
            yield second, second.chances_between(least + start, least + end - 1) @ in_second[start:end]

    def _without(self, row: int) -> NDArray[np.float64]:
        """Return the law of the first part's sum over all rows but one, for each filling."""
        summed = np.ones((len(self._column.cells), 1))
        for other in range(len(self._parts)):
            if other != row:
                summed = self._added(summed, other)
        return summed

    def _added(self, summed: NDArray[np.float64], row: int) -> NDArray[np.float64]:
        from tabulary.table_samplers.column_kernels import convolve_rows

        return convolve_rows(summed, self._laws[row], np.ascontiguousarray(self._column.cells[:, row]))


def _range(
    whole: PoissonBinomial, first: PoissonBinomial, second: PoissonBinomial, value: int, cut: float
) -> tuple[int, int, float]:
    """Return the values that the first part's count may take, up to the one after the last, and what they miss."""
    least, most = max(0, value - second.size), min(value, first.size)
    counts = np.arange(least, most + 1)
    start, end, lost = window(_laws(whole, first, second, np.array([value]), counts)[0], cut)
    return least + start, least + end, lost


def _laws(
    whole: PoissonBinomial,
    first: PoissonBinomial,
    second: PoissonBinomial,
    values: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the probability of each count of the first part, for each count of the whole cell."""
    rest = values[:, None] - counts[None, :]
    possible = (rest >= 0) & (rest <= second.size)
    logs = (
        first.log_weights[counts][None, :]
        + second.log_weights[np.clip(rest, 0, second.size)]
        - whole.log_weights[values][:, None]
    )
    return np.where(possible, np.exp(np.where(possible, logs, 0.0)), 0.0)
