"""Sums over runs of consecutive integers, by a few well-chosen points of each run.

They describe laws to analysts; no draw uses them.
"""

import numpy as np
from numpy.typing import NDArray

POINTS = 16


def sum_rule(lengths: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return, one row per run, the points t and the positive weights w with Σ f(i) ≈ Σ w·f(t), 0 ≤ i < length.

    Gauss's quadrature for the counting measure instead of the Lebesgue measure. Its orthogonal polynomials are
    the discrete Chebyshev polynomials, whose recurrence has the diagonal (n - 1)/2 and the squared off-diagonal
    k²(n² - k²)/(4(4k² - 1)) for a run of n; points and weights are the eigenvalues of that matrix and n times
    the squared first entries of its eigenvectors (Golub & Welsch 1969). A run of up to 16 is summed as it is. A
    longer one is summed exactly for polynomials of degree 31, so for any smooth f up to the rounding of doubles,
    and without cancellation where f is positive.

    >>> points, weights = sum_rule(np.array([3, 1_000_000]))
    >>> (weights * points**2).sum(axis=1).round(-6).tolist()
    [0.0, 3.33332833333e+17]
    """
    points = np.tile(np.arange(POINTS, dtype=np.float64), (lengths.size, 1))
    weights = (points < lengths[:, np.newaxis]).astype(np.float64)
    long = np.flatnonzero(lengths > POINTS)
    n = lengths[long].astype(np.float64)[:, np.newaxis]
    k = np.arange(1, POINTS)
    beside = n / 2 * k * np.sqrt((1 - (k / n) ** 2) / (4 * k * k - 1.0))
    recurrence = np.zeros((long.size, POINTS, POINTS))
    recurrence[:, k, k - 1] = beside
    roots, vectors = np.linalg.eigh(recurrence)
    # The matrix without its diagonal has the points about the middle of the run.
    points[long] = (n - 1) / 2 + roots
    weights[long] = n * vectors[:, 0, :] ** 2
    return points, weights
