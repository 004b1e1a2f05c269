"""Heat maps of released tables, as SVG: a shade for each count, its half-width beside it, hatching for noise.

Colour never carries information alone: the numbers are in the cells wherever there is room, the line under each shows
its relative error, and a cell whose interval reaches zero is hatched. A black-and-white print says as much.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from tabulary.core.labels import CODES, Labels
from tabulary.errors import InvalidTable
from tabulary.release.figure import Cell, cells_of, told_extremes
from tabulary.release.svg import (
    BOLD,
    CHARACTER,
    MARGIN,
    PROSE,
    TITLE,
    Axis,
    picture,
    shade,
    shade_legend,
    shortened,
    show_tick,
    svg_text,
    told_apart,
    upright_text,
)
from tabulary.release.table import ReleasedTable

MOST_SIDE = 50
"""The most rows, and the most columns, of one heat map."""

MOST_PANELS = 12
"""The most heat maps side by side, for a table of three attributes or more."""

# Sizes in pixels: a cell with its numbers in one line, in two lines, and a cell without numbers.
_ONE_LINE, _TWO_LINES, _SMALL = 30, 42, (18, 15)
_GAP, _LINE, _NAMED = 26, 17, 20
# Panels with numbers are not stacked higher than this: on a sheet of paper they must still be read.
_TALLEST = 1_400
_NARROWEST = 46
_LABEL, _PANEL_LABEL = 24, 32
# More rows than these are drawn without numbers; the table has the numbers.
_MOST_NUMBERED = 30
# Shades are steps, so that all cells of one step are one path.
_STEPS = 12


@dataclass(frozen=True)
class _CellLayout:
    """The places of the cells of one panel, and the lines for their numbers: zero where there is no room."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    side: float
    high: float
    head: float
    upright: bool
    lines: int

    @property
    def width(self) -> float:
        """How wide the cells of one panel are together."""
        return self.side * len(self.columns)

    @property
    def height(self) -> float:
        """How high the cells of one panel are together."""
        return self.high * len(self.rows)


def fits_a_heat_map(table: ReleasedTable) -> bool:
    """Return whether a heat map of a table would show something: two attributes or more, of not too many levels."""
    *leading, rows, columns = table.shape if len(table.shape) > 1 else (0, math.inf, math.inf)
    return max(rows, columns) <= MOST_SIDE and math.prod(leading) <= MOST_PANELS


def heat_map_svg(
    table: ReleasedTable,
    *,
    title: str = "",
    width: int = 880,
    standalone: bool = True,
    labels: Labels = CODES,
) -> str:
    """Return a heat map of a table: its last two attributes are rows and columns, the levels of others are panels.

    The shade grows with the square root of the count, with one scale for all panels; a negative count, which only
    noise makes, has the faintest shade. Each count is shown with its 95 % half-width where there is room. A line
    under it shows the half-width relative to the count: the line fills the width of the cell where noise is as large
    as the count. A cell whose interval reaches zero is hatched. `standalone=False` leaves out the style and the
    hatching, for a page that has `STYLE` and `HATCH` already.
    """
    if len(table.margin) < 2 or not fits_a_heat_map(table):
        raise InvalidTable(
            f"a heat map shows two attributes of at most {MOST_SIDE} levels, for at most {MOST_PANELS} "
            f"combinations of other levels, but this table has the shape {table.shape}. Use a slice of it."
        )
    cells = list(cells_of(table))
    *leading, row_attribute, column_attribute = map(labels.name, table.margin)
    levels = [labels.levels(table.domain, attribute) for attribute in table.margin]
    panels = list(product(*levels[:-2]))
    rows, columns = (told_apart(each, _LABEL) for each in levels[-2:])
    stub = MARGIN + CHARACTER * max(map(len, (*rows, shortened(row_attribute, _LABEL)))) + 10
    room = width - stub - MARGIN
    most = max([cell.count for cell in cells if not cell.impossible], default=0.0)
    names = told_apart([", ".join(levels) for levels in panels], _PANEL_LABEL) if leading else ("",)
    grid, pitch, beside = _layout(rows, columns, cells, names, room)
    subtitle = [f"Across: {column_attribute}. Stronger shade: larger count."]
    if leading:
        subtitle.insert(0, f"A panel for each {_combined(leading)}.")
    top = 62.0 + _LINE * (len(subtitle) - 1)
    named = _NAMED if leading else 0
    block = named + grid.head + grid.height + _GAP
    parts: list[str] = []
    for number in range(len(panels)):
        line, place = divmod(number, beside)
        x, y = stub + place * pitch, top + line * block
        if leading:
            parts.append(svg_text(x, y + 12, names[number], "strong"))
        y += named
        if place == 0:
            parts.append(
                svg_text(stub - 8, y + grid.head - 8, shortened(row_attribute, _LABEL), "soft", anchor="end")
            )
            parts += [
                svg_text(stub - 8, y + grid.head + (i + 0.5) * grid.high + 4.5, name, anchor="end")
                for i, name in enumerate(rows)
            ]
        parts += _column_names(grid, x, y)
        own = cells[number * len(rows) * len(columns) :][: len(rows) * len(columns)]
        parts += _panel(grid, own, x, y + grid.head, most)
    bottom = top + math.ceil(len(panels) / beside) * block - _GAP + 22
    legend, bottom, reach = _legend(cells, grid, most, bottom)
    heading = title or labels.table_name(table.margin)
    said = MARGIN + CHARACTER * max(TITLE * len(heading), PROSE * max(map(len, subtitle)))
    wide = max(stub + beside * pitch - _GAP, reach, min(said, width - MARGIN)) + MARGIN
    letters = (wide - 2 * MARGIN) / CHARACTER
    parts.append(svg_text(MARGIN, 28, shortened(heading, int(letters / TITLE)), "title"))
    parts += [
        svg_text(MARGIN, 48 + _LINE * number, shortened(words, int(letters / PROSE)), "soft")
        for number, words in enumerate(subtitle)
    ]
    parts.append(legend)
    told = f"Heat map. {told_extremes(table, labels)}"
    return picture(
        wide, bottom, f"{heading}: noisy counts, shaded", told, parts, standalone=standalone, hatched=True
    )


def _layout(
    rows: tuple[str, ...], columns: tuple[str, ...], cells: Sequence[Cell], names: Sequence[str], room: float
) -> tuple[_CellLayout, float, int]:
    """Return the cells of a panel, the distance from one panel to the next, and the number of panels per line.

    As many panels as can show their numbers, in a picture that is not too high; if none can, as many as fit.
    """
    named = BOLD * CHARACTER * max(map(len, names))
    letters = _Letters.of(cells)

    def placed(grid: _CellLayout) -> tuple[_CellLayout, float, int]:
        # A panel is as wide as its cells, or as its name.
        pitch = max(grid.width, named) + _GAP
        return grid, pitch, min(max(1, int((room + _GAP) // pitch)), len(names))

    for wanted in range(len(names), 0, -1):
        grid, pitch, beside = placed(_grid(rows, columns, letters, max((room + _GAP) / wanted - _GAP, named)))
        high = math.ceil(len(names) / beside) * (_NAMED + grid.head + grid.height + _GAP)
        if grid.lines and (high <= _TALLEST or len(names) == 1):
            return grid, pitch, beside
    return placed(_grid(rows, columns, letters, 0))


@dataclass(frozen=True)
class _Letters:
    """The most letters of a count, of a half-width, and of both in one line, over the cells of a table."""

    count: int
    width: int
    both: int

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> "_Letters":
        shown = [(len(cell.text), len(cell.width_text)) for cell in cells]
        counts, widths = zip(*shown, strict=True)
        return cls(max(counts), max(widths), max(count + 1 + width for count, width in shown))


def _grid(rows: tuple[str, ...], columns: tuple[str, ...], letters: _Letters, room: float) -> _CellLayout:
    """Return the roomiest layout that fits: numbers in one line, in two, under upright names, then shades alone."""
    name = CHARACTER * max(map(len, columns)) + 14
    whole = CHARACTER * letters.both + 14
    text, beneath = CHARACTER * letters.count, 0.86 * CHARACTER * letters.width
    number = max(text, beneath, _NARROWEST - 14) + 14
    upright = name + 2
    if len(rows) <= _MOST_NUMBERED:
        if len(columns) * max(whole, name) <= room:
            return _CellLayout(rows, columns, max(whole, name), _ONE_LINE, 24, upright=False, lines=1)
        if len(columns) * max(number, name) <= room:
            return _CellLayout(rows, columns, max(number, name), _TWO_LINES, 24, upright=False, lines=2)
        if len(columns) * number <= room:
            return _CellLayout(rows, columns, number, _TWO_LINES, upright, upright=True, lines=2)
    side, high = _SMALL
    return _CellLayout(rows, columns, side, high, upright, upright=True, lines=0)


def _combined(attributes: Sequence[str]) -> str:
    """Return the attributes that the panels show, in words for a reader.

    >>> _combined(["year"]), _combined(["year", "sex"])
    ('year', 'combination of year and sex')
    """
    *first, last = attributes
    return f"combination of {', '.join(first)} and {last}" if first else last


def _column_names(grid: _CellLayout, x: float, y: float) -> list[str]:
    below = y + grid.head - 8
    middles = [x + (i + 0.5) * grid.side for i in range(len(grid.columns))]
    if not grid.upright:
        return [
            svg_text(middle, below, name, anchor="middle")
            for middle, name in zip(middles, grid.columns, strict=True)
        ]
    return [upright_text(middle, below, name) for middle, name in zip(middles, grid.columns, strict=True)]


def _panel(grid: _CellLayout, cells: Sequence[Cell], left: float, top: float, most: float) -> list[str]:
    """Return the cells of one panel: a path for each shade, one for all hatching, and the numbers."""
    shades: dict[int, list[str]] = {}
    hatched, tracks, lines, dashes = [], [], [], []
    # The numbers on hatching are kept clear of it; others need no halo.
    numbers: dict[bool, list[str]] = {False: [], True: []}
    small: dict[bool, list[str]] = {False: [], True: []}
    for number, cell in enumerate(cells):
        row, column = divmod(number, len(grid.columns))
        x, y = left + column * grid.side, top + row * grid.high
        box = f"M{x:g} {y:g}h{grid.side - 1:g}v{grid.high - 1:g}h{1 - grid.side:g}z"
        middle = x + (grid.side - 1) / 2
        if cell.impossible:
            dashes.append(svg_text(middle, y + grid.high / 2 + 4, "–"))
            continue
        shades.setdefault(_step(cell.count, most), []).append(box)
        if cell.noise_dominates:
            hatched.append(box)
        if grid.lines == 1:
            numbers[cell.noise_dominates].append(svg_text(middle, y + 17, f"{cell.text} {cell.width_text}"))
        elif grid.lines == 2:
            numbers[cell.noise_dominates].append(svg_text(middle, y + 16, cell.text))
            small[cell.noise_dominates].append(svg_text(middle, y + 30, cell.width_text))
        if grid.lines:
            length = (grid.side - 9) * _beside_count(cell)
            tracks.append(f"M{x + 4:g} {y + grid.high - 5:g}h{grid.side - 9:g}")
            lines += [f"M{x + 4:g} {y + grid.high - 5:g}h{length:.3g}"] if length > 0 else []
    drawn = [
        f'<path class="shade" fill-opacity="{_opacity(step):.3g}" d="{"".join(boxes)}"/>'
        for step, boxes in sorted(shades.items())
    ]
    if hatched:
        drawn.append(f'<path fill="url(#hatch)" d="{"".join(hatched)}"/>')
    if grid.lines:
        drawn.append(f'<path class="track" d="{"".join(tracks)}"/><path class="error" d="{"".join(lines)}"/>')
    texts = (
        ("number", numbers[False]),
        ("number clear", numbers[True]),
        ("number small", small[False]),
        ("number small clear", small[True]),
        ("soft", dashes),
    )
    drawn += [f'<g class="{kind}" text-anchor="middle">{"".join(each)}</g>' for kind, each in texts if each]
    drawn.append(
        f'<path class="frame" d="M{left - 0.5:g} {top - 0.5:g}h{grid.width:g}v{grid.height:g}h{-grid.width:g}z"/>'
    )
    return drawn


def _beside_count(cell: Cell) -> float:
    """Return the error relative to its count, at most 1: 1 where the error is as large as the count or larger."""
    if cell.half_width == 0:
        return 0.0
    return min(1.0, cell.half_width / cell.count) if cell.count > 0 else 1.0


def _step(count: float, most: float) -> int:
    return round(_STEPS * math.sqrt(max(0.0, count) / most)) if most > 0 else 0


def _opacity(step: int) -> float:
    return shade(step / _STEPS)


def _legend(cells: Sequence[Cell], grid: _CellLayout, most: float, y: float) -> tuple[str, float, float]:
    """Return the legend of the shades, lines and hatching, one line for each, and how far it reaches."""
    steps = Axis(0.0, most, 0.0, 1.0).ticks() if most > 0 else [0.0]
    shades = [(show_tick(step), _opacity(_step(step, most))) for step in steps]
    drawn, reach = shade_legend(MARGIN, y, shades)
    parts = [drawn]
    y += 40
    entries = []
    if grid.lines:
        mark = '<path class="track" d="M0 0H26"/><path class="error" d="M0 0H10"/>'
        entries.append(("error beside the count (full line: as large)", mark))
    if any(cell.noise_dominates for cell in cells):
        box = "M0 -6h26v12h-26z"
        mark = f'<path class="shade" fill-opacity=".04" d="{box}"/><path fill="url(#hatch)" d="{box}"/>'
        entries.append(("hatched: the interval reaches zero or lies below it", mark))
    if any(cell.impossible for cell in cells):
        entries.append(("impossible by definition", svg_text(13, 4, "–", "soft", anchor="middle")))
    for words, mark in entries:
        parts.append(
            f'<g transform="translate({MARGIN} {y - 4:g})">{mark}</g>{svg_text(MARGIN + 36, y, words, "soft")}'
        )
        reach = max(reach, MARGIN + 36 + PROSE * CHARACTER * len(words))
        y += _LINE
    return "".join(parts), y, reach
