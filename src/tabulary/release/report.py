"""The report: a release for people to read, as one self-contained page of HTML."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup, escape

from tabulary.core.labels import Labels
from tabulary.planning import Plan
from tabulary.planning.comparison import compare_plans, request_of
from tabulary.release.comparison_bars import comparison_svg
from tabulary.release.conclusions import conclusions
from tabulary.release.formats import file_names
from tabulary.release.loading import estimate_snippets, snippets
from tabulary.release.manifest import SCHEMA, Imprint
from tabulary.release.noise_table import noise_rows
from tabulary.release.pages import page_template
from tabulary.release.promise import exact_interactions, promise_of, protection_words
from tabulary.release.relative_errors import (
    RelativeErrors,
    largest_relative_errors,
    median_relative_error,
    relative_errors,
    show_share,
)
from tabulary.release.report_table import ReportTable, report_table
from tabulary.release.svg import HATCH, STYLE, show_count
from tabulary.release.table import ReleasedTable
from tabulary.release.who_is_counted import who_is_counted
from tabulary.release.wording import (
    SHRUNK_HELD,
    afterwards_words,
    bias_words,
    content_words,
    coverage_words,
    mechanism_words,
    rounding_words,
)

if TYPE_CHECKING:
    from tabulary.release.release import Release

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

MOST_COMPARED, MOST_COMPARED_CELLS = 500, 20_000
"""The most tables, and cells of the largest, for which a report compares all mechanisms: it takes seconds."""

MOST_LEVELS = 100
"""The most levels of one attribute that the list of names shows; the manifest has them all."""

_FEWEST_CELLS = 60


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
class NamedAttribute:
    """An attribute in the list of names: its code, its words in every language, and its levels.

    `levels` holds the code of each level with its label in every language; `more` is the number of those left out.
    """

    code: str
    words: tuple[str, ...]
    told: tuple[str, ...]
    levels: tuple[tuple[str, tuple[str, ...]], ...]
    more: int


@dataclass(frozen=True)
class ComparisonView:
    """The expected errors of all mechanisms as the report shows them; no picture where they were not compared."""

    picture: Markup
    reason: str
    refusals: tuple[tuple[str, str], ...] = ()


def report_html(release: "Release", imprint: Imprint) -> str:
    """Return the report as a self-contained page: no script, no request, light and dark, ready to print.

    The first screen has the title, two sentences and the first table. What the promise means, how accurate the tables
    are, how they were made and how to load them is folded below, and printed unfolded.
    """
    # The words are those of the published face, which may be another than the plan's.
    face = release.face.face
    plan = replace(release.plan, reconstruct=face.reconstruct, rounding=face.rounding)
    tables, labels = tuple(release), release.labels
    views = _views(release)
    names = [labels.table_name(table.margin) for table in tables]
    concluded = conclusions(plan, tables, most_limits=MOST_TABLES, labels=labels)
    largest_of_one = max(MOST_LARGEST_OF_ONE, math.ceil(MOST_LARGEST / len(tables)))
    measured = noise_rows(plan, MOST_MEASURED)
    beside = [
        RelativeRow(name, _anchor(i), relative_errors(table, labels))
        for i, (name, table) in enumerate(zip(names, tables, strict=True))
    ]
    title = release.title or labels.heading(_attributes(plan, labels))
    page: str = page_template("report.html.j2").render(
        title=title,
        content=content_words(release, imprint),
        protection=protection_words(plan.privacy, plan.neighbours),
        counted=who_is_counted(release),
        labels=labels,
        named=_named(release),
        languages=[each.language or "label" for each in release.translations],
        imprint=imprint,
        plan=plan,
        schema=SCHEMA,
        promise=promise_of(plan),
        raised=_raised,
        measured=measured,
        measured_left_out=len(plan.measured) + len(exact_interactions(plan)) - len(measured),
        mechanism=mechanism_words(plan),
        afterwards=afterwards_words(plan),
        biased=bias_words(plan, release.face.facts),
        rounded=rounding_words(plan, release.face.facts),
        accuracy=_accuracy(plan, tables, names),
        beside=beside,
        largest=largest_relative_errors(tables, MOST_LARGEST, most_of_one=largest_of_one, labels=labels),
        largest_of_one=largest_of_one,
        without=sum(row.found.without for row in beside),
        median=median_relative_error(tables),
        inf=math.inf,
        concluded=concluded,
        limits=[(names[i], _anchor(i), each) for i, each in enumerate(concluded.limits)],
        estimates=estimate_snippets(plan.workload.margins),
        snippets=snippets(plan.workload.margins, linear=face.linear),
        compared=_comparison(plan),
        linear=face.linear,
        shrunk=plan.reconstruct == "shrink",
        coverage=coverage_words(),
        held=SHRUNK_HELD,
        doubtful=(
            "Add such cells up before you draw a conclusion."
            if face.linear
            else "Do not rely on such a cell."
        ),
        known="as measured" if plan.records is None else "as planned",
        views=views,
        left_out=len(tables) - len(views),
        official=face.official,
        any_negative=any(bool((table.counts < 0).any()) for table in tables),
        style=Markup(STYLE),
        hatch=Markup(HATCH),
        show=show_count,
        up=_up,
        share=show_share,
        privacy=_unbroken(str(plan.privacy)),
        loss=_unbroken(str(plan.loss)),
    )
    return page


def _views(release: "Release") -> list[ReportTable]:
    """Return the tables that the page shows, with as many cells and pictures as fit."""
    domain, names = release.plan.domain, file_names(release.margins)
    shown = release.margins[:MOST_TABLES]
    whole = sum(min(domain.cells(margin), MOST_CELLS) for margin in shown)
    each = MOST_CELLS if whole <= MOST_SHOWN else max(MOST_SHOWN // len(shown), _FEWEST_CELLS)
    left = MOST_DRAWN
    views = []
    for i, margin in enumerate(shown):
        csv = names[margin][0]
        view = report_table(release, margin, anchor=_anchor(i), csv=csv, most_cells=each, most_drawn=left)
        left -= view.cells if view.picture else 0
        views.append(view)
    return views


def _anchor(position: int) -> str:
    return f"table-{position + 1}" if position < MOST_TABLES else ""


def _attributes(plan: Plan, labels: Labels) -> list[str]:
    used = {attribute for margin in plan.workload for attribute in margin}
    return [labels.name(attribute) for attribute in plan.domain.attributes if attribute in used]


def _named(release: "Release") -> list[NamedAttribute]:
    """Return the attributes with their names, descriptions and levels in every language of the release."""
    domain, languages = release.plan.domain, release.translations
    found = []
    for attribute in domain.attributes:
        words = [labels.variable(attribute) for labels in languages]
        if all(each.label == attribute and not each.levels and not each.description for each in words):
            continue
        unit = f"Unit: {words[0].unit}." if words[0].unit else ""
        source = f"Source: {words[0].source}" if words[0].source else ""
        told = (*(each.description for each in words), unit, *words[0].notes, source)
        levels = domain.levels_of(attribute)
        found.append(
            NamedAttribute(
                code=attribute,
                words=tuple(each.label for each in words),
                told=tuple(dict.fromkeys(filter(None, told))),
                levels=tuple((code, tuple(e.level(code) for e in words)) for code in levels[:MOST_LEVELS]),
                more=max(len(levels) - MOST_LEVELS, 0),
            )
        )
    return found


def _accuracy(plan: Plan, tables: Sequence[ReleasedTable], names: Sequence[str]) -> list[AccuracyRow]:
    return [
        AccuracyRow(
            name=names[i],
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
    if len(plan.workload) > MOST_COMPARED or max(map(plan.domain.cells, plan.workload)) > MOST_COMPARED_CELLS:
        return ComparisonView(
            Markup(""),
            "With so many or so large tables, this page does not compare the mechanisms, because that would take "
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


def _up(width: float) -> str:
    """Return a limit, rounded upwards."""
    return show_count(width if float(width).is_integer() else math.ceil(10 * width) / 10)


def _raised(words: str) -> Markup:
    return Markup(escape(words).replace("e^ε", Markup("e<sup>ε</sup>")))


def _unbroken(text: str) -> str:
    return text.replace(" = ", "\u00a0=\u00a0")
