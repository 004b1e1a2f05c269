"""A picture of the expected error of every mechanism as SVG, one bar per mechanism."""

import math

from tabulary.planning.comparison import Candidate, Comparison, show_error
from tabulary.release.svg import (
    BOLD,
    CHARACTER,
    MARGIN,
    PROSE,
    Axis,
    axis_lines,
    legend_entries,
    picture,
    svg_text,
)

_BAR_ROW, _BAR = 28, 14
# A bar is at most this many times as long as the shortest; a longer bar is cut, and the cut is visible.
_LONGEST_BAR = 6
_COMPARED = "Expected error of every mechanism"


def comparison_svg(compared: Comparison, *, width: int = 720, standalone: bool = True) -> str:
    """Return a picture of the expected error of every mechanism, the chosen one filled.

    Bars begin at zero. A bar that is many times longer than the shortest is cut and shows a gap; its number gives the
    full length. A dashed bar shows what the planning model expects, not a guarantee. `standalone=False` leaves out
    the style, for a page that has `STYLE` already.
    """
    rows = compared.best()
    aims = [row.aim(compared.objective) for row in rows]
    top = min(max(aims), min(aims) * _LONGEST_BAR) or 1.0
    names = [*(_bar_name(row, compared) for row in rows), *(refusal.name for refusal in compared.refusals)]
    # The chosen one is bold, which takes a little more room.
    stub = math.ceil(MARGIN + BOLD * PROSE * CHARACTER * max(map(len, names)) + 18)
    numbers = BOLD * CHARACTER * max(len(show_error(aim)) for aim in aims) + 18
    axis = Axis(0.0, top, stub, max(width - MARGIN - numbers, stub + 120))
    width = math.ceil(axis.right + numbers + MARGIN)
    first = y = 66.0
    parts: list[str] = []
    for row, aim in zip(rows, aims, strict=True):
        strong = "strong" if row is compared.chosen else ""
        parts.append(svg_text(MARGIN, y + 18, _bar_name(row, compared), strong))
        kind = _bar_kind(row, compared)
        parts.append(f'<g transform="translate(0 {y:g})">{_bar(kind, axis, min(aim, top), aim > top)}</g>')
        parts.append(
            svg_text(width - MARGIN, y + 18, show_error(aim), f"number {strong}".strip(), anchor="end")
        )
        y += _BAR_ROW
    for refusal in compared.refusals:
        parts.append(svg_text(MARGIN, y + 18, refusal.name, "soft"))
        parts.append(svg_text(stub + 6, y + 18, "not possible for these tables", "soft"))
        y += _BAR_ROW
    back = [
        svg_text(MARGIN, 28, _COMPARED, "title"),
        svg_text(MARGIN, 48, f"{_measure(compared).capitalize()}. Shorter is better.", "soft"),
    ]
    back += axis_lines(axis, first, y)
    kinds = {_bar_kind(row, compared) for row in rows}
    legend, bottom = _bar_legend(y + 46, width, kinds, cut=max(aims) > top)
    told = _told(compared)
    return picture(width, bottom + 16, _COMPARED, told, [*back, legend, *parts], standalone=standalone)


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


def _bar_legend(y: float, width: float, kinds: set[str], *, cut: bool) -> tuple[str, float]:
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
    return legend_entries(y, entries, width)
