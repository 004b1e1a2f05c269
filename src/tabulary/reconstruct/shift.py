"""The shift: a constant that makes a table non-negative with a known probability, without linear programs.

Dwork, McSherry & Talwar (2007), Theorem 6. The measured values are contrasts c of a table x on N cells, with noise e.
The implied table has the cell

    x(cell) + Σ_i e_i · row_i(cell) / |row_i|²  ≥  x(cell) - (1/N) Σ_i w_i |e_i|,   w_i = N · max|row_i| / |row_i|².

The total is the contrast whose row is all ones, so adding s to it raises every cell by s/N, and the table is
non-negative as soon as s ≥ Σ w_i |e_i|. On binary attributes every weight is one and the sum is the L1 norm of the
noise. The norm itself would reveal the noise; a quantile of its law reveals nothing.
"""

import math
from dataclasses import replace

import numpy as np

from tabulary.core.arrays import Floats, Integers
from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.noise import IntegerNoise
from tabulary.noise.sums import smallest
from tabulary.planning import Measurement
from tabulary.reconstruct.constrained import FullTable

FAILURE = 0.05
"""The probability with which a shifted table may still have a negative cell."""

# A failure probability below this is lost in the rounding of the sums.
_SMALLEST_FAILURE = 1e-9
# The probability beyond the grid and the largest total of rounding; both count as failures.
_NEGLIGIBLE = 1e-12
_GRID = 1 << 18


def shift_of(measurement: Measurement) -> tuple[Measurement, float]:
    """Return the measurement with its total raised until the full table is non-negative, and by how much.

    Post-processing: the shift follows from the plan alone, and fails with probability `FAILURE`.
    """
    plan = measurement.plan
    noise, unknown = plan.measured[0].noise, FullTable(plan)
    shape = unknown.linear_map.shape
    if all(levels == 2 for levels in shape):
        shift: float = integer_shift(noise, unknown.linear_map.size, failure=FAILURE)
    else:
        axes = tuple(tuple(unknown.attributes.index(a) for a in part.margin) for part in plan.measured)
        shift = weighted_shift(noise, contrast_weights(shape, axes), failure=FAILURE)
    # The empty set comes first; the total is raised in whole numbers.
    total = np.array(measurement.values[0] + np.int64(np.ceil(shift)))
    return replace(measurement, values=(total, *measurement.values[1:])), float(np.ceil(shift))


def integer_shift(noise: IntegerNoise, coefficients: int, *, failure: float) -> int:
    r"""Return the smallest integer t with P(\|e₁\| + … + \|e_d\| ≤ t) ≥ 1 - `failure` for integer noise.

    For discrete Laplace noise the tail has a closed form (`DiscreteLaplace.absolute_sum_tail`): exact at every scale.
    The continuous quantile is not a bound: at scale 1 and d = 1 a zero is drawn with probability 0.46, so one in two
    needs t = 1, not 0.69.

    For other noise see `weighted_shift`: exact up to a reach of 2**18, rounded upwards beyond it.
    Post-processing: reads no data, spends no budget.

    >>> from tabulary.noise import DiscreteGaussian, DiscreteLaplace
    >>> integer_shift(DiscreteLaplace(1), 22, failure=0.05), integer_shift(DiscreteLaplace(100), 22, failure=0.05)
    (27, 3024)
    >>> integer_shift(DiscreteGaussian(100), 22, failure=0.05)
    224
    """
    _check(coefficients, failure)
    tail = noise.absolute_sum_tail(coefficients)
    if tail is None:
        return math.ceil(weighted_shift(noise, np.ones(coefficients), failure=failure))
    upper = math.ceil(_reach(noise, np.ones(1), np.array([coefficients])))
    return smallest(lambda t: t >= upper or tail(t) <= failure, upper=upper)


def weighted_shift(noise: IntegerNoise, weights: Floats, *, failure: float) -> float:
    r"""Return an s with P(Σ w_i \|e_i\| ≤ s) ≥ 1 - `failure`, for independent draws of one noise.

    Each term is rounded up to a grid and the laws are multiplied as Fourier series, one factor for each distinct
    weight. With equal weights and a reach below 2**18 the grid is that of the terms and s is the exact quantile;
    otherwise s is above it by at most d grid steps, a step being 2**-18 of a bound on the sum. The mass
    beyond the bound and the rounding of the series count as failures. Post-processing: reads no data.

    >>> from tabulary.noise import DiscreteLaplace
    >>> weighted_shift(DiscreteLaplace(1), np.ones(22), failure=0.05)
    27.0
    """
    given = np.asarray(weights, dtype=np.float64)
    if given.ndim != 1 or not (np.isfinite(given).all() and (given > 0).all()):
        raise InvalidTable("the weights of a shift are a list of positive numbers.")
    _check(given.size, failure)
    sizes, counts = np.unique(given, return_counts=True)
    reach = _reach(noise, sizes, counts)
    step = float(sizes[0]) if sizes.size == 1 and reach < sizes[0] * (_GRID - 1) else reach / (_GRID - 2)
    # Twice the grid: on a circle of this length, only values beyond the reach wrap around.
    edges = np.arange(_GRID, dtype=np.float64) * step
    spectrum = np.ones(_GRID + 1, dtype=np.complex128)
    for size, count in zip(sizes, counts, strict=True):
        # A step that equals the weight must not lose a whole unit to rounding.
        below = np.minimum(np.floor(edges / size * (1 + 1e-15)), float(1 << 53)).astype(np.int64)
        within = 2 * noise.cdf(below) - 1
        law = np.diff(within, prepend=0.0)
        spectrum *= np.fft.rfft(law, 2 * _GRID) ** count
    probability = np.cumsum(np.fft.irfft(spectrum, 2 * _GRID))[:_GRID]
    enough = np.flatnonzero(probability >= 1 - failure + 2 * _NEGLIGIBLE)
    return float(edges[enough[0]]) if enough.size else reach


def contrast_weights(shape: tuple[int, ...], sets: tuple[tuple[int, ...], ...]) -> Floats:
    """Return N·max|row| / |row|² for every measured contrast, in the order of `ContrastMap`.

    Contrast i of an attribute of k levels has the largest entry i and the squared length i(i + 1), so its weight is
    k/(i + 1); the sum of an attribute has weight one. Weights multiply over attributes. No cell meets the
    largest entry of all contrasts at once, so for more than two levels the shift that follows is conservative.

    >>> contrast_weights((2, 3), ((), (0,), (1,))).tolist()
    [1.0, 1.0, 1.5, 1.0]
    """
    found = []
    for axes in sets:
        weights = np.ones(1)
        for axis in axes:
            weights = np.outer(weights, shape[axis] / np.arange(2.0, shape[axis] + 1)).reshape(-1)
        found.append(weights)
    return np.concatenate(found)


def shifted(values: Floats, sets: tuple[tuple[int, ...], ...], shift: float) -> Floats:
    """Return measured contrasts with the shift added to the total, which must be the first of them.

    Every cell of a margin of the implied table rises by the same number (`bias_of_shift`), and the margin is
    non-negative with the probability that the shift was computed for. Contrasts other than the total keep their
    values.

    >>> shifted(np.array([10.0, -4.0]), ((), (0,)), 3.0).tolist()
    [13.0, -4.0]
    """
    if not sets or sets[0] != ():
        raise InvalidTable(
            "a shift is added to the total, which must be the first of the measured contrasts."
        )
    if not (math.isfinite(shift) and shift >= 0):
        raise InvalidNoise(f"a shift is a non-negative number, not {shift!r}.")
    found = np.array(values, dtype=np.float64)
    found[0] += shift
    return found


def _check(coefficients: int, failure: float) -> None:
    if isinstance(coefficients, bool) or not isinstance(coefficients, int) or coefficients < 1:
        raise InvalidNoise(
            f"the number of coefficients must be a positive whole number, not {coefficients!r}."
        )
    if not _SMALLEST_FAILURE <= failure < 1:
        raise InvalidNoise(f"a failure probability must lie between 1e-9 and 1, not {failure!r}.")


def _reach(noise: IntegerNoise, sizes: Floats, counts: Integers) -> float:
    """Return an s with P(Σ w|e| > s) ≤ 1e-12, by Chernoff's bound on a grid of tilts."""
    if not isinstance(noise, IntegerNoise):
        raise InvalidNoise(f"no shift is known for {noise!r}: give a law of `tabulary.noise`.")
    best = math.inf
    for tilt in noise.largest_tilt / float(sizes.max()) * np.linspace(0.002, 0.998, 499):
        moments = sum(
            int(c) * noise.log_absolute_moment_bound(float(tilt * w))
            for w, c in zip(sizes, counts, strict=True)
        )
        best = min(best, (moments - math.log(_NEGLIGIBLE)) / float(tilt))
    return best
