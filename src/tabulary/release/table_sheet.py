"""The sheet of one table: a heading, rows by columns with totals, each number with its ±, and notes below."""

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import numpy as np

from tabulary.errors import InvalidArgument
from tabulary.release.arrangement import ArrangedTable, TableLine
from tabulary.release.publication import DOUBT, IMPOSSIBLE, NO_NUMBER, Publication, Status
from tabulary.release.sheet import Sheet, lines, measure
from tabulary.release.svg import rounded_up

GREY, RULE, SHADE, INK = "#595959", "#BFBFBF", "#EDEFF2", "#1F3A5F"
"""The colours of a workbook: small print, lines, headings of blocks, titles and links."""

_SMALL = 8
# Bold letters are this much wider.
_BOLD = 1.08
_WIDEST_STUB, _NARROWEST_STUB = 44.0, 10.0
_WIDEST_COLUMN, _NARROWEST_COLUMN = 13.0, 8.0
_FEW_NOTES = 10
# Longer words are broken.
_LONGEST_WORD = 20.0
# A header of a column is folded into about this many lines.
_HEADER_LINES = 5


class ErrorPlace(StrEnum):
    """Where the half-width of a number stands: in the row below it, or in the column beside it."""

    below = "below"
    beside = "beside"

    @classmethod
    def named(cls, name: str) -> "ErrorPlace":
        """Return the place with this name.

        >>> ErrorPlace.named("beside")
        <ErrorPlace.beside: 'beside'>
        """
        if name not in set(cls):
            raise InvalidArgument(
                f'errors are shown "below" or "beside" a number, not {name!r}. Nothing was written.'
            )
        return cls(name)


def write_table(
    sheet: Sheet, published: Publication, heading: str, *, errors: ErrorPlace, contents: str, title: str
) -> None:
    """Write a table into an empty sheet, ready to read and to print. `title` is that of the whole workbook."""
    _TableSheet(sheet, ArrangedTable.of(published), errors).write(heading, contents, title)


def signs(published: Publication) -> Iterator[str]:
    """Yield the meaning of every sign that occurs in a table."""
    occurring = set(published.marks())
    if published.errors is not None:
        chance = {0.95: "19 times out of 20", 0.9: "9 times out of 10", 0.99: "99 times out of 100"}.get(
            published.confidence, f"with probability {100 * published.confidence:g} %"
        )
        yield f"±: {chance} the true count is no farther away than this."
    if Status.unreliable in occurring:
        yield f"{DOUBT} and grey italics: {published.meaning(Status.unreliable)}."
    if Status.impossible in occurring:
        yield f"{IMPOSSIBLE}: {published.meaning(Status.impossible)}."
    if Status.withheld in occurring:
        yield f"{NO_NUMBER}: {published.meaning(Status.withheld)}."


class _TableSheet:
    """The places of a table on its sheet."""

    def __init__(self, sheet: Sheet, table: ArrangedTable, errors: ErrorPlace) -> None:
        self.sheet = sheet
        self.book = sheet.book
        self.table = table
        self.published = table.published
        known = table.half_widths is not None
        self.below = known and errors is ErrorPlace.below
        self.beside = known and errors is ErrorPlace.beside
        self.step = 2 if self.beside else 1
        # The rows before which a page may end: never between a number and its half-width, or after a heading.
        self.ends: dict[int, bool] = {}
        self.number_format = "#,##0.0" if self.published.decimals("count") else "#,##0"

    def write(self, heading: str, contents: str, title: str) -> None:
        """Write everything from the top."""
        sheet, published = self.sheet, self.published
        sheet.set_widths(self._widths())
        sheet.paragraph(heading, size=13, bold=True, font_color=INK)
        about = [published.words.counted(), f"Source: {published.origin}" if published.origin else ""]
        sheet.paragraph(". ".join(filter(None, about)), size=9, font_color=GREY)
        sheet.paragraph("Back to the contents", size=9, font_color=INK, underline=1, link=contents)
        sheet.gap()
        first = sheet.row
        self._write_head()
        sheet.sheet.freeze_panes(sheet.row, 1)
        last = sheet.row - 1
        for label, place in self.table.blocks():
            self._write_block(label, place)
        self._write_end()
        for number, note in enumerate(self._notes()):
            # A few notes stay with the end of their table, so that no page has only the last of them.
            if number >= _FEW_NOTES:
                self.ends[sheet.row] = False
            sheet.paragraph(note, size=9)
        sheet.for_a4(title, head=(first, last), ends=self.ends)

    def _notes(self) -> Iterator[str]:
        yield from signs(self.published)
        if any(map(self.table.has_totals, self.table.arrangement.order)):
            yield "Totals have a ± of their own, from the same measurements: it is not the sum of those above."
        yield from self.published.words.attribute_remarks(self.published.domain.attributes)
        yield from self.published.notes

    def _widths(self) -> list[float]:
        """Return the widths of all columns: as narrow as the numbers and folded labels allow."""
        names = [self._stub_name(), *(line.label for line in self.table.lines())]
        stub = min(max(_NARROWEST_STUB, _BOLD * max(map(measure, names)) + 2), _WIDEST_STUB)
        return [stub, *self._number_widths()]

    def _stub_name(self) -> str:
        return "".join(map(self.published.label, self.table.arrangement.rows))

    def _number_widths(self) -> Iterator[float]:
        counts, halves = self.table.counts, self.table.half_widths
        number = _digits(counts, self.published.decimals("count")) + 2
        half = 0 if halves is None else 0.85 * (_digits(halves, 0) + 1)
        for label in self._column_labels():
            words = max(map(measure, label.split()), default=0.0)
            folded = min(measure(label) / _HEADER_LINES + 2, _WIDEST_COLUMN)
            header = _BOLD * max(folded, min(words, _LONGEST_WORD)) + 2.5
            if self.beside:
                second = max(half + 1.5, 5.0)
                yield max(number, header - second, _NARROWEST_COLUMN - 2)
                yield second
            else:
                yield max(number, half + 1, header, _NARROWEST_COLUMN)

    def _column_labels(self) -> list[str]:
        columns = self.table.arrangement.columns
        return self.table.labels(columns[0]) if columns else [self.published.measure_labels["count"]]

    def _is_total_column(self, column: int) -> bool:
        columns = self.table.arrangement.columns
        return bool(columns) and column == self.table.width - 1 and self.table.has_totals(columns[0])

    def _write_head(self) -> None:
        """Write the names of the attributes, and the labels of the columns."""
        sheet, arrangement = self.sheet, self.table.arrangement
        looks = {"bold": True, "text_wrap": True, "valign": "bottom", "bottom": 1}
        stub = self.book.look(**looks, top=1)
        # A number and its half-width stand in two columns: their header stands between them.
        looks["align"] = "center" if self.beside else "right"
        level = self.book.look(**looks)
        height = 2 if arrangement.columns else 1
        sheet.spanned(sheet.row, 0, height, 1, self._stub_name(), stub)
        for attribute in arrangement.columns:
            look = self.book.look(bold=True, top=1, font_color=INK)
            width = self.table.width * self.step
            label = self.published.label(attribute)
            sheet.spanned(sheet.row, 1, 1, width, label, look)
            room = sum(sheet.widths[1 : 1 + width])
            sheet.set_height(sheet.row, lines(label, room / _BOLD))
            sheet.row += 1
        tallest = 1
        for number, label in enumerate(self._column_labels()):
            column = 1 + number * self.step
            look = level if arrangement.columns else self.book.look(**looks, top=1)
            sheet.spanned(sheet.row, column, 1, self.step, label, look)
            tallest = max(tallest, lines(label, sum(sheet.widths[column : column + self.step]) / _BOLD))
        needed = lines(self._stub_name(), sheet.widths[0] / _BOLD) + 1 - height
        sheet.set_height(sheet.row, max(tallest, needed))
        sheet.row += 1

    def _write_block(self, label: str, place: tuple[int, ...]) -> None:
        sheet = self.sheet
        self.ends[sheet.row] = bool(place)
        if label:
            wide = 1 + self.table.width * self.step
            look = self.book.look(bold=True, bg_color=SHADE, valign="vcenter", text_wrap=True)
            sheet.spanned(sheet.row, 0, 1, wide, label, look)
            sheet.set_height(sheet.row, 0.4 + lines(label, sum(sheet.widths) / _BOLD))
            sheet.row += 1
        for number, line in enumerate(self.table.lines()):
            # A total stays with what it sums.
            if number and not line.total:
                self.ends[sheet.row] = False
            self._write_line(number, line, place + line.place)

    def _write_end(self) -> None:
        """Draw the line below the table."""
        look = self.book.look(top=1)
        for column in range(1 + self.table.width * self.step):
            self.sheet.sheet.write_blank(self.sheet.row, column, None, look)
        self.sheet.gap()

    def _write_line(self, number: int, line: TableLine, place: tuple[int, ...]) -> None:
        """Write one row of numbers, with the labels that begin in it."""
        sheet, tall = self.sheet, 2 if self.below else 1
        edge = {"top": 4, "top_color": RULE} if number else {}
        if line.total:
            edge = {"top": 1, "bold": True}
        stub = self.book.look(text_wrap=True, **edge)
        needed = lines(line.label, sheet.widths[0] / (_BOLD if line.total else 1.0))
        height = tall if needed > 1 else 1
        sheet.spanned(sheet.row, 0, height, 1, line.label, stub)
        if height < tall:
            sheet.sheet.write_blank(sheet.row + 1, 0, None, self.book.look())
        sheet.set_height(sheet.row, 1 if self.below else needed)
        if self.below:
            sheet.set_height(sheet.row + 1, max(needed - 1.0, 1.0))
        counts = np.atleast_1d(self.table.counts[place]).tolist()
        status = np.atleast_1d(self.table.status[place]).tolist()
        halves = self.table.half_widths
        widths = [None] * len(counts) if halves is None else np.atleast_1d(halves[place]).tolist()
        for column, (count, mark, half) in enumerate(zip(counts, status, widths, strict=True)):
            self._write_cell(sheet.row, column, count, mark, half, edge)
        sheet.row += tall

    def _write_cell(
        self, row: int, column: int, count: float, mark: str, half: float | None, edge: dict[str, Any]
    ) -> None:
        """Write a number as a number, with its sign in the format of the cell; and its half-width."""
        sheet, place = self.sheet, 1 + column * self.step
        looks: dict[str, Any] = {"align": "right", **edge}
        if self._is_total_column(column):
            looks["bold"] = True
        if mark == Status.withheld:
            sheet.text(row, place, NO_NUMBER, self.book.look(**looks))
        else:
            if mark == Status.unreliable:
                signed = f'"{DOUBT}"{self.number_format}'
                looks |= {"italic": True, "font_color": GREY, "num_format": f"{signed};-{signed}"}
            elif mark == Status.impossible:
                looks["num_format"] = f'"{IMPOSSIBLE}";"{IMPOSSIBLE}";"{IMPOSSIBLE}"'
            else:
                looks["num_format"] = self.number_format
            sheet.sheet.write_number(row, place, count, self.book.look(**looks))
        if half is None:
            return
        shown = mark not in (Status.withheld, Status.impossible)
        half = rounded_up(half)
        small = {"align": "right", "font_size": _SMALL, "font_color": GREY}
        small["num_format"] = '"±"#,##0' if float(half).is_integer() else '"±"#,##0.0'
        if self.below:
            row += 1
        else:
            place += 1
            small |= {**edge, "bold": False, "align": "left", "valign": "top"}
        if shown:
            sheet.sheet.write_number(row, place, half, self.book.look(**small))
        else:
            sheet.sheet.write_blank(row, place, None, self.book.look(**small))


def _digits(numbers: Any, decimals: int) -> int:
    """Return how many characters the longest of some numbers has."""
    ends = (float(np.min(numbers)), float(np.max(numbers))) if np.size(numbers) else (0.0,)
    return max(len(f"{math.copysign(math.floor(abs(end)), end):,.{decimals}f}") for end in ends)
