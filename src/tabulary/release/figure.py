"""Pictures of released tables as SVG, a dot for each count and a whisker for its interval."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tabulary.core.labels import CODES, Labels
from tabulary.errors import InvalidTable
from tabulary.release.svg import (
    BOLD,
    CHARACTER,
    MARGIN,
    Axis,
    axis_lines,
    legend_entries,
    picture,
    show_count,
    show_width,
    svg_text,
    told_apart,
    whisker_path,
)
from tabulary.release.table import ReleasedTable

_ROW, _GROUP_GAP = 22, 8


@dataclass(frozen=True)
class Cell:
    """One count as it is shown."""

    count: float
    half_width: float
    impossible: bool = False

    @property
    def noise_dominates(self) -> bool:
        """Whether the interval reaches zero, or lies below it: noise alone could have made, or did make, the count."""
        return self.half_width > 0 and self.count <= self.half_width

    @property
    def text(self) -> str:
        """The count, or a dash where there can be none."""
        return "–" if self.impossible else show_count(self.count)

    @property
    def width_text(self) -> str:
        """The half-width, or nothing where there is no error."""
        return "" if self.impossible else f"± {show_width(self.half_width)}"


def axis_over(table: ReleasedTable, left: float, right: float) -> Axis:
    """Return the axis that holds zero and every interval of a table."""
    lower, upper = table.interval()
    low, high = min(0.0, float(lower.min())), max(0.0, float(upper.max()))
    return Axis(low, high if high > low else low + 1.0, left, right)


def cells_of(table: ReleasedTable) -> Iterator[Cell]:
    """Yield the cells of a table, the last attribute fastest."""
    impossible = np.asarray(table.domain.impossible(table.margin)).reshape(-1)
    columns = (table.counts.reshape(-1), table.half_widths().reshape(-1), impossible)
    for count, width, is_impossible in zip(*(column.tolist() for column in columns), strict=True):
        yield Cell(count, width, is_impossible)


def whisker_svg(
    table: ReleasedTable,
    *,
    title: str = "",
    width: int = 720,
    standalone: bool = True,
    labels: Labels = CODES,
) -> str:
    """Return a dot-and-whisker picture of a table of one or two attributes.

    One row per cell, grouped by the first attribute where there are two. A whisker is the 95 % interval of its
    cell; an open dot marks a count whose interval reaches zero. `standalone=False` leaves out the style, for
    a page that has `STYLE` already.
    """
    if len(table.margin) not in (1, 2):
        raise InvalidTable(
            f"a picture shows one or two attributes, but this table has {len(table.margin)}. Use a slice of "
            "it, or another table of the release."
        )
    grouped = len(table.margin) == 2
    names = told_apart(labels.levels(table.domain, table.margin[-1]))
    groups = told_apart(labels.levels(table.domain, table.margin[0])) if grouped else ("",)
    heading = title or labels.table_name(table.margin)
    cells = list(cells_of(table))
    indent = 14 if grouped else 0
    widest = max([*(len(label) + indent / CHARACTER for label in names), *(BOLD * len(g) for g in groups)])
    stub = MARGIN + CHARACTER * widest + 14
    numbers = max(CHARACTER * len(f"{c.text} {c.width_text}") for c in cells) + 22
    axis = axis_over(table, stub, max(width - MARGIN - numbers, stub + 120))
    width = math.ceil(axis.right + numbers + MARGIN)

    parts: list[str] = []
    top = y = 66.0
    for number, group in enumerate(groups):
        if grouped:
            y += _GROUP_GAP if number else 0
            parts.append(svg_text(MARGIN, y + 15, group, "strong"))
            y += _ROW
        for label, cell in zip(names, cells[number * len(names) :], strict=False):
            parts.append(svg_text(MARGIN + indent, y + 15, label))
            parts.append(f'<g transform="translate(0 {y:g})">{_mark(cell, axis)}</g>')
            shown = f"{cell.text} {cell.width_text}".strip()
            parts.append(svg_text(width - MARGIN, y + 15, shown, "number", anchor="end"))
            y += _ROW
    back = [
        svg_text(MARGIN, 28, heading, "title"),
        svg_text(MARGIN, 48, _subtitle(table), "soft"),
    ]
    back += axis_lines(axis, top, y)
    doubtful, impossible = any(c.noise_dominates for c in cells), any(c.impossible for c in cells)
    legend, bottom = _legend(y + 46, width, some_dominated=doubtful, some_impossible=impossible)
    named = f"{heading}: noisy counts with their 95 % intervals"
    told = told_extremes(table, labels)
    return picture(width, bottom + 16, named, told, [*back, legend, *parts], standalone=standalone)


def whisker_glyph(cell: Cell, axis: Axis) -> str:
    """Return the dot and whisker of one cell, for a row of a page that shows the numbers beside it."""
    zero = axis.x(0)
    return (
        f'<svg class="table-picture" aria-hidden="true" viewBox="0 0 {axis.right + axis.left:g} {_ROW}" '
        f'width="{axis.right + axis.left:g}" height="{_ROW}">'
        f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="{_ROW}"/>{_mark(cell, axis)}</svg>'
    )


def told_extremes(table: ReleasedTable, labels: Labels = CODES) -> str:
    """Return a description of a picture of a table: its largest count, its smallest, and the uncertain counts."""
    cells = list(cells_of(table))
    possible = [number for number, cell in enumerate(cells) if not cell.impossible]
    if not possible:
        return "No cell of this table is possible."

    def told(number: int) -> str:
        place = np.unravel_index(number, table.shape)
        levels = [labels.levels(table.domain, a)[i] for a, i in zip(table.margin, place, strict=True)]
        return f"{', '.join(levels) or 'total'}: {cells[number].text} {cells[number].width_text}"

    # Ties go to the first, so that the same table always says the same.
    largest, smallest = (pick(possible, key=lambda n: cells[n].count) for pick in (max, min))
    doubtful = sum(cells[number].noise_dominates for number in possible)
    return (
        f"Counts with 95 % intervals of {len(possible):,} cells. Largest, {told(largest)}. Smallest, {told(smallest)}. "
        f"The interval reaches zero or lies below it in {doubtful:,}."
    )


def _mark(cell: Cell, axis: Axis) -> str:
    middle = _ROW / 2
    if cell.impossible:
        return ""
    x = axis.x(cell.count)
    left, right = axis.x(cell.count - cell.half_width), axis.x(cell.count + cell.half_width)
    ends = whisker_path(left, right, middle)
    kind = "dot open" if cell.noise_dominates else "dot"
    return f'<path class="whisker" d="{ends}"/><circle class="{kind}" cx="{x}" cy="{middle:g}" r="3.5"/>'


def _legend(y: float, width: float, *, some_dominated: bool, some_impossible: bool) -> tuple[str, float]:
    whisker = '<path class="whisker" d="M2 -4v8M2 0H26M26 -4v8"/>'
    entries = [("count and 95 % interval", f'{whisker}<circle class="dot" cx="14" cy="0" r="3.5"/>')]
    if some_dominated:
        dot = '<circle class="dot open" cx="14" cy="0" r="3.5"/>'
        entries.append(("interval reaches zero or lies below it", f"{whisker}{dot}"))
    if some_impossible:
        entries.append(("impossible by definition", svg_text(14, 4, "–", "soft", anchor="middle")))
    return legend_entries(y, entries, width)


def _subtitle(table: ReleasedTable) -> str:
    widths = {cell.half_width for cell in cells_of(table) if not cell.impossible}
    if len(widths) == 1:
        return f"Each count is within ± {show_count(widths.pop())} of the truth with probability 95 %."
    return "Each whisker contains the true count with probability 95 %."
