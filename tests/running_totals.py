r"""A mechanism as another package would add it, in one file: noise on running totals along one ordered attribute.

What is measured: for every wanted table with the attribute that has the most levels, the counts up to each level of it;
of other tables the counts. A count is the difference of two running totals, and the sum over some levels is too: the
errors of sums of neighbouring levels do not grow with their number.

Sensitivity. A record at level j of k adds one to the k - j running totals from j on, and to nothing else of the part.
Over all parts at once the dearest record stands at level 0: Δ₁ = c Σ k/b and Δ₂² = c² Σ k/σ². A replaced record moves
from (x, j) to (y, i): where x and y differ, the part moves by (k - j) + (k - i), else by |j - i|, in L1 and in squared
L2, for all entries are ones. The dearest pair differs in everything but the levels, which are tried out. Structural
zeros can only forbid pairs: never too small.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from tabulary import Domain, Neighbours
from tabulary.core import Floats, Integers, Margin, Sensitivity
from tabulary.errors import InvalidPlan
from tabulary.planning import (
    CellCovariance,
    CountsEstimator,
    Draws,
    Estimator,
    Kept,
    LinearMap,
    Mechanism,
    Plan,
    Query,
    Request,
    Values,
    WeightedErrors,
)


@dataclass(frozen=True, eq=False)
class RunningNoise:
    """The errors of a table whose cells are differences, along an axis, of `copies` draws each; of no axis, draws."""

    noise: Any
    shape: tuple[int, ...]
    axis: int | None
    copies: int

    def covariances(self, weights: Floats) -> Floats:
        """Return Σw."""
        drawn = self._on_draws(weights)
        if self.axis is not None:
            drawn = np.diff(drawn, axis=self.axis, prepend=0.0)
        return self.copies * self.noise.variance * drawn

    def draws(self, weights: Floats) -> Iterator[Draws]:
        """Yield the draws: all of them."""
        yield Draws(self.noise, self._on_draws(weights).reshape(-1), self.copies)

    def _on_draws(self, weights: Floats) -> Floats:
        if self.axis is None:
            return weights
        return -np.diff(weights, axis=self.axis, append=0.0)


class RunningTotalsEstimator(CountsEstimator):
    """Each table is the sum of differences of the running totals of one part."""

    def table(self, margin: Margin, values: Values, kept: Kept) -> Integers:
        """Return the differences, summed; of a table without the ordered attribute the last totals."""
        position = self.source_position(margin)
        query, found = self.parts[position].query, values(position)
        if query.along in margin:
            found = np.diff(found, axis=query.axis, prepend=0)
        elif query.along:
            found = np.take(found, [-1], axis=query.axis)
        summed = tuple(i for i, a in enumerate(query.margin) if a not in margin)
        return np.asarray(found.sum(axis=summed), dtype=np.int64)

    def error_of(self, margin: Margin) -> WeightedErrors:
        """Return the law of one draw at the first level and of two at the others, times what was summed."""
        part = self.parts[self.source_position(margin)]
        query, shape = part.query, self.domain.shape_of(margin)
        copies = self.domain.cells(tuple(a for a in query.margin if a not in (*margin, query.along)))
        terms = np.full(shape, copies, dtype=np.float64)
        axis = margin.index(query.along) if query.along in margin else None
        if axis is not None:
            terms[(slice(None),) * axis + (slice(1, None),)] *= 2
        kurtosis = part.noise.fourth_cumulant / (terms * part.noise.variance**2)
        shared = CellCovariance(RunningNoise(part.noise, shape, axis, copies))
        # On no axes numpy would make scalars.
        law = WeightedErrors(np.asarray(np.sqrt(terms * part.noise.variance)), np.asarray(kurtosis), shared)
        return law.without(self.domain.impossible(margin))


@dataclass(frozen=True)
class RunningTotals(Query):
    """The counts of a table up to each level of the attribute `along`; without one, the counts."""

    along: str = ""

    kind: ClassVar[str] = "running-totals"
    unit: ClassVar[str] = "running total"
    estimator: ClassVar[type[Estimator]] = RunningTotalsEstimator
    whole: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The table and what was added up."""
        table = " by ".join(self.margin) or "total"
        return f"{table}, up to each {self.along}" if self.along else table

    @property
    def axis(self) -> int:
        """The axis of the ordered attribute."""
        return self.margin.index(self.along)

    @property
    def key(self) -> tuple[str, ...]:
        """The attributes and the ordered one."""
        return (*super().key, self.along)

    def check(self, domain: Domain) -> None:
        """Refuse an ordered attribute that the table does not have."""
        super().check(domain)
        if self.along and self.along not in self.margin:
            raise InvalidPlan(f"the part on {self.margin} cannot run along {self.along!r}.")

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """Return the shape of the table."""
        return domain.shape_of(self.margin)

    def values(self, table: Integers) -> Integers:
        """Return the running totals."""
        return np.cumsum(table, axis=self.axis) if self.along else table

    def describe(self) -> dict[str, object]:
        """Return the query as plain data."""
        return {**super().describe(), "along": self.along}

    @classmethod
    def from_description(cls, described: Mapping[str, Any]) -> Self:
        """Return the query that `describe` wrote."""
        return cls(tuple(described["attributes"]), described["along"])

    @classmethod
    def sensitivity(
        cls,
        domain: Domain,
        queries: Sequence[Self],
        neighbours: Neighbours,
        *,
        scales: Sequence[Fraction] | None = None,
        squared_scales: Sequence[Fraction] | None = None,
    ) -> Sensitivity:
        """Return what one person can change; all entries are ones, so both norms count them."""
        weights = [1 / s for s in scales] if scales else [Fraction(1)] * len(queries)
        squares = [1 / s for s in squared_scales] if squared_scales else [w * w for w in weights]
        along, *others = {query.along for query in queries if query.along} or {""}
        if others:
            raise InvalidPlan("running totals of one plan run along one attribute. Nothing was measured.")
        levels = len(domain.levels_of(along)) if along else 1
        pairs = [(0, None)] if "add-remove" in neighbours.steps else []
        if "replace" in neighbours.steps:
            pairs += [(j, i) for j in range(levels) for i in range(j, levels)]
        found = []
        for pair in pairs:
            moved = [query.moved(domain, *pair) for query in queries]
            l1, l2 = (sum(w * m for w, m in zip(each, moved, strict=True)) for each in (weights, squares))
            found.append(Sensitivity(l1, l2))
        return Sensitivity.largest(found, neighbours.records)

    def moved(self, domain: Domain, j: int, i: int | None) -> int:
        """Return how many values a record at level j changes, or one that moves on to level i, all else different."""
        levels = len(domain.levels_of(self.along)) if self.along else 1
        j, i = (j, i) if self.along else (0, None if i is None else 0)
        if i is None:
            return levels - j
        others = any(len(domain.levels_of(a)) > 1 for a in self.margin if a != self.along)
        return (levels - j) + (levels - i) if others else abs(j - i)

    @classmethod
    def linear_map(cls, queries: Sequence[Self], named: Margin, domain: Domain) -> "RunningMap":
        """Return the map from a full table to these running totals of it."""
        parts = tuple(
            (tuple(map(named.index, q.margin)), named.index(q.along) if q.along else None) for q in queries
        )
        return RunningMap(domain.shape_of(named), parts)


@dataclass(frozen=True)
class RunningMap(LinearMap):
    """A table to the running totals of its margins: pairs of axes and the axis along which they run."""

    parts: tuple[tuple[tuple[int, ...], int | None], ...]

    @property
    def size(self) -> int:
        """The number of running totals."""
        return sum(int(np.prod(self._sides(axes))) for axes, _ in self.parts)

    def forward(self, table: Floats) -> Floats:
        """Return the running totals of every margin."""
        found = []
        for axes, along in self.parts:
            others = tuple(i for i in range(table.ndim) if i not in axes)
            summed = table.sum(axis=others, keepdims=True)
            found.append((summed if along is None else np.cumsum(summed, axis=along)).reshape(-1))
        return np.concatenate(found)

    def adjoint(self, values: Floats) -> Floats:
        """Return each value spread over the cells that it adds up."""
        table, start = np.zeros(self.shape), 0
        for axes, along in self.parts:
            sides = self._sides(axes)
            end = start + int(np.prod(sides))
            back = values[start:end].reshape(sides)
            table += back if along is None else np.flip(np.cumsum(np.flip(back, along), axis=along), along)
            start = end
        return table

    def _sides(self, axes: tuple[int, ...]) -> list[int]:
        return [levels if axis in axes else 1 for axis, levels in enumerate(self.shape)]


class RunningTotalsMechanism(Mechanism):
    """Measures the running totals of every wanted table along the attribute with the most levels."""

    name: ClassVar[str] = "running-totals"
    query: ClassVar[type[Query]] = RunningTotals
    rank: ClassVar[int] = 60

    def plan(self, request: Request, loss: Any) -> Plan:
        """Return the plan, the budget split by the weights."""
        request.check_cells()
        named = request.attributes
        along = max(named, key=lambda a: len(request.domain.levels_of(a)), default="")
        queries = [RunningTotals(m, along if along in m else "") for m in request.workload]
        return request.planned(self.name, loss, queries, request.workload.weights)

    def words(self, plan: Plan) -> str:
        """Return what was measured."""
        return "Measured were running totals: how many people there are up to each level of one attribute."

    def burden(self, *, values: int, parts: int, tables: int) -> str:
        """Return what running totals cost."""
        return f"one person changes many of its {values:,} running totals"


RUNNING_TOTALS = RunningTotalsMechanism()
