"""The search for a log-linear model, printed step by step in plain words."""

from rich.table import Table as Grid
from rich.text import Text

from tabulary import infer
from tabulary.cli.console import output, progress_bar
from tabulary.cli.verdict import chance, show_p_value, warn
from tabulary.core.workload import show_margin
from tabulary.release import ReleasedTable


def print_search(table: ReleasedTable, alpha: float) -> None:
    """Print which relations a table needs, with the verdict of both tests on each relation that was tested."""
    with progress_bar() as progress:
        found = infer.search(table, alpha=alpha, progress=progress)
    path = found.aware or found.naive
    output.print(f"\nWhich relations does {path.start} need?", style="bold", markup=False)
    output.print(
        "The search starts with all relations. It removes the one with the largest p-value, as long as p "
        f"is above {alpha:g}.",
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
    output.print(
        f"Relations that are certainly there: {_certain(found)}. If none of the others were there, chance "
        f"would add one to this list {chance(alpha)} at most.",
        markup=False,
    )
    if found.differ:
        warn(f"The naive search ends with another model: {found.naive.model}. Trust the noise-aware one.")
        output.print(
            "The naive search mistook noise for a relation, or missed one behind the noise.", markup=False
        )
    output.print(
        "The model describes the table and proves nothing: some of the many tests behind it are wrong. The list of "
        "certain relations has a test of its own for each relation, adjusted for their number.",
        markup=False,
        style="dim",
    )


def _certain(found: infer.ModelSearch) -> str:
    shown = [show_margin(g) for g in found.certain.generators if len(g) > 1]
    return "".join(shown) or "none"


def _verdict(test: infer.TestResult | None, alpha: float) -> str:
    if test is None:
        return "no fit was found"
    return f"{'no, needed' if test.rejects(alpha) else 'yes'} (p {_relation(test.p_value)})"


def _relation(p_value: float) -> str:
    shown = show_p_value(p_value)
    return shown if shown.startswith("below") else f"= {shown}"
