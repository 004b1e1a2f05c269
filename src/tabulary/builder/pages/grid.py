r"""The numbers of a shown table, with its totals or as shares, each with its error.

A total is a sum of cells with dependent errors, so its error needs its own computation:

* If the smaller table is free, a total is a number of that table and has its error. The two tables agree, because all
  tables come from the same measurements. With cell keys they do not: the smaller table has its own perturbation.
* A sum of some levels is not a table, and a smaller table may cost. Then the error of a linear estimate follows from
  the draws that the cells share (`infer.sums.SumLaw`). The noise treats all levels alike, so all sums of equally many
  possible cells of one axis have the same law, and this module computes it once.
* The errors of a reconstructed table are known for each cell, not together; the error of a sum of some levels is at
  most their sum.

A share is t/b for a part t of a sum b. Its interval is Fieller's: the ρ with |t - ρb| ≤ h(ρ), as in `infer.ratios`,
with h² = h_t² - 2ρ k + ρ² h_b² for the half-widths of both. That is exact for normal noise and a little off for other
noise. The covariances of the cells with their sum add up to its variance. If all cells have the same law, the
covariances are equal, so k = h_b² n_t/n_b with n the numbers of possible cells. For a reconstructed table k is not
known, and k = -h_t h_b is the worst case: the intervals are at least as wide as necessary.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.builder.pages.choices import Choices, Show
from tabulary.core.arrays import Floats, sum_onto, with_last_places
from tabulary.core.domain import Margin
from tabulary.errors import TableRefused
from tabulary.infer.sums import SumLaw
from tabulary.planning.covariance import CellCovariance
from tabulary.release import ReleasedTable
from tabulary.release.table import CONFIDENCE
from tabulary.workflows.answering.answers import Answerer, PerturbedCounts, ProtectionMethod
from tabulary.workflows.answering.questions import Question

Published = ReleasedTable | PerturbedCounts
Smaller = Callable[[Margin], Published | None]
"""Gives the table by some of the attributes, for the same people; None if it is not available."""


def smaller_tables(answers: Answerer, choices: Choices) -> Smaller | None:
    """Return a function that gives the smaller tables of a chosen one; None if they would cost as new questions.

    The smaller tables come from the same measurements as the chosen one, so they reveal nothing new and cost nothing.
    """
    if answers.method is ProtectionMethod.interactive:
        return None

    def smaller(by: Margin) -> Published | None:
        kept = {a: levels for a, levels in choices.keep if a in by}
        question = Question.of(answers.domain, by, dict(choices.where), kept)
        try:
            return question.cut(answers.answer(question.margin(answers.domain)).table)
        except TableRefused:
            # A rule about its own counts refuses it; the larger table is still shown.
            return None

    return smaller


@dataclass(frozen=True, eq=False)
class Grid:
    """The numbers of a table in rows and columns; the last column has totals of rows, the last row totals of columns.

    A missing number is NaN in `values`, an unknown error is NaN in `widths`. Widths are 95 % half-widths for counts,
    and the larger side of the interval for shares. `parts` counts the possible cells in each sum; a sum without any is
    always zero. `alike` means that all cells have the same law, so that their covariances with a sum are known;
    `bounded` means that the widths of some totals are upper bounds.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.core.table import Table
    >>> from tabulary.noise import DiscreteLaplace
    >>> from tabulary.planning import CellErrors
    >>> table = Table(Domain({"sex": ["F", "M"]}), [120, 40])
    >>> released = ReleasedTable(table, CellErrors(DiscreteLaplace(3), np.array([1, 1])))
    >>> shares = Grid.of(released, Choices(rows=("sex",), show=Show.total_percent))
    >>> shares.values[:, 0].tolist(), shares.widths[:, 0].round(1).tolist()
    ([75.0, 25.0, 100.0], [4.7, 4.7, 0.0])
    """

    values: Floats
    widths: Floats
    lower: Floats
    upper: Floats
    parts: NDArray[np.int64]
    alike: bool = False
    bounded: bool = False

    @classmethod
    def of(cls, table: Published, choices: Choices, *, smaller: Smaller | None = None) -> "Grid":
        """Return the numbers of a table by the rows, then the columns, of the choices."""
        cells = _Cells.of(table, choices, smaller)
        return cells.counts() if choices.show is Show.counts else cells.counts().shares(choices.show)

    @classmethod
    def about(cls, values: Floats, widths: Floats, parts: NDArray[np.int64], **known: bool) -> "Grid":
        """Return the grid whose intervals reach equally far on both sides."""
        return cls(values, widths, values - widths, values + widths, parts, **known)

    def corner(self, height: int, width: int) -> "Grid":
        """Return the first rows and columns: with their totals, or without."""
        here = np.s_[:height, :width]
        return replace(
            self,
            values=self.values[here],
            widths=self.widths[here],
            lower=self.lower[here],
            upper=self.upper[here],
            parts=self.parts[here],
        )

    @property
    def doubt(self) -> NDArray[np.bool_]:
        """The cells where noise dominates: the interval reaches zero, or is below zero and misses the truth."""
        return np.asarray((self.widths > 0) & (self.lower <= 0))

    def shares(self, show: Show) -> "Grid":
        """Return the counts as per cent of their row, their column or of all; NaN if the whole may be zero."""
        whole = {
            Show.row_percent: np.s_[:, -1:],
            Show.column_percent: np.s_[-1:, :],
            Show.total_percent: np.s_[-1:, -1:],
        }[show]
        top, bottom = self.values, np.broadcast_to(self.values[whole], self.values.shape)
        above, below = self.widths, np.broadcast_to(self.widths[whole], self.widths.shape)
        parts = np.broadcast_to(self.parts[whole], self.parts.shape)
        known = bottom != 0
        if not np.isnan(self.widths).all():
            known = np.abs(bottom) > below
        with np.errstate(divide="ignore", invalid="ignore"):
            shared = below**2 * self.parts / parts
            if not self.alike:
                shared = np.where(self.parts == parts, shared, -above * below)
            # (t - ρb)² ≤ h(ρ)² is a ρ² - 2 m ρ + c ≤ 0.
            a, m, c = bottom**2 - below**2, top * bottom - shared, top**2 - above**2
            spread = np.sqrt(np.maximum(m**2 - a * c, 0.0))
            estimate, lower, upper = (
                np.where(known, 100 * ends, np.nan)
                for ends in (top / bottom, (m - spread) / a, (m + spread) / a)
            )
        # A part that equals the whole is 100 %, without error.
        exact = known & (self.parts == parts) & ~np.isnan(self.widths)
        lower, upper = (np.where(exact, estimate, end) for end in (lower, upper))
        widths = np.maximum(upper - estimate, estimate - lower)
        return replace(self, values=estimate, widths=widths, lower=lower, upper=upper)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of a table in two dimensions, and the source of its sums."""

    choices: Choices
    values: Floats
    widths: Floats
    possible: NDArray[np.bool_]
    covariance: CellCovariance | None
    smaller: Smaller | None

    @classmethod
    def of(cls, table: Published, choices: Choices, smaller: Smaller | None) -> "_Cells":
        shape = table.shape
        sides = (int(np.prod(shape[: len(choices.rows)])), int(np.prod(shape[len(choices.rows) :])))
        values, widths, possible = _numbers(table)
        covariance = table.covariance if isinstance(table, ReleasedTable) else None
        flat = None if covariance is None else covariance.reshape(list(sides))
        return cls(
            choices, values.reshape(sides), widths.reshape(sides), possible.reshape(sides), flat, smaller
        )

    def counts(self) -> Grid:
        """Return the counts with all their totals."""
        rows, columns = self.choices.rows, self.choices.columns
        beside, below, corner = self._totals(1, rows), self._totals(0, columns), self._totals(None, ())
        linear = self.covariance is not None
        bounded = not (linear or np.isnan(self.widths).any()) and any(
            self._own_table(summed) is None for summed in (columns, rows) if summed
        )
        if bounded:
            # The smallest of several bounds: the total is the sum of the rows, and also of the columns.
            least = min(float(totals.sum()) for _, totals in (corner, beside, below))
            corner = corner[0], np.asarray(least)
        own = (self.values, self.widths)
        blocks: dict[tuple[bool, ...], tuple[Floats, Floats]] = {
            (True, True): own,
            (True, False): beside,
            (False, True): below,
            (False, False): corner,
        }
        values = with_last_places(self.values.shape, lambda kept: blocks[kept][0])
        widths = with_last_places(self.values.shape, lambda kept: blocks[kept][1])
        parts = with_last_places(
            self.possible.shape,
            lambda kept: sum_onto(self.possible.astype(np.int64), (0, 1), np.flatnonzero(kept)),
        )
        return Grid.about(values, widths, parts, alike=linear, bounded=bounded)

    def _totals(self, axis: int | None, by: Margin) -> tuple[Floats, Floats]:
        """Return the sums over an axis, or over all, and their errors."""
        own = self._own_table(tuple(a for a in self.choices.by if a not in by))
        found = None if own is None else own(by)
        if found is not None:
            values, widths, _ = _numbers(found)
            return values.reshape(-1), widths.reshape(-1)
        values = np.asarray(self.values.sum(axis=axis))
        if self.covariance is not None:
            return values, self._linear_widths(self.covariance, axis)
        return values, np.asarray(self.widths.sum(axis=axis))

    def _own_table(self, summed: Margin) -> Smaller | None:
        """Return the source of the table without some attributes, if that table holds the totals of the shown cells."""
        return None if any(a in summed for a, _ in self.choices.keep) else self.smaller

    def _linear_widths(self, covariance: CellCovariance, axis: int | None) -> Floats:
        """Return the half-widths of sums of a linear estimate: one for each number of possible cells."""
        lines = np.moveaxis(self.possible, axis, -1) if axis is not None else self.possible.reshape(1, -1)
        parts = lines.sum(axis=-1)
        widths = np.zeros(parts.shape)
        for number in np.unique(parts[parts > 0]).tolist():
            line = int(np.flatnonzero(parts == number)[0])
            weights = np.zeros(self.possible.shape)
            weights[_line(axis, line)] = self.possible[_line(axis, line)]
            law = SumLaw.of(covariance, weights)
            widths[parts == number] = law.half_width(CONFIDENCE, most_weights=1)
        return widths if axis is not None else np.asarray(widths[0])


def _line(axis: int | None, line: int) -> Any:
    """Return the positions of the cells of one sum."""
    return ((line, slice(None)), (slice(None), line))[1 - axis] if axis is not None else np.s_[:]


def _numbers(table: Published) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the counts, NaN if withheld; their half-widths, NaN if not known; and which cells are possible."""
    possible = ~np.asarray(table.domain.impossible(table.margin))
    if isinstance(table, ReleasedTable):
        return table.counts.astype(np.float64), table.half_widths().astype(np.float64), possible
    values = np.ma.filled(table.counts.astype(np.float64), np.nan)
    return values, np.full(table.shape, np.nan), possible
