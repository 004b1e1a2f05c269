"""The table in which all attributes are independent, except where structural zeros tie them together."""

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, sum_onto
from tabulary.core.domain import Domain, Margin
from tabulary.reconstruct.proportional import Projections, fit

_SWEEPS = 1_000
# A large table gets fewer sweeps, if they would visit more cells than this.
_MOST_VISITED = 200_000_000
# The share of an even spread that is mixed in where zeros and empty levels together leave no table.
_EVEN = 1e-3


class Independence:
    """Attributes that are independent of each other, given their own tables.

    Attributes that structural zeros tie together cannot be independent: they share one table, which has only the
    interactions that the zeros force (quasi-independence). Every margin is a product of these tables, so all margins
    agree, none is negative, and impossible cells are zero. The attributes' own tables may contradict the zeros, as
    noisy tables of counties and of their states do; then the result of proportional fitting replaces them, in `ones`.
    The attribute with the fewest levels is fitted last and keeps its own table: a sum of many levels has the noise of
    all of them.
    """

    def __init__(self, domain: Domain, ones: dict[str, Floats], total: float) -> None:
        self._domain = domain
        self.total = total
        self.ones = dict(ones)
        self._blocks: list[tuple[Margin, Floats]] = []
        for attributes, _ in domain.zero_blocks:
            block = tuple(a for a in attributes if a in ones)
            if len(block) > 1 and total > 0:
                table = _quasi_independent(~domain.impossible(block), [ones[a] for a in block], total)
                for axis, a in enumerate(block):
                    self.ones[a] = _sums(table, axis)
                self._blocks.append((block, table))
        self._shares = {a: own / total for a, own in self.ones.items()} if total > 0 else {}

    def table(self, margin: Margin) -> Floats:
        """Return the table on `margin`, whose attributes are in the domain's order."""
        if self.total <= 0:
            return np.zeros(self._domain.shape_of(margin))
        shares = self._shares
        tied = [held for block, _ in self._blocks if len(held := [a for a in block if a in margin]) > 1]
        found = np.array(self.total)
        if not tied:
            for a in margin:
                found = np.multiply.outer(found, shares[a])
            return found
        shape = self._domain.shape_of(margin)
        found = np.full(shape, self.total)
        left = set(margin)
        for block, table in self._blocks:
            held = [a for a in block if a in left]
            if len(held) > 1:
                left.difference_update(held)
                part = sum_onto(table, block, held) / self.total
                found *= part.reshape([k if a in held else 1 for a, k in zip(margin, shape, strict=True)])
        for position, a in enumerate(margin):
            if a in left:
                found *= shares[a].reshape([-1 if i == position else 1 for i in range(len(margin))])
        return found


def _quasi_independent(possible: NDArray[np.bool_], ones: list[Floats], total: float) -> Floats:
    """Return the table without interactions on the possible cells that has these margins, or nearly."""
    axes = sorted(range(possible.ndim), key=lambda axis: -possible.shape[axis])
    projections = Projections()
    places = np.stack([projections.onto(possible.shape, (axis,)) for axis in axes])
    sweeps = min(_SWEEPS, max(20, _MOST_VISITED // places.size))
    even = possible * (total / possible.sum())
    for mixed_in in (0.0, _EVEN):
        targets = [(1 - mixed_in) * ones[axis] + mixed_in * _sums(even, axis) for axis in axes]
        table = fit(
            possible.astype(np.float64), places, targets, sweeps=sweeps, tolerance=1e-10 * (1 + total)
        )
        reached = float(table.sum())
        if reached > (1 - _EVEN) * total:
            return np.asarray(table * (total / reached))
    # The remaining levels contradict the zeros completely.
    return np.asarray(even)


def _sums(table: Floats, axis: int) -> Floats:
    return sum_onto(table, range(table.ndim), (axis,))
