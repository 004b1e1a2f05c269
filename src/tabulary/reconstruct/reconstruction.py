"""A published face of a measurement: its tables, the law of their errors, and facts about how they were made.

A face is a function of the measurement alone: its coins follow from the measurement's digest, and no clock shapes it.
A linear program that takes too long ends without tables.
Post-processing: nothing here reads data or spends budget.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import cast

import numpy as np

from tabulary.core.arrays import sum_onto
from tabulary.core.domain import Margin
from tabulary.core.progress import Progress
from tabulary.core.table import CellCounts
from tabulary.core.workload import show_margin
from tabulary.errors import UnknownMargin
from tabulary.planning import CurveErrors, ErrorCurve, ErrorLaw, Face, Measurement, Plan, StatedErrors
from tabulary.reconstruct.coins import coins_of
from tabulary.reconstruct.constrained import Facts, FullTable, measured_vector
from tabulary.reconstruct.linear import TablesOnDemand
from tabulary.reconstruct.rounding.full_table import uniforms_from
from tabulary.reconstruct.shift import FAILURE, shift_of

Curves = Mapping[Margin, ErrorCurve]


class Reconstruction(ABC):
    """The tables of one face, made from a measurement, for every margin that the measurement determines.

    `facts` are what the making of the tables says about itself.
    """

    def __init__(self, measurement: Measurement, face: Face, facts: Facts) -> None:
        self.measurement = measurement
        self.face = face
        self.facts = dict(facts)

    @property
    def plan(self) -> Plan:
        """The plan that was measured."""
        return self.measurement.plan

    @abstractmethod
    def table(self, margin: Margin) -> CellCounts:
        """Return the table on `margin`, its attributes in the domain's order; raise UnknownMargin if there is none."""

    @abstractmethod
    def errors(self, margin: Margin) -> ErrorLaw:
        """Return the law of the errors of the table on `margin`."""

    @property
    def curves(self) -> Curves:
        """The error of a cell by its count, for every table; empty where the law of the plan says it."""
        return {}

    @property
    def tables(self) -> dict[Margin, CellCounts]:
        """The tables that the plan lists."""
        return {margin: self.table(margin) for margin in self.plan.workload}


class LinearTables(Reconstruction):
    """The linear estimates themselves: unbiased, with the exact law of their errors; a cell may be negative."""

    def __init__(self, measurement: Measurement) -> None:
        super().__init__(measurement, Face("none", "none"), {})
        self._tables = TablesOnDemand(measurement.plan, measurement.values.__getitem__)

    def table(self, margin: Margin) -> CellCounts:
        """Return the linear estimate."""
        return self._tables.table(margin)

    def errors(self, margin: Margin) -> ErrorLaw:
        """Return the law that the plan knows."""
        return self.plan.error_of(margin)


class ShiftedTables(Reconstruction):
    """The linear estimates, raised by a constant that makes the full table non-negative with probability 95 %."""

    def __init__(self, measurement: Measurement) -> None:
        raised, shift = shift_of(measurement)
        super().__init__(measurement, Face("shift", "none"), {"shift": shift, "failure": FAILURE})
        self._tables = TablesOnDemand(measurement.plan, raised.values.__getitem__)
        self._shift = shift

    def table(self, margin: Margin) -> CellCounts:
        """Return the raised estimate."""
        return self._tables.table(margin)

    def errors(self, margin: Margin) -> ErrorLaw:
        """Return the law that the plan knows, with the bias of the shift added."""
        bias, law = self._shift / self.plan.domain.cells(margin), self.plan.error_of(margin)
        return StatedErrors(
            np.asarray(np.sqrt(law.standard_errors**2 + bias**2)),
            np.asarray(law.half_widths(0.95) + bias, dtype=np.float64),
        )


class OfficialTables(Reconstruction):
    """Non-negative tables that agree with each other; rounded, they are whole and additive.

    `held` are the largest tables, or those that a folder lists. A table below listed ones is a sum of the first of
    them, and not of a larger one that the folder lacks: real sums then have the same last digit before and after
    saving. `curves` makes the curves of their errors; it is called when the first is asked for, since that takes time.
    """

    def __init__(
        self,
        measurement: Measurement,
        face: Face,
        held: Mapping[Margin, CellCounts],
        facts: Facts,
        curves: Callable[[], Curves],
    ) -> None:
        super().__init__(measurement, face, facts)
        self.held = dict(held)
        self._make_curves = curves

    @cached_property
    def curves(self) -> Curves:
        """The error of a cell by its count, for every table."""
        return self._make_curves()

    def table(self, margin: Margin) -> CellCounts:
        """Return the sum of a larger table."""
        if margin in self.held:
            return self.held[margin]
        wanted, listed = set(margin), self.plan.workload.margins
        sources = self.held if margin in listed else (*listed, *self.held)
        holder = next((m for m in sources if wanted.issubset(m)), None)
        if holder is None:
            raise UnknownMargin(f"no published table contains {show_margin(margin)}.")
        return cast(CellCounts, sum_onto(self.table(holder), holder, wanted))

    def errors(self, margin: Margin) -> ErrorLaw:
        """Return the law of the errors of the table on `margin`."""
        impossible = self.plan.domain.impossible(margin)
        return CurveErrors(self.table(margin), self.curves[margin], impossible)


def reconstruct(
    measurement: Measurement, face: Face | None = None, *, progress: Progress | None = None
) -> Reconstruction:
    """Return a face of a measurement: the one that its plan names, or another.

    "none": the linear estimates. "shift": the same, raised until they are hardly ever negative. "least-squares" and
    "lp": margins of one non-negative full table. "shrink": non-negative tables that agree, each with as much of its
    interactions as can be distinguished from noise. Post-processing: reads no data, spends no budget. `progress` is
    called with (what, done, total), also later, when the errors are first asked for.
    """
    face = face or measurement.plan.face
    face.check(measurement.plan)
    if face.linear:
        return LinearTables(measurement)
    if face.reconstruct == "shift":
        return ShiftedTables(measurement)
    if progress is not None:
        progress("making the tables", 0, 0)
    return (_shrunk if face.reconstruct == "shrink" else _constrained)(measurement, face, progress)


def _constrained(measurement: Measurement, face: Face, progress: Progress | None) -> OfficialTables:
    unknown = FullTable(measurement.plan, face)
    full, facts = unknown.solve(measured_vector(measurement), coins_of(measurement))

    def curves() -> Curves:
        from tabulary.reconstruct.error_curves import constrained_curves

        covered = measurement.plan.estimator.covered
        return constrained_curves(measurement, face, full, covered, progress=progress)

    return OfficialTables(measurement, face, {unknown.attributes: full}, facts, curves)


def _shrunk(measurement: Measurement, face: Face, progress: Progress | None) -> OfficialTables:
    # Compiled loops, loaded where they are needed.
    from tabulary.reconstruct.error_curves import shrink_curves
    from tabulary.reconstruct.rounding.whole_tables import whole_tables
    from tabulary.reconstruct.shrink import Shrinkage

    estimator = measurement.plan.estimator
    shrinkage = Shrinkage(measurement.plan.domain, estimator.cover, estimator.variances)
    shrunken = shrinkage.tables(estimator.residuals(measurement.values.__getitem__))
    facts: dict[str, str | int | float | bool] = {
        "bias_share": shrunken.bias_share,
        "largest_difference": shrunken.difference,
        "independence_mixed_in": shrunken.blended,
    }
    held: Mapping[Margin, CellCounts] = shrunken.tables
    if face.rounding != "none":
        # Where records are moved, the smaller tables that are listed must come near to theirs as well.
        largest = max(map(len, shrunken.tables))
        listed = [m for m in measurement.plan.workload if 1 < len(m) < largest and largest > 2]
        real = {**shrunken.tables, **{m: shrinkage.held(shrunken.tables, m) for m in listed}}
        whole, rounded = whole_tables(
            measurement.plan.domain, real, uniform=uniforms_from(coins_of(measurement))
        )
        held = {margin: whole[margin] for margin in shrunken.tables}
        facts |= rounded
    return OfficialTables(
        measurement,
        face,
        held,
        facts,
        lambda: shrink_curves(measurement.plan, shrinkage, shrunken, held, progress=progress),
    )
