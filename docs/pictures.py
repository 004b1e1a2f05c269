"""Draws the pictures of the pages below `docs/explanation`: part of `make docs`.

Hue, dash and shape all tell lines apart, so that a picture reads in black and white. The numbers are those of
`docs/results.py`, the same in every run.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import altair as alt

import tabulary as tb
from docs.results import (
    RHOS,
    SIZES,
    SMALL_RHOS,
    STRENGTHS,
    USUAL_RHO,
    Row,
    attenuation,
    cluster,
    coverage,
    false_findings,
    growth,
    perturbed_census,
    spending,
    true_privacy,
    wins,
)
from tabulary.planning.budgets import Target, compare_budgets
from tabulary.release.drawing import COLOURS, DASHES, INK, SHAPES, SOFT, styled, svg
from tabulary.studies.budget_curves import budget_chart
from tabulary.studies.perturbed_charts import risk_utility_chart

IMAGES = Path(__file__).parent / "images"


def growth_picture() -> alt.TopLevelMixin:
    """Return the picture of expected errors by mechanism."""
    kinds = ["residual", "margins", "cells", "fourier", "efron-stein"]
    return _panels(
        growth(),
        x=alt.X(
            "attributes:Q",
            title="attributes",
            scale=alt.Scale(domain=[2, 20.5], nice=False),
            axis=_ticks(range(2, 21, 2)),
        ),
        y=alt.Y(
            "error:Q",
            title="expected standard error of a cell",
            scale=alt.Scale(type="log", domain=[1, 2_000], nice=False),
            axis=_ticks([1, 3, 10, 30, 100, 300, 1_000]),
        ),
        by="mechanism",
        kinds=kinds,
        title="The planner stays at or below every other mechanism as tables multiply",
        subtitle=[
            "All pairs of equal attributes. A line ends where a mechanism would need too large a table; fourier and",
            "efron-stein are the same on two levels, and at ε = 1 on eight.",
        ],
    )


def spending_picture() -> alt.TopLevelMixin:
    """Return the picture of how the planner spreads a budget."""
    names = ["total", "one attribute", "pairs", "triples"]
    objectives = ["rmse", "max", "shrink"]
    charts = []
    for panel in dict.fromkeys(row["panel"] for row in spending()):
        rows = [
            {**row, "order": names[row["order"]], "label": _percent(row["share"])}
            for row in spending()
            if row["panel"] == panel
        ]
        orders = list(dict.fromkeys(row["order"] for row in rows))
        bars = alt.Chart().encode(
            x=alt.X(
                "order:N", title=None, sort=names, scale=alt.Scale(domain=orders), axis=alt.Axis(labelAngle=0)
            ),
            xOffset=alt.XOffset("objective:N", sort=objectives),
            y=alt.Y(
                "share:Q",
                title="share of the budget",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(domain=[0, 1.05], nice=False),
            ),
        )
        drawn = bars.mark_bar(stroke=INK, strokeWidth=0.7).encode(
            color=alt.Color(
                "objective:N",
                scale=alt.Scale(domain=objectives, range=["#0b3c6f", "#8fb3d9", "#f3c89a"]),
                legend=alt.Legend(title="objective", orient="bottom"),
            )
        )
        labels = bars.mark_text(dy=-7, fontSize=10, color=INK).encode(text="label:N")
        charts.append(
            alt.layer(drawn, labels, data=alt.Data(values=rows)).properties(
                width=96 * len(orders), height=210, title=panel
            )
        )
    return _arranged(
        charts,
        title="Shrinkage moves budget from interactions to what they rest on",
        subtitle=f"Share of a Gaussian budget, ρ = {USUAL_RHO}, that goes to sets of each size",
        apart=True,
    )


def wins_picture() -> alt.TopLevelMixin:
    """Return the picture of how much nearer shrunk tables are."""
    rows = []
    for row in wins():
        for measure, shown in (("rmse", "root mean squared error of a cell"), ("l1", "L1 distance")):
            rows.append(
                {
                    "panel": shown,
                    "population": row["population"],
                    "rho": row["rho"],
                    "ratio": row[f"linear {measure}"] / row[f"shrunk {measure}"],
                }
            )
    return _panels(
        rows,
        x=_budget(RHOS),
        y=alt.Y(
            "ratio:Q",
            title="error of linear / error of shrunk",
            scale=alt.Scale(type="log", domain=[0.8, 40], nice=False),
            axis=_ticks([1, 2, 3, 5, 10, 20, 30]),
        ),
        by="population",
        kinds=list(dict.fromkeys(row["population"] for row in rows)),
        title="Shrinkage wins where cells are small against their noise, and changes nothing elsewhere",
        subtitle="Tables of up to two attributes of generated populations; above 1 the shrunk tables are nearer.",
        rule=1.0,
    )


def cluster_picture() -> alt.TopLevelMixin:
    """Return the picture of a cluster that shrinkage takes away."""
    rows, facts = cluster()
    kinds = ["linear", "truth", "shrunk"]
    chart = alt.Chart().encode(
        x=alt.X("region:O", title="region", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("kind:N", sort=kinds, scale=alt.Scale(domain=kinds)),
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=kinds, range=["#7a93ad", "#000000", "#b3470f"]),
            legend=alt.Legend(title=None, orient="bottom", symbolStrokeWidth=1, symbolSize=70),
        ),
    )
    points = chart.mark_point(filled=True, size=60, opacity=1).encode(
        y="count:Q",
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=["circle", "diamond", "square"])),
    )
    whiskers = chart.mark_rule(strokeWidth=1.5).encode(
        y=alt.Y("low:Q", title="people with diagnosis 13"), y2="high:Q"
    )
    drawn = alt.layer(
        whiskers.properties(data=alt.Data(values=[row for row in rows if "low" in row])),
        points.properties(data=alt.Data(values=rows)),
    ).properties(width=720, height=260)
    return _arranged(
        [drawn],
        title="Nearer on the whole, and wrong where it matters: the cluster in region 18 is smoothed away",
        subtitle=(
            "One column of a 20 × 15 table at ε = 1/10, with 95 % intervals. Error of a cell over 40 releases: linear "
            f"{facts['linear rmse']:.1f}, shrunk {facts['shrunk rmse']:.1f}."
        ),
    )


def attenuation_picture() -> alt.TopLevelMixin:
    """Return the picture of what is left of differences between groups."""
    rows = [
        {**row, "strength": f"φ² = {row['strength']:g}", "panel": ""}
        for row in attenuation()
        if row["kind"] == "shrunk"
    ]
    return _panels(
        rows,
        x=_budget(SMALL_RHOS),
        y=alt.Y(
            "kept:Q",
            title="share of the true interaction that is left",
            scale=alt.Scale(domain=[0, 1.05], nice=False),
            axis=alt.Axis(format="%"),
        ),
        by="strength",
        kinds=[f"φ² = {s:g}" for s in STRENGTHS],
        title="What the noise hides, shrinkage takes out: weak differences look like none",
        subtitle="50,000 people, 12 groups by 8 answers, 30 releases a point. Linear tables keep 100 % on average.",
        rule=1.0,
        alone=True,
    )


def coverage_picture() -> alt.TopLevelMixin:
    """Return the picture of the intervals' coverage."""
    rows = [{**row, "panel": ""} for row in coverage()]
    return _panels(
        rows,
        x=alt.X(
            "size:O", title="true count", sort=[shown for _, _, shown in SIZES], axis=alt.Axis(labelAngle=0)
        ),
        y=alt.Y(
            "held:Q",
            title="intervals that hold the truth",
            scale=alt.Scale(domain=[0.75, 1], zero=False),
            axis=alt.Axis(format="%"),
        ),
        by="population",
        kinds=list(dict.fromkeys(row["population"] for row in rows)),
        title="Intervals of shrunk tables hold less than they claim in cells of middling size",
        subtitle=f"95 % intervals, tables of up to two attributes of generated populations at ρ = {USUAL_RHO}.",
        rule=0.95,
        alone=True,
    )


def risk_utility_picture() -> alt.TopLevelMixin:
    """Return the box plots of what two laws do to a table."""
    return risk_utility_chart(perturbed_census(), name="uk-census, age by occupation")


def true_privacy_picture() -> alt.TopLevelMixin:
    """Return the picture of δ(ε) of laws that name the same ε and nearly the same δ."""
    rows = true_privacy()
    return _panels(
        rows,
        x=alt.X("epsilon:Q", title="ε", scale=alt.Scale(nice=False), axis=alt.Axis(format="~g", tickCount=6)),
        y=alt.Y(
            "delta:Q",
            title="δ(ε), exact",
            scale=alt.Scale(type="log", domain=[1e-5, 1], nice=False),
            axis=alt.Axis(values=[10.0**-i for i in range(6)], format="~g"),
        ),
        by="law",
        kinds=list(dict.fromkeys(row["law"] for row in rows)),
        title="Laws that meet at the ε and δ they name part everywhere else",
        subtitle=[
            "The smallest δ that holds at each ε, from all pairs of neighbouring counts. Normal reaches its δ",
            "before the ε it names and is far more private to the left: that is what its larger noise buys.",
            "Without a bound δ is 0 from ε on.",
        ],
    )


def false_findings_picture() -> alt.TopLevelMixin:
    """Return the picture of how often each test finds association where there is none."""
    return _panels(
        false_findings(),
        x=alt.X(
            "epsilon:Q",
            title="ε of the noise (less noise to the right)",
            scale=alt.Scale(type="log", domain=[0.045, 2.2], nice=False),
            axis=alt.Axis(values=[0.05, 0.1, 0.2, 0.5, 1, 2], format="~g"),
        ),
        y=alt.Y(
            "rejected:Q",
            title="independent tables called associated",
            scale=alt.Scale(domain=[0, 1.03], nice=False),
            axis=alt.Axis(format="%"),
        ),
        by="test",
        kinds=["naive", "noise-aware"],
        title="A test that ignores the noise finds association in it",
        subtitle="10 × 10 tables without association, about 60 people a cell. The line is at the 5 % that both claim.",
        rule=0.05,
    )


def budgets_picture() -> alt.TopLevelMixin:
    """Return the picture of error against ε on the page about choosing it."""
    domain = tb.Domain({"region": range(8), "sex": range(2), "age": range(6), "job": range(3)})
    planner = partial(tb.plan, domain, "[sex age][region age][region sex job]")
    promises = map(tb.PureDP, ("1/10", "1/5", "1/2", 1, 2, 4))
    return budget_chart(compare_budgets(planner, promises), target=Target.parse("10% of cells of 1000"))


def _percent(share: float) -> str:
    return "~0" if share < 0.001 else f"{share:.1%}" if share < 0.01 else f"{share:.0%}"


def _ticks(values: Iterable[float]) -> alt.Axis:
    return alt.Axis(values=list(values))


def _budget(rhos: tuple[float, ...]) -> alt.X:
    powers = [10.0**i for i in range(-6, 1) if rhos[0] <= 10.0**i * 1.001 and 10.0**i <= rhos[-1] * 1.001]
    return alt.X(
        "rho:Q",
        title="budget ρ (less noise to the right)",
        scale=alt.Scale(type="log", domain=[rhos[0] / 1.2, rhos[-1] * 1.2], nice=False),
        axis=alt.Axis(values=powers, format="~g"),
    )


def _panels(
    rows: list[Row],
    *,
    x: alt.X,
    y: alt.Y,
    by: str,
    kinds: list[str],
    title: str,
    subtitle: str | list[str],
    rule: float | None = None,
    alone: bool = False,
) -> alt.TopLevelMixin:
    """Return line charts side by side, one a panel, in which hue, dash and shape all tell the lines apart."""
    legend = alt.Legend(
        title=None, orient="bottom", columns=5 if len(kinds) == 5 else 4, symbolStrokeWidth=1, symbolSize=70
    )
    count = len(kinds)
    chart = alt.Chart().encode(
        x=x,
        y=y,
        color=alt.Color(f"{by}:N", scale=alt.Scale(domain=kinds, range=list(COLOURS[:count])), legend=legend),
    )
    lines = chart.mark_line(strokeWidth=1.8).encode(
        strokeDash=alt.StrokeDash(
            f"{by}:N", scale=alt.Scale(domain=kinds, range=list(DASHES[:count])), legend=None
        )
    )
    points = chart.mark_point(filled=True, size=45, opacity=1).encode(
        shape=alt.Shape(f"{by}:N", scale=alt.Scale(domain=kinds, range=list(SHAPES[:count])), legend=legend)
    )
    charts = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        layers: list[alt.Chart] = []
        if rule is not None:
            level = alt.Chart(alt.Data(values=[{"at": rule}])).mark_rule(color=SOFT, strokeWidth=1)
            layers.append(level.encode(y=alt.Y("at:Q", title=y["title"])))
        data = alt.Data(values=[row for row in rows if row["panel"] == panel])
        layers += [lines.properties(data=data), points.properties(data=data)]
        size = {"width": 560, "height": 250} if alone else {"width": 330, "height": 230, "title": panel}
        charts.append(alt.layer(*layers).properties(**size))
    return _arranged(charts, title=title, subtitle=subtitle)


def _arranged(
    charts: list[alt.LayerChart], *, title: str, subtitle: str | list[str], apart: bool = False
) -> alt.TopLevelMixin:
    """Return the charts as one picture; kept apart, each has its own groups along x."""
    together = alt.concat(*charts, columns=2, spacing=24)
    if apart:
        together = together.resolve_scale(x="independent", xOffset="independent")
    return styled(together, title=title, subtitle=subtitle)


PICTURES: Mapping[str, Callable[[], alt.TopLevelMixin]] = {
    "planner-growth": growth_picture,
    "planner-budget": spending_picture,
    "shrink-wins": wins_picture,
    "shrink-misleads": cluster_picture,
    "shrink-attenuation": attenuation_picture,
    "shrink-coverage": coverage_picture,
    "perturbation-risk-utility": risk_utility_picture,
    "perturbation-privacy": true_privacy_picture,
    "inference-level": false_findings_picture,
    "error-against-epsilon": budgets_picture,
}


def draw(names: Iterable[str] = PICTURES) -> None:
    """Write the pictures below `docs/images`."""
    for name in names:
        (IMAGES / f"{name}.svg").write_text(svg(PICTURES[name]()), encoding="utf-8")


if __name__ == "__main__":
    draw()
