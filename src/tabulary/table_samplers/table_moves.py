"""Tables with the same sums: what leads from one to another, and some to start from."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Integers
from tabulary.errors import InvalidTable, NotCertified
from tabulary.table_samplers.partial_table import PartialTable
from tabulary.table_samplers.public_seed import PublicSeed

# How often moves are shortened by one another, at most; a handful is usual.
_PASSES = 50
# How many nodes the search for a first table may visit.
_NODES = 100_000


def lattice_basis(shape: tuple[int, ...], movable: NDArray[np.bool_]) -> Integers:
    r"""Return moves, one a row, that every difference of two tables with the same sums is a whole combination of.

    `movable` says which cells may differ, all cells laid out flat, and so are the moves. They are a basis of the
    lattice {z : z adds up to 0 at every level of every attribute, z = 0 where nothing may move}: the sums' incidence
    matrix is brought to echelon form by whole steps that can be undone, and what it takes to make zeros spans the rest.
    A cell that no move touches follows from the sums. In three or more attributes, moves are shortened by one another,
    which leaves them a basis.

    >>> lattice_basis((2, 2), np.ones(4, dtype=bool)).tolist()
    [[1, -1, -1, 1]]
    >>> lattice_basis((2, 2), np.array([True, True, True, False])).tolist()
    []
    """
    return _basis(tuple(shape), np.packbits(movable).tobytes())


@lru_cache(maxsize=64)
def _basis(shape: tuple[int, ...], packed: bytes) -> Integers:
    size = int(np.prod(shape))
    movable = np.flatnonzero(np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=size))
    incidence = np.concatenate(
        [
            levels[:, None] == np.arange(number)
            for levels, number in zip(np.unravel_index(movable, shape), shape, strict=True)
        ],
        axis=1,
    )
    margins = incidence.shape[1]
    work = np.concatenate([incidence, np.eye(movable.size, dtype=np.int64)], axis=1)
    done = 0
    for margin in range(margins):
        while (left := np.flatnonzero(work[done:, margin])).size:
            pivot = done + left[np.argmin(np.abs(work[done:, margin][left]))]
            work[[done, pivot]] = work[[pivot, done]]
            if left.size == 1:
                done += 1
                break
            # Euclid: the remainders are smaller than the pivot, and one of them is the next.
            times = work[done + 1 :, margin] // work[done, margin]
            work[done + 1 :] -= times[:, None] * work[done]
    found = work[done:, margins:]
    basis = np.zeros((found.shape[0], size), dtype=np.int64)
    basis[:, movable] = found if sum(levels > 1 for levels in shape) <= 2 else _shortened(found)
    basis.setflags(write=False)
    return basis


def _shortened(basis: Integers) -> Integers:
    """Return the moves with each made shorter by whole multiples of the others, until none helps any more."""
    basis = basis.copy()
    for _ in range(_PASSES):
        changed = False
        for move in range(basis.shape[0]):
            overlap = basis @ basis[move]
            length = (basis**2).sum(axis=1)
            times = np.rint(overlap / length).astype(np.int64)
            times[move] = 0
            saved = 2 * times * overlap - times**2 * length
            best = int(np.argmax(saved))
            if saved[best] > 0:
                basis[move] -= times[best] * basis[best]
                changed = True
        if not changed:
            break
    return basis


def starting_tables(known: PartialTable, number: int, seed: PublicSeed) -> Integers:
    """Return tables that agree with what is known, one below the other, far apart: each is best for a random purpose.

    By HiGHS. A two-way table's program is totally unimodular, so that its vertices are whole; in more attributes whole
    tables are asked for, and the search may end without one. Raises `InvalidTable` where there is none at all.
    """
    import highspy

    from tabulary.linear_solver import linear_solver

    two_way = sum(levels > 1 for levels in known.shape) <= 2
    size = known.lower.size
    # The tables must be far apart, not the farthest apart.
    model = linear_solver(mip_max_nodes=_NODES, mip_rel_gap=0.25)
    model.addVars(
        size, known.lower.reshape(-1).astype(np.float64), known.upper.reshape(-1).astype(np.float64)
    )
    every = np.arange(size, dtype=np.int32)
    if not two_way:
        model.changeColsIntegrality(size, every, np.full(size, highspy.HighsVarType.kInteger, dtype=object))
    level = np.indices(known.shape).reshape(len(known.shape), size)
    for axis, sums in enumerate(known.sums):
        for group, total in enumerate(sums):
            cells = every[level[axis] == group]
            model.addRow(float(total), float(total), cells.size, cells, np.ones(cells.size))
    tables = np.empty((number, *known.shape), dtype=np.int64)
    for k in range(number):
        purpose = seed.stream("first table", k).random(size) - 0.5
        model.changeColsCost(size, every, purpose)
        model.run()
        status = model.getModelStatus()
        if status in (
            highspy.HighsModelStatus.kInfeasible,
            highspy.HighsModelStatus.kUnboundedOrInfeasible,
        ):
            raise InvalidTable(
                "the sums and the released cells contradict each other: no table has all of them."
            )
        table = np.rint(np.asarray(model.getSolution().col_value)).astype(np.int64).reshape(known.shape)
        if not _agrees(table, known):
            raise NotCertified(
                "no table was found to start from: the search ended with "
                f"{model.modelStatusToString(status)!r}. Nothing was drawn. Ask for a table of fewer cells."
            )
        tables[k] = table
    return tables


def _agrees(table: Integers, known: PartialTable) -> bool:
    inside = (known.lower <= table) & (table <= known.upper)
    return bool(inside.all()) and all(
        (table.sum(axis=tuple(other for other in range(table.ndim) if other != axis)) == sums).all()
        for axis, sums in enumerate(known.sums)
    )
