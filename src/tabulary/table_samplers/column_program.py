"""The dynamic program over the columns of a two-way table, for one question."""

import math
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidTable
from tabulary.table_samplers.answer_targets import (
    AnswerTargets,
    CellTargets,
    ColumnSplitTargets,
    QuestionTargets,
    RowSplitTargets,
)
from tabulary.table_samplers.columns import Column
from tabulary.table_samplers.exponential_tilting import Tilt, TwoWayTable
from tabulary.table_samplers.messages import Message, MessageRows, all_but_one, flat, product
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, TableQuestion
from tabulary.table_samplers.poisson_binomial import PoissonBinomial
from tabulary.table_samplers.table_sampler import CellPosteriors, PossibleAnswers

# How far the computed law may be from the true one, in total variation.
TOLERANCE = 1e-9

# Numbers that are held at once: 400 megabytes.
_ROOM = 5e7

_Float = NDArray[np.float64]
_Int = NDArray[np.int64]
_Found = TypeVar("_Found")


class ColumnProgram:
    """The program for one question, with one axis of the table for its rows and another for its columns.

    `refined` is what would be known after a split, with any answer; what is known, for other questions.
    """

    def __init__(
        self,
        known: PartialTable,
        refined: PartialTable,
        question: TableQuestion | None,
        *,
        rows: int | None,
        columns: int,
    ) -> None:
        self._known, self._axes = known, (rows, columns)
        self._table = self._arranged(known.tightened())
        tilt = Tilt.of(self._table)
        self._theta, self._cut = tilt.theta, _first_cut(tilt)
        self._made: dict[tuple[int, float], Column] = {}
        self._asked: QuestionTargets | None = None
        if isinstance(question, CellQuestion):
            self._asked = CellTargets(0 if rows is None else question.index[rows], question.index[columns])
        elif question is not None and question.axis == columns:
            finer = self._arranged(refined).count_laws
            parts = tuple((of_row[question.group], of_row[question.group + 1]) for of_row in finer)
            self._asked = ColumnSplitTargets(question.group, tuple(self._count_laws(question.group)), parts)
        elif question is not None:
            # Both parts keep the tilt of the whole: their sums are not known, only what they add up to.
            self._asked = RowSplitTargets(question.group, int(known.sums[question.axis][question.group]))
            self._table = self._arranged(refined)
            self._theta = np.insert(tilt.theta, question.group, tilt.theta[question.group], axis=0)

    @cached_property
    def cost(self) -> float:
        """Roughly how many elementary operations it takes; `inf` if there is no room."""
        rows = len(self._table.count_laws)
        # One column that there is no room for is enough to know.
        if any(
            rows * self._column(j, self._cut).fillings > _ROOM for j in range(len(self._table.column_sums))
        ):
            return math.inf
        columns = self._columns(self._cut)
        fillings = np.array([column.fillings for column in columns])
        widths = np.array([column.widths for column in columns], dtype=np.float64)
        # The sums of a row over half of the columns spread as the square root of their number, not as the number.
        half = np.sqrt((widths**2).sum(axis=0) / 2)
        spans = np.minimum(1 + (widths - 1).sum(axis=0), widths.max(axis=0) + half)
        states = float(np.delete(spans, np.argmax(spans)).prod())
        work = states * fillings.sum() * (2 + np.log2(len(columns)))
        room = states
        if self._asked is not None:
            targets, besides, space = self._asked.work(columns, cut=self._cut)
            kinds = np.array(
                [[count_law.people.size for count_law in self._count_laws(j)] for j in range(len(columns))]
            )
            work += targets * (fillings.sum() * (rows + 1) + (kinds * widths).sum()) + besides
            room = max(room, rows * targets, space)
        return float(work) if room <= _ROOM else math.inf

    def answers(self) -> PossibleAnswers:
        """Return the answers that the question may get."""
        return _certified(self._answers, self._cut)

    def posterior(self) -> CellPosteriors:
        """Return the law of each cell."""
        return _certified(self._posterior, self._cut)

    def draw(self, number: int, uniforms: Callable[[int], _Float]) -> _Int:
        """Return tables drawn given what is known; `uniforms` gives so many uniform numbers."""
        columns, after, rows = _certified(self._backwards, self._cut)
        tables = np.zeros((number, *self._known.shape), dtype=np.int64)
        left = np.tile(self._table.row_sums, (number, 1))
        for j, (column, rest) in enumerate(zip(columns, after, strict=True)):
            chosen = _chosen(column, rest, left, rows, uniforms(number))
            left -= chosen
            for i in range(left.shape[1]):
                place: tuple[slice | int, ...] = (slice(None), *self._index(i, j))
                tables[place] = chosen[:, i]
        return tables

    # ---- the table as rows and columns

    def _arranged(self, known: PartialTable) -> TwoWayTable:
        rows, columns = self._axes
        shape = (1 if rows is None else known.shape[rows], known.shape[columns])
        # Every other axis has one group, so that only the order of these two matters.
        turned = rows is not None and rows > columns
        lower, upper = (
            bound.reshape(shape[::-1]).T if turned else bound.reshape(shape)
            for bound in (known.lower, known.upper)
        )
        count_laws = tuple(
            tuple(known.count_law(self._index(i, j)) for j in range(shape[1])) for i in range(shape[0])
        )
        row_sums = known.sums[columns].sum(keepdims=True) if rows is None else known.sums[rows]
        return TwoWayTable(count_laws, lower, upper, row_sums, known.sums[columns])

    def _index(self, row: int, column: int) -> tuple[int, ...]:
        index = [0] * len(self._known.shape)
        index[self._axes[1]] = column
        if self._axes[0] is not None:
            index[self._axes[0]] = row
        return tuple(index)

    def _count_laws(self, column: int) -> list[PoissonBinomial]:
        return [of_row[column] for of_row in self._table.count_laws]

    def _columns(self, cut: float) -> list[Column]:
        return [self._column(j, cut) for j in range(len(self._table.column_sums))]

    def _column(self, j: int, cut: float) -> Column:
        # Those that the cost was estimated from are those that the program begins with.
        if (j, cut) not in self._made:
            bounds = self._table.lower[:, j], self._table.upper[:, j]
            total = int(self._table.column_sums[j])
            self._made[j, cut] = Column.of(self._count_laws(j), *bounds, self._theta[:, j], total, cut=cut)
        return self._made[j, cut]

    # ---- the law, and how far it may be from the true one

    def _answers(self, cut: float) -> tuple[PossibleAnswers, float]:
        assert self._asked is not None
        columns = self._columns(cut)
        targets = self._asked.answer_targets(self._table, columns, cut=cut)
        rows = MessageRows.of(columns, targets.targets)
        lost = sum(column.dropped for column in columns) + targets.lost
        others = [j for j in range(len(columns)) if j != targets.column]
        whole = product([columns[j] for j in others], rows, cut=cut)
        mass = targets.weights * whole.at(targets.targets[:, rows.free])
        law = targets.collect(mass[:, None])[:, 0]
        error = _distance(lost + whole.dropped, law)
        moved = [(count_law, _moved(count_law, has_it, law)) for count_law, has_it in targets.persons(mass)]
        for j, rest in zip(others, all_but_one([columns[j] for j in others], rows, cut=cut), strict=True):
            found = targets.collect(_having_it(columns[j], self._count_laws(j), rest, rows, targets))
            error = max(error, _distance(lost + rest.dropped, found[:, 0]))
            kind = 1
            for count_law in self._count_laws(j):
                has_it = found[:, kind : kind + count_law.people.size].T
                moved.append((count_law, _moved(count_law, has_it, found[:, 0])))
                kind += count_law.people.size
        error += targets.missed
        possible = law > 0
        probability = law[possible] / law.sum()
        uncertain = (
            np.minimum(1.0, error / ((1 - error) * probability)) if error < 1 else np.ones(probability.size)
        )
        deviation = np.zeros(probability.size)
        for count_law, by in moved:
            deviation = np.maximum(deviation, _at_most(count_law, by[possible], uncertain))
        values = targets.low + np.flatnonzero(possible)
        return PossibleAnswers(values, probability, deviation, error), error

    def _posterior(self, cut: float) -> tuple[CellPosteriors, float]:
        columns = self._columns(cut)
        rows = MessageRows.of(columns, self._table.row_sums[None, :])
        lost = sum(column.dropped for column in columns)
        marginals = np.empty(self._known.shape, dtype=object)
        error = 0.0
        for j, (column, rest) in enumerate(zip(columns, all_but_one(columns, rows, cut=cut), strict=True)):
            left = self._table.row_sums - column.low - column.cells
            mass = column.weights * rest.at(left[:, rows.free])
            error = max(error, _distance(lost + rest.dropped, mass))
            for i, count_law in enumerate(self._count_laws(j)):
                counts = column.low[i] + column.cells[:, i]
                law = np.bincount(counts, weights=mass, minlength=count_law.size + 1)
                marginals[self._index(i, j)] = law / mass.sum() if mass.sum() > 0 else law
        return CellPosteriors(marginals, error), error

    def _backwards(self, cut: float) -> tuple[tuple[list[Column], list[Message], MessageRows], float]:
        """Return the columns, and for each the message of those after it."""
        columns = self._columns(cut)
        rows = MessageRows.of(columns, self._table.row_sums[None, :])
        after = [Message.empty(columns, rows)]
        for column in reversed(columns):
            after.append(after[-1].with_column(column, rows, cut=cut))
        whole = after.pop()
        lost = sum(column.dropped for column in columns) + whole.dropped
        error = _distance(lost, whole.at(self._table.row_sums[None, rows.free]))
        return (columns, after[::-1], rows), error


def _first_cut(tilt: Tilt) -> float:
    """Return how much may be left out at each cut, if the chance of the row sums is that of a normal law."""
    rows, columns = tilt.variance.shape
    of_columns = np.maximum(tilt.variance.sum(axis=0), np.finfo(np.float64).tiny)
    spread = np.diag(tilt.variance.sum(axis=1)) - (tilt.variance / of_columns) @ tilt.variance.T
    chance = 1 / math.sqrt(np.linalg.det(np.eye(rows) + 2 * np.pi * spread))
    return float(TOLERANCE * chance / (8 * (rows + 1) * (columns + 1)))


def _certified(run: Callable[[float], tuple[_Found, float]], cut: float) -> _Found:
    """Return what `run` finds with so little left out that the error is within the tolerance; at last, with nothing."""
    for attempt in range(4):
        found, error = run(cut)
        if error <= TOLERANCE:
            break
        cut = cut * TOLERANCE / error / 8 if attempt < 2 and error < 1 else 0.0
    return found


def _distance(lost: float, mass: _Float) -> float:
    """Return the bound of the total variation: what was left out, as a part of that and of what was found."""
    found = float(mass.sum())
    if found <= 0 and lost <= 0:
        raise InvalidTable("the sums and the released cells contradict each other: no table has all of them.")
    return float(lost / (found + lost))


def _moved(count_law: PoissonBinomial, has_it: _Float, law: _Float) -> _Float:
    """Return the deviation of a person for each answer: infinite for an answer without mass."""
    posterior = np.divide(has_it, law, out=np.zeros_like(has_it), where=law > 0)
    return np.where(law > 0, count_law.deviation(posterior), np.inf)


def _at_most(count_law: PoissonBinomial, moved: _Float, uncertain: _Float) -> _Float:
    """Return the largest that the deviation can be when the law is only known within a total variation."""
    if not count_law.people.size:
        return np.zeros_like(uncertain)
    smaller = np.minimum(count_law.probability, 1 - count_law.probability).min()
    return np.asarray(np.minimum(moved + uncertain / smaller, (1 - smaller) / smaller))


def _having_it(
    column: Column,
    count_laws: list[PoissonBinomial],
    rest: Message,
    rows: MessageRows,
    targets: AnswerTargets,
) -> _Float:
    """Return for each target its mass, and that where a person of each kind in the column has the attribute."""
    from tabulary.table_samplers.column_kernels import having_it

    low, free = column.low[rows.free], rows.free
    least, most = rows.least - column.high[free], rows.most - low
    mass = rest.between(least, most)
    starts = np.concatenate([[0], np.cumsum(column.widths)])
    kinds = [count_law.people.size for count_law in count_laws]
    chances = np.zeros((sum(kinds), int(column.widths.max())))
    for i, count_law in enumerate(count_laws):
        here = slice(sum(kinds[:i]), sum(kinds[: i + 1]))
        chances[here, : column.widths[i]] = count_law.chances_between(int(column.low[i]), int(column.high[i]))
    found = having_it(
        mass.ravel(),
        flat(targets.targets[:, free] - low - least, mass.shape),
        flat(column.cells[:, free], mass.shape),
        column.weights,
        column.cells + starts[:-1],
        chances,
        np.repeat(starts[:-1], kinds),
        int(starts[-1]),
    )
    return targets.weights[:, None] * found


def _chosen(column: Column, rest: Message, left: _Int, rows: MessageRows, uniform: _Float) -> _Int:
    """Return a filling of the column for each vector of what is left of the row sums."""
    states, which = np.unique(left, axis=0, return_inverse=True)
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(states) + 1))
    chosen = np.empty(len(left), dtype=np.int64)
    for state in range(len(states)):
        places = states[state] - column.low - column.cells
        reached = np.cumsum(column.weights * rest.at(places[:, rows.free]))
        here = order[ends[state] : ends[state + 1]]
        # A product that rounds up to the whole would choose a filling beyond the last one.
        aim = np.minimum(uniform[here] * reached[-1], np.nextafter(reached[-1], 0.0))
        chosen[here] = np.searchsorted(reached, aim, side="right")
    return np.asarray(column.low + column.cells[chosen])
