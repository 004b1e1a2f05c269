"""The layout of a table on a page: headers with their spans, cells with their marks, totals, and notes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np

from tabulary.builder.pages.choices import Choices, Names, Show
from tabulary.builder.pages.grid import Grid, Smaller
from tabulary.core.domain import Domain, Margin
from tabulary.core.labels import Labels
from tabulary.release import ReleasedTable
from tabulary.release.page_table import Header, PageRow, PageTable
from tabulary.release.publication import DOUBT, IMPOSSIBLE, NO_NUMBER
from tabulary.workflows.answering.answers import TableAnswer

MEASURES: Mapping[Show, str] = {
    Show.counts: "Count",
    Show.row_percent: "Per cent of the row",
    Show.column_percent: "Per cent of the column",
    Show.total_percent: "Per cent of all",
}
"""The name of the numbers, for each choice."""

# Below this half-width, in people or in points, show a decimal; from ten times a unit on, use a coarser unit.
_EARNS_A_DECIMAL = 2.0


class PageCell(NamedTuple):
    """A shown number: rounded, with its half-width, and whether noise dominates it.

    `levels` names the cell as a query, "sex=F&age=old", so that a reader can select it; it leaves out attributes that
    are summed over. None if the cell cannot be selected: a sum of some of the levels. `value`, `lower` and `upper` are
    not rounded; None if there is no number, or no interval.

    >>> PageCell("1,240", "35", False, "sex=F", False, 1239.6, 1205.1, 1274.1).words
    '1,240, give or take 35'
    >>> PageCell("−3", "35", True, "sex=M", False, -3.0, -37.5, 31.5).words
    '−3, give or take 35: noise dominates'
    """

    text: str
    half: str
    doubt: bool
    levels: str | None
    total: bool
    value: float | None
    lower: float | None
    upper: float | None

    @property
    def words(self) -> str:
        """The number in words, for screen readers and tooltips."""
        if self.text == NO_NUMBER:
            return "no number is given"
        if self.text == IMPOSSIBLE:
            return "zero, because this combination cannot occur"
        told = f"{self.text}, give or take {self.half}" if self.half else self.text
        return f"{told}: noise dominates" if self.doubt else told


@dataclass(frozen=True)
class BuiltTable(PageTable[PageCell]):
    """Everything that a page shows of a table, in the order of the page.

    `row_labels` and `column_labels` name the rows and columns without totals, one label per attribute; one empty tuple
    if there is no attribute.

    >>> from tabulary.core.table import Table
    >>> from tabulary.noise import DiscreteLaplace
    >>> from tabulary.planning import CellErrors
    >>> from tabulary.release import ReleasedTable
    >>> domain = Domain({"sex": ["F", "M"], "age": ["young", "old"]})
    >>> errors = CellErrors(DiscreteLaplace(3), np.ones((2, 2), dtype=np.int64))
    >>> table = ReleasedTable(Table(domain, [[120, 44], [98, -2]]), errors)
    >>> from tabulary.core.labels import VariableLabels
    >>> sex = VariableLabels("Sex", levels={"F": "Women", "M": "Men"})
    >>> labels = Labels(variables={"sex": sex, "age": VariableLabels("Age")})
    >>> chosen = Choices(rows=("sex",), columns=("age",))
    >>> view = BuiltTable.of(TableAnswer(table, None, None), chosen, labels)
    >>> print(view.caption)
    Count by Sex (rows) and Age (columns)
    >>> for row in view.body:
    ...     print(row.heads[0].label, [f"{DOUBT * cell.doubt}{cell.text} ± {cell.half}" for cell in row.cells])
    Women ['120 ± 9', '44 ± 9', '164 ± 12']
    Men ['98 ± 9', '~−2 ± 9', '96 ± 12']
    Total ['218 ± 12', '42 ± 12', '260 ± 17']
    """

    caption: str
    measure: str
    notes: tuple[str, ...]
    row_labels: tuple[tuple[str, ...], ...]
    column_labels: tuple[tuple[str, ...], ...]
    has_errors: bool
    has_doubt: bool

    @classmethod
    def of(
        cls,
        answer: TableAnswer,
        choices: Choices,
        labels: Labels,
        *,
        smaller: Smaller | None = None,
    ) -> "BuiltTable":
        """Return the layout of an answer, cut to the question of the choices. Post-processing: reads no data.

        `smaller` gives the totals of tables that need it (`grid.smaller_tables`; `grid` says which tables do). Without
        it the errors of totals of a reconstructed table are upper bounds.
        """
        grid = Grid.of(answer.table, choices, smaller=smaller)
        named = _Names(answer.table.domain, choices, labels)
        rows, columns = named.labels(choices.rows), named.labels(choices.columns)
        # A total over no attribute is the cell itself.
        height = len(rows) + (choices.totals and bool(choices.rows))
        width = len(columns) + (choices.totals and bool(choices.columns))
        shown = grid.corner(height, width)
        unit = _unit(shown, percent=choices.show is not Show.counts)
        body = tuple(_body(shown, named, unit))
        return cls(
            caption=named.caption(),
            measure=MEASURES[choices.show],
            head=named.head(width),
            body=body,
            notes=(
                *_notes(shown, choices, answer, unit),
                *labels.attribute_remarks(choices.by),
                *labels.notes,
                *filter(None, [labels.source_line]),
            ),
            row_labels=rows,
            column_labels=columns,
            has_errors=not bool(np.isnan(grid.widths).all()),
            has_doubt=bool(shown.doubt.any()),
        )

    @property
    def size(self) -> str:
        """The size of the table, without its totals."""
        rows, columns = len(self.row_labels), len(self.column_labels)
        cells = f"{rows * columns:,} cell{'' if rows * columns == 1 else 's'}"
        return f"{cells}, {rows:,} × {columns:,}" if rows > 1 and columns > 1 else cells

    def cells(self) -> list[tuple[PageCell, ...]]:
        """Return the cells without totals, row by row."""
        return [row.cells[: len(self.column_labels)] for row in self.body if not row.total]


@dataclass(frozen=True)
class _Names:
    """The names of the variables and levels of a table, and their places."""

    domain: Domain
    choices: Choices
    words: Labels

    def variable(self, attribute: str) -> str:
        """Return what a variable is called."""
        return attribute if self.choices.names is Names.codes else self.words.name(attribute)

    def level(self, attribute: str, code: str) -> str:
        """Return what a level is called."""
        return code if self.choices.names is Names.codes else self.words.level(attribute, code)

    def levels(self, attribute: str) -> list[str]:
        """Return the names of the levels of an attribute."""
        return [self.level(attribute, code) for code in self.domain.levels_of(attribute)]

    def labels(self, attributes: Margin) -> tuple[tuple[str, ...], ...]:
        """Return the labels of every row or column, the last attribute fastest."""
        return tuple(product(*map(self.levels, attributes)))

    def queries(self, attributes: Margin) -> list[str | None]:
        """Return every row or column as a query, and last their sum; None if it is a sum of only some levels."""
        kept = dict(self.choices.keep)
        codes = product(*map(self.domain.levels_of, attributes))
        found: list[str | None] = [urlencode(list(zip(attributes, each, strict=True))) for each in codes]
        return [*found, None if any(a in kept for a in attributes) else ""]

    def caption(self) -> str:
        """Return the caption: what the table shows, and for which people."""
        sides = ((self.choices.rows, "rows"), (self.choices.columns, "columns"))
        by = [f"{', '.join(map(self.variable, side))} ({words})" for side, words in sides if side]
        only = "; ".join(f"{self.variable(a)}: {self.level(a, code)}" for a, code in self.choices.where)
        said = f"{MEASURES[self.choices.show]}{' by ' if by else ''}{' and '.join(by)}"
        return f"{said}, only {only}" if only else said

    def head(self, width: int) -> tuple[tuple[Header, ...], ...]:
        """Return the rows of headers above this number of columns."""
        rows, columns = self.choices.rows, self.choices.columns
        deep = 1 + len(columns)
        stub = tuple(Header(self.variable(a), "col", rowspan=deep, kind="stub") for a in rows) or (
            Header("", "", rowspan=deep),
        )
        if not columns:
            return ((*stub, Header(MEASURES[self.choices.show], "col")),)
        across = Header(", ".join(map(self.variable, columns)), "col", colspan=width)
        head = [(*stub, across)]
        repeated, left = 1, len(self.labels(columns))
        for depth, attribute in enumerate(columns):
            levels = self.levels(attribute)
            left //= len(levels)
            line = [Header(level, "col", colspan=left) for level in levels] * repeated
            if depth == 0 and width > len(levels) * left:
                line.append(Header(self.words.total, "col", rowspan=len(columns), kind="total"))
            head.append(tuple(line))
            repeated *= len(levels)
        return tuple(head)

    def row_heads(self) -> Iterator[tuple[Header, ...]]:
        """Yield the headers that begin in each row, and last the header of the total."""
        rows = self.choices.rows
        if not rows:
            yield (Header(MEASURES[self.choices.show], "row"),)
            return
        sizes = [len(self.domain.levels_of(a)) for a in rows]
        # The number of rows that a level of each attribute spans.
        spans = [math.prod(sizes[depth + 1 :]) for depth in range(len(rows))]
        for number, labels in enumerate(self.labels(rows)):
            yield tuple(
                Header(label, "row", rowspan=span)
                for label, span in zip(labels, spans, strict=True)
                if number % span == 0
            )
        yield (Header(self.words.total, "row", colspan=len(rows), kind="total"),)


@dataclass(frozen=True)
class _Unit:
    """The rounding of numbers, the same for a whole table; per cent signs are part of the number."""

    unit: float
    percent: bool

    def number(self, value: float) -> str:
        """Return the text of a number, with a true minus sign and no minus zero."""
        text = self._written(round(value / self.unit) * self.unit)
        return f"{text}\u00a0%" if self.percent else text

    def width(self, value: float) -> str:
        """Return the text of a half-width, rounded up, so that no shown interval is too short."""
        return self._written(math.ceil(value / self.unit - 1e-6) * self.unit)

    def note(self) -> str:
        """Return a sentence about the rounding."""
        words = {0.1: "one decimal", 1: "whole numbers"}.get(self.unit, f"multiples of {self.unit:,.0f}")
        return (
            f"Numbers are rounded here to {words}, as their errors justify, and half-widths upwards. Downloads and the "
            "API hold them as they were published."
        )

    def _written(self, rounded: float) -> str:
        text = f"{abs(rounded):,.1f}" if self.unit < 1 else f"{abs(rounded):,.0f}"
        return f"−{text}" if rounded < 0 else text


def _unit(shown: Grid, *, percent: bool) -> _Unit:
    """Return the unit that the smallest error justifies: a tenth of it or less, and no more than one decimal."""
    widths = shown.widths[shown.widths > 0]
    if not widths.size:
        values = shown.values[~np.isnan(shown.values)]
        return _Unit(0.1 if percent or np.any(values != np.rint(values)) else 1.0, percent)
    least = float(widths.min())
    if least < _EARNS_A_DECIMAL:
        return _Unit(0.1, percent)
    return _Unit(1.0 if percent else max(1.0, 10.0 ** (math.floor(math.log10(least)) - 1)), percent)


def _body(shown: Grid, named: _Names, unit: _Unit) -> Iterator[PageRow[PageCell]]:
    lines = zip(
        named.row_heads(),
        named.queries(named.choices.rows),
        *(
            part.tolist()
            for part in (shown.values, shown.widths, shown.lower, shown.upper, shown.parts, shown.doubt)
        ),
        strict=False,
    )
    queries = named.queries(named.choices.columns)
    right = len(queries) - 1
    bottom = len(named.labels(named.choices.rows))
    for number, (heads, row, *numbers) in enumerate(lines):
        cells = tuple(
            _cell(*cell, levels=_joined(row, column), total=number == bottom or place == right, unit=unit)
            for place, (column, *cell) in enumerate(zip(queries, *numbers, strict=False))
        )
        yield PageRow(heads, cells, number == bottom)


def _cell(
    value: float,
    width: float,
    lower: float,
    upper: float,
    parts: int,
    doubt: bool,
    *,
    levels: str | None,
    total: bool,
    unit: _Unit,
) -> PageCell:
    if not parts:
        return PageCell(IMPOSSIBLE, "", False, None, total, None, None, None)
    if value != value:
        return PageCell(NO_NUMBER, "", False, levels, total, None, None, None)
    if width != width:
        return PageCell(unit.number(value), "", False, levels, total, value, None, None)
    half = unit.width(width) if width else ""
    return PageCell(unit.number(value), half, doubt, levels, total, value, lower, upper)


def _joined(row: str | None, column: str | None) -> str | None:
    if row is None or column is None:
        return None
    return f"{row}&{column}" if row and column else row or column


def _notes(shown: Grid, choices: Choices, answer: TableAnswer, unit: _Unit) -> Iterator[str]:
    """Yield notes about the numbers for readers, the most important first."""
    counted, keyed = choices.show is Show.counts, not isinstance(answer.table, ReleasedTable)
    summed = not counted or (choices.totals and bool(choices.by))
    if keyed:
        yield "The error of a number is not given: it depends on the count itself."
    else:
        yield f"±: 19 times out of 20 the true {'count' if counted else 'share'} is no farther away than this."
    if shown.doubt.any():
        yield f"{DOUBT} and shading: noise dominates, the interval reaches zero."
    if not (counted and keyed):
        yield unit.note()
    if answer.reconstructed:
        yield (
            "The tables were made non-negative, and small counts tend to be too high. Comparisons use the unbiased "
            "estimates from the same measurements instead."
        )
    if summed and shown.bounded:
        yield "The error of a sum of some levels is at most what is told here: the sum of their errors."
    if summed and keyed:
        yield "Each total is perturbed separately, so the numbers shown may not add up to it."
    if summed and choices.keep:
        yield "Totals and shares cover only the levels that are shown."
    if not counted and not keyed:
        known = "know that part and whole share noise" if shown.alike else "assume the worst of shared errors"
        yield f"Intervals of shares, by Fieller, {known}; ± is the longer of their sides."
    if not counted and not _other_side(choices):
        yield "There is no variable on the other side of the table, so every share is 100 %."
    if np.any(np.isnan(shown.values) & (shown.parts > 0)):
        yield f"{NO_NUMBER}: {'withheld' if keyed else 'no share is given, because the total may be zero'}."
    if np.any(shown.parts == 0):
        yield f"{IMPOSSIBLE}: an impossible combination, exactly zero."


def _other_side(choices: Choices) -> Sequence[str]:
    """Return the attributes over which the whole of a share is summed."""
    return {
        Show.row_percent: choices.columns,
        Show.column_percent: choices.rows,
    }.get(choices.show, choices.by)
