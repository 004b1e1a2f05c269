"""Curves with bands, the figure of most studies: a measure against ε or against a size, one panel beside the other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from tabulary.release.drawing import COLOURS, DASHES, INK, SHAPES, SOFT, inline, styled

_WIDTH, _HEIGHT, _COLUMNS = 330, 210, 2

# Words are measured in Helvetica, and drawn in whatever font a reader has: others are up to a fifth wider.
_ROOM, _TITLE_ROOM = 50, 12


@dataclass(frozen=True)
class PanelAxis:
    """An axis of a chart. "symlog" is a logarithm that has a zero; `ticks` are its labels, unless left to choose."""

    title: str
    scale: Literal["linear", "log", "symlog"] = "linear"
    ticks: Sequence[float] = ()
    format: str = ""
    domain: tuple[float, float] | None = None
    zero: bool = False

    def channel(self, kind: Any, field: str, *, shown: bool = True) -> Any:
        """Return the encoding of a field along this axis."""
        scale: dict[str, Any] = {"type": self.scale, "nice": False}
        if self.domain is not None:
            scale["domain"] = list(self.domain)
        elif self.scale == "linear":
            scale["zero"] = self.zero
        labels: dict[str, Any] = {"values": list(self.ticks)} if self.ticks else {"tickCount": 6}
        if kind is alt.Y:
            labels["titlePadding"] = _TITLE_ROOM
        if self.format:
            labels["format"] = self.format
        elif self.scale == "log" and not self.ticks:
            # One label a decade: all between them would run into each other.
            labels |= {"format": ",~g", "tickCount": 5}
        return kind(
            f"{field}:Q",
            title=self.title if shown else None,
            scale=alt.Scale(**scale),
            axis=alt.Axis(**labels),
        )


@dataclass(frozen=True)
class Curve:
    """A point of a curve: in which panel, of which series, where, and between what the band lies."""

    panel: str
    series: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Level:
    """A dashed line across a panel, with its name at the left end: a truth, a sample size, a bound."""

    panel: str
    y: float
    label: str


def curves(
    points: Sequence[Curve],
    *,
    x: PanelAxis,
    y: PanelAxis | Mapping[str, PanelAxis],
    title: str,
    subtitle: str | Sequence[str],
    series: Sequence[str] = (),
    levels: Sequence[Level] = (),
    columns: int = _COLUMNS,
    markers: bool = True,
    width: int = _WIDTH,
    height: int = _HEIGHT,
) -> Any:
    """Return the panels in the order of their first points, each with one curve a series and a band around it.

    Hue, dash and the shape of the markers tell the series apart. `y` may be an axis for each panel. Along a
    logarithmic axis only positive values can be shown: points that are not are left out, and bands that reach
    zero are cut at the smallest positive end of a band or curve.
    """
    names = list(series or dict.fromkeys(point.series for point in points))
    if len(names) > len(COLOURS):
        raise ValueError(f"{len(names)} curves cannot be told apart; at most {len(COLOURS)} can")
    panels = list(dict.fromkeys(point.panel for point in points))
    drawn = []
    for number, panel in enumerate(panels):
        own = y[panel] if isinstance(y, Mapping) else y
        kept = [point for point in points if point.panel == panel and _shown(point, x, own)]
        floor = lowest(kept)
        rows = [_row(point, own, floor) for point in kept]
        lines = [level for level in levels if level.panel == panel]
        first = number % columns == 0 or isinstance(y, Mapping)
        drawn.append(
            _panel(rows, lines, names, x, own, markers, labelled=first).properties(
                width=width, height=height, title=alt.TitleParams(panel, frame="group")
            )
        )
    arranged = alt.concat(*drawn, columns=columns, spacing={"row": 16, "column": 22})
    return styled(arranged, title=title, subtitle=[subtitle] if isinstance(subtitle, str) else list(subtitle))


def lowest(points: Iterable[Curve]) -> float:
    """Return the smallest positive value of curves and bands: where a logarithmic axis has to begin.

    >>> lowest([Curve("all", "cells", 1, 3.0, low=0.5), Curve("all", "cells", 2, 2.0, low=0.0)])
    0.5
    """
    ends = [end for point in points for end in (point.low, point.y) if end is not None and end > 0]
    return min(ends, default=1.0)


def _panel(
    rows: list[dict[str, Any]],
    levels: Sequence[Level],
    names: list[str],
    x: PanelAxis,
    y: PanelAxis,
    markers: bool,
    *,
    labelled: bool,
) -> Any:
    count = len(names)
    legend = (
        alt.Legend(
            title=None,
            orient="bottom",
            columns=min(count, 3),
            symbolSize=90,
            # The outline of a marker would be dashed like its line.
            symbolStrokeWidth=0 if markers else 1.8,
            labelLimit=320,
            columnPadding=_ROOM,
        )
        if count > 1
        else None
    )
    across, up = x.channel(alt.X, "x"), y.channel(alt.Y, "y", shown=labelled)
    colour = alt.Color("series:N", scale=alt.Scale(domain=names, range=list(COLOURS[:count])), legend=legend)
    dash = alt.StrokeDash(
        "series:N",
        scale=alt.Scale(domain=names, range=list(DASHES[:count])),
        # A marker in the legend would be drawn with the dashes of its line around it.
        legend=None if markers else legend,
    )
    chart = alt.Chart(inline(rows)).encode(x=across, color=colour)
    layers: list[Any] = []
    if levels:
        data = alt.Chart(inline([{"y": level.y, "label": level.label} for level in levels]))
        layers.append(data.mark_rule(color=SOFT, strokeWidth=1.2, strokeDash=[4, 3]).encode(y=up))
        layers.append(
            data.mark_text(align="left", dx=4, dy=-6, color=INK, fontSize=10).encode(
                y=up, x=alt.value(0), text="label:N"
            )
        )
    if any(row["low"] is not None for row in rows):
        band = chart.transform_filter("isValid(datum.low)").mark_area(opacity=0.16)
        layers.append(band.encode(y=y.channel(alt.Y, "low", shown=labelled), y2="high:Q"))
    layers.append(chart.mark_line(strokeWidth=1.8).encode(y=up, strokeDash=dash))
    if markers:
        shape = alt.Shape(
            "series:N", scale=alt.Scale(domain=names, range=list(SHAPES[:count])), legend=legend
        )
        layers.append(chart.mark_point(filled=True, size=34, opacity=1).encode(y=up, shape=shape))
    return alt.layer(*layers)


def _shown(point: Curve, x: PanelAxis, y: PanelAxis) -> bool:
    return (x.scale != "log" or point.x > 0) and (y.scale != "log" or point.y > 0)


def _row(point: Curve, y: PanelAxis, floor: float) -> dict[str, Any]:
    low = point.low
    if low is not None and y.scale == "log":
        low = max(low, floor)
    return {"series": point.series, "x": point.x, "y": point.y, "low": low, "high": point.high}
