r"""Counts: every possible cell of a table, each plus one draw.

Sensitivity. One person holds at most c records. Adding one record raises one cell of each margin by one; the
measurement divided by its scales b (or σ) then moves by at most c Σ 1/b in L1, and its squared L2 norm by
c² Σ 1/σ². Replacing moves one unit out of a cell and into another in each margin where the two records
differ, which doubles both. `core.sensitivity` computes these exactly, structural zeros included, and the plan
refuses to exist if they exceed its loss.

Privacy. A discrete Laplace draw of scale b on an integer has probability ratio at most e^{|change|/b}; over
all cells the exponents add up to the L1 bound, hence ε-DP. Discrete Gaussian draws of parameter σ² satisfy
Σ change²/(2σ²)-zCDP on integers (Canonne, Kamath & Steinke 2020, Theorem 14).

Structural zeros hold no record by declaration: a record in one is an error before anything is measured. So
they are exactly zero whatever the data are, and get no noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, Integers, sum_onto
from tabulary.core.domain import Domain, Margin
from tabulary.core.neighbours import Neighbours
from tabulary.core.residuals import component
from tabulary.core.sensitivity import Sensitivity, margin_sensitivity
from tabulary.core.workload import MarginIndex, show_margin
from tabulary.errors import UnknownMargin
from tabulary.planning.accuracy import CellErrors
from tabulary.planning.allocation import CentredMargin, residual_variances
from tabulary.planning.queries.linear_map import LinearMap
from tabulary.planning.queries.query import Estimator, Kept, Query, Values
from tabulary.planning.residual_errors import subsets
from tabulary.planning.words import table_name


@dataclass(frozen=True, eq=False)
class CountsEstimator(Estimator):
    """Each table is the sum of the noisy cells of one measured table: of the one that gives it the smallest error.

    Tables from one measured table agree with each other; tables from different ones do not.
    """

    @cached_property
    def counted(self) -> tuple[Margin, ...]:
        """The measured margins themselves."""
        return tuple(part.margin for part in self.parts)

    @property
    def agree(self) -> bool:
        """Whether all wanted tables come from one measured table."""
        return len({self.source_position(margin) for margin in self.workload}) == 1

    def source_position(self, margin: Margin) -> int:
        """Return the position of the part that gives the table on `margin` with the smallest error."""
        covering = self._index.containing(margin)
        if not covering:
            raise UnknownMargin(f"the plan measures nothing that contains {show_margin(margin)}.")
        if len(covering) == 1:
            return covering[0]
        # Ties go to the first, so that two readers of one plan agree.
        return min(
            covering, key=lambda i: self.noise_variances[i] * self._mean_terms(self.parts[i].margin, margin)
        )

    def check(self, margin: Margin) -> None:
        """Raise UnknownMargin unless a measured table contains `margin`."""
        self.source_position(margin)

    def table(self, margin: Margin, values: Values, kept: Kept) -> Integers:
        """Return the sums of the noisy cells."""
        position = self.source_position(margin)
        return sum_onto(values(position), self.parts[position].margin, margin)

    def error_of(self, margin: Margin) -> CellErrors:
        """Return the law of a sum of as many draws as there are possible cells below each cell. Exact."""
        source = self.parts[self.source_position(margin)]
        return CellErrors(source.noise, self.domain.project(source.margin).multiplicity(margin))

    @cached_property
    def variances(self) -> Mapping[Margin, float]:
        """σ² of the residuals by generalised least squares over all measured tables.

        Exact without structural zeros. These get no noise, so with them it is a little too large.
        """
        whole: dict[CentredMargin, float] = {
            (part.margin, ()): v for part, v in zip(self.parts, self.noise_variances, strict=True)
        }
        known = residual_variances(self.domain, whole)
        return {s: known[s] for s in self.covered}

    def residuals(self, values: Values) -> dict[Margin, Floats]:
        """Return the mean of what all measured tables say of each residual, weighted by 1/σ²."""
        found = {s: np.zeros(self.domain.shape_of(s)) for s in self.covered}
        levels = dict(zip(self.domain.attributes, self.domain.shape, strict=True))
        for position, (part, noise) in enumerate(zip(self.parts, self.noise_variances, strict=True)):
            shape, known = self.domain.shape_of(part.margin), values(position)
            for s in subsets(part.margin):
                if self.variances.get(s, 0.0) > 0:
                    own = noise * math.prod(levels[a] for a in part.margin if a not in s)
                    onto = [i for i, a in enumerate(part.margin) if a in s]
                    found[s] += self.variances[s] / own * component(known, shape, (), onto)
        return found

    @cached_property
    def _index(self) -> MarginIndex:
        return MarginIndex(part.margin for part in self.parts)

    def _mean_terms(self, source: Margin, margin: Margin) -> float:
        if not self.domain.structural_zeros:
            return math.prod(self.domain.shape_of(tuple(a for a in source if a not in margin)))
        terms = self.domain.project(source).multiplicity(margin)
        return float(terms.sum(dtype=float)) / max(int((terms > 0).sum()), 1)


@dataclass(frozen=True)
class Counts(Query):
    """The counts of every possible cell of the table on the margin."""

    kind: ClassVar[str] = "counts"
    unit: ClassVar[str] = "cell"
    estimator: ClassVar[type[Estimator]] = CountsEstimator
    whole: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The table."""
        return table_name(self.margin)

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """Return the shape of the table."""
        return domain.shape_of(self.margin)

    def values(self, table: Integers) -> Integers:
        """Return the table."""
        return table

    def draws(self, domain: Domain) -> int:
        """Return the number of possible cells."""
        return int(self.noisy(domain).sum())

    def noisy(self, domain: Domain) -> NDArray[np.bool_]:
        """Return the possible cells."""
        return ~domain.impossible(self.margin)

    def with_noise(self, values: Integers, drawn: Integers, domain: Domain) -> Integers:
        """Return the counts plus their draws; impossible cells stay zero."""
        possible = self.noisy(domain)
        found = np.zeros(possible.shape, dtype=np.int64)
        found[possible] = values[possible] + drawn
        return found

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
        """Return the sensitivity of the cells of all these tables (`core.sensitivity`)."""
        margins = [query.margin for query in queries]
        return margin_sensitivity(domain, margins, neighbours, scales=scales, squared_scales=squared_scales)

    @classmethod
    def linear_map(cls, queries: Sequence[Self], named: Margin, domain: Domain) -> "MarginMap":
        """Return the map from a full table to these margins of it."""
        axes = tuple(tuple(named.index(a) for a in query.margin) for query in queries)
        return MarginMap(domain.shape_of(named), axes)


@dataclass(frozen=True)
class MarginMap(LinearMap):
    """A table to the cells of each of its `margins`: tuples of axes, in this order.

    >>> MarginMap((2, 2), ((0,), (0, 1))).columns(np.array([1, 2])).T.tolist()
    [[1.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]]
    """

    margins: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """The number of cells of all margins."""
        return sum(self._sizes)

    def forward(self, table: Floats) -> Floats:
        """Return the cells of every margin."""
        axes = range(len(self.shape))
        return np.concatenate([sum_onto(table, axes, margin).reshape(-1) for margin in self.margins])

    def adjoint(self, values: Floats) -> Floats:
        """Return each margin's values spread over the cells that it sums."""
        table = np.zeros(self.shape)
        start = 0
        for margin, cells in zip(self.margins, self._sizes, strict=True):
            shape = [levels if axis in margin else 1 for axis, levels in enumerate(self.shape)]
            table += values[start : start + cells].reshape(shape)
            start += cells
        return table

    def squared_norms(self) -> Floats:
        """Return how many cells each value sums."""
        return self.forward(np.ones(self.shape))

    def covering(self, scales: Floats) -> Floats:
        """Return ones on the cells of the margin with the smallest scales: every cell of the table is in one."""
        ends = np.cumsum(self._sizes)
        blocks = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        found = np.zeros(self.size)
        found[min(blocks, key=lambda block: float(scales[block].sum()))] = 1.0
        return found

    def columns_at(self, levels: NDArray[np.intp]) -> Floats:
        """Return a one in the cell of each margin that a cell of the table falls in."""
        return np.concatenate([self._columns(levels, margin) for margin in self.margins])

    def _columns(self, levels: NDArray[np.intp], axes: tuple[int, ...]) -> Floats:
        cells = levels.shape[1]
        place, size = np.zeros(cells, dtype=np.intp), 1
        for axis in sorted(axes):
            place, size = place * self.shape[axis] + levels[axis], size * self.shape[axis]
        block = np.zeros((size, cells))
        block[place, np.arange(cells)] = 1.0
        return block

    @property
    def _sizes(self) -> list[int]:
        return [math.prod(self.shape[axis] for axis in margin) for margin in self.margins]
