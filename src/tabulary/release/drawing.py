"""The look of the project's charts, and how they become SVG and PNG.

Hue, dash and shape all distinguish things, so that a picture is readable in black and white. Altair is slow to
import, so only drawing code imports this module.
"""

from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from tabulary.release.palette import COLOURS, DASHES, INK, SHAPES, SOFT

__all__ = [
    "COLOURS",
    "DASHES",
    "INK",
    "SHAPES",
    "SOFT",
    "html",
    "inline",
    "png",
    "save_both",
    "styled",
    "svg",
]

# A screen with two pixels a point shows a PNG of twice the size sharply.
_PNG_SCALE = 2
# On the right there is room for a title in a wider type than it was measured in, where Helvetica and Arial are missing.
_PADDING = {"left": 14, "top": 14, "right": 40, "bottom": 14}


def inline(rows: list[dict[str, Any]]) -> Any:
    """Return rows as the data of a chart, written into the picture's own description."""
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def styled(chart: Any, *, title: str, subtitle: str | list[str]) -> Any:
    """Return a chart, or several put together, under one title and in the style of the house."""
    heading = alt.TitleParams(
        title, subtitle=subtitle, anchor="start", fontSize=15, subtitleFontSize=12, offset=14
    )
    return (
        chart.properties(title=heading, background="white", padding=_PADDING)
        .configure(font="Helvetica, Arial, sans-serif")
        .configure_axis(
            labelColor=INK,
            titleColor=INK,
            gridColor="#e3e7eb",
            titleFontWeight="normal",
            titleFontSize=12,
            labelFontSize=11,
        )
        .configure_title(color=INK, subtitleColor=SOFT, fontSize=12, fontWeight=600)
        .configure_legend(labelColor=INK, titleColor=INK, labelFontSize=12, symbolOpacity=1)
        .configure_view(stroke="#b8c0c8")
    )


def svg(chart: Any) -> str:
    """Return a chart as SVG, with its words as words."""
    return str(vl_convert.vegalite_to_svg(chart.to_json()))


def png(chart: Any) -> bytes:
    """Return a chart as PNG, sharp on a screen with two pixels a point."""
    return bytes(vl_convert.vegalite_to_png(chart.to_json(), scale=_PNG_SCALE))


def html(chart: Any) -> str:
    """Return a chart as a page that needs nothing from elsewhere."""
    return str(vl_convert.vegalite_to_html(chart.to_json(), bundle=True))


def save_both(chart: Any, stem: Path) -> tuple[Path, Path]:
    """Return the SVG and the PNG file that the chart was written to; files of these names are replaced."""
    drawn, painted = stem.with_suffix(".svg"), stem.with_suffix(".png")
    drawn.write_text(svg(chart), encoding="utf-8")
    painted.write_bytes(png(chart))
    return drawn, painted
