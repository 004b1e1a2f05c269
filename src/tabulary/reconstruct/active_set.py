"""Non-negative least squares on a few columns that fit into memory, by projected Newton steps."""

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats

# The proximal term that keeps a step defined when columns depend on each other, relative to their squared length.
_PROXIMITY = 1e-10
_MAX_STEPS = 400
_MAX_STALLED = 8


def fit(
    matrix: Floats, measured: Floats, start: Floats, lengths: Floats, total_squared: float, goal: float
) -> Floats:
    """Return a non-negative vector whose certified gap on these columns is at most `goal`·max(1, objective).

    Lawson and Hanson's idea with many columns at a time: solve without bounds for the cells above zero and those that
    would rise, then walk towards that solution. Points on the way are cut off at zero. The next point is the farthest
    one that is no worse than the first point where a cell reaches zero. The objective never rises. Where a whole
    block makes no progress, cells enter one by one, as in the original method, which ends. It stops after a fixed
    number of steps at the latest; the caller's own gap decides what is good enough.
    """
    found = start.copy()
    gram = matrix.T @ matrix
    proximity = _PROXIMITY * float(np.trace(gram)) / max(1, found.size)
    before, stalled = np.inf, 0
    for _ in range(_MAX_STEPS):
        residual = measured - matrix @ found
        rise = matrix.T @ residual
        objective = float(residual @ residual)
        if gap_of(found, rise, lengths, total_squared) <= goal * max(1.0, objective):
            break
        # In the last digits of a double the objective changes only by rounding, and the goal may be below them.
        stalled = stalled + 1 if objective >= before * (1 - 1e-13) else 0
        if stalled > _MAX_STALLED:
            break
        entering = (found == 0) & (rise > 0)
        if objective >= before and entering.any():
            strongest = int(np.argmax(np.where(entering, rise / lengths, -np.inf)))
            entering = np.arange(found.size) == strongest
        before = objective
        found = _newton(matrix, measured, gram, proximity, found, (found > 0) | entering)
    return found


def gap_of(table: Floats, rise: Floats, lengths: Floats, total_squared: float) -> float:
    """Return the certified gap of `solve_least_squares`, from Aᵀr (`rise`), Aᵀz (`lengths`) and z·z."""
    excess = max(0.0, float(np.max(rise / lengths, initial=0.0)))
    return 2 * (excess * float(table @ lengths) - float(table @ rise)) + excess**2 * total_squared


def _newton(
    matrix: Floats, measured: Floats, gram: Floats, proximity: float, found: Floats, free: NDArray[np.bool_]
) -> Floats:
    """Return the next point: one or more steps, until one of them stays within the bounds."""
    while free.any():
        cells = np.flatnonzero(free)
        part, now = matrix[:, cells], found[cells]
        curvature = gram[np.ix_(cells, cells)]
        curvature[np.diag_indices(cells.size)] += proximity
        goal = now + np.linalg.solve(curvature, part.T @ (measured - part @ now))
        below = goal <= 0
        found = np.zeros_like(found)
        if not below.any():
            found[cells] = goal
            return found
        found[cells] = now
        stuck = below & (now == 0)
        if stuck.any():
            free[cells[stuck]] = False
            continue
        found[cells] = _walk(part, measured, now, goal, below)
        free = found > 0
    return found


def _walk(part: Floats, measured: Floats, now: Floats, goal: Floats, below: NDArray[np.bool_]) -> Floats:
    """Return the farthest of a few points on the way that is no worse than the first that meets a bound."""
    reach = np.full(now.size, np.inf)
    reach[below] = now[below] / (now[below] - goal[below])
    first = float(reach.min())
    nearest = np.maximum(now + first * (goal - now), 0)
    nearest[reach <= first * (1 + 1e-9)] = 0
    limit = float(np.sum((measured - part @ nearest) ** 2))
    step = 1.0
    while step > first:
        point: Floats = np.maximum(now + step * (goal - now), 0)
        if np.sum((measured - part @ point) ** 2) <= limit:
            return point
        step /= 2
    return nearest
