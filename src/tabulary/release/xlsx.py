"""XLSX: a workbook with the table as people read it, the same in long form, and the small print."""

import datetime
import io
from typing import Any

import numpy as np

from tabulary.core.long_form import value_name
from tabulary.errors import InvalidTable
from tabulary.release.publication import Publication, Status

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

PACKAGES = ("xlsxwriter",)

# A sheet has 1,048,576 rows. The sheet for people needs four above the numbers and one below them.
_HEAD = 4
MOST_CELLS = 1_048_576 - _HEAD - 1
"""The most cells of a table in a workbook."""

_MOST_COLUMNS = 16_384
# A fixed time that every zip file can hold; otherwise a workbook would state when it was written.
_EPOCH = datetime.datetime(1980, 1, 1)


def xlsx_bytes(published: Publication) -> bytes:
    """Return the publication as a workbook with the sheets Table, Cells and Notes.

    The numbers have 16 significant digits, one more than a spreadsheet computes with, and are shown with at most one
    decimal. Where noise dominates they are grey and in italics, so they differ without colour too.
    """
    import xlsxwriter

    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, {"in_memory": True}) as book:
        book.set_properties({"title": published.heading, "author": published.source, "created": _EPOCH})
        bold = book.add_format({"bold": True})
        _write_table(book, published, bold)
        _write_cells(book, published, bold)
        _write_notes(book, published)
    return buffer.getvalue()


def _write_table(book: Any, published: Publication, bold: Any) -> None:
    """Write the sheet for people: the last attribute across, the others down."""
    domain = published.domain
    sheet = book.add_worksheet("Table")
    _write_text(sheet, 0, 0, published.heading, bold)
    down, across = domain.attributes[:-1], domain.attributes[-1:]
    names = {a: [published.level_label(a, level) for level in domain.levels_of(a)] for a in domain.attributes}
    columns = names[across[0]] if across else [published.measure_labels["count"]]
    if len(columns) + len(down) > _MOST_COLUMNS:
        _write_text(sheet, 1, 0, "This table is too wide for a sheet: the sheet Cells contains all of it.")
        return
    for place, attribute in enumerate(down):
        _write_text(sheet, _HEAD - 1, place, published.label(attribute), bold)
    for attribute in across:
        _write_text(sheet, _HEAD - 2, len(down), published.label(attribute), bold)
    for place, label in enumerate(columns):
        _write_text(sheet, _HEAD - 1, len(down) + place, label, bold)
    shown = {"num_format": "#,##0.0" if published.decimals("count") else "#,##0"}
    plain = book.add_format(shown)
    doubted = book.add_format({**shown, "italic": True, "font_color": "#595959"})
    missing = book.add_format({"align": "right"})
    cells = zip(published.values("count"), published.marks(), strict=True)
    for row, index in enumerate(np.ndindex(*domain.shape[:-1]), start=_HEAD):
        for place, (attribute, code) in enumerate(zip(down, index, strict=True)):
            _write_text(sheet, row, place, names[attribute][code])
        for place in range(len(down), len(down) + len(columns)):
            value, mark = next(cells)
            if value is None:
                _write_text(sheet, row, place, "..", missing)
            else:
                sheet.write_number(row, place, value, doubted if mark == Status.unreliable else plain)
    sheet.freeze_panes(_HEAD, len(down))
    _write_text(
        sheet, _HEAD + domain.size // len(columns), 0, "The sheet Notes says what the numbers promise."
    )


def _write_cells(book: Any, published: Publication, bold: Any) -> None:
    """Write the sheet for programs, with the columns of the CSV: one row per cell, all measures and the status."""
    domain = published.domain
    sheet = book.add_worksheet("Cells")
    values = (*published.measures, "status")
    names = [*domain.attributes, *(value_name(name, domain.attributes) for name in values)]
    for place, name in enumerate(names):
        _write_text(sheet, 0, place, name, bold)
    columns = [published.values(name) for name in published.measures]
    width = len(domain.attributes)
    marks = published.marks()
    for row, index in enumerate(np.ndindex(*domain.shape)):
        for place, (levels, code) in enumerate(zip(domain.levels, index, strict=True)):
            _write_text(sheet, row + 1, place, levels[code])
        for place, column in enumerate(columns, start=width):
            value = column[row]
            # A withheld number is an empty cell.
            if value is not None:
                sheet.write_number(row + 1, place, value)
        _write_text(sheet, row + 1, width + len(columns), marks[row])
    sheet.freeze_panes(1, width)


def _write_notes(book: Any, published: Publication) -> None:
    sheet = book.add_worksheet("Notes")
    words = [published.heading, published.origin, *published.small_print()]
    for row, line in enumerate(filter(None, words)):
        _write_text(sheet, row, 0, line)
    sheet.set_column(0, 0, 120)


def _write_text(sheet: Any, row: int, column: int, text: str, look: Any = None) -> None:
    """Write every text as text: a text that begins with = is no formula, and 1-2 is no date."""
    if sheet.write_string(row, column, text, look) != 0:
        raise InvalidTable(
            "a label is longer than 32,767 characters, the limit of a cell in a workbook. Nothing was "
            "written. Choose CSV or Parquet."
        )
