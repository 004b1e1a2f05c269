"""Box plots in panels: how values scatter, a box for each name, one panel beside the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from tabulary.release.drawing import COLOURS, INK, SOFT, inline, styled

_WIDTH, _HEIGHT = 330, 165


@dataclass(frozen=True)
class Boxes:
    """A panel: a box for each name along x, on a scale of its own ends, with dashed lines across at named levels."""

    title: str
    values: Mapping[str, Sequence[float]]
    domain: tuple[float, float]
    y: str = ""
    x: str = ""
    lines: tuple[float, ...] = ()


def box_panels(
    panels: Sequence[Boxes], *, columns: int, title: str, subtitle: str | Sequence[str], height: int = _HEIGHT
) -> Any:
    """Return the panels, so many in a row, the panels of a column in one colour.

    A box holds the middle half of the values with the median across it; whiskers reach to the last value within one
    and a half times the box, and what lies beyond is a point of its own. The first panel of a row has the labels of
    its scale, so the panels of a row should have one.
    """
    drawn = [
        _panel(panel, COLOURS[number % columns], height, labelled=number % columns == 0)
        for number, panel in enumerate(panels)
    ]
    return styled(
        alt.concat(*drawn, columns=columns, spacing={"row": 14, "column": 18}),
        title=title,
        subtitle=[subtitle] if isinstance(subtitle, str) else list(subtitle),
    )


def _panel(panel: Boxes, colour: str, height: int, *, labelled: bool) -> Any:
    rows = [{"box": name, "value": value} for name, values in panel.values.items() for value in values]
    y = alt.Y(
        "value:Q",
        title=panel.y if labelled else None,
        scale=alt.Scale(domain=list(panel.domain), zero=False, nice=True),
        # Flush, so that the highest label does not push the title of its panel and not of its neighbour.
        axis=alt.Axis(labels=labelled, ticks=labelled, labelFlush=True),
    )
    boxes = (
        alt.Chart(inline(rows))
        .mark_boxplot(
            size=26,
            color=colour,
            box={"fillOpacity": 0.3, "stroke": INK, "strokeWidth": 1},
            median={"color": INK, "thickness": 2},
            rule={"color": INK},
            ticks={"color": INK, "size": 12},
            outliers={"color": INK, "filled": False, "size": 14, "strokeWidth": 1},
        )
        .encode(
            x=alt.X(
                "box:O",
                title=panel.x or None,
                # All names, so that a box without a value leaves its place empty.
                scale=alt.Scale(domain=list(panel.values)),
                axis=alt.Axis(labelAngle=0),
            ),
            y=y,
        )
    )
    layers: list[Any] = [boxes]
    if panel.lines:
        level = alt.Chart(inline([{"value": value} for value in panel.lines]))
        layers.insert(0, level.mark_rule(color=SOFT, strokeWidth=1.5, strokeDash=[5, 3]).encode(y=y))
    title = alt.TitleParams(panel.title, frame="group")
    return alt.layer(*layers).properties(width=_WIDTH, height=height, title=title)
