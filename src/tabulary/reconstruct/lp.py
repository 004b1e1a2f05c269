"""The linear program of the papers: the non-negative table whose worst deviation is smallest, with a proof.

Yang, Fienberg & Rinaldo, Table 1; Dwork, McSherry & Talwar, section 4.5. Post-processing: it reads the measurement,
never a record, and spends no budget.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.arrays import Floats
from tabulary.core.progress import Progress
from tabulary.errors import InvalidArgument, InvalidTable, NotCertified, TooManyCells
from tabulary.planning.queries import LinearMap

Solver = Literal["auto", "simplex", "column-generation"]

SIMPLEX_LIMIT = 1 << 22
"""How many entries, measured values times cells, the simplex method on every cell may have."""

GENERATED_LIMIT = 1 << 28
"""How many entries the cells that column generation begins with may have: two gibibytes."""

ROUNDS = 1000
"""How often cells may be added before the program is given up; fewer than ten is usual."""

SECONDS = 900.0
"""How long a program may take before it is given up."""


@dataclass(frozen=True, eq=False)
class ProgramSolution:
    """A non-negative table, its distance from the measured values, and the proof that no table is much closer."""

    table: Floats
    """Float, read-only, in the shape of the full table. Not whole numbers."""
    b: float
    """The largest |measured - of the table| / scale, computed from the table itself."""
    lower_bound: float
    """No non-negative table has a smaller `b` (weak duality, up to rounding)."""
    feasible: bool
    """Whether `b` is zero, up to 1e-7 of the largest |measured| / scale."""
    measured: int
    """How many values were measured: |B| in the papers."""
    solver: str
    rounds: int
    """How often cells were added and the program solved again; 1 if all were there from the start."""
    iterations: int
    """Steps of the simplex method."""

    def __post_init__(self) -> None:
        self.table.setflags(write=False)

    @property
    def gap(self) -> float:
        """(b - lower bound) / b: no more than this share of the deviation is avoidable. 0 if feasible."""
        return 0.0 if self.feasible else (self.b - self.lower_bound) / self.b

    @property
    def support(self) -> int:
        """The number of positive cells."""
        return int(np.count_nonzero(self.table))

    @property
    def vertex(self) -> bool:
        """Whether no more cells are positive than values were measured, as at every vertex of the program.

        Rounding to the nearest whole number then moves at most half a person in each of these cells, so
        Σ |rounded - table| ≤ support / 2 ≤ |B| / 2.
        """
        return self.support <= self.measured


def solve_program(
    linear_map: LinearMap,
    measured: ArrayLike,
    *,
    scales: ArrayLike | None = None,
    impossible: NDArray[np.bool_] | None = None,
    gap: float = 1e-3,
    progress: Progress | None = None,
    solver: Solver = "auto",
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
) -> ProgramSolution:
    """Return a vertex of: minimise b subject to |measured - A w| ≤ b · scales and w ≥ 0.

    A is `linear_map`; w is 0 where `impossible`; the scales are 1 unless given, and the noise scales of the measured
    values are the natural choice. The result has a lower bound from the dual program and is within `gap` of it,
    relative to b. If this cannot be proved within `rounds` and `seconds`, it raises an error and returns no table.
    Post-processing: reads no data, spends no budget. Biased: cells cannot be negative, and on a sparse table the
    noise piles up in a few cells.

    "simplex" puts every cell in the program (at most 2²² values times cells). "column-generation" uses only the cells
    that it needs and gives the same optimum. "auto" takes "simplex" for tables with at most four cells for each
    measured value.

    >>> from tabulary.planning.queries import ContrastMap
    >>> found = solve_program(ContrastMap((2, 2), ((), (0,), (1,))), [10, 4, -14])
    >>> round(found.b, 6), round(found.lower_bound, 6), found.table.round(6).tolist()
    (2.0, 2.0, [[0.0, 9.0], [0.0, 3.0]])
    """
    linear_map = linear_map.fast()
    values, weights, possible = _checked(linear_map, measured, scales, impossible)
    if not 0 < gap < 1 or rounds < 1 or not seconds > 0:
        raise InvalidArgument(
            f"a linear program needs a gap between 0 and 1, rounds and seconds above 0, but was given "
            f"gap={gap!r}, rounds={rounds!r}, seconds={seconds!r}. No table was made."
        )
    chosen = _chosen(solver, linear_map, possible)
    if not values.any() or not possible.any():
        # No measured values or no possible cells: the empty table is the only candidate.
        empty = np.zeros(linear_map.shape)
        worst = _deviation(linear_map, empty, values, weights)
        return ProgramSolution(empty, worst, worst, worst == 0, linear_map.size, chosen, 0, 0)

    begun = min(3 * linear_map.size, int(possible.sum())) * linear_map.size
    if chosen == "column-generation" and begun > GENERATED_LIMIT:
        raise NotCertified(
            f"the linear program on {possible.size:,} cells and {values.size:,} measured values would begin with "
            f"{begun:,} entries, above its limit of {GENERATED_LIMIT:,}. No table was made. Use another "
            "reconstruction, or measure fewer or smaller margins."
        )
    # Loads a solver and perhaps a compiler; most uses of this package need neither.
    from tabulary.reconstruct import column_generation

    found = column_generation.generate(
        linear_map,
        values,
        weights,
        possible,
        gap=gap,
        everything=chosen == "simplex",
        rounds=rounds,
        seconds=seconds,
        progress=progress,
    )
    deviation = _deviation(linear_map, found.table, values, weights)
    if found.reason:
        certified = 1 - found.lower_bound / deviation
        raise NotCertified(
            f"the linear program on {possible.size:,} cells and {values.size:,} measured values was asked "
            f"for a gap of {gap:g}, but {found.reason}: {certified:.2g} is certified after {found.rounds} "
            f"rounds. No table was made. Allow more rounds or seconds, accept a larger gap, or measure fewer "
            f"margins."
        )
    return ProgramSolution(
        table=found.table,
        b=deviation,
        lower_bound=min(found.lower_bound, deviation),
        feasible=deviation <= column_generation.FEASIBLE * float(np.abs(values / weights).max()),
        measured=linear_map.size,
        solver=chosen,
        rounds=found.rounds,
        iterations=found.iterations,
    )


def _deviation(linear_map: LinearMap, table: Floats, values: Floats, weights: Floats) -> float:
    return float(np.abs((values - linear_map.forward(table)) / weights).max())


def _checked(
    linear_map: LinearMap, measured: ArrayLike, scales: ArrayLike | None, impossible: NDArray[np.bool_] | None
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    values = np.array(measured, dtype=np.float64)
    weights = np.ones(linear_map.size) if scales is None else np.array(scales, dtype=np.float64)
    if linear_map.size == 0 or values.shape != (linear_map.size,) or weights.shape != (linear_map.size,):
        raise InvalidTable(
            f"the map measures {linear_map.size} values, but there are values of shape {values.shape} and "
            f"scales of shape {weights.shape}. No table was made."
        )
    if not np.isfinite(values).all() or not np.isfinite(weights).all() or not (weights > 0).all():
        raise InvalidTable(
            "measured values must be finite, and scales finite and above 0. No table was made."
        )
    if impossible is None:
        return values, weights, np.ones(int(np.prod(linear_map.shape)), dtype=np.bool_)
    if impossible.shape != linear_map.shape or impossible.dtype != np.bool_:
        raise InvalidTable(
            f"impossible cells must be a table of booleans of shape {linear_map.shape}, not of "
            f"{impossible.dtype} and shape {impossible.shape}. No table was made."
        )
    return values, weights, ~impossible.reshape(-1)


def _chosen(solver: Solver, linear_map: LinearMap, possible: NDArray[np.bool_]) -> Solver:
    cells = int(possible.sum())
    if solver == "auto":
        return (
            "simplex"
            if cells <= 4 * linear_map.size and cells * linear_map.size <= SIMPLEX_LIMIT
            else "column-generation"
        )
    if solver not in ("simplex", "column-generation"):
        raise InvalidArgument(
            f"unknown solver {solver!r}. Use 'auto', 'simplex' or 'column-generation'. No table was made."
        )
    if solver == "simplex" and cells * linear_map.size > SIMPLEX_LIMIT:
        raise TooManyCells(
            f"the simplex method on every cell was asked for {cells:,} cells and {linear_map.size:,} "
            f"measured values, above its limit of {SIMPLEX_LIMIT:,} entries. No table was made. "
            f"Use solver='auto'."
        )
    return solver
