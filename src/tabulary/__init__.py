"""Publish contingency tables from confidential records, with a guarantee that can be checked."""

from tabulary.core.domain import Domain
from tabulary.core.privacy import ZCDP, ApproxDP, Neighbours, PureDP
from tabulary.core.table import Table
from tabulary.core.workload import Workload
from tabulary.planning import Plan, plan

__version__ = "0.1.0"
__all__ = ["ZCDP", "ApproxDP", "Domain", "Neighbours", "Plan", "PureDP", "Table", "Workload", "plan"]
