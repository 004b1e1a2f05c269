"""The limits that the stated errors of a table set: counts that may be zero, differences that may be noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tabulary.core.domain import Margin
from tabulary.planning.accuracy import CellErrors, heavy_quantile
from tabulary.planning.covariance import CellCovariance
from tabulary.release.table import CONFIDENCE, ReleasedTable

_MOST_PAIRED = 144
# Shared sets of attributes are compared up to this order; a higher order seldom finds anything more.
_LARGEST_SHARED = 2
# Sums that differ by less are equal up to rounding.
_DUST = 1e-6


@dataclass(frozen=True)
class Limits:
    """The limits of one table with probability 95 %.

    `zero` is the largest count that may be zero. Two counts of this table that are up to `difference`
    apart may be equal; None where it has fewer than two uncertain cells. `all_at_once` bounds the errors of all its
    cells at the same time; None where the law of its errors is not known well enough for that. `missing` is the
    largest expected number of its intervals that miss, if each holds as often as it claims.
    """

    margin: Margin
    cells: int
    zero: float
    difference: float | None
    all_at_once: float | None
    missing: float


@dataclass(frozen=True)
class Disagreement:
    """The largest difference between two tables on a shared margin, and whether it is more than rounding.

    `compared` is false where no two tables share anything, not even a total.
    """

    compared: bool
    largest: float
    on: Margin
    agrees: bool


def limits_of(table: ReleasedTable) -> Limits:
    """Return the limits of a table. Post-processing: from the law of its errors alone, not from its counts."""
    widths = np.asarray(table.half_widths(), dtype=np.float64)
    cells = int((widths > 0).sum())
    together = 1 - (1 - CONFIDENCE) / max(cells, 1)
    known = table.covariance is not None
    return Limits(
        margin=table.margin,
        cells=cells,
        zero=float(widths.max(initial=0.0)),
        difference=difference_width(table),
        # The union bound holds for any dependence between the errors.
        all_at_once=float(np.max(table.half_widths(together), initial=0)) if known and cells else None,
        missing=cells * (1 - CONFIDENCE),
    )


def difference_width(table: ReleasedTable, confidence: float = CONFIDENCE) -> float | None:
    """Return how far apart two equal counts of a table may be published, with this probability, for any two cells.

    Exact where cells have independent draws. Where a few cells share draws, the pair with the largest variance
    decides, with a normal law corrected for the kurtosis. Otherwise, and after a reconstruction, it is the sum of
    both half-widths at a confidence that leaves half of the error to each. That is never too small, for any
    dependence between the errors, if the half-widths are right. Simulated half-widths are nearly right.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.core.table import Table
    >>> from tabulary.noise import DiscreteLaplace
    >>> table = Table(Domain({"sex": ["F", "M"]}), [120, -2])
    >>> difference_width(ReleasedTable(table, CellErrors(DiscreteLaplace(3), np.array([1, 1]))))
    12.0
    """
    uncertain = int((np.asarray(table.standard_errors) > 0).sum())
    if uncertain < 2:
        return None
    errors = table.errors
    if isinstance(errors, CellErrors) and errors.scale == 1 and errors.shared is None:
        terms = np.sort(errors.terms.reshape(-1))[-2:]
        return float(errors.noise.half_width(confidence, terms=int(terms.sum())))
    shared = table.covariance
    if shared is not None and shared.cells <= _MOST_PAIRED:
        return _widest_pair(shared, confidence)
    halves = np.asarray(table.half_widths(1 - (1 - confidence) / 2), dtype=np.float64).reshape(-1)
    return float(np.sort(halves)[-2:].sum())


def disagreement(tables: Sequence[ReleasedTable]) -> Disagreement:
    """Return how far the published sums of the same people differ, over attributes that tables share."""
    ends: dict[Margin, tuple[np.ndarray, np.ndarray]] = {}
    held: dict[Margin, int] = {}
    for table in tables:
        for order in range(min(len(table.margin), _LARGEST_SHARED) + 1):
            for shared in combinations(table.margin, order):
                counts = np.asarray(table.table.project(shared).counts, dtype=np.float64)
                low, high = ends.get(shared, (counts, counts))
                ends[shared] = np.minimum(low, counts), np.maximum(high, counts)
                held[shared] = held.get(shared, 0) + 1
    gaps = {s: float((high - low).max()) for s, (low, high) in ends.items() if held[s] > 1}
    # Ties go to the smaller set, which is easier to look up.
    on = max(gaps, key=lambda s: (gaps[s], -len(s)), default=())
    size = max((float(np.abs(high).max()) for _, high in ends.values()), default=0.0)
    return Disagreement(bool(gaps), gaps.get(on, 0.0), on, gaps.get(on, 0.0) <= _DUST * max(size, 1.0))


def _widest_pair(shared: CellCovariance, confidence: float) -> float:
    dense = shared.dense()
    variances = np.diag(dense)
    of_pairs = variances[:, None] + variances[None, :] - 2 * dense
    one, other = np.unravel_index(int(of_pairs.argmax()), of_pairs.shape)
    weights = np.zeros(shared.cells)
    weights[one], weights[other] = 1.0, -1.0
    draws = shared.draws_of(weights.reshape(shared.shape))
    fourth = sum(d.copies * d.noise.fourth_cumulant * float(np.sum(d.weights**4)) for d in draws)
    variance = max(float(of_pairs[one, other]), 0.0)
    kurtosis = fourth / variance**2 if variance > 0 else 0.0
    return float(heavy_quantile(confidence, kurtosis)) * math.sqrt(variance)
