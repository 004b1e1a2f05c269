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
from tabulary.release.promise import Promise

output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


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


def length_bar(error: float, longest: float, width: int) -> str:
    """Return a bar whose length is an error; a mark ends a bar that would be longer than `longest`."""
    if error > longest * (1 + 1e-9):
        return "━" * (width - 1) + "▶"
    return "━" * max(1, round(width * error / longest)) if longest > 0 else ""


def _plain(text: str) -> str:
    # Rich reads square brackets as markup, and margins are written in square brackets.
    return text.replace("[", r"\[")
