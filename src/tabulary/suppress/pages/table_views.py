"""What a page shows of a table: lines of cells, each with its words and, where it is suppressed, its interval."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from markupsafe import Markup

from tabulary.core.suppressed_table import MARK, SuppressedTable
from tabulary.release.page_table import Header, PageRow, PageTable, cross_head, row_heads
from tabulary.release.svg import show_count
from tabulary.suppress.pages.table_layout import TOTAL, LayoutEntry, TableLayout

MOST_LINES = 200
"""The most lines of one table that a page shows."""

_WIDTH, _HEIGHT = 88.0, 12.0
# An interval that is a single number still has to be seen.
_LEAST = 3.0
_SELDOM = 1e-3

Range = tuple[float, float]


@dataclass(frozen=True)
class CellView:
    """One cell of a page: what stands there, in which state it is, and what is said below it."""

    text: str
    state: str = "published"
    notes: tuple[str, ...] = ()
    bar: str = ""
    is_sum: bool = False


@dataclass(frozen=True)
class SuppressedTableView(PageTable[CellView | None]):
    """A table as a page shows it; a cell is None where there is no number. `left_out` rows are not shown."""

    anchor: str
    name: str
    left_out: int

    @property
    def states(self) -> frozenset[str]:
        """The states that occur, which the legend explains."""
        return frozenset(cell.state for row in self.body for cell in row.cells if cell is not None)


def table_view(
    table: SuppressedTable, anchor: str, name: str, show: Callable[[LayoutEntry], CellView]
) -> SuppressedTableView:
    """Return a table with each entry as `show` shows it."""
    grid = TableLayout(table)
    lines = grid.lines[:MOST_LINES]
    depth = len(grid.stub)
    labels = [line[0].labels[:depth] for line in lines]
    made = []
    for number, line in enumerate(lines):
        by_column = {entry.labels[-1] if grid.across else "": show(entry) for entry in line}
        made.append(
            PageRow(
                row_heads(labels, number),
                tuple(by_column.get(column) for column in grid.columns),
                TOTAL in labels[number],
            )
        )
    columns = [
        Header(label, "col", kind="number sum" if label == TOTAL else "number")
        for label in (grid.columns if grid.across else ("count",))
    ]
    head = cross_head(grid.stub, grid.across, columns)
    return SuppressedTableView(head, tuple(made), anchor, name, len(grid.lines) - len(lines))


def published_cell(entry: LayoutEntry, *notes: str) -> CellView:
    """Return a cell as the public sees it."""
    text = MARK if entry.suppressed else show_count(entry.value)
    state = "suppressed" if entry.suppressed else "published"
    return CellView(text, state, tuple(note for note in notes if note), is_sum=entry.is_sum)


def show_range(ends: Range) -> str:
    """Return an interval in words.

    >>> show_range((0, 1055)), show_range((7, 7)), show_range((3, math.inf))
    ('0 to 1,055', '7', '3 or more')
    """
    low, high = ends
    if math.isinf(high):
        return f"{show_count(low)} or more"
    return show_count(low) if low == high else f"{show_count(low)} to {show_count(high)}"


def show_percent(share: float) -> str:
    r"""Return a probability in percent; what is nearly certain is not said to be certain.

    >>> show_percent(0.123), show_percent(1e-9), show_percent(1 - 1e-9)
    ('12.3\xa0%', 'below 0.1\xa0%', 'above 99.9\xa0%')
    """
    if 0 < share < _SELDOM:
        return "below 0.1\N{NO-BREAK SPACE}%"
    if 1 - _SELDOM < share < 1:
        return "above 99.9\N{NO-BREAK SPACE}%"
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def bar(whole: Range, inside: Iterable[Range], top: float) -> Markup:
    """Return a small bar: the interval on a scale from 0 to `top`, and darker the ranges inside that are possible."""

    def drawn(ends: Range, kind: str) -> str:
        left, right = (_WIDTH * min(max(end / top, 0.0), 1.0) if top else 0.0 for end in ends)
        width = max(right - left, _LEAST)
        left = min(left, _WIDTH - width)
        return (
            f'<rect class="{kind}" x="{left:.1f}" y="2" width="{width:.1f}" height="{_HEIGHT - 4:g}" rx="2"/>'
        )

    return Markup(
        f'<svg class="bar" width="{_WIDTH:g}" height="{_HEIGHT:g}" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" '
        'aria-hidden="true">'
        f'<rect class="track" x="0" y="5" width="{_WIDTH:g}" height="2" rx="1"/>{drawn(whole, "interval")}'
        f"{''.join(drawn(ends, 'possible') for ends in inside)}</svg>"
    )


def joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return whole-number ranges in order, those that touch or overlap as one.

    >>> joined([(50, 55), (0, 3), (2, 5)])
    ((0, 5), (50, 55))
    """
    found: list[Range] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def largest_end(ends: Iterable[Range]) -> float:
    """Return the largest number among the ends of some intervals, 1 if there is none above 0.

    >>> largest_end([(0, 5), (3, math.inf)]), largest_end([])
    (5.0, 1.0)
    """
    return float(max((end for both in ends for end in both if math.isfinite(end)), default=1.0)) or 1.0
