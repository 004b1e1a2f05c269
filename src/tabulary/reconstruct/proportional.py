"""Proportional fitting: a table scaled to given margins, and tables scaled until they agree with each other."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats, sum_onto
from tabulary.core.domain import Domain, Margin

Indices = NDArray[np.int32]
Number = TypeVar("Number", np.int64, np.float64)

# A sum below this counts as zero: scaling it up would overflow.
_NOTHING = 1e-100


class Projections:
    """For each cell of a table, the cell of a margin that it adds to; kept for tables of equal shape."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], Indices] = {}

    def onto(self, shape: tuple[int, ...], axes: tuple[int, ...]) -> Indices:
        """Return, for all cells in order, the number of the cell in the table on `axes`."""
        found = self._known.get((shape, axes))
        if found is None:
            sides = [k if axis in axes else 1 for axis, k in enumerate(shape)]
            places = np.arange(int(np.prod(sides)), dtype=np.int32).reshape(sides)
            found = np.ascontiguousarray(np.broadcast_to(places, shape)).reshape(-1)
            self._known[shape, axes] = found
        return found

    def without_one(self, shape: tuple[int, ...]) -> Indices:
        """Return the places in each of the tables that lack one axis, one row per table, the last axis first."""
        axes = range(len(shape))
        return np.stack([self.onto(shape, kept) for kept in combinations(axes, len(shape) - 1)])


def fit(
    table: Floats, places: Indices, targets: Sequence[Floats], *, sweeps: int, tolerance: float
) -> Floats:
    """Return the table scaled, margin after margin, until it has the target margins, or the sweeps are done.

    The result keeps the interactions and the zeros of the given table. `places` has one row per target: for each cell
    of the table in order, the number of the target's cell that it adds to. If the targets contradict each other, the
    last one of the last sweep decides; `Agreement` makes tables agree afterwards.

    >>> fit(
    ...     np.array([[4.0, 1.0], [1.0, 4.0]]),
    ...     Projections().without_one((2, 2)),
    ...     [np.array([3.0, 7.0]), np.array([5.0, 5.0])],
    ...     sweeps=50,
    ...     tolerance=1e-9,
    ... ).round(2)
    array([[2.67, 0.33],
           [2.33, 4.67]])
    """
    values = np.array(table, dtype=np.float64).reshape(-1)
    sizes = [target.size for target in targets]
    starts = np.array([0, *accumulate(sizes)])
    joined = np.concatenate([target.ravel() for target in targets])
    _fit(values, places, joined, starts, np.empty(max(sizes)), sweeps, tolerance)
    return values.reshape(table.shape)


class Agreement:
    """Scaling that makes several tables agree on every margin that two of them share.

    For every shared margin in turn, each table that has it is scaled to the geometric mean of all tables' values. A
    table keeps its zeros and its interactions, and stays non-negative. Each step is the nearest agreement on that
    margin in Kullback-Leibler divergence, so the tables converge to the nearest that agree on all of them, as long as
    some consistent tables have the same cells positive (Bregman 1967); how fast depends on how nearly the tables fall
    apart into blocks. The geometric means lower the total a little; at the end it is restored.
    """

    def __init__(self, domain: Domain, margins: Sequence[Margin], projections: Projections) -> None:
        self.margins = tuple(margins)
        shapes = [domain.shape_of(margin) for margin in self.margins]
        self._starts = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
        shared = sorted(shared_margins(self.margins), key=lambda s: (-len(s), s))
        holders: dict[Margin, list[int]] = {s: [] for s in shared}
        for position, margin in enumerate(self.margins):
            for s in _subsets(margin):
                if s in holders:
                    holders[s].append(position)
        places: dict[int, int] = {}
        maps: list[Indices] = []
        total = 0
        tables: list[int] = []
        where: list[int] = []
        first = [0]
        sizes = []
        for s, positions in holders.items():
            for position in positions:
                axes = tuple(i for i, a in enumerate(self.margins[position]) if a in s)
                found = projections.onto(shapes[position], axes)
                if id(found) not in places:
                    places[id(found)] = total
                    maps.append(found)
                    total += found.size
                tables.append(position)
                where.append(places[id(found)])
            first.append(len(tables))
            sizes.append(domain.cells(s))
        self._tables = np.array(tables, dtype=np.int64)
        self._where = np.array(where, dtype=np.int64)
        self._first = np.array(first, dtype=np.int64)
        self._sizes = np.array(sizes, dtype=np.int64)
        self._maps = np.concatenate(maps) if maps else np.zeros(0, dtype=np.int32)
        most = max((len(h) * domain.cells(s) for s, h in holders.items()), default=0)
        self._sums = np.empty(most)
        self.work = int((self._starts[self._tables + 1] - self._starts[self._tables]).sum())
        """How many cells one sweep visits."""

    def reached(
        self, tables: Mapping[Margin, Floats], *, total: float, sweeps: int, tolerance: float
    ) -> tuple[dict[Margin, Floats], float]:
        """Return the tables with this total, scaled until they agree, and the largest remaining difference.

        That is the largest distance of a cell of a shared margin from the mean of its tables in the last sweep,
        before the last scaling. It is infinite if most of the total was lost, because the tables have no positive
        cells in common.
        """
        flat = np.concatenate([tables[m].reshape(-1) for m in self.margins]) if self.margins else np.zeros(0)
        smallest = min((float(tables[m].sum()) for m in self.margins), default=0.0)
        left = _agree(
            flat,
            self._starts,
            self._tables,
            self._where,
            self._first,
            self._sizes,
            self._maps,
            self._sums,
            sweeps,
            tolerance,
        )
        # One factor for all of them, or they would no longer agree to the last digit.
        reached = float(flat[: self._starts[1]].sum()) if self.margins else 0.0
        if reached > 0:
            flat *= total / reached
        if total > 0 and reached <= smallest / 2:
            left = np.inf
        found = {
            margin: flat[start:end].reshape(tables[margin].shape)
            for margin, start, end in zip(self.margins, self._starts, self._starts[1:], strict=False)
        }
        return found, left


def held_table(tables: Mapping[Margin, NDArray[Number]], margin: Margin) -> NDArray[Number]:
    """Return the table on `margin` as a margin of the first of these tables that holds all its attributes."""
    if margin in tables:
        return tables[margin]
    held = set(margin)
    holder = next(m for m in tables if held.issubset(m))
    return sum_onto(tables[holder], holder, held)


def shared_margins(margins: Sequence[Margin]) -> set[Margin]:
    """Return every margin that is the whole intersection of two or more of these; the total if it is empty.

    Tables that agree on these agree on every margin that two of them share: of all subsets that the same tables hold,
    the list has the largest.

    >>> sorted(shared_margins([("a", "b"), ("b", "c"), ("d",)]))
    [(), ('b',)]
    """
    holders: dict[Margin, int] = {}
    for margin in margins:
        for s in _subsets(margin):
            holders[s] = holders.get(s, 0) + 1
    found = {s for s, held in holders.items() if held > 1}
    for s in tuple(found):
        for left_out in range(len(s)):
            smaller = s[:left_out] + s[left_out + 1 :]
            if holders[smaller] == holders[s]:
                found.discard(smaller)
    return found


def _subsets(margin: Margin) -> Iterable[Margin]:
    for order in range(len(margin) + 1):
        yield from combinations(margin, order)


@compiled
def _fit(
    values: Floats,
    places: Indices,
    targets: Floats,
    starts: NDArray[np.int64],
    sums: Floats,
    sweeps: int,
    tolerance: float,
) -> None:
    cells = values.size
    for _ in range(sweeps):
        left = 0.0
        for m in range(places.shape[0]):
            start, end = starts[m], starts[m + 1]
            for i in range(end - start):
                sums[i] = 0.0
            for c in range(cells):
                sums[places[m, c]] += values[c]
            for i in range(end - start):
                target = targets[start + i]
                left = max(left, abs(sums[i] - target))
                sums[i] = target / sums[i] if sums[i] > _NOTHING else 0.0
            for c in range(cells):
                values[c] *= sums[places[m, c]]
        if left <= tolerance:
            break


@compiled
def _agree(
    values: Floats,
    starts: NDArray[np.int64],
    tables: NDArray[np.int64],
    where: NDArray[np.int64],
    first: NDArray[np.int64],
    sizes: NDArray[np.int64],
    maps: Indices,
    sums: Floats,
    sweeps: int,
    tolerance: float,
) -> float:
    left = 0.0
    for _ in range(sweeps):
        left = 0.0
        for s in range(sizes.size):
            size = sizes[s]
            holders = first[s + 1] - first[s]
            for i in range(size * holders):
                sums[i] = 0.0
            for h in range(holders):
                member = first[s] + h
                start = starts[tables[member]]
                for c in range(starts[tables[member] + 1] - start):
                    sums[h * size + maps[where[member] + c]] += values[start + c]
            for i in range(size):
                mean = 0.0
                for h in range(holders):
                    own = sums[h * size + i]
                    mean += np.log(own) if own > _NOTHING else -np.inf
                mean = np.exp(mean / holders)
                for h in range(holders):
                    own = sums[h * size + i]
                    left = max(left, abs(own - mean))
                    sums[h * size + i] = mean / own if own > _NOTHING else 0.0
            for h in range(holders):
                member = first[s] + h
                start = starts[tables[member]]
                for c in range(starts[tables[member] + 1] - start):
                    values[start + c] *= sums[h * size + maps[where[member] + c]]
        if left <= tolerance:
            break
    return left
