"""Pictures of a table on a page, as SVG: a heat map, and bars with their intervals. Without script or colours.

They use the drawing kit of all pictures (`release.svg`). Its style is part of the style sheet of the pages, because a
page's policy forbids any other. A crowded picture is useless, so the picture of a large table shows only the first rows
and columns, and says so.
"""

from collections.abc import Iterable, Sequence
from html import escape

from markupsafe import Markup

from tabulary.builder.pages.layout import BuiltTable, PageCell
from tabulary.release.svg import (
    CHARACTER,
    HATCH,
    MARGIN,
    PROSE,
    Axis,
    axis_lines,
    legend_entries,
    picture,
    shade,
    shade_legend,
    shortened,
    show_tick,
    svg_text,
    upright_text,
    whisker_path,
)

MOST_SIDE = 50
"""The most rows, and the most columns, of a heat map."""

MOST_BARS = 120
"""The most bars of a picture."""

# Sizes in pixels.
_ROW, _GAP, _BARS = 26, 10, 480
_WIDEST = 1100
_NARROWEST, _ROOMY = 18, 56


def heat_map_svg(view: BuiltTable) -> Markup:
    """Return a heat map: a larger number has a stronger shade, with the number inside if there is room.

    Negative numbers, which come only from noise, have the lightest shade.
    """
    rows, columns = view.row_labels[:MOST_SIDE], view.column_labels[:MOST_SIDE]
    cells = [line[: len(columns)] for line in view.cells()[: len(rows)]]
    names = [_named(labels, view.measure) for labels in columns]
    stub = MARGIN + _wide(_named(labels, view.measure) for labels in rows) + 12
    side, upright, numbered = _columns(names, [cell.text for line in cells for cell in line])
    top = MARGIN + (_wide(names) if upright else 18) + 8
    most = max((cell.value for line in cells for cell in line if cell.value is not None), default=0.0)
    parts = [HATCH]
    for i, name in enumerate(map(shortened, names)):
        middle = stub + (i + 0.5) * side
        parts.append(
            upright_text(middle, top - 8, name)
            if upright
            else svg_text(middle, top - 8, name, anchor="middle")
        )
    for number, (labels, line) in enumerate(zip(rows, cells, strict=True)):
        y, name = top + number * _ROW, _named(labels, view.measure)
        parts.append(svg_text(stub - 8, y + 17, shortened(name), anchor="end"))
        for place, cell in enumerate(line):
            told = f"{', '.join((*labels, *columns[place])) or view.measure}: {cell.words}"
            parts.append(_square(cell, stub + place * side, y, side, most, told, numbered=numbered))
    y = top + len(rows) * _ROW + 26
    right = stub + len(columns) * side
    legend, reach = shade_legend(stub, y, _shades(view, most))
    parts.append(legend)
    cut = _cut(view, len(rows), len(columns))
    width = max(right, reach, MARGIN + PROSE * CHARACTER * len(cut)) + MARGIN
    if view.has_doubt:
        width = max(width, 2 * MARGIN + 36 + PROSE * CHARACTER * len(_DOUBTFUL))
        legend, y = legend_entries(y + 44, [(_DOUBTFUL, _HATCHED)], width)
        parts.append(legend)
    if cut:
        y += 26
        parts.append(svg_text(MARGIN, y, cut, "soft"))
    told = f"{len(rows)} rows and {len(columns)} columns, shaded by their numbers. {_extremes(view, cells)} {cut}"
    return _picture("heat map", view, width, y + 28, told, parts)


def bars_svg(view: BuiltTable) -> Markup:
    """Return bars from zero, one group per row, with whiskers for the 95 % intervals and the numbers beside them.

    A bar is hatched if noise dominates it. It has no whiskers if its error is not known.
    """
    across = len(view.column_labels[:MOST_BARS])
    rows = view.row_labels[: max(1, MOST_BARS // across)]
    columns = view.column_labels[:across]
    cells = [line[:across] for line in view.cells()[: len(rows)]]
    grouped = bool(view.row_labels[0]) and bool(view.column_labels[0])
    # Without groups each row, or each column, is one bar; a table of one number is the bar of its measure.
    names = [_named(c if grouped else (*r, *c), view.measure) for r in rows for c in columns]
    flat = [cell for line in cells for cell in line]
    indent = 14 if grouped else 0
    heads = [_named(labels, view.measure) for labels in rows] if grouped else []
    stub = MARGIN + max(_wide(names) + indent, _wide(heads)) + 18
    shown = [_beside(cell) for cell in flat]
    room = _wide(shown) + 22
    axis = _axis(flat, stub, stub + _BARS)
    width = axis.right + room + MARGIN
    parts: list[str] = []
    y = top = float(MARGIN)
    for number, (name, cell, words) in enumerate(zip(names, flat, shown, strict=True)):
        if grouped and number % across == 0:
            y += _GAP if number else 0
            parts.append(svg_text(MARGIN, y + 16, shortened(heads[number // across]), "strong"))
            y += _ROW
        parts.append(svg_text(MARGIN + indent, y + 17, shortened(name)))
        parts.append(_bar(cell, axis, y))
        parts.append(svg_text(width - MARGIN, y + 17, words, "number", anchor="end"))
        y += _ROW
    percent = _is_percent(flat)
    parts = [HATCH, *axis_lines(axis, top, y, show=lambda tick: _tick(tick, percent)), *parts]
    cut = _cut(view, len(rows), len(columns))
    width = max(width, MARGIN * 2 + PROSE * CHARACTER * len(cut))
    legend, y = legend_entries(y + 46, _bar_legend(view), width)
    parts.append(legend)
    if cut:
        y += 26
        parts.append(svg_text(MARGIN, y, cut, "soft"))
    whiskers = " with their 95 % intervals" if view.has_errors else ""
    told = f"{len(flat)} bars{whiskers}. {_extremes(view, cells)} {cut}"
    return _picture("bars", view, width, y + 16, told, parts)


def _columns(names: Sequence[str], texts: Sequence[str]) -> tuple[float, bool, bool]:
    """Return the width of a column, whether its name is vertical, and whether numbers fit in."""
    number, name = _wide(texts) + 12, _wide(names) + 12
    if len(names) * max(number, name) <= _WIDEST:
        return max(number, name, _ROOMY), False, True
    if len(names) * number <= _WIDEST:
        return number, True, True
    return float(_NARROWEST), True, False


def _square(
    cell: PageCell, x: float, y: float, side: float, most: float, told: str, *, numbered: bool
) -> str:
    box = f'x="{x:g}" y="{y:g}" width="{side - 1:g}" height="{_ROW - 1}"'
    parts = [f"<g><title>{escape(told)}</title>"]
    parts.append(f'<rect class="shade" {box} fill-opacity="{_shade(cell.value, most):.3g}"/>')
    if cell.doubt:
        parts.append(f'<rect class="doubt" {box} fill="url(#hatch)"/>')
    if numbered:
        # Kept clear of the hatching behind it.
        kind = "number clear" if cell.doubt else "number"
        parts.append(svg_text(x + side / 2, y + 17, cell.text, kind, anchor="middle"))
    return "".join([*parts, "</g>"])


def _shade(value: float | None, most: float) -> float:
    if value is None:
        return 0.0
    return shade(max(0.0, value) / most if most > 0 else 0.0)


def _shades(view: BuiltTable, most: float) -> list[tuple[str, float]]:
    """Return the numbers of a legend from zero to the largest one, each with its shade."""
    percent = _is_percent([cell for line in view.cells() for cell in line])
    steps = Axis(0.0, most, 0.0, 1.0).ticks() if most > 0 else [0.0]
    return [(_tick(step, percent), _shade(step, most)) for step in steps]


_DOUBTFUL = "noise dominates: the interval reaches zero"
_HATCHED = (
    f'<rect class="shade" x="0" y="-6" width="26" height="12" fill-opacity="{shade(0.0):g}"/>'
    '<rect x="0" y="-6" width="26" height="12" fill="url(#hatch)"/>'
)
_SOLID = '<rect class="bar filled" x="0" y="-6" width="26" height="12"/>'
_WHISKER = f'<path class="reach" d="{whisker_path(2, 26, 0)}"/>'


def _axis(cells: Sequence[PageCell], left: float, right: float) -> Axis:
    """Return the axis that holds zero, every number and every interval."""
    held = [end for cell in cells for end in (cell.value, cell.lower, cell.upper) if end is not None]
    low, high = min([0.0, *held]), max([0.0, *held])
    return Axis(low, high if high > low else low + 1.0, left, right)


def _bar(cell: PageCell, axis: Axis, y: float) -> str:
    if cell.value is None:
        return ""
    zero, end = axis.x(0.0), axis.x(cell.value)
    box = f'x="{min(zero, end):g}" y="{y + 5:g}" width="{abs(end - zero):g}" height="{_ROW - 10}"'
    drawn = f'<rect class="bar filled" {box}/>'
    if cell.doubt:
        drawn = f'<rect class="bar" {box}/><rect class="doubt" {box} fill="url(#hatch)"/>'
    if cell.lower is None or cell.upper is None or cell.lower == cell.upper:
        return drawn
    ends = whisker_path(axis.x(cell.lower), axis.x(cell.upper), y + _ROW / 2)
    return f'{drawn}<path class="halo" d="{ends}"/><path class="reach" d="{ends}"/>'


def _bar_legend(view: BuiltTable) -> list[tuple[str, str]]:
    entries = [(view.measure.lower(), _SOLID)]
    if view.has_errors:
        entries.append(("95 % interval", _WHISKER))
    if view.has_doubt:
        entries.append((_DOUBTFUL, _HATCHED))
    return entries


def _tick(value: float, percent: bool) -> str:
    """Return a round number of a scale."""
    return show_tick(value) + ("\u00a0%" if percent else "")


def _beside(cell: PageCell) -> str:
    return f"{cell.text} ± {cell.half}" if cell.half else cell.text


def _is_percent(cells: Sequence[PageCell]) -> bool:
    return any(cell.text.endswith("%") for cell in cells)


def _extremes(view: BuiltTable, cells: Sequence[Sequence[PageCell]]) -> str:
    """Return a summary of a picture: the largest number, the smallest, and how many are dominated by noise."""
    found = [
        (cell.value, ", ".join((*view.row_labels[i], *view.column_labels[j])) or view.measure, cell)
        for i, line in enumerate(cells)
        for j, cell in enumerate(line)
        if cell.value is not None
    ]
    if not found:
        return "No number is given."
    largest, smallest = max(found, key=lambda each: each[0]), min(found, key=lambda each: each[0])
    doubtful = sum(cell.doubt for _, _, cell in found)
    said = f"Largest: {largest[1]}, {largest[2].words}. Smallest: {smallest[1]}, {smallest[2].words}."
    return f"{said} Hatched, because noise dominates: {doubtful:,} of {len(found):,}." if doubtful else said


def _cut(view: BuiltTable, rows: int, columns: int) -> str:
    """Return a sentence about the drawn part of the table; empty if all of it is drawn."""
    wholes = ((rows, len(view.row_labels), "rows"), (columns, len(view.column_labels), "columns"))
    said = [f"the first {drawn:,} of {whole:,} {words}" for drawn, whole, words in wholes if drawn < whole]
    return f"The picture shows {' and '.join(said)}. The table has all of them." if said else ""


def _picture(
    kind: str, view: BuiltTable, width: float, height: float, told: str, parts: Sequence[str]
) -> Markup:
    return Markup(picture(width, height, f"{view.caption}: {kind}", told, parts, standalone=False))


def _named(labels: Sequence[str], measure: str) -> str:
    """Return the name of a row or a column; if there is only one, the name of the measure."""
    return " · ".join(labels) or measure


def _wide(texts: Iterable[str]) -> float:
    """Return the width of the longest of some texts on the picture."""
    return CHARACTER * max((len(shortened(text)) for text in texts), default=0)
