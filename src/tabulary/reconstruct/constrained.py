"""From a measurement to one full table, and from that to every wanted table: non-negative and consistent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, axes_outside
from tabulary.core.domain import Margin
from tabulary.core.table import CellCounts
from tabulary.noise import Entropy, IntegerNoise
from tabulary.planning import Face, Measurement, Plan
from tabulary.planning.queries import LinearMap
from tabulary.reconstruct.least_squares import solve_least_squares
from tabulary.reconstruct.lp import solve_program
from tabulary.reconstruct.rounding.full_table import round_table, rounding_report, uniforms_from

_SMALLEST_SPREAD = 1e-6

Facts = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class FullTable:
    """The full table that a plan's measurements are linear functions of: the unknown of a reconstruction.

    It spans the attributes that the workload names, as bits where the plan measures bits.
    """

    plan: Plan
    asked: Face | None = None

    @property
    def face(self) -> Face:
        """The face that is made: the one that was asked for, or that of the plan."""
        return self.asked or self.plan.face

    @cached_property
    def attributes(self) -> Margin:
        """The attributes of the full table, in the plan's domain."""
        return self.plan.domain.margin({a for margin in self.plan.workload for a in margin})

    @cached_property
    def linear_map(self) -> LinearMap:
        """The measured linear map of the full table."""
        named = self.plan.measured_margin(self.attributes)
        queries = [part.query for part in self.plan.measured]
        return self.plan.query.linear_map(queries, named, self.plan.measured_domain)

    @cached_property
    def impossible(self) -> NDArray[np.bool_]:
        """The cells that are zero: structural zeros, and codes without a level."""
        return self.plan.measured_domain.impossible(self.plan.measured_margin(self.attributes))

    def spread(self, of: Callable[[IntegerNoise], float]) -> Floats:
        """Return a property of the noise for every measured number."""
        sizes = [int(np.prod(self.plan.shape_of(part))) for part in self.plan.measured]
        # Noise that is almost always zero has a variance too small for a double; the solvers need a scale.
        each = [max(of(part.noise), _SMALLEST_SPREAD) for part in self.plan.measured]
        return np.repeat(each, sizes)

    def solve(self, values: Floats, entropy: Entropy) -> tuple[CellCounts, Facts]:
        """Return the full table that these measured numbers give, rounded if the face says so, and facts."""
        table, facts = self._solved(values)
        table = self.plan.encoded.decode(self.attributes, table)
        if self.face.rounding == "none":
            return table, facts
        wanted = tuple(tuple(self.attributes.index(a) for a in margin) for margin in self.plan.workload)
        method: Literal["nearest", "controlled"] = (
            "nearest" if self.face.rounding == "nearest" else "controlled"
        )
        impossible = self.plan.domain.impossible(self.attributes)
        rounded = round_table(
            table, method=method, margins=wanted, impossible=impossible, uniform=uniforms_from(entropy)
        )
        return rounded, {**facts, "largest_rounding": rounding_report(table, rounded, wanted).largest}

    def tables(self, full: CellCounts) -> dict[Margin, CellCounts]:
        """Return the wanted tables of a full one."""
        return {m: np.asarray(full.sum(axis=axes_outside(self.attributes, m))) for m in self.plan.workload}

    def _solved(self, values: Floats) -> tuple[Floats, Facts]:
        if self.face.reconstruct == "lp":
            deviation = self.spread(lambda noise: noise.variance**0.5)
            program = solve_program(
                self.linear_map, values, scales=deviation / deviation.max(), impossible=self.impossible
            )
            return program.table, {
                "b": program.b,
                "lower_bound": program.lower_bound,
                "feasible": program.feasible,
                "vertex": program.vertex,
                "solver": program.solver,
            }
        fitted = solve_least_squares(
            self.linear_map, values, variances=self.spread(lambda n: n.variance), impossible=self.impossible
        )
        return fitted.table, {"objective": fitted.objective, "gap": fitted.gap}


def measured_vector(measurement: Measurement) -> Floats:
    """Return everything that was measured as one vector, in the order of the plan."""
    return np.concatenate([v.reshape(-1) for v in measurement.values]).astype(np.float64)
