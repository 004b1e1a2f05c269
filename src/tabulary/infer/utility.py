"""How much of a table survives its release: the measures of Yang, Fienberg & Rinaldo, section 4.

Between a reference table, exact or not, and a released one with the same attributes. Pure functions of tables: what
they say of a confidential table is as confidential as it is. Distances between fits compare distributions, so a
release with the wrong total but the right shares has none.
"""

from collections.abc import Iterable

import numpy as np

from tabulary.core.domain import Margin
from tabulary.core.table import Table
from tabulary.core.workload import Workload
from tabulary.errors import InvalidTable
from tabulary.infer.fitted_model import FittedModel, shares
from tabulary.infer.loglinear import loglinear
from tabulary.infer.models import LogLinearModel
from tabulary.release import ReleasedTable

AnyTable = Table | ReleasedTable
Model = str | Workload | Iterable[Iterable[str]] | LogLinearModel


def margin_l1(reference: AnyTable, released: AnyTable, margins: str | Workload) -> dict[Margin, float]:
    """Return Σ |released - reference| over the cells of each margin; the largest is that of YFR's Figure 2.

    >>> from tabulary import Domain
    >>> domain = Domain({"A": "xy", "B": "xy"})
    >>> margin_l1(Table(domain, [[1, 2], [3, 4]]), Table(domain, [[2, 2], [3, 2]]), "[A][B]")
    {('A',): 3.0, ('B',): 3.0}
    """
    one, two = _alike(reference, released)
    wanted = Workload.parse(margins, one.domain) if isinstance(margins, str) else margins
    return {m: float(np.abs(two.project(m).counts - one.project(m).counts).sum()) for m in wanted}


def distribution_l1(one: AnyTable, two: AnyTable) -> float:
    """Return Σ |p - q| between the shares of two tables: 0 if they are equal, 2 if they have nothing in common.

    Negative counts are taken as zero, and an empty table as the uniform one.

    >>> from tabulary import Domain
    >>> domain = Domain({"A": "xy"})
    >>> distribution_l1(Table(domain, [1, 3]), Table(domain, [4, 4]))
    0.5
    """
    first, second = _alike(one, two)
    return float(np.abs(shares(first).counts - shares(second).counts).sum())


def total_variation(one: AnyTable, two: AnyTable) -> float:
    """Return half the L1 distance: the most by which the share of any set of cells differs."""
    return distribution_l1(one, two) / 2


def fit_l1(reference: AnyTable, released: AnyTable, model: Model) -> float:
    """Return Σ |p - q| between the fits of a model to both tables as they stand; YFR's Figure 4.

    >>> from tabulary import datasets
    >>> fungus = datasets.load("fungus")
    >>> uniform = Table(fungus.domain, np.ones(fungus.shape))
    >>> round(fit_l1(fungus, uniform, "[AD][AB][BE][CE][CF]"), 2)
    1.34
    """
    one, two = _fits(reference, released, model)
    return distribution_l1(one.fitted, two.fitted)


def fit_total_variation(reference: AnyTable, released: AnyTable, model: Model) -> float:
    """Return half of `fit_l1`."""
    return fit_l1(reference, released, model) / 2


def g2_change(reference: AnyTable, released: AnyTable, model: Model) -> float:
    """Return the likelihood ratio statistic of the released table less that of the reference; YFR's Figure 3.

    Both as if the counts were exact.
    """
    one, two = _fits(reference, released, model)
    return two.g2 - one.g2


def _fits(reference: AnyTable, released: AnyTable, model: Model) -> tuple[FittedModel, FittedModel]:
    one, two = _alike(reference, released)
    checked = LogLinearModel.parse(model, one.domain)
    return loglinear(one, checked, method="naive"), loglinear(two, checked, method="naive")


def _alike(one: AnyTable, two: AnyTable) -> tuple[Table, Table]:
    first, second = (table if isinstance(table, Table) else table.table for table in (one, two))
    if (first.domain.attributes, first.domain.levels) != (second.domain.attributes, second.domain.levels):
        raise InvalidTable(
            f"two tables are compared cell by cell, so they need the same attributes and levels: these are {first!r} "
            f"and {second!r}. Project or transpose one of them."
        )
    return first, second
