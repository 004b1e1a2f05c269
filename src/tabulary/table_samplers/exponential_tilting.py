r"""Tilting: other odds under which the sums of a table are what is expected, and nothing else changes.

Multiply the odds of everybody in row i by exp(α_i) and of everybody in column j by exp(β_j). Every table with row sums
r and column sums c becomes exp(α·r + β·c) times as likely, up to one constant for all, so that the law *given the sums*
is the one it was. The α and β at which the expected sums are the known ones make those sums likely, however far they
lie from the prior: nothing underflows, and what lies far from a cell's tilted mean can be left out at a known price.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.table_samplers.poisson_binomial import PoissonBinomial

# Any tilt is right; a poor one only costs time. So these are not tolerances of a result.
_CLOSE = 1e-6
_STEPS = 100
_LONGEST_STEP = 4.0


@dataclass(frozen=True, eq=False)
class TwoWayTable:
    """A two-way table of counts: the law of each cell, its bounds, and the sums of both axes."""

    count_laws: tuple[tuple[PoissonBinomial, ...], ...]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    row_sums: NDArray[np.int64]
    column_sums: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        rows, columns = self.lower.shape
        return rows, columns


@dataclass(frozen=True, eq=False)
class Tilt:
    """The logarithm of what the odds of each cell are multiplied by, and the tilted variance of its count."""

    theta: NDArray[np.float64]
    variance: NDArray[np.float64]

    @classmethod
    def of(cls, table: TwoWayTable) -> "Tilt":
        r"""Return the tilt whose expected sums are the table's, by Newton's method.

        It is the minimum of the convex Σ log Z_ij(α_i + β_j) - α·r - β·c, where Z_ij is the sum of the tilted weights
        of cell (i, j). Where the sums leave some cells no choice it lies at infinity, and the steps end on the way.
        Cost: at most a hundred passes over all the values of all cells.
        """
        cells = _Cells(table)
        rows, columns = table.shape
        row_tilt, column_tilt = np.zeros(rows), np.zeros(columns)
        value, mean, variance = cells.moments(row_tilt[:, None] + column_tilt)
        for _ in range(_STEPS):
            row_excess = mean.sum(axis=1) - cells.row_sums
            column_excess = mean.sum(axis=0) - cells.column_sums
            if max(np.abs(row_excess).max(), np.abs(column_excess).max()) < _CLOSE:
                break
            row_step, column_step = _newton(variance, row_excess, column_excess)
            slope = float(row_excess @ row_step + column_excess @ column_step)
            longest = float(np.abs(row_step[:, None] + column_step).max())
            length = min(1.0, _LONGEST_STEP / longest) if longest > 0 else 1.0
            base = value - row_tilt @ cells.row_sums - column_tilt @ cells.column_sums
            while length > 1e-6:
                rows_there, columns_there = row_tilt - length * row_step, column_tilt - length * column_step
                value, mean, variance = cells.moments(rows_there[:, None] + columns_there)
                there = value - rows_there @ cells.row_sums - columns_there @ cells.column_sums
                if there <= base - 1e-4 * length * slope + 1e-9:
                    break
                length /= 2
            row_tilt, column_tilt = rows_there, columns_there
        return cls(row_tilt[:, None] + column_tilt, variance)


class _Cells:
    """All the values of all cells, one after the other, counted from each cell's lower bound."""

    def __init__(self, table: TwoWayTable) -> None:
        widths = (table.upper - table.lower + 1).ravel()
        self.shape = table.shape
        self.starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
        self.cell = np.repeat(np.arange(widths.size), widths)
        self.values = (np.arange(widths.sum()) - self.starts[self.cell]).astype(np.float64)
        self.logs = np.concatenate(
            [
                table.count_laws[i][j].log_weights[table.lower[i, j] : table.upper[i, j] + 1]
                for i, j in np.ndindex(self.shape)
            ]
        )
        self.row_sums = (table.row_sums - table.lower.sum(axis=1)).astype(np.float64)
        self.column_sums = (table.column_sums - table.lower.sum(axis=0)).astype(np.float64)

    def moments(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return Σ log Z, and the tilted mean and variance of each cell."""
        logs = self.logs + self.values * theta.ravel()[self.cell]
        top = np.maximum.reduceat(logs, self.starts)
        weights = np.exp(logs - top[self.cell])
        whole = np.add.reduceat(weights, self.starts)
        mean = np.add.reduceat(weights * self.values, self.starts) / whole
        apart = self.values - mean[self.cell]
        variance = np.add.reduceat(weights * apart**2, self.starts) / whole
        return float((top + np.log(whole)).sum()), mean.reshape(self.shape), variance.reshape(self.shape)


def _newton(
    variance: NDArray[np.float64], row_excess: NDArray[np.float64], column_excess: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the step of the rows and of the columns; the columns are eliminated first, for there may be many."""
    tiny = 1e-12
    of_rows, of_columns = variance.sum(axis=1) + tiny, variance.sum(axis=0) + tiny
    left = np.diag(of_rows) - (variance / of_columns) @ variance.T
    # One direction changes nothing: up with all rows, down with all columns. The shortest solution leaves it out.
    row_step = np.linalg.lstsq(left, row_excess - variance @ (column_excess / of_columns), rcond=1e-13)[0]
    return row_step, (column_excess - variance.T @ row_step) / of_columns
