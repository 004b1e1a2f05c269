"""A table as the report shows it: rows by columns, further attributes in blocks, totals, and its picture."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from tabulary.core.domain import Margin
from tabulary.core.labels import Labels
from tabulary.core.workload import show_margin
from tabulary.release.arrangement import ArrangedTable, TableLine
from tabulary.release.conclusions import shell_word
from tabulary.release.figure import Cell, axis_over, whisker_glyph
from tabulary.release.heat_map import MOST_PANELS, MOST_SIDE, fits_a_heat_map, heat_map_svg
from tabulary.release.mosaic import mosaic_svg, reads_as_mosaic
from tabulary.release.page_table import Header, PageRow, PageTable, Scope, cross_head
from tabulary.release.publication import Status
from tabulary.release.svg import Axis
from tabulary.release.table import ReleasedTable
from tabulary.release.totals import TOTAL, can_have_totals

if TYPE_CHECKING:
    from tabulary.release.release import Release

_MOST_COLUMNS = 15
_GLYPH_WIDTH = 260.0
# Totals that differ from the sum of their parts by less are equal up to rounding.
_DUST = 1e-6

Place = tuple[int, ...]
"""The position of a number along each attribute; the last position is the total."""


@dataclass(frozen=True)
class ReportRow(PageRow[Cell]):
    """A row of the report; a table without columns has a small picture of the interval in each row."""

    glyph: str = ""

    @property
    def opens_a_block(self) -> bool:
        """Whether this row is the heading of the rows below it."""
        return self.heads[0].scope == "rowgroup"


@dataclass(frozen=True)
class ReportTable(PageTable[Cell]):
    """One table as the report shows it: a cross-table with `columns`, or one row per cell without them.

    The heading of each block is a row before its rows. `cut` is the number of rows that are left out before the last
    total. `remarks` are what the publisher says about its attributes.
    """

    body: tuple[ReportRow, ...]
    anchor: str
    name: str
    asked: str
    csv: str
    columns: int
    cells: int
    cut: int
    picture: Markup
    unpictured: str
    additive: bool
    two_faces: bool
    remarks: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many columns the table has, its row headers included."""
        return 1 + (self.columns or 2)

    @property
    def cut_at(self) -> int:
        """The row before which rows are left out: the last total, or the heading of its block; -1 without a cut."""
        last = len(self.body) - 1
        return last - self.body[last - 1].opens_a_block if self.cut else -1

    @property
    def has_impossible(self) -> bool:
        """Whether the legend of structural zeros is needed."""
        return any(cell.impossible for row in self.body for cell in row.cells)

    @property
    def has_dominated(self) -> bool:
        """Whether the legend of intervals that reach zero is needed."""
        return any(cell.noise_dominates for row in self.body for cell in row.cells)


def report_table(
    release: "Release", margin: Margin, *, anchor: str, csv: str, most_cells: int, most_drawn: int
) -> ReportTable:
    """Return a table of a release for its report; one of more than `most_cells` cells with about as many numbers.

    Numbers beyond are left out, never the last total. There is no picture if the table has more than `most_drawn`
    cells.
    """
    table = release[margin]
    published = release.publication(margin, totals=can_have_totals(table.domain))
    arranged = ArrangedTable.of(published, most_columns=_MOST_COLUMNS)
    ordered = release[arranged.arrangement.order]
    blocks, lines = list(arranged.blocks()), list(arranged.lines())
    height = len(blocks) * len(lines)
    room = max(most_cells // arranged.width, 1) if table.domain.size > most_cells else height
    shown = list(islice(product(blocks, lines), room))
    # The last row is the total of all: it stays where rows are cut.
    shown[-1] = blocks[-1], lines[-1]
    name = release.labels.table_name(margin)
    picture, unpictured = _picture(ordered, name, release.labels, most_drawn)
    across = bool(arranged.arrangement.columns)
    return ReportTable(
        head=_head(arranged),
        body=tuple(_rows(arranged, shown, None if across else axis_over(ordered, 6, _GLYPH_WIDTH))),
        anchor=anchor,
        name=name,
        asked=shell_word(show_margin(margin)),
        csv=csv,
        columns=arranged.width if across else 0,
        cells=table.domain.size,
        cut=height - len(shown),
        picture=Markup(picture),
        unpictured=unpictured,
        additive=not published.has_totals or _additive(published.counts),
        two_faces=table.unbiased is not table,
        remarks=release.labels.attribute_remarks(margin),
    )


def _head(table: ArrangedTable) -> tuple[tuple[Header, ...], ...]:
    stub = ["".join(map(table.published.label, table.arrangement.rows))]
    for attribute in table.arrangement.columns:
        columns = [_level(table, attribute, place, "col", "number") for place in range(table.width)]
        return cross_head(stub, table.published.label(attribute), columns)
    return cross_head(
        stub, None, [Header("Count", "col", kind="number"), Header("95 % range", "col", kind="glyph")]
    )


def _rows(
    table: ArrangedTable, shown: Iterable[tuple[tuple[str, Place], TableLine]], axis: Axis | None
) -> Iterator[ReportRow]:
    """Yield the shown rows, each block after its heading; with a small picture each, if there is an axis for it."""
    assert table.half_widths is not None, "a release knows its errors"
    numbers = (table.counts, table.half_widths, table.status == Status.impossible)
    columns = 1 + (table.width if axis is None else 2)
    before = ""
    for (label, block), line in shown:
        if label != before:
            yield ReportRow((Header(label, "rowgroup", colspan=columns, kind="block"),), ())
            before = label
        place = block + line.place
        cells = tuple(map(Cell, *(np.ravel(each[place]).tolist() for each in numbers)))
        # A total is far beyond the others: it has no picture.
        glyph = "" if axis is None or line.total else whisker_glyph(cells[0], axis)
        heads = [
            _level(table, a, i, "row", "stub")
            for a, i in zip(table.arrangement.rows, line.place, strict=True)
        ]
        yield ReportRow(
            tuple(heads) or (Header("everyone", "row", kind="stub"),), cells, line.total, Markup(glyph)
        )


def _level(table: ArrangedTable, attribute: str, place: int, scope: Scope, kind: str) -> Header:
    code = table.levels[table.arrangement.order.index(attribute)][place]
    label = table.published.level_label(attribute, code)
    return Header(
        label, scope, kind=f"{kind} sum" if code == TOTAL else kind, code=code if code != label else ""
    )


def _additive(counts: np.ndarray) -> bool:
    """Return whether every total is the sum of its parts, up to the precision of the numbers."""
    counts = np.asarray(counts, dtype=np.float64)
    size = max(float(np.abs(counts).max()), 1.0)
    for axis in range(counts.ndim):
        inner, last = np.split(counts, [counts.shape[axis] - 1], axis=axis)
        if np.abs(inner.sum(axis=axis, keepdims=True) - last).max() > _DUST * size:
            return False
    return True


def _picture(table: ReleasedTable, name: str, labels: Labels, most_drawn: int) -> tuple[str, str]:
    """Return the picture of a table: a mosaic where it is readable, otherwise a heat map; or why there is none."""
    if len(table.margin) < 2:
        return "", ""
    if table.domain.size > most_drawn:
        return "", "The page has room for this many pictures only."
    if reads_as_mosaic(table):
        return mosaic_svg(table, title=name, standalone=False, labels=labels), ""
    if fits_a_heat_map(table):
        return heat_map_svg(table, title=name, standalone=False, labels=labels), ""
    return "", (
        f"A picture shows up to {MOST_SIDE} by {MOST_SIDE} levels, for up to {MOST_PANELS} combinations of the levels "
        "of further attributes."
    )
