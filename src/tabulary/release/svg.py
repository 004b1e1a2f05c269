"""The SVG kit of every picture of tables: one style, one scale, text, legends and hatching.

All pictures without a chart library use these parts: whiskers, heat maps, mosaics and bars, in reports and on the
pages of the table builder. Colour never carries information alone, so a black-and-white print says as much.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from string import Template

from tabulary.release.palette import COLOURS, INK, SOFT

STYLE = (
    Template("""
.table-picture{--ink:$ink;--soft:$soft;--line:#d0d7de;--mark:$mark;--paper:#fff;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:13px}
@media (prefers-color-scheme:dark){.table-picture{--ink:#e6edf3;--soft:#9aa4af;--line:#3b434c;--mark:#79b8ff;
--paper:#11161d}}
@media (forced-colors:active){.table-picture{--ink:CanvasText;--soft:CanvasText;--line:GrayText;--mark:LinkText;
--paper:Canvas;forced-color-adjust:none}}
@media print{.table-picture{--ink:#000;--soft:#444;--line:#bbb;--mark:$mark;--paper:#fff}}
.table-picture text{fill:var(--ink)}
.table-picture .soft{fill:var(--soft)}
.table-picture .strong{font-weight:600}
.table-picture .title{font-size:15px;font-weight:600}
.table-picture .number{font-variant-numeric:tabular-nums}
.table-picture .paper{fill:var(--paper)}
.table-picture .grid{stroke:var(--line);stroke-width:1}
.table-picture .zero{stroke:var(--soft);stroke-width:1}
.table-picture .whisker{stroke:var(--mark);stroke-width:1.75;fill:none}
.table-picture .dot{fill:var(--mark);stroke:var(--mark);stroke-width:1.75}
.table-picture .open{fill:var(--paper)}
.table-picture .bar{fill:var(--paper);stroke:var(--mark);stroke-width:1.75}
.table-picture .chosen{fill:var(--mark)}
.table-picture .filled{fill:var(--mark);fill-opacity:.45}
.table-picture .modelled{stroke-dasharray:5 3;fill-opacity:.45}
.table-picture .cut{stroke:var(--paper);stroke-width:5;fill:none}
.table-picture .small{font-size:11px}
.table-picture .shade{fill:var(--mark)}
.table-picture .frame{stroke:var(--line);stroke-width:1;fill:none}
.table-picture .stripe{stroke:var(--soft);stroke-width:1.25;stroke-opacity:.75}
.table-picture .clear{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-opacity:.85;stroke-linejoin:round}
.table-picture .track{stroke:var(--soft);stroke-opacity:.35;stroke-width:1}
.table-picture .error{stroke:var(--ink);stroke-width:3}
.table-picture .halo{stroke:var(--paper);stroke-width:4.5;stroke-opacity:.8;fill:none}
.table-picture .reach{stroke:var(--ink);stroke-width:1.75;fill:none}
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

_LEGEND_LINE = 18
# Text on the strongest shade has a contrast above 4.5 to 1, in the light and in the dark.
_FAINTEST, _STRONGEST = 0.04, 0.5


@dataclass(frozen=True)
class Axis:
    """A scale from counts to a picture's width, with round ticks."""

    low: float
    high: float
    left: float
    right: float

    def x(self, value: float) -> float:
        """Return the position of a count."""
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


LEAST_SHOWN = 0.05
"""The least positive count that is not printed as zero; shrunk tables have some that are far smaller."""


def show_count(value: float) -> str:
    """Return a number as text: a thousands separator, a true minus sign, one decimal if not whole.

    >>> show_count(-1234), show_count(12.25)
    ('−1,234', '12.2')
    """
    text = f"{int(value):,}" if float(value).is_integer() else f"{value:,.1f}"
    return text.replace("-", "−")


def show_width(value: float) -> str:
    """Return a half-width as text, rounded upwards: to whole numbers from ten on, otherwise to one decimal.

    >>> show_width(51.2), show_width(9.01), show_width(9)
    ('52', '9.1', '9')
    """
    return show_count(rounded_up(value))


def rounded_up(width: float) -> float:
    """Return a half-width as people read it, on every page and sheet the same."""
    if float(width).is_integer():
        return width
    return math.ceil(width) if width > 10 else math.ceil(10 * width) / 10


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
    """Return a whole SVG with a description in words; a standalone one includes its style and hatching."""
    wide, high = math.ceil(width), math.ceil(height)
    style = f"<style>{STYLE}</style>{HATCH if hatched else ''}" if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="table-picture" role="img" viewBox="0 0 {wide} {high}" '
        f'width="{wide}" height="{high}"><title>{escape(title)}</title><desc>{escape(told)}</desc>{style}'
        f'<rect class="paper" width="{wide}" height="{high}" rx="6"/>{"".join(parts)}</svg>\n'
    )


def legend_entries(y: float, entries: list[tuple[str, str]], width: float) -> tuple[str, float]:
    """Return the marks of a legend, each followed by its words, and the position of its last line."""
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


def axis_lines(
    axis: Axis, top: float, bottom: float, *, show: Callable[[float], str] | None = None
) -> list[str]:
    """Return the grid lines of an axis at round numbers, each with its number below; the line of zero is stronger."""
    parts = []
    for tick in axis.ticks():
        x, kind = axis.x(tick), "zero" if tick == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{x:g}" x2="{x:g}" y1="{top:g}" y2="{bottom + 4:g}"/>')
        parts.append(svg_text(x, bottom + 20, (show or show_tick)(tick), "soft number", anchor="middle"))
    return parts


def shade(share: float) -> float:
    """Return the opacity of a count that is this share of the largest one."""
    return _FAINTEST + (_STRONGEST - _FAINTEST) * share


def shade_legend(x: float, y: float, steps: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """Return a legend of shades, each with its number below and its opacity, and how far it reaches."""
    wide = max(CHARACTER * max(len(text) for text, _ in steps) + 10, 36)
    parts = []
    for number, (text, opacity) in enumerate(steps):
        left = x + number * wide
        parts.append(
            f'<rect class="shade" x="{left:g}" y="{y - 10:g}" width="{wide - 1:g}" height="12" '
            f'fill-opacity="{opacity:.3g}"/>'
        )
        parts.append(svg_text(left + wide / 2, y + 16, text, "soft number", anchor="middle"))
    return "".join(parts), x + len(steps) * wide


def whisker_path(left: float, right: float, middle: float) -> str:
    """Return the path of a whisker between two ends."""
    return f"M{left:g} {middle - 4:g}v8M{left:g} {middle:g}H{right:g}M{right:g} {middle - 4:g}v8"


def upright_text(x: float, y: float, words: str) -> str:
    """Return words that read upwards, with their middle at `x`."""
    return f'<g transform="translate({x + 4:g} {y:g}) rotate(-90)">{svg_text(0, 0, words)}</g>'


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
    """Return labels, cut where they are too long; no two of them look the same.

    They are cut at the end, or in the middle where a cut at the end would make two equal; otherwise they are
    numbered.

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
    """Return words at a place, with markup escaped."""
    kind = f' class="{kind}"' if kind else ""
    anchor = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{kind}{anchor}>{escape(words)}</text>'
