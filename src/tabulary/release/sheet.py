"""Sheets of a workbook: text that is always text, folded into cells of a known width, and pages of A4."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any

from tabulary.errors import InvalidTable
from tabulary.release.svg import shortened

TEXT_WIDTH = 90
"""How wide running text is, in characters: one page of A4 upright."""

# One line of a font of this many points; the unit of a column's width is one digit.
_LINE = 1.32
_BODY = 10
FONT = {"font_name": "Arial", "font_size": _BODY}
"""The font of a workbook: every office program has it, or one of the same widths."""

# The room on a page: its width in digits, its height in points.
_PORTRAIT, _LANDSCAPE = 98.0, 144.0
_HIGH, _LOW = 733.0, 487.0
# Programs differ a little in how much of a page they fill.
_FILLED, _FAIRLY_FULL = 0.97, 0.6
_MOST_BREAKS = 1_000
_NOWHERE: Mapping[int, bool] = MappingProxyType({})
# How far a page may be made smaller, so that ten points stay readable on paper.
_SMALLEST = 0.6
_A4 = 9
_LONGEST_NAME = 31
_LONGEST_HEADER = 100
_DEFAULT_WIDTH = 9.0
_SPACE = 0.5
_NARROW, _BROAD = frozenset("fijlrtI.,:;'!|/ ()[]-"), frozenset("mwMW%@…")
_FORBIDDEN = str.maketrans(dict.fromkeys("[]:*?/\\", " "))


class Book:
    """A workbook in the making: its sheets, and the looks of its cells, each made once."""

    def __init__(self, book: Any) -> None:
        self._book = book
        self._looks: dict[tuple[tuple[str, object], ...], Any] = {}

    def look(self, **properties: object) -> Any:
        """Return the look with these properties of `xlsxwriter`."""
        given = {**FONT, "valign": "top", **properties}
        key = tuple(sorted(given.items()))
        if key not in self._looks:
            self._looks[key] = self._book.add_format(given)
        return self._looks[key]

    def sheet(self, name: str) -> "Sheet":
        """Return a new sheet at the end."""
        return Sheet(self, self._book.add_worksheet(name))


class Sheet:
    """A sheet that is written from the top: `row` is the next one that is free."""

    def __init__(self, book: Book, sheet: Any) -> None:
        self.book = book
        self.sheet = sheet
        self.row = 0
        self.widths: list[float] = []
        self._heights: dict[int, float] = {}
        sheet.hide_gridlines(2)

    def set_widths(self, widths: Sequence[float]) -> None:
        """Set the widths of the columns from the left."""
        self.widths = list(widths)
        start = 0
        for place in range(1, len(widths) + 1):
            if place == len(widths) or widths[place] != widths[start]:
                self.sheet.set_column(start, place - 1, widths[start])
                start = place

    def text(self, row: int, column: int, text: str, look: Any) -> None:
        """Write a text as text: one that begins with = is no formula, and 1-2 is no date."""
        if self.sheet.write_string(row, column, text, look) != 0:
            raise InvalidTable(
                "a label is longer than 32,767 characters, the limit of a cell in a workbook. Nothing was "
                "written. Choose CSV or Parquet."
            )

    def spanned(self, row: int, column: int, height: int, width: int, text: str, look: Any) -> None:
        """Write a text into a rectangle of cells."""
        if height * width > 1:
            # Merging would take a text that begins with = for a formula, so it merges an empty one.
            self.sheet.merge_range(row, column, row + height - 1, column + width - 1, "", look)
        self.text(row, column, text, look)

    def paragraph(self, text: str, *, size: int = _BODY, link: str = "", **properties: object) -> None:
        """Write running text in the next row, folded over as many columns as it takes."""
        look = self.book.look(text_wrap=True, font_size=size, **properties)
        columns = self._columns_of_text()
        width = sum(self._width(column) for column in range(columns))
        self.spanned(self.row, 0, 1, columns, text, look)
        if link:
            self.link(self.row, 0, link, text, look)
        self.set_height(self.row, lines(text, width * _BODY / size), size=size)
        self.row += 1

    def gap(self) -> None:
        """Leave a little room."""
        self.set_height(self.row, 0.5)
        self.row += 1

    def link(self, row: int, column: int, sheet: str, text: str, look: Any) -> None:
        """Write a text that leads to another sheet."""
        quoted = sheet.replace("'", "''")
        self.sheet.write_url(row, column, f"internal:'{quoted}'!A1", look, text)

    def set_height(self, row: int, height: float, *, size: int = _BODY) -> None:
        """Make a row as high as this many lines."""
        self._heights[row] = round(_LINE * size * height, 2)
        self.sheet.set_row(row, self._heights[row])

    def _width(self, column: int) -> float:
        return self.widths[column] if column < len(self.widths) else _DEFAULT_WIDTH

    def _columns_of_text(self) -> int:
        columns, width = 0, 0.0
        while width < TEXT_WIDTH:
            width += self._width(columns)
            columns += 1
        return columns

    def for_a4(
        self,
        title: str,
        *,
        head: tuple[int, int] | None = None,
        ends: Mapping[int, bool] = _NOWHERE,
    ) -> None:
        """Lay the sheet out for paper: A4, one page wide, with title and page number on each page.

        `head` are the rows that are repeated. `ends` are the rows before which a page may end, those of a new block
        True. A table so wide that it would become too small to read takes several pages side by side, each with the
        first column.
        """
        sheet = self.sheet
        sheet.set_paper(_A4)
        sheet.set_margins(left=0.5, right=0.5, top=0.75, bottom=0.75)
        width = sum(map(self._width, range(max(len(self.widths), self._columns_of_text()))))
        across, down = (_LANDSCAPE, _LOW) if width > _PORTRAIT / 0.9 else (_PORTRAIT, _HIGH)
        if across == _LANDSCAPE:
            sheet.set_landscape()
        pages = max(math.ceil(width * _SMALLEST / _LANDSCAPE), 1)
        sheet.fit_to_pages(pages, 0)
        if head is not None:
            sheet.repeat_rows(*head)
            if pages > 1:
                sheet.repeat_columns(0)
            scale = min(1.0, pages * across / (width + (pages - 1) * self.widths[0]))
            heights = [self._heights.get(row, _LINE * _BODY) for row in range(self.row)]
            repeated = sum(heights[head[0] : head[1] + 1])
            breaks = page_breaks(heights, ends, room=_FILLED * down / scale, repeated=repeated)
            # Beyond this number Excel refuses the file; then pages end where they are full.
            if len(breaks) <= _MOST_BREAKS:
                sheet.set_h_pagebreaks(breaks)
        # In a header & begins a command.
        shown = shortened(title, _LONGEST_HEADER).replace("&", "&&")
        sheet.set_header(f'&L&"Arial,Regular"&8 {shown}', {"margin": 0.35})
        sheet.set_footer('&C&"Arial,Regular"&8 &P / &N', {"margin": 0.35})


def page_breaks(
    heights: Sequence[float], ends: Mapping[int, bool], *, room: float, repeated: float
) -> list[int]:
    """Return the rows before which a page ends, so that no page is higher than `room`.

    Pages end before rows in `ends` only, and before a new block, for which it has True, if the page is fairly full.
    `repeated` is the height of the rows that stand on every page but the first.

    >>> page_breaks([10] * 6, {1: False, 2: True, 3: False, 4: False, 5: False}, room=30, repeated=0)
    [2, 5]
    """
    tops = [0.0, *accumulate(heights)]
    breaks: list[int] = []
    start, limit = 0, room
    line: int | None = None
    block: int | None = None
    for row in (*ends, len(heights)):
        while tops[row] - tops[start] > limit:
            fuller = block is not None and tops[block] - tops[start] >= _FAIRLY_FULL * limit
            found = block if fuller else line
            if found is None:
                break
            breaks.append(found)
            line, block = line if line != found else None, None
            start, limit = found, room - repeated
        line = row
        block = row if ends.get(row) else block
    return breaks


def sheet_names(titles: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for the sheet of each title: numbered, short, without a character that Excel forbids.

    A title is given in parts, each of which gets its share of the name.

    >>> sheet_names([["Sex"], ["Sex: all/some"], ["Public use microdata area", "Marital status"]])
    ['1 Sex', '2 Sex all some', '3 Public use mi…, Marital stat…']
    """
    names = []
    for number, title in enumerate(titles, start=1):
        parts = [" ".join(part.translate(_FORBIDDEN).split()) for part in title]
        room = _LONGEST_NAME - len(f"{number} ") - 2 * (len(parts) - 1)
        # The shortest part first: what it leaves is shared by the others.
        for left, part in zip(range(len(parts), 0, -1), sorted(parts, key=_utf16), strict=True):
            short = (
                part if _utf16(part) <= room // left else _cut(part, max(room // left - 1, 0)).rstrip() + "…"
            )
            parts[parts.index(part)] = short
            room -= _utf16(short)
        # A name may neither begin nor end with an apostrophe; a number comes first.
        names.append(_cut(f"{number} {', '.join(parts)}", _LONGEST_NAME).rstrip("' "))
    return names


def lines(text: str, width: float) -> int:
    """Return how many lines a text takes in a cell of this width, folded between words.

    >>> lines("Never married", 20), lines("Now married, spouse present", 14), lines("年" * 10, 10)
    (1, 2, 3)
    """
    # A cell has a margin, and fonts differ a little.
    room = max(0.97 * width - 0.7, 1.0)
    count, used = 1, 0.0
    for word in text.split():
        size = measure(word)
        if used and used + _SPACE + size > room:
            count, used = count + 1, 0.0
        used += size + (_SPACE if used else 0)
        while used > room:
            count, used = count + 1, used - room
    return count


def measure(text: str) -> float:
    """Return about how wide a text is in Arial, in digits.

    >>> measure("age"), measure("ill"), measure("年齢")
    (3.0, 1.5, 4.0)
    """
    return float(sum(map(_width_of, text)))


def _width_of(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 2.0
    if character in _NARROW:
        return _SPACE
    return 1.5 if character in _BROAD else 1.25 if character.isupper() else 1.0


def _utf16(text: str) -> int:
    """Return the length of a text as Excel counts it."""
    return len(text.encode("utf-16-le")) // 2


def _cut(text: str, most: int) -> str:
    while _utf16(text) > most:
        text = text[:-1]
    return text
