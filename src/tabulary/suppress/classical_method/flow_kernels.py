"""Flows in the network of a two-way table, compiled.

Rows and columns are the nodes, numbered rows first. A cell that rises is a flow from its row to its column and one that
falls a flow back, so that a deviation whose lines sum to zero is a circulation. A cell rises by as much as can flow
from its column to its row through the other cells.
"""

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats

Mask = NDArray[np.bool_]

# Of the level that is asked for: a smaller flow is none.
_NONE = 1e-9


@compiled
def capacities(
    rise: Floats, fall: Floats, share: Floats, row: int, column: int, level: float
) -> tuple[Floats, Floats]:
    """Return what may flow from each row to each column, and back, without one cell.

    `share` is how much of each cell is suppressed. No capacity is above the level: a flow of that much needs no more.
    """
    rows, columns = rise.shape
    out = np.empty((rows, columns))
    back = np.empty((rows, columns))
    for i in range(rows):
        for j in range(columns):
            out[i, j] = min(rise[i, j], level) * share[i, j]
            back[i, j] = min(fall[i, j], level) * share[i, j]
    out[row, column] = 0.0
    back[row, column] = 0.0
    return out, back


@compiled
def push(out: Floats, back: Floats, source: int, sink: int, above: NDArray[np.int64], most: float) -> float:
    """Push as much as a path has room for; `above` is the node before each. The capacities become what is left."""
    rows = out.shape[0]
    amount = most
    node = sink
    while node != source:
        before = above[node]
        room = out[before, node - rows] if before < rows else back[node, before - rows]
        amount = min(amount, room)
        node = before
    node = sink
    while node != source:
        before = above[node]
        if before < rows:
            out[before, node - rows] -= amount
            back[before, node - rows] += amount
        else:
            back[node, before - rows] -= amount
            out[node, before - rows] += amount
        node = before
    return amount


@compiled
def search(
    out: Floats, back: Floats, start: int, stop: int, forward: bool, above: NDArray[np.int64], none: float
) -> None:
    """Set `above` to the node before each one that is reached from `start`, or that reaches it, and to -1 elsewhere."""
    rows, columns = out.shape
    queue = np.empty(rows + columns, dtype=np.int64)
    above[:] = -1
    above[start] = start
    queue[0] = start
    first, last = 0, 1
    # Backward, a step is taken against its direction.
    from_row, from_column = (out, back) if forward else (back, out)
    while first < last and (stop < 0 or above[stop] < 0):
        node = queue[first]
        first += 1
        if node < rows:
            for j in range(columns):
                if above[rows + j] < 0 and from_row[node, j] > none:
                    above[rows + j] = node
                    queue[last] = rows + j
                    last += 1
        else:
            for i in range(rows):
                if above[i] < 0 and from_column[i, node - rows] > none:
                    above[i] = node
                    queue[last] = i
                    last += 1


@compiled
def largest_flow(out: Floats, back: Floats, source: int, sink: int, level: float) -> float:
    """Return how much flows from one node to another, up to a level, by shortest augmenting paths."""
    above = np.empty(out.shape[0] + out.shape[1], dtype=np.int64)
    flow = 0.0
    while flow < level:
        search(out, back, source, sink, True, above, _NONE * level)
        if above[sink] < 0:
            break
        flow += push(out, back, source, sink, above, level - flow)
    return flow


@compiled
def reach(
    rise: Floats, fall: Floats, share: Floats, row: int, column: int, up: bool, level: float
) -> tuple[float, Floats]:
    """Return how far a cell rises or falls, up to a level, and the deviation of the other cells that lets it."""
    out, back = capacities(rise, fall, share, row, column, level)
    before = out.copy()
    nodes = (rise.shape[0] + column, row)
    source, sink = nodes if up else (nodes[1], nodes[0])
    flow = largest_flow(out, back, source, sink, level)
    return flow, before - out


@compiled
def cheapest(
    rise: Floats,
    fall: Floats,
    weight: Floats,
    row: int,
    column: int,
    up: bool,
    level: float,
) -> tuple[float, Floats]:
    """Return a flow that lets a cell rise or fall to a level, by paths of cells of little weight, one after the other.

    A cell too narrow for what is left to flow is charged for as many of its kind as would be needed; one that flows
    already costs nothing more. The weight of a cell that cannot be used is infinite.
    """
    rows, columns = rise.shape
    out, back = capacities(rise, fall, np.ones((rows, columns)), row, column, level)
    before = out.copy()
    nodes = (rows + column, row)
    source, sink = nodes if up else (nodes[1], nodes[0])
    left = weight.copy()
    distance = np.empty(rows + columns)
    above = np.empty(rows + columns, dtype=np.int64)
    final = np.empty(rows + columns, dtype=np.bool_)
    flow = 0.0
    while flow < level * (1 - _NONE):
        need = level - flow
        distance[:] = np.inf
        above[:] = -1
        final[:] = False
        distance[source] = 0.0
        above[source] = source
        while True:
            node = -1
            nearest = np.inf
            for other in range(rows + columns):
                if not final[other] and distance[other] < nearest:
                    node, nearest = other, distance[other]
            if node < 0 or node == sink:
                break
            final[node] = True
            for step in range(columns if node < rows else rows):
                i, j = (node, step) if node < rows else (step, node - rows)
                other = rows + j if node < rows else i
                room = out[i, j] if node < rows else back[i, j]
                if final[other] or room <= _NONE * level:
                    continue
                further = nearest + left[i, j] * max(1.0, need / room)
                if further < distance[other]:
                    distance[other] = further
                    above[other] = node
        if above[sink] < 0:
            break
        node = sink
        while node != source:
            if above[node] < rows:
                left[above[node], node - rows] = 0.0
            else:
                left[node, above[node] - rows] = 0.0
            node = above[node]
        flow += push(out, back, source, sink, above, need)
    return flow, before - out


@compiled
def narrowest_cuts(
    rise: Floats, fall: Floats, share: Floats, row: int, column: int, up: bool, level: float
) -> tuple[float, Floats]:
    """Return how far a cell reaches, up to a level, and what each other cell could add to two narrowest cuts.

    They are the cuts nearest to the source and nearest to the sink; zero where the level is reached.
    """
    rows, columns = rise.shape
    out, back = capacities(rise, fall, share, row, column, level)
    nodes = (rows + column, row)
    source, sink = nodes if up else (nodes[1], nodes[0])
    flow = largest_flow(out, back, source, sink, level)
    cuts = np.zeros((2, rows, columns))
    if flow >= level * (1 - _NONE):
        return level, cuts
    above = np.empty(rows + columns, dtype=np.int64)
    for which in range(2):
        search(out, back, source if which == 0 else sink, -1, which == 0, above, _NONE * level)
        for i in range(rows):
            for j in range(columns):
                # The side of the source: what it reaches, or what does not reach the sink.
                near_row = (above[i] >= 0) == (which == 0)
                near_column = (above[rows + j] >= 0) == (which == 0)
                if (i != row or j != column) and near_row != near_column:
                    cuts[which, i, j] = min(rise[i, j] if near_row else fall[i, j], level)
    return flow, cuts
