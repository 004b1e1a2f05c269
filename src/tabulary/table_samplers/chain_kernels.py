"""Steps of the Markov chain on tables, compiled. `walk.py` says why they reach every table with the right weight.

`table` lists the counts of the cells that can move. `law` holds, for each of them, where its weights begin, its bounds
and its precision, one over the variance of its count before anything is known, and then the logarithms of all weights
in one array: cell c has that of v people at `origin[c] + v`. A move adds `by[k]` to cell `cells[k]`, for k below its
length. On the line of a move, cell k is at `places[k] + t·by[k]` of the weights once the move was made t times.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled, inlined
from tabulary.core.arrays import Floats, Integers

Law = tuple[Integers, Integers, Integers, Floats, Floats]

# Further than any count.
_FAR = 1 << 62
# How many standard deviations from their peak the tails of a proposal touch the weights; √2 is best for a normal law.
_TOUCH = 1.4
# Where the weights have fallen less or more than this there, in logarithms, the spread was misjudged. 1 is expected.
_TOO_HIGH, _TOO_LOW = 0.25, 4.0
# How often a step of a table of three or more attributes swaps levels between two cells, and how often a
# combination of moves goes on.
_SWAPS = 0.75
_GO_ON = 0.5


@compiled
def walk_cycles(
    stream: Any,
    table: Integers,
    law: Law,
    graph: tuple[Integers, Integers, Integers, Integers],
    steps: int,
    records: NDArray[np.int32],
) -> None:
    """Fill `records` with the tables after every `steps` steps along cycles of a two-way table; `table` moves on.

    `graph` holds the row and the column of each cell, counted as nodes; the cell that joins two nodes, or -1; the
    neighbours of each node; their number.
    """
    origin, lower, upper, precision, log_weights = law
    ends, joining, neighbours, degree = graph
    path = np.empty(degree.size, dtype=np.int64)
    cells = np.empty(degree.size, dtype=np.int64)
    by = np.empty(degree.size, dtype=np.int64)
    places = np.empty(degree.size, dtype=np.int64)
    for record in range(records.shape[0]):
        for _ in range(steps):
            length = _cycle(stream, ends, joining, neighbours, degree, path, cells, by)
            _slide(stream, table, cells, by, length, origin, lower, upper, precision, log_weights, places)
        for cell in range(table.size):
            records[record, cell] = table[cell]


@compiled
def walk_combinations(
    stream: Any,
    table: Integers,
    law: Law,
    layout: tuple[Integers, Integers, Integers],
    basis: Integers,
    steps: int,
    records: NDArray[np.int32],
) -> None:
    """Fill `records` with the tables after every `steps` steps of a table of any number of attributes.

    `layout` holds the levels of each cell; how far apart the levels of each attribute stand in the table laid out flat;
    the cell at each place of that, or -1. `basis` holds moves that all others are combinations of.
    """
    origin, lower, upper, precision, log_weights = law
    levels, strides, cell_at = layout
    size = max(4, table.size)
    cells = np.empty(size, dtype=np.int64)
    by = np.empty(size, dtype=np.int64)
    places = np.empty(size, dtype=np.int64)
    move = np.empty(table.size, dtype=np.int64)
    for record in range(records.shape[0]):
        for _ in range(steps):
            if stream.random() < _SWAPS:
                length = _swap(stream, levels, strides, cell_at, cells, by)
            else:
                length = _combination(stream, basis, move, cells, by)
            if length:
                _slide(stream, table, cells, by, length, origin, lower, upper, precision, log_weights, places)
        for cell in range(table.size):
            records[record, cell] = table[cell]


@inlined
def _cycle(
    stream: Any,
    ends: Integers,
    joining: Integers,
    neighbours: Integers,
    degree: Integers,
    path: Integers,
    cells: Integers,
    by: Integers,
) -> int:
    """Write a random cycle without a chord as a move, and return its length."""
    first = int(stream.random() * ends.shape[0])
    path[0], path[1] = ends[first, 0], ends[first, 1]
    tip = 1
    while True:
        node = path[tip]
        # Any neighbour but the one the path came from; where that is drawn, the last one stands in for it.
        drawn = int(stream.random() * (degree[node] - 1))
        if neighbours[node, drawn] == path[tip - 1]:
            drawn = degree[node] - 1
        tip += 1
        path[tip] = neighbours[node, drawn]
        for back in range(tip - 3, -1, -2):
            chord = joining[path[back], path[tip]]
            if chord >= 0:
                length = tip - back + 1
                for k in range(length - 1):
                    cells[k] = joining[path[back + k], path[back + k + 1]]
                    by[k] = 1 - 2 * (k % 2)
                cells[length - 1], by[length - 1] = chord, -1
                return length


@inlined
def _swap(
    stream: Any, levels: Integers, strides: Integers, cell_at: Integers, cells: Integers, by: Integers
) -> int:
    """Write the swap of one level between two random cells as a move; return its length, or 0 if it is none."""
    first = int(stream.random() * levels.shape[0])
    second = int(stream.random() * levels.shape[0])
    differing, apart, here, there = 0, 0, 0, 0
    for axis in range(strides.size):
        here += levels[first, axis] * strides[axis]
        there += levels[second, axis] * strides[axis]
        if levels[first, axis] != levels[second, axis]:
            differing += 1
            # Each of the attributes in which they differ comes to stay with the same chance.
            if stream.random() * differing < 1.0:
                apart = (levels[second, axis] - levels[first, axis]) * strides[axis]
    here, there = cell_at[here + apart], cell_at[there - apart]
    if differing < 2 or here < 0 or there < 0:
        return 0
    cells[0], cells[1], cells[2], cells[3] = first, second, here, there
    by[0], by[1], by[2], by[3] = -1, -1, 1, 1
    return 4


@inlined
def _combination(stream: Any, basis: Integers, move: Integers, cells: Integers, by: Integers) -> int:
    """Write a sum of a geometric number of basic moves and their opposites as a move, and return its length."""
    move[:] = 0
    while True:
        drawn = int(stream.random() * basis.shape[0])
        sign = 1 if stream.random() < 0.5 else -1
        for cell in range(move.size):
            move[cell] += sign * basis[drawn, cell]
        if stream.random() >= _GO_ON:
            break
    length = 0
    for cell in range(move.size):
        if move[cell] != 0:
            cells[length], by[length] = cell, move[cell]
            length += 1
    return length


@inlined
def _slide(
    stream: Any,
    table: Integers,
    cells: Integers,
    by: Integers,
    length: int,
    origin: Integers,
    lower: Integers,
    upper: Integers,
    precision: Floats,
    log_weights: Floats,
    places: Integers,
) -> None:
    r"""Draw from the tables on a line through this one, by weight, and go there.

    The logarithm h(t) of the weight is concave in t. So the weights, in units of the largest, which is at m, lie below
    1 and below a geometric series on either side: for t > m, h(t) - h(m) ≤ h(b) - h(m) + (t - b)·slope, with b > m any
    place further on and slope = h(b) - h(b - 1). A proposal from these, flat and then geometric, is taken with the
    ratio of the weight to it: about four in five are, whatever the spread. What the cells are like before anything is
    known tells where to look for m and for a good b; the law drawn from does not depend on it.
    """
    least, most, sharpness = -_FAR, _FAR, 0.0
    for k in range(length):
        cell, step = cells[k], by[k]
        places[k] = origin[cell] + table[cell]
        sharpness += step * step * precision[cell]
        back, forth = table[cell] - lower[cell], upper[cell] - table[cell]
        if step < 0:
            back, forth, step = forth, back, -step
        if step > 1:
            back, forth = back // step, forth // step
        least, most = max(least, -back), min(most, forth)
    if least == most:
        return
    here = 0 if most > 0 else -1
    rise = _rise(here, places, by, length, log_weights)
    peak = _peak(min(max(round(rise / sharpness), least), most), least, most, places, by, length, log_weights)
    top = _height(peak, places, by, length, log_weights)
    away = int(_TOUCH / math.sqrt(sharpness)) + 1
    flat_down, slope_down, tail_down, mass_down = _side(
        -1, away, peak, peak - least, top, places, by, length, log_weights
    )
    flat_up, slope_up, tail_up, mass_up = _side(
        1, away, peak, most - peak, top, places, by, length, log_weights
    )
    flat = flat_down + flat_up + 1
    while True:
        drawn = stream.random() * (flat + mass_up + mass_down)
        if drawn < flat:
            shift, proposed = peak - flat_down + int(drawn), 0.0
        elif drawn < flat + mass_up:
            beyond = int(math.log(1.0 - stream.random()) / slope_up)
            shift, proposed = peak + flat_up + 1 + beyond, tail_up + beyond * slope_up
        else:
            beyond = int(math.log(1.0 - stream.random()) / slope_down)
            shift, proposed = peak - flat_down - 1 - beyond, tail_down + beyond * slope_down
        if least <= shift <= most:
            height = _height(shift, places, by, length, log_weights) - top
            if stream.random() < math.exp(height - proposed):
                break
    for k in range(length):
        table[cells[k]] += shift * by[k]


@inlined
def _height(shift: int, places: Integers, by: Integers, length: int, log_weights: Floats) -> float:
    """Return the logarithm of the weight of the cells of a move, after the move was made `shift` times."""
    height = 0.0
    for k in range(length):
        height += log_weights[places[k] + shift * by[k]]
    return height


@inlined
def _rise(shift: int, places: Integers, by: Integers, length: int, log_weights: Floats) -> float:
    """Return how much the logarithm of the weight rises from there to one move more."""
    rise = 0.0
    for k in range(length):
        place = places[k] + shift * by[k]
        rise += log_weights[place + by[k]] - log_weights[place]
    return rise


@inlined
def _peak(
    guess: int, least: int, most: int, places: Integers, by: Integers, length: int, log_weights: Floats
) -> int:
    """Return where the weight is largest: from a guess uphill in ever longer steps, then halving what lies between."""
    # The weight still rises after `below`, and no longer after `above`.
    below, above, stride = least - 1, most, 1
    place = guess
    while below + 1 < above:
        if place < most and _rise(place, places, by, length, log_weights) > 0.0:
            below = place
            place = place + stride if above == most else (below + above) // 2
        else:
            above = place
            place = place - stride if below == least - 1 else (below + above) // 2
        stride *= 2
        place = min(max(place, below + 1), above - 1)
    return above


@inlined
def _side(
    sign: int,
    away: int,
    peak: int,
    room: int,
    top: float,
    places: Integers,
    by: Integers,
    length: int,
    log_weights: Floats,
) -> tuple[int, float, float, float]:
    """Return how far the flat part of a proposal reaches to one side, and its tail: slope, first height, mass.

    The mass is 0 where the flat part reaches as far as there is room, which it does where that is less to propose.
    """
    if room == 0:
        return 0, 0.0, 0.0, 0.0
    away = min(away, room)
    height = _height(peak + sign * away, places, by, length, log_weights)
    while top - height > _TOO_LOW and away > 1:
        away //= 2
        height = _height(peak + sign * away, places, by, length, log_weights)
    while top - height < _TOO_HIGH and away < room:
        away = min(2 * away, room)
        height = _height(peak + sign * away, places, by, length, log_weights)
    slope = height - _height(peak + sign * (away - 1), places, by, length, log_weights)
    if slope >= 0.0:
        return room, 0.0, 0.0, 0.0
    # The flat part ends where the geometric series falls below it.
    flat = min(int(away - (height - top) / slope), room)
    first = height - top + (flat + 1 - away) * slope
    mass = math.exp(first) / (1.0 - math.exp(slope))
    if mass >= room - flat:
        return room, 0.0, 0.0, 0.0
    return flat, slope, first, mass
