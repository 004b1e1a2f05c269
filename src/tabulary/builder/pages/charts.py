"""Pictures of a table on a page, as SVG: a heat map, and bars with their intervals. Without script or colours.

Every shade has a number beside it, and what noise dominates is hatched: nothing is told by colour alone, and a print in
black says as much. The style is in `builder.css`, by classes that begin with "chart"; a page's policy forbids any
other. A picture of too much shows nothing: of a large table the first rows and columns are drawn, and it says so.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape

from markupsafe import Markup

from tabulary.builder.pages.layout import Cell, TableView
from tabulary.release.figure import Axis

MOST_SIDE = 50
"""The most rows, and the most columns, of a heat map."""

MOST_BARS = 120
"""The most bars of a picture."""

# Sizes in pixels; a character is about so wide at the size of 13 that the style gives.
_MARGIN, _ROW, _GAP, _BARS, _CHARACTER = 12, 26, 10, 480, 7.2
_LONGEST = 28
_WIDEST = 1100
_NARROWEST, _ROOMY = 18, 56
# The strongest shade leaves what is written on it a contrast above 4.5 to 1, in the light and in the dark.
_FAINTEST, _STRONGEST = 0.04, 0.5

_HATCH = (
    '<defs><pattern id="chart-hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><line class="chart-hatch" x1="0" x2="0" y1="0" y2="6"/></pattern></defs>'
)


def heat_map_svg(view: TableView) -> Markup:
    """Return a heat map: the larger a number, the stronger its shade, with the number inside where there is room.

    Negative numbers, which only noise makes, have the faintest shade.
    """
    rows, columns = view.row_labels[:MOST_SIDE], view.column_labels[:MOST_SIDE]
    cells = [line[: len(columns)] for line in view.cells()[: len(rows)]]
    names = [_named(labels, view.measure) for labels in columns]
    stub = _MARGIN + _wide(_named(labels, view.measure) for labels in rows) + 12
    side, upright, numbered = _columns(names, [cell.text for line in cells for cell in line])
    top = _MARGIN + (_wide(names) if upright else 18) + 8
    most = max((cell.value for line in cells for cell in line if cell.value is not None), default=0.0)
    parts = [_column_name(stub + (i + 0.5) * side, top - 8, name, upright) for i, name in enumerate(names)]
    for number, (labels, line) in enumerate(zip(rows, cells, strict=True)):
        y, name = top + number * _ROW, _named(labels, view.measure)
        parts.append(_text(stub - 8, y + 17, _shortened(name), anchor="end"))
        for place, cell in enumerate(line):
            told = f"{', '.join((*labels, *columns[place])) or view.measure}: {cell.words}"
            parts.append(_square(cell, stub + place * side, y, side, most, told, numbered=numbered))
    y = top + len(rows) * _ROW + 16
    right = stub + len(columns) * side
    legend, width = _shades(view, stub, y, most)
    parts.append(legend)
    cut = _cut(view, len(rows), len(columns))
    if cut:
        parts.append(_text(_MARGIN, y + 52, cut, "chart-soft"))
    width = max(right, width, _MARGIN + _CHARACTER * len(cut)) + _MARGIN
    told = f"{len(rows)} rows and {len(columns)} columns, shaded by their numbers. {_extremes(view, cells)} {cut}"
    return _picture("heat map", view, width, y + (64 if cut else 40), told, parts)


def bars_svg(view: TableView) -> Markup:
    """Return bars from zero, a group for each row, with whiskers for the 95 % intervals and the numbers beside them.

    A bar that noise dominates is hatched. Where no error is known there are no whiskers.
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
    stub = _MARGIN + max(_wide(names) + indent, _wide(heads)) + 18
    shown = [_beside(cell) for cell in flat]
    room = _wide(shown) + 22
    axis = _axis(flat, stub, stub + _BARS)
    width = axis.right + room + _MARGIN
    parts: list[str] = []
    y = top = float(_MARGIN)
    for number, (name, cell, words) in enumerate(zip(names, flat, shown, strict=True)):
        if grouped and number % across == 0:
            y += _GAP if number else 0
            parts.append(_text(_MARGIN, y + 16, _shortened(heads[number // across]), "chart-strong"))
            y += _ROW
        parts.append(_text(_MARGIN + indent, y + 17, _shortened(name)))
        parts.append(_bar(cell, axis, y))
        parts.append(_text(width - _MARGIN, y + 17, words, "chart-number", anchor="end"))
        y += _ROW
    parts = [*_ticks(axis, top, y, percent=_is_percent(flat)), *parts]
    cut = _cut(view, len(rows), len(columns))
    legend, reach = _entries(_MARGIN, y + 44, _bar_legend(view))
    parts.append(legend)
    if cut:
        parts.append(_text(_MARGIN, y + 70, cut, "chart-soft"))
    width = max(width, reach, _MARGIN * 2 + _CHARACTER * len(cut))
    whiskers = " with their 95 % intervals" if view.has_errors else ""
    told = f"{len(flat)} bars{whiskers}. {_extremes(view, cells)} {cut}"
    return _picture("bars", view, width, y + (82 if cut else 58), told, parts)


def _columns(names: Sequence[str], texts: Sequence[str]) -> tuple[float, bool, bool]:
    """Return how wide a column is, whether its name stands upright, and whether numbers fit in."""
    number, name = _wide(texts) + 12, _wide(names) + 12
    if len(names) * max(number, name) <= _WIDEST:
        return max(number, name, _ROOMY), False, True
    if len(names) * number <= _WIDEST:
        return number, True, True
    return float(_NARROWEST), True, False


def _column_name(x: float, y: float, name: str, upright: bool) -> str:
    if not upright:
        return _text(x, y, _shortened(name), anchor="middle")
    turned = f'transform="translate({x + 4:g} {y:g}) rotate(-90)"'
    return f"<text {turned}>{escape(_shortened(name))}</text>"


def _square(cell: Cell, x: float, y: float, side: float, most: float, told: str, *, numbered: bool) -> str:
    box = f'x="{x:g}" y="{y:g}" width="{side:g}" height="{_ROW}"'
    parts = [f"<g><title>{escape(told)}</title>"]
    parts.append(f'<rect class="chart-cell" {box} fill-opacity="{_shade(cell.value, most):.3g}"/>')
    if cell.doubt:
        parts.append(f'<rect class="chart-doubt" {box} fill="url(#chart-hatch)"/>')
    if numbered:
        # Kept clear of the hatching behind it.
        kind = "chart-number chart-clear" if cell.doubt else "chart-number"
        parts.append(_text(x + side / 2, y + 17, cell.text, kind, anchor="middle"))
    return "".join([*parts, "</g>"])


def _shade(value: float | None, most: float) -> float:
    if value is None:
        return 0.0
    return _FAINTEST + (_STRONGEST - _FAINTEST) * (max(0.0, value) / most if most > 0 else 0.0)


def _shades(view: TableView, x: float, y: float, most: float) -> tuple[str, float]:
    """Return the legend of the shades, from nothing to the largest number, and how far it reaches."""
    percent = _is_percent([cell for line in view.cells() for cell in line])
    steps = Axis(0.0, most, 0.0, 1.0).ticks() if most > 0 else [0.0]
    wide = max(_wide(_tick(step, percent) for step in steps) + 10, 34)
    parts = []
    for number, step in enumerate(steps):
        left = x + number * wide
        parts.append(
            f'<rect class="chart-cell" x="{left:g}" y="{y:g}" width="{wide:g}" height="12" '
            f'fill-opacity="{_shade(step, most):.3g}"/>'
        )
        parts.append(_text(left + wide / 2, y + 26, _tick(step, percent), "chart-soft", anchor="middle"))
    reach = x + len(steps) * wide
    if view.has_doubt:
        marks, reach = _entries(reach + 24, y + 12, [(_DOUBTFUL, _HATCHED)])
        parts.append(marks)
    return "".join(parts), reach


_DOUBTFUL = "noise dominates: the interval reaches zero"
_HATCHED = (
    '<rect class="chart-cell" x="0" y="-7" width="24" height="12" fill-opacity="0.04"/>'
    '<rect class="chart-doubt" x="0" y="-7" width="24" height="12" fill="url(#chart-hatch)"/>'
)
_SOLID = '<rect class="chart-bar" x="0" y="-7" width="24" height="12"/>'
_WHISKER = '<path class="chart-whisker" d="M2 -5v8M2 -1H24M24 -5v8"/>'


def _axis(cells: Sequence[Cell], left: float, right: float) -> Axis:
    """Return the axis that holds zero, every number and every interval."""
    held = [end for cell in cells for end in (cell.value, cell.lower, cell.upper) if end is not None]
    low, high = min([0.0, *held]), max([0.0, *held])
    return Axis(low, high if high > low else low + 1.0, left, right)


def _bar(cell: Cell, axis: Axis, y: float) -> str:
    if cell.value is None:
        return ""
    zero, end = axis.x(0.0), axis.x(cell.value)
    box = f'x="{min(zero, end):g}" y="{y + 5:g}" width="{abs(end - zero):g}" height="{_ROW - 10}"'
    drawn = f'<rect class="chart-bar" {box}/>'
    if cell.doubt:
        drawn = f'<rect class="chart-bar chart-open" {box}/><rect class="chart-doubt" {box} fill="url(#chart-hatch)"/>'
    if cell.lower is None or cell.upper is None or cell.lower == cell.upper:
        return drawn
    left, right, middle = axis.x(cell.lower), axis.x(cell.upper), y + _ROW / 2
    ends = f"M{left:g} {middle - 4:g}v8M{left:g} {middle:g}H{right:g}M{right:g} {middle - 4:g}v8"
    return f'{drawn}<path class="chart-halo" d="{ends}"/><path class="chart-whisker" d="{ends}"/>'


def _bar_legend(view: TableView) -> list[tuple[str, str]]:
    entries = [(view.measure.lower(), _SOLID)]
    if view.has_errors:
        entries.append(("95 % interval", _WHISKER))
    if view.has_doubt:
        entries.append((_DOUBTFUL, _HATCHED))
    return entries


def _entries(x: float, y: float, entries: Iterable[tuple[str, str]]) -> tuple[str, float]:
    """Return the marks of a legend, each with its words behind it, and how far they reach."""
    parts = []
    for words, mark in entries:
        parts.append(
            f'<g transform="translate({x:g} {y:g})">{mark}</g>{_text(x + 32, y + 4, words, "chart-soft")}'
        )
        x += 32 + _CHARACTER * len(words) + 18
    return "".join(parts), x


def _ticks(axis: Axis, top: float, bottom: float, *, percent: bool) -> list[str]:
    parts = []
    for tick in axis.ticks():
        x, kind = axis.x(tick), "chart-zero" if tick == 0 else "chart-grid"
        parts.append(f'<line class="{kind}" x1="{x:g}" x2="{x:g}" y1="{top:g}" y2="{bottom + 4:g}"/>')
        parts.append(_text(x, bottom + 19, _tick(tick, percent), "chart-soft", anchor="middle"))
    return parts


def _tick(value: float, percent: bool) -> str:
    """Return a round number of a scale."""
    text = f"{value:,.0f}" if abs(value) >= 10 or float(value).is_integer() else f"{value:.2g}"
    return text.replace("-", "−") + ("\u00a0%" if percent else "")


def _beside(cell: Cell) -> str:
    return f"{cell.text} ± {cell.half}" if cell.half else cell.text


def _is_percent(cells: Sequence[Cell]) -> bool:
    return any(cell.text.endswith("%") for cell in cells)


def _extremes(view: TableView, cells: Sequence[Sequence[Cell]]) -> str:
    """Return in words what stands out in a picture: the largest number, the smallest, and what is in doubt."""
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
    return f"{said} Hatched, for noise dominates: {doubtful:,} of {len(found):,}." if doubtful else said


def _cut(view: TableView, rows: int, columns: int) -> str:
    """Return what is not drawn; nothing if all is."""
    wholes = ((rows, len(view.row_labels), "rows"), (columns, len(view.column_labels), "columns"))
    said = [f"the first {drawn:,} of {whole:,} {words}" for drawn, whole, words in wholes if drawn < whole]
    return f"Drawn are {' and '.join(said)}; the table holds all." if said else ""


def _picture(
    kind: str, view: TableView, width: float, height: float, told: str, parts: Sequence[str]
) -> Markup:
    wide, high = math.ceil(width), math.ceil(height)
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart-figure" role="img" viewBox="0 0 {wide} {high}" '
        f'width="{wide}" height="{high}" aria-labelledby="chart-title chart-told">'
        f'<title id="chart-title">{escape(view.caption)}: {kind}</title><desc id="chart-told">{escape(told)}</desc>'
        f"{_HATCH}{''.join(parts)}</svg>"
    )


def _named(labels: Sequence[str], measure: str) -> str:
    """Return what a row or a column is called; where there is but one, by what its numbers are."""
    return " · ".join(labels) or measure


def _wide(texts: Iterable[str]) -> float:
    """Return how wide the longest of some texts is, as it is shown."""
    return _CHARACTER * max((len(_shortened(text)) for text in texts), default=0)


def _shortened(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"


def _text(x: float, y: float, words: str, kind: str = "", *, anchor: str = "") -> str:
    kind = f' class="{kind}"' if kind else ""
    anchor = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{kind}{anchor}>{escape(words)}</text>'
