"""A population of whole records whose tables are near to given ones.

Every table is counted from the same records, so all tables agree with each other, even if the given ones do not. No
record is ever impossible, so structural zeros stay zero. The search changes the records one attribute at a time, as
long as that brings the tables nearer.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats, Integers, axes_outside, sum_onto
from tabulary.core.domain import Domain, Margin
from tabulary.reconstruct.rounding.dependent import UNIT, round_on_graph

Singles = NDArray[np.float32]
Codes = NDArray[np.int32]
Block = tuple[Margin, NDArray[np.bool_]]
Uniform = Callable[[int], Floats]
"""Gives this many independent numbers from [0, 1)."""

# Records between two checks of the clock.
_CHUNK = 4096
# For each phase of the search: power of the weights, patience, and the share of changed records that ends it.
_PHASES = ((0.5, 0.5, 0.01), (0.25, 1.0, 0.0))
# A larger population starts from one an eighth of its size.
_MOST_AT_ONCE = 200_000
# A gain below this is a rounding error of the single-precision costs.
_LEAST = 1e-4
# The number of cells of tied attributes that a record tries in a sweep, and the largest number that is listed.
_TRIES = 64
_MOST_CHOICES = 1 << 20


def onto(table: Floats, margin: Margin, kept: Sequence[str]) -> Floats:
    """Return the sums of `table` on the attributes `kept`, in the order of its margin."""
    return sum_onto(table, margin, kept)


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
) -> int:
    """Give each attribute of the records in `order` its best level, given everything else; return the changes.

    The `cost` of a cell is the change of the weighted squared distance by one more record, w·(1 + 2·(count - real));
    removing a record subtracts cost - 2·w, so a gain is exact. An attribute is skipped if removing the record would
    make its tables worse by more than `patience`·Σw: most records are like this and hardly ever find a better place.
    """
    score = np.empty(layout.sizes.max(), np.float32)
    moved = 0
    for r in order:
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
            if size == 1 or leaving - 2 * own < -patience * own:
                continue
            for u in range(size):
                score[u] = 0
            for q in range(layout.start[a], layout.start[a + 1]):
                c = layout.copies[q]
                cell = layout.offset[c] + cell_of(record, layout.attributes[c], layout.strides[c]) - old
                for u in range(size):
                    score[u] += cost[cell + u]
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
    return moved


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
    least: float,
) -> int:
    """Give the attributes of each group of zeros a better possible cell together; return the changes.

    Where zeros tie a county to its state, neither can change alone. Each record tries `tries` of the possible cells,
    different ones in every sweep.
    """
    width = zeros.attributes.shape[1]
    was = np.empty(layout.leader.shape[0], np.int64)
    old = np.empty(width, np.int32)
    new = np.empty(width, np.int32)
    moved = 0
    for g in range(zeros.offset.shape[0]):
        many = zeros.first[g + 1] - zeros.first[g]
        for r in order:
            record = codes[r]
            for k in range(width):
                old[k] = record[zeros.attributes[g, k]]
            best = -least
            found = -1
            for k in range(zeros.begin[g], zeros.begin[g + 1]):
                f = zeros.touched[k]
                was[f] = cell_of(record, layout.attributes[f], layout.strides[f])
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
    return moved


def tables_of_population(
    domain: Domain, real: Mapping[Margin, Floats], total: int, uniform: Uniform, seconds: float
) -> tuple[dict[Margin, Integers], dict[str, float | int | str]]:
    """Return the tables of one population, moved towards the real ones for about this many seconds.

    A large population is found in rounds: a record first represents 8, 64, … people, and in each next round one
    eighth as many. A single round would spend most of the time on moving large groups one by one.
    """
    names = tuple(a for a in domain.attributes if any(a in margin for margin in real))
    sizes = domain.shape_of(names)
    blocks = _blocks_on(domain, names)
    layout = _laid_out(names, sizes, tuple(real))
    zeros = _zeros_of(names, blocks, layout)
    eighths = 0
    while total >> 3 * eighths > _MOST_AT_ONCE:
        eighths += 1
    shifts = range(3 * eighths, -1, -3)
    codes = np.zeros((0, len(names)), dtype=np.int32)
    nobody, nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    # Compile before the clock starts: the very first call may take as long as the search.
    change_one(codes, nobody, layout, zeros, nothing, nothing, 0.0, _LEAST)
    change_tied(codes, nobody, layout, zeros, nothing, nothing, _TRIES, 0, _LEAST)
    ends = time.monotonic() + seconds
    sweeps, settled = 0, True
    for shift in shifts if total else ():
        scaled = {margin: table / (1 << shift) for margin, table in real.items()}
        if shift == shifts[0]:
            codes = _first_population(domain, scaled, names, blocks, total >> shift, uniform)
        else:
            codes = np.concatenate([np.repeat(codes, 8, axis=0), codes[: (total >> shift) % 8]])
        order = np.argsort(uniform(len(codes)), kind="stable")
        for power, patience, until in _PHASES:
            # Every phase leaves half of the time to those after it; the last one has none.
            now = time.monotonic()
            last = shift == 0 and (power, patience, until) == _PHASES[-1]
            cut = ends if last else (now + ends) / 2
            cost, weight = _costs(codes, names, sizes, scaled, power)
            moved = len(codes)
            while moved > until * len(codes) and time.monotonic() < cut:
                moved, whole_sweep = 0, True
                for first in range(0, len(codes), _CHUNK):
                    if first and time.monotonic() >= cut:
                        # Part of a sweep says nothing about the rest.
                        moved, whole_sweep = len(codes), False
                        break
                    part = order[first : first + _CHUNK]
                    moved += change_one(codes, part, layout, zeros, cost, weight, patience, _LEAST)
                    moved += change_tied(codes, part, layout, zeros, cost, weight, _TRIES, sweeps, _LEAST)
                sweeps += whole_sweep
            settled = settled and moved <= until * len(codes)
    found = {margin: _counted(codes, names, sizes, margin) for margin in real}
    return found, {"sweeps": sweeps, "settled": "yes" if settled else "no"}


def _counted(codes: Codes, names: Sequence[str], sizes: Sequence[int], margin: Margin) -> Integers:
    members = [names.index(a) for a in margin]
    shape = tuple(sizes[a] for a in members)
    cells = np.ravel_multi_index(tuple(codes[:, a] for a in members), shape)
    return np.bincount(cells, minlength=math.prod(shape)).astype(np.int64).reshape(shape)


def _costs(
    codes: Codes,
    names: Sequence[str],
    sizes: Sequence[int],
    real: Mapping[Margin, Floats],
    power: float,
) -> tuple[Singles, Singles]:
    """Return the cost of one more record in each cell of every copy, and the weights w = (1 + real)^-power.

    Chosen by measurement: 64 three-way tables of 14 attributes, 48,817 records, a million cells, every search with
    the same stopping rule. With equal weights the search gets stuck, because records neither enter nor leave a large
    full cell (root mean square 0.22, largest move 4); with power 1 large cells drift (0.20, 37); 1/4 gives 0.16 and
    4, 1/2 gives 0.14 and 6. First 1/2 and then 1/4 gives 0.14 and 4, in half the time.
    """
    cost: list[Singles] = []
    weight: list[Singles] = []
    for margin, table in real.items():
        w = (1 + table) ** -power
        raised = (w * (1 + 2 * (_counted(codes, names, sizes, margin) - table))).astype(np.float32)
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


def _blocks_on(domain: Domain, names: Sequence[str]) -> list[Block]:
    """Return the domain's zeros on the named attributes, in groups that share no attribute."""
    found = []
    for attributes, mask in domain.zero_blocks:
        shown = tuple(a for a in attributes if a in names)
        left = np.asarray(mask.all(axis=axes_outside(attributes, shown)))
        if left.any():
            found.append((shown, left))
    return found


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


def _first_population(
    domain: Domain,
    real: Mapping[Margin, Floats],
    names: Margin,
    blocks: Sequence[Block],
    total: int,
    uniform: Uniform,
) -> Codes:
    """Return records whose attributes were drawn one after another, each given those of one table.

    The next attribute is the one that the placed attributes of some table predict best. Records that agree on these
    get its levels in proportion to the table, as evenly as whole numbers allow. A record never gets a level that
    would make it impossible.
    """
    codes = np.zeros((total, len(names)), dtype=np.int32)
    told: dict[tuple[str, Margin], tuple[Margin, float]] = {}
    placed: list[str] = []
    while len(placed) < len(names):
        open_pairs = [(a, m) for m in real for a in m if a not in placed]
        for attribute, margin in open_pairs:
            given = tuple(a for a in margin if a in placed)
            if told.get((attribute, margin), (None, 0.0))[0] != given:
                told[attribute, margin] = given, _information(real[margin], margin, attribute, given)
        attribute, margin = max(open_pairs, key=lambda pair: told[pair][1])
        given = told[attribute, margin][0]
        joint = _given(real[margin], margin, attribute, given)
        group = np.zeros(total, dtype=np.int64)
        for a in given:
            group = group * len(domain.levels_of(a)) + codes[:, names.index(a)]
        rows, which, counts = np.unique(group, return_inverse=True, return_counts=True)
        shares = joint[rows]
        shares[shares.sum(axis=1) == 0] = joint.sum(axis=0)
        shared = _shared_out(shares, counts, uniform)
        at = names.index(attribute)
        levels = np.tile(np.arange(joint.shape[1]), rows.size)
        codes[np.lexsort((uniform(total), which)), at] = np.repeat(levels, shared.reshape(-1))
        placed.append(attribute)
        _keep_possible(codes, names, placed, joint.sum(axis=0), blocks, uniform)
    return codes


def _given(table: Floats, margin: Margin, attribute: str, given: Margin) -> Floats:
    """Return one row per cell of `given`, one column per level of `attribute`."""
    within = tuple(a for a in margin if a == attribute or a in given)
    joint = np.moveaxis(onto(table, margin, within), within.index(attribute), -1)
    return joint.reshape(-1, joint.shape[-1])


def _information(table: Floats, margin: Margin, attribute: str, given: Margin) -> float:
    """Return the mutual information of an attribute and `given`, less its expectation by chance in as many cells."""
    joint = _given(table, margin, attribute, given)
    rows, columns, total = joint.sum(axis=1), joint.sum(axis=0), float(joint.sum())
    if not total:
        return 0.0
    entropies = [float(-(p * np.log(p)).sum()) for p in (x[x > 0] / total for x in (rows, columns, joint))]
    used = [int(np.count_nonzero(x >= 0.5)) for x in (rows, columns, joint)]
    # The first correction of Miller (1955).
    return entropies[0] + entropies[1] - entropies[2] - max(0, used[2] - used[0] - used[1] + 1) / (2 * total)


def _shared_out(shares: Floats, counts: Integers, uniform: Uniform) -> Integers:
    """Return each row's count divided in proportion, with cells and column sums within one."""
    wanted = shares * (counts / shares.sum(axis=1))[:, None]
    units = np.rint(wanted * UNIT).astype(np.int64)
    # Rows must be whole to the last unit; the largest cell takes the difference.
    units[np.arange(counts.size), shares.argmax(axis=1)] += counts * UNIT - units.sum(axis=1)
    whole = np.asarray(units // UNIT, dtype=np.int64)
    parts = units % UNIT
    left, right = np.nonzero(parts)
    if left.size:
        whole[left, right] += round_on_graph(left, right, parts[left, right] / UNIT, uniform)
    return whole


def _keep_possible(
    codes: Codes,
    names: Margin,
    placed: Sequence[str],
    shares: Floats,
    blocks: Sequence[Block],
    uniform: Uniform,
) -> None:
    """Give the attribute placed last another level where it made a record impossible."""
    newest = placed[-1]
    for margin, mask in blocks:
        if newest not in margin:
            continue
        shown = tuple(a for a in margin if a in placed)
        zeros = np.asarray(mask.all(axis=axes_outside(margin, placed)))
        zeros = np.moveaxis(zeros, shown.index(newest), -1)
        before = [codes[:, names.index(a)] for a in shown if a != newest]
        wrong = np.flatnonzero(zeros[(*before, codes[:, names.index(newest)])])
        allowed = np.broadcast_to(~zeros[tuple(code[wrong] for code in before)], (wrong.size, shares.size))
        # A level that nobody has is still better than an impossible one.
        chances = np.cumsum(allowed * (shares / shares.sum() + 1e-9), axis=1)
        drawn = uniform(wrong.size) * chances[:, -1]
        codes[wrong, names.index(newest)] = (chances <= drawn[:, None]).sum(axis=1)
