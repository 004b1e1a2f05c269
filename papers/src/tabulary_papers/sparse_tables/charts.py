"""Figures 1 to 6 of Yang, Fienberg & Rinaldo, a panel a table, a curve a method, each with its averages in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tabulary.studies import (
    Curve,
    Figure,
    Level,
    PanelAxis,
    ReportSection,
    Row,
    Summary,
    curves,
    distinct,
    number,
)
from tabulary_papers.sparse_tables.verdict import CRITERIA

_EPSILON = PanelAxis("ε", "log", ticks=(0.005, 0.02, 0.05, 0.2, 0.5, 2), format="~g", domain=(0.005, 2))


_MOST_MARKERS = 30
# Where the averages of a figure are also written down.
_LOOKED_AT = (0.1, 1.0)


def figure_sections(averaged: Sequence[Row], tables: Sequence[Row]) -> list[ReportSection]:
    """Return a section a figure: what it measures, the averages at two ε as a table, and the chart."""
    repetitions = max(int(number(row, "repetitions")) for row in averaged)
    bands = f"Mean over {repetitions} repetitions, in a band of one standard deviation to either side."
    sizes = [Level(str(row["table"]), number(row, "n"), f"n = {row['n']:,}") for row in tables]
    uniform = [Level(str(row["table"]), number(row, "from_uniform"), "") for row in tables]
    fit = next(criterion for criterion in CRITERIA if criterion.column == "g2_change")
    chance = []
    for row in tables:
        limit = fit.limit(str(row["table"]), int(number(row, "n")))
        chance.append(Level(str(row["table"]), limit, ""))
    charts = [
        (
            "figure-1-sample-size",
            "sample_size",
            "Sample size of the perturbed table (Figure 1)",
            "How many people the perturbed table counts",
            _chart(
                averaged,
                "sample_size",
                axis=PanelAxis("sample size", "log"),
                title="How many people the perturbed table counts",
                subtitle=[bands, "The dashed level is the true number."],
                levels=sizes,
            ),
        ),
        (
            "figure-2-margins",
            "max_l1",
            "Largest L1 distance of a margin (Figure 2)",
            "How far the worst margin is from the true one",
            _chart(
                averaged,
                "max_l1",
                axis=PanelAxis("largest L1 distance of a margin", "log"),
                title="How far the worst margin of the model is from the true one",
                subtitle=[
                    bands,
                    "Sum of absolute differences over the cells of a margin. Dashed, the number of people:",
                    _levels(sizes, 0),
                ],
                levels=[replace(level, label="") for level in sizes],
            ),
        ),
        (
            "figure-3-fit",
            "g2_change",
            "Change of the likelihood ratio statistic (Figure 3)",
            "How much G² of the model changes",
            _chart(
                averaged,
                "g2_change",
                axis=PanelAxis("|G² perturbed − G² original|", "log"),
                title="How much the fit of the model changes",
                subtitle=[
                    bands,
                    "Dashed: twice the spread of χ² with the d.f. after zeros, or half of G² if that is less:",
                    _levels(chance, 1),
                ],
                levels=chance,
            ),
        ),
        (
            "figure-4-estimates",
            "mle_l1",
            "Distance between the estimates (Figure 4)",
            "How far the fitted cell probabilities are from those of the original",
            _chart(
                averaged,
                "mle_l1",
                axis=PanelAxis("L1 between fitted shares", domain=(0, 2)),
                title="How far the fitted model is from that of the original table",
                subtitle=[
                    bands,
                    "Σ |p − q| between the fitted shares, 0 to 2. Dashed, that of equal cells:",
                    _levels(uniform, 2),
                ],
                levels=uniform,
            ),
        ),
        (
            "figure-5-infeasible",
            "infeasible",
            "How often the linear program is infeasible (Figure 5)",
            "In how many repetitions no table has the noisy margins",
            _chart(
                averaged,
                "infeasible",
                axis=PanelAxis("share of repetitions", domain=(0, 1), format="%"),
                title="How often no non-negative table has the noisy margins",
                subtitle=[
                    f"Share of {repetitions} repetitions with b > 0, by more than 1e-7 of the largest term.",
                ],
            ),
        ),
        (
            "figure-6-deviation",
            "b",
            "The optimal b of the linear program (Figure 6)",
            "By how much the nearest table misses the noisy margins",
            _chart(
                averaged,
                "b",
                axis=PanelAxis("optimal b, in the paper's unit", "log"),
                title="By how much the nearest non-negative table misses the noisy terms",
                subtitle=[bands, "Averages of zero are not drawn."],
            ),
        ),
    ]
    return [
        ReportSection(
            title,
            (*_ABOUT[stem], *(_always(averaged) if column == "infeasible" else ())),
            (_shown(averaged, column, caption),),
            (
                Figure(
                    stem,
                    chart,
                    f"{caption}.",
                    _described(averaged, column, caption),
                    _drawn(averaged, column),
                ),
            ),
        )
        for stem, column, title, caption, chart in charts
    ]


_ABOUT: Mapping[str, tuple[str, ...]] = {
    "figure-1-sample-size": (
        "Replacing a record leaves the number of records as it was, so that it is public. The paper's mechanisms draw "
        "noise for it like for every other term; a plan that measures it by itself pays nothing and adds hardly any. "
        "The noise-aware fit is not told the number: it has the noisy cells alone, and cells that cannot be negative "
        "add up to too many where noise is all there is.",
    ),
    "figure-2-margins": (),
    "figure-3-fit": (
        "The margins of a model decide its estimate and not its G²: tables with the same margins have different ones, "
        "and which of these tables a program returns is the program's own choice. Only noisy cells say anything "
        "about G². There it is the statistic of the released cells with their noise in the likelihood; elsewhere the "
        "perturbed table is taken as exact, as in the paper.",
    ),
    "figure-4-estimates": (),
    "figure-5-infeasible": (
        "For least squares and shrinkage, the paper's program on the terms of the linear estimates: of margins that "
        "agree, so that only negative cells can stand in the way. The terms of the journey to work as published are "
        "more than are independent, and noise makes them contradict each other.",
    ),
    "figure-6-deviation": (),
}


def _drawn(averaged: Sequence[Row], column: str) -> list[Row]:
    """Return what a figure shows: the averages of one measure, with how many repetitions had no fit."""
    wanted = (
        "table",
        "method",
        "epsilon",
        "true_epsilon",
        "repetitions",
        "unfitted",
        column,
        f"{column}_deviation",
    )
    return [{name: row[name] for name in wanted if name in row} for row in averaged]


def _levels(levels: Sequence[Level], digits: int) -> str:
    """Return the levels of all panels in words: beside their lines they would lie under the curves."""
    return ", ".join(f"{level.panel} {level.y:,.{digits}f}" for level in levels) + "."


def _always(averaged: Sequence[Row]) -> list[str]:
    """Return which curves lie on each other at the top: infeasible in every repetition at every ε."""
    listed = []
    for (table,) in distinct(averaged, "table"):
        own = [row for row in averaged if row["table"] == table]
        methods = [
            method
            for (method,) in distinct(own, "method")
            if all(row["infeasible"] == 1 for row in own if row["method"] == method)
        ]
        if methods:
            listed.append(f"{table} ({', '.join(methods)})")
    return [f"Infeasible in every repetition at every ε: {'; '.join(listed)}."] if listed else []


def _near(averaged: Sequence[Row], wanted: float) -> float:
    grid = {number(row, "epsilon") for row in averaged}
    return min(grid, key=lambda epsilon: abs(math.log(epsilon / wanted)))


def _shown(averaged: Sequence[Row], column: str, caption: str) -> Summary:
    """Return the averages at the ε of the grid that are nearest to a strong and to a usual guarantee."""
    methods = [str(method) for (method,) in distinct(averaged, "method")]
    found = {(row["table"], row["epsilon"], row["method"]): row for row in averaged}
    rows = []
    for (table,) in distinct(averaged, "table"):
        for epsilon in dict.fromkeys(_near(averaged, wanted) for wanted in _LOOKED_AT):
            values = [_shown_value(found[table, epsilon, method], column) for method in methods]
            rows.append((table, f"{epsilon:g}", *values))
    spread = "" if column == "infeasible" else ", ± one standard deviation"
    return Summary(f"{caption}: mean{spread}", ("table", "ε", *methods), tuple(rows))


def _shown_value(row: Row, column: str) -> str:
    if row[column] is None:
        return "–"
    value, spread = number(row, column), f"{column}_deviation"
    if column == "infeasible":
        return f"{value:.0%}"
    return _figures(value) + ("" if row.get(spread) is None else f" ± {_figures(number(row, spread))}")


def _figures(value: float) -> str:
    """Return a number with three figures and no power of ten.

    >>> _figures(12345.6), _figures(1.2345)
    ('12,346', '1.23')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _described(averaged: Sequence[Row], column: str, caption: str) -> str:
    """Return the chart in words: where each curve begins and ends."""
    parts = []
    for (table,) in distinct(averaged, "table"):
        own = [row for row in averaged if row["table"] == table and row[column] is not None]
        for (method,) in distinct(own, "method"):
            line = sorted((row for row in own if row["method"] == method), key=lambda r: number(r, "epsilon"))
            first, last = line[0], line[-1]
            parts.append(
                f"{table}, {method}: {number(first, column):.3g} at ε = {first['epsilon']:g}, "
                f"{number(last, column):.3g} at {last['epsilon']:g}"
            )
    return f"{caption}, against ε. {'; '.join(parts)}."


def _chart(
    averaged: Sequence[Row],
    column: str,
    *,
    axis: PanelAxis,
    title: str,
    subtitle: Sequence[str],
    levels: Sequence[Level] = (),
) -> Any:
    """Return the mean over the repetitions against ε, in a band of one standard deviation to either side.

    The band is cut at the ends of the axis, and at zero, below which none of these measures can be.
    """
    points = []
    _, highest = axis.domain or (0.0, math.inf)
    for row in averaged:
        if row[column] is None:
            continue
        mean, spread = number(row, column), f"{column}_deviation"
        low, high = None, None
        if row.get(spread) is not None:
            low, high = max(mean - number(row, spread), 0.0), min(mean + number(row, spread), highest)
        points.append(Curve(str(row["table"]), str(row["method"]), number(row, "epsilon"), mean, low, high))
    return curves(
        points,
        x=_EPSILON,
        y=axis,
        title=title,
        subtitle=subtitle,
        series=list(dict.fromkeys(point.series for point in points)),
        levels=levels,
        # Hundreds of markers would hide the curves.
        markers=len({point.x for point in points}) <= _MOST_MARKERS,
    )
