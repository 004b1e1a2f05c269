"""Tables with suppressed cells in the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.table import Table as Lines
from rich.text import Text

from tabulary.cli.console import output
from tabulary.core.suppressed_table import MARK, SuppressedTable
from tabulary.release import StagedFolder, staged_folder
from tabulary.release.svg import show_count
from tabulary.suppress.pages.table_layout import TOTAL, LayoutEntry, TableLayout

# A terminal shows this many lines of a table without becoming unreadable.
_MOST_LINES = 60


def print_suppressed(
    table: SuppressedTable, title: str, show: Callable[[LayoutEntry], Text] | None = None
) -> None:
    """Print a table with its sums; `show` says what stands in each cell, by default its value or [c]."""
    show = show or published
    grid = TableLayout(table)
    # Not as the grid's own title, which is broken to the width of the grid.
    output.print(f"\n{title}", style="bold", markup=False)
    lines = Lines()
    for attribute in grid.stub:
        lines.add_column(Text(attribute))
    for column in grid.columns:
        lines.add_column(Text(column or "count"), justify="right")
    for line in grid.lines[:_MOST_LINES]:
        labels = line[0].labels[: len(grid.stub)]
        by_column = {entry.labels[-1] if grid.across else "": show(entry) for entry in line}
        cells = [by_column.get(column, Text("")) for column in grid.columns]
        style = "dim" if TOTAL in labels else ""
        lines.add_row(*map(Text, labels), *cells, style=style)
    output.print(lines)
    if len(grid.lines) > _MOST_LINES:
        output.print(f"… and {len(grid.lines) - _MOST_LINES:,} more lines.")


def cells_only(table: SuppressedTable) -> SuppressedTable:
    """Return a table without its sums."""
    return SuppressedTable(table.domain, table.counts, people=table.people, whole=table.whole)


def published(entry: LayoutEntry) -> Text:
    """Return a cell as the public sees it."""
    return Text(MARK, style="bold") if entry.suppressed else Text(show_count(entry.value))


@contextmanager
def new_folder(path: Path | None) -> Iterator[StagedFolder | None]:
    """Yield a folder that appears whole at the end, or nothing where none was asked for.

    Entered before anything is read: what stands in its way is found first.
    """
    if path is None:
        yield None
        return
    with staged_folder(path) as staged:
        yield staged


def say_written(path: Path | None) -> None:
    """Say what was written where."""
    if path is not None:
        output.print(
            f"\nPublished in {path}: table.csv, table.json and report.html", markup=False, soft_wrap=True
        )
