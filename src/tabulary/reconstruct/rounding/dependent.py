"""Dependent rounding: fractions become zeros and ones together, so that their sums hardly move.

Both methods walk. A step finds a direction that does not change the sums that matter. Both ways along it end where
the first fraction reaches 0 or 1. The step chooses one of these two points, with the probabilities that keep the
expectation. Every step settles at least one fraction.
"""

from collections.abc import Callable

import numpy as np

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats, Integers

UNIT = 1 << 40
"""Fractions on the graph are whole multiples of 1/UNIT, so that sums are exact."""

# A fraction this close to a bound has reached it; a pivot this small counts as zero.
_NEAR = 1e-9
_PIVOT = 1e-7


@compiled
def round_cycles(
    left: Integers, right: Integers, parts: Integers, vertices: int, uniforms: Floats, unit: int
) -> None:
    """Round `parts`, whole multiples of 1/`unit`, to 0 or `unit`, in place, along cycles of a bipartite graph.

    Edge i joins the vertices `left[i]` and `right[i]`. The parts at every vertex must add up to a multiple of
    `unit`; then no vertex has exactly one fractional edge, a walk along fractional edges always closes a
    cycle, and raising and lowering its edges in turn changes no sum. Gandhi, Khuller, Parthasarathy & Srinivasan
    (2006). Uses at most one uniform number per edge.
    """
    edges = parts.shape[0]
    # The fractional edges of each vertex, as a list that shrinks by swaps; both ends know the place of an edge.
    start = np.zeros(vertices + 1, np.int64)
    for e in range(edges):
        if 0 < parts[e] < unit:
            start[left[e] + 1] += 1
            start[right[e] + 1] += 1
    for v in range(vertices):
        start[v + 1] += start[v]
    length = np.zeros(vertices, np.int64)
    listed = np.empty(start[vertices], np.int64)
    place = np.empty((edges, 2), np.int64)
    for e in range(edges):
        if 0 < parts[e] < unit:
            for side in range(2):
                v = left[e] if side == 0 else right[e]
                place[e, side] = length[v]
                listed[start[v] + length[v]] = e
                length[v] += 1
    path = np.empty(vertices + 1, np.int64)
    by = np.empty(vertices + 1, np.int64)
    seen = np.full(vertices, -1, np.int64)
    used = 0
    for root in range(vertices):
        while length[root] > 0:
            path[0] = root
            by[0] = -1
            seen[root] = 0
            depth = 0
            while depth >= 0:
                v = path[depth]
                if length[v] == 0:
                    seen[v] = -1
                    depth -= 1
                    continue
                e = listed[start[v]]
                if e == by[depth]:
                    e = listed[start[v] + 1]
                other = right[e] if left[e] == v else left[e]
                if seen[other] < 0:
                    depth += 1
                    path[depth] = other
                    by[depth] = e
                    seen[other] = depth
                    continue
                # The cycle: the edges above `other` on the path, and the one that closes it.
                low = seen[other]
                up = parts[e]
                rise = unit - parts[e]
                sign = -1
                for d in range(depth, low, -1):
                    x = parts[by[d]]
                    if sign > 0:
                        rise = min(rise, unit - x)
                        up = min(up, x)
                    else:
                        rise = min(rise, x)
                        up = min(up, unit - x)
                    sign = -sign
                step = rise if uniforms[used] * (rise + up) < up else -up
                used += 1
                parts[e] += step
                sign = -1
                for d in range(depth, low, -1):
                    parts[by[d]] += sign * step
                    sign = -sign
                # Settled edges leave their lists; the path is cut at the lowest of them.
                cut = depth
                for d in range(depth + 1, low, -1):
                    f = e if d > depth else by[d]
                    if parts[f] == 0 or parts[f] == unit:
                        if d <= depth:
                            cut = d - 1
                        for side in range(2):
                            w = left[f] if side == 0 else right[f]
                            length[w] -= 1
                            last = listed[start[w] + length[w]]
                            where = place[f, side]
                            listed[start[w] + where] = last
                            if left[last] == w:
                                place[last, 0] = where
                            else:
                                place[last, 1] = where
                for d in range(cut + 1, depth + 1):
                    seen[path[d]] = -1
                depth = cut


@compiled
def fly(columns: Floats, fractions: Floats, uniforms: Floats, near: float, smallest_pivot: float) -> None:
    """Round most of `fractions` to 0 or 1, in place, and keep Σ columns[i]·fractions[i] as it was.

    `columns` has a row for each fraction and an entry for each sum that is kept. At most as many fractions as
    there are sums stay between 0 and 1. The flight phase of the cube method, Deville & Tillé (2004), as pivots: a
    fraction that the basis cannot yet balance joins the basis; any other moves together with the basis until one of
    them is settled. Uses one uniform number per fraction; time grows with fractions × sums².
    """
    count, sums = columns.shape
    inverse = np.eye(sums)
    basic = np.full(sums, -1, np.int64)
    alpha = np.empty(sums)
    for j in range(count):
        if not (near < fractions[j] < 1 - near):
            fractions[j] = round(fractions[j])
            continue
        for i in range(sums):
            total = 0.0
            for k in range(sums):
                total += inverse[i, k] * columns[j, k]
            alpha[i] = total
        pivot = -1
        largest = smallest_pivot
        for i in range(sums):
            if basic[i] < 0 and abs(alpha[i]) > largest:
                largest = abs(alpha[i])
                pivot = i
        if pivot < 0:
            rise = 1 - fractions[j]
            fall = fractions[j]
            first_up = -1
            first_down = -1
            for i in range(sums):
                if basic[i] >= 0 and abs(alpha[i]) > smallest_pivot:
                    x = fractions[basic[i]]
                    room_up = (x if alpha[i] > 0 else 1 - x) / abs(alpha[i])
                    room_down = (1 - x if alpha[i] > 0 else x) / abs(alpha[i])
                    if room_up < rise:
                        rise = room_up
                        first_up = i
                    if room_down < fall:
                        fall = room_down
                        first_down = i
            rise = max(rise, 0.0)
            fall = max(fall, 0.0)
            if uniforms[j] * (rise + fall) < fall or rise + fall == 0:
                step = rise
                pivot = first_up
            else:
                step = -fall
                pivot = first_down
            fractions[j] += step
            for i in range(sums):
                if basic[i] >= 0:
                    moved = fractions[basic[i]] - step * alpha[i]
                    fractions[basic[i]] = min(1.0, max(0.0, moved))
            if pivot < 0:
                fractions[j] = round(fractions[j])
                continue
            fractions[basic[pivot]] = round(fractions[basic[pivot]])
        basic[pivot] = j
        scale = alpha[pivot]
        for k in range(sums):
            inverse[pivot, k] /= scale
        for i in range(sums):
            if i != pivot and alpha[i] != 0:
                for k in range(sums):
                    inverse[i, k] -= alpha[i] * inverse[pivot, k]


def round_on_graph(
    left: Integers, right: Integers, fractions: Floats, uniform: Callable[[int], Floats]
) -> Integers:
    """Return 0 or 1 for each fraction, the sums at every vertex and over all edges moved by less than one.

    `left` and `right` number the vertices of either side from 0. Every vertex gets an edge to an extra vertex of the
    other side that makes its sum whole, and an edge with the fraction of the total joins the two extra vertices.
    These edges are rounded to 0 or 1 too, each with its own expectation; only this moves the sums. Exact in units of
    2**-40, to which fractions are rounded first.
    """
    parts = np.rint(fractions * UNIT).astype(np.int64)
    lefts, rights = int(left.max(initial=-1)) + 1, int(right.max(initial=-1)) + 1
    missing_left = -_sums(left, parts, lefts) % UNIT
    missing_right = -_sums(right, parts, rights) % UNIT
    corner = int(parts.sum()) % UNIT
    # Vertices: the left ones, the left extra, the right ones, the right extra.
    from_left = np.concatenate([left, np.arange(lefts), np.full(rights + 1, lefts)])
    to_right = np.concatenate([right, np.full(lefts, rights), np.arange(rights + 1)]) + lefts + 1
    every = np.concatenate([parts, missing_left, missing_right, [corner]]).astype(np.int64)
    round_cycles(from_left, to_right, every, lefts + rights + 2, uniform(every.size), UNIT)
    return every[: parts.size] // UNIT


def round_in_cube(columns: Floats, fractions: Floats, uniform: Callable[[int], Floats]) -> Integers:
    """Return 0 or 1 for each fraction; sums of `columns` are kept as far as possible, the first ones longest.

    Flights over fewer and fewer sums: when no more fractions than kept sums are left, the last sums are dropped (the
    landing of the cube method). If the first column is all ones the total moves by less than one.
    """
    found = fractions.copy()
    kept = columns.shape[1]
    while True:
        left = np.flatnonzero((found > _NEAR) & (found < 1 - _NEAR))
        if not left.size:
            return np.rint(found).astype(np.int64)
        kept = min(kept, left.size)
        part = found[left]
        fly(np.ascontiguousarray(columns[left, :kept]), part, uniform(left.size), _NEAR, _PIVOT)
        found[left] = part
        still = int(np.count_nonzero((part > _NEAR) & (part < 1 - _NEAR)))
        kept = max(0, min(kept, still) - max(1, still // 16))


def _sums(vertices: Integers, parts: Integers, count: int) -> Integers:
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, vertices, parts)
    return found
