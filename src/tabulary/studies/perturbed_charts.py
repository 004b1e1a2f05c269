"""Box plots of perturbed tables, a row per measure and a column per family: Figure 1 of Rinott et al. (2018)."""

from collections.abc import Sequence
from typing import Any

from tabulary.studies.box_plots import Boxes, box_panels
from tabulary.studies.perturbed_tables import MEASURES, RiskUtility
from tabulary.studies.proportion import SIGNIFICANT
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
    """Return Figure 1: one row per measure, one column per family, one box per ε, and a line at the true V."""
    repetitions = len(rows) // len(distinct(rows, "family", "epsilon"))
    return box_panels(
        perturbed_panels(rows, truth, MEASURES),
        columns=len(_FAMILIES),
        title="What Laplace and Normal perturbation do to a table at the same ε and nearly the same δ",
        subtitle=[
            f"{name}, perturbed {repetitions:,} times for each ε, negative counts published as zero. "
            "a: original, b: published count.",
            f"The dashed line is Cramér's V of the table itself, {number(truth, 'cramers_v'):.4f}. "
            "Changes are at most ±m; the m of Normal gives it the δ of Laplace.",
        ],
    )


def perturbed_panels(rows: Sequence[Row], truth: Row, measures: Sequence[str] = tuple(_SHOWN)) -> list[Boxes]:
    """Return a panel for each measure and family, a box for each ε; p-values and V have a line at the truth."""
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


def bounds_shown(bounds: Sequence[int]) -> str:
    """Return the bounds of laws in words; those that are all the same are said once.

    >>> bounds_shown([7, 7]), bounds_shown([8, 10])
    ('m = 7', 'm = 8, 10')
    """
    return f"m = {', '.join(map(str, bounds[:1] if len(set(bounds)) == 1 else bounds))}"


def _lines(measure: str, truth: Row) -> tuple[float, ...]:
    if measure == "cramers_v":
        return (number(truth, "cramers_v"),)
    return (number(truth, "p"), SIGNIFICANT) if measure.endswith("_p") else ()


def _ends(measure: str, values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a scale: a probability lies between 0 and 1, a loss starts at zero."""
    if measure.endswith("_p"):
        return 0.0, 1.0
    return (min(values) if measure == "cramers_v" else 0.0), max(values)
