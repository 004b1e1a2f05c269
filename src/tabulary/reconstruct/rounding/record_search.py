"""A search that changes records, one at a time, as long as this brings their tables nearer to given ones.

Every change replaces one record by another possible one, so that the tables of the records stay whole, agree with
each other and keep structural zeros, wherever the search ends. It counts the cells that it visits and ends by this
count, never by a clock: the result depends on its input alone.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats, Integers
from tabulary.core.domain import Margin
from tabulary.reconstruct.rounding.first_records import Block, Codes

Singles = NDArray[np.float32]

# A gain below this is a rounding error of the single-precision costs.
_LEAST = 1e-4
# The number of cells of tied attributes that a record tries in a sweep, and the largest number that is listed.
_TRIES = 64
_MOST_CHOICES = 1 << 20


class PopulationLayout(NamedTuple):
    """The places of the cells of all tables in one long array, one copy for each attribute of a table.

    Copy c of a table has one of its attributes last, so that the cells that differ only in this attribute are
    adjacent. Row c of `attributes` and `strides` gives the cell of a record; unused places have stride 0. `start[a]`
    to `start[a + 1]` of `copies` are those with attribute a last. The copies of a table follow each other;
    `leader[c]` is the first of them, and the weights have its order, from `weights[c]` on.
    """

    sizes: Integers
    attributes: Integers
    strides: Integers
    offset: Integers
    leader: Integers
    weights: Integers
    start: Integers
    copies: Integers


class Zeros(NamedTuple):
    """The groups of structural zeros: their attributes, the mask over them, and the possible cells.

    `group[a]` is the group of attribute a, or -1. `first[g]` to `first[g + 1]` of `choices` are the possible
    cells of group g (none if there are too many to list), and of `touched`, by `begin`, the leaders of the
    tables with one of its attributes.
    """

    group: Integers
    attributes: Integers
    strides: Integers
    shape: Integers
    offset: Integers
    mask: NDArray[np.bool_]
    first: Integers
    choices: Integers
    begin: Integers
    touched: Integers


@compiled
def cell_of(record: Codes, attributes: Integers, strides: Integers) -> int:
    """Return the place of a record in a table."""
    found = 0
    for k in range(attributes.shape[0]):
        found += record[attributes[k]] * strides[k]
    return found


@compiled
def enter(
    record: Codes, leader: int, sign: int, layout: PopulationLayout, cost: Singles, weight: Singles
) -> None:
    """Add a record to a table (`sign` 1) or remove it (-1), in every copy."""
    cell = cell_of(record, layout.attributes[leader], layout.strides[leader])
    step = 2 * sign * weight[layout.weights[leader] + cell]
    c = leader
    while c < layout.leader.shape[0] and layout.leader[c] == leader:
        cost[layout.offset[c] + cell_of(record, layout.attributes[c], layout.strides[c])] += step
        c += 1


@compiled
def change_one(
    codes: Codes,
    order: Integers,
    layout: PopulationLayout,
    zeros: Zeros,
    cost: Singles,
    weight: Singles,
    patience: float,
    least: float,
    most: int,
) -> tuple[int, int]:
    """Give each attribute of the records in `order` its best level, given everything else.

    Returns the number of changes and of visited cells, and ends after `most` of these. The `cost` of a cell is the
    change of the weighted squared distance by one more record, w·(1 + 2·(count - real)); removing a record subtracts
    cost - 2·w, so a gain is exact. An attribute is skipped if removing the record would make its tables worse by more
    than `patience`·Σw: most records are like this and hardly ever find a better place.
    """
    score = np.empty(layout.sizes.max(), np.float32)
    moved = 0
    visited = 0
    for r in order:
        if visited >= most:
            break
        record = codes[r]
        for a in range(layout.sizes.shape[0]):
            size = layout.sizes[a]
            old = record[a]
            own = np.float32(0)
            leaving = np.float32(0)
            for q in range(layout.start[a], layout.start[a + 1]):
                f = layout.leader[layout.copies[q]]
                cell = cell_of(record, layout.attributes[f], layout.strides[f])
                own += weight[layout.weights[f] + cell]
                leaving += cost[layout.offset[f] + cell]
            visited += layout.start[a + 1] - layout.start[a]
            if size == 1 or leaving - 2 * own < -patience * own:
                continue
            for u in range(size):
                score[u] = 0
            for q in range(layout.start[a], layout.start[a + 1]):
                c = layout.copies[q]
                cell = layout.offset[c] + cell_of(record, layout.attributes[c], layout.strides[c]) - old
                for u in range(size):
                    score[u] += cost[cell + u]
            visited += size * (layout.start[a + 1] - layout.start[a])
            g = zeros.group[a]
            if g >= 0:
                stride = 0
                for k in range(zeros.attributes.shape[1]):
                    if zeros.attributes[g, k] == a:
                        stride = max(stride, zeros.strides[g, k])
                cell = zeros.offset[g] + cell_of(record, zeros.attributes[g], zeros.strides[g])
                for u in range(size):
                    if zeros.mask[cell + (u - old) * stride]:
                        score[u] = np.inf
            best = old
            for u in range(size):
                if score[u] < score[best]:
                    best = u
            # A gain that is only a rounding error would repeat for ever.
            if best != old and score[best] - score[old] + 2 * own < -least:
                moved += 1
                for q in range(layout.start[a], layout.start[a + 1]):
                    f = layout.leader[layout.copies[q]]
                    record[a] = old
                    enter(record, f, -1, layout, cost, weight)
                    record[a] = best
                    enter(record, f, 1, layout, cost, weight)
    return moved, visited


@compiled
def change_tied(
    codes: Codes,
    order: Integers,
    layout: PopulationLayout,
    zeros: Zeros,
    cost: Singles,
    weight: Singles,
    tries: int,
    sweep: int,
    patience: float,
    least: float,
    most: int,
) -> tuple[int, int]:
    """Give the attributes of each group of zeros a better possible cell together; return what `change_one` does.

    Where zeros tie a county to its state, neither can change alone. Each record tries `tries` of the possible cells,
    different ones in every sweep.
    """
    width = zeros.attributes.shape[1]
    was = np.empty(layout.leader.shape[0], np.int64)
    old = np.empty(width, np.int32)
    new = np.empty(width, np.int32)
    moved = 0
    visited = 0
    for g in range(zeros.offset.shape[0]):
        many = zeros.first[g + 1] - zeros.first[g]
        touched = zeros.begin[g + 1] - zeros.begin[g]
        for r in order:
            if visited >= most:
                break
            record = codes[r]
            own = 0.0
            leaving = 0.0
            for k in range(zeros.begin[g], zeros.begin[g + 1]):
                f = zeros.touched[k]
                was[f] = cell_of(record, layout.attributes[f], layout.strides[f])
                own += weight[layout.weights[f] + was[f]]
                leaving += cost[layout.offset[f] + was[f]]
            visited += touched
            if leaving - 2 * own < -patience * own:
                continue
            for k in range(width):
                old[k] = record[zeros.attributes[g, k]]
            best = -least
            found = -1
            for i in range(min(tries, many)):
                # A window of the list, different for every record and, by a prime step, in every sweep.
                choice = zeros.choices[zeros.first[g] + (i + (r + sweep * 7919) * tries) % many]
                for k in range(width):
                    if zeros.strides[g, k] > 0:
                        record[zeros.attributes[g, k]] = (choice // zeros.strides[g, k]) % zeros.shape[g, k]
                gain = 0.0
                for k in range(zeros.begin[g], zeros.begin[g + 1]):
                    f = zeros.touched[k]
                    cell = cell_of(record, layout.attributes[f], layout.strides[f])
                    if cell != was[f]:
                        gain += cost[layout.offset[f] + cell] - cost[layout.offset[f] + was[f]]
                        gain += 2 * weight[layout.weights[f] + was[f]]
                if gain < best:
                    best = gain
                    found = choice
            visited += min(tries, many) * touched
            for k in range(width):
                new[k] = old[k]
                if found >= 0 and zeros.strides[g, k] > 0:
                    new[k] = (found // zeros.strides[g, k]) % zeros.shape[g, k]
            for side in range(2):
                for k in range(width):
                    if zeros.strides[g, k] > 0:
                        record[zeros.attributes[g, k]] = old[k] if side == 0 else new[k]
                if found >= 0:
                    for k in range(zeros.begin[g], zeros.begin[g + 1]):
                        enter(record, zeros.touched[k], 2 * side - 1, layout, cost, weight)
            if found >= 0:
                moved += 1
    return moved, visited


@compiled
def choose_staying(
    codes: Codes,
    counts: Integers,
    order: Integers,
    layout: PopulationLayout,
    room: Floats,
    twins: int,
    slack: float,
    most: int,
    staying: Integers,
) -> int:
    """Let up to `most` more of the records stay, from as few kinds as possible, in `order`; return how many do.

    Of each kind, `counts` records exist, and at least `twins` do not stay. Every cell keeps a `room` of `slack`: the
    number of records that are missing in the cell if only those that stay are there. It has the order of the weights.
    """
    chosen = 0
    for g in order:
        record = codes[g]
        more = min(counts[g] - staying[g] - twins, most - chosen)
        if more <= 0:
            continue
        for c in range(layout.leader.shape[0]):
            if layout.leader[c] == c:
                cell = layout.weights[c] + cell_of(record, layout.attributes[c], layout.strides[c])
                if room[cell] - more < slack:
                    more = int(max(0.0, np.floor(room[cell] - slack)))
        if more > 0:
            staying[g] += more
            chosen += more
            for c in range(layout.leader.shape[0]):
                if layout.leader[c] == c:
                    cell = layout.weights[c] + cell_of(record, layout.attributes[c], layout.strides[c])
                    room[cell] -= more
    return chosen


class RecordSearch:
    """The search for records over the named attributes, with tables on the given margins.

    `blocks` are the structural zeros, in groups that share no attribute. `visited` counts the cells that all
    searches looked at so far, `sweeps` how often they went through all records.
    """

    def __init__(
        self, names: Margin, sizes: Sequence[int], margins: Sequence[Margin], blocks: Sequence[Block]
    ) -> None:
        self._names = names
        self._sizes = tuple(sizes)
        self.margins = tuple(margins)
        self._layout = _laid_out(names, sizes, self.margins)
        self._zeros = _zeros_of(names, blocks, self._layout)
        self.visited = 0
        self.sweeps = 0

    def counted(self, codes: Codes, margin: Margin, people: Integers | None = None) -> Integers:
        """Return the table of the records on `margin`, each counted as its number of people, or as one."""
        members = [self._names.index(a) for a in margin]
        shape = tuple(self._sizes[a] for a in members)
        cells = np.zeros(len(codes), dtype=np.int64)
        for a in members:
            cells *= self._sizes[a]
            cells += codes[:, a]
        # Sums of floats are exact below 2**53.
        return np.bincount(cells, people, minlength=math.prod(shape)).astype(np.int64).reshape(shape)

    def improve(
        self,
        codes: Codes,
        order: Integers,
        missing: Mapping[Margin, Floats],
        weights: Mapping[Margin, Floats],
        *,
        patience: float,
        until: float,
        most: int,
    ) -> bool:
        """Change the records in place towards tables `missing`; return whether the search ended by itself.

        It ends by itself if a sweep changes at most a share `until` of the records, and else when `visited` reaches
        `most`.
        """
        cost, weight = self._costs(codes, missing, weights)
        moved = len(codes)
        while moved > until * len(codes):
            moved = 0
            for tied in (False, True):
                if self.visited >= most:
                    return False
                common = (codes, order, self._layout, self._zeros, cost, weight)
                left = most - self.visited
                if tied:
                    changes, visits = change_tied(*common, _TRIES, self.sweeps, patience, _LEAST, left)
                else:
                    changes, visits = change_one(*common, patience, _LEAST, left)
                moved += changes
                self.visited += visits
            self.sweeps += 1
        return True

    def staying(
        self,
        codes: Codes,
        counts: Integers,
        order: Integers,
        missing: Mapping[Margin, Floats],
        steps: Sequence[tuple[int, float, int]],
    ) -> Integers:
        """Return how many of the records of each kind, `counts` with the levels `codes`, may stay as they are.

        For each step (twins, slack, left) in turn, records stay until so many are left to move. At least so many
        twins of each kind are left, and in each cell of every table at least a slack of missing records.
        """
        staying = np.zeros(len(codes), dtype=np.int64)
        room = np.concatenate([np.moveaxis(missing[m], 0, -1).reshape(-1) for m in self.margins])
        for twins, slack, left in steps:
            most = int(counts.sum() - staying.sum()) - left
            choose_staying(codes, counts, order, self._layout, room, twins, slack, most, staying)
        return staying

    def _costs(
        self, codes: Codes, missing: Mapping[Margin, Floats], weights: Mapping[Margin, Floats]
    ) -> tuple[Singles, Singles]:
        """Return the cost of one more record in each cell of every copy, and the weights."""
        cost: list[Singles] = []
        weight: list[Singles] = []
        for margin in self.margins:
            w = weights[margin]
            raised = (w * (1 + 2 * (self.counted(codes, margin) - missing[margin]))).astype(np.float32)
            cost.extend(np.moveaxis(raised, axis, -1).reshape(-1) for axis in range(len(margin)))
            weight.append(np.moveaxis(w, 0, -1).reshape(-1).astype(np.float32))
        return np.concatenate(cost), np.concatenate(weight)


def _laid_out(names: Sequence[str], sizes: Sequence[int], margins: Sequence[Margin]) -> PopulationLayout:
    width = max(map(len, margins))
    attributes: list[list[int]] = []
    strides: list[list[int]] = []
    offset: list[int] = []
    last: list[int] = []
    leader: list[int] = []
    weights: list[int] = []
    cells = weighed = 0
    for margin in margins:
        first = len(offset)
        members = [names.index(a) for a in margin]
        for at in members:
            ordered = [*(a for a in members if a != at), at]
            steps = [math.prod(sizes[b] for b in ordered[i + 1 :]) for i in range(len(ordered))]
            attributes.append(ordered + [0] * (width - len(ordered)))
            strides.append(steps + [0] * (width - len(ordered)))
            offset.append(cells)
            last.append(at)
            leader.append(first)
            weights.append(weighed)
            cells += math.prod(sizes[a] for a in members)
        weighed += math.prod(sizes[a] for a in members)
    copies = np.argsort(np.array(last), kind="stable")
    start = np.searchsorted(np.array(last)[copies], np.arange(len(names) + 1))
    arrays = (sizes, attributes, strides, offset, leader, weights, start, copies)
    return PopulationLayout(*(np.array(array, dtype=np.int64) for array in arrays))


def _zeros_of(names: Sequence[str], blocks: Sequence[Block], layout: PopulationLayout) -> Zeros:
    width = max((len(margin) for margin, _ in blocks), default=1)
    group = np.full(len(names), -1, dtype=np.int64)
    attributes, strides, shape = (np.zeros((len(blocks), width), dtype=np.int64) for _ in range(3))
    nothing = np.zeros(0, dtype=np.int64)
    choices, touched = [nothing], [nothing]
    for g, (margin, mask) in enumerate(blocks):
        members = [names.index(a) for a in margin]
        group[members] = g
        attributes[g, : len(members)] = members
        strides[g, : len(members)] = [math.prod(mask.shape[k + 1 :]) for k in range(mask.ndim)]
        shape[g, : len(members)] = mask.shape
        possible = np.flatnonzero(~mask)
        choices.append(possible if possible.size <= _MOST_CHOICES else nothing)
        copies = [layout.copies[layout.start[a] : layout.start[a + 1]] for a in members]
        touched.append(np.unique(layout.leader[np.concatenate(copies)]))
    offset, first, begin = (
        np.array([0, *accumulate(sizes)], dtype=np.int64)
        for sizes in ([mask.size for _, mask in blocks], map(len, choices[1:]), map(len, touched[1:]))
    )
    mask = np.concatenate([np.zeros(0, dtype=bool), *(mask.reshape(-1) for _, mask in blocks)])
    return Zeros(
        group,
        attributes,
        strides,
        shape,
        offset[:-1],
        mask,
        first,
        np.concatenate(choices),
        begin,
        np.concatenate(touched),
    )
