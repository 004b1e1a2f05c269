"""`tabulary plan`: the tables of a plan file, and their expected error."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Grid
from rich.text import Text

from tabulary.cli.budgets import check_picture, listed_amounts, print_budgets
from tabulary.cli.console import errors, length_bar, output, print_expected, progress_bar
from tabulary.core.exact_numbers import show_fraction
from tabulary.errors import InvalidArgument
from tabulary.planning import Plan
from tabulary.planning.budgets import Target
from tabulary.planning.comparison import Candidate, Comparison, show_error
from tabulary.workflows import read_plan_file

# If there are more laws of noise than this, only their range is printed.
_MOST_LAWS = 4
# A bar is at most this many times as long as the shortest one. A longer bar is cut and ends with a mark.
_LONGEST_BAR = 6
_BAR_WIDTHS = (12, 30)
# The columns that hold no numbers.
_WORDS = ("mechanism", "noise", "", "tables")


def plan(
    file: Annotated[Path, typer.Argument(help="A plan file in TOML.")],
    confidence: Annotated[float, typer.Option(help="The confidence of the half-widths.")] = 0.95,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Show the expected error of every mechanism, and why one was chosen."),
    ] = False,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(help="Budgets to show side by side, such as 0.1,0.5,1. A δ of the plan file is kept."),
    ] = None,
    rho: Annotated[list[str] | None, typer.Option(help="The same for a plan file that promises a ρ.")] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help='Find the smallest budget that reaches this error: "10% of cells of 1000" or ±10 (also +-10 or 10).'
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(help='The tables that the budgets are for, such as "[sex age]". Default: all.'),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw the error against the budget into this new file: .svg, .png or .html."),
    ] = None,
) -> None:
    """Print the expected error of every table of a plan file. Reads no records and spends nothing.

    Examples: tabulary plan census.toml, or: tabulary plan census.toml --compare,
    or: tabulary plan census.toml --epsilon 0.1,0.5,1,2,4 --picture budgets.svg,
    or: tabulary plan census.toml --target "10% of cells of 1000",
    or: tabulary plan census.toml --target ±10 --table "[sex age]"
    """
    asked = [epsilon, rho, target, table, picture]
    if compare and any(each is not None for each in asked):
        raise InvalidArgument(
            "--compare shows every mechanism at the budget of the plan file; --epsilon, --rho, --target, --table and "
            "--picture show several budgets. Nothing was planned. Use --compare alone, and then the others."
        )
    epsilons, rhos = listed_amounts("--epsilon", epsilon or ()), listed_amounts("--rho", rho or ())
    wanted = None if target is None else Target.parse(target)
    check_picture(picture)
    with errors.status("Planning …"):
        planned = read_plan_file(file)
    if any(each is not None for each in asked):
        print_budgets(
            planned,
            epsilons=epsilons,
            rhos=rhos,
            target=wanted,
            tables=table or (),
            confidence=confidence,
            picture=picture,
        )
        return
    made = planned.plan
    output.print(f"{made}", markup=False)
    if made.loss != made.privacy:
        kind = made.measured[0].noise.kind
        output.print(
            f"The noise is discrete {kind} with {made.loss}, which implies that promise.", markup=False
        )
    if compare:
        with progress_bar() as progress:
            compared = planned.comparison(progress)
        print_comparison(compared)
        return
    with errors.status("Computing the expected error …"):
        expected = made.expected_error(confidence)
    print_expected(expected)
    if made.records is not None:
        output.print(
            "The budget is divided for shrunk tables. These errors are what the planning model expects for about "
            f"{made.records:,} records, not a guarantee. --compare shows the errors of the unbiased estimates.",
            markup=False,
        )
    for sentence in _noise(made):
        output.print(sentence, markup=False)


def print_comparison(compared: Comparison) -> None:
    """Print the expected error of every mechanism, with a mark on the chosen one, and why it was chosen."""
    rows = compared.best()
    aims = [row.aim(compared.objective) for row in rows]
    longest = min(max(aims), min(aims) * _LONGEST_BAR)
    columns = _columns(compared, rows)
    width = _room_for_bars(columns)
    if width < _BAR_WIDTHS[0]:
        del columns["measured"]
        width = _room_for_bars(columns)
    width = max(_BAR_WIDTHS[0], min(_BAR_WIDTHS[1], width))
    grid = Grid(title="Expected error of every mechanism, before any budget is spent", title_justify="left")
    # Each bar is next to the number that it shows.
    bars = list(columns).index("worst" if compared.objective == "max" else "error") + 1
    heads = list(columns)
    for head in (*heads[:bars], "", *heads[bars:]):
        grid.add_column(head, no_wrap=True, justify="left" if head in _WORDS else "right")
    for number, row in enumerate(rows):
        cells = [cells[number] for cells in columns.values()]
        cells.insert(bars, length_bar(aims[number], longest, width))
        grid.add_row(*map(Text, cells), style="bold" if row is compared.chosen else "")
    output.print(grid)
    output.print(f"● {compared.reason}\n", markup=False, style="bold")
    for sentence in _legend(compared, rows, cut=max(aims) > longest):
        output.print(sentence, markup=False, style="dim")


def _columns(compared: Comparison, rows: Sequence[Candidate]) -> dict[str, list[str]]:
    """Return the cells of each column by its heading, without the bars."""
    errors_of = {
        "worst": [show_error(row.worst) for row in rows],
        "error": [show_error(row.error) + ("*" if row.modelled else "") for row in rows],
        "largest": ["–" if row.modelled else show_error(row.largest) for row in rows],
    }
    shown = ("worst", "error") if compared.objective == "max" else ("error", "largest")
    columns = {"mechanism": [f"{'●' if row is compared.chosen else ' '} {row.name}" for row in rows]}
    if len({row.noise for row in compared.candidates}) > 1:
        columns["noise"] = [row.noise for row in rows]
    columns |= {head: errors_of[head] for head in shown}
    columns["measured"] = [f"{row.values:,}" for row in rows]
    tables = [
        ", ".join(word for word, is_so in (("agree", row.agree), ("whole", row.whole)) if is_so)
        for row in rows
    ]
    # The tables of an official face have the same properties, whatever was measured.
    if len(set(tables)) > 1:
        columns["tables"] = tables
    return columns


def _room_for_bars(columns: Mapping[str, Sequence[str]]) -> int:
    taken = sum(max(map(len, [head, *cells])) for head, cells in columns.items())
    # Every column, also the column of bars, has a line and a space on both sides.
    return output.width - taken - 3 * (len(columns) + 1) - 1


def _legend(compared: Comparison, rows: Sequence[Candidate], *, cut: bool) -> list[str]:
    beside = (
        "Worst: the error of the worst table, its square times the weight."
        if compared.objective == "max"
        else "Largest: the largest standard error of a cell."
    )
    differ = len({(row.agree, row.whole) for row in rows}) > 1
    said = [
        f"Error: the root mean square over all requested cells, each table with its weight. {beside}"
        + (" Agree: tables that share attributes have the same sums. Whole: whole numbers." if differ else "")
        + (" ▶ is longer than the column." if cut else "")
    ]
    if any(row.modelled for row in rows):
        said.append(
            f"* The planning model expects this for about {compared.records:,} records; it is not a "
            "guarantee. Shrunk tables are biased towards tables without interaction. The release holds the "
            "unbiased estimates as well."
        )
    others = [(row, compared.other_noise(row)) for row in rows]
    both = [
        f"{row.name} {show_error(o.aim(compared.objective))} ({o.noise})"
        for row, o in others
        if o is not None
    ]
    if both:
        said.append(f"With the other family of noise: {'; '.join(both)}.")
    said += [f"{refusal.name} is not possible: {refusal.reason}" for refusal in compared.refusals]
    return said


def _noise(made: Plan) -> list[str]:
    """Return the laws of noise, one sentence each, or their range if there are many."""
    what = made.query.unit
    laws = [_law(part.noise.describe()) for part in made.measured]
    different = sorted(set(laws))
    if len(different) <= _MOST_LAWS:
        return [f"Noise on each measured {what}: {name} {show_fraction(v)}." for name, v in different]
    name = different[0][0]
    return [
        f"Noise on each measured {what}: {name} from {float(different[0][1]):.6g} to "
        f"{float(different[-1][1]):.6g}, {len(different):,} different values on {len(laws):,} sets of "
        "attributes."
    ]


def _law(description: dict[str, str]) -> tuple[str, Fraction]:
    family = description["family"].replace("-", " ")
    parameter = next(key for key in description if key != "family")
    return f"{family}, {parameter.replace('_', ' ')}", Fraction(description[parameter])
