"""What the study of suppression says: its sentences are chosen by the numbers."""

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from tabulary.studies import (
    Figure,
    ReportSection,
    Row,
    Sheets,
    Summary,
    chosen,
    distinct,
    number,
    numbers,
    shown,
)
from tabulary_papers.suppression import charts
from tabulary_papers.suppression.distortion import distorted, far_off
from tabulary_papers.suppression.methods import METHODS
from tabulary_papers.suppression.printed import FAR_OFF, FIGURE_4, LEFT_OUT, SIDE
from tabulary_papers.suppression.study import EPSILON, GENES, SuppressionStudy

_EPSILON = float(EPSILON)


def sections(study: SuppressionStudy, sheets: Sheets) -> Sequence[ReportSection]:
    """Return the sections of the page."""
    large = next(str(data) for (data,) in distinct(sheets["noise"], "data") if data != GENES)
    return [
        ReportSection("In short", tuple(_answer(sheets, large, study))),
        _attack(sheets["attack"]),
        _figure_3(sheets),
        _figure_4(sheets),
        _figure_5(sheets, large, study),
        _curves(sheets, study),
    ]


def _answer(sheets: Sheets, large: str, study: SuppressionStudy) -> Iterable[str]:
    for data in (GENES, large):
        [row] = chosen(sheets["suppressed"], data=data, epsilon=_EPSILON)
        shares = ", ".join(
            f"{shown(distorted(sheets['noise'], data=data, way=way, epsilon=_EPSILON), '.1%')} by {how.label}"
            for way, how in METHODS.items()
        )
        yield (
            f"{data.capitalize()}: at ε = 0.5 and δ = 0.2 simulatable suppression leaves out "
            f"{row['left_out']} of {row['cells']} cells. "
            f"Noise at ε = 0.5 puts off by more than a quarter: {shares}."
        )
    if study.large == SIDE:
        own = chosen(sheets["noise"], data=large, epsilon=_EPSILON)
        nearest = min(METHODS, key=lambda way: abs(distorted(own, way=way).rate - FAR_OFF))
        yield (
            f"The paper prints {FAR_OFF:.0%} for its perturbation of a {SIDE} × {SIDE} table. Of what is "
            f"tried here, {METHODS[nearest].label} comes nearest."
        )
    yield (
        "The two ε are different promises. Exact counts protect nobody from somebody who knows the other "
        "people's values; noise does, and is the worse for it where cells are small."
    )


def _attack(rows: Sequence[Row]) -> ReportSection:
    first = rows[0]
    places = [f"{place}" for place in range(1, 10) if f"set_{place}" in first]
    heads = [f"if {first[f'set_{place}']} are sensitive" for place in places]
    known = ("printed", "sums", "people", *places)
    lines = tuple(
        (
            f"{row['cell']}: {row['eye']}, {row['hair']}",
            f"{row['people']}",
            *(f"{row[f'least_{what}']}–{row[f'most_{what}']}" for what in known),
        )
        for row in rows
    )
    widths = {
        what: statistics.mean(number(row, f"most_{what}") - number(row, f"least_{what}") for row in rows)
        for what in known
    }
    same = sum(
        (row["least_sums"], row["most_sums"]) == (row["least_printed"], row["most_printed"]) for row in rows
    )
    under = [widths[place] for place in places]
    certain = [
        f"all {row['people']} in cell {row['cell']} have it if {first[f'set_{place}']} are sensitive"
        for row in rows
        for place in places
        if row[f"least_{place}"] == row["people"]
    ]
    return ReportSection(
        "Figure 1: why cells are not left out as usual",
        (
            "Every cell of this table is left out by the usual rule: counts up to 5 are sensitive, and as "
            "few others go with them as hide these from the sums. From the sums alone a cell is known to "
            f"within {widths['sums']:.1f} on average; {same} of {len(rows)} ranges are those that the paper "
            f"prints. Who knows the numbers of people too knows it to within {widths['people']:.1f}. Who "
            f"moreover knows the rule has {len(places)} sets of sensitive cells to choose from, and then "
            f"knows a cell to within {min(under):.1f} to {max(under):.1f} on average.",
            *([f"And {'; '.join(certain)}."] if certain else []),
        ),
        (
            Summary(
                "What follows for each cell",
                ("cell", "people", "printed", "from the sums", "from the sums and the people", *heads),
                lines,
                "Who knows which cells are sensitive is taken to know the sums and the people as well.",
            ),
        ),
    )


def _figure_3(sheets: Sheets) -> ReportSection:
    decisions = chosen(sheets["decisions"], data=GENES, epsilon=_EPSILON)
    [row] = chosen(sheets["suppressed"], data=GENES, epsilon=_EPSILON)
    lines = tuple(
        (
            str(decision["asked"]),
            "yes" if decision["released"] else "no",
            "–" if decision["unsafe"] is None else f"{decision['unsafe']:.2g}",
            f"{decision['limit']:.4g}",
            str(decision["reason"]),
        )
        for decision in decisions
    )
    refused = sum(not decision["released"] for decision in decisions)
    return ReportSection(
        "Figure 3: the table by suppression",
        (
            f"The paper's table of nine cells, ε = 0.5, δ = 0.2: {row['left_out']} cells are left out; the "
            f"paper prints none. {refused} of {len(decisions)} decisions were refusals.",
        ),
        (
            Summary(
                "Decisions, each made before the count was looked up",
                ("asked", "released", "chance of an unsafe answer", "limit", "reason"),
                lines,
            ),
        ),
    )


def _figure_4(sheets: Sheets) -> ReportSection:
    rows = chosen(sheets["first-tables"], data=GENES)
    [decided] = chosen(sheets["suppressed"], data=GENES, epsilon=_EPSILON)
    truth = np.array([number(row, "true") for row in chosen(rows, way="fourier")])
    theirs = np.array(FIGURE_4).reshape(-1)
    errors = theirs - truth
    words = [
        f"The printed table has {int(far_off(errors, truth).sum())} of 9 cells off by more than a quarter, "
        f"and a root mean square error of {math.sqrt(np.mean(errors**2)):.1f}."
    ]
    own = chosen(sheets["noise"], data=GENES, epsilon=_EPSILON)
    for way in ("fourier", "cells"):
        typical = _root_mean_square(numbers(own, "rmse", way=way))
        words.append(
            f"{METHODS[way].label[0].upper()}{METHODS[way].label[1:]}: "
            f"{distorted(own, way=way).rate * 9:.1f} of 9 cells on average, and a root mean square error of "
            f"{typical:.1f}."
        )
    return ReportSection(
        "Figure 4: the same table with noise",
        tuple(words),
        (_ways(own, "Hair and eyes, ε = 0.5"),),
        (
            Figure(
                "figure-4",
                charts.tables_chart(rows, int(number(decided, "left_out"))),
                "The table itself, as printed with noise, and as three mechanisms released it in their first "
                "repetition.",
                "Tables of three by three counts side by side; dark are the cells that are off by more than "
                "a quarter.",
            ),
        ),
    )


def _figure_5(sheets: Sheets, large: str, study: SuppressionStudy) -> ReportSection:
    own = chosen(sheets["noise"], data=large, epsilon=_EPSILON)
    [row] = chosen(sheets["suppressed"], data=large, epsilon=_EPSILON)
    printed = f"The paper's table has {SIDE} × {SIDE} cells, so its numbers are not compared with these."
    if study.large == SIDE:
        printed = (
            f"The paper prints {LEFT_OUT} of {SIDE**2}, and of its perturbed cells {FAR_OFF:.0%} off by more "
            "than a quarter."
        )
    return ReportSection(
        "Figure 5: a larger table",
        (
            f"{large.capitalize()} cells of 80 to 200 people, chances of 0.3 to 0.5. Suppression at ε = 0.5, "
            f"δ = 0.2 leaves out {row['left_out']} of {row['cells']} cells. {printed}",
            "A table coded in bits has as many Fourier coefficients as codes, and each is measured with "
            "noise for all of them: for a whole table that is noise on every cell, many times as wide.",
        ),
        (_ways(own, f"{large.capitalize()}, ε = 0.5"),),
    )


def _ways(rows: Sequence[Row], caption: str) -> Summary:
    lines = []
    for way, how in METHODS.items():
        own = chosen(rows, way=way)
        lines.append(
            (
                how.label,
                shown(distorted(own), ".1%", interval=True),
                f"{_root_mean_square(numbers(own, 'rmse')):.1f}",
                f"{_root_mean_square(numbers(own, 'rmse_of_sums')):.1f}",
            )
        )
    heads = ("noise", "off by more than a quarter", "root mean square error", "of row and column sums")
    return Summary(
        caption,
        heads,
        tuple(lines),
        "In brackets: 95 % intervals. |B|/ε and 1/ε are exact for a person more or less; 2|B|/ε is published "
        "for one who moves to another cell, for whom |B|/ε would do; 2/ε is exact for that.",
    )


def _curves(sheets: Sheets, study: SuppressionStudy) -> ReportSection:
    lines = []
    for epsilon in study.suppressor_epsilons:
        own = chosen(sheets["suppressed"], epsilon=float(epsilon))
        by_data = {row["data"]: f"{row['left_out']} of {row['cells']}" for row in own}
        lines.append(
            (epsilon, *(by_data.get(data, "–") for (data,) in distinct(sheets["suppressed"], "data")))
        )
    tables = [chosen(sheets["suppressed"], data=data) for (data,) in distinct(sheets["suppressed"], "data")]
    # The large table is decided at one ε only.
    courses = " ".join(_course(rows) for rows in tables if len(rows) > 1)
    return ReportSection(
        "Over ε, each for itself",
        (
            f"The larger ε, the more a released count may tell. {courses} Where not even the sums are safe "
            "no table is released, and all cells count as left out.",
        ),
        (
            Summary(
                "Cells left out, δ = 0.2",
                ("ε of semantic privacy", *(str(data) for (data,) in distinct(sheets["suppressed"], "data"))),
                tuple(lines),
            ),
        ),
        (
            Figure(
                "left-out",
                charts.left_out_chart(sheets["suppressed"]),
                "Share of the cells that simulatable suppression leaves out.",
                f"A curve for each table over the ε of semantic privacy. {courses}",
            ),
            Figure(
                "far-off",
                charts.far_off_chart(sheets["noise"]),
                "Share of the cells that noise puts off by more than a quarter, over the ε of "
                "differential privacy.",
                "Curves over ε, a panel for each table and a curve for each way of adding noise.",
            ),
        ),
    )


def _course(rows: Sequence[Row]) -> str:
    """Return how the number of cells that are left out of one table changes with ε, in words."""
    ordered = sorted(rows, key=lambda row: number(row, "epsilon"))
    low, high = ordered[0], ordered[-1]
    more = [
        f"{number(after, 'epsilon'):g}"
        for before, after in pairwise(ordered)
        if number(after, "left_out") > number(before, "left_out")
    ]
    between = (
        f"more than at the ε before at {', '.join(more)}" if more else "at no ε more than at a smaller one"
    )
    return (
        f"Of {low['data']}, {low['left_out']} of {low['cells']} cells are left out "
        f"at ε = {low['epsilon']:g} and {high['left_out']} at ε = {high['epsilon']:g}; {between}."
    )


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(statistics.mean(value**2 for value in values))
