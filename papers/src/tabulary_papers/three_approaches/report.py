"""What the numbers of the three approaches say.

Which is larger, by how much and how often is computed from the numbers, also where a picture is described. What was
done, and what the paper says, is told in fixed words.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tabulary.core import MAX_CELLS
from tabulary.studies import Figure, ReportSection, Row, Sheets, Summary, chosen, number
from tabulary_papers.three_approaches.charts import LABELS, expected_chart, grouped, measured_chart, panel_of
from tabulary_papers.three_approaches.expected import APPROACHES, TOLERANCE
from tabulary_papers.three_approaches.guarantees import (
    bounds_section,
    corollary_words,
    raised_section,
    shift_words,
)
from tabulary_papers.three_approaches.measured import PROGRAM

if TYPE_CHECKING:
    from tabulary_papers.three_approaches.study import ThreeApproaches

# Differences below this are the rounding of sums, not a contradiction.
_ROUNDING = 1e-6
# Errors this close, relatively, are equal: the planner may measure the cells and sum them in another order.
_EQUAL = 1e-9

Errors = dict[tuple[int, str, str], dict[int, float]]


def sections(study: "ThreeApproaches", sheets: Sheets) -> list[ReportSection]:
    """Return the parts of the page."""
    return [
        ReportSection(
            "What was found",
            tuple(_answer(study, sheets)),
            (_crossings(standard_errors(sheets["expected"])),),
        ),
        _expected(sheets["expected"]),
        _statements(sheets),
        _measured(study, sheets),
        raised_section(study, sheets),
        bounds_section(study, sheets),
    ]


def standard_errors(rows: Sequence[Row]) -> Errors:
    """Return the standard error of a cell by order, promise and approach, over the number of attributes."""
    found: Errors = {}
    for row in rows:
        if row["standard_error"] is not None:
            key = (int(number(row, "way")), str(row["privacy"]), str(row["approach"]))
            found.setdefault(key, {})[int(number(row, "attributes"))] = number(row, "standard_error")
    return found


def smallest_from(sizes: Sequence[int], holds: Callable[[int], bool]) -> int | None:
    """Return the smallest size from which on something holds for all of them, None where it fails at the last.

    >>> smallest_from([2, 4, 6, 8], lambda size: size > 4), smallest_from([2, 4], lambda size: size < 4)
    (6, None)
    """
    found = None
    for size in sorted(sizes, reverse=True):
        if not holds(size):
            break
        found = size
    return found


def _answer(study: "ThreeApproaches", sheets: Sheets) -> list[str]:
    errors = standard_errors(sheets["expected"])
    best = [_best(errors, *panel, size) for panel in _panels(errors) for size in _sizes(errors, *panel)]
    times = [f"{LABELS[approach]} in {best.count(approach)}" for approach in APPROACHES]
    words = [
        f"Of {len(best)} combinations of order, promise and number of attributes k, the smallest expected "
        f"error was that of {', '.join(times)}. Of equal ones the first of this list is counted."
    ]
    apart = grouped(sheets["measured"], "inconsistency")
    largest = {
        a: max((max(v) for k, v in apart.items() if k[1] == a), default=0.0) for a in (*APPROACHES, PROGRAM)
    }
    agreeing = [LABELS[a] for a in largest if largest[a] < _ROUNDING]
    differing = [
        f"{LABELS[a]} (by up to {largest[a]:,.0f} people)" for a in largest if largest[a] >= _ROUNDING
    ]
    words.append(
        f"Tables agreed with each other in every repetition: {', '.join(agreeing) or 'none'}. "
        f"They contradicted each other: {', '.join(differing) or 'none'}."
    )
    return [*words, corollary_words(sheets["corollary"]), shift_words(study, sheets["shifts"])]


def _overtaken(errors: Errors, way: int, privacy: str, winner: str, other: str) -> tuple[int | None, int]:
    ours, theirs = (errors.get((way, privacy, approach), {}) for approach in (winner, other))
    sizes = [size for size in ours if size in theirs]
    return smallest_from(sizes, lambda size: ours[size] < theirs[size] * (1 - _EQUAL)), max(sizes, default=0)


def _from(found: tuple[int | None, int]) -> str:
    size, last = found
    if not last:
        # No size allows both.
        return "–"
    return f"not at k = {last}" if size is None else f"from k = {size}"


def _best(errors: Errors, way: int, privacy: str, size: int) -> str:
    """Return the approach of the smallest error; of those that differ by rounding alone, the first."""
    found = {approach: errors.get((way, privacy, approach), {}) for approach in APPROACHES}
    known = {approach: by_size[size] for approach, by_size in found.items() if size in by_size}
    return next(approach for approach, error in known.items() if error <= min(known.values()) * (1 + _EQUAL))


def _sizes(errors: Errors, way: int, privacy: str) -> list[int]:
    """Return the numbers of attributes at which any approach has an error."""
    return sorted({size for approach in APPROACHES for size in errors.get((way, privacy, approach), {})})


def _crossings(errors: Errors) -> Summary:
    short = {"cells": "cells", "margins": "margins", "fourier": "Fourier", "residual": "planner"}
    pairs = (("fourier", "cells"), ("fourier", "margins"), ("residual", "cells"), ("residual", "fourier"))
    return Summary(
        "Where one approach is expected to be nearer than another",
        ("tables, promise", *(f"{short[one]} below {short[other]}" for one, other in pairs)),
        tuple(
            (f"{way}-way, {privacy}", *(_from(_overtaken(errors, way, privacy, *pair)) for pair in pairs))
            for way, privacy in _panels(errors)
        ),
        note="The smallest k from which on the standard error of a cell is smaller at every k that was looked at.",
    )


def _panels(errors: Errors) -> list[tuple[int, str]]:
    return list(dict.fromkeys((way, privacy) for way, privacy, _ in sorted(errors)))


def _expected(rows: Sequence[Row]) -> ReportSection:
    errors = standard_errors(rows)
    sizes = sorted({int(number(row, "attributes")) for row in rows})
    shown = [size for size in sizes if size in (4, 8, 12, 16, 20, sizes[-1])]
    table = []
    for way, privacy in _panels(errors):
        for approach in APPROACHES:
            known = errors.get((way, privacy, approach), {})
            values = tuple(f"{known[size]:,.1f}" if size in known else "–" for size in shown)
            table.append((f"{way}-way, {privacy}, {LABELS[approach]}", *values))
    last = math.floor(math.log2(MAX_CELLS))
    words = [
        "The standard error of a cell is exact for all four: a cell of a j-way table is a sum of 2^(k−j) "
        "draws for cells, one draw for margins, a sum of 2^j draws over 2^j for coefficients, and a "
        "weighted sum for the planner. So is the expected L1 error of a table, from the characteristic "
        "function of that sum; where the planner's weights differ, or a sum is very wide, each cell of it is known "
        f"to {TOLERANCE:.2%} of its standard error."
    ]
    words.append(
        f"Plans refuse a table of more than {MAX_CELLS:,} cells, so noise on cells stops at k = {last}; "
        f"here the largest k is {sizes[-1]}."
    )
    return ReportSection(
        "Expected error over the number of attributes",
        tuple(words),
        (
            Summary(
                "Standard error of a cell, people",
                ("tables, promise, approach", *(f"k = {s}" for s in shown)),
                tuple(table),
            ),
        ),
        (
            Figure(
                "standard-error",
                expected_chart(
                    rows,
                    "standard_error",
                    title="Standard error of a cell",
                    axis="standard error of a cell, people",
                ),
                "The error of a cell against the number of attributes.",
                f"{_panels_of_curves(rows)}. {_growth(rows, 'standard_error')}",
            ),
            Figure(
                "expected-l1",
                expected_chart(
                    rows, "l1", title="Expected L1 error of a table", axis="expected L1 error, people"
                ),
                "The expected sum of absolute errors over the cells of a table.",
                f"{_panels_of_curves(rows)}, for the L1 error of a whole table. {_growth(rows, 'l1')}",
            ),
        ),
    )


def _panels_of_curves(rows: Sequence[Row]) -> str:
    panels = len({panel_of(row) for row in rows})
    kinds = "by order of the tables and promise: one for each approach against the number of attributes"
    return f"{panels} panel{'s' if panels > 1 else ''} of curves, {kinds}"


def _growth(rows: Sequence[Row], field: str) -> str:
    """Return how many times as large an error is at the last number of attributes as at the first, by approach."""
    parts = []
    for approach in APPROACHES:
        known: dict[str, dict[float, float]] = {}
        for row in rows:
            if row["approach"] == approach and row[field] is not None:
                known.setdefault(panel_of(row), {})[number(row, "attributes")] = number(row, field)
        times = sorted(by_size[max(by_size)] / by_size[min(by_size)] for by_size in known.values())
        if times:
            last = max(max(by_size) for by_size in known.values())
            parts.append(f"{LABELS[approach]} {_short(times[0])} to {_short(times[-1])} (at k = {last:g})")
    return f"From the first to the last k of a panel the error became so many times as large: {', '.join(parts)}."


def _statements(sheets: Sheets) -> ReportSection:
    rows = []
    for row in sheets["statements"]:
        at = f", k = {row['attributes']}" if row["attributes"] is not None else ""
        printed = "–" if row["printed"] is None else _short(number(row, "printed"))
        rows.append((f"{row['statement']}{at}", printed, _short(number(row, "recomputed"))))
    errors = standard_errors(sheets["expected"])
    growth = []
    for way, privacy in _panels(errors):
        known = errors[way, privacy, "fourier"]
        large = sorted(size for size in known if size >= max(known) / 2)
        if len(large) > 1:
            slope = np.polyfit(np.log(large), np.log([known[size] for size in large]), 1)[0]
            growth.append(
                (
                    f"{way}-way, {privacy}",
                    f"{way if 'δ' not in privacy else way / 2:g}",
                    f"{slope:.2f}",
                    f"{large[0]} to {large[-1]}",
                )
            )
    return ReportSection(
        "What the paper prints",
        (
            "Theorem 1 of the paper has noise of variance 2σ², σ = 1/ε for a histogram, so the variance of "
            f"a one-way cell made of 2^(k−1) cells is 2^k/ε², {_times(sheets, 'Laplace')} what section 3 prints; "
            f"with the integer noise drawn here it is {_times(sheets, 'integer noise')} what is printed.",
            "The paper expects a distortion 'on the order of thousands or (a small number of) millions' "
            "for all triples at 30, 50 or 100 attributes; the errors at these k are in the table.",
        ),
        (
            Summary("Printed and recomputed", ("statement", "printed", "recomputed"), tuple(rows)),
            Summary(
                "Growth with k of the standard error of a cell, Fourier coefficients",
                ("tables, promise", "exponent as printed, k → ∞", "exponent found", "over k"),
                tuple(growth),
                note="Printed: k³ for triples with Laplace noise and k^{3/2} with Gaussian noise; for other "
                "orders by the same argument. Found: the slope of a line through the logarithms.",
            ),
        ),
    )


def _times(sheets: Sheets, noise: str) -> str:
    """Return how many times the printed variance of one attribute's cells the recomputed one is."""
    rows = chosen(sheets["statements"], statement=f"variance of one attribute's cells, {noise}")
    found = sorted({f"{number(row, 'recomputed') / number(row, 'printed'):.3g}" for row in rows})
    return f"{' or '.join(found)} times"


def _measured(study: "ThreeApproaches", sheets: Sheets) -> ReportSection:
    rows = sheets["measured"]
    size = max(study.tried)
    table = []
    for way in study.ways:
        for privacy in map(str, study.privacies):
            for approach in (*APPROACHES, PROGRAM):
                mine = [
                    row
                    for row in rows
                    if (row["way"], row["privacy"], row["approach"], row["attributes"])
                    == (way, privacy, approach, size)
                ]
                if mine:
                    apart = max(number(row, "inconsistency") for row in mine)
                    table.append(
                        (
                            f"{way}-way, {privacy}, {LABELS[approach]}",
                            f"{_mean(mine, 'mean_l1'):,.1f}",
                            f"{_mean(mine, 'largest_l1'):,.1f}",
                            f"{math.sqrt(float(np.mean([number(row, 'rmse') ** 2 for row in mine]))):,.2f}",
                            f"{_mean(mine, 'inconsistency') if apart >= _ROUNDING else 0:,.1f}",
                            f"{_mean(mine, 'negative_share'):.1%}",
                        )
                    )
    return ReportSection(
        "Measured on made-up people",
        (
            f"{study.people:,} people of three kinds answer k yes-or-no questions; each of "
            f"{study.repetitions:,} repetitions has people and noise of its own. Two tables contradict each "
            "other by the largest difference between what they say of the same people: of a table that "
            "both contain, or of the number of people.",
            *_as_expected(sheets),
        ),
        (
            Summary(
                f"k = {size}, means over repetitions",
                (
                    "tables, promise, approach",
                    "L1 a table",
                    "largest L1",
                    "RMSE of a cell",
                    "contradiction",
                    "negative cells",
                ),
                tuple(table),
            ),
        ),
        (
            Figure(
                "measured-l1",
                measured_chart(rows, people=study.people, repetitions=study.repetitions),
                "The error of whole tables, measured.",
                f"{_panels_of_curves(rows)}, with bands, for the measured L1 error of a whole table. "
                f"{_order(study, rows)}",
            ),
        ),
    )


def _as_expected(sheets: Sheets) -> list[str]:
    """Return how far what was measured is from what the plans expect, where both are known."""
    expected = {
        (panel_of(row), str(row["approach"]), number(row, "attributes")): number(row, "l1")
        for row in sheets["expected"]
        if row["l1"] is not None
    }
    apart, spreads = [], []
    for key, values in grouped(sheets["measured"], "mean_l1").items():
        spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        # A few repetitions with whole-number noise may all have the same error, which says nothing of its spread.
        if key in expected and spread > 0:
            difference = float(np.mean(values)) - expected[key]
            apart.append(difference / expected[key])
            spreads.append(abs(difference) / spread)
    if not apart:
        return []
    return [
        f"In {len(apart)} combinations of order, promise, k and approach the mean L1 error was also expected from the "
        f"plan: what was measured lay {min(apart):+.1%} to {max(apart):+.1%} from that, at most "
        f"{max(spreads):.1f} standard errors of the mean."
    ]


def _order(study: "ThreeApproaches", rows: Sequence[Row]) -> str:
    """Return which approach had the smallest and which the largest mean error, at the most attributes tried."""
    at_most = [row for row in rows if row["attributes"] == max(study.tried)]
    ends: dict[str, dict[str, float]] = {}
    for (panel, approach, _), values in grouped(at_most, "mean_l1").items():
        ends.setdefault(panel, {})[approach] = float(np.mean(values))
    told = [
        f"{panel}: {LABELS[min(means, key=lambda a: means[a])]}, {LABELS[max(means, key=lambda a: means[a])]}"
        for panel, means in ends.items()
    ]
    return f"Smallest and largest mean at k = {max(study.tried)}, by panel: {'; '.join(told)}."


def _mean(rows: Sequence[Row], field: str) -> float:
    return float(np.mean([number(row, field) for row in rows]))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
