"""From a workload and a budget to a plan, its expected error, and the choice of the best mechanism."""

from tabulary.planning.accuracy import (
    CellErrors,
    ErrorLaw,
    ExpectedError,
    ExpectedErrors,
    SimulatedErrors,
    WeightedErrors,
    show_width,
)
from tabulary.planning.choice import plan, plan_from_description
from tabulary.planning.measurement import Measurement, Part
from tabulary.planning.mechanism import MECHANISMS, Mechanism
from tabulary.planning.plan import Plan
from tabulary.planning.queries import Contrasts, Counts, Query, Residuals

__all__ = [
    "MECHANISMS",
    "CellErrors",
    "Contrasts",
    "Counts",
    "ErrorLaw",
    "ExpectedError",
    "ExpectedErrors",
    "Measurement",
    "Mechanism",
    "Part",
    "Plan",
    "Query",
    "Residuals",
    "SimulatedErrors",
    "WeightedErrors",
    "plan",
    "plan_from_description",
    "show_width",
]
