"""The reconstruction that a plan names, applied to its measurement."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tabulary.core.domain import Margin
from tabulary.core.table import CellCounts
from tabulary.noise import Entropy, SystemEntropy
from tabulary.planning import ErrorLaw, Measurement, SimulatedErrors
from tabulary.planning.queries.residuals import ResidualsEstimator
from tabulary.reconstruct.constrained import Facts, FullTable, measured_vector
from tabulary.reconstruct.linear import linear_estimates
from tabulary.reconstruct.rounding.full_table import uniforms_from
from tabulary.reconstruct.shift import contrast_weights, integer_shift, weighted_shift
from tabulary.reconstruct.simulation import SECONDS, simulated_errors

if TYPE_CHECKING:
    from tabulary.reconstruct.shrink import Shrunken

FAILURE = 0.05
"""The probability with which a shifted table may still have a negative cell."""


@dataclass(frozen=True)
class Reconstruction:
    """The tables, the law of their errors where it is not the plan's own, and facts about the reconstruction."""

    tables: Mapping[Margin, CellCounts]
    errors: Mapping[Margin, ErrorLaw] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)


def reconstruct(
    measurement: Measurement, *, entropy: Entropy | None = None, simulation_seconds: float = SECONDS
) -> Reconstruction:
    """Return the tables of the plan, by the reconstruction that it names.

    "none": the linear estimates. "shift": the same, raised by a constant that makes the full table
    non-negative with probability 95 %. "least-squares" and "lp": margins of one non-negative full table, with errors
    by simulation. "shrink": non-negative tables that agree, each with as much of its interaction as can be
    distinguished from noise, with errors by simulation. Post-processing: reads no data, spends no budget.
    """
    plan = measurement.plan
    if plan.reconstruct == "none":
        return Reconstruction(linear_estimates(measurement), facts={"errors": "exact"})
    if plan.reconstruct == "shift":
        return _shifted(measurement)
    entropy = entropy or SystemEntropy()
    if plan.reconstruct == "shrink":
        return _shrunk(measurement, entropy, simulation_seconds)
    unknown = FullTable(plan)
    full, facts = unknown.solve(measured_vector(measurement), entropy)
    errors, repetitions = simulated_errors(unknown, full, entropy, seconds=simulation_seconds)
    kind = "simulated" if errors else "of the linear estimate"
    return Reconstruction(
        unknown.tables(full), errors, {**facts, "errors": kind, "repetitions": repetitions if errors else 0}
    )


def _shifted(measurement: Measurement) -> Reconstruction:
    plan = measurement.plan
    noise = plan.measured[0].noise
    unknown = FullTable(plan)
    shape = unknown.linear_map.shape
    if all(levels == 2 for levels in shape):
        shift: float = integer_shift(noise, unknown.linear_map.size, failure=FAILURE)
    else:
        axes = tuple(tuple(unknown.attributes.index(a) for a in part.margin) for part in plan.measured)
        shift = weighted_shift(noise, contrast_weights(shape, axes), failure=FAILURE)
    # The empty set comes first; the total is raised in whole numbers.
    raised = (measurement.values[0] + np.int64(np.ceil(shift)), *measurement.values[1:])
    tables = linear_estimates(replace(measurement, values=tuple(np.array(v) for v in raised)))
    errors: dict[Margin, ErrorLaw] = {}
    for margin in plan.workload:
        bias = float(np.ceil(shift)) / plan.domain.cells(margin)
        law = plan.error_of(margin)
        errors[margin] = SimulatedErrors(
            np.sqrt(law.standard_errors**2 + bias**2),
            np.asarray(law.half_widths(0.95) + bias, dtype=np.float64),
        )
    facts: Facts = {"shift": float(np.ceil(shift)), "failure": FAILURE, "errors": "exact, bias included"}
    return Reconstruction(tables, errors, facts)


def _shrunk(measurement: Measurement, entropy: Entropy, seconds: float) -> Reconstruction:
    # Compiled loops, loaded where they are needed.
    from tabulary.reconstruct.rounding.whole_tables import whole_tables
    from tabulary.reconstruct.shrink import Shrinkage
    from tabulary.reconstruct.shrink_simulation import FEWEST, simulated_shrink_errors

    plan = measurement.plan
    shrinkage = Shrinkage(plan.domain, plan.workload.margins, plan.residual_variances)
    estimator = plan.estimator
    assert isinstance(estimator, ResidualsEstimator)
    shrunken = shrinkage.tables(estimator.residuals(measurement.values.__getitem__))
    # The tables are ready; half of the usual simulation time is enough for their errors.
    errors, repetitions = simulated_shrink_errors(plan, shrinkage, shrunken, entropy, seconds=seconds / 2)
    facts: dict[str, str | int | float | bool] = {
        "bias_share": shrunken.bias_share,
        "largest_difference": shrunken.difference,
        "independence_mixed_in": shrunken.blended,
        "errors": f"{'simulated' if repetitions >= FEWEST else 'closed form'}, bias included",
        "repetitions": repetitions,
    }
    if plan.rounding == "none":
        real = {m: shrinkage.held(shrunken.tables, m) for m in plan.workload}
        return Reconstruction(real, errors, facts)
    whole, rounded = whole_tables(plan.domain, shrunken.tables, uniform=uniforms_from(entropy))
    tables = {margin: shrinkage.held(whole, margin) for margin in plan.workload}
    return Reconstruction(tables, _moved(errors, shrunken, tables), {**facts, **rounded})


def _moved(
    errors: Mapping[Margin, ErrorLaw], shrunken: "Shrunken", tables: Mapping[Margin, CellCounts]
) -> dict[Margin, ErrorLaw]:
    """Return the errors with those of rounding added: the squared move, averaged over the cells of each table."""
    found: dict[Margin, ErrorLaw] = {}
    for margin, law in errors.items():
        move = float(np.sqrt(np.mean((tables[margin] - shrunken.table(margin)) ** 2)))
        deviations = law.standard_errors
        stretched = np.sqrt(deviations**2 + move**2)
        widths = law.half_widths(0.95) * np.divide(
            stretched, deviations, out=np.ones_like(stretched), where=deviations > 0
        )
        found[margin] = SimulatedErrors(np.where(deviations > 0, stretched, 0.0), widths, 0.95)
    return found
