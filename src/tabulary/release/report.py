"""The report: a release for people to read, as one self-contained page of HTML."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product

import numpy as np
from markupsafe import Markup, escape

from tabulary.planning import Plan
from tabulary.planning.accuracy import CellErrors
from tabulary.planning.comparison import compare_plans, request_of
from tabulary.planning.plan import CONSTRAINED
from tabulary.planning.words import listed_words, table_name
from tabulary.release.comparison_bars import comparison_svg
from tabulary.release.conclusions import conclusions
from tabulary.release.figure import Cell, axis_over, cells_of, whisker_glyph
from tabulary.release.formats import file_names
from tabulary.release.heat_map import MOST_PANELS, MOST_SIDE, fits_a_heat_map, heat_map_svg
from tabulary.release.loading import snippets
from tabulary.release.manifest import SCHEMA, Fact, Imprint
from tabulary.release.mosaic import mosaic_svg, reads_as_mosaic
from tabulary.release.noise_table import noise_rows
from tabulary.release.page_table import Header, PageRow, PageTable, cross_head, row_heads
from tabulary.release.pages import page_template
from tabulary.release.promise import exact_interactions, promise_of
from tabulary.release.relative_errors import (
    RelativeErrors,
    largest_relative_errors,
    median_relative_error,
    relative_errors,
    show_share,
)
from tabulary.release.svg import HATCH, STYLE, show_count
from tabulary.release.table import ReleasedTable
from tabulary.release.wording import (
    SHRUNK_HELD,
    afterwards_words,
    bias_words,
    coverage_words,
    mechanism_words,
    rounding_words,
)

MOST_CELLS = 400
"""The most cells of one table that a report shows; its CSV has them all."""

MOST_SHOWN = 6_000
"""The most cells that a report shows of all its tables; beyond, each table has an equal share of them."""

MOST_DRAWN = 8_000
"""The most cells in the pictures of a report; tables that come later have none."""

MOST_LARGEST, MOST_LARGEST_OF_ONE = 10, 3
"""The most cells that a report lists as those with the largest relative errors, of all tables and of one of many."""

MOST_TABLES = 60
"""The most tables that a report shows; the folder has them all."""

MOST_MEASURED = 200
"""The most measured parts that a report lists; the manifest has them all."""

MOST_COMPARED = (500, 500_000)
"""The most tables, and cells of them, for which a report compares all mechanisms."""

_FEWEST_CELLS = 60
_MOST_COLUMNS = 12
_COMFORTABLE_COLUMNS = 8
_GLYPH_WIDTH = 260.0
_SHORT = 16


@dataclass(frozen=True)
class ReportTable(PageTable[Cell]):
    """One table as the report shows it: a cross-table with `columns`, or one row per cell without them.

    Without columns, `glyphs` has a small picture for each row.
    """

    anchor: str
    name: str
    csv: str
    columns: int
    glyphs: tuple[Markup, ...]
    cells: int
    shown: int
    picture: Markup
    unpictured: str

    @property
    def has_impossible(self) -> bool:
        """Whether the legend of structural zeros is needed."""
        return any(cell.impossible for row in self.body for cell in row.cells)

    @property
    def has_dominated(self) -> bool:
        """Whether the legend of intervals that reach zero is needed."""
        return any(cell.noise_dominates for row in self.body for cell in row.cells)


@dataclass(frozen=True)
class AccuracyRow:
    """The expected errors of one table."""

    name: str
    anchor: str
    cells: int
    standard_error: str
    half_width: float
    published_error: str


@dataclass(frozen=True)
class RelativeRow:
    """The errors of one table relative to its counts."""

    name: str
    anchor: str
    found: RelativeErrors


@dataclass(frozen=True)
class ComparisonView:
    """The expected errors of all mechanisms as the report shows them; no picture where they were not compared."""

    picture: Markup
    reason: str
    refusals: tuple[tuple[str, str], ...] = ()


def report_html(
    plan: Plan,
    tables: Sequence[ReleasedTable],
    imprint: Imprint,
    reconstruction: Mapping[str, Fact] | None = None,
) -> str:
    """Return the report as a self-contained page: no script, no request, light and dark, ready to print.

    `reconstruction` holds the facts that the reconstruction stated about itself.
    """
    facts = reconstruction or {}
    views = _views(plan, tables)
    concluded = conclusions(plan, tables, most_limits=MOST_TABLES)
    largest_of_one = max(MOST_LARGEST_OF_ONE, math.ceil(MOST_LARGEST / len(tables)))
    measured = noise_rows(plan, MOST_MEASURED)
    beside = [
        RelativeRow(table_name(table.margin), _anchor(i), relative_errors(table))
        for i, table in enumerate(tables)
    ]
    page: str = page_template("report.html.j2").render(
        title=imprint.title or f"Noisy counts by {listed_words(_named(plan))}",
        imprint=imprint,
        plan=plan,
        schema=SCHEMA,
        promise=promise_of(plan),
        raised=_raised,
        measured=measured,
        measured_left_out=len(plan.measured) + len(exact_interactions(plan)) - len(measured),
        mechanism=mechanism_words(plan),
        afterwards=afterwards_words(plan),
        biased=bias_words(plan, facts),
        rounded=rounding_words(plan, facts),
        accuracy=_accuracy(plan, tables),
        beside=beside,
        largest=largest_relative_errors(tables, MOST_LARGEST, most_of_one=largest_of_one),
        largest_of_one=largest_of_one,
        without=sum(row.found.without for row in beside),
        median=median_relative_error(tables),
        inf=math.inf,
        concluded=concluded,
        limits=[(table_name(each.margin), _anchor(i), each) for i, each in enumerate(concluded.limits)],
        snippets=snippets(plan.workload.margins, linear=plan.reconstruct == "none"),
        compared=_comparison(plan),
        linear=plan.reconstruct == "none",
        shrunk=plan.reconstruct == "shrink",
        coverage=coverage_words(),
        held=SHRUNK_HELD,
        doubtful=(
            "Add such cells up before you draw a conclusion."
            if plan.reconstruct == "none"
            else "Do not rely on such a cell."
        ),
        # Whole draws have exact quantiles; others are nearly so, or simulated.
        sure="at least" if all(isinstance(table.errors, CellErrors) for table in tables) else "about",
        known="as planned" if plan.reconstruct == "shrink" else "as measured",
        non_negative=plan.reconstruct in (*CONSTRAINED, "shrink"),
        views=views,
        left_out=len(tables) - len(views),
        any_negative=any(bool((table.counts < 0).any()) for table in tables),
        style=Markup(STYLE),
        hatch=Markup(HATCH),
        show=show_count,
        up=_up,
        share=show_share,
        name=table_name,
        privacy=_unbroken(str(plan.privacy)),
        loss=_unbroken(str(plan.loss)),
    )
    return page


def _views(plan: Plan, tables: Sequence[ReleasedTable]) -> list[ReportTable]:
    """Return the tables that the page shows, with as many cells and pictures as fit."""
    names = file_names(plan.workload.margins)
    shown = tables[:MOST_TABLES]
    whole = sum(min(table.domain.size, MOST_CELLS) for table in shown)
    each = MOST_CELLS if whole <= MOST_SHOWN else max(MOST_SHOWN // len(shown), _FEWEST_CELLS)
    left = MOST_DRAWN
    views = []
    for i, table in enumerate(shown):
        view = _view(table, _anchor(i), names[table.margin][0], most_cells=each, most_drawn=left)
        left -= table.domain.size if view.picture else 0
        views.append(view)
    return views


def _anchor(position: int) -> str:
    return f"table-{position + 1}" if position < MOST_TABLES else ""


def _picture(table: ReleasedTable, name: str, most_drawn: int) -> tuple[str, str]:
    """Return the picture of a table: a mosaic where it is readable, otherwise a heat map; or why there is none."""
    if len(table.margin) < 2:
        return "", ""
    if table.domain.size > most_drawn:
        return "", "The page has room for this many pictures only."
    if reads_as_mosaic(table):
        return mosaic_svg(table, title=name, standalone=False), ""
    *others, across = table.margin
    # Rows can be many and panels cannot; ties go to the later attribute, as elsewhere.
    rows = max(reversed(others), key=lambda a: len(table.domain.levels_of(a)))
    turned = table.transpose([*(a for a in others if a != rows), rows, across])
    if fits_a_heat_map(turned):
        return heat_map_svg(turned, title=name, standalone=False), ""
    return "", (
        f"A picture shows up to {MOST_SIDE} by {MOST_SIDE} levels, for up to {MOST_PANELS} combinations of the levels "
        "of further attributes."
    )


def _view(table: ReleasedTable, anchor: str, csv: str, *, most_cells: int, most_drawn: int) -> ReportTable:
    # The name keeps the requested order: other parts of the page use the same name.
    name, across = table_name(table.margin), _column_attribute(table)
    if across:
        table = table.transpose([*(a for a in table.margin if a != across), across])
    stub = table.margin[:-1] if across else table.margin
    width = len(table.domain.levels_of(across)) if across else 1
    rows = list(islice(product(*map(table.domain.levels_of, stub)), max(most_cells // width, 1)))
    cells = list(islice(cells_of(table), len(rows) * width))
    axis = axis_over(table, 6, _GLYPH_WIDTH)
    picture, unpictured = _picture(table, name, most_drawn)
    columns = table.domain.levels_of(across) if across else ("Count",)
    names = [Header(name, "col", kind="number") for name in columns]
    return ReportTable(
        head=cross_head(stub or ("",), across, names if across else [*names, Header("95 % interval", "col")]),
        body=tuple(
            PageRow(_row_heads(rows, i), tuple(cells[i * width : (i + 1) * width])) for i in range(len(rows))
        ),
        anchor=anchor,
        name=name,
        csv=csv,
        columns=len(columns) if across else 0,
        glyphs=() if across else tuple(Markup(whisker_glyph(cell, axis)) for cell in cells),
        cells=table.domain.size,
        shown=len(cells),
        picture=Markup(picture),
        unpictured=unpictured,
    )


def _row_heads(labels: Sequence[tuple[str, ...]], row: int) -> tuple[Header, ...]:
    if not labels[row]:
        return (Header("everyone", "row"),)
    # A short label is not folded.
    return tuple(
        head._replace(kind="short") if len(head.label) <= _SHORT else head for head in row_heads(labels, row)
    )


def _column_attribute(table: ReleasedTable) -> str:
    """Return the attribute that goes across, or None where a table with one row per cell reads better."""
    if len(table.margin) < 2:
        return ""
    levels = {a: len(table.domain.levels_of(a)) for a in table.margin}
    across = table.margin[-1]
    if levels[across] > _COMFORTABLE_COLUMNS:
        # Ties go to the later attribute, which keeps the requested order of the others.
        across = min(reversed(table.margin), key=lambda a: levels[a])
    return across if levels[across] <= _MOST_COLUMNS else ""


def _accuracy(plan: Plan, tables: Sequence[ReleasedTable]) -> list[AccuracyRow]:
    return [
        AccuracyRow(
            name=table_name(expected.margin),
            anchor=_anchor(i),
            cells=expected.cells,
            standard_error=f"{expected.standard_error:,.2f}",
            half_width=expected.half_width,
            published_error=f"{_root_mean_square(table):,.2f}",
        )
        for i, (expected, table) in enumerate(zip(plan.expected_error(), tables, strict=True))
    ]


def _root_mean_square(table: ReleasedTable) -> float:
    """Return the standard error of a published table over its possible cells."""
    deviations = table.standard_errors
    possible = deviations > 0
    return float(np.sqrt(np.mean(deviations[possible] ** 2))) if possible.any() else 0.0


@lru_cache(maxsize=16)
def _comparison(plan: Plan) -> ComparisonView:
    """Return the expected errors of all mechanisms for a plan's tables, from the plan alone."""
    tables, cells = MOST_COMPARED
    if len(plan.workload) > tables or sum(map(plan.domain.cells, plan.workload)) > cells:
        return ComparisonView(
            Markup(""),
            "With this many tables, this page does not compare the mechanisms, because that would take "
            "long. The command `tabulary plan` can compare them.",
        )
    try:
        compared = compare_plans(request_of(plan), planned=plan, shrunk=False)
    except Exception:
        # The tables are already measured and paid for: a failed comparison with other mechanisms must not lose them.
        return ComparisonView(Markup(""), "The mechanisms could not be compared for this page.")
    return ComparisonView(
        picture=Markup(comparison_svg(compared, standalone=False)),
        reason=compared.reason,
        refusals=tuple((refusal.name, refusal.reason) for refusal in compared.refusals),
    )


def _named(plan: Plan) -> list[str]:
    return [a for a in plan.domain.attributes if any(a in margin for margin in plan.workload)]


def _up(width: float) -> str:
    """Return a limit, rounded upwards."""
    return show_count(width if float(width).is_integer() else math.ceil(10 * width) / 10)


def _raised(words: str) -> Markup:
    return Markup(escape(words).replace("e^ε", Markup("e<sup>ε</sup>")))


def _unbroken(text: str) -> str:
    return text.replace(" = ", "\u00a0=\u00a0")
