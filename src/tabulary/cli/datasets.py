"""`tabulary datasets`: the published tables in Tabulary, and generated people to try it with."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Grid

from tabulary import datasets as carried
from tabulary.cli.console import output, progress_bar
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument


def datasets(
    name: Annotated[str | None, typer.Argument(help="A dataset, or `people` to generate records.")] = None,
    rows: Annotated[int, typer.Option(help="How many people to generate.")] = 200_000,
    seed: Annotated[int, typer.Option(help="The seed: which people to generate.")] = 0,
    path: Annotated[Path | None, typer.Option("--output", "-o", help="The Parquet file to write.")] = None,
) -> None:
    """List the published tables in Tabulary, show one, or generate microdata.

    Examples: tabulary datasets, or: tabulary datasets rochdale,
    or: tabulary datasets people --rows 1000000 -o people.parquet
    """
    if name is None:
        _print_list()
    elif name == "people":
        if path is None:
            raise InvalidArgument(
                "generated people are written to a Parquet file: name it with -o people.parquet."
            )
        with progress_bar() as progress:
            written = carried.people(rows, seed, path=path, progress=progress)
        output.print(f"Wrote {rows:,} generated people to {written}", markup=False, soft_wrap=True)
    else:
        _print_one(name)


def _print_list() -> None:
    grid = Grid("name", "shape", "n", "title")
    for name in carried.names():
        table = carried.load(name)
        shape = " × ".join(map(str, table.shape))
        grid.add_row(name, shape, f"{table.total:,}", carried.describe(name).title)
    output.print(grid)
    output.print(
        "Generated microdata: tabulary datasets people --rows 1000000 -o people.parquet", style="dim"
    )


def _print_one(name: str) -> None:
    table, about = carried.load(name), carried.describe(name)
    output.print(about.title, style="bold", markup=False)
    output.print(f"Source: {about.source}", markup=False)
    for correction in about.corrections:
        output.print(f"Correction: {correction}", markup=False)
    output.print(_grid(table))


def _grid(table: Table) -> Grid:
    """Return the table in two dimensions: the last half of its attributes in columns, the others in rows."""
    cut = (len(table.shape) + 1) // 2
    down, across = table.domain.attributes[:cut], table.domain.attributes[cut:]
    grid = Grid(" ".join(down), *(_labels(table, across)))
    matrix = table.counts.reshape(table.domain.cells(down), -1)
    for label, row in zip(_labels(table, down), matrix, strict=True):
        grid.add_row(label, *(f"{count:,}" for count in row))
    return grid


def _labels(table: Table, attributes: tuple[str, ...]) -> list[str]:
    labels = [""]
    for attribute in attributes:
        levels = table.domain.levels_of(attribute)
        labels = [f"{label} {level}".strip() for label in labels for level in levels]
    return labels
