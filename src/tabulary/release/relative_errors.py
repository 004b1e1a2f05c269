"""The stated errors of a release relative to its counts, from the release alone."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Margin
from tabulary.core.labels import CODES, Labels
from tabulary.release.svg import LEAST_SHOWN, show_count, show_width
from tabulary.release.table import ReleasedTable

SHARES = (0.1, 0.5, 1.0)
"""The sizes of an error beside its count by which cells are told apart: a tenth, half, as large."""


@dataclass(frozen=True)
class DoubtfulCell:
    """One published count with a large relative error; `names` and `labels` are those of readers."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    count: float
    half_width: float

    @property
    def relative(self) -> float:
        """The half-width as a share of the count."""
        return self.half_width / self.count

    @property
    def named(self) -> str:
        """The cell in words, such as "age: 65+; job: paid"."""
        pairs = zip(self.names, self.labels, strict=True)
        return "; ".join(f"{attribute}: {label}" for attribute, label in pairs) or "total"

    @property
    def shown(self) -> str:
        """The count with its half-width."""
        return f"{show_count(self.count)} ± {show_width(self.half_width)}"


@dataclass(frozen=True)
class RelativeErrors:
    """The errors of one table relative to its counts.

    `above` counts the possible cells whose half-width is more than each of `SHARES` of the count (for the last share,
    as much or more); cells without a positive count are in every one of these counts. `median` is infinite where half
    of the cells or more have no positive count. `worst` is the positive count with the largest relative error, if any
    has an error.
    """

    margin: Margin
    cells: int
    without: int
    above: tuple[int, ...]
    median: float
    worst: DoubtfulCell | None


def relative_errors(table: ReleasedTable, labels: Labels = CODES) -> RelativeErrors:
    """Return the errors of a table relative to its counts. Post-processing: it uses the stated errors alone.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.core.table import Table
    >>> from tabulary.noise import DiscreteLaplace
    >>> from tabulary.planning import CellErrors
    >>> table = Table(Domain({"age": ["0-14", "15-64", "65+"]}), [120, -2, 12])
    >>> found = relative_errors(ReleasedTable(table, CellErrors(DiscreteLaplace(3), np.array([1, 1, 1]))))
    >>> found.above, found.without, found.worst.named, found.worst.shown
    ((2, 2, 1), 1, 'age: 65+', '12 ± 9')
    """
    possible, relative = _relative(table)
    shares = relative[possible]
    largest = _largest(table, 1, labels)
    return RelativeErrors(
        margin=table.margin,
        cells=int(possible.sum()),
        without=int(np.isinf(shares).sum()),
        above=tuple(int((shares >= s if s == SHARES[-1] else shares > s).sum()) for s in SHARES),
        median=float(np.median(shares)) if shares.size else 0.0,
        worst=largest[0] if largest else None,
    )


def largest_relative_errors(
    tables: Sequence[ReleasedTable], most: int, *, most_of_one: int, labels: Labels = CODES
) -> list[DoubtfulCell]:
    """Return the positive counts with the largest relative errors, largest first, a few from each table.

    Errors of a tenth of their count or less are no problem and are left out.
    """
    found = [
        cell for table in tables for cell in _largest(table, most_of_one, labels) if cell.relative > SHARES[0]
    ]
    # The sort is stable, so the same release always gives the same list.
    return heapq.nlargest(most, found, key=lambda cell: cell.relative)


def median_relative_error(tables: Sequence[ReleasedTable]) -> float:
    """Return the median relative error over the possible cells of all tables; 0 without any cell."""
    parts = [relative[possible] for possible, relative in map(_relative, tables)]
    shares = np.concatenate(parts) if parts else np.zeros(0)
    return float(np.median(shares)) if shares.size else 0.0


def show_share(share: float) -> str:
    """Return a relative error for a reader.

    >>> show_share(0.0123), show_share(0.5), show_share(13.67), show_share(math.inf)
    ('1.2 %', '50 %', '1,367 %', 'no positive count')
    """
    if math.isinf(share):
        return "no positive count"
    percent = 100 * share
    return f"{percent:,.1f} %" if 0 < percent < 9.95 else f"{percent:,.0f} %"


def _relative(table: ReleasedTable) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which cells are possible, and the relative error of each: infinite without a positive count.

    A count that prints as zero is not positive.
    """
    possible = ~np.asarray(table.domain.impossible(table.margin)).reshape(table.shape)
    counts = np.asarray(table.counts, dtype=np.float64)
    widths = np.asarray(table.half_widths(), dtype=np.float64)
    relative = np.full(counts.shape, math.inf)
    np.divide(widths, counts, out=relative, where=counts >= LEAST_SHOWN)
    return possible, relative


def _largest(table: ReleasedTable, most: int, labels: Labels) -> list[DoubtfulCell]:
    possible, relative = _relative(table)
    asked = np.where(possible & np.isfinite(relative) & (relative > 0), relative, -1.0).reshape(-1)
    order = np.argsort(-asked, kind="stable")[:most]
    return [_cell(table, int(number), labels) for number in order if asked[number] > 0]


def _cell(table: ReleasedTable, number: int, labels: Labels) -> DoubtfulCell:
    place: tuple[Any, ...] = np.unravel_index(number, table.shape)
    levels = tuple(labels.levels(table.domain, a)[i] for a, i in zip(table.margin, place, strict=True))
    return DoubtfulCell(
        tuple(map(labels.name, table.margin)),
        levels,
        table.counts[place].item(),
        np.asarray(table.half_widths())[place].item(),
    )
