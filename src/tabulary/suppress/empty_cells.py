"""What protects a suppressed cell when others are empty: an empty cell can go up, and not down.

As in `pattern`, a two-way table is a graph of rows and columns, and here a directed one: a cell that goes up is a step
from its row to its column, one that goes down a step back. Sums stay as they are along a closed walk. An attacker who
knows that no count is below zero knows a suppressed cell exactly if it is on no closed walk but its own step and back
(Gusfield 1988, the mixed graph).
"""

from collections.abc import Iterator
from functools import lru_cache

Edge = tuple[int, int]
Edges = frozenset[Edge]


def exposed(pattern: Edges, empty: Edges) -> Edges:
    """Return the suppressed cells that follow from the sums of rows and columns, when some cells are empty.

    >>> square = frozenset({(0, 0), (0, 1), (1, 0), (1, 1)})
    >>> sorted(exposed(square, frozenset({(0, 0), (0, 1)})))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> sorted(exposed(square, frozenset({(0, 0), (1, 1)})))
    []
    """
    return frozenset(cell for cell in pattern if not _moves(cell, pattern, empty))


@lru_cache(maxsize=1 << 14)
def protected_by(primary: Edges, empty: Edges, shape: tuple[int, int], most: int) -> bool:
    """Return whether some pattern of at most `most` cells leaves none of the primary cells exposed.

    `empty` are the cells known to be empty; a cell that is not primary may be suppressed whether it is empty or not. Exact:
    whatever protects an exposed cell has a step out of what can be reached from it, and each such step is tried.
    """
    return len(primary) <= most and _completes(primary, primary, empty, shape, most - len(primary), frozenset())


def _completes(
    pattern: Edges, primary: Edges, empty: Edges, shape: tuple[int, int], more: int, refused: Edges
) -> bool:
    """Return whether so many more cells are enough; `refused` were tried, with all that can follow, before."""
    stuck = next((cell for cell in sorted(primary) if not _moves(cell, pattern, empty)), None)
    if stuck is None:
        return True
    if not more:
        return False
    for cell in _ways_out(stuck, pattern, empty, shape):
        if cell in refused:
            continue
        if _completes(pattern | {cell}, primary, empty, shape, more - 1, refused):
            return True
        refused |= {cell}
    return False


def _moves(cell: Edge, pattern: Edges, empty: Edges) -> bool:
    """Return whether a cell can go up, or down if it is not empty."""
    row, column = ~cell[0], cell[1]
    rest = pattern - {cell}
    return row in _reached(column, rest, empty) or (
        cell not in empty and column in _reached(row, rest, empty)
    )


def _reached(start: int, pattern: Edges, empty: Edges) -> set[int]:
    """Return the rows (as ~row) and columns that can be walked to."""
    found, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for row, column in pattern:
            there = column if here == ~row else ~row if here == column and (row, column) not in empty else here
            if there not in found:
                found.add(there)
                waiting.append(there)
    return found


def _ways_out(stuck: Edge, pattern: Edges, empty: Edges, shape: tuple[int, int]) -> Iterator[Edge]:
    """Yield the cells that lead on from where the walk of an exposed cell ends, up or, if it is not empty, down.

    Rows and columns in which nothing is suppressed or empty are all alike: one stands for all.
    """
    rest = pattern - {stuck}
    walks = [_reached(stuck[1], rest, empty)]
    if stuck not in empty:
        walks.append(_reached(~stuck[0], rest, empty))
    seen = set()
    used = pattern | empty
    rows, columns = {row for row, _ in used}, {column for _, column in used}
    for row in range(shape[0]):
        for column in range(shape[1]):
            cell = row, column
            leads = any(
                (~row in walk and column not in walk)
                or (column in walk and ~row not in walk and cell not in empty)
                for walk in walks
            )
            kind = (row if row in rows else -1, column if column in columns else -1, cell in empty)
            if leads and cell not in pattern and kind not in seen:
                seen.add(kind)
                yield cell
