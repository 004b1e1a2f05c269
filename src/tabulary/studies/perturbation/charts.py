"""Figures 1 to 3 of Rinott et al. (2018), and how often tests reject: the pictures of the study of perturbation."""

from collections.abc import Sequence
from typing import Any

from tabulary.studies.box_plots import Boxes, box_panels
from tabulary.studies.curves import Axis, Curve, Level, curves
from tabulary.studies.perturbation.study import PerturbationStudy
from tabulary.studies.perturbation.trials import MEASURES, RiskUtility
from tabulary.studies.proportion import SIGNIFICANT, rejected
from tabulary.studies.selecting import chosen, distinct, number, numbers
from tabulary.studies.study import Row

_FAMILIES = ("laplace", "normal")
_SHOWN = {
    "naive_p": ("p-value, naive", "p"),
    "aware_p": ("p-value, noise-aware", "p"),
    "cramers_v": ("Cramér's V", "Cramér's V"),
    "l1": ("ℓ₁ loss", "mean |b − a|"),
    "l2": ("ℓ₂ loss", "mean (b − a)²"),
    "l3": ("ℓ₃ loss", "mean |√b − √a|"),
}


def risk_utility_chart(found: RiskUtility, *, name: str) -> Any:
    """Return Figure 1 for one table and as many perturbations as were tried."""
    rows: list[Row] = [
        {
            "family": trial.family,
            "epsilon": float(trial.epsilon),
            "bound": trial.law.bound,
            **{measure: getattr(trial, measure) for measure in MEASURES},
        }
        for trial in found.trials
    ]
    return perturbed_chart(rows, {"cramers_v": found.truth}, name=name)


def perturbed_chart(rows: Sequence[Row], truth: Row, *, name: str) -> Any:
    """Return Figure 1: a row a measure, a column a family, a box an ε, and a line at the true V."""
    repetitions = len(rows) // len(distinct(rows, "family", "epsilon"))
    return box_panels(
        _panels(rows, truth, MEASURES),
        columns=len(_FAMILIES),
        title="What Laplace and Normal perturbation do to a table at the same ε and nearly the same δ",
        subtitle=[
            f"{name}, perturbed {repetitions:,} times for each ε, negative counts published as zero. "
            "a: original, b: published count.",
            f"The dashed line is Cramér's V of the table itself, {number(truth, 'cramers_v'):.4f}. "
            "Changes are at most ±m; the m of Normal gives it the δ of Laplace.",
        ],
    )


def independent_chart(rows: Sequence[Row], truth: Row, size: str, study: PerturbationStudy) -> Any:
    """Return Figure 2 or 3: p-values, Cramér's V and three losses of a table without association."""
    return box_panels(
        _panels(rows, truth, tuple(_SHOWN)),
        columns=len(_FAMILIES),
        title=f"A {size} table without association, perturbed: {truth['rows']} × {truth['columns']} cells",
        subtitle=[
            f"{study.people:,} people, {study.repetitions:,} perturbations for each ε"
            f"{_tested(rows, study.repetitions)}, negatives published as zero.",
            f"Dashed: the table itself, p = {number(truth, 'p'):.2f}, V = {number(truth, 'cramers_v'):.4f}; "
            f"and the level {SIGNIFICANT}, below which independence is rejected.",
        ],
        height=130,
    )


def levels_chart(rows: Sequence[Row]) -> Any:
    """Return how often tests reject what is true, over ε; where no fit converged there is no point."""
    points = []
    for (size,) in sorted(distinct(rows, "table"), key=str, reverse=True):
        for family in _FAMILIES:
            for test, named in (("naive_p", "naive"), ("aware_p", "noise-aware")):
                for (epsilon,) in distinct(rows, "epsilon"):
                    share = rejected(rows, test, table=size, family=family, epsilon=epsilon)
                    if share is None:
                        continue
                    low, high = share.interval()
                    series = f"{family.capitalize()}, {named}"
                    points.append(Curve(f"{size} table", series, float(epsilon), share.rate, low, high))
    counts = {
        str(size): len(distinct(chosen(rows, table=size), "number")) for (size,) in distinct(rows, "table")
    }
    tables = " and ".join(f"{count:,} {size}" for size, count in counts.items())
    return curves(
        points,
        x=Axis("ε", ticks=[float(epsilon) for (epsilon,) in distinct(rows, "epsilon")], format="~g"),
        y=Axis("independence rejected", format="%", domain=(0, 1.0)),
        title="How often tests find association where there is none",
        subtitle=[
            f"{tables} tables, all new, none with association, perturbed once by each law.",
            "Every test promises to reject 5 % of them (dashed). Bands: 95 % intervals.",
        ],
        levels=[Level(f"{size} table", SIGNIFICANT, "") for (size,) in distinct(rows, "table")],
    )


def bounds_shown(bounds: Sequence[int]) -> str:
    """Return the bounds of laws in words; those that are all the same are said once.

    >>> bounds_shown([7, 7]), bounds_shown([8, 10])
    ('m = 7', 'm = 8, 10')
    """
    return f"m = {', '.join(map(str, bounds[:1] if len(set(bounds)) == 1 else bounds))}"


def _tested(rows: Sequence[Row], repetitions: int) -> str:
    """Return how many perturbations of a law have a noise-aware p-value, in words, where not all of them have."""
    counts = [
        len(numbers(rows, "aware_p", family=family, epsilon=epsilon))
        for family, epsilon in distinct(rows, "family", "epsilon")
    ]
    least, most = min(counts), max(counts)
    if least == repetitions:
        return ""
    return f" (noise-aware: {least:,})" if least == most else f" (noise-aware: {least:,} to {most:,})"


def _panels(rows: Sequence[Row], truth: Row, measures: Sequence[str]) -> list[Boxes]:
    panels = []
    for place, measure in enumerate(measures):
        heading, axis = _SHOWN[measure]
        lines = _lines(measure, truth)
        every = [*numbers(rows, measure), *lines]
        for family in _FAMILIES:
            own = chosen(rows, family=family)
            epsilons = [epsilon for (epsilon,) in distinct(own, "epsilon")]
            bounds = [int(number(chosen(own, epsilon=epsilon)[0], "bound")) for epsilon in epsilons]
            bounded = f" ({bounds_shown(bounds)})" if place == 0 else ""
            panels.append(
                Boxes(
                    title=f"{family.capitalize()}, {heading}{bounded}",
                    values={f"{epsilon:g}": numbers(own, measure, epsilon=epsilon) for epsilon in epsilons},
                    domain=_ends(measure, every),
                    y=axis,
                    x="ε" if place == len(measures) - 1 else "",
                    lines=lines,
                )
            )
    return panels


def _lines(measure: str, truth: Row) -> tuple[float, ...]:
    if measure == "cramers_v":
        return (number(truth, "cramers_v"),)
    return (number(truth, "p"), SIGNIFICANT) if measure.endswith("_p") else ()


def _ends(measure: str, values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a scale: a probability lies between 0 and 1, a loss starts at zero."""
    if measure.endswith("_p"):
        return 0.0, 1.0
    return (min(values) if measure == "cramers_v" else 0.0), max(values)
