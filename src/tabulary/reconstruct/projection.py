r"""Least squares onto margins: the nearest table with given margins; uncertain cells move farther.

With values m and variances v, the table x ≥ l with the target margins and the least Σ (x - m)²/v has

    x = max(l, m + v Σ λ),

one multiplier λ for each cell of each margin that the cell adds to. They are found one margin after another: given
the others, each λ solves a one-dimensional equation that rises piecewise linearly, by Newton's method. Proportional
fitting would move cells in proportion to their size. Raising many negative cells to zero adds to the total; with
equal noise in all cells, proportional fitting would take that out of the few large ones.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats

Indices = NDArray[np.int32]

# Newton steps for one margin at a time. The first step may go too far, where cells leave their bounds; later steps
# return from one side. The slope is at least this share of the slope with all cells free.
_STEPS = 8
_LEAST_SLOPE = 0.01


def nearest(
    values: Floats,
    variances: Floats,
    least: Floats,
    places: Indices,
    targets: Sequence[Floats],
    *,
    sweeps: int,
    tolerance: float,
) -> Floats:
    """Return the nearest table, at least `least`, with the target margins, or as near as the sweeps get.

    `places` has one row per target: for each cell in order, the number of the target's cell that it adds to. A cell
    of variance zero does not move.

    >>> from tabulary.reconstruct.proportional import Projections
    >>> table = np.array([[100.0, 3.0], [-3.0, 50.0]])
    >>> targets = [np.array([103.0, 50.0]), np.array([100.0, 53.0])]
    >>> one, zero = np.ones((2, 2)), np.zeros((2, 2))
    >>> nearest(table, one, zero, Projections().without_one((2, 2)), targets, sweeps=50, tolerance=1e-9).round(2)
    array([[100.,   3.],
           [  0.,  50.]])
    """
    free = np.array(values, dtype=np.float64).ravel()
    found = np.maximum(free, least.ravel())
    sizes = [target.size for target in targets]
    starts = np.array([0, *accumulate(sizes)])
    joined = np.concatenate([target.ravel() for target in targets])
    sums, slopes, rises = np.empty((3, max(sizes)))
    _lead(
        found,
        free,
        variances.ravel(),
        least.ravel(),
        places,
        joined,
        starts,
        sums,
        slopes,
        rises,
        sweeps,
        tolerance,
    )
    return found.reshape(values.shape)


@compiled
def _lead(
    found: Floats,
    free: Floats,
    variances: Floats,
    least: Floats,
    places: Indices,
    targets: Floats,
    starts: NDArray[np.int64],
    sums: Floats,
    slopes: Floats,
    rises: Floats,
    sweeps: int,
    tolerance: float,
) -> None:
    cells = found.size
    for _ in range(sweeps):
        left = 0.0
        for m in range(places.shape[0]):
            start, end = starts[m], starts[m + 1]
            for step in range(_STEPS):
                for i in range(end - start):
                    sums[i] = slopes[i] = rises[i] = 0.0
                for c in range(cells):
                    i = places[m, c]
                    sums[i] += found[c]
                    rises[i] += variances[c]
                    if free[c] > least[c]:
                        slopes[i] += variances[c]
                worst = 0.0
                for i in range(end - start):
                    missing = targets[start + i] - sums[i]
                    slope = max(slopes[i], _LEAST_SLOPE * rises[i])
                    sums[i] = 0.0
                    if slope > 0.0:
                        worst = max(worst, abs(missing))
                        sums[i] = missing / slope
                if step == 0:
                    left = max(left, worst)
                if worst <= tolerance:
                    break
                for c in range(cells):
                    free[c] += variances[c] * sums[places[m, c]]
                    found[c] = max(least[c], free[c])
        if left <= tolerance:
            break
