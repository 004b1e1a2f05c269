"""What is measured on one set of attributes, and what is estimated from all parts that were measured of one kind."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, Integers, sum_onto
from tabulary.core.cache import ArrayCache, Cache
from tabulary.core.domain import Domain, Margin
from tabulary.core.neighbours import Neighbours
from tabulary.core.residuals import centre
from tabulary.core.sensitivity import Sensitivity
from tabulary.core.table import CellCounts
from tabulary.core.workload import MarginIndex, Workload, maximal_margins, show_margin
from tabulary.errors import InvalidPlan, UnknownMargin
from tabulary.planning.accuracy import SMALLEST_VARIANCE, ErrorLaw
from tabulary.planning.covariance import CellCovariance
from tabulary.planning.encoding import Levels
from tabulary.planning.queries.linear_map import LinearMap

if TYPE_CHECKING:
    from tabulary.planning.measurement import Part

Values = Callable[[int], Integers]
"""The noisy values of the part at a position of the plan."""

Kept = ArrayCache[Margin, np.float64]
"""What the estimates of several tables share, by sets of attributes."""

MOST_SETS = 1 << 12
MOST_COVERED = 2_000_000
"""A larger table that was measured, but that nobody wants, is not published: it would take longer than those wanted."""

# The noise of an estimated table is about the same in every cell, so a few cells tell its size.
_CELLS_TRIED = 16


@dataclass(frozen=True)
class Query(ABC):
    """Whole numbers that are a linear function of the exact table on one set of attributes.

    A query gets a table as an argument and reads nothing else. It owns the shape of its values, how they follow from
    the exact table, how far one person can move a collection of such queries, and the words that describe it. How
    tables are estimated from the noisy values of all parts is the business of its `Estimator`.
    """

    margin: Margin

    kind: ClassVar[str]
    """The name of this type in the description of a plan."""
    unit: ClassVar[str] = "number"
    """What one measured value is called."""
    estimator: ClassVar[type["Estimator"]]
    """What estimates tables from parts of this type."""
    reconstructions: ClassVar[tuple[str, ...]] = ("none", "least-squares", "lp", "shrink")
    """What can be made of the noisy values."""
    whole: ClassVar[bool] = False
    """Whether the linear estimates are whole numbers."""
    protects_some: ClassVar[bool] = False
    """Whether some attributes alone can be protected, and what does not depend on them be released exactly."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What is measured, in a few words for a reader."""

    @abstractmethod
    def shape(self, domain: Domain) -> tuple[int, ...]:
        """Return the shape of the values."""

    @abstractmethod
    def values(self, table: Integers) -> Integers:
        """Return the exact values from the exact table on the margin. Confidential if the table is."""

    def draws(self, domain: Domain) -> int:
        """Return how many of the values get noise: all but those that are zero by declaration."""
        return math.prod(self.shape(domain))

    def noisy(self, domain: Domain) -> NDArray[np.bool_]:
        """Return which of the values get noise."""
        return np.ones(self.shape(domain), dtype=np.bool_)

    def with_noise(self, values: Integers, drawn: Integers, domain: Domain) -> Integers:
        """Return the values plus their draws, as many as `draws` says."""
        return np.asarray(values + drawn.reshape(values.shape))

    def growth(self, domain: Domain) -> int:
        """Return by what factor a value, or a number on the way to it, can exceed the number of records."""
        return 1

    @property
    def key(self) -> tuple[str, ...]:
        """The words that tell this query from all others of its type. The name of an attribute has no comma."""
        return (",".join(self.margin),)

    def check(self, domain: Domain) -> None:
        """Refuse a query that does not name its attributes in the domain's order."""
        if domain.margin(self.margin) != self.margin:
            raise InvalidPlan(
                f"the part on {show_margin(self.margin)} does not name its attributes in the domain's order."
            )

    def describe(self) -> dict[str, object]:
        """Return the query as plain data."""
        return {"attributes": list(self.margin), "query": self.kind}

    @classmethod
    def from_description(cls, described: Mapping[str, Any]) -> Self:
        """Return the query that `describe` wrote. What is described beyond that is refused later, by comparison."""
        return cls(tuple(described["attributes"]))

    @classmethod
    @abstractmethod
    def sensitivity(
        cls,
        domain: Domain,
        queries: Sequence[Self],
        neighbours: Neighbours,
        *,
        scales: Sequence[Fraction] | None = None,
        squared_scales: Sequence[Fraction] | None = None,
    ) -> Sensitivity:
        """Return how far one person can move the values of all these queries, each divided by its scale.

        Exact, or never too small. Scales default to one. `squared_scales` serves Gaussian noise, whose variance is
        rational while its standard deviation is not.
        """

    @classmethod
    @abstractmethod
    def linear_map(cls, queries: Sequence[Self], named: Margin, domain: Domain) -> LinearMap:
        """Return what all these queries measure of the full table on the attributes `named`."""

    @classmethod
    def all_values(cls, queries: Iterable[Self], tables: Mapping[Margin, Integers]) -> list[Integers]:
        """Return the exact values of all these queries, each from the smallest of the exact tables that hold it."""
        margins = sorted(tables, key=lambda margin: tables[margin].size)
        index = MarginIndex(margins)
        found = []
        for query in queries:
            source = margins[index.first(query.margin)]
            found.append(query.values(sum_onto(tables[source], source, query.margin)))
        return found


@dataclass(frozen=True, eq=False)
class Estimator(ABC):
    """The linear estimates of tables from the noisy values of all parts of a plan, and the law of their errors.

    Unbiased. Post-processing: reads no data, spends no budget. `exact` are the sets of attributes of queries that are
    released without noise; they come after the parts.
    """

    encoding: Levels
    workload: Workload
    parts: tuple["Part[Query]", ...]
    exact: tuple[Margin, ...] = ()

    @property
    def domain(self) -> Domain:
        """The domain of the tables."""
        return self.encoding.domain

    @cached_property
    def counted(self) -> tuple[Margin, ...]:
        """The margins whose exact counts the queries need."""
        sets = (*(part.margin for part in self.parts), *self.exact)
        return tuple(maximal_margins(dict.fromkeys(map(self.encoding.attributes, sets))))

    @cached_property
    def noise_variances(self) -> list[float]:
        """The variance of the noise of each part, never zero."""
        # Thousands of parts share a few laws, and the variance of a discrete one is the sum of a series.
        laws = {law: max(law.variance, SMALLEST_VARIANCE) for law in {part.noise for part in self.parts}}
        return [laws[part.noise] for part in self.parts]

    @property
    def agree(self) -> bool:
        """Whether the estimated tables have the same sums wherever they share attributes."""
        return True

    @cached_property
    def cover(self) -> tuple[Margin, ...]:
        """The largest tables that can be published: those that were measured, or wanted where those are too large.

        Every other table that can be published is a sum of one of them. None is a margin of another.
        """
        wanted = self.workload.maximal().margins
        found = tuple(maximal_margins(dict.fromkeys((*wanted, *self.counted))))
        if set(found) == set(wanted):
            return wanted
        sets = sum(2 ** min(len(margin), 64) for margin in found)
        if sets > MOST_SETS or sum(map(self.domain.cells, found)) > MOST_COVERED:
            return wanted
        return found if all(self._determines(m) for m in found if m not in wanted) else wanted

    @cached_property
    def covered(self) -> tuple[Margin, ...]:
        """Every set of attributes whose table can be published, the lowest order first."""
        found = dict.fromkeys(s for m in self.cover for n in range(len(m) + 1) for s in combinations(m, n))
        return tuple(sorted(found, key=lambda s: (len(s), [self.domain.position(a) for a in s])))

    def _determines(self, margin: Margin) -> bool:
        try:
            self.check(margin)
        except UnknownMargin:
            return False
        return True

    @cached_property
    def variances(self) -> Mapping[Margin, float]:
        """σ² of the estimated residual of every covered set: its covariance is σ² P_R, or has the trace of that.

        P_R takes the average out of every axis (`core.residuals`). Here from the law of the estimated tables: the
        mean of w'Σw / w'w over the centred indicators w of some cells.
        """
        return {s: self._variance(s) for s in self.covered}

    def residuals(self, values: Values) -> dict[Margin, Floats]:
        """Return the estimate of the residual of every covered set; that of the empty set is the total. Unbiased."""
        kept = Kept(Cache())
        return {s: centre(self.table(s, values, kept).astype(np.float64)) for s in self.covered}

    def _variance(self, s: Margin) -> float:
        law = self.error_of(s)
        covariance: CellCovariance | None = getattr(law, "covariance", None)
        shape = self.domain.shape_of(s)
        if any(levels == 1 for levels in shape):
            return 0.0
        if covariance is None:
            return float((law.standard_errors**2).mean())
        found = []
        for cell in np.linspace(0, math.prod(shape) - 1, min(_CELLS_TRIED, math.prod(shape))).astype(int):
            weights = np.zeros(shape)
            weights.flat[cell] = 1.0
            weights = centre(weights)
            found.append(covariance.variance_of(weights) / float(np.sum(weights**2)))
        return float(np.mean(found))

    @abstractmethod
    def check(self, margin: Margin) -> None:
        """Raise UnknownMargin unless the parts determine the table on `margin`."""

    @abstractmethod
    def table(self, margin: Margin, values: Values, kept: Kept) -> CellCounts:
        """Return the estimate of the table on `margin`, from the values of the parts that it needs.

        Impossible cells may have noise; they are set to zero where tables are published (`reconstruct.linear`). What
        other tables need too may be kept in `kept`. The same bits every time, whatever was asked before.
        """

    @abstractmethod
    def error_of(self, margin: Margin) -> ErrorLaw:
        """Return the law of the error of each cell of the estimate of the table on `margin`."""

    def squared_error(self, margin: Margin) -> tuple[float, int]:
        """Return the sum of the expected squared errors of the cells of a table, and how many can be wrong."""
        deviations = self.error_of(margin).standard_errors
        return float((deviations**2).sum()), int((deviations > 0).sum())

    def largest_error(self, margin: Margin) -> float:
        """Return the largest standard error of a cell of the table on `margin`."""
        return float(self.error_of(margin).standard_errors.max())
