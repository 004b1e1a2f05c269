"""The errors of a table that is made of noisy residuals, in closed form."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin
from tabulary.noise import IntegerNoise
from tabulary.planning.accuracy import SMALLEST_VARIANCE
from tabulary.planning.allocation import centring

# Above so many pairs of sets the fourth cumulants are bounded and no longer added up.
MOST_PAIRS = 5_000_000

NoisyPart = tuple[Margin, Margin, IntegerNoise]
"""What a part measures, with which attributes centred, and its noise."""


def subsets(margin: Margin, holding: Margin = ()) -> Iterator[Margin]:
    """Yield the subsets of a margin that hold all of `holding`, lowest order first.

    >>> list(subsets(("A", "B", "C"), holding=("B",)))
    [('B',), ('A', 'B'), ('B', 'C'), ('A', 'B', 'C')]
    """
    free = [a for a in margin if a not in holding]
    for order in range(len(free) + 1):
        for chosen in combinations(free, order):
            yield chosen if not holding else tuple(a for a in margin if a in holding or a in chosen)


def subsets_within(closure: Mapping[Margin, object], margin: Margin, holding: Margin = ()) -> list[Margin]:
    """Return those sets of a downward closure that lie between `holding` and `margin`."""
    if 2 ** (len(margin) - len(holding)) <= len(closure):
        return [s for s in subsets(margin, holding) if s in closure]
    # A part of many attributes, of which few combinations are wanted.
    return [s for s in closure if set(holding) <= set(s) <= set(margin)]


def part_variance(
    levels: Mapping[str, int], margin: Margin, centred: Margin, onto: Margin, v: float
) -> float:
    r"""Return σ² of the residual of `onto` as a part with noise of variance `v` knows it: v Π_{S\R} k Π_B h."""
    summed = math.prod(levels[a] for a in margin if a not in onto)
    return v * summed * centring(levels[a] for a in centred)


class TailWeights:
    r"""The fourth cumulants of the cells of every table, from those of the noise of each part.

    A cell x of the table on A is a weighted sum of independent draws. The weight of the draw of a part (S, B) at
    its cell m is Π_{A\T} k⁻¹ Π_B C(x, m) Σ_{B ⊆ R ⊆ T} ω_R Π_{T\R} k⁻¹ Π_{R\B} (δ - 1/k), with T = S ∩ A, ω_R
    the share of the part in the estimate of r_R, δ = 1 where x and m agree, and C = (δ - 1/k)/k, or ±1/2 on two
    levels. So it depends on the attributes of T that agree alone, and the sum of the fourth powers over the
    cells of the part is Π_{A\T} k⁻⁴ f(T), with f of no more than 2^|T\B| patterns.

    The parts with S ∩ A = T exactly are those that contain T less those that contain more of A; by inclusion
    and exclusion over sums that are kept for each pair of sets T ⊆ U, no table is compared with every part.
    """

    def __init__(self, domain: Domain, parts: Sequence[NoisyPart], variances: Mapping[Margin, float]) -> None:
        self._levels = dict(zip(domain.attributes, domain.shape, strict=True))
        self._sums: dict[tuple[Margin, Margin], float] | None = {}
        parts = [part for part in parts if part[2].variance > SMALLEST_VARIANCE]
        cumulants = [noise.fourth_cumulant for _, _, noise in parts]
        self._bound = max(
            (k / noise.variance**2 for k, (_, _, noise) in zip(cumulants, parts, strict=True) if k),
            default=0.0,
        )
        if not self._bound:
            return
        if sum(3 ** (len(margin) - len(centred)) for margin, centred, _ in parts) > MOST_PAIRS:
            self._sums = None
            return
        for (margin, sets), values in self._fourth_powers(parts, cumulants, variances):
            known = set(sets)
            for t, value in zip(sets, values, strict=True):
                for u in subsets(margin, t):
                    if u in known:
                        self._sums[t, u] = self._sums.get((t, u), 0.0) + value

    def kurtosis(self, margin: Margin, variance: float) -> float:
        """Return the excess kurtosis of a cell of the table on `margin`, given its variance.

        Exact, or, where there are millions of pairs of sets, that of the heaviest noise: no sum of independent
        draws has more.
        """
        if self._sums is None:
            return self._bound
        total = 0.0
        if self._bound:
            for t in subsets(margin):
                outside = math.prod(self._levels[a] for a in margin if a not in t)
                exactly = sum(
                    (-1) ** (len(u) - len(t)) * self._sums.get((t, u), 0.0) for u in subsets(margin, t)
                )
                total += max(exactly, 0.0) / outside**4
        return total / variance**2 if variance > 0 else 0.0

    def _fourth_powers(
        self, parts: Sequence[NoisyPart], cumulants: Sequence[float], variances: Mapping[Margin, float]
    ) -> Iterable[tuple[tuple[Margin, list[Margin]], list[float]]]:
        """Return f(T) of every part and every T that it meets, computed together for all T of one order."""
        levels = self._levels
        asked: list[tuple[Margin, list[Margin]]] = []
        # By the number of attributes of T that are counted: where to put it, its factor, its levels, its shares.
        groups: dict[int, list[tuple[int, int, float, list[int], list[float]]]] = {}
        found: list[list[float]] = []
        for (margin, centred, noise), cumulant in zip(parts, cumulants, strict=True):
            if any(levels[a] == 1 for a in centred):
                continue
            v = noise.variance
            sets = subsets_within(variances, margin, centred)
            shares = {r: variances[r] / part_variance(levels, margin, centred, r, v) for r in sets}
            corner = math.prod(_fourth_power(levels[a]) for a in centred) * cumulant
            for position, t in enumerate(sets):
                counted = [a for a in t if a not in centred]
                summed = math.prod(levels[a] for a in margin if a not in t)
                ordered = [
                    shares[tuple(a for a in t if a in centred or a in chosen)] for chosen in _corners(counted)
                ]
                place = (len(found), position, corner * summed, [levels[a] for a in counted], ordered)
                groups.setdefault(len(counted), []).append(place)
            asked.append((margin, sets))
            found.append([0.0] * len(sets))
        for order, places in groups.items():
            ks = np.array([place[3] for place in places], dtype=np.float64).reshape(len(places), order)
            powers = _pattern_sums(ks, np.array([place[4] for place in places]))
            for (row, position, factor, _, _), power in zip(places, powers.tolist(), strict=True):
                found[row][position] = factor * power
        return zip(asked, found, strict=True)


def _corners(attributes: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield the subsets in the order of an array with one axis an attribute, of length two."""
    for number in range(2 ** len(attributes)):
        last = len(attributes) - 1
        yield tuple(a for i, a in enumerate(attributes) if number >> (last - i) & 1)


def _fourth_power(levels: int) -> float:
    """Return Σ C(x, m)⁴ over the values of a centred attribute."""
    if levels == 2:
        return 0.5**4
    return float(((levels - 1) ** 4 + (levels - 1)) / levels**8)


def _pattern_sums(ks: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ weight⁴ over the cells of the counted attributes, one row per set, from its shares by subset."""
    rows, order = ks.shape
    weights = shares.reshape((rows,) + (2,) * order)
    times = np.ones_like(weights)
    for axis in range(order):
        k = ks[:, axis].reshape((rows,) + (1,) * (order - 1))
        without, within = (np.take(weights, i, axis + 1) for i in (0, 1))
        # Both levels agree, in one cell, or they do not, in the k - 1 others.
        weights = np.stack([without / k + within * (1 - 1 / k), (without - within) / k], axis + 1)
        times = times * np.stack([np.ones_like(k), k - 1], axis + 1)
    return np.asarray((times * weights**4).reshape(rows, -1).sum(axis=1))
