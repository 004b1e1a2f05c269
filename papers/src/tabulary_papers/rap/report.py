"""What the numbers of RAP's study say.

Which is smaller, by how much and how often is computed from the numbers. What was done, and what the paper says, is
told in fixed words.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tabulary.studies import Figure, PanelAxis, ReportSection, Row, Sheets, Summary, chosen, number
from tabulary_papers.rap.answering import ADAPTIVE, NOTHING, ONCE, PRINTED
from tabulary_papers.rap.charts import SERIES, curves_against, panel_of
from tabulary_papers.rap.people import ADULT, MADE_UP

if TYPE_CHECKING:
    from tabulary_papers.rap.study import RapCurves


def sections(study: "RapCurves", sheets: Sheets) -> list[ReportSection]:
    """Return the parts of the page."""
    rows = [
        row
        for row in sheets["errors"]
        if row["series"] != PRINTED
        and (
            row["series"] != ADAPTIVE or (row["rounds"], row["per_round"]) == (study.rounds, study.per_round)
        )
    ]
    most = {
        panel: max(int(number(r, "margins")) for r in rows if panel_of(r) == panel) for panel in _panels(rows)
    }
    whole = [row for row in rows if row["margins"] == most[panel_of(row)]]
    at_fixed = [row for row in rows if number(row, "epsilon") == float(study.fixed)]
    return [
        ReportSection("What was found", tuple(_answer(study, whole, most))),
        _against_epsilon(study, whole, most),
        _against_tables(study, at_fixed),
        _rounds(study, sheets["errors"], most),
    ]


def _panels(rows: Sequence[Row]) -> list[str]:
    return sorted({panel_of(row) for row in rows})


def mean_errors(rows: Sequence[Row], field: str = "largest_error") -> dict[tuple[str, str, float], float]:
    """Return the mean over repetitions by panel, series and ε."""
    held: dict[tuple[str, str, float], list[float]] = {}
    for row in rows:
        key = (panel_of(row), str(row["series"]), number(row, "epsilon"))
        held.setdefault(key, []).append(number(row, field))
    return {key: float(np.mean(values)) for key, values in held.items()}


def _answer(study: "RapCurves", rows: Sequence[Row], most: dict[str, int]) -> list[str]:
    errors = mean_errors(rows)
    epsilons = sorted({number(row, "epsilon") for row in rows})
    words = []
    for panel in _panels(rows):
        ends = []
        for epsilon in (epsilons[0], epsilons[-1]):
            present = {
                name: errors[panel, name, epsilon] for name in SERIES if (panel, name, epsilon) in errors
            }
            best = min(present, key=lambda name: present[name])
            told = ", ".join(f"{name} {value:.4f}" for name, value in present.items())
            ends.append(f"at ε = {epsilon:g} the smallest was that of {best} ({told})")
        words.append(f"{panel}, {most[panel]} of them. Largest error of a share, means: {'; '.join(ends)}.")
    compared = [
        (errors[panel, ONCE, epsilon], errors[panel, ADAPTIVE, epsilon])
        for panel in _panels(rows)
        for epsilon in epsilons
        if (panel, ADAPTIVE, epsilon) in errors and (panel, ONCE, epsilon) in errors
    ]
    if compared:
        fewer = sum(once < several for once, several in compared)
        more = sum(several < once for once, several in compared)
        words.append(
            f"Of {len(compared)} combinations of data, order and ε, one round of RAP had the smaller error in {fewer}, "
            f"{study.rounds} rounds of {study.per_round} in {more}."
        )
    useless = sorted(
        {
            (panel, name, epsilon)
            for (panel, name, epsilon), value in errors.items()
            if name != NOTHING and value >= errors[panel, NOTHING, epsilon]
        }
    )
    words.append(
        "No better than even shares, which spend nothing: "
        + ("; ".join(f"{name} at ε = {epsilon:g} ({panel})" for panel, name, epsilon in useless) or "none")
        + "."
    )
    return words


def _against_epsilon(study: "RapCurves", rows: Sequence[Row], most: dict[str, int]) -> ReportSection:
    ticks = sorted({number(row, "epsilon") for row in rows})
    summaries = []
    for field, caption in (
        ("largest_error", "Largest error of a share"),
        ("mean_l1", "Mean L1 distance of shares"),
    ):
        errors = mean_errors(rows, field)
        table = [
            (
                f"{panel}: {name}",
                *(f"{errors[panel, name, at]:.4f}" if (panel, name, at) in errors else "–" for at in ticks),
            )
            for panel in _panels(rows)
            for name in SERIES
            if any((panel, name, at) in errors for at in ticks)
        ]
        summaries.append(
            Summary(
                f"{caption}, means over repetitions",
                ("data, tables, way", *(f"ε = {at:g}" for at in ticks)),
                tuple(table),
            )
        )
    chart = curves_against(
        rows,
        "epsilon",
        x=PanelAxis("ε", "log", ticks=ticks, format="~g"),
        title="Largest error of a share against ε",
        subtitle=(
            f"{_told(most)}.",
            "δ = 1/n², neighbours replace a record. "
            f"Line: mean of {study.repetitions} repetitions. Band: smallest and largest.",
        ),
    )
    return ReportSection(
        "Error against ε",
        (
            "Figure 2 of the paper asks for 64 tables. Where the data have fewer of this order with at most "
            f"{study.largest:,} cells, all of them are asked for: {_told(most)}.",
        ),
        tuple(summaries),
        (
            Figure(
                "against-epsilon",
                chart,
                f"The largest error over all cells of all tables. {_after(study, 2)}",
                "Panels by data and order of tables, curves by way: the largest error of a share against "
                "ε, both logarithmic.",
            ),
        ),
    )


def _after(study: "RapCurves", figure: int) -> str:
    """Return which panels of a figure of the paper stand here, and which are missing."""
    panels = f"Figure {figure} of the paper has panels on ADULT and on LOANS. Those on LOANS are missing here"
    if ADULT in study.data:
        return f"{panels}, because we do not have these data."
    return (
        f"{panels}, because we do not have these data. Those on ADULT are missing, because no file was given."
    )


def _told(most: dict[str, int]) -> str:
    return "; ".join(f"{panel}: {number}" for panel, number in most.items())


def _against_tables(study: "RapCurves", rows: Sequence[Row]) -> ReportSection:
    chart = curves_against(
        rows,
        "margins",
        x=PanelAxis(
            "number of tables", "log", ticks=sorted({number(row, "margins") for row in rows}), format="~g"
        ),
        title=f"Largest error of a share against the number of tables, ε = {study.fixed}",
        subtitle=(
            "The first so many of the same tables; δ = 1/n², neighbours replace a record.",
            f"Line: mean of {study.repetitions} repetitions. Band: the smallest and the largest of them.",
        ),
    )
    words = []
    for panel in _panels(rows):
        mine = [row for row in rows if panel_of(row) == panel]
        ends = sorted({int(number(row, "margins")) for row in mine})
        parts = []
        for name in SERIES:
            at = {
                end: [number(r, "largest_error") for r in mine if r["series"] == name and r["margins"] == end]
                for end in (ends[0], ends[-1])
            }
            if all(at.values()):
                parts.append(f"{name} from {np.mean(at[ends[0]]):.4f} to {np.mean(at[ends[-1]]):.4f}")
        words.append(f"{panel}, from {ends[0]} to {ends[-1]} tables: {', '.join(parts)}.")
    return ReportSection(
        "Error against the number of tables",
        tuple(words),
        (),
        (
            Figure(
                "against-tables",
                chart,
                f"The largest error as more tables are asked for at one ε. {_after(study, 3)}",
                "Panels by data and order of tables, curves by way: the largest error of a share against "
                "the number of tables.",
            ),
        ),
    )


def _rounds(study: "RapCurves", rows: Sequence[Row], most: dict[str, int]) -> ReportSection:
    """Return what rounds and queries a round do, after Table 2 of the paper."""
    panel = f"{MADE_UP}, {study.ways[0]}-way tables"
    held: dict[tuple[str, int, int], list[float]] = {}
    for row in chosen(rows, data=MADE_UP, way=study.ways[0], margins=most[panel], epsilon=float(study.fixed)):
        if row["series"] in (ONCE, PRINTED, ADAPTIVE):
            key = (str(row["series"]), int(number(row, "rounds")), int(number(row, "per_round")))
            held.setdefault(key, []).append(number(row, "largest_error"))
    ordered = sorted(held, key=lambda key: (key[1], key[2], key[0]))
    best = min(ordered, key=lambda key: np.mean(held[key]))
    return ReportSection(
        "Rounds and queries a round",
        (
            "Table 2 of the paper lists what was tested, T = 2, 5, 10, 25 and 50 and K = 5, 10, 25, 50 and 100; the "
            "results are not in the part of the paper that we have. One round answers all cells: with the "
            "printed accounting as if each cell were a query of its own, otherwise with the sensitivity that the "
            "cells of a table have together.",
            f"The smallest mean error was that of {_named(best)}, {np.mean(held[best]):.4f}.",
        ),
        (
            Summary(
                f"{panel}, {most[panel]} of them, ε = {study.fixed}: largest error of a share",
                ("rounds T and queries a round K", "mean", "smallest", "largest"),
                tuple(
                    (
                        _named(key),
                        *(f"{value:.4f}" for value in (np.mean(held[key]), min(held[key]), max(held[key]))),
                    )
                    for key in ordered
                ),
            ),
        ),
    )


def _named(key: tuple[str, int, int]) -> str:
    series, rounds, per_round = key
    if series != ADAPTIVE:
        return "one round, printed accounting" if series == PRINTED else "one round"
    return f"{rounds} rounds of {per_round}"
