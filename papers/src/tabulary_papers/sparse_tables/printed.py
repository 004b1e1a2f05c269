"""What Yang, Fienberg & Rinaldo print in their Tables 7 and 8, beside the same from the printed counts.

Their G² cannot be had from their counts, one |B| is off by one, and one bound takes a margin of four attributes for
one of two: so every number stands here twice.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tabulary import Table
from tabulary.datasets import describe
from tabulary.infer import FittedModel, loglinear, utility
from tabulary.studies import Lab, Row, Sheets
from tabulary_papers.bounds import published_quantile_bound, yfr_theorem_1_bound, yfr_theorem_3_bound
from tabulary_papers.sparse_tables.methods import measured_as_published, mechanism_of, wanted

FAILURE = 0.05
"""The probability with which a bound of Table 8 may fail: δ there."""

EPSILONS = ("0.01", "1", "2")


@dataclass(frozen=True)
class Printed:
    """What the paper prints about a table: likelihood ratio, degrees of freedom, distance from uniform, and Table 8.

    A bound is `constant` · log(`sets`/δ)/ε + `sets`, and the noise has the scale `scale`/ε.
    """

    g2: float
    degrees_of_freedom: int
    from_uniform: float
    scale: float
    constant: float
    sets: int


PRINTED: Mapping[str, Printed] = {
    "fungus": Printed(22.96, 52, 0.83, 3, 384, 12),
    "autoworkers": Printed(48.18, 42, 0.86, 5.5, 704, 22),
    "rochdale": Printed(238.18, 225, 1.43, 3.625, 1856, 29),
    "journey-to-work": Printed(365.82, 134, 1.43, 1.32, 84.5, 169),
}
TABLES = tuple(PRINTED)


@dataclass(frozen=True, eq=False)
class Reference:
    """The fit of the paper's model to a table itself, and its L1 distance from equal cells, between 0 and 2."""

    fit: FittedModel
    from_uniform: float


@lru_cache(maxsize=len(TABLES))
def reference(name: str) -> Reference:
    """Return the truth about one of the tables.

    >>> round(reference("fungus").from_uniform, 2)
    1.34
    """
    data = describe(name)
    fit = loglinear(data.table, wanted(data))
    uniform = Table(data.table.domain, np.ones(data.table.shape))
    return Reference(fit, utility.distribution_l1(fit.fitted, uniform))


def comparisons(lab: Lab, names: tuple[str, ...]) -> Sheets:
    """Return Tables 7 and 8, printed and recomputed. Draws nothing."""
    return {
        "table-7": [_table_7(name) for name in names],
        "table-8": [_table_8(name, epsilon) for name in names for epsilon in EPSILONS],
    }


def _table_7(name: str) -> Row:
    data, printed, truth = describe(name), PRINTED[name], reference(name)
    counts = data.table.counts
    return {
        "table": name,
        "dimension": f"2^{counts.ndim}" if set(counts.shape) == {2} else " × ".join(map(str, counts.shape)),
        "cells": int(counts.size),
        "zero_cells": int((counts == 0).sum()),
        "n": int(data.table.total),
        "model": str(wanted(data)),
        "g2_printed": printed.g2,
        "g2": truth.fit.g2,
        "degrees_of_freedom_printed": printed.degrees_of_freedom,
        "degrees_of_freedom": truth.fit.nominal_degrees_of_freedom,
        "degrees_of_freedom_after_zeros": truth.fit.degrees_of_freedom,
        "from_uniform_printed": printed.from_uniform,
        "from_uniform": truth.from_uniform,
    }


@lru_cache(maxsize=1024)
def paper_bound(name: str, epsilon: float) -> float:
    """Return the paper's bound of the L1 distance of a margin of a table, for the margin that has the largest.

    Of its Theorem 1 for binary tables, of its Theorem 3 for the other one, with all sets counted.

    >>> round(paper_bound("fungus", 1))
    2117
    """
    data = describe(name)
    work = wanted(data)
    binary = mechanism_of(data.table.domain) == "YFR Table 1"
    bound = yfr_theorem_1_bound if binary else yfr_theorem_3_bound
    return max(bound(work, margin, epsilon, failure=FAILURE) for margin in work)


def _table_8(name: str, epsilon: str) -> Row:
    data, printed = describe(name), PRINTED[name]
    number = float(epsilon)
    published = measured_as_published(data, epsilon, "as-published")
    exact = measured_as_published(data, epsilon, "exact")
    return {
        "table": name,
        "epsilon": number,
        "mechanism": published.mechanism,
        "terms_printed": printed.sets,
        "terms": int(published.values.size),
        "scale_printed": printed.scale / number,
        "scale_as_published": published.published_scale,
        "scale_exact": exact.published_scale,
        "true_epsilon_as_published": float(published.true_epsilon),
        "true_epsilon_exact": float(exact.true_epsilon),
        "failure": FAILURE,
        "bound_printed": printed.constant / number * math.log(printed.sets / FAILURE) + printed.sets,
        "bound_recomputed": paper_bound(name, number),
        "bound_quantile": max(
            published_quantile_bound(exact, margin, failure=FAILURE) for margin in exact.workload
        ),
    }
