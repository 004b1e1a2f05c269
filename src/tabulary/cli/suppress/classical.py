"""`tabulary suppress classical`: cells left out by rules, as agencies do it. It promises nothing to people."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.text import Text

from tabulary.cli.console import output, print_promise, progress_bar
from tabulary.cli.options import assigned
from tabulary.cli.suppress.inputs import (
    NOTHING_DONE,
    By,
    CountColumn,
    DatasetName,
    File,
    Levels,
    NewFolder,
    Persons,
    PrivateColumn,
    TableInput,
    table_input,
)
from tabulary.cli.suppressed_tables import cells_only, new_folder, print_suppressed, say_written
from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument
from tabulary.suppress.pages.table_layout import LayoutEntry

if TYPE_CHECKING:
    from tabulary.suppress.classical_method.classical import Suppression
    from tabulary.suppress.classical_method.contributions import Contributions
    from tabulary.suppress.classical_method.rules import Rule

_STATUSES = {
    "u": "sensitive by the rule",
    "x": "left out to protect others",
    "s": "published",
    "z": "must be published",
}


class Cost(StrEnum):
    """What classical suppression keeps as small as possible."""

    cells = "cells"
    counts = "counts"


@dataclass(frozen=True)
class ClassicalRules:
    """The rules that were named, and the column of amounts where there is one."""

    threshold: int | None
    dominance: str | None
    p_percent: float | None
    value: str | None

    def __post_init__(self) -> None:
        options = {"--dominance": self.dominance, "--p-percent": self.p_percent}
        amounts = [name for name, given in options.items() if given is not None]
        if not amounts and self.threshold is None:
            raise InvalidArgument(
                f"name a rule: --threshold 5, --dominance 1,75 or --p-percent 10. {NOTHING_DONE}"
            )
        if amounts and self.value is None:
            raise InvalidArgument(
                f"{amounts[0]} compares single contributions. Name their column with --value, in a file with one row "
                f"per contributor. {NOTHING_DONE}"
            )

    def rules(self) -> list["Rule"]:
        """Return the rules."""
        from tabulary.suppress.classical_method.rules import Dominance, PPercent, Threshold

        made: list[Rule] = []
        if self.threshold is not None:
            made.append(Threshold(self.threshold))
        if self.dominance is not None:
            made.append(Dominance(*_pair(self.dominance)))
        if self.p_percent is not None:
            made.append(PPercent(self.p_percent))
        return made

    def words(self) -> str:
        """Return the rules for the public record."""
        said = {
            "counts up to {}": self.threshold,
            "dominance {}": self.dominance,
            "p % with p = {}": self.p_percent,
        }
        return "; ".join(text.format(given) for text, given in said.items() if given is not None)


def classical(
    context: typer.Context,
    file: File = None,
    dataset: DatasetName = None,
    by: By = None,
    levels: Levels = None,
    people: Annotated[
        str | None,
        typer.Option(help="The column with the public number of people in a cell, if there is one."),
    ] = None,
    count: CountColumn = "count",
    persons: Persons = False,
    private: PrivateColumn = None,
    value: Annotated[
        str | None, typer.Option(help="The column of amounts, in a file with one row per contributor.")
    ] = None,
    threshold: Annotated[int | None, typer.Option(help="Counts up to this one are sensitive.")] = None,
    dominance: Annotated[
        str | None,
        typer.Option(help="n,k: cells in which the n largest have more than k percent are sensitive."),
    ] = None,
    p_percent: Annotated[
        float | None,
        typer.Option(
            help="Cells whose largest contribution can be estimated to within p percent are sensitive."
        ),
    ] = None,
    cost: Annotated[
        Cost, typer.Option(help="Suppress the smallest number of cells, or the smallest sum of counts.")
    ] = Cost.cells,
    never: Annotated[
        list[str] | None,
        typer.Option(help="Cells that must be published (status z): eye=blue,hair=fair. Repeatable."),
    ] = None,
    path: NewFolder = None,
) -> None:
    """Leave out cells that a rule calls sensitive, and others that protect these. This promises nothing to people.

    Examples: tabulary suppress classical cells.csv --by eye --by hair --threshold 5 -o table,
    or: tabulary suppress classical firms.csv --by branch --by region --value turnover --dominance 1,75
    """
    # The solver takes a moment to load.
    from tabulary.suppress.classical_method.classical import classical as suppress
    from tabulary.suppress.pages.promise import classical_promise
    from tabulary.suppress.pages.report import title_of
    from tabulary.workflows.suppressing import write_suppressed

    source = table_input(
        context,
        file=file,
        dataset=dataset,
        by=by,
        levels=levels,
        people=people,
        count=count,
        persons=persons,
        private=private,
    )
    rules = ClassicalRules(threshold, dominance, p_percent, value)
    chosen = rules.rules()
    with new_folder(path) as staged, progress_bar() as progress:
        progress("reading", 0, 0)
        table, known_people, contributions = _read(source, value)
        made = suppress(
            table,
            chosen,
            contributions=contributions,
            people=known_people,
            cost=cost.value,
            never=_never(never or (), table.domain),
            progress=progress,
        )
        if staged is not None:
            facts = {
                "method": "classical suppression",
                "rule": rules.words(),
                "kept small": f"suppressed {cost}",
            }
            write_suppressed(staged, made.published, facts)
    print_suppressed(made.published, title_of(made.published))
    print_promise(classical_promise())
    _print_statuses(made)
    say_written(path)


def _read(
    source: TableInput, value: str | None
) -> "tuple[Table, NDArray[np.int64] | None, Contributions | None]":
    """Return the confidential table, its people where they are public, and the contributions to it."""
    from tabulary.workflows.suppressing import read_contributors

    if value is not None:
        if source.persons or source.people is not None:
            raise InvalidArgument(
                "--value is for a file with one row per contributor. Leave --persons, --private and --people out. "
                f"{NOTHING_DONE}"
            )
        domain, contributions = read_contributors(source.source(), value=value)
        return Table(domain, contributions.total), None, contributions
    groups = source.groups(private=not source.persons or source.private is not None)
    counted = groups.people if groups.counts is None else groups.counts
    assert counted is not None, "people or counts are always read"
    # Where all people are counted, their number is no public bound.
    people = None if groups.counts is None or groups.people is None else groups.people.sum(axis=-1)
    return Table(groups.domain, counted.sum(axis=-1)), people, None


def _never(texts: Sequence[str], domain: Domain) -> NDArray[np.bool_] | None:
    """Return the cells that must be published: those that match any of the assignments."""
    if not texts:
        return None
    wanted = np.zeros(domain.shape, dtype=np.bool_)
    for text in texts:
        levels = assigned("--never", text.split(","), "eye=blue,hair=fair")
        wanted[Table(domain, np.zeros(domain.shape)).index(levels)] = True
    return wanted


def _pair(text: str) -> tuple[int, float]:
    number, _, share = text.partition(",")
    try:
        return int(number), float(share)
    except ValueError:
        raise InvalidArgument(
            f"--dominance {text}: write n,k such as 1,75: the n largest contributions, and k percent. {NOTHING_DONE}"
        ) from None


def _print_statuses(made: "Suppression") -> None:
    output.print("\nFor the custodian only, and in no file:", style="bold")

    def shown(entry: LayoutEntry) -> Text:
        status = str(made.status[entry.index])
        return Text(status, style="bold" if status in "ux" else "dim")

    print_suppressed(
        cells_only(made.published), "; ".join(f"{mark} {words}" for mark, words in _STATUSES.items()), shown
    )
    best = (
        "there is no better choice"
        if made.optimal
        else f"at most {made.gap:.1%} of the cost could be avoided"
    )
    output.print(f"Chosen by the {made.method} method: {best}.", markup=False)
