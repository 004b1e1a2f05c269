"""The pictures of RAP's study."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tabulary.studies import Curve, PanelAxis, Row, curves, number
from tabulary_papers.rap.answering import ADAPTIVE, GRAPHICAL, MWEM, NOTHING, ONCE, ROWS, TABLES

SERIES = (ONCE, ADAPTIVE, TABLES, ROWS, MWEM, GRAPHICAL, NOTHING)


def curves_against(
    rows: Sequence[Row], field: str, *, x: PanelAxis, title: str, subtitle: Sequence[str]
) -> Any:
    """Return the largest error against a field of the rows, a panel for each data and order of tables."""
    held: dict[tuple[str, str, float], list[float]] = {}
    for row in rows:
        series = str(row["series"])
        held.setdefault((panel_of(row), series, number(row, field)), []).append(number(row, "largest_error"))
    points = [
        Curve(panel, series, at, float(np.mean(values)), min(values), max(values))
        for (panel, series, at), values in held.items()
    ]
    present = {point.series for point in points}
    return curves(
        sorted(points, key=lambda point: (point.panel, point.x)),
        x=x,
        y=PanelAxis("largest error of a share", "log", format="~g"),
        title=title,
        subtitle=subtitle,
        series=[name for name in SERIES if name in present],
        columns=2,
        width=340,
        height=250,
    )


def panel_of(row: Row) -> str:
    """Return the heading of the panel that a row stands in."""
    return f"{row['data']}, {row['way']}-way tables"
