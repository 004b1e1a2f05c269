"""`tabulary attack suppression`: what follows from published tables with suppressed cells."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.text import Text

from tabulary.cli.console import output, print_points, progress_bar
from tabulary.cli.new_file import check_new, write_new
from tabulary.cli.suppressed_tables import cells_only, print_suppressed, published
from tabulary.errors import InvalidArgument
from tabulary.suppress.pages.table_layout import TOTAL, LayoutEntry

if TYPE_CHECKING:
    from tabulary.attacks.suppression.findings import AttackFindings
    from tabulary.attacks.suppression.posteriors import Beliefs
    from tabulary.attacks.suppression.primary_sets import PrimarySets
    from tabulary.core.suppressed_table import SuppressedTable
    from tabulary.suppress.pages.files import PublicTable

_MOST_SETS = 10


def suppression(
    tables: Annotated[
        list[Path], typer.Argument(help="Published tables: table.json, a folder with one, or CSV files.")
    ],
    threshold: Annotated[
        int | None, typer.Option(help="The known rule: counts up to this one were sensitive.")
    ] = None,
    any_number: Annotated[
        bool,
        typer.Option("--any-number", help="Do not assume that as few cells as possible were suppressed."),
    ] = False,
    probability: Annotated[
        float | None,
        typer.Option(help="The prior probability of the private attribute, the same for everyone."),
    ] = None,
    parts: Annotated[
        Path | None,
        typer.Option(
            help='If tables divide an attribute differently: TOML such as [age] "0-17" = ["0-14", "15-17"].'
        ),
    ] = None,
    amounts: Annotated[
        bool, typer.Option("--amounts", help="The values of CSV files are amounts, not whole counts.")
    ] = False,
    total_label: Annotated[
        str, typer.Option(help="The word for a sum in CSV files, written in place of a level.")
    ] = TOTAL,
    path: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new HTML page with each cell's interval.")
    ] = None,
) -> None:
    """Find out what tables with suppressed cells disclose, together and by the way their cells were chosen.

    A CSV file has a column for each attribute and a column `count`: a number, or [c], c, x, * or nothing if it is
    suppressed. A row with `total` in place of a level is a sum. Columns `people` and `probability` are optional.

    Examples: tabulary attack suppression table.csv,
    or: tabulary attack suppression table.csv --threshold 5 -o attack.html,
    or: tabulary attack suppression census-2025 census-2026.csv --parts ages.toml
    """
    # The solver takes a moment to load.
    from tabulary.attacks.suppression.attack import attack
    from tabulary.suppress.classical_method.rules import Threshold
    from tabulary.suppress.pages.files import read_table

    if path is not None:
        check_new(path, "Nothing was attacked.")
    read = [read_table(file, total=total_label, amounts=amounts) for file in tables]
    names = _names(tables)
    known = {} if parts is None else _parts(parts)
    with progress_bar() as progress:
        found = attack(
            *(each.table for each in read),
            rule=None if threshold is None else Threshold(threshold),
            minimal=not any_number,
            parts=known or None,
            probability=_prior(read, probability),
            progress=progress,
        )
    _print(found, names)
    if path is not None:
        from tabulary.suppress.pages.attack_page import attack_html

        write_new(path, attack_html(found, names).encode())
        output.print(f"\nWrote {path}", markup=False, soft_wrap=True)


def _names(tables: Sequence[Path]) -> list[str]:
    """Return what the tables are called: by their files, and by number where there are several."""
    # The verdict counts the tables, so the names do too.
    stems = [(file.parent.name or file.stem) if file.name == "table.json" else file.stem for file in tables]
    return stems if len(stems) == 1 else [f"Table {number}, {stem}" for number, stem in enumerate(stems, 1)]


def _parts(path: Path) -> dict[str, dict[str, list[str]]]:
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError):
        raise InvalidArgument(
            f"--parts {path}: there is no such file, or it is not TOML. Nothing was attacked."
        ) from None
    for attribute, levels in content.items():
        if not isinstance(levels, dict) or not all(
            isinstance(of, list) and all(isinstance(part, str) for part in of) for of in levels.values()
        ):
            raise InvalidArgument(
                f'--parts {path}: {attribute!r} is not of the form [{attribute}] "0-17" = ["0-14", "15-17"]. Nothing '
                "was attacked."
            )
    return content


def _prior(read: Sequence["PublicTable"], given: float | None) -> Any:
    """Return the prior that the files state, unless one is given that overrides them."""
    if given is not None:
        return given
    stated = [each.probability if _has_all_sums(each.table) else None for each in read]
    return None if all(each is None for each in stated) else stated


def _has_all_sums(table: "SuppressedTable") -> bool:
    sums = [table.sums.get((attribute,)) for attribute in table.domain.attributes]
    return all(values is not None and not np.isnan(values).any() for values in sums)


def _print(found: "AttackFindings", names: Sequence[str]) -> None:
    for number, (table, name) in enumerate(zip(found.tables, names, strict=True)):
        shown = {
            (interval.place.attributes, interval.place.index): interval.tightest
            for interval in found.intervals
            if interval.place.table == number
        }

        def show(entry: LayoutEntry, shown: Mapping[Any, tuple[float, float]] = shown) -> Text:
            ends = shown.get((entry.margin, entry.index))
            if ends is None:
                return published(entry)
            exact = ends[0] == ends[1]
            return Text(f"= {_ends(ends)}" if exact else _ends(ends), style="bold red" if exact else "bold")

        between = ", with the interval of each suppressed number" if shown else ", nothing suppressed"
        print_suppressed(table, f"{name}{between}", show)
    print_points("Verdict", found.verdict)
    certain = list(_certain(found, names))
    if certain:
        print_points("Persons whose value is certain", certain)
    for sets in found.primary_sets:
        _print_sets(found, sets, names[sets.table])
    for beliefs in found.beliefs:
        _print_beliefs(found, beliefs, names[beliefs.table])


def _ends(ends: tuple[float, float]) -> str:
    from tabulary.suppress.pages.table_views import show_range

    return show_range(ends)


def _certain(found: "AttackFindings", names: Sequence[str]) -> Iterator[str]:
    because = {"published": "", "follows": ", which follows", "rule": ", which follows with the rule"}
    for people in found.certain:
        where = f"{names[people.place.table]}: " if len(names) > 1 else ""
        yield f"{where}{people.place}: {people.words}{because[people.reason]}."


def _print_sets(found: "AttackFindings", sets: "PrimarySets", name: str) -> None:
    from tabulary.attacks.suppression.findings import certain_words
    from tabulary.suppress.pages.table_views import show_percent

    table = found.tables[sets.table]
    lines = []
    for each in sets.sets[:_MOST_SETS]:
        likely = "" if each.probability is None else f", probability {show_percent(each.probability)}"
        ranges = ", ".join(
            f"{int(np.ravel_multi_index(cell, table.domain.shape)) + 1}: "
            f"{_ends((float(each.lower[cell]), float(each.upper[cell])))}"
            for cell in np.ndindex(table.domain.shape)
            if np.isnan(table.counts[cell])
        )
        sure = {} if table.people is None else each.certain(table.people)
        certain = "".join(
            f" Cell {int(np.ravel_multi_index(cell, table.domain.shape)) + 1}: "
            f"{certain_words(int(table.people[cell]), have)}."  # type: ignore[index]
            for cell, have in sure.items()
        )
        cells = each.named
        lines.append(f"{cells[:1].upper()}{cells[1:]}{likely}. Values then: {ranges}.{certain}")
    if len(sets.sets) > _MOST_SETS:
        lines.append(f"And {len(sets.sets) - _MOST_SETS:,} more.")
    if not lines:
        lines.append("None agrees with the table: it was made in another way.")
    print_points(f"{name}: if {sets.assumption}, the sensitive cells are", lines)


def _print_beliefs(found: "AttackFindings", beliefs: "Beliefs", name: str) -> None:
    table = found.tables[beliefs.table]

    def show(entry: LayoutEntry) -> Text:
        before, after = beliefs.prior[entry.index], beliefs.posterior[entry.index]
        return Text(f"{before:.2f} → {after:.2f}")

    print_suppressed(
        cells_only(table), f"{name}: the probability that a person has it, before and after", show
    )
    error = f"; error at most {beliefs.error:.2g}" if beliefs.error else ""
    output.print(
        f"The largest change is {float(np.nanmax(beliefs.deviation)):.0%} of the prior. By the sampler "
        f"{beliefs.sampler!r}{error}.",
        markup=False,
    )
