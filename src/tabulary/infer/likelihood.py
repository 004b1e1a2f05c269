r"""The likelihood of released values: Poisson counts behind the noise that the release states.

A released value x of a cell with mean μ = exp(η) has the probability f = Σ_a Pois(a; μ) P(x | a). With the moments of
the count a given x,

    d log f / dη = E[a | x] - μ,    d² log f / dη² = Var(a | x) - μ,

so one pass over the cells gives the likelihood, its gradient and its Hessian (Rinott, O'Keefe, Shlomo & Skinner 2018,
section 6.1, who maximise it numerically). No tail is cut: a null hypothesis that fits badly needs far ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.arrays import Floats
from tabulary.core.interruption import checkpoint
from tabulary.errors import InvalidNoise, InvalidTable, NotCertified
from tabulary.infer.count_likelihoods import CountLikelihoods
from tabulary.infer.table_noise import IndependentNoise, whole_counts
from tabulary.noise.count_likelihood import COLUMN, EXACT

_MOST_STEPS = 400
# On the boundary the possible gain may fall as slowly as one over the steps: after so many steps, so little counts as
# none.
_PATIENCE, _LITTLE = 50, 1e-8
# The possible gain at which a fit ends, and the relative rounding of a sum of many logarithms.
_TOLERANCE, _ROUNDING = 1e-11, 1e-14
# The most that a log-mean may move in one step, the least that a step is shortened to, and the bounds of log-means.
_LONGEST, _SHORTEST = 5.0, 1e-9
_LOWEST, _HIGHEST = -40.0, 40.0
_MOST_PEOPLE = 1e18
# Curvature below this, beside that of exact counts, is none: columns that depend on others.
_FLAT = 1e-9
_NOTHING = 1e-300


class NoisyCells:
    """Released values with the law of their noise: the likelihood of the means of all cells.

    `noise` is None where the values are exact. Cells keep the shape of the table.

    >>> from tabulary.noise import DiscreteLaplace
    >>> cells = NoisyCells([30, -4], IndependentNoise(DiscreteLaplace(10), np.array([1, 1])))
    >>> logarithms, expected, variances = cells.evaluate(np.log([25.0, 2.0]))
    >>> expected.round(2).tolist(), variances.round(2).tolist()
    ([26.4, 1.81], [19.57, 1.81])
    >>> means, best = cells.saturated()
    >>> means.round(2).tolist(), bool((best >= logarithms).all())
    ([29.76, 0.0], True)
    """

    def __init__(self, observed: ArrayLike, noise: IndependentNoise | None = None) -> None:
        values = whole_counts(observed)
        terms = np.zeros(values.shape, dtype=np.int64) if noise is None else noise.terms
        if terms.shape != values.shape:
            raise InvalidNoise(
                f"the noise describes {terms.shape} cells, but {values.shape} cells were released."
            )
        if np.any((terms == 0) & (values < 0)):
            raise InvalidTable(
                "a count without noise is negative. Counts of people are not negative: state the noise that was added."
            )
        self.shape = values.shape
        self.observed = values
        self._observed = np.ascontiguousarray(values).reshape(-1)
        cells = values.size
        self._kinds = np.full(cells, EXACT, dtype=np.int64)
        self._numbers = np.zeros((cells, 4))
        self._places = np.zeros((cells, 3), dtype=np.int64)
        self._several = np.zeros(cells, dtype=np.bool_)
        self._table = np.zeros(0)
        if noise is not None and np.any(terms > 0):
            self._lay_out(noise)
        self._saturated: tuple[Floats, Floats] | None = None

    def evaluate(self, log_means: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return log f, E[a | x] and Var(a | x) of every cell; a log-mean of -inf is a structural zero."""
        from tabulary.infer import kernels

        with np.errstate(over="ignore", under="ignore"):
            means = np.minimum(np.exp(np.asarray(log_means, dtype=np.float64)).reshape(-1), _MOST_PEOPLE)
        logarithms, expected, variances = (np.empty(means.size) for _ in range(3))
        kernels.evaluate(
            self._kinds,
            self._observed,
            self._numbers,
            self._places,
            self._table,
            means,
            logarithms,
            expected,
            variances,
        )
        return logarithms.reshape(self.shape), expected.reshape(self.shape), variances.reshape(self.shape)

    def log_likelihood(self, log_means: ArrayLike) -> float:
        """Return the sum of log f over all cells."""
        return float(self.evaluate(log_means)[0].sum())

    def saturated(self) -> tuple[Floats, Floats]:
        """Return the mean that maximises the likelihood of each cell separately, possibly 0, and log f there."""
        from tabulary.infer import kernels

        if self._saturated is None:
            means, logarithms = np.empty(self._observed.size), np.empty(self._observed.size)
            kernels.saturate(
                self._kinds,
                self._observed,
                self._numbers,
                self._places,
                self._table,
                self._several,
                means,
                logarithms,
            )
            self._saturated = means.reshape(self.shape), logarithms.reshape(self.shape)
        return self._saturated

    @classmethod
    def joined(cls, parts: "list[NoisyCells]") -> "NoisyCells":
        """Return the cells of several tables as one row of cells, each with its own law."""
        found = cls.__new__(cls)
        found._observed = np.concatenate([part._observed for part in parts])
        found.observed, found.shape = found._observed, found._observed.shape
        found._kinds = np.concatenate([part._kinds for part in parts])
        found._numbers = np.concatenate([part._numbers for part in parts])
        found._several = np.concatenate([part._several for part in parts])
        starts = np.cumsum([0, *(part._table.size for part in parts)])
        moved = []
        for part, start in zip(parts, starts, strict=False):
            places = part._places.copy()
            places[:, 0] += start
            moved.append(places)
        found._places = np.concatenate(moved)
        found._table = np.concatenate([part._table for part in parts])
        found._saturated = None
        return found

    def at(self, chosen: NDArray[np.bool_]) -> "NoisyCells":
        """Return the chosen cells as one row."""
        index = np.asarray(chosen, dtype=np.bool_).reshape(-1)
        found = NoisyCells.__new__(NoisyCells)
        found._observed = self._observed[index]
        found.observed, found.shape = found._observed, found._observed.shape
        found._kinds, found._numbers = self._kinds[index], self._numbers[index]
        found._places, found._several = self._places[index], self._several[index]
        found._table, found._saturated = self._table, None
        return found

    def _lay_out(self, noise: IndependentNoise) -> None:
        """Give every noisy cell its kind, its numbers and its place in one table of log-probabilities."""
        terms = noise.terms.reshape(-1)
        likelihoods = CountLikelihoods(noise)
        tables: list[Floats] = []
        starts: dict[int, int] = {}
        used = 0
        noisy = np.flatnonzero(terms)
        pairs, which = np.unique(np.stack([self._observed[noisy], terms[noisy]]), axis=1, return_inverse=True)
        members = np.split(noisy[np.argsort(which, kind="stable")], np.cumsum(np.bincount(which))[:-1])
        for (x, count), here in zip(pairs.T.tolist(), members, strict=True):
            law = likelihoods.of(x, count)
            self._kinds[here] = law.kind
            self._numbers[here] = law.width, law.constant, law.slope, law.curvature
            if law.table is None:
                continue
            if id(law) not in starts:
                starts[id(law)] = used
                tables.append(law.table)
                used += law.table.size
            first = law.first + x if law.moved else law.first
            # Counts are not negative: what would lie below zero is left out.
            cut = max(0, -first) if law.kind == COLUMN else 0
            table = law.table[cut:]
            if not np.isfinite(table).any():
                raise InvalidTable(
                    "a released value is lower than the stated noise or the stated minimum allows, whatever the count. "
                    "The stated noise is not the noise of this table."
                )
            self._places[here] = starts[id(law)] + cut, table.size, first + cut
            self._several[here] = law.kind == COLUMN and _peaks(table) > 1
        if tables:
            self._table = np.concatenate(tables)


@dataclass(frozen=True, eq=False)
class LogLinearFit:
    """The means that maximise the likelihood under a log-linear model.

    `rank` is the number of free parameters that the cells determine. A mean may be zero: the maximum lies on the
    boundary then, where a parameter would be infinite.
    """

    log_means: Floats
    log_likelihood: float
    rank: int
    steps: int

    @property
    def means(self) -> Floats:
        """The fitted means."""
        return np.asarray(np.exp(self.log_means))


def fit_log_linear(
    cells: NoisyCells, design: ArrayLike, *, offset: ArrayLike | None = None, start: ArrayLike | None = None
) -> LogLinearFit:
    r"""Return the maximum of the likelihood over log μ = offset + design · θ; one row of `design` per cell, in order.

    Newton's method with the gradient D'(E[a | x] - μ) and the observed information D' diag(μ - Var(a | x)) D. Where
    noise exceeds counts the likelihood is not concave: along axes of the wrong curvature the step takes its absolute
    value, which leads upward. A step is halved until the likelihood rises. Where a mean goes to zero, so that the
    maximum lies on the boundary, the fit stops when nothing is gained any more. The likelihood may have several local
    maxima; this is the one uphill from the released values. Columns may depend on each other. `start` holds log-means
    to begin at. Raises NotCertified if the maximum is not reached.

    >>> from tabulary.noise import DiscreteLaplace
    >>> noise = IndependentNoise(DiscreteLaplace(10), np.ones(4, dtype=np.int64))
    >>> cells = NoisyCells([30, 21, 48, 55], noise)
    >>> fit = fit_log_linear(cells, [[1, 0], [1, 0], [1, 1], [1, 1]])
    >>> fit.means.round(1).tolist(), fit.rank
    ([25.2, 25.2, 51.3, 51.3], 2)
    """
    matrix = np.asarray(design, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != cells.observed.size:
        raise InvalidTable(f"a design must have one row for each of the {cells.observed.size:,} cells.")
    fixed = np.zeros(len(matrix)) if offset is None else np.asarray(offset, dtype=np.float64).reshape(-1)
    model = _Model(cells, matrix, fixed)
    first = np.log(np.maximum(cells.observed.reshape(-1), 0.5)) if start is None else np.asarray(start)
    theta = model.nearest(np.maximum(first.reshape(-1).astype(np.float64), _LOWEST))
    return model.maximised(theta)


class _Model:
    """A log-linear model of the means of noisy cells."""

    def __init__(self, cells: NoisyCells, design: Floats, offset: Floats) -> None:
        self.cells, self.design, self.offset = cells, design, offset
        self.rank = int(np.linalg.matrix_rank(design.T @ design, hermitian=True)) if design.size else 0

    def nearest(self, log_means: Floats) -> Floats:
        """Return the parameters nearest to given log-means, weighted by the means."""
        weights = np.exp(log_means)
        right = self.design.T @ (weights * (log_means - self.offset))
        return np.asarray(np.linalg.lstsq(self._gram(weights), right, rcond=_FLAT)[0])

    def maximised(self, theta: Floats) -> LogLinearFit:
        """Return the fit that is reached from these parameters."""
        log_means = self._log_means(theta)
        value, gradient, information, means = self._at(log_means)
        for steps in range(_MOST_STEPS):
            direction = self._direction(gradient, information, means)
            # What the likelihood would gain, were it the parabola that the step supposes: half of this.
            promised = float(gradient @ direction)
            little = _TOLERANCE if steps < _PATIENCE else _LITTLE
            if promised <= max(little, _ROUNDING * abs(value)):
                return LogLinearFit(log_means.reshape(self.cells.shape), value, self.rank, steps)
            size = min(1.0, _LONGEST / max(float(np.abs(self.design @ direction).max()), _LONGEST))
            while True:
                checkpoint()
                tried = theta + size * direction
                tried_means = self._log_means(tried)
                found = self._at(tried_means)
                if found[0] >= value + 1e-4 * size * promised or size < _SHORTEST:
                    break
                size /= 2
            if not found[0] > value:
                break
            theta, log_means = tried, tried_means
            value, gradient, information, means = found
        raise NotCertified(
            "the maximum of the likelihood of the released counts under this model was not found. No test was made. "
            "Test a coarser table, or use the naive method and distrust it."
        )

    def _log_means(self, theta: Floats) -> Floats:
        return np.clip(self.offset + self.design @ theta, _LOWEST, _HIGHEST)

    def _at(self, log_means: Floats) -> tuple[float, Floats, Floats, Floats]:
        """Return the likelihood, its gradient, the information of each cell, and its information if it were exact."""
        logarithms, expected, variances = self.cells.evaluate(log_means.reshape(self.cells.shape))
        means = np.exp(log_means)
        gradient = self.design.T @ (expected.reshape(-1) - means)
        return float(logarithms.sum()), gradient, means - variances.reshape(-1), means

    def _direction(self, gradient: Floats, information: Floats, means: Floats) -> Floats:
        """Return Newton's step, turned upward wherever the likelihood curves the wrong way."""
        scale = np.sqrt(np.maximum(means @ self.design**2, _NOTHING))
        curvatures, axes = np.linalg.eigh(self._gram(information) / np.outer(scale, scale))
        lengths = (axes.T @ (gradient / scale)) / np.maximum(np.abs(curvatures), _FLAT)
        return np.asarray((axes @ lengths) / scale)

    def _gram(self, weights: Floats) -> Floats:
        return np.asarray(self.design.T @ (weights[:, np.newaxis] * self.design))


def _peaks(table: Floats) -> int:
    """Return how many times a table rises and then falls."""
    finite = table[np.isfinite(table)]
    moves = np.sign(np.diff(finite))
    moves = moves[moves != 0]
    return 1 + int(np.sum((moves[:-1] < 0) & (moves[1:] > 0)))
