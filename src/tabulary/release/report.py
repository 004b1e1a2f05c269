"""The report: a release for people to read, as one page of HTML that needs nothing else."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import groupby, islice, product

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from tabulary.core.basis import coefficients
from tabulary.core.domain import Margin
from tabulary.core.exact import show_fraction
from tabulary.noise import IntegerNoise
from tabulary.planning import Plan
from tabulary.release.figure import STYLE, Axis, Cell, cells_of, show_count, whisker_glyph, whisker_svg
from tabulary.release.formats import file_names
from tabulary.release.manifest import SCHEMA, Imprint
from tabulary.release.promise import promise_of
from tabulary.release.table import ReleasedTable

MOST_CELLS = 400
"""The most cells of one table that a report shows; its CSV has them all."""

MOST_TABLES = 60
"""The most tables that a report shows; the folder has them all."""

_MOST_PICTURED = 60
_MOST_COLUMNS = 12
_COMFORTABLE_COLUMNS = 8
_GLYPH_WIDTH = 260.0


@dataclass(frozen=True)
class Row:
    """One line of a shown table: the labels that begin on it, with the lines they span, and its cells."""

    labels: tuple[tuple[str, int], ...]
    cells: tuple[Cell, ...]
    glyph: Markup


@dataclass(frozen=True)
class TableView:
    """One table as the report shows it: a cross-table, or one line a cell where `columns` is empty."""

    anchor: str
    name: str
    csv: str
    stub: Margin
    across: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    cells: int
    shown: int
    picture: Markup

    @property
    def has_impossible(self) -> bool:
        """Whether the legend of structural zeros is needed."""
        return any(cell.impossible for row in self.rows for cell in row.cells)

    @property
    def has_dominated(self) -> bool:
        """Whether the legend of intervals that reach zero is needed."""
        return any(cell.noise_dominates for row in self.rows for cell in row.cells)


@dataclass(frozen=True)
class AccuracyRow:
    """What to expect of one table, and how many of its counts the noise could explain."""

    name: str
    anchor: str
    cells: int
    standard_error: str
    half_width: float
    dominated: int


@dataclass(frozen=True)
class NoiseRow:
    """One measured table and the law of its noise."""

    name: str
    cells: int
    law: str
    formula: Markup
    standard_deviation: str


def report_html(plan: Plan, tables: Sequence[ReleasedTable], imprint: Imprint) -> str:
    """Return the report as a self-contained page: no script, no request, light and dark, ready to print."""
    names = file_names(plan.workload.margins)
    views = [
        _view(table, f"table-{i}", names[table.margin][0]) for i, table in enumerate(tables[:MOST_TABLES], 1)
    ]
    page: str = _template().render(
        title=imprint.title or f"Noisy counts by {_listed(_named(plan))}",
        imprint=imprint,
        plan=plan,
        schema=SCHEMA,
        promise=promise_of(plan),
        raised=_raised,
        measured=[_noise_row(plan, m.margin, m.noise) for m in plan.measured],
        mechanism=_mechanism(plan),
        afterwards=_afterwards(plan),
        accuracy=_accuracy(plan, tables),
        views=views,
        left_out=len(tables) - len(views),
        any_negative=any(bool((table.counts < 0).any()) for table in tables),
        style=Markup(STYLE),
        show=show_count,
        privacy=_unbroken(str(plan.privacy)),
        loss=_unbroken(str(plan.loss)),
    )
    return page


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("tabulary.release"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html.j2")


def table_name(margin: Margin) -> str:
    """Return a margin as a reader would say it.

    >>> table_name(("sex", "age")), table_name(())
    ('sex by age', 'total')
    """
    return " by ".join(margin) or "total"


def _view(table: ReleasedTable, anchor: str, csv: str) -> TableView:
    across = _column_attribute(table)
    if across:
        table = table.transpose([*(a for a in table.margin if a != across), across])
    stub = table.margin[:-1] if across else table.margin
    width = len(table.domain.levels_of(across)) if across else 1
    rows = list(islice(product(*map(table.domain.levels_of, stub)), max(MOST_CELLS // width, 1)))
    cells = list(islice(cells_of(table), len(rows) * width))
    axis = Axis.over(table, 6, _GLYPH_WIDTH)
    picture = (
        Markup(whisker_svg(table, standalone=False))
        if across and len(stub) == 1 and table.domain.size <= _MOST_PICTURED
        else Markup("")
    )
    return TableView(
        anchor=anchor,
        name=table_name(table.margin),
        csv=csv,
        stub=stub,
        across=across,
        columns=table.domain.levels_of(across) if across else (),
        rows=tuple(
            Row(
                labels=_spans(rows, i),
                cells=tuple(cells[i * width : (i + 1) * width]),
                glyph=Markup("") if across else Markup(whisker_glyph(cells[i], axis)),
            )
            for i in range(len(rows))
        ),
        cells=table.domain.size,
        shown=len(cells),
        picture=picture,
    )


def _column_attribute(table: ReleasedTable) -> str:
    """Return the attribute that goes across, or nothing where the table is better read downward."""
    if len(table.margin) < 2:
        return ""
    levels = {a: len(table.domain.levels_of(a)) for a in table.margin}
    across = table.margin[-1]
    if levels[across] > _COMFORTABLE_COLUMNS:
        # Ties go to the later attribute, which leaves the order of the others as it was asked for.
        across = min(reversed(table.margin), key=lambda a: levels[a])
    return across if levels[across] <= _MOST_COLUMNS else ""


def _spans(rows: Sequence[tuple[str, ...]], index: int) -> tuple[tuple[str, int], ...]:
    """Return the labels that begin on a line, each with the number of shown lines that it heads."""
    spans: list[tuple[str, int]] = []
    for depth, label in enumerate(rows[index]):
        head = rows[index][: depth + 1]
        if index and rows[index - 1][: depth + 1] == head:
            continue
        same = next(groupby(row[: depth + 1] for row in rows[index:]))[1]
        spans.append((label, sum(1 for _ in same)))
    return tuple(spans)


def _accuracy(plan: Plan, tables: Sequence[ReleasedTable]) -> list[AccuracyRow]:
    rows = []
    for i, (expected, table) in enumerate(zip(plan.expected_error(), tables, strict=True), 1):
        widths = table.half_widths()
        dominated = (widths > 0) & (abs(table.counts) <= widths)
        rows.append(
            AccuracyRow(
                name=table_name(expected.margin),
                anchor=f"table-{i}" if i <= MOST_TABLES else "",
                cells=expected.cells,
                standard_error=f"{expected.standard_error:,.2f}",
                half_width=expected.half_width,
                dominated=int(dominated.sum()),
            )
        )
    return rows


def _noise_row(plan: Plan, margin: Margin, noise: IntegerNoise) -> NoiseRow:
    described = noise.describe()
    law, formula = described["family"].replace("-", " "), Markup("")
    if described["family"] == "discrete-laplace":
        law = f"discrete Laplace, scale {_short(described['scale'])}"
        formula = Markup("P(k) ∝ e<sup>−|k| / scale</sup>")
    elif described["family"] == "discrete-gaussian":
        law = f"discrete Gaussian, σ² = {_short(described['variance_parameter'])}"
        formula = Markup("P(k) ∝ e<sup>−k² / (2σ²)</sup>")
    elif described["family"] == "rounded-gaussian":
        law = f"rounded Gaussian, σ² = {_short(described['variance_parameter'])}"
        formula = Markup("k = round(x), density ∝ e<sup>−x² / (2σ²)</sup>")
    if plan.query == "counts":
        numbers = plan.domain.cells(margin) - int(plan.domain.impossible(margin).sum())
    else:
        numbers = coefficients(plan.measured_domain.shape_of(margin))
    return NoiseRow(table_name(margin), numbers, law, formula, f"{math.sqrt(noise.variance):,.2f}")


def _mechanism(plan: Plan) -> str:
    match plan.mechanism:
        case "cells":
            return (
                "Every possible cell of one detailed table was measured once, and the published tables are "
                "sums of these noisy cells. They therefore agree with each other exactly, and a count that "
                "sums many cells carries the noise of all of them."
            )
        case "margins":
            return (
                "Every published table was measured by itself, with its own share of the budget. Tables that "
                "share an attribute therefore differ a little where they should be equal; both are right "
                "within their errors."
            )
        case "fourier":
            return (
                "Measured were the Fourier coefficients that the published tables are made of, each once: the "
                "total, and how the counts lean between the levels of every attribute and combination of "
                "attributes, written as bits. Every table is computed from them, so all of them agree."
            )
        case "efron-stein":
            return (
                "Measured were the contrasts that the published tables are made of, each once: the total, and "
                "how the counts differ between the levels of every attribute and combination of attributes. "
                "Every table is computed from them, so all of them agree."
            )
    return f"The tables were measured by the mechanism “{plan.mechanism}”."


def _afterwards(plan: Plan) -> str:
    if plan.reconstruct == plan.rounding == "none":
        return (
            "Nothing was rounded, clipped or adjusted afterwards: each count is the true count plus noise "
            "whose mean is zero, so sums and averages of many counts are not biased."
        )
    if plan.reconstruct == "shift":
        return (
            "Afterwards the total was raised by a constant, so that hardly ever a cell is negative. Every cell is "
            "too large by the same amount on average; the stated errors include that."
        )
    what = {
        "least-squares": "the non-negative table nearest to what was measured, in units of the noise",
        "lp": "a non-negative table whose largest deviation from what was measured is as small as can be",
    }[plan.reconstruct]
    whole = {"none": "", "nearest": ", each cell rounded to the nearest whole number"}.get(
        plan.rounding, ", rounded at random to whole numbers that keep the sums"
    )
    return (
        f"Afterwards one full table was found: {what}{whole}. The published tables are its margins, so they are "
        "non-negative and agree with each other. That spends no privacy, but it biases: small counts come out "
        "larger and large ones smaller. The stated errors are simulated from this release alone, by measuring "
        "and reconstructing it again many times, and include that bias; the accuracy table below is what was "
        "expected of the plain measurements."
    )


def _named(plan: Plan) -> list[str]:
    return [a for a in plan.domain.attributes if any(a in margin for margin in plan.workload)]


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return names[0] if names else "nothing: the total"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _raised(words: str) -> Markup:
    return Markup(escape(words).replace("e^ε", Markup("e<sup>ε</sup>")))


def _unbroken(text: str) -> str:
    return text.replace(" = ", "\u00a0=\u00a0")


def _short(exact: str) -> str:
    value = Fraction(exact)
    text = show_fraction(value)
    return text if len(text) <= 12 else f"≈ {float(value):.6g}"
