"""Figures 1 to 3 of Rinott et al. (2018), and how often tests reject: the pictures of the study of perturbation."""

from collections.abc import Sequence
from typing import Any

from tabulary.studies import (
    SIGNIFICANT,
    Curve,
    Level,
    PanelAxis,
    Row,
    box_panels,
    chosen,
    curves,
    distinct,
    number,
    numbers,
    perturbed_panels,
    rejected,
)
from tabulary_papers.perturbation.study import PerturbationStudy

_FAMILIES = ("laplace", "normal")


def independent_chart(rows: Sequence[Row], truth: Row, size: str, study: PerturbationStudy) -> Any:
    """Return Figure 2 or 3: p-values, Cramér's V and three losses of a table without association."""
    return box_panels(
        perturbed_panels(rows, truth),
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
        x=PanelAxis("ε", ticks=[float(epsilon) for (epsilon,) in distinct(rows, "epsilon")], format="~g"),
        y=PanelAxis("independence rejected", format="%", domain=(0, 1.0)),
        title="How often tests find association where there is none",
        subtitle=[
            f"{tables} tables, all new, none with association, perturbed once by each law.",
            "Every test promises to reject 5 % of them (dashed). Bands: 95 % intervals.",
        ],
        levels=[Level(f"{size} table", SIGNIFICANT, "") for (size,) in distinct(rows, "table")],
    )


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
