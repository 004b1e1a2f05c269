"""The law of a released value given the count behind it, laid out for the compiled kernels."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tabulary.core.arrays import Floats, Integers
from tabulary.errors import InvalidNoise
from tabulary.infer.noise import CountLaw, CountRow, IndependentNoise
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian, Tabulated, Truncated

EXACT, LAPLACE, GAUSSIAN, SYMMETRIC, COLUMN = range(5)
"""How the kernels read a law; `tabulary.infer.kernels` says what each means."""

# From this standard deviation on a rounded Gaussian has the probabilities of a Gaussian whose variance is larger by
# 1/12, to six digits within thirteen deviations.
_WIDE_ROUNDED = 64.0
# From this one on a sum of discrete Gaussians is a discrete Gaussian, to the last digit.
_WIDE_DISCRETE = 3.0
# Probabilities below this are left to the continuation of a table.
_FAINT = 1e-290
# How many scales a table of a sum of Laplace draws reaches, and how many at its end are spoilt by the cut.
_REACH, _SPOILT = 600.0, 25.0
_LARGEST_TABLE = 1 << 20
# A perturbation without a bound is listed until it is this unlikely beside its likeliest.
_UNLIKELY = 1e-30


@dataclass(frozen=True, eq=False)
class Shape:
    """A law as the kernels read it.

    A COLUMN's table is log P(x | a) for the counts a from `first` on, or from x + `first` on if it is `moved`
    along with x. Beyond its end it goes on with `slope`; at -inf it ends.
    """

    kind: int
    width: float = 0.0
    constant: float = 0.0
    slope: float = -math.inf
    curvature: float = 0.0
    table: Floats | None = None
    first: int = 0
    moved: bool = False


class Shapes:
    """The shapes of one noise, each made once: by the number of draws, and by x where the law is not moved along."""

    def __init__(self, noise: IndependentNoise) -> None:
        self._noise = noise
        self._known: dict[tuple[int, int | None], Shape] = {}
        self._rows: dict[int, tuple[int, Floats]] = {}

    def of(self, x: int, terms: int) -> Shape:
        """Return the shape of the law of a released value x that holds this many draws."""
        minimum = self._noise.minimum
        depends = isinstance(self._noise.law, CountLaw) or (minimum is not None and x <= minimum)
        key = (terms, x if depends else None)
        if key not in self._known:
            self._known[key] = self._made(x, terms) if depends else _additive(self._noise.law, terms)
        return self._known[key]

    def log_chances(self, x: int, terms: int, counts: Integers) -> Floats:
        """Return log P(x | a) for each of these counts a, -inf where x cannot be released."""
        if not terms:
            return np.where(counts == x, 0.0, -math.inf)
        shape = self.of(x, terms)
        offsets = np.abs(x - counts).astype(np.float64)
        if shape.kind == LAPLACE:
            return np.asarray(shape.constant - shape.width * offsets)
        if shape.kind == GAUSSIAN:
            return np.asarray(shape.constant - offsets**2 / (2 * shape.width))
        assert shape.table is not None, "what has no closed form has a table"
        if shape.kind == SYMMETRIC:
            places = np.abs(x - counts)
        else:
            places = counts - (shape.first + x if shape.moved else shape.first)
        if not shape.table.size:
            return np.full(counts.shape, -math.inf)
        last = shape.table.size - 1
        found = np.where(places >= 0, shape.table[np.clip(places, 0, last)], -math.inf)
        beyond = np.maximum(places - last, 0)
        if shape.slope == -math.inf:
            return np.where(beyond > 0, -math.inf, found)
        return np.asarray(found + shape.slope * beyond - shape.curvature * beyond * (beyond + 1) / 2)

    def _made(self, x: int, terms: int) -> Shape:
        minimum = self._noise.minimum
        if minimum is not None and x < minimum:
            # No count is published as less than the minimum.
            return Shape(COLUMN, table=np.zeros(0))
        if isinstance(self._noise.law, CountLaw):
            return self._column(self._noise.law, x)
        return _at_minimum(self._noise.law, x)

    def _column(self, law: CountLaw, x: int) -> Shape:
        """Return log P(x | a) of a law that depends on the count, from its rows."""
        lowest = x == self._noise.minimum
        first = 0 if law.bound is None or lowest else max(0, x - law.bound)
        found: list[float] = []
        largest = 0.0
        a = first
        while law.bound is None or a <= x + law.bound:
            start, probabilities = self._row(law, a)
            place = x - start
            if lowest:
                chance = float(probabilities[: max(place + 1, 0)].sum())
            else:
                chance = float(probabilities[place]) if 0 <= place < probabilities.size else 0.0
            largest = max(largest, chance)
            if law.bound is None and a > x and chance <= _UNLIKELY * largest:
                break
            found.append(chance)
            a += 1
        with np.errstate(divide="ignore"):
            table = np.log(found)
        slope = -math.inf
        if law.bound is None and table.size > 1 and np.isfinite(table[-2:]).all():
            slope = min(float(table[-1] - table[-2]), -1e-9)
        return Shape(COLUMN, slope=slope, table=table, first=first)

    def _row(self, law: CountLaw, original: int) -> tuple[int, Floats]:
        known = original if law.settled is None else min(original, law.settled)
        if known not in self._rows:
            row: CountRow = law.row(known)
            self._rows[known] = row.lowest, row.probabilities
        start, probabilities = self._rows[known]
        return start + original - known, probabilities


def reach_of(law: Any, terms: int, left_out: float) -> tuple[int, int] | None:
    """Return how far below and above a count it is released, but for a small share; None if that is not known."""
    if not terms:
        return 0, 0
    if isinstance(law, CountLaw):
        return None if law.bound is None else (law.bound, law.bound)
    if isinstance(law, Tabulated):
        return -terms * int(law.support[0]), terms * int(law.support[-1])
    reach = int(law.half_width(1 - left_out, terms))
    return reach, reach


def _additive(law: Any, terms: int) -> Shape:
    """Return the shape of a sum of draws that do not depend on the count."""
    if isinstance(law, DiscreteLaplace):
        rate = float(1 / law.scale)
        if terms == 1:
            return Shape(LAPLACE, rate, math.log(math.tanh(rate / 2)))
        return _laplace_sum(law, terms)
    if isinstance(law, DiscreteGaussian | RoundedGaussian):
        square = float(law.variance_parameter)
        rounded = isinstance(law, RoundedGaussian)
        if not rounded and terms == 1:
            return Shape(GAUSSIAN, square, math.log(float(law.pmf(0))))
        if math.sqrt(square) >= (_WIDE_ROUNDED if rounded else _WIDE_DISCRETE):
            variance = terms * (square + rounded / 12)
            return Shape(GAUSSIAN, variance, -math.log(2 * math.pi * variance) / 2)
        return _gaussian_sum(law, terms)
    if isinstance(law, Truncated | Tabulated):
        return _finite_sum(law, terms)
    raise InvalidNoise(f"No likelihood is known for the noise {type(law).__name__}.")


@lru_cache(maxsize=64)
def _laplace_sum(law: DiscreteLaplace, terms: int) -> Shape:
    """Return the law of a sum of discrete Laplace draws.

    One more draw is a geometric filter over the table forward and backward: positive terms only, so that every
    probability keeps its digits however small it is. What the cut at the end of the table takes away has died out
    some scales before it; from there on the logarithm goes on as a straight line, which it nearly is.
    """
    from tabulary.infer.kernels import filtered

    scale = float(law.scale)
    reach = min(max(2, math.floor(_REACH * scale)), _LARGEST_TABLE)
    kept = reach - math.ceil(_SPOILT * scale) if scale > 0.1 else reach
    if kept < 12 * scale * math.sqrt(2 * terms):
        raise InvalidNoise(
            f"Sums of {terms} draws of so wide a noise are not laid out: their law has millions of values. "
            "Use a table in which every cell was measured by itself."
        )
    values = law.pmf(np.arange(-reach, reach + 1))
    for _ in range(terms - 1):
        values = filtered(values, math.exp(-1 / scale), math.tanh(1 / (2 * scale)))
    return _symmetric(values[reach : reach + kept + 1], curvature=0.0, fallback=-1 / scale)


@lru_cache(maxsize=64)
def _gaussian_sum(law: DiscreteGaussian | RoundedGaussian, terms: int) -> Shape:
    square = float(law.variance_parameter)
    reach = math.ceil(38 * math.sqrt(square)) + 2
    single = law.pmf(np.arange(-reach, reach + 1))
    values = single
    for _ in range(terms - 1):
        values = np.convolve(values, single)
    half = values[values.size // 2 :]
    kept = min(half.size, math.ceil(37 * math.sqrt(square * terms)) + 1)
    curvature = 1 / (terms * square)
    return _symmetric(half[:kept], curvature=curvature, fallback=-curvature / 2)


def _symmetric(half: Floats, *, curvature: float, fallback: float) -> Shape:
    """Return a table of log p(k) for k = 0, 1, …, as far as it is a float, and how it goes on."""
    clear = half > _FAINT
    table = np.log(half[: int(np.argmin(clear)) if not clear.all() else half.size])
    slope = float(table[-1] - table[-2]) if table.size > 1 else fallback
    return Shape(SYMMETRIC, slope=slope, curvature=curvature, table=table)


@lru_cache(maxsize=64)
def _finite_sum(law: Truncated | Tabulated, terms: int) -> Shape:
    """Return log p(x - a) for every count a that may lie behind x; the law is finite, and so is the run."""
    support = law.support
    highest = int(support[-1]) * terms
    if terms == 1 and isinstance(law, Truncated):
        # In closed form, where the probability itself may be too small for a float.
        inner = law.law
        k = support.astype(np.float64)
        fall = (
            np.abs(k) / float(inner.scale)
            if isinstance(inner, DiscreteLaplace)
            else k * k / (2 * float(inner.variance_parameter))
        )
        table = math.log(float(law.pmf(0))) - fall
    else:
        if terms * support.size > _LARGEST_TABLE // 8:
            raise InvalidNoise(f"Sums of {terms} draws of a noise of {support.size:,} values are too long.")
        single = law.pmf(support)
        values = single
        for _ in range(terms - 1):
            values = np.convolve(values, single)
        with np.errstate(divide="ignore"):
            table = np.log(values)
    return Shape(COLUMN, table=np.ascontiguousarray(table[::-1]), first=-highest, moved=True)


def _at_minimum(law: Any, minimum: int) -> Shape:
    """Return log P(a + noise ≤ minimum) for every count a: what was published as the minimum was that or less."""
    if isinstance(law, DiscreteLaplace):
        # From the minimum on the distribution function is geometric.
        counts = np.arange(max(minimum, 0) + 2)
        return Shape(COLUMN, slope=-float(1 / law.scale), table=np.log(law.cdf(minimum - counts)))
    if isinstance(law, Truncated | Tabulated):
        last = minimum - int(law.support[0])
        counts = np.arange(last + 1)
        probabilities = law.pmf(law.support)
        below = np.cumsum(probabilities)
        places = np.clip(minimum - counts - int(law.support[0]), 0, below.size - 1)
        return Shape(COLUMN, table=np.log(below[places]))
    sigma = math.sqrt(float(law.variance_parameter))
    counts = np.arange(max(minimum, 0) + math.ceil(36 * sigma) + 3)
    chances = law.cdf(minimum - counts)
    table = np.log(chances[: int((chances > _FAINT).sum())])
    return Shape(COLUMN, slope=float(table[-1] - table[-2]) if table.size > 1 else -1 / sigma**2, table=table)
