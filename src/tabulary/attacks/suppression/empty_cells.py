"""What protects a suppressed cell when others are empty: an empty cell can go up, and not down.

As in `pattern`, a two-way table is a graph of rows and columns, and here a directed one: a cell that goes up is a step
from its row to its column, one that goes down a step back. Sums stay as they are along a closed walk. An attacker who
knows that no count is below zero knows a suppressed cell exactly if it is on no closed walk but its own step and back
(Gusfield 1988, the mixed graph).
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import inf

Edge = tuple[int, ...]
"""The row and the column of a cell."""

Edges = frozenset[Edge]

MAX_STEPS = 1_000
"""How many partial patterns are looked at before the search for a small one is given up."""


def exposed(pattern: Edges, empty: Edges) -> Edges:
    """Return the suppressed cells that follow from the sums of rows and columns, when some cells are empty.

    >>> square = frozenset({(0, 0), (0, 1), (1, 0), (1, 1)})
    >>> sorted(exposed(square, frozenset({(0, 0), (0, 1)})))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> sorted(exposed(square, frozenset({(0, 0), (1, 1)})))
    []
    """
    return frozenset(_stuck(pattern, pattern, empty))


@lru_cache(maxsize=1 << 14)
def protected_by(
    primary: Edges, empty: Edges, shape: tuple[int, int], most: int, *, steps: int = MAX_STEPS
) -> bool | None:
    """Return whether some pattern of at most `most` cells leaves no primary cell exposed; None if nobody knows.

    `empty` are the cells that are empty, suppressed or not. Whatever protects an exposed cell has a step out of what
    can be reached from it, and each such step is tried. A guess is taken when walks back, one after another, are few
    enough, and dropped when one walk needs too many cells, or too many rows or columns hold a single cell.
    Exponential at worst: after `steps` guesses the search is given up.

    >>> corner, empty = frozenset({(0, 0)}), frozenset({(0, 0)})
    >>> protected_by(corner, empty, (2, 2), 3), protected_by(corner, empty, (2, 2), 4)
    (False, True)
    """
    more = most - len(primary)
    if more < 0:
        return False
    search = _Search(primary, empty, _table(primary | empty, shape, more), steps)
    try:
        return search.completes(primary, more, frozenset())
    except _GivenUp:
        return None


def _table(used: Edges, shape: tuple[int, int], more: int) -> Edges:
    """Return the cells that are worth looking at: of rows and columns that are all alike, as many as may be needed.

    A row in which nothing is suppressed or empty is like any other such row, and of use only with two cells in it.
    """
    lines = []
    for axis, size in enumerate(shape):
        seen = {cell[axis] for cell in used}
        spare = [line for line in range(size) if line not in seen]
        lines.append([*seen, *spare[: more // 2]])
    return frozenset((row, column) for row in lines[0] for column in lines[1])


class _GivenUp(Exception):
    """The search took too many steps."""


def _stuck(cells: Iterable[Edge], pattern: Edges, empty: Edges) -> Iterator[Edge]:
    walks = _Walks(pattern, pattern, empty)
    return (cell for cell in cells if walks.back(cell))


class _Walks:
    """Walks along suppressed cells and, at the price of one each, cells that may yet be suppressed."""

    def __init__(self, pattern: Edges, allowed: Edges, empty: Edges) -> None:
        self._empty = empty
        self._from: dict[int, list[tuple[int, int, Edge]]] = {}
        for cell in allowed:
            # AtomSums are numbered ~row, so that they are not mistaken for columns.
            row, column = ~cell[0], cell[1]
            price = int(cell not in pattern)
            self._from.setdefault(row, []).append((column, price, cell))
            if cell not in empty:
                self._from.setdefault(column, []).append((row, price, cell))

    def back(self, cell: Edge) -> float:
        """Return how many more cells a cell needs to go up, or down if it is not empty: 0 if it is not exposed."""
        return min(price for price, _ in self._either(cell))

    def cheapest(self, cell: Edge) -> Edges:
        """Return the cells of a shortest walk back."""
        return min(self._either(cell), key=lambda walk: walk[0])[1]

    def _either(self, cell: Edge) -> Iterator[tuple[float, Edges]]:
        row, column = ~cell[0], cell[1]
        yield self._shortest(column, row, cell)
        if cell not in self._empty:
            yield self._shortest(row, column, cell)

    def _shortest(self, start: int, end: int, without: Edge) -> tuple[float, Edges]:
        best: dict[int, float] = {start: 0}
        via: dict[int, tuple[int, Edge]] = {}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            if here == end:
                break
            for there, price, cell in self._from.get(here, ()):
                if cell != without and best[here] + price < best.get(there, inf):
                    best[there] = best[here] + price
                    via[there] = here, cell
                    # Free steps first, so that nodes are left in the order of their price.
                    (waiting.append if price else waiting.appendleft)(there)
        cells, node = [], end
        while node in via and node != start:
            node, cell = via[node]
            cells.append(cell)
        return best.get(end, inf), frozenset(cells)


class _Search:
    """A depth-first search for a small pattern."""

    def __init__(self, primary: Edges, empty: Edges, every: Edges, steps: int) -> None:
        self._primary, self._empty, self._every = sorted(primary), empty, every
        self._left = steps

    def completes(self, pattern: Edges, more: int, refused: Edges) -> bool:
        """Return whether so many more cells are enough; `refused` were tried before, with all that can follow."""
        self._left -= 1
        if self._left < 0:
            raise _GivenUp
        if self._lonely(pattern) > more:
            return False
        stuck = list(_stuck(self._primary, pattern, self._empty))
        if not stuck:
            return True
        if _Walks(pattern, self._every - refused, self._empty).back(stuck[0]) > more:
            return False
        if self._one_after_another(stuck, pattern, refused, more):
            return True
        for cell in self._ways_out(stuck[0], pattern):
            if cell in refused:
                continue
            if self.completes(pattern | {cell}, more - 1, refused):
                return True
            refused |= {cell}
        return False

    def _lonely(self, pattern: Edges) -> int:
        """Return how many cells are needed at least: one for each row with a single cell, and for each column."""
        needed = 0
        for axis in (0, 1):
            number = Counter(cell[axis] for cell in pattern)
            needed = max(needed, sum(number[cell[axis]] == 1 for cell in self._primary))
        return needed

    def _one_after_another(self, stuck: list[Edge], pattern: Edges, refused: Edges, more: int) -> bool:
        most = len(pattern) + more
        for cell in stuck:
            pattern |= _Walks(pattern, self._every - refused, self._empty).cheapest(cell)
            if len(pattern) > most:
                return False
        return not any(_stuck(stuck, pattern, self._empty))

    def _ways_out(self, stuck: Edge, pattern: Edges) -> Iterator[Edge]:
        """Yield the cells that lead on from where the walk of an exposed cell ends, up or, if it is not empty, down.

        AtomSums and columns in which nothing is suppressed or empty are all alike: one stands for all.
        """
        rest = pattern - {stuck}
        walks = [_reached(stuck[1], rest, self._empty)]
        if stuck not in self._empty:
            walks.append(_reached(~stuck[0], rest, self._empty))
        used = pattern | self._empty
        rows, columns = {row for row, _ in used}, {column for _, column in used}
        seen = set()
        for cell in sorted(self._every - pattern):
            row, column = ~cell[0], cell[1]
            leads = any(
                (row in walk and column not in walk)
                or (column in walk and row not in walk and cell not in self._empty)
                for walk in walks
            )
            kind = cell[0] if cell[0] in rows else -1, column if column in columns else -1
            if leads and kind not in seen:
                seen.add(kind)
                yield cell


def _reached(start: int, pattern: Edges, empty: Edges) -> set[int]:
    """Return the rows (as ~row) and columns that can be walked to."""
    found, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for cell in pattern:
            row, column = ~cell[0], cell[1]
            there = column if here == row else row if here == column and cell not in empty else here
            if there not in found:
                found.add(there)
                waiting.append(there)
    return found
