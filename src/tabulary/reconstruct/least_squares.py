"""Least squares: the non-negative table that fits all measured values best, with a certificate."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.progress import Progress
from tabulary.errors import InvalidArgument, InvalidTable, NotCertified
from tabulary.planning.queries import LinearMap
from tabulary.reconstruct.active_set import fit, gap_of

# Gradient steps before the first round of columns, and before every later one: they find the cells that matter.
_FIRST_BURST = 30
_LATER_BURST = 5
_FITS_BEFORE_DOUBT = 3
# The number of steps with rows of one length; fewer where a step costs much.
_EVEN_BURST = 300
_EVEN_WORK = 1 << 24
_POWER_STEPS = 6
_MAX_ROUNDS = 60
# The number of cells that an exact fit takes by either wish: a multiple of the measured values, and a minimum.
_TIMES, _FEWEST = 2, 500


@dataclass(frozen=True)
class LeastSquaresSolution:
    """A non-negative table, and how far from the best one it can be.

    `objective` is Σ (measured - fitted)² / variance; no table has a smaller one than `objective` - `gap`.
    Fitted values are within √gap standard errors of those of the best table, all of them taken together.
    `iterations` counts the applications of the map.
    """

    table: Floats
    objective: float
    gap: float
    iterations: int

    def __post_init__(self) -> None:
        self.table.flags.writeable = False


def solve_least_squares(
    linear_map: LinearMap,
    measured: Floats,
    *,
    variances: Floats | None = None,
    impossible: NDArray[np.bool_] | None = None,
    tolerance: float = 1e-6,
    progress: Progress | None = None,
) -> LeastSquaresSolution:
    r"""Return the table w ≥ 0, zero where `impossible`, that minimises Σ (measured - A w)² / variance.

    Every margin of the one table is non-negative, and all of them agree, by construction. Post-processing:
    reads no data, spends no budget. Biased where cells are cut off at zero: small counts are drawn upwards and
    large ones downwards. The table is not unique; its fitted values A w are.

    **The certificate.** Divide measured values and rows of A by the standard errors. With the residual
    r = y - A w, any u with Aᵀu ≤ 0 gives a lower bound: for w ≥ 0, \|y - A w\|² ≥ 2u·(y - A w) - \|u\|² ≥
    2u·y - \|u\|². Let z = A 1, the measured values of a table of ones. If the map measures the total or a margin,
    then Aᵀz > 0, so that u = r - m z with m = max(0, max Aᵀr / Aᵀz) is such a u. Its distance from the objective is
    the gap

        \|r\|² - 2u·y + \|u\|² = 2(m w·Aᵀz - w·Aᵀr) + m²\|z\|².

    It needs no bound on the total, and is zero at the minimum. At the minimum w* the gradient points into the
    cone, hence \|A(w - w*)\|² ≤ \|r\|² - \|r*\|² ≤ gap. The sum is evaluated in doubles, which cannot resolve gaps
    below about 1e-14·\|y\|²; the reported gap includes that much more.

    **The method.** Accelerated gradient steps with restarts, which are enough where the measured values belong
    to a table without zeros. Where they do not, the best table has hardly more positive cells than there are measured
    values: the cells that the gradient points to are solved exactly (`active_set.fit`), until no other cell would
    rise. A round costs a dozen applications of the map and dense algebra on a few times as many columns as there are
    measured values.

    It ends when the gap is at most `tolerance`·max(1, objective). After a few exact fits, a gap of four times the
    resolution of doubles is enough, if that is more. Otherwise it raises NotCertified.

    >>> from tabulary.planning.queries import MarginMap
    >>> sides = MarginMap((2, 2), ((0,), (1,)))
    >>> solution = solve_least_squares(sides, np.array([10.0, -3.0, 4.0, 5.0]))
    >>> solution.table.sum(axis=1).round(2).tolist(), round(solution.objective, 2)
    ([9.67, 0.0], 9.33)
    """
    linear_map = linear_map.fast()
    problem = _Problem.of(linear_map, measured, variances, impossible)
    if not tolerance > 0:
        raise InvalidArgument(f"the tolerance of least squares must be positive, not {tolerance!r}.")
    floor = 64 * float(np.finfo(np.float64).eps) * float(problem.values @ problem.values)
    table = np.full(problem.cells.size, max(0.0, float(problem.values @ problem.z)) / problem.total_squared)
    even = _evened(problem, measured)
    if even is not None:
        steps = min(_EVEN_BURST, max(_FIRST_BURST, _EVEN_WORK // max(1, table.size)))
        table, *_ = _burst(even, table, steps, tolerance / 1e4, 0.0)
        problem.applications += even.applications
    kept = np.empty(0, dtype=np.intp)
    matrix = np.empty((problem.values.size, 0))
    gap, objective = math.inf, math.inf
    for round_ in range(_MAX_ROUNDS):
        table, gap, objective, wishes = _burst(
            problem, table, _LATER_BURST if round_ else _FIRST_BURST, tolerance, floor
        )
        if progress is not None:
            progress("least squares", round_ + 1, 0)
        # No proof is finer than the resolution of doubles. After a few exact fits the table itself may be finer; the
        # reported gap states what is proved.
        provable = 4 * floor if round_ >= _FITS_BEFORE_DOUBT else 0.0
        if gap <= max(tolerance * max(1.0, objective), provable):
            full = np.zeros(int(np.prod(linear_map.shape)))
            full[problem.cells] = table
            return LeastSquaresSolution(full.reshape(linear_map.shape), objective, gap, problem.applications)
        kept, matrix = _choose(problem, table, wishes, kept, matrix)
        start = table[kept]
        table = np.zeros_like(table)
        table[kept] = fit(
            matrix, problem.values, start, problem.lengths[kept], problem.total_squared, tolerance / 10
        )
    raise NotCertified(
        f"least squares could not be certified: after {_MAX_ROUNDS} rounds the objective may still be "
        f"{gap:.3g} above the minimum, where {tolerance * max(1.0, objective):.3g} was asked for and {floor:.3g} "
        "is what double precision can tell. Nothing was reconstructed. Allow a larger tolerance."
    )


@dataclass
class _Problem:
    """Measured values and map in units of standard errors, on the possible cells only."""

    linear_map: LinearMap
    values: Floats
    weights: Floats
    cells: NDArray[np.intp]
    applications: int = 0

    def __post_init__(self) -> None:
        self.z = self.linear_map.forward(np.ones(self.linear_map.shape)) * self.weights
        self.total_squared = float(self.z @ self.z)
        self.lengths = self.adjoint(self.z)
        if self.cells.size and not self.lengths.min() > 0:
            raise InvalidArgument(
                "least squares needs a measurement that bounds every cell: the total, or a margin. "
                "Measure the total too. Nothing was reconstructed."
            )

    @classmethod
    def of(
        cls,
        linear_map: LinearMap,
        measured: Floats,
        variances: Floats | None,
        impossible: NDArray[np.bool_] | None,
    ) -> "_Problem":
        spread = np.ones(linear_map.size) if variances is None else np.asarray(variances, dtype=np.float64)
        values = np.asarray(measured, dtype=np.float64)
        if values.shape != (linear_map.size,) or spread.shape != (linear_map.size,):
            raise InvalidTable(
                f"the map has {linear_map.size:,} values; {values.shape} measured values and {spread.shape} variances "
                "do not fit it. Nothing was reconstructed."
            )
        if not (np.isfinite(values).all() and np.isfinite(spread).all() and (spread > 0).all()):
            raise InvalidTable("measured values must be finite numbers, and variances finite and positive.")
        if impossible is not None and np.shape(impossible) != linear_map.shape:
            raise InvalidTable(
                f"the mask of impossible cells has shape {np.shape(impossible)}, the table has {linear_map.shape}."
            )
        possible = (
            np.ones(linear_map.shape, dtype=bool)
            if impossible is None
            else ~np.asarray(impossible, dtype=bool)
        )
        weights = 1 / np.sqrt(spread)
        return cls(linear_map, values * weights, weights, np.flatnonzero(possible))

    def forward(self, table: Floats) -> Floats:
        """Return the fitted values of a table given on its possible cells."""
        self.applications += 1
        full = np.zeros(int(np.prod(self.linear_map.shape)))
        full[self.cells] = table
        return self.linear_map.forward(full.reshape(self.linear_map.shape)) * self.weights

    def adjoint(self, values: Floats) -> Floats:
        """Return the transpose applied to standardised values, on the possible cells."""
        self.applications += 1
        return self.linear_map.adjoint(values * self.weights).reshape(-1)[self.cells]

    def columns(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the standardised columns of some of the possible cells."""
        return self.linear_map.columns(self.cells[chosen]) * self.weights[:, None]

    def curvature(self) -> float:
        """Return an estimate of the largest eigenvalue of AᵀA. The steps correct an estimate that is too small."""
        if not hasattr(self, "_curvature"):
            # The second start never vanishes: a table of ones reaches every cell.
            for vector in (self.values + self.z, self.z):
                for _ in range(_POWER_STEPS):
                    vector = self.forward(self.adjoint(vector / max(1e-300, float(np.linalg.norm(vector)))))
                self._curvature = 1.05 * float(np.linalg.norm(vector))
                if self._curvature > 0:
                    break
        return self._curvature

    def steepen(self) -> None:
        """Raise the estimate of the largest eigenvalue after a step that went too far."""
        self._curvature = 1.5 * self.curvature()


def _evened(problem: _Problem, measured: Floats) -> _Problem | None:
    """Return the same problem with rows of one length, or None if they already have it or are not orthogonal.

    Contrasts of many levels have rows of very different lengths, which slow down gradient steps. If a table fits
    exactly, it fits with any weights; otherwise this gives a starting point.
    """
    if not problem.linear_map.orthogonal:
        return None
    squared = problem.linear_map.squared_norms()
    if np.ptp(squared * problem.weights**2) <= 1e-9 * float(squared.max()):
        return None
    weights = 1 / np.sqrt(squared)
    return _Problem(
        problem.linear_map, np.asarray(measured, dtype=np.float64) * weights, weights, problem.cells
    )


def _burst(
    problem: _Problem, start: Floats, steps: int, tolerance: float, floor: float
) -> tuple[Floats, float, float, tuple[Floats, Floats]]:
    """Return the best table met in a few accelerated steps, its gap and objective, and two wishes.

    A wish is one number per cell, large where the next fit should include the cell. The first wish is the last table,
    which the steps have spread over dissimilar cells. The second is how fast the objective falls as the cell rises.

    The gap of `start` is checked before the first step, so that an exact solution costs no steps. The returned table
    has the smallest objective of all tables met, so that no round makes the result worse.
    """
    now, fitted = start, problem.forward(start)
    ahead, fitted_ahead, momentum = now, fitted, 1.0
    best, best_fitted, smallest = now, fitted, math.inf
    for step in range(steps + 1):
        residual = problem.values - fitted
        objective = float(residual @ residual)
        if objective < smallest:
            best, best_fitted, smallest = now, fitted, objective
        rise = problem.adjoint(problem.values - fitted_ahead)
        if step % 5 == 0:
            towards = rise if ahead is now else problem.adjoint(residual)
            gap = gap_of(now, towards, problem.lengths, problem.total_squared) + floor
            if gap <= tolerance * max(1.0, objective):
                return now, gap, objective, (now, towards)
            if start.size == 0:
                break
        after: Floats = np.maximum(ahead + rise / problem.curvature(), 0)
        fitted_after = problem.forward(after)
        change = float(np.sum((problem.values - fitted_after) ** 2)) - objective
        if change > 0 and momentum == 1.0:
            problem.steepen()
        if change > 0 or float((ahead - after) @ (after - now)) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        weight = (momentum - 1) / following
        if weight:
            ahead = after + weight * (after - now)
            fitted_ahead = fitted_after + weight * (fitted_after - fitted)
        else:
            ahead, fitted_ahead = after, fitted_after
        now, fitted, momentum = after, fitted_after, following
    towards = problem.adjoint(problem.values - best_fitted)
    gap = gap_of(best, towards, problem.lengths, problem.total_squared) + floor
    return best, gap, smallest, (now, towards / problem.lengths)


def _choose(
    problem: _Problem,
    table: Floats,
    wishes: tuple[Floats, Floats],
    kept: NDArray[np.intp],
    matrix: Floats,
) -> tuple[NDArray[np.intp], Floats]:
    """Return the cells of the next exact fit and their columns: those most wished for, and those in use."""
    count = max(_FEWEST, _TIMES * problem.values.size)
    used = kept if kept.size <= 2 * count else kept[table[kept] > 0]
    following = np.union1d(used, np.concatenate([_largest(wish, count) for wish in wishes]))
    where = np.full(problem.cells.size, -1, dtype=np.intp)
    where[kept] = np.arange(kept.size)
    old = where[following] >= 0
    found = np.empty((problem.values.size, following.size))
    found[:, old] = matrix[:, where[following[old]]]
    found[:, ~old] = problem.columns(following[~old])
    return following, found


def _largest(wish: Floats, count: int) -> NDArray[np.intp]:
    """Return where the `count` largest positive entries are."""
    among = np.flatnonzero(wish > 0)
    if among.size <= count:
        return among
    return among[np.argpartition(-wish[among], count)[:count]]
