"""Draws the box plots of a study of perturbed tables, as Figure 1 of Rinott et al. (2018)."""

from typing import Any

import altair as alt

from tabulary.core.exact import show_fraction
from tabulary.release.drawing import COLOURS, INK, SOFT, inline, styled
from tabulary.studies.perturbation import MEASURES, Measure, RiskUtility

_SHOWN: dict[Measure, tuple[str, str]] = {
    "cramers_v": ("Cramér's V", "Cramér's V"),
    "l1": ("ℓ₁ loss", "mean |b − a|"),
    "l2": ("ℓ₂ loss", "mean (b − a)²"),
    "l3": ("ℓ₃ loss", "mean |√b − √a|"),
}
_FAMILIES = {"laplace": COLOURS[0], "normal": COLOURS[1]}
_WIDTH, _HEIGHT = 330, 165


def box_plots(found: RiskUtility, *, name: str) -> Any:
    """Return the chart of a study: a row a measure, a column a family, a box an ε, and a line at the true V.

    A box holds the middle half of the repetitions with the median across it; whiskers reach to the last value
    within one and a half times the box, and what lies beyond is a point of its own. Panels of a row have one scale.
    """
    panels = [_panel(found, measure, family) for measure in MEASURES for family in _FAMILIES]
    repetitions = len(found.trials) // len(found.laws)
    return styled(
        alt.concat(*panels, columns=len(_FAMILIES), spacing={"row": 14, "column": 18}),
        title="What Laplace and Normal perturbation do to a table at the same ε and nearly the same δ",
        subtitle=[
            f"{name}, perturbed {repetitions:,} times for each ε, negative counts published as zero. "
            "a: original, b: published count.",
            f"The dashed line is Cramér's V of the table itself, {found.truth:.4f}. Changes are at most ±m; the m of "
            "Normal gives it the δ of Laplace.",
        ],
    )


def _panel(found: RiskUtility, measure: Measure, family: str) -> Any:
    laws = [law for law in found.laws if law.family == family]
    shown = {law: show_fraction(law.epsilon) for law in laws}
    rows = [{"epsilon": shown[law], "value": value} for law in laws for value in found.values(measure, law)]
    heading, axis = _SHOWN[measure]
    first = family == next(iter(_FAMILIES))
    y = alt.Y(
        "value:Q",
        title=axis if first else None,
        scale=alt.Scale(domain=_range(found, measure), zero=False, nice=True),
        axis=alt.Axis(labels=first, ticks=first),
    )
    boxes = (
        alt.Chart(inline(rows))
        .mark_boxplot(
            size=26,
            color=_FAMILIES[family],
            box={"fillOpacity": 0.3, "stroke": INK, "strokeWidth": 1},
            median={"color": INK, "thickness": 2},
            rule={"color": INK},
            ticks={"color": INK, "size": 12},
            outliers={"color": INK, "filled": False, "size": 14, "strokeWidth": 1},
        )
        .encode(
            x=alt.X(
                "epsilon:O",
                title="ε" if measure == MEASURES[-1] else None,
                sort=list(shown.values()),
                axis=alt.Axis(labelAngle=0),
            ),
            y=y,
        )
    )
    layers: list[Any] = [boxes]
    if measure == "cramers_v":
        truth = alt.Chart(inline([{"value": found.truth}]))
        layers.insert(0, truth.mark_rule(color=SOFT, strokeWidth=1.5, strokeDash=[5, 3]).encode(y=y))
        # Bounds that are all the same are said once.
        bounds = [law.bound for law in laws]
        heading += f" (m = {', '.join(map(str, bounds[:1] if len(set(bounds)) == 1 else bounds))})"
    # Relative to the panel, since the labels of a scale would push the title of one panel and not of its neighbour.
    title = alt.TitleParams(f"{family.capitalize()}, {heading}", frame="group")
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=title)


def _range(found: RiskUtility, measure: Measure) -> list[float]:
    """Return the ends of the scale that both panels of a measure share; a loss starts at zero."""
    values = [getattr(trial, measure) for trial in found.trials]
    return (
        [min(*values, found.truth), max(*values, found.truth)] if measure == "cramers_v" else [0, max(values)]
    )
