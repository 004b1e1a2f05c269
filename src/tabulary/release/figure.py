"""Pictures of released tables as SVG, a dot for each count and a whisker for its interval."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from string import Template

import numpy as np

from tabulary.errors import InvalidTable
from tabulary.release.palette import COLOURS, INK, SOFT
from tabulary.release.table import ReleasedTable

STYLE = (
    Template("""
.whisker-figure{--ink:$ink;--soft:$soft;--line:#d0d7de;--mark:$mark;--paper:#fff;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:13px}
@media (prefers-color-scheme:dark){.whisker-figure{--ink:#e6edf3;--soft:#9aa4af;--line:#3b434c;--mark:#79b8ff;
--paper:#11161d}}
@media (forced-colors:active){.whisker-figure{--ink:CanvasText;--soft:CanvasText;--line:GrayText;--mark:LinkText;
--paper:Canvas}}
@media print{.whisker-figure{--ink:#000;--soft:#444;--line:#bbb;--mark:$mark;--paper:#fff}}
.whisker-figure text{fill:var(--ink)}
.whisker-figure .soft{fill:var(--soft)}
.whisker-figure .strong{font-weight:600}
.whisker-figure .title{font-size:15px;font-weight:600}
.whisker-figure .number{font-variant-numeric:tabular-nums}
.whisker-figure .paper{fill:var(--paper)}
.whisker-figure .grid{stroke:var(--line);stroke-width:1}
.whisker-figure .zero{stroke:var(--soft);stroke-width:1}
.whisker-figure .whisker{stroke:var(--mark);stroke-width:1.75;fill:none}
.whisker-figure .dot{fill:var(--mark);stroke:var(--mark);stroke-width:1.75}
.whisker-figure .open{fill:var(--paper)}
.whisker-figure .bar{fill:var(--paper);stroke:var(--mark);stroke-width:1.75}
.whisker-figure .chosen{fill:var(--mark)}
.whisker-figure .modelled{stroke-dasharray:5 3;fill-opacity:.45}
.whisker-figure .cut{stroke:var(--paper);stroke-width:5;fill:none}
.whisker-figure .small{font-size:11px}
.whisker-figure .shade{fill:var(--mark)}
.whisker-figure .frame{stroke:var(--line);stroke-width:1;fill:none}
.whisker-figure .stripe{stroke:var(--soft);stroke-width:1.25;stroke-opacity:.75}
.whisker-figure .clear{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-opacity:.85;stroke-linejoin:round}
.whisker-figure .track{stroke:var(--soft);stroke-opacity:.35;stroke-width:1}
.whisker-figure .error{stroke:var(--ink);stroke-width:3}
.whisker-figure .halo{stroke:var(--paper);stroke-width:4.5;stroke-opacity:.8;fill:none}
.whisker-figure .reach{stroke:var(--ink);stroke-width:1.75;fill:none}
""")
    .substitute(ink=INK, soft=SOFT, mark=COLOURS[0])
    .strip()
)
"""The style of every picture; a page that holds several needs it once."""

HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="stripe" d="M0 0V6"/></pattern></defs>'
)
"""The hatching of what noise dominates; like the style, a page needs it once."""

MARGIN, CHARACTER, LONGEST_LABEL = 16, 8.0, 30
"""The edge of a picture, the width of a letter at its size of type, and the most letters of a label.

A letter is as wide as in DejaVu Sans, which stands in where the fonts of the style are missing, and is wider than them.
"""

PROSE, BOLD, TITLE = 0.92, 1.15, 1.3
"""How wide a letter of a sentence, with its spaces, a bold one and one of a title are beside others."""

_ROW, _GROUP_GAP = 22, 8
_LEGEND_LINE = 18


@dataclass(frozen=True)
class Axis:
    """A scale from counts to a picture's width, with round ticks."""

    low: float
    high: float
    left: float
    right: float

    @classmethod
    def over(cls, table: ReleasedTable, left: float, right: float) -> "Axis":
        """Return the axis that holds zero and every interval of a table."""
        lower, upper = table.interval()
        low, high = min(0.0, float(lower.min())), max(0.0, float(upper.max()))
        return cls(low, high if high > low else low + 1.0, left, right)

    def x(self, value: float) -> float:
        """Return where a count stands."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.left + share * (self.right - self.left), 2)

    def ticks(self) -> list[float]:
        """Return round numbers, about five of them, zero included.

        >>> Axis(-12, 230, 0, 100).ticks()
        [0.0, 50.0, 100.0, 150.0, 200.0]
        """
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [i * step for i in range(first, last + 1)]


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
        return "" if self.impossible else f"± {show_count(self.half_width)}"


def cells_of(table: ReleasedTable) -> Iterator[Cell]:
    """Yield the cells of a table, the last attribute fastest."""
    impossible = np.asarray(table.domain.impossible(table.margin)).reshape(-1)
    columns = (table.counts.reshape(-1), table.half_widths().reshape(-1), impossible)
    for count, width, is_impossible in zip(*(column.tolist() for column in columns), strict=True):
        yield Cell(count, width, is_impossible)


LEAST_SHOWN = 0.05
"""The least positive count that is not printed as zero; shrunk tables have some that are far smaller."""


def show_count(value: float) -> str:
    """Return a number as it is printed: thousands apart, a true minus sign, one decimal if not whole.

    >>> show_count(-1234), show_count(12.25)
    ('−1,234', '12.2')
    """
    text = f"{int(value):,}" if float(value).is_integer() else f"{value:,.1f}"
    return text.replace("-", "−")


def whisker_svg(table: ReleasedTable, *, title: str = "", width: int = 720, standalone: bool = True) -> str:
    """Return a dot-and-whisker picture of a table of one or two attributes.

    One row per cell, grouped by the first attribute where there are two. A whisker is the 95 % interval of its
    cell; an open dot marks a count whose interval reaches zero. `standalone=False` leaves out the style, for
    a page that has `STYLE` already.
    """
    if len(table.margin) not in (1, 2):
        raise InvalidTable(
            f"a picture shows one or two attributes, and this table has {len(table.margin)}. "
            "Take a slice of it, or another table of the release."
        )
    grouped = len(table.margin) == 2
    labels = told_apart(table.domain.levels_of(table.margin[-1]))
    groups = told_apart(table.domain.levels_of(table.margin[0])) if grouped else ("",)
    heading = title or " by ".join(table.margin)
    cells = list(cells_of(table))
    indent = 14 if grouped else 0
    widest = max([*(len(label) + indent / CHARACTER for label in labels), *(BOLD * len(g) for g in groups)])
    stub = MARGIN + CHARACTER * widest + 14
    numbers = max(CHARACTER * len(f"{c.text} {c.width_text}") for c in cells) + 22
    axis = Axis.over(table, stub, max(width - MARGIN - numbers, stub + 120))
    width = math.ceil(axis.right + numbers + MARGIN)

    parts: list[str] = []
    top = y = 66.0
    for number, group in enumerate(groups):
        if grouped:
            y += _GROUP_GAP if number else 0
            parts.append(svg_text(MARGIN, y + 15, group, "strong"))
            y += _ROW
        for label, cell in zip(labels, cells[number * len(labels) :], strict=False):
            parts.append(svg_text(MARGIN + indent, y + 15, label))
            parts.append(f'<g transform="translate(0 {y:g})">{_mark(cell, axis)}</g>')
            shown = f"{cell.text} {cell.width_text}".strip()
            parts.append(svg_text(width - MARGIN, y + 15, shown, "number", anchor="end"))
            y += _ROW
    back = [
        svg_text(MARGIN, 28, heading, "title"),
        svg_text(MARGIN, 48, _subtitle(table), "soft"),
    ]
    for tick in axis.ticks():
        x, line = axis.x(tick), "zero" if tick == 0 else "grid"
        back.append(f'<line class="{line}" x1="{x}" x2="{x}" y1="{top:g}" y2="{y + 4:g}"/>')
        back.append(svg_text(x, y + 20, show_tick(tick), "soft number", anchor="middle"))
    doubtful, impossible = any(c.noise_dominates for c in cells), any(c.impossible for c in cells)
    legend, bottom = _legend(y + 46, width, some_dominated=doubtful, some_impossible=impossible)
    named = f"{heading}: noisy counts with their 95 % intervals"
    told = told_extremes(table)
    return picture(width, bottom + 16, named, told, [*back, legend, *parts], standalone=standalone)


def whisker_glyph(cell: Cell, axis: Axis) -> str:
    """Return the dot and whisker of one cell, to stand in a row of a page; the numbers stand beside it."""
    zero = axis.x(0)
    return (
        f'<svg class="whisker-figure" aria-hidden="true" viewBox="0 0 {axis.right + axis.left:g} {_ROW}" '
        f'width="{axis.right + axis.left:g}" height="{_ROW}">'
        f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="{_ROW}"/>{_mark(cell, axis)}</svg>'
    )


def picture(
    width: float,
    height: float,
    title: str,
    told: str,
    parts: Iterable[str],
    *,
    standalone: bool,
    hatched: bool = False,
) -> str:
    """Return a whole SVG, which says in words what it shows; one that stands alone brings its style and hatching."""
    wide, high = math.ceil(width), math.ceil(height)
    style = f"<style>{STYLE}</style>{HATCH if hatched else ''}" if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="whisker-figure" role="img" viewBox="0 0 {wide} {high}" '
        f'width="{wide}" height="{high}"><title>{escape(title)}</title><desc>{escape(told)}</desc>{style}'
        f'<rect class="paper" width="{wide}" height="{high}" rx="6"/>{"".join(parts)}</svg>\n'
    )


def told_extremes(table: ReleasedTable) -> str:
    """Return in words what stands out in a picture of a table: its largest count, its smallest, what is in doubt."""
    cells = list(cells_of(table))
    possible = [number for number, cell in enumerate(cells) if not cell.impossible]
    if not possible:
        return "No cell of this table is possible."

    def told(number: int) -> str:
        place = np.unravel_index(number, table.shape)
        labels = [table.domain.levels_of(a)[i] for a, i in zip(table.margin, place, strict=True)]
        return f"{', '.join(labels) or 'total'}: {cells[number].text} {cells[number].width_text}"

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
    ends = f"M{left} {middle - 4:g}v8M{left} {middle:g}H{right}M{right} {middle - 4:g}v8"
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


def legend_entries(y: float, entries: list[tuple[str, str]], width: float) -> tuple[str, float]:
    """Return the marks of a legend, each with its words behind it, and where the last of its lines stands."""
    parts: list[str] = []
    x = float(MARGIN)
    for words, mark in entries:
        reach = 36 + PROSE * CHARACTER * len(words)
        if x > MARGIN and x + reach > width - MARGIN:
            x, y = float(MARGIN), y + _LEGEND_LINE
        parts.append(
            f'<g transform="translate({x:g} {y - 4:g})">{mark}</g>{svg_text(x + 36, y, words, "soft")}'
        )
        x += reach + 18
    return "".join(parts), y


def _subtitle(table: ReleasedTable) -> str:
    widths = {cell.half_width for cell in cells_of(table) if not cell.impossible}
    if len(widths) == 1:
        return f"Each count is within ± {show_count(widths.pop())} of the truth with probability 95 %."
    return "Each whisker holds the true count with probability 95 %."


def show_tick(value: float) -> str:
    """Return a round number of a scale."""
    return show_count(int(value)) if float(value).is_integer() else f"{value:g}".replace("-", "−")


def shortened(label: str, longest: int = LONGEST_LABEL) -> str:
    """Return a label, cut where it is too long.

    >>> shortened("manufacturing", longest=6)
    'manuf…'
    """
    return label if len(label) <= longest else f"{label[: longest - 1]}…"


def told_apart(labels: Sequence[str], longest: int = LONGEST_LABEL) -> tuple[str, ...]:
    """Return labels, cut where they are too long, of which no two look the same.

    They are cut at the end; in the middle, where that would make two of them the same; else they are numbered.

    >>> told_apart(["region of birth: north", "region of birth: south"], longest=12)
    ('regio… north', 'regio… south')
    """
    for cut in (shortened, _shortened_inside):
        names = tuple(cut(label, longest) for label in labels)
        if len(set(names)) == len(set(labels)):
            return names
    return tuple(shortened(f"{number}. {label}", longest) for number, label in enumerate(labels, 1))


def _shortened_inside(label: str, longest: int) -> str:
    kept = longest - 1
    return label if len(label) <= longest else f"{label[: kept // 2]}…{label[-(kept - kept // 2) :]}"


def svg_text(x: float, y: float, words: str, kind: str = "", *, anchor: str = "") -> str:
    """Return words at a place, with what could be markup made harmless."""
    kind = f' class="{kind}"' if kind else ""
    anchor = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{kind}{anchor}>{escape(words)}</text>'
