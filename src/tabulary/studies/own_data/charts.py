"""The curves of a study of one plan: a measure against ε or ρ, one curve a mechanism, the plan's own amount marked."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from tabulary.core.budget import amount, show_amount, symbol
from tabulary.core.workload import show_margin
from tabulary.release.drawing import INK, SOFT, inline
from tabulary.studies.curve_panels import Curve, PanelAxis, curves, lowest
from tabulary.studies.own_data.findings import SHARE_BAND, Band, Findings, band_words
from tabulary.studies.own_data.grid import Series
from tabulary.studies.own_data.study import PlanStudy
from tabulary.studies.study import Figure

Reader = Callable[[Series, Any], Band | None]

MOST_PANELS = 6
"""More tables than these are shown by the worst of them."""


_MOST_TICKS = 7


@dataclass(frozen=True)
class Panel:
    """A measure as one panel: how it is called, along which axis, and where its bands are."""

    title: str
    axis: str
    read: Reader
    share: bool = False
    # Panels of one group have the same scale, so that they can be compared.
    group: str = ""


def table_figures(study: PlanStudy, found: Findings) -> list[Figure]:
    """Return the errors that one release may have, beside what was expected, then as shares, then table by table."""
    people, band = "people a cell", band_words(study.repetitions)
    together = [
        Panel("All tables of one release", people, _of(found, "rmse"), group="all"),
        Panel("The worst table of one release", people, _of(found, "worst_rmse"), group="all"),
        Panel("All tables, root mean square of the repetitions", people, _alone(found.rmse), group="all"),
        Panel("All tables, expected by the plan alone", people, _alone(found.expected), group="all"),
    ]
    relative = [
        Panel("Σ |error| over the people, mean of the tables", "share of the people", _of(found, "l1_share")),
        Panel(
            "Largest relative error, cells with 1 % or more",
            "relative error",
            _of(found, "largest_relative_error"),
        ),
    ]
    made = [
        _figure(
            study,
            "errors",
            "Root mean squared error of the tables",
            f"above the {band}; below root mean squares",
            together,
        ),
        _figure(study, "shares", "Errors as shares", band, relative),
    ]
    chosen = [show_margin(margin) for margin in study.measures.margins]
    if 1 < len(chosen) <= MOST_PANELS:
        each = [Panel(name, people, _of(found, "rmse", "tables", name), group="each") for name in chosen]
        made.append(_figure(study, "each-table", "Root mean squared error, table by table", band, each))
    return [figure for figure in made if figure is not None]


def model_figures(study: PlanStudy, found: Findings) -> list[Figure]:
    """Return what becomes of each log-linear model."""
    panels = []
    for model in map(str, study.measures.models):
        panels += [
            Panel(f"{model}: L1 distance of the fits", "Σ |p - q|", _of(found, "fit_l1", "models", model)),
            Panel(
                f"{model}: change of G² / d.f.",
                "released less counted",
                _of(found, "g2_ratio_change", "models", model),
            ),
        ]
    figure = _figure(study, "models", "Log-linear models", band_words(study.repetitions), panels)
    return [] if figure is None else [figure]


def test_figures(study: PlanStudy, found: Findings) -> list[Figure]:
    """Return how often each test decides as on the counts or the made-up people, and how far Cramér's V is off."""
    decided, strength = [], []
    for name in map(show_margin, study.measures.tests):
        for way, words in (("naive", "counts taken as exact"), ("aware", "knowing the noise")):
            decided.append(
                Panel(
                    f"{name}, {words}",
                    "share that decide alike",
                    _share(found, f"{way}_agrees", name),
                    share=True,
                )
            )
            strength.append(
                Panel(
                    f"{name}, {words}",
                    "error of Cramér's V",
                    _of(found, f"{way}_v_error", "tests", name),
                    group=name,
                )
            )
    made = [
        _figure(
            study,
            "decisions",
            f"Tests of independence that decide as on the {study.truth}",
            SHARE_BAND,
            decided,
        ),
        _figure(study, "association", "How far Cramér's V is off", band_words(study.repetitions), strength),
    ]
    return [figure for figure in made if figure is not None]


def _of(found: Findings, measure: str, sheet: str = "all", about: str | None = None) -> Reader:
    return lambda series, privacy: found.band(sheet, measure, series, privacy, about)


def _share(found: Findings, measure: str, about: str) -> Reader:
    return lambda series, privacy: found.share("tests", measure, series, privacy, about)


def _alone(number: Callable[[Series, Any], float | None]) -> Reader:
    def read(series: Series, privacy: Any) -> Band | None:
        value = number(series, privacy)
        return None if value is None else Band(value, value, value)

    return read


def _figure(study: PlanStudy, stem: str, title: str, band: str, panels: Sequence[Panel]) -> Figure | None:
    points: dict[str, list[Curve]] = {}
    for panel in panels:
        own = [
            Curve(panel.title, series.label, float(amount(privacy)), found.middle, found.low, found.high)
            for series in study.series
            for privacy in study.grid
            if (found := panel.read(series, privacy)) is not None
        ]
        if own:
            points[panel.title] = own
    shown = [panel for panel in panels if panel.title in points]
    if not shown:
        return None
    letter = symbol(study.planned.plan.privacy)
    ticks = [float(amount(each)) for each in study.grid]
    across = PanelAxis(
        letter, scale="log", ticks=ticks, format=",~g", domain=(ticks[0] / 1.15, ticks[-1] * 1.15)
    )
    up = {panel.title: _axis(panel, shown, points) for panel in shown}
    chart = curves(
        [point for panel in shown for point in points[panel.title]],
        x=across,
        y=up,
        # A picture may be seen without its page.
        title=f"CONFIDENTIAL: {title}" if study.confidential else title,
        subtitle=[
            "From exact counts, not private" if study.confidential else "People made up from a release",
            f"{band[0].upper()}{band[1:]}",
            f"The upright line is the plan's own {letter}",
        ],
        series=[series.label for series in study.series],
    )
    mark = float(amount(study.planned.plan.privacy))
    chart.concat = [_marked(panel, mark, f"{letter} of the plan", across) for panel in chart.concat]
    said = " ".join(_described(panel, points[panel.title], letter) for panel in shown)
    who = "people made up from a release" if study.release is not None else "CONFIDENTIAL: from exact counts"
    return Figure(stem, chart, f"{title} ({who}): {band}.", f"{title}, {len(shown)} panels. {said}")


def _axis(panel: Panel, shown: Sequence[Panel], points: dict[str, list[Curve]]) -> PanelAxis:
    if panel.share:
        return PanelAxis(panel.axis, domain=(-0.04, 1.04), format="~%", ticks=(0, 0.25, 0.5, 0.75, 1))
    alike = [other for other in shown if other is panel or (panel.group and other.group == panel.group)]
    held = [point for other in alike for point in points[other.title]]
    if any(point.y <= 0 for point in held):
        return PanelAxis(panel.axis, scale="linear", zero=True)
    low = lowest(held)
    high = max(point.high if point.high is not None else point.y for point in held)
    ends = (low / 1.1, max(high, low * 1.2) * 1.1)
    return PanelAxis(panel.axis, scale="log", domain=ends, ticks=_ticks(*ends), format=",~g")


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two others, no more than a small panel has room for.

    >>> _ticks(7.5, 130.0)
    [10.0, 20.0, 50.0, 100.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for leading in ((1, 2, 5), (1,)):
        found = [float(f"{digit}e{power}") for power in powers for digit in leading]
        within = [tick for tick in found if low <= tick <= high]
        if len(within) <= _MOST_TICKS:
            break
    return within


def _marked(panel: Any, own: float, words: str, across: PanelAxis) -> Any:
    """Return a panel with an upright line at the plan's own amount."""
    mark = alt.Chart(inline([{"x": own, "label": words}])).encode(x=across.channel(alt.X, "x"))
    rule = mark.mark_rule(color=SOFT, strokeWidth=1.2, strokeDash=[4, 3])
    said = mark.mark_text(align="left", baseline="bottom", dx=4, color=INK, fontSize=10).encode(
        y=alt.value(panel.height - 4), text="label:N"
    )
    # Added to the panel as it is: its layers share the panel's data.
    panel.layer = [*panel.layer, rule, said]
    return panel


def _described(panel: Panel, points: Sequence[Curve], letter: str) -> str:
    told = []
    for series in dict.fromkeys(point.series for point in points):
        own = sorted((point for point in points if point.series == series), key=lambda point: point.x)
        first, last = own[0], own[-1]
        told.append(
            f"{series} from {first.y:.3g} at {letter} = {show_amount(first.x)} to {last.y:.3g} at {show_amount(last.x)}"
        )
    return f"{panel.title}: {'; '.join(told)}."
