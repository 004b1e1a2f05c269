"""`tabulary suppress --classical`: cells left out by a rule, as agencies do it. It promises nothing to people."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from tabulary.cli.console import output, print_promise, progress_bar
from tabulary.cli.options import assigned
from tabulary.cli.suppress_input import Asked
from tabulary.cli.suppressed import cells_only, new_folder, print_suppressed, say_written
from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument
from tabulary.suppress.pages.grid import Entry

if TYPE_CHECKING:
    from tabulary.suppress.classical_method.classical import Suppression
    from tabulary.suppress.classical_method.contributions import Contributions
    from tabulary.suppress.classical_method.rules import Rule

_STATE = "Nothing was read, nothing was released."
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
                f"--classical needs a rule: --threshold 5, --dominance 1,75 or --p-percent 10. {_STATE}"
            )
        if amounts and self.value is None:
            raise InvalidArgument(
                f"{amounts[0]} looks at single contributions: name their column with --value, in a file with one row "
                f"for each contributor. {_STATE}"
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


def suppress_classically(
    asked: Asked, rules: ClassicalRules, *, cost: Cost, never: Sequence[str], path: Path | None
) -> None:
    """Print and write a table with cells left out by rules; the statuses of its cells are printed only."""
    from tabulary.suppress.classical_method.classical import classical
    from tabulary.suppress.pages.promise import classical_promise
    from tabulary.suppress.pages.report import title_of
    from tabulary.workflows.suppressing import write_suppressed

    chosen = rules.rules()
    with new_folder(path) as staged, progress_bar() as progress:
        progress("reading", 0, 0)
        table, people, contributions = _read(asked, rules.value)
        made = classical(
            table,
            chosen,
            contributions=contributions,
            people=people,
            cost=cost.value,
            never=_never(never, table.domain),
            progress=progress,
        )
        if staged is not None:
            facts = {
                "method": "classical suppression",
                "rule": rules.words(),
                "kept small": f"suppressed {cost}",
            }
            write_suppressed(staged, made.published, facts)
    promised = classical_promise()
    print_suppressed(made.published, title_of(made.published))
    print_promise(promised)
    _print_statuses(made)
    say_written(path)


def _read(asked: Asked, value: str | None) -> "tuple[Table, NDArray[np.int64] | None, Contributions | None]":
    """Return the confidential table, its people where they are public, and who contributes to it."""
    from tabulary.workflows.suppressing import read_cells, read_contributors

    if value is not None:
        if asked.persons or asked.private is not None or asked.names_people:
            raise InvalidArgument(
                "--value is for a file with one row for each contributor: leave --persons, --private and --people "
                f"out. {_STATE}"
            )
        domain, contributions = read_contributors(asked.source(), value=value)
        return Table(domain, contributions.total), None, contributions
    if asked.dataset is None and not asked.persons:
        people_column = asked.people if asked.names_people else None
        groups = read_cells(asked.source(), people=people_column, count=asked.count)
    else:
        groups = asked.groups(
            private=asked.dataset is not None or asked.private is not None, probability=None
        )
    counted = groups.people if groups.counts is None else groups.counts
    assert counted is not None, "people or counts are always read"
    # Where the counts are those of all people, their number is no public bound.
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
            f"--dominance {text}: write n,k, such as 1,75: the n largest, and k percent. {_STATE}"
        ) from None


def _print_statuses(made: "Suppression") -> None:
    output.print("\nFor the custodian only, and in no file:", style="bold")

    def shown(entry: Entry) -> Text:
        status = str(made.status[entry.index])
        return Text(status, style="bold" if status in "ux" else "dim")

    print_suppressed(
        cells_only(made.published), "; ".join(f"{mark} {words}" for mark, words in _STATUSES.items()), shown
    )
    best = (
        "there is no better choice"
        if made.optimal
        else f"no more than {made.gap:.1%} of what is left out could be avoided"
    )
    output.print(f"Chosen by the {made.method} method: {best}.", markup=False)
