"""Workbooks read back as a reader would: from the headers of a sheet to each number and its ±."""

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import openpyxl
from openpyxl.utils.cell import coordinate_to_tuple


class ReadCell(NamedTuple):
    """A number of a sheet: the labels of its block, row and column, its own cell, and that of its ± if it has one."""

    block: str
    row: tuple[str, ...]
    column: str
    count: Any
    half: Any


def opened(data: bytes) -> Any:
    """Return a workbook as openpyxl reads it."""
    return openpyxl.load_workbook(io.BytesIO(data))


def table_sheets(book: Any) -> list[Any]:
    """Return the sheets of the tables: all but the first and the last."""
    return list(book.worksheets[1:-1])


def read_cells(sheet: Any, errors: str | None = "below") -> Iterator[ReadCell]:
    """Yield the numbers of a sheet from the top left, `errors` below or beside them; None where none is shown."""
    first, stub = (place - 1 for place in coordinate_to_tuple(sheet.freeze_panes))
    rows = list(sheet.iter_rows())
    merged = {(r.min_row - 1, r.min_col - 1): r for r in sheet.merged_cells.ranges}
    step = 2 if errors == "beside" else 1
    last = max(place for place, cell in enumerate(rows[first - 1]) if cell.has_style) + 1
    columns = [rows[first - 1][place].value for place in range(stub, last, step)]
    block, labels, row = "", [""] * stub, first
    while any(cell.value is not None for cell in rows[row]):
        heading = merged.get((row, 0))
        if heading is not None and heading.max_col == last > stub and heading.max_row == heading.min_row:
            block, row = rows[row][0].value, row + 1
            continue
        labels = [
            cell.value if cell.value is not None else old
            for cell, old in zip(rows[row], labels, strict=False)
        ]
        for number, column in enumerate(columns):
            place = stub + number * step
            half = {"below": (row + 1, place), "beside": (row, place + 1)}.get(errors or "")
            yield ReadCell(
                block,
                tuple(labels[:stub]),
                column or "",
                rows[row][place],
                None if half is None else rows[half[0]][half[1]],
            )
        row += 2 if errors == "below" else 1


def counts_by_label(data: bytes, errors: str | None = "below") -> dict[tuple[str, ...], Any]:
    """Return the counts of the first table of a workbook: by the labels of block, row and column."""
    sheet = table_sheets(opened(data))[0]
    return {(c.block, *c.row, c.column): c.count.value for c in read_cells(sheet, errors)}
