"""The workbook of a release: its contents, one sheet per table as people read it, and what is promised."""

import datetime
import io
from collections.abc import Sequence
from typing import NamedTuple

from tabulary.release.publication import Publication
from tabulary.release.sheet import FONT, Book, Sheet, lines, sheet_names
from tabulary.release.table_sheet import INK, RULE, ErrorPlace, signs, write_table

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

PACKAGES = ("xlsxwriter",)

MOST_CELLS = 100_000
"""The most cells of a table in a workbook, without its totals.

A sheet has 1,048,576 rows. A table takes the most rows per cell if its attributes have one level each: with totals,
half-widths and headings of blocks these are ten rows per cell. So a table of this size always fits, in any arrangement.
"""

CONTENTS, PROMISE = "Contents", "What is promised"

# A fixed time that every zip file can hold; otherwise a workbook would state when it was written.
_EPOCH = datetime.date(1980, 1, 1)


class Chapter(NamedTuple):
    """A heading with paragraphs below it."""

    heading: str
    paragraphs: tuple[str, ...]


HOW_TO_READ = Chapter(
    "How to read ±",
    (
        "A number is an estimate of the true count. 19 times out of 20, if no other share is stated, the true count is "
        "no farther away than the ± says. That holds for each number on its own: among a hundred numbers about five "
        "are farther away.",
        "A difference between two numbers that is smaller than both ± together may be noise alone.",
        "If the ± reaches zero, the number has the sign ~: noise dominates it. Do not read anything into it.",
    ),
)
"""What a reader who knows no statistics should know about ±."""


def workbook_bytes(
    tables: Sequence[Publication],
    *,
    title: str,
    about: Sequence[str] = (),
    promise: Sequence[Chapter] = (),
    date: datetime.date = _EPOCH,
    errors: ErrorPlace = ErrorPlace.below,
) -> bytes:
    """Return a workbook of these tables. The same arguments always give the same bytes.

    `about` are the sentences below the title, and `promise` the last sheet. Numbers are numbers, with all their digits
    as far as a spreadsheet has them, and are shown with at most one decimal; every text is text, even one that begins
    with =. `date` is the day of the release: the workbook never states when it was written.
    """
    import xlsxwriter

    names = sheet_names([_short(table) for table in tables])
    buffer = io.BytesIO()
    # The width of a column is stated in digits of the default font.
    options = {"in_memory": True, "default_format_properties": dict(FONT)}
    with xlsxwriter.Workbook(buffer, options) as file:
        author = next((table.source for table in tables if table.source), "")
        created = datetime.datetime.combine(date, datetime.time())
        file.set_properties({"title": title, "author": author, "created": created})
        book = Book(file)
        _write_contents(book.sheet(CONTENTS), tables, title, about, names)
        for number, (name, table) in enumerate(zip(names, tables, strict=True), start=1):
            heading = f"Table {number}. {table.heading}"
            write_table(book.sheet(name), table, heading, errors=errors, contents=CONTENTS, title=title)
        _write_promise(book.sheet(PROMISE), title, promise)
    return buffer.getvalue()


def _short(table: Publication) -> list[str]:
    labels = [table.label(attribute) for attribute in table.domain.attributes]
    return [table.title] if table.title else labels or [table.words.total]


def xlsx_bytes(published: Publication) -> bytes:
    """Return the workbook of one table."""
    return workbook_bytes(
        [published],
        title=published.heading,
        about=[*filter(None, (published.origin, published.words.description)), *published.words.notes],
        promise=[Chapter(PROMISE, published.notes), *([] if published.errors is None else [HOW_TO_READ])],
    )


def _write_contents(
    sheet: Sheet,
    tables: Sequence[Publication],
    title: str,
    about: Sequence[str],
    names: Sequence[str],
) -> None:
    sheet.set_widths([10, 70, 10])
    sheet.paragraph(title, size=16, bold=True, font_color=INK)
    for text in about:
        sheet.paragraph(text)
    sheet.row += 1
    sheet.text(sheet.row, 2, "Cells", sheet.book.look(bold=True, align="right"))
    _heading(sheet, "Tables")
    rule = {"bottom": 4, "bottom_color": RULE}
    link, text_look = (
        sheet.book.look(font_color=INK, underline=1, **rule),
        sheet.book.look(text_wrap=True, **rule),
    )
    size = sheet.book.look(align="right", num_format="#,##0", **rule)
    for number, (name, table) in enumerate(zip(names, tables, strict=True), start=1):
        sheet.link(sheet.row, 0, name, f"Table {number}", link)
        sheet.text(sheet.row, 1, table.heading, text_look)
        sheet.sheet.write_number(sheet.row, 2, table.cells, size)
        sheet.set_height(sheet.row, lines(table.heading, sheet.widths[1]))
        sheet.row += 1
    sheet.row += 1
    _heading(sheet, "Signs")
    for sign in dict.fromkeys(sign for table in tables for sign in signs(table)):
        sheet.paragraph(sign)
    sheet.row += 1
    sheet.paragraph(f"{PROMISE}, and what is not", font_color=INK, underline=1, link=PROMISE)
    sheet.for_a4(title)


def _write_promise(sheet: Sheet, title: str, sections: Sequence[Chapter]) -> None:
    sheet.set_widths([90])
    sheet.paragraph(PROMISE, size=16, bold=True, font_color=INK)
    sheet.paragraph("Back to the contents", size=9, font_color=INK, underline=1, link=CONTENTS)
    for heading, paragraphs in sections:
        sheet.row += 1
        if heading != PROMISE:
            _heading(sheet, heading)
        for text in paragraphs:
            sheet.paragraph(text)
    sheet.for_a4(title)


def _heading(sheet: Sheet, text: str) -> None:
    sheet.text(sheet.row, 0, text, sheet.book.look(bold=True, font_size=11))
    sheet.set_height(sheet.row, 1.3)
    sheet.row += 1
