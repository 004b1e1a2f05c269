"""From repetitions to averages, and from averages to the smallest ε from which on a table is good enough."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.studies import Row, number, numbers
from tabulary_papers.sparse_tables.printed import reference

ENOUGH = 0.1
"""The share of the sample size that an error may have."""

SELDOM = 0.05
"""The share of repetitions in which a program may be infeasible."""


@dataclass(frozen=True)
class Criterion:
    """One of the paper's measures, the column of `averages` that it is read from, and when it is good enough."""

    measure: str
    column: str
    rule: str

    def limit(self, table: str, people: int) -> float:
        """Return what the average has to stay below for a table."""
        truth = reference(table)
        return {
            "sample_size_error": ENOUGH * people,
            "max_l1": ENOUGH * people,
            # A table that fits perfectly has a G² of zero and says nothing: that must not be good enough.
            "g2_change": min(2 * math.sqrt(2 * truth.fit.degrees_of_freedom), truth.fit.g2 / 2),
            "mle_l1": truth.from_uniform / 2,
            "infeasible": SELDOM,
        }[self.column]


CRITERIA = (
    Criterion("sample size", "sample_size_error", "root mean squared error below 10 % of n"),
    Criterion("largest L1 of a margin", "max_l1", "mean below 10 % of n"),
    Criterion(
        "change of G²",
        "g2_change",
        "mean below twice the spread of χ², 2√(2 d.f.) with the d.f. after zeros, and below half of G² itself",
    ),
    Criterion("distance between MLEs", "mle_l1", "mean below half the distance of the MLE from equal cells"),
    Criterion("infeasible programs", "infeasible", "fewer than 5 % of the repetitions"),
)


def averages(rows: Sequence[Row], tables: Sequence[Row]) -> list[Row]:
    """Return a row for each table, method and ε: means and standard deviations over the repetitions.

    Repetitions without a fit are left out of the means that need one.
    """
    people = {str(row["table"]): number(row, "n") for row in tables}
    groups: dict[tuple[str, str, float], list[Row]] = defaultdict(list)
    for row in rows:
        groups[str(row["table"]), str(row["method"]), number(row, "epsilon")].append(row)
    found: list[Row] = []
    for (table, method, epsilon), own in groups.items():
        sizes = _numbers(own, "sample_size")
        averaged: dict[str, str | int | float | bool | None] = {
            "table": table,
            "method": method,
            "epsilon": epsilon,
            "true_epsilon": own[0]["true_epsilon"],
            "repetitions": len(own),
            "unfitted": int(_numbers(own, "unfitted").sum()),
            "infeasible": _mean(_numbers(own, "infeasible")),
            "sample_size_error": float(np.sqrt(np.mean((sizes - people[table]) ** 2)))
            if sizes.size
            else None,
        }
        for column in ("sample_size", "max_l1", "g2_change", "mle_l1", "b"):
            values = _numbers(own, column)
            averaged[column] = _mean(values)
            averaged[f"{column}_deviation"] = float(values.std(ddof=1)) if values.size > 1 else None
        found.append(averaged)
    return found


def thresholds(averaged: Sequence[Row], tables: Sequence[Row]) -> list[Row]:
    """Return from which ε of the grid on each method stays within each criterion; None is never.

    From there on, and not the first time: a lucky average at one ε is no verdict. An average over repetitions of
    which one has no fit is not good enough: it leaves out the worst. A method without a program has no row for it.
    """
    found: list[Row] = []
    for about in tables:
        table, people = str(about["table"]), int(number(about, "n"))
        own = [row for row in averaged if row["table"] == table]
        for criterion in CRITERIA:
            limit = criterion.limit(table, people)
            for method in dict.fromkeys(row["method"] for row in own):
                line = sorted(
                    (row for row in own if row["method"] == method),
                    key=lambda row: number(row, "epsilon"),
                )
                if criterion.column == "infeasible" and all(row["infeasible"] is None for row in line):
                    continue
                found.append(
                    {
                        "table": table,
                        "measure": criterion.measure,
                        "rule": criterion.rule,
                        "limit": limit,
                        "method": method,
                        "epsilon": _from_where(line, criterion.column, limit),
                    }
                )
    return found


def _from_where(line: Sequence[Row], column: str, limit: float) -> float | None:
    start = None
    for row in reversed(line):
        value = row[column]
        left_out = row["unfitted"] and column != "infeasible"
        if not isinstance(value, int | float) or not value < limit or left_out:
            break
        start = number(row, "epsilon")
    return start


def _numbers(rows: Sequence[Row], column: str) -> NDArray[np.float64]:
    return np.array(numbers(rows, column))


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if values.size else None
