"""How strongly two attributes of a table hang together: Pearson's χ² and Cramér's V."""

import math

import numpy as np
from numpy.typing import NDArray

from tabulary.core.table import Table
from tabulary.errors import InvalidTable


def chi_squared(table: Table) -> float:
    """Return Pearson's χ² statistic against independence of the two attributes of a table.

    Taken at face value: the noise in a perturbed table counts as association.

    >>> from tabulary import datasets
    >>> round(chi_squared(datasets.load("uk-census")), 2)
    3839.05
    """
    seen = _seen_levels(table)
    return _chi_squared(seen)


def cramers_v(table: Table) -> float:
    """Return Cramér's V, √(χ² / (n (k - 1))) with k the smaller number of levels: 0 for none, 1 for full association.

    Levels in which nobody is counted say nothing and are left out. With fewer than two levels on either side
    nothing can vary together, and V is 0. Like χ², it takes a perturbed table at face value.

    >>> from tabulary import datasets
    >>> round(cramers_v(datasets.load("uk-census")), 5)
    0.25763
    """
    seen = _seen_levels(table)
    smaller = min(seen.shape)
    return math.sqrt(_chi_squared(seen) / (seen.sum() * (smaller - 1))) if smaller > 1 else 0.0


def _chi_squared(seen: NDArray[np.float64]) -> float:
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / max(seen.sum(), 1.0)
    return math.fsum(((seen - expected) ** 2 / expected).flat)


def _seen_levels(table: Table) -> NDArray[np.float64]:
    """Return the counts of a two-way table without its empty rows and columns."""
    if len(table.shape) != 2:
        raise InvalidTable(
            f"association is between two attributes, and this table has {len(table.shape)}. "
            "Project it on two of them."
        )
    if np.any(table.counts < 0):
        raise InvalidTable(
            "χ² needs a table without negative counts. Perturb with minimum=0, or reconstruct a table first."
        )
    counts = table.counts.astype(np.float64)
    return counts[np.ix_(counts.sum(axis=1) > 0, counts.sum(axis=0) > 0)]
