"""Pictures of released tables, a dot for each count and a whisker for its interval, and of expected errors, as SVG."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np

from tabulary.errors import InvalidTable
from tabulary.planning.comparison import Candidate, Comparison, show_error
from tabulary.release.table import ReleasedTable

STYLE = """
.whisker-figure{--ink:#1c2128;--soft:#57606a;--line:#d0d7de;--mark:#0b5cad;--paper:#fff;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:13px}
@media (prefers-color-scheme:dark){.whisker-figure{--ink:#e6edf3;--soft:#9aa4af;--line:#3b434c;--mark:#79b8ff;
--paper:#11161d}}
@media print{.whisker-figure{--ink:#000;--soft:#444;--line:#bbb;--mark:#0b4a8a;--paper:#fff}}
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
""".strip()
"""The style of every picture; a page that holds several needs it once."""

_ROW, _GROUP_GAP, _MARGIN = 22, 8, 16
_BAR_ROW, _BAR = 28, 14
# A bar is at most so many times as long as the shortest; what is longer is cut, and shows it.
_LONGEST_BAR = 6
_CHARACTER = 7.2
_LONGEST_LABEL = 30


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
        """Whether the interval reaches zero, so that the noise is as large as the count."""
        return self.half_width > 0 and abs(self.count) <= self.half_width

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


def show_count(value: float) -> str:
    """Return a number as it is printed: thousands apart, a true minus sign, one decimal if not whole.

    >>> show_count(-1234), show_count(12.25)
    ('−1,234', '12.2')
    """
    text = f"{int(value):,}" if float(value).is_integer() else f"{value:,.1f}"
    return text.replace("-", "−")


def whisker_svg(table: ReleasedTable, *, title: str = "", width: int = 720, standalone: bool = True) -> str:
    """Return a dot-and-whisker picture of a table of one or two attributes.

    A row a cell, grouped by the first attribute where there are two. A whisker is the 95 % interval of its
    cell; an open dot marks a count whose interval reaches zero. `standalone=False` leaves out the style, for
    a page that has `STYLE` already.
    """
    if len(table.margin) not in (1, 2):
        raise InvalidTable(
            f"a picture shows one or two attributes, and this table has {len(table.margin)}. "
            "Take a slice of it, or another table of the release."
        )
    grouped = len(table.margin) == 2
    labels = table.domain.levels_of(table.margin[-1])
    groups = table.domain.levels_of(table.margin[0]) if grouped else ("",)
    heading = title or " by ".join(table.margin)
    cells = list(cells_of(table))
    indent = 14 if grouped else 0
    widest = max([*(len(label) + indent / _CHARACTER for label in labels), *map(len, groups)])
    stub = _MARGIN + _CHARACTER * min(widest, _LONGEST_LABEL) + 14
    numbers = max(_CHARACTER * len(f"{c.text} {c.width_text}") for c in cells) + 22
    axis = Axis.over(table, stub, max(width - _MARGIN - numbers, stub + 120))
    width = math.ceil(axis.right + numbers + _MARGIN)

    parts: list[str] = []
    top = y = 66.0
    for number, group in enumerate(groups):
        if grouped:
            y += _GROUP_GAP if number else 0
            parts.append(_text(_MARGIN, y + 15, _shortened(group), "strong"))
            y += _ROW
        for label, cell in zip(labels, cells[number * len(labels) :], strict=False):
            parts.append(_text(_MARGIN + indent, y + 15, _shortened(label)))
            parts.append(f'<g transform="translate(0 {y:g})">{_mark(cell, axis)}</g>')
            shown = f"{cell.text} {cell.width_text}".strip()
            parts.append(_text(width - _MARGIN, y + 15, shown, "number", anchor="end"))
            y += _ROW
    back = [
        f'<rect class="paper" width="{width}" height="{y + 62:g}" rx="6"/>',
        _text(_MARGIN, 28, heading, "title"),
        _text(_MARGIN, 48, _subtitle(table), "soft"),
    ]
    for tick in axis.ticks():
        x, line = axis.x(tick), "zero" if tick == 0 else "grid"
        back.append(f'<line class="{line}" x1="{x}" x2="{x}" y1="{top:g}" y2="{y + 4:g}"/>')
        back.append(_text(x, y + 20, _tick(tick), "soft number", anchor="middle"))
    back.append(_legend(y + 46, any(c.noise_dominates for c in cells), any(c.impossible for c in cells)))
    style = f"<style>{STYLE}</style>" if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="whisker-figure" role="img" '
        f'viewBox="0 0 {width} {y + 62:g}" width="{width}" height="{y + 62:g}">'
        f"<title>{escape(heading)}: noisy counts with their 95 % intervals</title>"
        f"{style}{''.join(back)}{''.join(parts)}</svg>\n"
    )


def whisker_glyph(cell: Cell, axis: Axis) -> str:
    """Return the dot and whisker of one cell, to stand in a row of a page; the numbers stand beside it."""
    zero = axis.x(0)
    return (
        f'<svg class="whisker-figure" aria-hidden="true" viewBox="0 0 {axis.right + axis.left:g} {_ROW}" '
        f'width="{axis.right + axis.left:g}" height="{_ROW}">'
        f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="{_ROW}"/>{_mark(cell, axis)}</svg>'
    )


def comparison_svg(compared: Comparison, *, width: int = 720, standalone: bool = True) -> str:
    """Return a picture of the expected error of every mechanism, the chosen one filled.

    Bars begin at zero. One that is many times longer than the shortest is cut, with a gap to show it; its number
    says how long it is. A dashed bar is what the planning model expects, not a guarantee. `standalone=False`
    leaves out the style, for a page that has `STYLE` already.
    """
    rows = compared.best()
    aims = [row.aim(compared.objective) for row in rows]
    top = min(max(aims), min(aims) * _LONGEST_BAR) or 1.0
    names = [*(_bar_name(row, compared) for row in rows), *(refusal.name for refusal in compared.refusals)]
    # The chosen one is bold, which takes a little more room.
    stub = _MARGIN + 1.05 * _CHARACTER * max(map(len, names)) + 18
    numbers = _CHARACTER * max(len(show_error(aim)) for aim in aims) + 18
    axis = Axis(0.0, top, stub, max(width - _MARGIN - numbers, stub + 120))
    width = math.ceil(axis.right + numbers + _MARGIN)
    first = y = 66.0
    parts: list[str] = []
    for row, aim in zip(rows, aims, strict=True):
        strong = "strong" if row is compared.chosen else ""
        parts.append(_text(_MARGIN, y + 18, _bar_name(row, compared), strong))
        kind = _bar_kind(row, compared)
        parts.append(f'<g transform="translate(0 {y:g})">{_bar(kind, axis, min(aim, top), aim > top)}</g>')
        parts.append(
            _text(width - _MARGIN, y + 18, show_error(aim), f"number {strong}".strip(), anchor="end")
        )
        y += _BAR_ROW
    for refusal in compared.refusals:
        parts.append(_text(_MARGIN, y + 18, refusal.name, "soft"))
        parts.append(_text(stub + 6, y + 18, "not possible for these tables", "soft"))
        y += _BAR_ROW
    back = [
        f'<rect class="paper" width="{width}" height="{y + 62:g}" rx="6"/>',
        _text(_MARGIN, 28, _COMPARED, "title"),
        _text(_MARGIN, 48, f"{_measure(compared).capitalize()}. Shorter is better.", "soft"),
    ]
    for tick in axis.ticks():
        x, line = axis.x(tick), "zero" if tick == 0 else "grid"
        back.append(f'<line class="{line}" x1="{x}" x2="{x}" y1="{first:g}" y2="{y + 4:g}"/>')
        back.append(_text(x, y + 20, _tick(tick), "soft number", anchor="middle"))
    back.append(_bar_legend(y + 46, {_bar_kind(row, compared) for row in rows}, cut=max(aims) > top))
    style = f"<style>{STYLE}</style>" if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="whisker-figure" role="img" '
        f'viewBox="0 0 {width} {y + 62:g}" width="{width}" height="{y + 62:g}">'
        f"<title>{_COMPARED}</title><desc>{escape(_told(compared))}</desc>"
        f"{style}{''.join(back)}{''.join(parts)}</svg>\n"
    )


_COMPARED = "Expected error of every mechanism"


def _measure(compared: Comparison) -> str:
    return (
        "root mean square over the cells of the worst table"
        if compared.objective == "max"
        else "root mean square over all cells of the tables"
    )


def _told(compared: Comparison) -> str:
    """Return in words what the bars show."""
    said = []
    for row in compared.best():
        mark = ", chosen" if row is compared.chosen else ""
        kind = ", expected by the planning model" if row.modelled else ""
        said.append(f"{row.name} {show_error(row.aim(compared.objective))}{kind}{mark}")
    said += [f"{refusal.name} not possible" for refusal in compared.refusals]
    return f"Bars of the {_measure(compared)}: {'; '.join(said)}."


def _bar_name(row: Candidate, compared: Comparison) -> str:
    families = {each.noise for each in compared.candidates}
    noise = f" ({row.noise})" if len(families) > 1 else ""
    return f"{row.name}{noise}{', chosen' if row is compared.chosen else ''}"


def _bar_kind(row: Candidate, compared: Comparison) -> str:
    return " ".join(["bar", *(["modelled"] * row.modelled), *(["chosen"] if row is compared.chosen else [])])


def _bar(kind: str, axis: Axis, length: float, cut: bool) -> str:
    upper, right = (_BAR_ROW - _BAR) / 2, axis.x(length)
    drawn = f'<rect class="{kind}" x="{axis.left:g}" y="{upper:g}" width="{right - axis.left:g}" height="{_BAR}"/>'
    if not cut:
        return drawn
    gap = axis.left + 0.9 * (right - axis.left)
    return f'{drawn}<path class="cut" d="M{gap - 5:g} {upper + _BAR + 3:g}L{gap + 5:g} {upper - 3:g}"/>'


def _bar_legend(y: float, kinds: set[str], *, cut: bool) -> str:
    box = '<rect class="{}" x="2" y="-5" width="24" height="10"/>'
    words = {
        "bar chosen": "chosen",
        "bar": "possible, not chosen",
        "bar modelled": "expected by a model, not a guarantee",
        "bar modelled chosen": "chosen; expected by a model, not a guarantee",
    }
    entries = [(said, box.format(kind)) for kind, said in words.items() if kind in kinds]
    if cut:
        entries.append(("cut", f'{box.format("bar")}<path class="cut" d="M10 8L18 -8"/>'))
    return _entries(y, entries)


def _mark(cell: Cell, axis: Axis) -> str:
    middle = _ROW / 2
    if cell.impossible:
        return ""
    x = axis.x(cell.count)
    left, right = axis.x(cell.count - cell.half_width), axis.x(cell.count + cell.half_width)
    ends = f"M{left} {middle - 4:g}v8M{left} {middle:g}H{right}M{right} {middle - 4:g}v8"
    kind = "dot open" if cell.noise_dominates else "dot"
    return f'<path class="whisker" d="{ends}"/><circle class="{kind}" cx="{x}" cy="{middle:g}" r="3.5"/>'


def _legend(y: float, some_dominated: bool, some_impossible: bool) -> str:
    whisker = '<path class="whisker" d="M2 -4v8M2 0H26M26 -4v8"/>'
    entries = [("count and 95 % interval", f'{whisker}<circle class="dot" cx="14" cy="0" r="3.5"/>')]
    if some_dominated:
        dot = '<circle class="dot open" cx="14" cy="0" r="3.5"/>'
        entries.append(("interval reaches zero", f"{whisker}{dot}"))
    if some_impossible:
        entries.append(("impossible by definition", _text(14, 4, "–", "soft", anchor="middle")))
    return _entries(y, entries)


def _entries(y: float, entries: list[tuple[str, str]]) -> str:
    """Return the marks of a legend, each with its words behind it."""
    parts: list[str] = []
    x = float(_MARGIN)
    for words, mark in entries:
        parts.append(f'<g transform="translate({x:g} {y - 4:g})">{mark}</g>{_text(x + 36, y, words, "soft")}')
        x += 36 + _CHARACTER * len(words) + 18
    return "".join(parts)


def _subtitle(table: ReleasedTable) -> str:
    widths = {cell.half_width for cell in cells_of(table) if not cell.impossible}
    if len(widths) == 1:
        return f"Each count is within ± {show_count(widths.pop())} of the truth with probability 95 %."
    return "Each whisker holds the true count with probability 95 %."


def _tick(value: float) -> str:
    return show_count(int(value)) if float(value).is_integer() else f"{value:g}".replace("-", "−")


def _shortened(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"


def _text(x: float, y: float, words: str, kind: str = "", *, anchor: str = "") -> str:
    kind = f' class="{kind}"' if kind else ""
    anchor = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{kind}{anchor}>{escape(words)}</text>'
