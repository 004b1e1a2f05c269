"""Tables side by side, and curves over ε: the pictures of the study of suppression."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from tabulary.studies import (
    COLOURS,
    INK,
    Curve,
    PanelAxis,
    Row,
    chosen,
    curves,
    distinct,
    inline,
    number,
    styled,
)
from tabulary_papers.suppression.distortion import distorted, far_off
from tabulary_papers.suppression.methods import METHODS
from tabulary_papers.suppression.printed import FIGURE_4

_SIDE = 62
# Of the full study; those between them would run into each other.
_TICKS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def tables_chart(rows: Sequence[Row], left_out: int) -> Any:
    """Return the hair and eye table as it is and as it was released with noise, cells that are far off dark."""
    truth = chosen(rows, way="fourier")
    flat = [count for line in FIGURE_4 for count in line]
    shown = {
        f"exact; suppression leaves out {left_out}": [number(row, "true") for row in truth],
        "Fourier, as printed in Figure 4": [float(count) for count in flat],
        **{
            METHODS[way].label: [number(row, "published") for row in chosen(rows, way=way)]
            for way in ("fourier", "cells", "residual")
        },
    }
    panels = [_table(truth, counts, title) for title, counts in shown.items()]
    return styled(
        alt.concat(*panels, columns=3, spacing={"row": 18, "column": 26}),
        title="One table, exact and with noise",
        subtitle=[
            "Carriers of a gene by colour of eyes (rows) and hair (columns), ε = 0.5.",
            "Dark: off by more than a quarter of the true count, which stands in brackets.",
        ],
    )


def _table(truth: Sequence[Row], counts: Sequence[float], title: str) -> Any:
    exact = np.array([number(row, "true") for row in truth])
    far = far_off(np.array(counts) - exact, exact)
    rows = [
        {
            "eyes": row["row"],
            "hair": row["column"],
            "count": f"{count:.0f}",
            "true": "" if count == true else f"({true:.0f})",
            "far": bool(off),
        }
        for row, count, true, off in zip(truth, counts, exact, far, strict=True)
    ]
    order = [str(column) for (column,) in distinct(truth, "column")]
    lines = [str(line) for (line,) in distinct(truth, "row")]
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("hair:N", sort=order, title=None, axis=alt.Axis(orient="top", labelAngle=0, ticks=False)),
        y=alt.Y("eyes:N", sort=lines, title=None, axis=alt.Axis(ticks=False)),
    )
    fill = alt.condition("datum.far", alt.value(COLOURS[0]), alt.value("#f4f6f8"))
    ink = alt.condition("datum.far", alt.value("white"), alt.value(INK))
    squares = base.mark_rect(stroke="#b8c0c8").encode(color=fill)
    large = base.mark_text(fontSize=15, dy=-5).encode(text="count:N", color=ink)
    small = base.mark_text(fontSize=11, dy=11).encode(text="true:N", color=ink)
    return alt.layer(squares, large, small).properties(
        width=3 * _SIDE, height=3 * _SIDE, title=alt.TitleParams(title, offset=8)
    )


def left_out_chart(rows: Sequence[Row]) -> Any:
    """Return the share of cells that are left out, over the ε of semantic privacy."""
    # The large table is decided at one ε only, which is no curve.
    several = [data for (data,) in distinct(rows, "data") if len(chosen(rows, data=data)) > 1]
    points = [
        Curve(
            "δ = 0.2",
            str(row["data"]),
            number(row, "epsilon"),
            number(row, "left_out") / number(row, "cells"),
        )
        for data in reversed(several)
        for row in chosen(rows, data=data)
    ]
    ticks = sorted({point.x for point in points})
    return curves(
        points,
        x=PanelAxis(
            "ε of semantic privacy",
            ticks=ticks if len(ticks) < len(_TICKS) else _TICKS,
            format="~g",
        ),
        y=PanelAxis("cells left out", format="%", domain=(0, 1)),
        title="Simulatable suppression",
        subtitle=["What is released is exact.", "This ε is not that of differential privacy."],
        columns=1,
        width=460,
    )


def far_off_chart(rows: Sequence[Row]) -> Any:
    """Return the share of cells that are far off, over the ε of differential privacy."""
    points = []
    for (data,) in reversed(distinct(rows, "data")):
        for way, how in METHODS.items():
            for (epsilon,) in distinct(rows, "epsilon"):
                share = distorted(rows, data=data, way=way, epsilon=epsilon)
                low, high = share.interval()
                points.append(Curve(str(data), how.label, float(epsilon), share.rate, low, high))
    return curves(
        points,
        x=PanelAxis(
            "ε of differential privacy", scale="log", ticks=sorted({point.x for point in points}), format="~g"
        ),
        y=PanelAxis("cells off by more than a quarter", format="%", domain=(0, 1)),
        title="How many cells noise puts far off",
        subtitle=["Share of the published cells that are off by more than a quarter. Bands: 95 % intervals."],
    )
