r"""The errors of published tables as curves in the published count, from the release alone.

A shrunk or constrained estimate is not a linear function of the measurement, and its error has no closed form. So a
few repetitions make possible truths from the release, measure them again with fresh noise of the stated law, and
estimate them again. The distances of these estimates from their truths estimate the distance of the published tables
from the real ones, bias included. It reads no data and spends no budget.

Few repetitions say nothing about one cell, but much about all cells together. So only three numbers per table come
from them (`ErrorCurve`), and the tables of one order share what they have in common:

- distances are counted in standard errors of the linear estimate, which the plan alone decides;
- the half-width of an empty cell is `EMPTY` of the largest, and half of the rest is reached at `REACH` standard errors.
  A steeper curve would be narrower in small cells, but would move with the noise of its own count. With these two
  numbers a move of one standard error changes a half-width by at most (1 - EMPTY)/(EMPTY · REACH) = 4 %;
- the level of a table is 95 % of the distances of its cells that are not empty. By least squares it is a power of the
  average count of the table in standard errors: that is nearly the same in every release of a plan, while the distances
  of one table depend on what its own noise happens to say about its interactions;
- all levels of an order are multiplied by one factor, so that 95 % of its cells are covered among the small, among the
  medium and among the large true counts.

The repetitions take the same pseudo-random numbers in every release, so that half-widths of two releases differ by what
the releases say, and not by the luck of the repetitions.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from tabulary.core.arrays import Floats, sum_onto
from tabulary.core.domain import Margin
from tabulary.core.progress import Progress
from tabulary.core.residuals import centre
from tabulary.core.table import CellCounts
from tabulary.noise import Entropy
from tabulary.noise.keyed import KeyedEntropy
from tabulary.planning import ErrorCurve, Face, Measurement, Plan
from tabulary.planning.accuracy import normal_quantile
from tabulary.planning.error_curve import CONFIDENCE
from tabulary.reconstruct.constrained import FullTable, measured_vector
from tabulary.reconstruct.rounding.full_table import normals_from
from tabulary.reconstruct.shrink import Shrinkage, Shrunken

EMPTY = 0.75
"""The half-width of an empty cell over the largest half-width of its table."""

REACH = 8.0
"""The count at which a half-width is half-way to the largest, in standard errors of the linear estimate."""

FEWEST, MOST = 6, 100
"""The fewest and the most repetitions."""

# As many repetitions as give about so many cells.
_ENOUGH = 20_000
# True counts are small up to 4, medium up to 50, large above.
_KINDS = (0.5, 4.5, 50.5)
# A kind of which fewer distances are known counts less.
_FEW = 400
# A table of which fewer distances are known counts less. One more table, without a trend, steadies the trend.
_FEW_OF_A_TABLE = 100
_NO_TREND = 1.0
# Only an impossible cell is exact: any other may be off by one person.
_ONE = 1.0


def shrink_curves(
    plan: Plan,
    shrinkage: Shrinkage,
    shrunken: Shrunken,
    published: Mapping[Margin, CellCounts],
    *,
    progress: Progress | None = None,
) -> dict[Margin, ErrorCurve]:
    """Return the curves of shrunk tables, for every set of attributes, with the error of rounding them to `published`.

    Taking the shrunk tables as the truth would give errors that are too small: they are smoother than the truth,
    because shrinkage has removed part of the interactions. So each repetition adds interactions with the posterior
    spread of each cell.
    """
    noise = {s: _linear_deviation(shrinkage, s) for s in shrinkage.sets}
    found = _Distances(plan, noise, {s: shrinkage.held(shrunken.tables, s) for s in shrinkage.sets})
    normal = normals_from(_words())
    for _ in _repetitions(shrunken.tables, progress):
        truth = shrinkage.drawn(shrunken, normal)
        measured = {}
        for s in shrinkage.sets:
            exact = shrinkage.held(truth, s)
            # Centred, white noise of variance σ² has the covariance σ² P of the estimate.
            measured[s] = centre(exact + math.sqrt(shrinkage.variances[s]) * normal(exact.shape))
        again = shrinkage.tables(measured, rough=True).tables
        for s in shrinkage.sets:
            found.add(s, shrinkage.held(truth, s), shrinkage.held(again, s))
    moves = {m: np.asarray(table, dtype=np.float64) - shrunken.tables[m] for m, table in published.items()}
    return found.curves({s: shrinkage.held(moves, s) for s in shrinkage.sets})


def constrained_curves(
    measurement: Measurement,
    face: Face,
    published: CellCounts,
    covered: Sequence[Margin],
    *,
    progress: Progress | None = None,
) -> dict[Margin, ErrorCurve]:
    """Return the curves of the margins of one non-negative full table, for every set in `covered`.

    The repetitions take the full table before rounding as the truth; the error of rounding it to `published` is added.
    """
    plan = measurement.plan
    unknown = FullTable(plan, replace(face, rounding="none"))
    words = _words()
    full, _ = unknown.solve(measured_vector(measurement), words)

    def onto(table: CellCounts) -> dict[Margin, Floats]:
        real = np.asarray(table, dtype=np.float64)
        return {s: np.asarray(sum_onto(real, unknown.attributes, set(s))) for s in covered}

    truth = onto(full)
    found = _Distances(plan, {s: _deviation_of(plan, s) for s in covered}, truth)
    exact = unknown.linear_map.forward(plan.encoded.encode(unknown.attributes, np.asarray(full)))
    for _ in _repetitions({unknown.attributes: full}, progress):
        again, _ = unknown.solve(exact + _noise(unknown, words), words)
        for s, table in onto(again).items():
            found.add(s, truth[s], table)
    return found.curves({s: table - truth[s] for s, table in onto(published).items()})


@dataclass
class _Distances:
    """The distances of repeated estimates from their truths, in standard errors of the linear estimate."""

    plan: Plan
    noise: Mapping[Margin, float]
    tables: Mapping[Margin, Floats]
    known: dict[Margin, list[tuple[Floats, Floats]]] = field(default_factory=dict)

    def add(self, s: Margin, truth: Floats, estimate: Floats) -> None:
        """Add the cells of one repetition of one table that are not empty in truth."""
        scale = max(self.noise[s], 1e-6)
        some = truth >= _KINDS[0]
        true, found = truth[some], estimate[some]
        distances = np.abs(found - true) / (scale * _rise(found / (REACH * scale)))
        self.known.setdefault(s, []).append((true.astype(np.float32), distances.astype(np.float32)))

    def curves(self, moves: Mapping[Margin, Floats]) -> dict[Margin, ErrorCurve]:
        """Return the curve of every table; `moves` are what rounding added to each cell."""
        found = {}
        normal = normal_quantile(CONFIDENCE)
        for order in sorted({len(s) for s in self.noise}):
            alike = [s for s in self.noise if len(s) == order]
            moved = [moves[s].reshape(-1) for s in alike if s in moves]
            rounding = normal * float(np.sqrt(np.mean(np.concatenate(moved) ** 2))) if moved else 0.0
            for s, level in self._levels(alike).items():
                width = math.hypot(level * self.noise[s], rounding)
                low = width if not s else EMPTY * width
                reach = max(REACH * self.noise[s], _ONE)
                found[s] = ErrorCurve(max(low, _ONE), max(width, _ONE), reach)
        return found

    def _levels(self, alike: Sequence[Margin]) -> dict[Margin, float]:
        """Return the largest half-width of each table of one order, in its standard errors."""
        joined = {s: tuple(map(np.concatenate, zip(*self.known[s], strict=True))) for s in alike}
        seen = [s for s in alike if joined[s][1].size]
        # The total is measured, and a release of nobody has no distances: the linear law.
        if alike == [()] or not seen:
            return dict.fromkeys(alike, normal_quantile(CONFIDENCE))
        trend = _Trend.fitted(
            np.array([self._size(s) for s in seen]),
            np.array([math.log(_quantile(joined[s][1], CONFIDENCE)) for s in seen]),
            np.array([joined[s][1].size for s in seen]),
        )
        levels = {s: math.exp(trend.at(self._size(s))) for s in alike}
        true = np.concatenate([joined[s][0] for s in seen])
        distances = np.concatenate([joined[s][1] / levels[s] for s in seen])
        factor = whole = _quantile(distances, CONFIDENCE)
        for above, upto in zip(_KINDS, (*_KINDS[1:], math.inf), strict=True):
            kind = distances[(true >= above) & (true < upto)]
            if kind.size:
                share = kind.size / (kind.size + _FEW)
                factor = max(factor, _quantile(kind, CONFIDENCE) ** share * whole ** (1 - share))
        return {s: factor * level for s, level in levels.items()}

    def _size(self, s: Margin) -> float:
        """Return the logarithm of the average count of a table, in standard errors."""
        possible = int((~self.plan.domain.impossible(s)).sum())
        average = max(float(self.tables[s].sum()), 1.0) / max(possible, 1)
        return math.log(average / max(self.noise[s], 1e-6))


@dataclass(frozen=True)
class _Trend:
    """A straight line."""

    centre: float
    height: float
    slope: float

    @classmethod
    def fitted(cls, sizes: Floats, levels: Floats, known: Floats) -> "_Trend":
        """Return the line nearest to the levels of these tables."""
        weights = known / (known + _FEW_OF_A_TABLE)
        centre_of, height = np.average(sizes, weights=weights), np.average(levels, weights=weights)
        apart = sizes - centre_of
        slope = (weights * apart * (levels - height)).sum() / ((weights * apart**2).sum() + _NO_TREND)
        return cls(float(centre_of), float(height), float(slope))

    def at(self, size: float) -> float:
        return self.height + self.slope * (size - self.centre)


def _rise(sizes: Floats) -> Floats:
    """Return the half-width over the largest, by the count over the reach."""
    found: Floats = EMPTY + (1 - EMPTY) * (sizes / (1 + sizes))
    return found


def _quantile(distances: Floats, share: float) -> float:
    return max(float(np.quantile(distances, share)), 1e-3)


def _repetitions(tables: Mapping[Margin, CellCounts], progress: Progress | None) -> Iterator[int]:
    """Yield the number of each repetition: as many as give enough cells."""
    cells = sum(table.size for table in tables.values())
    wanted = min(max(_ENOUGH // max(cells, 1), FEWEST), MOST)
    for done in range(wanted):
        if progress is not None:
            progress("computing the errors", done, wanted)
        yield done


def _deviation_of(plan: Plan, s: Margin) -> float:
    """Return the standard error of a cell of the linear estimate of the table on `s`, the mean square of all."""
    deviations = plan.error_of(s).standard_errors
    return float(np.sqrt(np.mean(deviations[deviations > 0] ** 2))) if deviations.any() else 0.0


def _linear_deviation(shrinkage: Shrinkage, s: Margin) -> float:
    """Return the standard error of a cell of the linear estimate of the table on `s`."""
    cells = shrinkage.domain.cells
    variance = 0.0
    for order in range(len(s) + 1):
        for r in combinations(s, order):
            variance += shrinkage.noise(r) * (cells(r) / cells(s)) ** 2
    return math.sqrt(variance)


def _words() -> Entropy:
    # The same in every release, and no secret: no noise that protects a person is drawn from them.
    return KeyedEntropy(bytes(32), "error curves")


def _noise(unknown: FullTable, entropy: Entropy) -> Floats:
    drawn = [part.noise.sample(unknown.plan.shape_of(part), entropy) for part in unknown.plan.measured]
    noise = np.concatenate([d.reshape(-1) for d in drawn]).astype(np.float64)
    # Impossible cells of a measured margin get no noise.
    noisy = [part.query.noisy(unknown.plan.measured_domain) for part in unknown.plan.measured]
    noise *= np.concatenate([each.reshape(-1) for each in noisy])
    return noise
