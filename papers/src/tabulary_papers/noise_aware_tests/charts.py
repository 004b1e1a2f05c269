"""Table 3 as a picture, and Figure 4: the pictures of the study of noise-aware tests."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from tabulary.studies import (
    COLOURS,
    INK,
    SHAPES,
    SIGNIFICANT,
    SOFT,
    Row,
    Sheets,
    chosen,
    inline,
    numbers,
    rejected,
    styled,
)
from tabulary_papers.noise_aware_tests.printed import (
    DELTAS,
    DEPENDENT,
    INDEPENDENT,
    NAIVE,
    ORIGINAL,
    RATIO,
    TABLE_3,
    WEAKLY,
)
from tabulary_papers.noise_aware_tests.study import COLUMNS, MATCHED

_LABELS = {
    ORIGINAL: "before the noise",
    NAIVE: "naive",
    RATIO: "likelihood ratio, χ²",
    MATCHED: "likelihood ratio, matched law",
}
_WIDTH, _NARROW, _HEIGHT = 330, 225, 300
# The width of a bar and the end of the axis, by the share that is tested.
_BINS = {"0.5": (0.5, 8.0), "0.7": (2.0, 30.0)}
_KINDS = {
    INDEPENDENT: ("independent", INDEPENDENT),
    WEAKLY: ("dependent, interaction 0.31", DEPENDENT),
    DEPENDENT: ("dependent, 0.7 as stated", DEPENDENT),
}


def table_3_chart(rows: Sequence[Row]) -> Any:
    """Return how often each test rejects, ours with intervals and the printed share beside it.

    Where every fit of a design failed there is no point of ours.
    """
    panels = [_rejections(rows, kind, first=kind == INDEPENDENT) for kind in _KINDS]
    return styled(
        alt.hconcat(*panels, spacing=20),
        title="How often tests of perturbed tables reject independence",
        subtitle=[
            "Share of 10 × 10 tables in which independence is rejected at 5 % (line), with 95 % intervals.",
            "Upright ticks: as printed in Table 3 of Rinott et al. (2018), whose dependent tables have the "
            "interaction 0.7, it says.",
        ],
    )


def _rejections(rows: Sequence[Row], kind: str, *, first: bool) -> Any:
    ours, printed = [], []
    designs = [f"ε = {epsilon}, m = {bound}" for epsilon, bound in DELTAS]
    for epsilon, bound in DELTAS:
        for test, (p_value, _) in COLUMNS.items():
            place = {"design": f"ε = {epsilon}, m = {bound}", "test": _LABELS[test]}
            share = rejected(rows, p_value, epsilon=epsilon, bound=bound, attributes=kind)
            if share is not None:
                low, high = share.interval()
                ours.append({**place, "share": share.rate, "low": low, "high": high})
            line = TABLE_3.get((epsilon, bound, _KINDS[kind][1], test))
            if line is not None:
                printed.append({**place, "share": line.share})
    labels = list(_LABELS.values())
    legend = alt.Legend(
        title=None, orient="bottom", columns=2, symbolSize=90, labelLimit=300, columnPadding=24
    )
    x = alt.X(
        "share:Q",
        title="independence rejected",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    y = alt.Y(
        "design:N",
        title=None,
        sort=designs,
        axis=alt.Axis(labels=first, ticks=False, labelPadding=8, minExtent=100 if first else 0),
    )
    offset = alt.YOffset("test:N", sort=labels, scale=alt.Scale(paddingOuter=0.6))
    colour = alt.Color(
        "test:N", scale=alt.Scale(domain=labels, range=list(COLOURS[: len(labels)])), legend=legend
    )
    shape = alt.Shape(
        "test:N", scale=alt.Scale(domain=labels, range=list(SHAPES[: len(labels)])), legend=legend
    )
    base = alt.Chart(inline(ours)).encode(y=y, yOffset=offset, color=colour)
    level = alt.Chart(inline([{"share": SIGNIFICANT}])).mark_rule(color=SOFT, strokeDash=[5, 3]).encode(x=x)
    intervals = base.mark_rule(strokeWidth=1.6).encode(x=alt.X("low:Q", title=None), x2="high:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x=x, shape=shape)
    ticks = (
        alt.Chart(inline(printed))
        .mark_tick(color=INK, thickness=2, size=13, orient="vertical")
        .encode(x=x, y=y, yOffset=offset)
    )
    layers = alt.layer(level, intervals, points, ticks)
    return layers.properties(width=_NARROW, height=_HEIGHT, title=_KINDS[kind][0])


def figure_4_chart(sheets: Sheets, critical: Mapping[int, float]) -> Any:
    """Return the histograms of the statistic for a true and a false share, with the exact law beside them."""
    panels = []
    for bound, at in critical.items():
        for p0, kind in (("0.5", "the true share 0.5"), ("0.7", "the false share 0.7")):
            drawn = numbers(chosen(sheets["one-count"], bound=bound), f"statistic_{p0}")
            law = chosen(sheets["one-count-law"], bound=bound)
            exact = list(zip(numbers(law, f"statistic_{p0}"), numbers(law, "probability"), strict=True))
            rows = _binned(drawn, exact, *_BINS[p0])
            panels.append(_histogram(rows, at, f"m = {bound}, testing {kind}", first=p0 == "0.5"))
    size = len(chosen(sheets["one-count"], bound=next(iter(critical))))
    return styled(
        alt.concat(*panels, columns=2, spacing={"row": 16, "column": 20}),
        title="The likelihood ratio of one released count: 80 people, probability 0.5, ε = 0.5",
        subtitle=[
            f"Bars: {size:,} draws. Points: the exact law. Dashed: the value with 95 % of the draws at the "
            "left up to it.",
            "The last bar of each panel holds all larger values.",
        ],
    )


def _binned(
    drawn: Sequence[float], exact: Sequence[tuple[float, float]], width: float, last: float
) -> list[dict[str, Any]]:
    """Return the share of draws and the probability in each interval of the statistic."""
    count = round(last / width)
    shares, chances = [0.0] * count, [0.0] * count
    for value in drawn:
        shares[min(int(value / width), count - 1)] += 1 / len(drawn)
    for value, chance in exact:
        chances[min(int(value / width), count - 1)] += chance
    return [
        {
            "low": i * width,
            "high": (i + 1) * width,
            "middle": (i + 0.5) * width,
            "ground": 0,
            "draws": shares[i],
            "exact": chances[i],
        }
        for i in range(count)
    ]


def _histogram(rows: list[dict[str, Any]], critical: float, title: str, *, first: bool) -> Any:
    y_title = "share" if first else None
    chart = alt.Chart(inline(rows))
    end = rows[-1]["high"]
    x = alt.X("low:Q", title="2 log likelihood ratio", scale=alt.Scale(domain=[0, end], nice=False))
    bars = chart.mark_rect(color=COLOURS[0], fillOpacity=0.3, stroke=COLOURS[0], strokeWidth=0.8).encode(
        x=x,
        x2="high:Q",
        y=alt.Y("draws:Q", title=y_title, axis=alt.Axis(format="%", tickCount=5)),
        y2="ground:Q",
    )
    points = (
        chart.transform_filter("datum.exact > 0.0005")
        .mark_point(filled=True, shape="diamond", size=26, color=INK, opacity=1)
        .encode(x="middle:Q", y=alt.Y("exact:Q", title=y_title))
    )
    rule = (
        alt.Chart(inline([{"at": critical, "label": f"{critical:.2f}"}]))
        .mark_rule(color=COLOURS[1], strokeWidth=1.6, strokeDash=[5, 3])
        .encode(x="at:Q")
    )
    label = (
        alt.Chart(inline([{"at": critical, "label": f"{critical:.2f}"}]))
        .mark_text(align="left", dx=4, dy=8, color=INK, fontSize=11)
        .encode(x="at:Q", y=alt.value(0), text="label:N")
    )
    return alt.layer(bars, points, rule, label).properties(width=_WIDTH, height=170, title=title)
