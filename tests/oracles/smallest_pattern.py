"""Patterns of suppressed cells, without their values: what hides a cell from exact disclosure, and how little will do.

A two-way table is a bipartite graph: rows and columns are its nodes, suppressed cells its edges. With every sum
published, and counts that may go up and down, an attacker knows a suppressed cell exactly if and only if it is a
*bridge*, an edge on no cycle: Gusfield (1988), "A graph theoretic approach to statistical data security".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.errors import InvalidArgument, InvalidTable

Edge = tuple[int, int]


def smallest_pattern(shape: tuple[int, int], primary: ArrayLike) -> int | None:
    """Return the least number of cells to suppress, `primary` ones included, so that none of these is disclosed.

    Disclosed means exactly, from the sums of rows and columns, which are published, and without regard to the values:
    every primary cell is on a cycle of the graph of suppressed cells. None if no pattern does it, as in a table of
    one row. Nabar & Mishra (2010), section 3, reason with this number. Reads no value of a cell.

    Exact, by iterative deepening from a lower bound: a part of the graph that hangs on one primary bridge needs another
    cell that leaves it, and an added cell leaves at most one part by its row and one by its column. Milliseconds for
    tables of a few dozen cells; exponential in the worst case.

    >>> smallest_pattern((2, 3), [[True, False, False], [False, False, False]])
    4
    >>> smallest_pattern((2, 3), [[True, False, True], [False, True, False]])
    6
    """
    mask = np.asarray(primary, dtype=np.bool_)
    if len(shape) != 2 or mask.shape != tuple(shape):
        raise InvalidTable(f"a pattern of shape {mask.shape} does not fit a two-way table of shape {shape}.")
    # The order of rows and of columns does not matter: one answer serves all.
    rows = sorted(mask.tolist())
    ordered = sorted(zip(*rows, strict=True)) if rows else []
    return _smallest(tuple(zip(*ordered, strict=True)), mask.shape)


def bridges(pattern: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which suppressed cells are on no cycle: those that follow from the sums.

    >>> bridges(np.array([[1, 1, 0], [1, 1, 1]], dtype=bool)).tolist()
    [[False, False, False], [False, False, True]]
    """
    found = np.zeros(pattern.shape, dtype=np.bool_)
    graph = _Graph.of(pattern.shape, frozenset(_edges(pattern)), frozenset(_edges(pattern)))
    for edge in graph.bridges:
        found[edge] = True
    return found


@lru_cache(maxsize=1 << 16)
def _smallest(primary: tuple[tuple[bool, ...], ...], shape: tuple[int, int]) -> int | None:
    rows, columns = shape
    wanted = frozenset((i, j) for i, row in enumerate(primary) for j, cell in enumerate(row) if cell)
    if not wanted:
        return 0
    if rows < 2 or columns < 2:
        return None
    graph = _Graph.of(shape, wanted, wanted)
    for extra in range(graph.least_extra, rows * columns - len(wanted) + 1):
        if _completes(graph, extra, frozenset()):
            return len(wanted) + extra
    raise InvalidArgument(
        "a pattern of every cell leaves a bridge."
    )  # of no table with two rows and two columns


def _completes(graph: "_Graph", extra: int, refused: frozenset[Edge]) -> bool:
    """Return whether so many more cells are enough; `refused` were tried, with all that can follow, before."""
    if not graph.bridges:
        return True
    if graph.least_extra > extra:
        return False
    for edge in graph.ways_out():
        if edge in refused:
            continue
        if _completes(graph.with_edge(edge), extra - 1, refused):
            return True
        refused |= {edge}
    return False


@dataclass(frozen=True)
class _Graph:
    """Suppressed cells; `parts` are what is connected without primary bridges, and each node's part has a number."""

    shape: tuple[int, int]
    edges: frozenset[Edge]
    primary: frozenset[Edge]
    bridges: frozenset[Edge]
    parts: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, int], edges: frozenset[Edge], primary: frozenset[Edge]) -> "_Graph":
        found = frozenset(_bridges(shape, edges)) & primary
        return cls(shape, edges, primary, found, _components(shape, edges - found))

    def with_edge(self, edge: Edge) -> "_Graph":
        return _Graph.of(self.shape, self.edges | {edge}, self.primary)

    @property
    def leaves(self) -> dict[int, tuple[list[int], list[int]]]:
        """The rows and the columns of each part that hangs on one bridge."""
        rows = self.shape[0]
        hanging: dict[int, int] = {}
        for row, column in self.bridges:
            for part in (self.parts[row], self.parts[rows + column]):
                hanging[part] = hanging.get(part, 0) + 1
        found: dict[int, tuple[list[int], list[int]]] = {p: ([], []) for p, n in hanging.items() if n == 1}
        for node, part in enumerate(self.parts):
            if part in found:
                found[part][node >= rows].append(node if node < rows else node - rows)
        return found

    @property
    def least_extra(self) -> int:
        """No fewer cells will do: each leaf needs one, rows need their rows' end and columns their columns'."""
        leaves = self.leaves.values()
        only_rows = sum(not columns for _, columns in leaves)
        only_columns = sum(not rows for rows, _ in leaves)
        return max(only_rows, only_columns, (len(leaves) + 1) // 2)

    def ways_out(self) -> Iterator[Edge]:
        """Yield the cells that leave the narrowest leaf: at least one of them must be suppressed."""
        rows, columns = min(self.leaves.values(), key=self._width)
        others = [node for node in range(self.shape[1]) if node not in columns]
        yield from self._fresh((row, column) for row in rows for column in others)
        others = [node for node in range(self.shape[0]) if node not in rows]
        yield from self._fresh((row, column) for column in columns for row in others)

    def _width(self, leaf: tuple[list[int], list[int]]) -> int:
        rows, columns = leaf
        return len(rows) * (self.shape[1] - len(columns)) + len(columns) * (self.shape[0] - len(rows))

    def _fresh(self, edges: Iterator[Edge]) -> Iterator[Edge]:
        """Yield the cells that are not suppressed yet; of rows or columns without any, one stands for all."""
        used_rows = {row for row, _ in self.edges}
        used_columns = {column for _, column in self.edges}
        seen = set()
        for row, column in edges:
            kind = (row if row in used_rows else -1, column if column in used_columns else -1)
            if (row, column) not in self.edges and kind not in seen:
                seen.add(kind)
                yield row, column


def _edges(pattern: NDArray[np.bool_]) -> Iterator[Edge]:
    for row, column in np.argwhere(pattern):
        yield int(row), int(column)


def _neighbours(shape: tuple[int, int], edges: frozenset[Edge]) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in range(sum(shape))]
    for row, column in edges:
        near[row].append(shape[0] + column)
        near[shape[0] + column].append(row)
    return near


def _bridges(shape: tuple[int, int], edges: frozenset[Edge]) -> Iterator[Edge]:
    """Yield the edges on no cycle, by depth-first search: below such an edge nothing reaches back above it."""
    near = _neighbours(shape, edges)
    entered, reach = [-1] * len(near), [0] * len(near)
    clock = 0
    for root in range(len(near)):
        if entered[root] >= 0:
            continue
        entered[root] = reach[root] = clock
        clock += 1
        path = [(root, -1, iter(near[root]))]
        while path:
            node, above, rest = path[-1]
            for other in rest:
                if entered[other] < 0:
                    entered[other] = reach[other] = clock
                    clock += 1
                    path.append((other, node, iter(near[other])))
                    break
                if other != above:
                    reach[node] = min(reach[node], entered[other])
            else:
                path.pop()
                if above >= 0:
                    reach[above] = min(reach[above], reach[node])
                    if reach[node] == entered[node]:
                        yield min(node, above), max(node, above) - shape[0]


def _components(shape: tuple[int, int], edges: frozenset[Edge]) -> tuple[int, ...]:
    near = _neighbours(shape, edges)
    parts = [-1] * len(near)
    for start in range(len(near)):
        if parts[start] >= 0:
            continue
        parts[start] = start
        waiting = [start]
        while waiting:
            for other in near[waiting.pop()]:
                if parts[other] < 0:
                    parts[other] = start
                    waiting.append(other)
    return tuple(parts)
