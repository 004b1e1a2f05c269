"""The expected errors of the tables of a list, before any budget is spent."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tabulary.core.domain import Margin
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidWorkload, TooManyCells

if TYPE_CHECKING:
    from tabulary.perturb.tables import Tables


@dataclass(frozen=True)
class Deviation:
    """The standard deviations of one table: perturbed, added up from the table on `source`, and restored.

    None if no other table of the list contains it, or if a list with structural zeros is too large to restore.
    """

    margin: Margin
    cells: int
    epsilon: Fraction
    direct: float
    summed: float | None
    source: Margin | None
    restored: float | None


@dataclass(frozen=True)
class Deviations:
    """The standard deviations of all tables of a list."""

    rows: tuple[Deviation, ...]

    def __getitem__(self, margin: Margin) -> Deviation:
        return next(row for row in self.rows if row.margin == margin)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        width = max(13, *(len(show_margin(row.margin)) for row in self.rows))
        head = f"{'margin':<{width}} {'cells':>9} {'ε':>8} {'direct':>10} {'summed':>10} {'restored':>10}"
        return "\n".join([head, *(self._line(row, width) for row in self.rows)])

    @staticmethod
    def _line(row: Deviation, width: int) -> str:
        shown = ["-" if x is None else f"{x:.3g}" for x in (row.direct, row.summed, row.restored)]
        epsilon = show_fraction(row.epsilon)
        epsilon = epsilon if len(epsilon) <= 8 else f"{float(row.epsilon):.4g}"
        return f"{show_margin(row.margin):<{width}} {row.cells:>9,} {epsilon:>8} " + " ".join(
            f"{x:>10}" for x in shown
        )


def deviations_of(tables: "Tables") -> Deviations:
    """Return the standard deviations of every table of a list."""
    rows = []
    for margin, epsilon in tables.epsilons.items():
        source = best_source(tables, margin, other=True) if _sources(tables, margin, other=True) else None
        try:
            restored = restored_deviation(tables, margin)
        except TooManyCells:
            restored = None
        rows.append(
            Deviation(
                margin=margin,
                cells=tables.cells(margin),
                epsilon=epsilon,
                direct=summed_deviation(tables, margin, margin),
                summed=None if source is None else summed_deviation(tables, margin, source),
                source=source,
                restored=restored,
            )
        )
    return Deviations(tuple(rows))


def summed_deviation(tables: "Tables", margin: Margin, source: Margin) -> float:
    """Return the standard deviation of a cell of the table on `margin` as the sum of cells of that on `source`.

    If structural zeros make some cells sums of fewer cells: the root of the mean variance over the possible cells.
    """
    if not set(margin) <= set(source):
        raise InvalidWorkload(f"{show_margin(margin)} is not a margin of {show_margin(source)}.")
    terms = tables.domain.project(source).multiplicity(margin)
    mean = float(terms.sum(dtype=np.float64)) / int((terms > 0).sum())
    return tables.worth * math.sqrt(mean * tables.law(source).noise.variance)


def restored_deviation(tables: "Tables", margin: Margin) -> float:
    """Return the standard deviation of a cell after additive margins are restored, its square a mean as above."""
    deviations = tables.fit.errors(margin).standard_errors
    return tables.worth * math.sqrt(float((deviations**2).sum()) / tables.cells(margin))


def best_source(tables: "Tables", margin: Margin, *, other: bool = False) -> Margin:
    """Return the table from which a margin is best added up: itself if it is in the list, but not `other`."""
    sources = _sources(tables, margin, other=other)
    if not sources:
        raise InvalidWorkload(f"no table of the list {tables.workload} contains {show_margin(margin)}.")
    if margin in sources:
        return margin
    # Ties go to the first, so that two readers of one list get the same result.
    return min(sources, key=lambda source: summed_deviation(tables, margin, source))


def _sources(tables: "Tables", margin: Margin, *, other: bool) -> list[Margin]:
    return [m for m in tables.margins if set(margin) <= set(m) and not (other and m == margin)]
