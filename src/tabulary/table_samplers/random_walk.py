"""A reversible walk among the tables with the same sums."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, Integers
from tabulary.table_samplers.partial_table import PartialTable
from tabulary.table_samplers.table_moves import lattice_basis

Records = NDArray[np.int32]


class RandomWalk:
    r"""A Markov chain on the tables that have the sums of the one it is at, and the bounds of what is known.

    Its stationary law is that of the tables given their sums: the product over cells of the weights of their counts.

    One step draws a move, a table z whose sums are all zero, and then one of the tables T + t·z, t whole, that keep
    the bounds, with probability proportional to its weight (a *heat bath*: no step is refused, nothing is tuned). The
    move is drawn without a look at T. So a step from T to T' and one back have the same lines and the same weights, and
    w(T) P(T, T') = w(T') P(T', T): the walk is reversible and its law stationary, whatever the moves. Weights along a
    line are products of log-concave ones, so they rise to one peak and fall.

    It also reaches every table from every other, whatever is fixed or bounded:

    *Two attributes.* Cells that may move are the edges of a bipartite graph between rows and columns; a cycle of it
    is a move, up and down in turn. The difference of two tables is a sum of cycles that all agree with it in sign, so
    one after another they lead from T to T' inside the bounds. Cycles without a chord suffice: a chord parts a cycle in
    two, one of which lowers the chord's cell and one of which raises it; the cell has room for one of them, and after
    that for the other. The walk draws them so: a path sets out along a random edge and goes on to random neighbours,
    never straight back, until its tip is joined to a node it passed; the last such node closes the cycle. A path that
    sets out on a given chordless cycle may follow it to the end, so each has a chance. In a table of which nothing is
    known they are the 2 × 2 moves; with a known diagonal of 3 × 3 the only one has six cells.

    *More attributes.* Most moves swap a level between two random cells: one person fewer in each and one more where the
    swap leads. These alone may not connect tables that have upper bounds or known cells. So one move in four is
    a sum of a geometric number of random members of a basis of all moves (`moves_basis`) and their opposites; any
    difference of two tables is such a sum, and has a chance in a single step.

    In the walk among tables of equal spread, of which nothing is known, every deviation shrinks by 1 - 1/`dimension` in
    a step on average; so steps are counted in *sweeps* of `dimension` steps.
    """

    def __init__(self, known: PartialTable) -> None:
        basis = lattice_basis(known.shape, (known.lower < known.upper).reshape(-1))
        self.moving: NDArray[np.intp] = np.flatnonzero(basis.any(axis=0))
        """The cells that can move, of all cells laid out flat. The others are known, or follow from the sums."""
        self.dimension: int = basis.shape[0]
        self.lower = known.lower.reshape(-1)[self.moving]
        self.upper = known.upper.reshape(-1)[self.moving]
        self._known = known
        self._run: Callable[[Any, Integers, int, Records], None] = self._runner(basis[:, self.moving])

    def states(self, tables: Integers) -> list[Integers]:
        """Return the counts of the moving cells of each table: where walks set out from."""
        return [np.ascontiguousarray(table.reshape(-1)[self.moving]) for table in tables]

    def run(self, table: Integers, stream: Any, *, records: int, sweeps: int = 1) -> Records:
        """Return the counts of the moving cells after every `sweeps` sweeps; `table`, which holds them, moves on."""
        made = np.empty((records, self.moving.size), dtype=np.int32)
        if self.dimension:
            self._run(stream, table, sweeps * self.dimension, made)
        return made

    def _runner(self, basis: Integers) -> Callable[[Any, Integers, int, Records], None]:
        # The compiled steps take a moment to load.
        from tabulary.table_samplers.chain_kernels import walk_combinations, walk_cycles

        law = self.law()
        levels = np.stack(np.unravel_index(self.moving, self._known.shape), axis=1).astype(np.int64)
        long = [axis for axis, number in enumerate(self._known.shape) if number > 1]
        if len(long) <= 2:
            graph = _graph(levels[:, long], [self._known.shape[axis] for axis in long])
            return lambda stream, table, steps, made: walk_cycles(stream, table, law, graph, steps, made)
        strides = np.array([int(np.prod(self._known.shape[axis + 1 :])) for axis in range(levels.shape[1])])
        cell_at = np.full(self._known.lower.size, -1, dtype=np.int64)
        cell_at[self.moving] = np.arange(self.moving.size)
        layout = (levels, strides, cell_at)
        moves = np.ascontiguousarray(basis)
        return lambda stream, table, steps, made: walk_combinations(
            stream, table, law, layout, moves, steps, made
        )

    def law(self) -> tuple[Integers, Integers, Integers, Floats, Floats]:
        """Return where the weights of each cell begin, its bounds, its precision, and the logarithms of all weights."""
        count_laws = [
            self._known.count_law(tuple(map(int, index)))
            for index in zip(*np.unravel_index(self.moving, self._known.shape), strict=True)
        ]
        parts = [
            count_law.log_weights[low : high + 1]
            for count_law, low, high in zip(count_laws, self.lower, self.upper, strict=True)
        ]
        width = self.upper - self.lower + 1
        origin = np.cumsum(width) - width - self.lower
        precision = np.array([1 / count_law.variance for count_law in count_laws])
        return origin, self.lower, self.upper, precision, np.concatenate([np.empty(0), *parts])


def _graph(levels: Integers, shape: list[int]) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the ends of each cell in the graph of rows and columns, which cell joins two nodes, and the neighbours."""
    nodes = sum(shape)
    ends = levels.copy()
    if ends.size:
        ends[:, 1] += shape[0]
    joining = np.full((nodes, nodes), -1, dtype=np.int64)
    for cell, (row, column) in enumerate(ends):
        joining[row, column] = joining[column, row] = cell
    degree = (joining >= 0).sum(axis=1).astype(np.int64)
    neighbours = np.zeros((nodes, max(1, int(degree.max(initial=0)))), dtype=np.int64)
    for node in range(nodes):
        neighbours[node, : degree[node]] = np.flatnonzero(joining[node] >= 0)
    return ends, joining, neighbours, degree
