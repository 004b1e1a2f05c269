"""`tabulary compare`: a table of two releases, or two groups of one, number by number."""

import csv
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table as Grid
from rich.text import Text

from tabulary import infer
from tabulary.cli.console import output
from tabulary.cli.new_file import check_new, write_new
from tabulary.cli.options import named_levels
from tabulary.cli.show import named_margin
from tabulary.core.labels import Labels
from tabulary.errors import InvalidArgument
from tabulary.planning import show_width
from tabulary.reconstruct.coins import measurement_digest
from tabulary.release import Release
from tabulary.release.table import CONFIDENCE

_CLEAR = ("clearly more", "clearly less")
# A terminal can show so many rows and stay readable.
_MOST_ROWS = 60
_STATE = "Nothing was compared."


def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="A release folder.")],
    after: Annotated[
        Path, typer.Argument(metavar="B", help="Another release folder; the same one for two groups of it.")
    ],
    margin: Annotated[list[str], typer.Argument(help="The attributes of the table.")],
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Count these levels only, added up, such as score=Medium+High. May be given again."
        ),
    ] = None,
    first: Annotated[list[str] | None, typer.Option(help="Levels for A alone, such as sex=F.")] = None,
    second: Annotated[list[str] | None, typer.Option(help="Levels for B alone, such as sex=M.")] = None,
    percent: Annotated[bool, typer.Option("--percent", help="Compare percentages of all people.")] = False,
    per: Annotated[
        list[str] | None,
        typer.Option(help="Compare percentages within each level of this attribute. May be given again."),
    ] = None,
    ratio: Annotated[bool, typer.Option("--ratio", help="Compare by ratio, B per A.")] = False,
    population: Annotated[
        bool,
        typer.Option(
            "--population",
            help="Compare the populations that the records are samples of, of different people.",
        ),
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="Verdicts for each row by itself, not for all rows together.")
    ] = False,
    confidence: Annotated[float, typer.Option(help="The confidence of intervals and verdicts.")] = CONFIDENCE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The CSV file to write; it must not exist.")
    ] = None,
) -> None:
    """Compare a table of two releases, or two groups of one: what has changed from A to B, beyond the noise.

    Every number comes from the measurements of the releases with their exact noise, whatever tables were published.
    The confidence holds for each interval. The verdicts are for all rows together: with that confidence none of them
    calls equal numbers different. Verifies both releases first.

    Examples: tabulary compare census-2026 census-2027 sex age,
    or: tabulary compare census-2026 census-2027 sex age --where age=15-64+65+ --per sex,
    or: tabulary compare census-2026 census-2026 sex age --first sex=F --second sex=M --ratio
    """
    if as_json and file is not None:
        raise InvalidArgument(
            "--json prints and --output writes CSV. Nothing was compared. Leave one of them out."
        )
    if file is not None:
        check_new(file, _STATE)
    a, b = Release.load(before), Release.load(after)
    # Two faces of one release share all of their noise, whatever their folders say.
    same = measurement_digest(a.measurement) == measurement_digest(b.measurement)
    named = named_margin(margin, a)
    table = a[named]
    shared = named_levels("--where", where, table.domain, _STATE)
    of_a = shared | named_levels("--first", first, table.domain, _STATE)
    of_b = shared | named_levels("--second", second, b[named].domain, _STATE)
    if same and of_a == of_b:
        raise InvalidArgument(
            "A and B are the same release, or two faces of it, so nothing can have changed. Nothing was compared. Give "
            "another release, or two groups, such as --first sex=F --second sex=M."
        )
    found = infer.compare(
        table if same else b[named],
        None if same else table,
        where=of_b,
        other_where=of_a,
        per=per if per else [] if percent else None,
        scale="ratio" if ratio else "difference",
        confidence=confidence,
        target="population" if population else "records",
    )
    rows = [_row(found, number, each=each) for number in range(len(found.compared))]
    if as_json:
        facts = {
            "a": a.digest,
            "b": b.digest,
            "confidence": found.confidence,
            "target": found.target,
            "verdicts": "each row by itself" if each else "all rows together",
            "rows": rows,
        }
        typer.echo(json.dumps(facts, ensure_ascii=False, indent=2))
    elif file is not None:
        write_new(file, _csv(rows))
        output.print(f"Written: {file}", markup=False, soft_wrap=True)
    else:
        names = f"A: {_group(before.name, of_a, of_b)}", f"B: {_group(after.name, of_b, of_a)}"
        common = {attribute: levels for attribute, levels in of_a.items() if of_b.get(attribute) == levels}
        _Sides(names, b.labels, common, percent or bool(per), each).print(found, rows)


@dataclass(frozen=True)
class _Sides:
    """The names of both sides, the levels that both count alone, and how their numbers are shown."""

    names: tuple[str, str]
    labels: Labels
    common: dict[str, list[str]]
    percent: bool
    each: bool

    def print(self, found: infer.ComparedTable, rows: list[dict[str, Any]]) -> None:
        """Print the rows and how to read them."""
        attributes = found.domain.attributes
        grid = Grid(title=Text(self._title(found)), title_justify="left")
        for attribute in attributes:
            grid.add_column(Text(self.labels.name(attribute)))
        change = "B per A" if found.scale == "ratio" else "difference"
        for head in (*self.names, change, f"{found.confidence:.0%} interval"):
            grid.add_column(Text(head), justify="right")
        grid.add_column("verdict")
        for row in rows[:_MOST_ROWS]:
            verdict = row["verdict"]
            grid.add_row(
                *(Text(self.labels.level(a, row[a])) for a in attributes),
                *map(Text, self._numbers(row, found.scale)),
                Text(verdict or "–", style="bold" if verdict in _CLEAR else ""),
            )
        output.print(grid)
        if len(rows) > _MOST_ROWS:
            output.print(f"… and {len(rows) - _MOST_ROWS:,} more rows: -o FILE writes all of them as CSV.")
        for sentence in self._sentences(found):
            output.print(sentence, markup=False, style="dim")

    def _title(self, found: infer.ComparedTable) -> str:
        whose = "in these records" if found.target == "records" else "in the populations"
        counted = ", ".join(filter(None, [" by ".join(found.domain.attributes), _joined(self.common)]))
        return f"{counted or 'total'}, from A to B, {whose}"

    def _numbers(self, row: dict[str, Any], scale: str) -> list[str]:
        if row["a"] is None:
            return ["–"] * 4
        a, b = (self._shown(row[side]) for side in ("a", "b"))
        show = _times if scale == "ratio" else self._signed
        lower, upper = (show(row[end]) if row[end] is not None else "∞" for end in ("lower", "upper"))
        change = show(row[scale]) if row[scale] is not None else "∞"
        return [a, b, change, f"{lower} to {upper}"]

    def _shown(self, value: float) -> str:
        return f"{100 * value:.1f} %" if self.percent else show_width(round(value, 1))

    def _signed(self, value: float) -> str:
        if self.percent:
            return f"{100 * value:+.1f}"
        return f"{'+' if value > 0 else ''}{show_width(round(value, 1))}"

    def _sentences(self, found: infer.ComparedTable) -> list[str]:
        sure = f"{found.confidence:.0%}"
        verdicts = (
            f"The verdict is right with {sure} confidence."
            if len(found.compared) == 1
            else f"Each verdict is right by itself with {sure} confidence; of many rows, some are wrong."
            if self.each
            else f"The verdicts hold together: with {sure} confidence none of them calls equal numbers different. "
            "Each interval is right by itself with that confidence."
        )
        numbers = (
            "The numbers are unbiased estimates from the measurements and may differ from published counts."
        )
        in_points = self.percent and found.scale == "difference"
        points = " Differences of percentages are in percentage points." if in_points else ""
        unclear = "“Not clear” does not mean equal: the noise may hide a change."
        return [verdicts, numbers + points, unclear]


def _row(found: infer.ComparedTable, number: int, *, each: bool) -> dict[str, Any]:
    """Return one comparison as plain data; a number that does not exist or is infinite is None."""
    codes = np.unravel_index(number, found.domain.shape) if found.domain.shape else ()
    labels = {a: found.domain.levels_of(a)[i] for a, i in zip(found.domain.attributes, codes, strict=True)}
    one = found.compared[number]
    if one is None:
        values: dict[str, float | None] = dict.fromkeys(
            ("a", "b", found.scale, "lower", "upper", "p_value", "adjusted_p_value")
        )
        return {**labels, **values, "verdict": None}
    values = {
        "a": one.second.estimate,
        "b": one.first.estimate,
        found.scale: one.estimate,
        "lower": one.interval.lower,
        "upper": one.interval.upper,
        "p_value": one.p_value,
        "adjusted_p_value": found.adjusted_p_values[number],
    }
    finite = {
        name: value if value is not None and math.isfinite(value) else None for name, value in values.items()
    }
    return {**labels, **finite, "verdict": one.verdict if each else found.verdicts[number]}


def _csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _times(value: float) -> str:
    return f"× {value:.3g}"


def _group(name: str, levels: dict[str, list[str]], others: dict[str, list[str]]) -> str:
    """Return the name of a side: its folder, or the levels that it alone has."""
    return _joined({a: chosen for a, chosen in levels.items() if others.get(a) != chosen}) or name


def _joined(levels: dict[str, list[str]]) -> str:
    """Return levels as a heading.

    >>> _joined({"sex": ["F"], "score": ["Medium", "High"]})
    'sex F, score Medium+High'
    """
    return ", ".join(f"{attribute} {'+'.join(chosen)}" for attribute, chosen in levels.items())
