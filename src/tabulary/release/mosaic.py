"""Mosaics of released tables of two attributes, as SVG: an area for each count, and a whisker for its interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tabulary.core.labels import CODES, Labels
from tabulary.errors import InvalidTable
from tabulary.release.figure import Cell, cells_of, told_extremes
from tabulary.release.svg import (
    BOLD,
    CHARACTER,
    MARGIN,
    PROSE,
    TITLE,
    picture,
    shortened,
    svg_text,
    told_apart,
)
from tabulary.release.table import ReleasedTable

MOST_ROWS, MOST_COLUMNS = 8, 6
"""The most strips of a mosaic, and the most tiles of one."""

# A mosaic reads if its thinnest strip holds a line of type, most tiles hold their number, and few tiles are noise.
_THINNEST, _MOST_UNWRITTEN, _MOST_DOUBTFUL = 26.0, 0.4, 0.25
_FRAME, _GAP, _LABEL = 560.0, 3.0, 18
_HEIGHT = (220.0, 46.0)
_FAINTEST, _STRONGEST = 0.1, 0.5
# Text in a tile must not reach into the next tile, in any typeface.
_DIGIT = 1.04 * CHARACTER


@dataclass(frozen=True)
class _Tile:
    """One cell and the rectangle whose area is its count."""

    cell: Cell
    level: int
    left: float
    top: float
    wide: float
    high: float
    reach: float

    @property
    def written(self) -> str:
        """The number that fits into the tile, with its half-width where that fits too."""
        whole = f"{self.cell.text} {self.cell.width_text}"
        return next((t for t in (whole, self.cell.text) if _DIGIT * len(t) + 12 <= self.wide), "")


def reads_as_mosaic(table: ReleasedTable) -> bool:
    """Return whether a mosaic of a table reads: few levels, no sliver of a strip, numbers that fit, little noise."""
    if len(table.shape) != 2 or table.shape[0] > MOST_ROWS or table.shape[1] > MOST_COLUMNS:
        return False
    if min(table.shape) < 2 or not (np.maximum(table.counts, 0).sum(axis=1) > 0).all():
        return False
    tiles = _tiles(table)
    return (
        min(tile.high for tile in tiles) >= _THINNEST
        and sum(not tile.written for tile in tiles) <= _MOST_UNWRITTEN * len(tiles)
        and sum(tile.cell.noise_dominates for tile in tiles) <= _MOST_DOUBTFUL * len(tiles)
    )


def mosaic_svg(
    table: ReleasedTable, *, title: str = "", standalone: bool = True, labels: Labels = CODES
) -> str:
    """Return a mosaic of a table of two attributes, one strip for each level of the first.

    The height of a strip is the share of its level. The second attribute splits the strip, so that the area of a tile
    is its count; a negative count has no area. A whisker shows how far the right edge of its tile would move within
    the 95 % interval of its count, with all other counts as published. A tile whose interval reaches zero is hatched.
    `standalone=False` leaves out the style and the hatching, for a page that has `STYLE` and `HATCH` already.
    """
    if len(table.shape) != 2 or not (np.maximum(table.counts, 0).sum(axis=1) > 0).all():
        raise InvalidTable(
            "a mosaic needs two attributes, with people in every level of the first, and this table is "
            "different. Draw a heat map of it."
        )
    first, second = map(labels.name, table.margin)
    rows, columns = (labels.levels(table.domain, attribute) for attribute in table.margin)
    stub = _stub(rows)
    tiles = _tiles(table, stub)
    parts: list[str] = []
    for row, name in enumerate(told_apart(rows, _LABEL)):
        strip = [tile for tile in tiles if tile.level // len(columns) == row]
        if strip:
            parts.append(svg_text(stub - 10, strip[0].top + strip[0].high / 2 + 4, name, anchor="end"))
        for tile in strip:
            parts += _drawn(tile, columns[tile.level % len(columns)], len(columns))
        # Above the tiles: a whisker reaches into the next one.
        parts += [_whisker(tile) for tile in strip if tile.cell.half_width > 0]
    bottom = max(tile.top + tile.high for tile in tiles)
    legend, y = _legend(tiles, columns, bottom + 26)
    heading = title or f"{first} by {second}"
    width = stub + _FRAME + 60 + MARGIN
    parts += [
        svg_text(MARGIN, 28, shortened(heading, int(width / (TITLE * CHARACTER)) - 4), "title"),
        svg_text(
            MARGIN, 48, shortened(f"A strip for each {first}, split by {second}. Area is count.", 96), "soft"
        ),
        legend,
    ]
    told = f"Mosaic. {told_extremes(table, labels)}"
    return picture(
        width, y, f"{heading}: noisy counts as areas", told, parts, standalone=standalone, hatched=True
    )


def _stub(rows: Sequence[str]) -> float:
    return MARGIN + CHARACTER * max(min(len(name), _LABEL) for name in rows) + 14


def _tiles(table: ReleasedTable, left: float = 0.0) -> list[_Tile]:
    """Return the tiles of the possible cells, strip after strip."""
    rows, columns = table.shape
    counts = np.maximum(np.asarray(table.counts, dtype=np.float64), 0.0)
    sums = counts.sum(axis=1)
    lowest, each = _HEIGHT
    room = max(lowest, each * rows) - _GAP * (rows - 1)
    y = 66.0
    cells = list(cells_of(table))
    found = []
    for row in range(rows):
        high = room * float(sums[row] / sums.sum())
        x = left
        for column in range(columns):
            cell = cells[row * columns + column]
            share = float(counts[row, column] / sums[row])
            reach = _FRAME * cell.half_width / float(sums[row])
            if not cell.impossible:
                found.append(_Tile(cell, row * columns + column, x, y, _FRAME * share, high, reach))
            x += _FRAME * share
        y += high + _GAP
    return found


def _drawn(tile: _Tile, level: str, columns: int) -> list[str]:
    box = f'x="{tile.left:g}" y="{tile.top:g}" width="{max(tile.wide - 2, 0):.4g}" height="{tile.high:.4g}"'
    parts = [f'<rect class="shade" fill-opacity="{_tint(tile.level % columns, columns):.3g}" {box}/>']
    kind = "number"
    if tile.cell.noise_dominates:
        parts.append(f'<rect fill="url(#hatch)" {box}/>')
        kind = "number clear"
    x, y = tile.left + 6, tile.top + 15
    if tile.high >= 50 and tile.written and BOLD * CHARACTER * len(level) + 12 <= tile.wide:
        parts.append(svg_text(x, y, level, kind.replace("number", "strong")))
        y += 16
    if tile.written:
        parts.append(svg_text(x, y, tile.written, kind))
    return parts


def _whisker(tile: _Tile) -> str:
    """Return the whisker at the right edge of a tile; where there is room, neighbours have different heights."""
    edge = tile.left + tile.wide - 1
    y = tile.top + tile.high - (6 if tile.level % 2 == 0 or tile.high < 34 else 13)
    # An edge is never further left than the tile begins.
    start, end = max(edge - tile.reach, tile.left), min(edge + tile.reach, edge + 56)
    ends = f"M{start:.5g} {y - 3:.4g}v6M{start:.5g} {y:.4g}H{end:.5g}"
    # One that goes on beyond the picture has no end.
    ends += f"M{end:.5g} {y - 3:.4g}v6" if edge + tile.reach <= edge + 56 or tile.reach < 56 else ""
    return f'<path class="halo" d="{ends}"/><path class="reach" d="{ends}"/>'


def _tint(column: int, columns: int) -> float:
    return _FAINTEST + (_STRONGEST - _FAINTEST) * column / max(columns - 1, 1)


def _legend(tiles: list[_Tile], columns: tuple[str, ...], y: float) -> tuple[str, float]:
    parts = [svg_text(MARGIN, y, "From left to right:", "soft")]
    x = MARGIN + PROSE * CHARACTER * 19 + 6
    for number, name in enumerate(told_apart(columns, _LABEL)):
        if x + 30 + CHARACTER * len(name) > _FRAME + 120:
            x, y = MARGIN + PROSE * CHARACTER * 19 + 6, y + 20
        parts.append(
            f'<rect class="shade" fill-opacity="{_tint(number, len(columns)):.3g}" x="{x:g}" y="{y - 10:g}" '
            f'width="20" height="12"/>{svg_text(x + 26, y, name, "soft")}'
        )
        x += 26 + CHARACTER * len(name) + 20
    y += 24
    entries = [
        (
            "how far the right edge of a tile may move within its 95 % interval",
            '<path class="reach" d="M0 -3v6M0 0H26M26 -3v6"/>',
        )
    ]
    if any(tile.cell.noise_dominates for tile in tiles):
        box = 'y="-6" width="26" height="12"'
        mark = f'<rect class="shade" fill-opacity=".1" {box}/><rect fill="url(#hatch)" {box}/>'
        entries.append(("hatched: the interval reaches zero or lies below it", mark))
    for words, mark in entries:
        parts.append(
            f'<g transform="translate({MARGIN} {y - 4:g})">{mark}</g>{svg_text(MARGIN + 36, y, words, "soft")}'
        )
        y += 17
    return "".join(parts), y
