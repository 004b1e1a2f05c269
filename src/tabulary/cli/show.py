"""`tabulary show`: one table of a release, with its error bars."""

import csv
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output, print_released
from tabulary.core.table import long_columns
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import UnknownMargin
from tabulary.release import Release


class Form(StrEnum):
    """How a table is printed."""

    table = "table"
    csv = "csv"


def show(
    folder: Annotated[Path, typer.Argument(help="A release folder.")],
    margin: Annotated[
        list[str] | None, typer.Argument(help="The attributes of the table; none lists the tables.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="The confidence of the error bars.")] = 0.95,
    form: Annotated[Form, typer.Option("--format", help="For people, or for a program.")] = Form.table,
) -> None:
    """Print a table of a release with its error bars. The release is verified first.

    Examples: tabulary show census-2026 sex age, or: tabulary show census-2026 "[sex age]"
    """
    release = Release.load(folder)
    if not margin:
        for each in release.margins:
            output.print(show_margin(each), markup=False)
        return
    table = release[named_margin(margin, release)]
    if form is Form.csv:
        lower, upper = table.interval(confidence)
        level = f"{100 * confidence:g}"
        values = {"count": table.counts, "standard_error": table.standard_errors}
        columns = long_columns(table.domain, {**values, f"lower_{level}": lower, f"upper_{level}": upper})
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    else:
        print_released(table, confidence)


def named_margin(words: list[str], release: Release) -> tuple[str, ...]:
    """Return the margin that is named by its attributes, or as "[sex age]"."""
    text = " ".join(words)
    if not text.startswith("["):
        return tuple(words)
    margins = Workload.parse(text, release.plan.domain).margins
    if len(margins) != 1:
        raise UnknownMargin("name one table at a time.")
    return margins[0]
