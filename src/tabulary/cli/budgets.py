"""`tabulary plan --epsilon` and `--target`: budgets side by side, and the smallest that reaches a target."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from rich.table import Table as Grid
from rich.text import Text

from tabulary.cli.console import errors, length_bar, output, progress_bar
from tabulary.cli.new_file import check_new, write_new
from tabulary.core.budget import amount, ascending, given_amounts, scaled, show_amount, symbol
from tabulary.core.domain import Margin
from tabulary.core.privacy import Privacy
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import InvalidArgument, LedgerMissing
from tabulary.planning import ExpectedError, Plan, show_width
from tabulary.planning.budgets import BudgetPlan, Budgets, Planner, Target, compare_budgets, smallest_budget
from tabulary.workflows import PlanFile

# Times the ε of the plan file, if no list is given.
_FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
# The cell whose relative errors are printed, if the target names none.
_USUAL_CELL = Fraction(1_000)
_PICTURES = (".svg", ".png", ".html")
_BAR_WIDTHS = (10, 30)


def listed_amounts(option: str, texts: Iterable[str]) -> list[str]:
    """Return the numbers of a list such as "0.1,0.5,1".

    >>> listed_amounts("--epsilon", ["0.1, 0.5", "1"])
    ['0.1', '0.5', '1']
    """
    found = [part.strip() for text in texts for part in text.split(",")]
    if not all(found):
        raise InvalidArgument(
            f"{option} has an empty place in its list. Write numbers with commas between them, such as {option} "
            "0.1,0.5,1. Nothing was planned."
        )
    return found


def check_picture(path: Path | None) -> None:
    """Refuse a picture in a format that is not drawn, or a file that exists, before anything is planned."""
    if path is None:
        return
    if path.suffix.lower() not in _PICTURES:
        raise InvalidArgument(
            f"--picture {path}: the name must end in {', '.join(_PICTURES[:-1])} or {_PICTURES[-1]}. Nothing was "
            "planned."
        )
    check_new(path, "Nothing was planned.", option="--picture")


def print_budgets(
    planned: PlanFile,
    *,
    epsilons: Sequence[str],
    rhos: Sequence[str],
    target: Target | None,
    tables: Iterable[str],
    confidence: float,
    picture: Path | None,
) -> None:
    """Print the tables of a plan file at several budgets, and the smallest budget that reaches the target."""
    own = planned.plan.privacy
    margins = _margins(planned, tables)
    promises = given_amounts(own, epsilons=epsilons, rhos=rhos)
    if not promises:
        promises = tuple(scaled(own, factor) for factor in _FACTORS)
    planner, found = _once_per_budget(planned), None
    with progress_bar() as progress:
        if target is not None:
            found = smallest_budget(
                planner, own, target, tables=margins, confidence=confidence, progress=progress
            )
            promises = ascending([*promises, found.privacy])
        compared = compare_budgets(
            planner, promises, tables=margins, confidence=confidence, progress=progress
        )
    shares, left = _shares(planned, promises)
    chosen = None if found is None else found.privacy
    cell = _USUAL_CELL if target is None or target.cell is None else target.cell
    _print_tables(compared, chosen, cell)
    _print_costs(compared, chosen, cell, shares)
    if found is not None and target is not None:
        output.print(f"● {_answer(found, target, shares, left)}\n", markup=False, style="bold")
    for sentence in _legend(compared, cell, left):
        output.print(sentence, markup=False, style="dim")
    if picture is not None:
        _draw(compared, target, picture)


def _once_per_budget(planned: PlanFile) -> Planner:
    """Return the planner of a plan file, which makes each plan once: many tables take seconds."""
    made = {planned.plan.privacy: planned.plan}

    def planner(*, privacy: Privacy) -> Plan:
        if privacy not in made:
            made[privacy] = planned.planner(privacy=privacy)
        return made[privacy]

    return planner


def _margins(planned: PlanFile, tables: Iterable[str]) -> tuple[Margin, ...]:
    domain = planned.plan.domain
    return tuple(dict.fromkeys(m for text in tables for m in Workload.parse(text, domain).margins))


def _print_tables(compared: Budgets, chosen: Privacy | None, cell: Fraction) -> None:
    """Print the half-widths, as many budgets beside each other as the terminal holds."""
    names = [show_margin(margin) for margin in compared.margins]
    room = output.width - max(map(len, ["table", *names])) - 4
    columns = _columns(compared, chosen, cell)
    # The percentages follow from the half-widths, so they are what a narrow terminal leaves out.
    if sum(map(_room, columns)) > room:
        columns = [[head, *(text.split()[0] for text in texts)] for head, *texts in columns]
    while columns:
        taken = 1
        while taken < len(columns) and sum(map(_room, columns[: taken + 1])) <= room:
            taken += 1
        grid = Grid(
            title=f"±{compared.confidence:.0%} half-width of a cell, before any budget is spent",
            title_justify="left",
        )
        grid.add_column("table")
        for head, *_ in columns[:taken]:
            grid.add_column(Text(head), justify="right", no_wrap=True)
        for cells in zip(names, *(texts for _, *texts in columns[:taken]), strict=True):
            grid.add_row(*map(Text, cells))
        output.print(grid)
        columns = columns[taken:]


def _columns(compared: Budgets, chosen: Privacy | None, cell: Fraction) -> list[list[str]]:
    """Return a column per budget: its heading, then the half-width and relative error of every table."""
    return [
        [
            _head(row.privacy, chosen),
            *(f"{_half_width(row, each)} {_relative(each.half_width, cell)}" for each in row.errors),
        ]
        for row in compared
    ]


def _room(column: Sequence[str]) -> int:
    return max(map(len, column)) + 3


def _print_costs(
    compared: Budgets, chosen: Privacy | None, cell: Fraction, shares: Mapping[Privacy, Fraction | None]
) -> None:
    """Print one row per budget: the largest half-width with a bar, its table, and the cost."""
    widths = [float(row.worst.half_width) for row in compared]
    columns = {
        "budget": [_head(row.privacy, chosen) for row in compared],
        "mechanism": [f"{row.plan.mechanism}{', shrunk' if row.modelled else ''}" for row in compared],
        "largest": [_half_width(row, row.worst) for row in compared],
        f"of {show_width(float(cell))}": [_relative(width, cell) for width in widths],
        "in table": [show_margin(row.worst.margin) for row in compared],
    }
    if shares:
        columns["cost"] = [_share(shares[row.privacy]) for row in compared]
    if _room_for_bars(columns) < _BAR_WIDTHS[0]:
        del columns["mechanism"]
    room = min(max(_room_for_bars(columns), _BAR_WIDTHS[0]), _BAR_WIDTHS[1])
    grid = Grid(
        title=f"Error against {symbol(compared.rows[0].privacy)}: the table with the largest half-width",
        title_justify="left",
    )
    for head in ("", *columns):
        grid.add_column(head, justify="left" if head in ("", "budget", "mechanism", "in table") else "right")
    for number, (row, *cells) in enumerate(zip(compared, *columns.values(), strict=True)):
        bar = length_bar(widths[number], max(widths), room) if widths[number] else ""
        grid.add_row(*map(Text, [bar, *cells]), style="bold" if row.privacy == chosen else "")
    output.print(grid)


def _room_for_bars(columns: Mapping[str, Sequence[str]]) -> int:
    return output.width - sum(_room([head, *cells]) for head, cells in columns.items()) - 4


def _answer(found: BudgetPlan, target: Target, shares: Mapping[Privacy, Fraction | None], left: str) -> str:
    letter, worst = symbol(found.privacy), found.worst
    table = f"The table {show_margin(worst.margin)}" if worst.margin else "The total"
    said = (
        f"{letter} = {show_amount(amount(found.privacy))} is the smallest {letter} for {target}. {table} "
        f"decides: its largest half-width is ±{show_width(worst.half_width)}"
        f"{', which the planning model expects' if found.modelled else ''}."
    )
    if not shares:
        return said
    share = shares[found.privacy]
    if share is None or share > 1:
        return f"{said} That is more than what is left, {left}."
    return f"{said} It costs {_share(share)} of what is left, {left}."


def _legend(compared: Budgets, cell: Fraction, left: str) -> list[str]:
    said = [
        f"Percentages of errors are of a cell of {show_width(float(cell))}. Every budget is planned anew."
    ]
    exact, modelled = [row for row in compared if not row.modelled], [row for row in compared if row.modelled]
    if exact:
        published = (
            ""
            if exact[0].plan.face.linear
            else " The published tables are more accurate where cells are small. Where cells are large, the "
            "half-widths that they state are estimates, and may be about a tenth larger."
        )
        said.append(
            f"The half-widths are exact for the unbiased estimates: they follow from the noise alone.{published}"
        )
    if modelled:
        said.append(
            f"* The planning model expects this of the published tables, which are shrunk, for about "
            f"{modelled[0].plan.records:,} records; it is not a guarantee. The unbiased estimates have larger errors."
        )
    if left:
        said.append(f"Cost: the share of what is left, {left}. The ledger was only read; nothing was spent.")
    return said


def _draw(compared: Budgets, target: Target | None, path: Path) -> None:
    # Imported here only, because importing the charts takes longer than most commands run.
    from tabulary.release.drawing import html, png, svg
    from tabulary.studies.budget_curves import budget_chart

    chart = budget_chart(compared, target=target)
    draw = {
        ".svg": lambda: svg(chart).encode(),
        ".png": lambda: png(chart),
        ".html": lambda: html(chart).encode(),
    }
    write_new(path, draw[path.suffix.lower()](), option="--picture")
    output.print(f"Picture: {path}", markup=False, soft_wrap=True)


def _shares(planned: PlanFile, promises: Iterable[Privacy]) -> tuple[dict[Privacy, Fraction | None], str]:
    """Return the part of what is left that each budget takes, and what is left; nothing without an account."""
    if planned.ledger is None or planned.account is None:
        return {}, ""
    # Loaded here: most plans name no ledger, and a help text needs none.
    from tabulary.ledger import Ledger

    with suppress(LedgerMissing), Ledger.open(planned.ledger, read_only=True) as book:
        account = book.account(planned.account)
        left = f"{account.balance().remaining} in account {account.name!r}"
        return {privacy: account.share_of_remaining(privacy) for privacy in promises}, left
    errors.print(
        f"There is no account {planned.account!r} in {planned.ledger} yet, so no budget is compared with what is left.",
        style="yellow",
        markup=False,
        soft_wrap=True,
    )
    return {}, ""


def _head(privacy: Privacy, chosen: Privacy | None) -> str:
    mark = "● " if privacy == chosen else ""
    return f"{mark}{symbol(privacy)} = {show_amount(amount(privacy))}"


def _half_width(row: BudgetPlan, error: ExpectedError) -> str:
    return f"±{show_width(error.half_width)}{'*' if row.modelled else ''}"


def _relative(width: float, cell: Fraction) -> str:
    percent = 100 * width / float(cell)
    return f"{percent:,.0f} %" if percent >= 100 else f"{percent:.2g} %"


def _share(share: Fraction | None) -> str:
    return "nothing is left" if share is None else f"{100 * float(share):.3g} %"
