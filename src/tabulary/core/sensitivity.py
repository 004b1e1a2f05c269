"""How much one person can change a set of margins: exact L1 and squared L2 sensitivities.

Adding a record raises one cell of every margin by one. Replacing a record moves one unit, in every margin, from the
old record's cell to the new one's; a margin in which both are in the same cell does not change. If a record may be
dropped for one of its values, replacing it may also remove it from the counts, or bring it in.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin
from tabulary.core.exact_numbers import exact_sum
from tabulary.core.neighbours import Neighbours
from tabulary.errors import InvalidArgument

# The possible cells of one group of structural zeros that are compared pair by pair.
_MAX_COMPARED = 4_000
# The combinations of what can differ, group by group, that are kept apart.
MOST_PATTERNS = 1 << 8


@dataclass(frozen=True)
class Sensitivity:
    """What one person can change in several measurements, each divided by its own scale.

    `l1` is the largest Σ |change| / scale and `l2_squared` the largest Σ change² / scale², both exact.
    """

    l1: Fraction
    l2_squared: Fraction

    @classmethod
    def largest(cls, found: Iterable[Self], records: int) -> Self:
        """Return the sensitivity to c records of a person, from those to every possible change of one record.

        The norm of a sum is at most the sum of the norms, and all c records may do the same: c Δ₁ and c² Δ₂².
        """
        each = list(found)
        return cls(records * max(s.l1 for s in each), records**2 * max(s.l2_squared for s in each))


def margin_sensitivity(
    domain: Domain,
    margins: Sequence[Margin],
    neighbours: Neighbours,
    *,
    scales: Sequence[Fraction] | None = None,
    squared_scales: Sequence[Fraction] | None = None,
) -> Sensitivity:
    """Return the exact sensitivity of the cells of `margins`, each margin divided by its scale.

    Add-remove, c records per person: each record adds one to one cell of every margin, and all c may fall in the
    same cells, so Δ₁ = c Σ 1/s and Δ₂² = c² Σ 1/s².

    Replace, c records: each record takes one from a cell x and gives one to a cell y in every margin where x
    and y differ. With D(x, y) the margins where they do, Δ₁ = 2c max Σ_D 1/s and Δ₂² = 2c² max Σ_D 1/s², over
    all pairs of possible cells. Without structural zeros some pair differs in every attribute that has two
    levels, so D is every margin with such an attribute. Structural zeros can forbid all those pairs; then the
    pairs are compared one by one. Where a replaced record may be dropped, both are the larger of the two.

    Scales default to one. `squared_scales` serves Gaussian noise, whose variance is rational while its
    standard deviation is not; `l1` then takes the scales as one.

    >>> domain = Domain({"A": "xy", "B": "xyz"})
    >>> margin_sensitivity(domain, [("A",), ("A", "B")], Neighbours("replace")).l1
    Fraction(4, 1)
    """
    margins = [domain.margin(margin) for margin in margins]
    for given in (scales, squared_scales):
        if given is not None and (len(given) != len(margins) or min(given, default=1) <= 0):
            raise InvalidArgument(f"{len(margins)} margins need as many positive scales.")
    weights = [1 / s for s in scales] if scales is not None else [Fraction(1)] * len(margins)
    squares = [1 / s for s in squared_scales] if squared_scales is not None else [w * w for w in weights]
    found = []
    if "add-remove" in neighbours.steps:
        once = [1] * len(margins)
        found.append(Sensitivity(exact_sum(weights, once), exact_sum(squares, once)))
    if "replace" in neighbours.steps:
        patterns = _difference_patterns(domain, margins)
        found.append(
            Sensitivity(
                2 * max(exact_sum(weights, p) for p in patterns),
                2 * max(exact_sum(squares, p) for p in patterns),
            )
        )
    return Sensitivity.largest(found, neighbours.records)


def _difference_patterns(domain: Domain, margins: Sequence[Margin]) -> list[tuple[bool, ...]]:
    """Return, for the pairs of possible cells that matter, in which margins the two cells differ."""
    choices = [_differing_attributes(domain, block) for block in _blocks(domain)]
    patterns = {frozenset[str]()}
    for options in choices:
        if len(patterns) * len(options) > MOST_PATTERNS:
            # A bound that may not be reached, but is never too small: everything that can differ in this group
            # differs.
            options = {frozenset[str]().union(*options)}
        patterns = _maximal({chosen | option for chosen in patterns for option in options})
    return [tuple(any(a in differing for a in margin) for margin in margins) for differing in patterns]


def _blocks(domain: Domain) -> list[Margin]:
    tied = [attributes for attributes, _ in domain.zero_blocks]
    free = [(a,) for a in domain.attributes if not any(a in block for block in tied)]
    return [*tied, *free]


def _differing_attributes(domain: Domain, block: Margin) -> set[frozenset[str]]:
    """Return the maximal sets of attributes in which two possible cells of a block can differ."""
    cells = np.argwhere(~domain.impossible(block))
    varying = frozenset(a for i, a in enumerate(block) if cells.shape[0] and np.ptp(cells[:, i]) > 0)
    if _antipodal_pair_exists(cells):
        return {varying}
    if len(cells) > _MAX_COMPARED:
        # Not shown to be reached, but never too small: no pair differs in more than every varying attribute.
        return {varying}
    powers = 1 << np.arange(len(block))
    patterns = set[int]().union(*(np.unique((cells != x) @ powers).tolist() for x in cells))
    return _maximal({frozenset(a for i, a in enumerate(block) if p >> i & 1) for p in patterns})


def _antipodal_pair_exists(cells: NDArray[np.intp]) -> bool:
    varying = cells[:, np.ptp(cells, axis=0) > 0]
    # A few hundred starting cells find a pair at once unless the zeros leave little more than a line.
    return any(bool((varying != x).all(axis=1).any()) for x in varying[:256])


def _maximal(sets: set[frozenset[str]]) -> set[frozenset[str]]:
    return {s for s in sets if not any(s < other for other in sets)}
