"""`tabulary show`: one table of a release, with error bars or in another format."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output
from tabulary.cli.new_file import check_new, write_new
from tabulary.cli.printed_table import print_released
from tabulary.core.labels import Labels
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import InvalidArgument, UnknownMargin
from tabulary.release import Release
from tabulary.release.totals import can_have_totals, with_totals
from tabulary.release.writers import FORMATS

Form = StrEnum("Form", [(name, name) for name in ("table", *FORMATS)])  # type: ignore[misc]
"""How a table is shown: for people, or as a file in one of `release.writers.FORMATS`."""

_FOR_PEOPLE = Form("table")


def show(
    folder: Annotated[Path, typer.Argument(help="A release folder.")],
    margin: Annotated[
        list[str] | None,
        typer.Argument(help="The attributes of the table. Without attributes the command lists the tables."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="The confidence of the error bars.")] = 0.95,
    form: Annotated[
        Form, typer.Option("--format", help="`table` for people, or a file format.")
    ] = _FOR_PEOPLE,
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write, in that format; it must not exist."),
    ] = None,
    totals: Annotated[
        bool,
        typer.Option(
            "--totals",
            help="Add totals to the file, as the level _T. A table for people has them, and so has a workbook.",
        ),
    ] = False,
    codes: Annotated[bool, typer.Option("--codes", help="Show codes without labels.")] = False,
    language: Annotated[
        str | None,
        typer.Option(help="The language of the labels, such as fi; by default the release's first."),
    ] = None,
) -> None:
    """Print a table of a release with its totals and error bars, or write it in a format. Verifies the release first.

    Examples: tabulary show census-2026 sex age, or: tabulary show census-2026 "[sex age]" --codes, or:
    tabulary show census-2026 sex age --format sdmx-csv --totals -o sex-by-age.csv
    """
    _check_way(form, file, named=bool(margin))
    if codes and language is not None:
        raise InvalidArgument("--codes shows no labels, so --language has no meaning. Choose one of them.")
    release = Release.load(folder)
    words = Labels() if codes else release.labels if language is None else release.in_language(language)
    if not margin:
        for each in release.margins:
            output.print(show_margin(each), markup=False)
        return
    named = named_margin(margin, release)
    if form is _FOR_PEOPLE:
        totalled = with_totals(release, named, labels=words)
        print_released(totalled, confidence, Labels() if codes else totalled.labels)
        return
    writer = FORMATS[form.value]
    summed = totals or (writer.for_people and can_have_totals(release[named].domain))
    published = release.publication(named, language=language, totals=summed, confidence=confidence)
    data = writer.write(published)
    if file is not None:
        write_new(file, data)
        output.print(f"Written: {file}", markup=False, soft_wrap=True)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _check_way(form: Form, file: Path | None, *, named: bool) -> None:
    """Refuse a format without a table or a file, before anything is read."""
    if form is _FOR_PEOPLE:
        if file is not None:
            raise InvalidArgument(
                f"--output {file} needs --format, one of {', '.join(FORMATS)}. Nothing was written."
            )
        return
    if not named:
        raise InvalidArgument(
            f"--format {form.value} is for one table. Nothing was written. Name its attributes, such as "
            '"[sex age]"; "[]" is the total.'
        )
    if file is not None:
        check_new(file, "Nothing was written.")
    elif FORMATS[form.value].is_binary and sys.stdout.isatty():
        raise InvalidArgument(
            f"--format {form.value} is not text, so a terminal cannot show it. Nothing was written. Name a "
            "file with -o, or send the output to another program."
        )


def named_margin(words: list[str], release: Release) -> tuple[str, ...]:
    """Return the margin that the words name, as single attributes or as "[sex age]"."""
    text = " ".join(words)
    if not text.startswith("["):
        return tuple(words)
    margins = Workload.parse(text, release.plan.domain).margins
    if len(margins) != 1:
        raise UnknownMargin("name one table at a time.")
    return margins[0]
