"""What can be measured: one file for each type of query."""

from tabulary.planning.queries.contrasts import ContrastMap, Contrasts
from tabulary.planning.queries.counts import Counts, CountsEstimator, MarginMap
from tabulary.planning.queries.linear_map import LinearMap
from tabulary.planning.queries.query import Estimator, Kept, Query, Values
from tabulary.planning.queries.residuals import ResidualMap, Residuals

__all__ = [
    "ContrastMap",
    "Contrasts",
    "Counts",
    "CountsEstimator",
    "Estimator",
    "Kept",
    "LinearMap",
    "MarginMap",
    "Query",
    "ResidualMap",
    "Residuals",
    "Values",
]
