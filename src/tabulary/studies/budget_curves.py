"""The picture of error against ε: the half-widths of the tables of a plan at several budgets."""

from itertools import groupby
from typing import Any

from tabulary.core.budget import amount, symbol
from tabulary.planning.budgets import Budgets, Target
from tabulary.planning.words import table_name
from tabulary.release.drawing import COLOURS
from tabulary.studies.curve_panels import Curve, Level, PanelAxis, curves

_WIDTH, _HEIGHT = 560, 300


def budget_chart(budgets: Budgets, *, target: Target | None = None, title: str = "") -> Any:
    """Return a chart with one curve per table; of many tables, one per number of attributes, with a band around it.

    The curve of many tables is their largest half-width, and the band reaches down to their smallest. A dashed line is
    the target. Both axes are logarithmic, so noise that is inverse to ε is a straight line.
    """
    many = len(budgets.margins) > len(COLOURS)
    points = _one_per_order(budgets) if many else _one_per_table(budgets)
    ticks = [float(amount(row.privacy)) for row in budgets]
    letter = symbol(budgets.rows[0].privacy)
    lines = [] if target is None else [Level("", float(target.half_width), f"target {target}")]
    heights = [point.y for point in points] + [line.y for line in lines]
    about = f": {table_name(budgets.margins[0])}" if len(budgets.margins) == 1 else ""
    modelled = any(row.modelled for row in budgets)
    return curves(
        points,
        x=PanelAxis(
            f"{letter} (less noise to the right)",
            scale="log",
            ticks=ticks,
            format=",~g",
            domain=(ticks[0] / 1.15, ticks[-1] * 1.15),
        ),
        # A half-width can be zero, which a logarithm does not show.
        y=PanelAxis(
            f"±{budgets.confidence:.0%} half-width of a cell",
            scale="log" if min(heights) > 0 else "symlog",
            format=",~g",
            domain=(min(heights) / 1.15, max(heights) * 1.4) if min(heights) > 0 else None,
        ),
        title=title or f"Error against {letter}{about}",
        subtitle=[
            "In part what the planning model expects of shrunk tables; not a guarantee."
            if modelled
            else "Exact for the unbiased estimates, before any budget is spent: it follows from the noise alone.",
            *(["A band reaches down to the table with the smallest half-width."] if many else []),
        ],
        levels=lines,
        columns=1,
        width=_WIDTH,
        height=_HEIGHT,
    )


def _one_per_table(budgets: Budgets) -> list[Curve]:
    return [
        Curve("", table_name(error.margin), float(amount(row.privacy)), float(error.half_width))
        for row in budgets
        for error in row.errors
    ]


def _one_per_order(budgets: Budgets) -> list[Curve]:
    orders = sorted(budgets.margins, key=len)
    points = []
    for order, margins in groupby(orders, key=len):
        among = list(margins)
        name = (
            f"{order} attribute{'' if order == 1 else 's'}, largest of {len(among):,}" if order else "total"
        )
        for row in budgets:
            widths = [float(row.errors[margin].half_width) for margin in among]
            points.append(Curve("", name, float(amount(row.privacy)), max(widths), min(widths), max(widths)))
    return points
