"""From a workload and a budget to a plan, its expected error, and the choice of the best mechanism."""

from tabulary.planning.accuracy import (
    CellErrors,
    ErrorLaw,
    ExpectedError,
    ExpectedErrors,
    StatedErrors,
    WeightedErrors,
    show_width,
)
from tabulary.planning.choice import plan, plan_from_description
from tabulary.planning.covariance import CellCovariance, Draws
from tabulary.planning.error_curve import CurveErrors, ErrorCurve
from tabulary.planning.face import Face
from tabulary.planning.measurement import Measurement, Part
from tabulary.planning.mechanism import MECHANISMS, Mechanism
from tabulary.planning.plan import Plan
from tabulary.planning.queries import (
    ContrastMap,
    Contrasts,
    Counts,
    CountsEstimator,
    Estimator,
    Kept,
    LinearMap,
    MarginMap,
    Query,
    ResidualMap,
    Residuals,
    Values,
)
from tabulary.planning.request import Request
from tabulary.planning.residual_draws import ResidualNoise

__all__ = [
    "MECHANISMS",
    "CellCovariance",
    "CellErrors",
    "ContrastMap",
    "Contrasts",
    "Counts",
    "CountsEstimator",
    "CurveErrors",
    "Draws",
    "ErrorCurve",
    "ErrorLaw",
    "Estimator",
    "ExpectedError",
    "ExpectedErrors",
    "Face",
    "Kept",
    "LinearMap",
    "MarginMap",
    "Measurement",
    "Mechanism",
    "Part",
    "Plan",
    "Query",
    "Request",
    "ResidualMap",
    "ResidualNoise",
    "Residuals",
    "StatedErrors",
    "Values",
    "WeightedErrors",
    "plan",
    "plan_from_description",
    "show_width",
]
