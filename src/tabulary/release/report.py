"""The report: a release for people to read, as one page of HTML that needs nothing else."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice, product

import numpy as np
from markupsafe import Markup, escape

from tabulary.core.domain import Margin
from tabulary.core.exact import show_fraction
from tabulary.noise import IntegerNoise
from tabulary.planning import MeasuredMargin, Plan
from tabulary.planning.comparison import compare_plans, measured_values, request_of
from tabulary.planning.plan import CONSTRAINED
from tabulary.release.figure import (
    STYLE,
    Axis,
    Cell,
    cells_of,
    comparison_svg,
    show_count,
    whisker_glyph,
    whisker_svg,
)
from tabulary.release.formats import file_names
from tabulary.release.manifest import Fact, Imprint
from tabulary.release.pages import label_spans, page_template
from tabulary.release.promise import promise_of
from tabulary.release.table import ReleasedTable

MOST_CELLS = 400
"""The most cells of one table that a report shows; its CSV has them all."""

MOST_TABLES = 60
"""The most tables that a report shows; the folder has them all."""

MOST_MEASURED = 200
"""The most measured parts that a report lists; the manifest has them all."""

MOST_COMPARED = (500, 500_000)
"""The most tables, and cells of them, for which a report compares all mechanisms."""

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
    published_error: str


@dataclass(frozen=True)
class NoiseRow:
    """One measured table and the law of its noise."""

    name: str
    cells: int
    law: str
    formula: Markup
    standard_deviation: str


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

    `reconstruction` holds what the reconstruction said about itself.
    """
    facts = reconstruction or {}
    names = file_names(plan.workload.margins)
    views = [
        _view(table, f"table-{i}", names[table.margin][0]) for i, table in enumerate(tables[:MOST_TABLES], 1)
    ]
    page: str = page_template("report.html.j2").render(
        title=imprint.title or f"Noisy counts by {_listed(_named(plan))}",
        imprint=imprint,
        plan=plan,
        schema=imprint.schema,
        promise=promise_of(plan),
        raised=_raised,
        measured=[_noise_row(plan, i) for i in range(min(len(plan.measured), MOST_MEASURED))],
        measured_left_out=max(len(plan.measured) - MOST_MEASURED, 0),
        mechanism=_mechanism(plan),
        afterwards=_afterwards(plan),
        biased=_biased(plan, facts),
        rounded=_rounded(plan, facts),
        accuracy=_accuracy(plan, tables),
        compared=_comparison(plan),
        linear=plan.reconstruct == "none",
        known="as planned" if plan.reconstruct == "shrink" else "as measured",
        non_negative=plan.reconstruct in (*CONSTRAINED, "shrink"),
        views=views,
        left_out=len(tables) - len(views),
        any_negative=any(bool((table.counts < 0).any()) for table in tables),
        style=Markup(STYLE),
        show=show_count,
        privacy=_unbroken(str(plan.privacy)),
        loss=_unbroken(str(plan.loss)),
    )
    return page


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
                labels=label_spans(rows, i),
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
                published_error=f"{_root_mean_square(table):,.2f}",
            )
        )
    return rows


def _root_mean_square(table: ReleasedTable) -> float:
    """Return the standard error of a published table over its possible cells."""
    deviations = table.standard_errors
    possible = deviations > 0
    return float(np.sqrt(np.mean(deviations[possible] ** 2))) if possible.any() else 0.0


def _noise_row(plan: Plan, position: int) -> NoiseRow:
    part = plan.measured[position]
    law, formula = _law(part.noise)
    deviation = math.sqrt(plan.noise_variances[position])
    return NoiseRow(_part_name(part), measured_values(plan, part), law, formula, f"{deviation:,.2f}")


def _part_name(part: MeasuredMargin) -> str:
    """Return what was measured: a table, or what of it is left without the averages over some attributes."""
    name = table_name(part.margin)
    if not part.centred:
        return name
    if part.centred == part.margin:
        return f"{name}, differences from the average"
    return f"{name}, differences from the average over {_listed(part.centred)}"


def _law(noise: IntegerNoise) -> tuple[str, Markup]:
    described = noise.describe()
    match described["family"]:
        case "discrete-laplace":
            law = f"discrete Laplace, scale {_short(described['scale'])}"
            return law, Markup("P(k) ∝ e<sup>−|k| / scale</sup>")
        case "discrete-gaussian":
            law = f"discrete Gaussian, σ² = {_short(described['variance_parameter'])}"
            return law, Markup("P(k) ∝ e<sup>−k² / (2σ²)</sup>")
        case "rounded-gaussian":
            law = f"rounded Gaussian, σ² = {_short(described['variance_parameter'])}"
            return law, Markup("k = round(x), density ∝ e<sup>−x² / (2σ²)</sup>")
    return described["family"].replace("-", " "), Markup("")


@lru_cache(maxsize=16)
def _comparison(plan: Plan) -> ComparisonView:
    """Return the expected errors of all mechanisms for a plan's tables, from the plan alone."""
    tables, cells = MOST_COMPARED
    if len(plan.workload) > tables or sum(map(plan.domain.cells, plan.workload)) > cells:
        return ComparisonView(
            Markup(""),
            "For so many tables this page does not compare the mechanisms, which would take long. "
            "`tabulary plan --compare` does.",
        )
    try:
        compared = compare_plans(request_of(plan), planned=plan, shrunk=False)
    except Exception:
        # The tables are measured and paid for by now: a picture of what else might have been must not lose them.
        return ComparisonView(Markup(""), "The mechanisms could not be compared for this page.")
    return ComparisonView(
        picture=Markup(comparison_svg(compared, standalone=False)),
        reason=compared.reason,
        refusals=tuple((refusal.name, refusal.reason) for refusal in compared.refusals),
    )


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
        case "residual":
            return (
                "Measured were parts of the tables, each once, and each with the share of the budget that serves all "
                "of them best: tables of few attributes, and what combinations of attributes add to those. Every "
                "table is computed from all parts that tell about it, weighted by their noise."
                + (" All of them agree." if plan.reconstruct == "none" else "")
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
    if plan.reconstruct == "shrink":
        return (
            "Afterwards the tables were shrunk: of what a combination of attributes adds to smaller tables, only as "
            "much was kept as can be told from noise. The rest follows from the smaller tables, the base: for two "
            "attributes that is independence, or dependence through a third one. The published tables are non-negative "
            "and agree with each other. That spends no privacy."
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


def _biased(plan: Plan, facts: Mapping[str, Fact]) -> str:
    """Return what a reader of shrunk tables must know of their bias."""
    if plan.reconstruct != "shrink":
        return ""
    said = [
        "These tables are biased towards their base: what could not be told from noise is missing in them."
    ]
    if "bias_share" in facts:
        said.append(
            f"Of the squared error expected of what combinations of attributes add, about "
            f"{100 * float(facts['bias_share']):.0f} % is bias, which does not average out over many cells."
        )
    if facts.get("independence_mixed_in"):
        said.append(
            f"To let the tables agree, {100 * float(facts['independence_mixed_in']):.0f} % of independence was mixed "
            "into all of them."
        )
    repetitions = f", in {facts['repetitions']:,} repetitions" if facts.get("repetitions") else ""
    said.append(
        "The standard errors and intervals of these tables are simulated from this release alone"
        f"{repetitions}, and include that bias. "
        "An association that seems absent here may only be weaker than the noise. Whoever needs unbiased tables, for "
        'a test or a model, should ask for a release with reconstruct = "none".'
    )
    return " ".join(said)


def _rounded(plan: Plan, facts: Mapping[str, Fact]) -> str:
    """Return how shrunk tables became whole, with how far their cells moved."""
    if plan.reconstruct != "shrink":
        return ""
    if plan.rounding == "none":
        left = float(facts.get("largest_difference", 0.0))
        return f"Where two tables share attributes, their sums differ by {left:.1g} at most." if left else ""
    how = {
        "margins": "The tables were then rounded at random to whole numbers with the same rounded margins",
        "population": "The tables were then counted from one population of whole records that comes near to them",
    }.get(str(facts.get("method")), "The tables were then made whole")
    moved = (
        f": no count moved by more than {float(facts['largest_move']):.3g}, and {float(facts['rms_move']):.2g} is the "
        "root mean square of the moves, which the stated errors include"
        if "largest_move" in facts and "rms_move" in facts
        else ""
    )
    return f"{how}, so that they still agree{moved}."


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
