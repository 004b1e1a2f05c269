"""What can be measured: one file for each type of query."""

from tabulary.planning.queries.contrasts import ContrastMap, Contrasts
from tabulary.planning.queries.counts import Counts, MarginMap
from tabulary.planning.queries.linear_map import LinearMap
from tabulary.planning.queries.query import Estimator, Query
from tabulary.planning.queries.residuals import ResidualMap, Residuals

__all__ = [
    "ContrastMap",
    "Contrasts",
    "Counts",
    "Estimator",
    "LinearMap",
    "MarginMap",
    "Query",
    "ResidualMap",
    "Residuals",
]
