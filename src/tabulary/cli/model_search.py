"""The search for a log-linear model, step by step and in plain words."""

from rich.table import Table as Grid
from rich.text import Text

from tabulary import infer
from tabulary.cli.console import output, progress_bar
from tabulary.cli.verdict import show_p_value, warn
from tabulary.core.workload import show_margin
from tabulary.release import ReleasedTable


def print_search(table: ReleasedTable, alpha: float) -> None:
    """Print which relations a table needs, with the verdict of either test on each that was put to it."""
    with progress_bar() as progress:
        found = infer.search(table, alpha=alpha, progress=progress)
    path = found.aware or found.naive
    output.print(f"\nWhich relations does {path.start} need?", style="bold", markup=False)
    output.print(
        f"All are there at first. The one that is missed least is left out, for as long as its p is above {alpha:g}.",
        markup=False,
    )
    grid = Grid()
    for head in ("left out?", "noise-aware", "naive"):
        grid.add_column(head)
    for step in (*path.steps, *((path.kept,) if path.kept else ())):
        verdicts = (_verdict(test, alpha) for test in (step.aware, step.naive))
        grid.add_row(Text(show_margin(step.generator)), *map(Text, verdicts))
    output.print(grid)
    output.print(f"The simplest model that fits: {found.model}", style="bold", markup=False)
    if found.differ:
        warn(f"The naive search ends elsewhere: {found.naive.model}. Go by the noise-aware one.")
        output.print("It took noise for a relation, or missed one behind the noise.", markup=False)
    output.print(
        "Of many tests some err: a model that was searched for describes the table, and proves nothing.",
        markup=False,
        style="dim",
    )


def _verdict(test: infer.TestResult | None, alpha: float) -> str:
    if test is None:
        return "no fit was found"
    return f"{'no, needed' if test.rejects(alpha) else 'yes'} (p {_relation(test.p_value)})"


def _relation(p_value: float) -> str:
    shown = show_p_value(p_value)
    return shown if shown.startswith("below") else f"= {shown}"
