r"""Residuals: a table with the average taken out of some of its attributes, in whole numbers.

A part (S, B) is the exact table on the margin S with the average taken out of the axes B: k·x - Σx on an axis of k ≥ 3
levels, the difference x₀ - x₁ on one of two (`core.residuals`), each number plus one fresh draw. With B empty that is
the table itself; with B = S it is what S adds to all its subsets.

Sensitivity. A record in cell x adds to a part the product over its axes of one column: a one on an axis that
is counted; k - 1 at x and -1 elsewhere on a centred axis of k ≥ 3 levels, 2(k - 1) in L1 and k(k - 1) in
squared L2; ±1 on one of two. Norms of products are products of norms, whatever the record is, so that over all
parts, each divided by its scale, Δ₁ = c Σ Π_B l1(k) / b and Δ₂² = c² Σ Π_B l2(k) / σ² for c records per person.
Replacing a record subtracts the columns of two, and only where they agree matters.
`core.residual_sensitivity` computes both, and the plan refuses to exist if they exceed its loss.

Privacy. As for counts: the measurements are integers and the noise is discrete, so over all parts the exponents
of discrete Laplace draws add up to Δ₁ ≤ ε, hence ε-DP (Ghosh, Roughgarden & Sundararajan 2012), and discrete
Gaussian draws satisfy Δ₂²/2 = ρ-zCDP (Canonne, Kamath & Steinke 2020, Theorem 14). A rounded continuous Gaussian
is post-processing of the Gaussian mechanism, and has its exact curve (Balle & Wang 2018).

Impossible cells get noise like all others: a centred value adds up cells, and is not impossible by itself.

Estimate. A part knows the residuals of the sets R between B and S, each with noise of covariance σ² P_R; those of
different sets are uncorrelated. So generalised least squares over all parts is, for each R by itself, the mean of what
its parts say, weighted by 1/σ². By Gauss and Markov no linear unbiased estimate of any table from these measurements
has a smaller variance in any cell.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, Integers, axes_outside
from tabulary.core.domain import Domain, Margin
from tabulary.core.neighbours import Neighbours
from tabulary.core.residual_sensitivity import residual_sensitivity
from tabulary.core.residuals import add_up, component, residual_shape, residual_values
from tabulary.core.sensitivity import Sensitivity
from tabulary.core.workload import MarginIndex, show_margin
from tabulary.errors import InvalidPlan, UnknownMargin
from tabulary.planning.accuracy import WeightedErrors
from tabulary.planning.allocation import margin_variance, residual_variances
from tabulary.planning.covariance import CellCovariance
from tabulary.planning.queries.linear_map import LinearMap, product_columns
from tabulary.planning.queries.query import Estimator, Kept, Query, Values
from tabulary.planning.residual_draws import ResidualNoise
from tabulary.planning.residual_errors import NoisyPart, TailWeights, part_variance, subsets
from tabulary.planning.words import listed_words, table_name

if TYPE_CHECKING:
    from tabulary.planning.measurement import Part


@dataclass(frozen=True, eq=False)
class ResidualsEstimator(Estimator):
    """Each table is the sum of the best estimates of the residuals of its subsets: all tables agree."""

    parts: tuple["Part[Residuals]", ...]

    @cached_property
    def variances(self) -> Mapping[Margin, float]:
        """σ² of the residual of every covered set, by generalised least squares over all parts.

        The estimate of r_R has covariance σ² P_R, and those of different sets are uncorrelated
        (`core.residuals`). A set that no part says anything about is left out.
        """
        found: dict[Margin, float] = {}
        for r in self.covered:
            if any(self._levels[a] == 1 for a in r):
                # Nothing varies on one level: there is nothing to measure, and nothing to be wrong about.
                found[r] = 0.0
            elif math.isfinite(self._known.get(r, math.inf)):
                found[r] = self._known[r]
        return found

    def _determines(self, margin: Margin) -> bool:
        single = any(self._levels[a] == 1 for a in margin)
        return not single and all(math.isfinite(self._known.get(r, math.inf)) for r in subsets(margin))

    @cached_property
    def _known(self) -> Mapping[Margin, float]:
        parts = {
            (part.margin, part.query.centred): v
            for part, v in zip(self.parts, self.noise_variances, strict=True)
        }
        return residual_variances(self.domain, parts)

    def check(self, margin: Margin) -> None:
        """Raise UnknownMargin unless every residual of the table is known."""
        if any(s not in self.variances for s in subsets(margin)):
            raise UnknownMargin(f"the plan does not measure every residual of {show_margin(margin)}.")

    def table(self, margin: Margin, values: Values, kept: Kept) -> Floats:
        """Return the sum of the estimated residuals, which are kept."""
        return table_of(
            {r: kept.get(r, partial(self.residual, r, values)) for r in subsets(margin)},
            margin,
            self.domain.shape_of(margin),
        )

    def residuals(self, values: Values) -> dict[Margin, Floats]:
        """Return the estimate of the residual of every covered set."""
        return {r: self.residual(r, values) for r in self.variances}

    def residual(self, r: Margin, values: Values) -> Floats:
        """Return the estimate of the residual of one set: a table over its levels, every axis of which sums to zero.

        That of the empty set is the total. Its covariance is σ² P_R with σ² = `variances[R]`. Unbiased.
        """
        said = [self._said(position, values(position), r) for position in self.positions(r)]
        # Nothing varies on one level, and nothing may have been measured there.
        return reduce(np.add, said) if said else np.zeros(self.domain.shape_of(r))

    def positions(self, r: Margin) -> list[int]:
        """Return the positions of the parts that say something about the residual of r.

        >>> import tabulary as tb
        >>> domain = tb.Domain({"a": "xyz", "b": "xyz"})
        >>> plan = tb.plan(domain, "[][a][b][ab]", privacy=tb.ZCDP(1), mechanism="residual")
        >>> [plan.measured[i].margin for i in plan.estimator.positions(("a",))]
        [('a',)]
        """
        found: list[int] = []
        for centred in subsets(r):
            if centred in self._by_centred:
                positions, index = self._by_centred[centred]
                found += [positions[i] for i in index.containing(r)]
        return sorted(found)

    def error_of(self, margin: Margin) -> WeightedErrors:
        """Return the law of the errors: the same in every possible cell."""
        self.check(margin)
        variance = margin_variance(self.domain, self.variances, margin)
        shape = self.domain.shape_of(margin)
        kurtosis = self._tails.kurtosis(margin, variance)
        shared = CellCovariance(ResidualNoise(margin, self._levels, self._drawn, self.variances))
        law = WeightedErrors(np.full(shape, math.sqrt(variance)), np.full(shape, kurtosis), shared)
        return law.without(self.domain.impossible(margin)) if self.domain.structural_zeros else law

    def squared_error(self, margin: Margin) -> tuple[float, int]:
        """Return the variance of a cell times the number of possible cells, and that number. Needs no tails."""
        possible = self.domain.cells(margin) - int(self.domain.impossible(margin).sum())
        return possible * margin_variance(self.domain, self.variances, margin), possible

    def largest_error(self, margin: Margin) -> float:
        """Return the standard error of every cell. Needs no tails."""
        return math.sqrt(margin_variance(self.domain, self.variances, margin))

    def _said(self, position: int, values: Integers, r: Margin) -> Floats:
        """Return what one part adds to the estimate of the residual of r: what it says of it, times its share."""
        part = self.parts[position]
        variance = self.variances[r]
        own = part_variance(self._levels, part.margin, part.query.centred, r, self.noise_variances[position])
        onto = [i for i, a in enumerate(part.margin) if a in r]
        shape = self.domain.shape_of(part.margin)
        return (variance / own if variance else 0.0) * component(values, shape, part.query.axes, onto)

    @cached_property
    def _by_centred(self) -> dict[Margin, tuple[list[int], MarginIndex]]:
        # By what is centred: of the thousands of parts of a plan, few say anything about one residual.
        found: dict[Margin, list[int]] = {}
        for position, part in enumerate(self.parts):
            found.setdefault(part.query.centred, []).append(position)
        return {
            centred: (positions, MarginIndex(self.parts[i].margin for i in positions))
            for centred, positions in found.items()
        }

    @cached_property
    def _levels(self) -> dict[str, int]:
        return dict(zip(self.domain.attributes, self.domain.shape, strict=True))

    @cached_property
    def _drawn(self) -> list[NoisyPart]:
        return [(part.margin, part.query.centred, part.noise) for part in self.parts]

    @cached_property
    def _tails(self) -> TailWeights:
        return TailWeights(self.domain, self._drawn, self.variances)


@dataclass(frozen=True)
class Residuals(Query):
    """Every cell of the table on the margin, with the average taken out of the attributes that are `centred`.

    Impossible cells are measured like all others.

    >>> Residuals(("sex", "age"), centred=("age",)).values(np.array([[1, 2, 6], [3, 5, 1]])).tolist()
    [[-6, -3, 9], [0, 6, -6]]
    """

    centred: Margin = ()

    kind: ClassVar[str] = "residuals"
    estimator: ClassVar[type[Estimator]] = ResidualsEstimator

    @property
    def name(self) -> str:
        """The table, or what of it is left without the averages over some attributes."""
        name = table_name(self.margin)
        if not self.centred:
            return name
        if self.centred == self.margin:
            return f"{name}, differences from the average"
        return f"{name}, differences from the average over {listed_words(self.centred)}"

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the table that are centred."""
        return tuple(i for i, attribute in enumerate(self.margin) if attribute in self.centred)

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """Return the shape of the table, with fewer values on a centred axis of one or two levels."""
        return residual_shape(domain.shape_of(self.margin), self.axes)

    def values(self, table: Integers) -> Integers:
        """Return the table with the average taken out."""
        return residual_values(table, self.axes)

    def growth(self, domain: Domain) -> int:
        """Return the product of the levels of the centred attributes."""
        return domain.cells(self.centred)

    @property
    def key(self) -> tuple[str, ...]:
        """The attributes, and those of them that are centred."""
        return ",".join(self.margin), ",".join(self.centred)

    def check(self, domain: Domain) -> None:
        """Refuse centred attributes that are not those of the margin, in the same order."""
        super().check(domain)
        if self.centred != tuple(a for a in self.margin if a in self.centred):
            raise InvalidPlan(
                f"the part on {show_margin(self.margin)} does not name its attributes in the domain's order."
            )

    def describe(self) -> dict[str, object]:
        """Return the query as plain data, with what is centred."""
        return {**super().describe(), "centred": list(self.centred)}

    @classmethod
    def from_description(cls, described: Mapping[str, Any]) -> Self:
        """Return the query that `describe` wrote."""
        return cls(tuple(described["attributes"]), tuple(described.get("centred", ())))

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
        """Return the sensitivity of all these residuals (`core.residual_sensitivity`)."""
        parts = [(query.margin, query.centred) for query in queries]
        return residual_sensitivity(domain, parts, neighbours, scales=scales, squared_scales=squared_scales)

    @classmethod
    def linear_map(cls, queries: Sequence[Self], named: Margin, domain: Domain) -> "ResidualMap":
        """Return the map from a full table to these parts of it."""
        axes = {a: i for i, a in enumerate(named)}
        parts = tuple(
            (tuple(axes[a] for a in query.margin), tuple(axes[a] for a in query.centred)) for query in queries
        )
        return ResidualMap(domain.shape_of(named), parts)


def table_of(residuals: Mapping[Margin, Floats], margin: Margin, shape: tuple[int, ...]) -> Floats:
    """Return the table on `margin` with these residuals."""
    named = {tuple(i for i, a in enumerate(margin) if a in r): residuals[r] for r in subsets(margin)}
    return add_up(named, shape)


@dataclass(frozen=True)
class ResidualMap(LinearMap):
    """A table to its parts: the cells of a margin with the average taken out of some axes (`core.residuals`).

    `parts` are pairs of axes, in this order: those of the margin, ascending, and those of them that are centred.
    """

    parts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    @property
    def size(self) -> int:
        """The number of values of all parts."""
        return sum(math.prod(self._values_shape(*part)) for part in self.parts)

    def forward(self, table: Floats) -> Floats:
        """Return the values of every part."""
        found = []
        for margin, centred in self.parts:
            values = table.sum(axis=axes_outside(range(table.ndim), margin), keepdims=True)
            for axis in centred:
                levels = self.shape[axis]
                if levels >= 3:
                    values = levels * values - values.sum(axis=axis, keepdims=True)
                else:
                    values = -np.diff(values, axis=axis)
            found.append(np.asarray(values).reshape(-1))
        return np.concatenate(found)

    def adjoint(self, values: Floats) -> Floats:
        """Return each part's values, taken back to its margin, spread over the cells that it sums."""
        table = np.zeros(self.shape)
        start = 0
        for margin, centred in self.parts:
            shape = self._values_shape(margin, centred)
            end = start + math.prod(shape)
            back = values[start:end].reshape(shape)
            for axis in centred:
                levels = self.shape[axis]
                if levels >= 3:
                    # The matrix k·I - J is its own transpose.
                    back = levels * back - back.sum(axis=axis, keepdims=True)
                elif levels == 2:
                    back = np.concatenate([back, -back], axis=axis)
                else:
                    back = np.zeros([1 if i == axis else k for i, k in enumerate(back.shape)])
            table += back
            start = end
        return table

    def columns_at(self, levels: NDArray[np.intp]) -> Floats:
        """Return the products of one column for each axis."""
        found = []
        for axes, centred in self.parts:
            factors = [self._units(axis, centred=axis in centred)[:, levels[axis]] for axis in sorted(axes)]
            found.append(product_columns(factors, levels.shape[1]))
        return np.concatenate(found)

    def _units(self, axis: int, *, centred: bool) -> Floats:
        """Return what a unit at each level of an axis adds to the values along it."""
        k = self.shape[axis]
        if not centred:
            return np.eye(k)
        return k * np.eye(k) - 1 if k >= 3 else np.array([[1.0, -1.0]])[: k - 1]

    def _values_shape(self, margin: Sequence[int], centred: Sequence[int]) -> tuple[int, ...]:
        """The shape of a part's values, one on the axes that are not in its margin."""
        kept = tuple(levels if axis in margin else 1 for axis, levels in enumerate(self.shape))
        return residual_shape(kept, centred)
