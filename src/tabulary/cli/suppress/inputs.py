"""What the commands of `tabulary suppress` read: their shared options, cells or persons of a file, and the prior."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tabulary.cli.options import assigned, given_options, option_name
from tabulary.errors import InvalidArgument

if TYPE_CHECKING:
    from tabulary.table_samplers.people import People
    from tabulary.workflows.suppressing import Groups, TableFile

NOTHING_DONE = "Nothing was read, nothing was released."
# The options that describe a file, which a published dataset does not have.
_OF_A_FILE = {"file", "by", "levels", "people", "count", "persons", "private", "value", "probability"}

File = Annotated[
    Path | None,
    typer.Argument(help="A CSV or Parquet file: one row per cell, or one row per person with --persons."),
]
DatasetName = Annotated[
    str | None, typer.Option("--dataset", help="A published table instead of a file: hair-eye-gene.")
]
By = Annotated[
    list[str] | None, typer.Option(help="An attribute of the table: a column of the file. Repeatable.")
]
Levels = Annotated[
    list[str] | None,
    typer.Option(help="The levels of an attribute in their order: size=small,medium,large. Repeatable."),
]
PeopleColumn = Annotated[
    str, typer.Option("--people", help="The column with the number of people in a cell.")
]
CountColumn = Annotated[
    str, typer.Option("--count", help="The column with the number of them who have the private attribute.")
]
Persons = Annotated[bool, typer.Option("--persons", help="The file has one row per person.")]
PrivateColumn = Annotated[
    str | None,
    typer.Option(
        "--private", help="With --persons: the column of the private attribute, 0, 1, true or false."
    ),
]
Probability = Annotated[
    str | None,
    typer.Option(help="The prior probability of the private attribute: a number, or a column of the file."),
]
Past = Annotated[
    list[Path] | None,
    typer.Option(help="A past public table, CSV or folder, from which the prior is fitted. Repeatable."),
]
Epsilon = Annotated[
    str, typer.Option(help="ε: by what share of itself a person's probability may change at most.")
]
Delta = Annotated[str, typer.Option(help="δ: the probability that it changes by more.")]
NewFolder = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="A new folder for the table, the record of its making and a report."),
]


@dataclass(frozen=True, kw_only=True)
class TableInput:
    """A file and the meaning of its columns, or a published dataset."""

    file: Path | None
    dataset: str | None
    by: tuple[str, ...]
    levels: Mapping[str, Sequence[str]]
    people: str | None
    count: str
    persons: bool
    private: str | None

    def __post_init__(self) -> None:
        if self.file is None and self.dataset is None:
            raise InvalidArgument(
                f"name a file, or a published table with --dataset hair-eye-gene. {NOTHING_DONE}"
            )
        if self.file is not None and not self.by:
            raise InvalidArgument(f"name the attributes of the table, each with --by. {NOTHING_DONE}")
        if self.private is not None and not self.persons:
            raise InvalidArgument(
                f"--private needs --persons. In a file with one row per cell use --count. {NOTHING_DONE}"
            )

    def source(self) -> "TableFile":
        """Return the file and its attributes."""
        from tabulary.workflows.suppressing import TableFile

        assert self.file is not None, "a dataset has no source, and --value is refused beside one"
        return TableFile(self.file, self.by, self.levels)

    def groups(self, *, private: bool, probability: str | None = None) -> "Groups":
        """Return the people in groups. The private values are read only if `private`."""
        from tabulary import datasets
        from tabulary.workflows.suppressing import published_groups, read_cells, read_persons

        if self.dataset is not None:
            return published_groups(datasets.describe(self.dataset))
        if self.persons:
            column = self.private if private else None
            return read_persons(self.source(), private=column, probability=probability)
        count = self.count if private else None
        return read_cells(self.source(), people=self.people, count=count, probability=probability)


def table_input(
    context: typer.Context,
    *,
    file: Path | None,
    dataset: str | None,
    by: Sequence[str] | None,
    levels: Sequence[str] | None,
    people: str | None,
    persons: bool,
    count: str = "count",
    private: str | None = None,
) -> TableInput:
    """Return what the shared options of a command name."""
    needless = sorted(given_options(context) & _OF_A_FILE) if dataset is not None else []
    if needless:
        raise InvalidArgument(
            f"--dataset has its own people, counts and prior. Leave {option_name(needless[0], {'file': 'the file'})} "
            f"out. {NOTHING_DONE}"
        )
    declared = assigned("--levels", levels or (), "size=small,medium,large")
    return TableInput(
        file=file,
        dataset=dataset,
        by=tuple(by or ()),
        levels={name: labels.split(",") for name, labels in declared.items()},
        people=people,
        count=count,
        persons=persons,
        private=private,
    )


@dataclass(frozen=True)
class PriorInput:
    """The source of the prior: a number, a column, or past public tables."""

    text: str | None
    past: Sequence[Path] | None

    def __post_init__(self) -> None:
        if self.text is not None and self.past:
            raise InvalidArgument(
                f"--probability gives the prior and --past fits it: use one of them, not both. {NOTHING_DONE}"
            )

    @property
    def column(self) -> str | None:
        """The column of the prior, if it is one."""
        return self.text if self.text is not None and self._number is None else None

    def people(self, groups: "Groups") -> "People":
        """Return the people of the groups with their prior."""
        from tabulary.table_samplers.people import People
        from tabulary.workflows.suppressing import fitted_prior

        assert groups.people is not None, "groups are read with their people"
        if self.past:
            return People.of(groups.domain, groups.people, fitted_prior(self.past, groups.domain)[..., None])
        if self._number is not None:
            return People.of(groups.domain, groups.people, self._number)
        if groups.probability is None:
            raise InvalidArgument(
                "the prior is missing: the probability that a person has the private attribute. Give it with "
                "--probability 0.4, name its column with --probability risk, or fit it from past tables with --past. "
                "Nothing was released."
            )
        return People(groups.domain, groups.people, groups.probability)

    @property
    def _number(self) -> float | None:
        try:
            number = float(self.text or "")
        except ValueError:
            return None
        return number if isfinite(number) else None
