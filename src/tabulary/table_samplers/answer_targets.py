"""A question, as the exact program sees it: what the columns must bring to the rows for each answer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.table_samplers.column_split import ColumnSplit
from tabulary.table_samplers.columns import Column, window
from tabulary.table_samplers.exponential_tilting import TwoWayTable
from tabulary.table_samplers.poisson_binomial import PoissonBinomial

_Float = NDArray[np.float64]
_Int = NDArray[np.int64]

# A count_law, and the mass of each answer where a person of each of its kinds has the attribute (kinds, then answers).
PersonFrame = tuple[PoissonBinomial, _Float]


@dataclass(frozen=True, eq=False)
class AnswerTargets:
    """What the columns other than `column` (all, if it is None) must bring to the rows: one target a row of `targets`.

    `weights` is the mass of each target by itself. `collect` adds up what was found for each target by answer, from
    `low` on; `persons` tells it for the people of `column`, from the mass of each target. `lost` bounds the mass of
    what is not among the targets, `missed` the probability, given a target, of what is not among the answers.
    """

    column: int | None
    targets: _Int
    weights: _Float
    low: int
    collect: Callable[[_Float], _Float]
    persons: Callable[[_Float], Iterator[PersonFrame]]
    lost: float = 0.0
    missed: float = 0.0


@dataclass(frozen=True, eq=False)
class CellTargets:
    """How many have it in one cell: the answer is part of its column's filling."""

    row: int
    column: int

    def answer_targets(self, table: TwoWayTable, columns: Sequence[Column], *, cut: float) -> AnswerTargets:
        """Return the question for these columns."""
        here = columns[self.column]
        answer, number = here.cells[:, self.row], int(here.widths[self.row])
        order = np.argsort(answer, kind="stable")
        starts = np.searchsorted(answer[order], np.arange(number))
        found = np.flatnonzero(np.bincount(answer, minlength=number))

        def collect(values: _Float) -> _Float:
            added = np.zeros((number, values.shape[1]))
            added[found] = np.add.reduceat(values[order], starts[found], axis=0)
            return added

        def persons(mass: _Float) -> Iterator[PersonFrame]:
            for i, of_row in enumerate(table.count_laws):
                count_law = of_row[self.column]
                chances = count_law.chances_between(int(here.low[i]), int(here.high[i]))[:, here.cells[:, i]]
                yield count_law, collect((mass * chances).T).T

        targets = table.row_sums - (here.low + here.cells)
        return AnswerTargets(self.column, targets, here.weights, int(here.low[self.row]), collect, persons)

    def work(self, columns: Sequence[Column], *, cut: float) -> tuple[float, float, float]:
        """Return how many targets there are, how much work they are besides, and how much room that takes."""
        return columns[self.column].fillings, 0.0, 0.0


@dataclass(frozen=True, eq=False)
class ColumnSplitTargets:
    """How many have it in the first part of a column, which depends on the column's filling only."""

    column: int
    wholes: tuple[PoissonBinomial, ...]
    parts: tuple[tuple[PoissonBinomial, PoissonBinomial], ...]

    def answer_targets(self, table: TwoWayTable, columns: Sequence[Column], *, cut: float) -> AnswerTargets:
        """Return the question for these columns."""
        here = columns[self.column]
        split = ColumnSplit(here, self.wholes, self.parts, cut=cut)
        first = split.first_part()
        targets = table.row_sums - (here.low + here.cells)
        return AnswerTargets(
            self.column,
            targets,
            here.weights,
            split.low,
            lambda values: np.asarray(first.T @ values),
            split.persons,
            missed=split.dropped,
        )

    def work(self, columns: Sequence[Column], *, cut: float) -> tuple[float, float, float]:
        """Return how many targets there are, how much work they are besides, and how much room that takes."""
        fillings = columns[self.column].fillings
        split = ColumnSplit(columns[self.column], self.wholes, self.parts, cut=cut)
        return fillings, split.work, fillings * split.width


@dataclass(frozen=True, eq=False)
class RowSplitTargets:
    """How many have it in the first part of a row: the table has both parts for rows, and their sums are the answer."""

    row: int
    total: int

    def answer_targets(self, table: TwoWayTable, columns: Sequence[Column], *, cut: float) -> AnswerTargets:
        """Return the question for these columns."""
        law, low, lost = np.ones(1), 0, 0.0
        for column in columns:
            law = np.convolve(law, np.bincount(column.cells[:, self.row], weights=column.weights))
            first, last, tails = window(law, cut)
            law, low, lost = law[first:last], low + int(column.low[self.row]) + first, lost + tails
        answers = low + np.arange(law.size)
        targets = np.tile(table.row_sums, (law.size, 1))
        targets[:, self.row], targets[:, self.row + 1] = answers, self.total - answers
        return AnswerTargets(
            None, targets, np.ones(law.size), low, lambda values: values, lambda mass: iter(()), lost=lost
        )

    def work(self, columns: Sequence[Column], *, cut: float) -> tuple[float, float, float]:
        """Return how many targets there are, how much work they are besides, and how much room that takes."""
        widths = np.array([column.widths[self.row] for column in columns], dtype=np.float64)
        return float(np.sqrt((widths**2).sum())), 0.0, 0.0


QuestionTargets = CellTargets | ColumnSplitTargets | RowSplitTargets
