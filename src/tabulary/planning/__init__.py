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
from tabulary.planning.measured import MeasuredMargin
from tabulary.planning.measurement import Measurement
from tabulary.planning.plan import Plan
from tabulary.planning.residual_draws import ResidualNoise

__all__ = [
    "CellErrors",
    "ErrorLaw",
    "ExpectedError",
    "ExpectedErrors",
    "MeasuredMargin",
    "Measurement",
    "Plan",
    "ResidualNoise",
    "SimulatedErrors",
    "WeightedErrors",
    "plan",
    "plan_from_description",
    "show_width",
]
