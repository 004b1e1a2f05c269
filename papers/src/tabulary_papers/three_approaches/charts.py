"""The pictures of the three approaches."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tabulary.studies import Curve, PanelAxis, Row, curves, number
from tabulary_papers.three_approaches.expected import APPROACHES
from tabulary_papers.three_approaches.measured import PROGRAM

LABELS = {
    "cells": "cells",
    "margins": "margins",
    "fourier": "Fourier coefficients",
    "residual": "this package's planner",
    PROGRAM: "Fourier, linear program",
}

_WIDTH, _HEIGHT = 235, 210


def panel_of(row: Row) -> str:
    """Return the heading of the panel that a row stands in."""
    return f"{row['way']}-way tables, {row['privacy']}"


def expected_chart(rows: Sequence[Row], field: str, *, title: str, axis: str) -> Any:
    """Return the expected error against the number of attributes, a panel for each order and promise."""
    shown = [row for row in _in_panels(rows) if row[field] is not None]
    points = [
        Curve(panel_of(row), LABELS[str(row["approach"])], number(row, "attributes"), number(row, field))
        for row in shown
    ]
    return curves(
        points,
        x=_attributes(shown),
        y=PanelAxis(axis, "log"),
        title=title,
        subtitle=(
            "All tables of the order named above a panel are wanted; neighbours add or remove one record.",
            "From plans alone, without data. The axis is logarithmic.",
        ),
        series=[LABELS[approach] for approach in APPROACHES],
        columns=3,
        width=_WIDTH,
        height=_HEIGHT,
    )


def measured_chart(rows: Sequence[Row], *, people: int, repetitions: int) -> Any:
    """Return the measured L1 error of a table against the number of attributes, with bands over repetitions."""
    points = []
    for key, values in grouped(_in_panels(rows), "mean_l1").items():
        panel, approach, attributes = key
        low, high = np.quantile(values, (0.25, 0.75))
        points.append(
            Curve(panel, LABELS[approach], attributes, float(np.mean(values)), float(low), float(high))
        )
    return curves(
        points,
        x=_attributes(rows),
        y=PanelAxis("L1 error of a table, people", "log"),
        title="What the tables were off by on made-up people",
        subtitle=(
            f"{people:,} people, {repetitions:,} repetitions with people and noise of their own.",
            "Line: mean over repetitions of the mean over tables. Band: the middle half of the repetitions.",
        ),
        series=[LABELS[name] for name in (*APPROACHES, PROGRAM)],
        columns=3,
        width=_WIDTH,
        height=_HEIGHT,
    )


def corollary_chart(rows: Sequence[Row]) -> Any:
    """Return the true failure probability of Corollary 1 against the claimed one."""
    claimed = sorted({number(row, "claimed") for row in rows})
    points = [Curve("", "as claimed", value, value) for value in claimed]
    points += [
        Curve("", f"d = {row['coefficients']}", number(row, "claimed"), number(row, "true"))
        for row in rows
        if number(row, "true") > _FLOOR
    ]
    return curves(
        points,
        x=PanelAxis(
            "failure that Corollary 1 claims, exp(−t)",
            "log",
            ticks=(0.001, 0.01, 0.1, 1),
            format="~g",
            domain=(0.001, 1),
        ),
        y=PanelAxis("true probability", "log", ticks=_DECADES, format="~g", domain=(_FLOOR, 1.5)),
        title="How often the shift of Corollary 1 is below the norm of the noise",
        subtitle=(
            "d Laplace draws; their L1 norm has a Gamma law. Above the claim the corollary is false,",
            f"below it the shift is larger than it need be. Values below {_FLOOR:g} are not drawn.",
        ),
        width=520,
        height=300,
    )


_FLOOR = 1e-6
_DECADES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1)


def shift_chart(rows: Sequence[Row]) -> Any:
    """Return the bias of a cell against the failure probability, a panel for each order of tables."""
    names = {
        "Corollary 1": "Corollary 1, as claimed",
        "quantile of the norm": "exact quantile of the norm",
        "what is needed": "what is needed, whatever the data",
    }
    points = [
        Curve(
            f"{row['way']}-way tables, d = {row['coefficients']}",
            names[str(row["shift"])],
            number(row, "failure"),
            number(row, "bias"),
        )
        for row in rows
        if number(row, "bias") > 0
    ]
    draws = int(number(rows[0], "draws"))
    return curves(
        points,
        x=PanelAxis(
            "probability of a negative cell",
            "log",
            ticks=(0.001, 0.01, 0.1, 1),
            format="~g",
            domain=(0.001, 1),
        ),
        y=PanelAxis("people added to every cell", "log"),
        title="What non-negative tables without a program cost",
        subtitle=(
            f"All tables of {rows[0]['attributes']} yes-or-no attributes; bias of a cell of a wanted table.",
            f"What is needed: from {draws:,} draws of the noise on a table of nobody, the worst case of all "
            "data.",
        ),
        columns=3,
        width=_WIDTH,
        height=_HEIGHT,
    )


def bounds_chart(bounds: Sequence[Row], measured: Sequence[Row], *, failure: float) -> Any:
    """Return the bounds on the L1 error of every table beside what was measured."""
    names = {
        "Theorem 5": "Theorem 5, linear program",
        "quantile": "bound from quantile, linear program",
        "one": "bound from quantile, one table, no program",
    }
    points = []
    for row in bounds:
        name = names["one"] if row["tables"] == "one" else names[str(row["bound"])]
        points.append(Curve(f"{row['way']}-way tables", name, number(row, "attributes"), number(row, "l1")))
    for approach, field, name in (
        (PROGRAM, "largest_l1", "measured, linear program, largest of all tables"),
        ("fourier", "first_l1", "measured, no program, one table"),
    ):
        kept = [row for row in measured if row["approach"] == approach and "δ" not in str(row["privacy"])]
        for (panel, _, attributes), values in grouped(kept, field).items():
            quantile = float(np.quantile(values, 1 - failure))
            points.append(Curve(panel.split(",")[0], name, attributes, quantile))
    return curves(
        points,
        x=_attributes(bounds),
        y=PanelAxis("L1 error of a table, people", "log"),
        title="Bounds on the error, and errors",
        subtitle=(
            f"Bounds hold with probability {1 - failure:.0%}. Measured: the {1 - failure:.0%} quantile over "
            "repetitions.",
            "The linear program's bounds hold for all tables at once, the other for one table.",
        ),
        columns=3,
        width=_WIDTH,
        height=_HEIGHT,
    )


def grouped(rows: Sequence[Row], field: str) -> dict[tuple[str, str, float], list[float]]:
    """Return the values of a field by panel, approach and number of attributes."""
    found: dict[tuple[str, str, float], list[float]] = {}
    for row in rows:
        key = (panel_of(row), str(row["approach"]), number(row, "attributes"))
        found.setdefault(key, []).append(number(row, field))
    return found


def _in_panels(rows: Sequence[Row]) -> list[Row]:
    """Return the rows in the order of their panels: pure promises first, then by order of the tables."""
    return sorted(
        rows, key=lambda row: ("δ" in str(row["privacy"]), number(row, "way"), number(row, "attributes"))
    )


def _attributes(rows: Sequence[Row]) -> PanelAxis:
    sizes = sorted({int(number(row, "attributes")) for row in rows})
    step = math.ceil((sizes[-1] - sizes[0]) / 7) or 1
    return PanelAxis(
        "number of yes-or-no attributes k", ticks=range(sizes[0], sizes[-1] + 1, step), format="d"
    )
