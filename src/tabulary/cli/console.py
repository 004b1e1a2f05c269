"""Output of the commands: results go to standard output, everything else to standard error."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from tabulary.core.progress import Progress
from tabulary.core.workload import show_margin
from tabulary.planning import ExpectedErrors, show_width
from tabulary.release import ReleasedTable
from tabulary.release.promise import Promise

output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

# A terminal can show a table with this many columns and rows and stay readable.
_MOST_COLUMNS, _MOST_ROWS = 12, 60


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yield a function that shows the progress of some work; the bar disappears when the work is done.

    A total of zero means unknown: then the bar only shows that work goes on.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with ProgressBar(*columns, TimeRemainingColumn(), console=errors, transient=True) as bar:
        tasks = {}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total or None)
            bar.update(tasks[what], completed=done, total=total or None)

        yield update


def print_expected(expected: ExpectedErrors) -> None:
    """Print the expected accuracy of every table of a plan."""
    grid = Grid(title="Expected accuracy, before any budget is spent", title_justify="left")
    grid.add_column("table")
    for head in ("cells", "standard error", f"±{expected.confidence:.0%}"):
        grid.add_column(head, justify="right")
    for row in expected:
        grid.add_row(
            _plain(show_margin(row.margin)),
            f"{row.cells:,}",
            f"{row.standard_error:,.1f}",
            f"±{show_width(row.half_width)}",
        )
    output.print(grid)


def print_promise(promised: Promise) -> None:
    """Print what is promised and to whom, its assumptions, and what is not promised."""
    print_points(promised.statement, (*promised.meaning, promised.protected))
    print_points("The promise assumes this", promised.conditions)
    print_points("Not promised", promised.not_promised)


def print_points(heading: str, sentences: Iterable[str]) -> None:
    """Print sentences below a heading, one sentence per point."""
    output.print(f"\n{heading}", style="bold", markup=False)
    points = Grid.grid(padding=(0, 1))
    for sentence in sentences:
        points.add_row("•", Text(sentence))
    output.print(points)


def print_released(table: ReleasedTable, confidence: float) -> None:
    """Print a released table with its error bars."""
    widths = table.errors.half_widths(confidence)
    title = f"{' by '.join(table.domain.attributes) or 'total'}, ±{confidence:.0%}"
    if len(table.domain.shape) == 2 and table.domain.shape[1] <= _MOST_COLUMNS:
        _print_cross_table(table, title, widths.tolist())
    else:
        _print_list(table, title, widths.reshape(-1).tolist())


def _print_cross_table(table: ReleasedTable, title: str, widths: list[list[int]]) -> None:
    row_levels, column_levels = table.domain.levels
    # If all half-widths are the same, the title states them once. This leaves space for the counts.
    different = {half for halves in widths for half in halves} - {0}
    shared = different.pop() if len(different) == 1 else None
    shown = title if shared is None else f"{title}: every count ±{show_width(shared)}"
    grid = Grid(title=_plain(shown), title_justify="left")
    grid.add_column(_plain(" \\ ".join(table.domain.attributes)))
    for level in column_levels:
        grid.add_column(_plain(level), justify="right")
    for level, counts, halves in zip(row_levels, table.counts.tolist(), widths, strict=True):
        cells = zip(counts, halves, strict=True)
        grid.add_row(_plain(level), *(_cell(c, h) if h != shared else show_width(c) for c, h in cells))
    output.print(grid)
    _print_legend(table)


def _print_list(table: ReleasedTable, title: str, widths: list[int]) -> None:
    columns = table.columns()
    grid = Grid(title=_plain(title), title_justify="left")
    for attribute in table.domain.attributes:
        grid.add_column(_plain(attribute))
    grid.add_column("count", justify="right")
    bars = len(widths) <= _MOST_ROWS
    if bars:
        grid.add_column("0", justify="left")
    counts = table.counts.reshape(-1).tolist()
    top = max([*(c + h for c, h in zip(counts, widths, strict=True)), 1])
    labels = [columns[attribute] for attribute in table.domain.attributes]
    for i, (count, half) in enumerate(zip(counts[:_MOST_ROWS], widths, strict=False)):
        row = [*(_plain(str(column[i])) for column in labels), _cell(count, half)]
        grid.add_row(*row, *([_bar(count, half, top)] if bars else []))
    output.print(grid)
    if len(counts) > _MOST_ROWS:
        output.print(
            f"… and {len(counts) - _MOST_ROWS:,} more rows: the CSV and Parquet files contain all of them."
        )
    _print_legend(table)


def _print_legend(table: ReleasedTable) -> None:
    notes = []
    if (table.standard_errors == 0).any():
        notes.append("– is an impossible combination (a structural zero)")
    if (table.counts < 0).any():
        notes.append("a negative count is a small count plus noise")
    if notes:
        output.print("; ".join(notes).capitalize() + ".", style="dim")


def _cell(count: float, half_width: float) -> str:
    return "–" if half_width == 0 and count == 0 else f"{show_width(count)} ±{show_width(half_width)}"


def _bar(count: float, half_width: float, top: float, width: int = 40) -> str:
    """Return a thick bar up to the lower end of the interval and a thin bar up to its upper end."""
    if count == 0 and half_width == 0:
        return ""

    def place(value: float) -> int:
        return max(0, min(width, round(width * value / top)))

    low, middle, high = place(count - half_width), place(count), place(count + half_width)
    return "━" * low + "─" * (middle - low) + "●" + "─" * (high - middle)


def _plain(text: str) -> str:
    # Rich reads square brackets as markup, and margins are written in square brackets.
    return text.replace("[", r"\[")
