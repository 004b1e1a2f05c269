r"""Contrasts: the coefficients of the integer basis (`core.basis`) that vary on exactly one set of attributes.

They are computed from the margins, never from the full table. With the coefficients of all subsets of a margin, the
table on it is a linear function of them, so all tables agree.

Sensitivity. A record in cell x adds to the component of S the product over its attributes of the basis
columns at x. Its L1 norm is Π (k - 1) for every x, on binary attributes one. Over the closure B this gives
Δ₁ = Σ_S Π (k - 1) for add-remove, the number of coefficients. For replace the two records' columns are
subtracted; on binary attributes a coefficient moves by two where ⟨S, d⟩ is odd. `core.contrast_sensitivity`
computes both exactly, and the plan refuses to exist if they exceed its loss.

Privacy. As for counts: the measurements are integers and the noise is discrete, so ε-DP for Laplace noise of
scale Δ₁/ε (Dwork, McSherry & Talwar 2007, Theorem 4) and ρ-zCDP for Gaussian noise of variance Δ₂²/(2ρ).

With sensitive attributes, contrasts that the other attributes alone decide do not change between neighbours. The plan
lists them as exact.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tabulary.core import basis
from tabulary.core.arrays import Floats, Integers
from tabulary.core.contrast_sensitivity import contrast_sensitivity
from tabulary.core.domain import Domain, Margin
from tabulary.core.neighbours import Neighbours
from tabulary.core.sensitivity import Sensitivity
from tabulary.core.workload import MarginIndex, show_margin
from tabulary.errors import UnknownMargin
from tabulary.planning.accuracy import CellErrors, WeightedErrors
from tabulary.planning.contrast_errors import contrast_errors
from tabulary.planning.covariance import block
from tabulary.planning.queries.linear_map import LinearMap, product_columns
from tabulary.planning.queries.query import Estimator, Kept, Query, Values
from tabulary.planning.words import table_name

# A binary table on more axes than this is worth loading a compiler for.
_MANY_AXES = 12


@dataclass(frozen=True, eq=False)
class ContrastsEstimator(Estimator):
    """Each table is the inverse transform of the noisy coefficients of its subsets."""

    def check(self, margin: Margin) -> None:
        """Raise UnknownMargin unless every coefficient of the table is known."""
        if any(s not in self._positions for s in self._subsets(margin)):
            raise UnknownMargin(f"the plan does not measure every coefficient of {show_margin(margin)}.")

    def table(self, margin: Margin, values: Values, kept: Kept) -> Floats:
        """Return the inverse transform of the coefficients."""
        named = self.encoding.margin(margin)
        coefficients = np.zeros(self.encoding.measured_domain.shape_of(named))
        for s in self._subsets(margin):
            coefficients[block(named, s)] = values(self._positions[s])
        return self.encoding.decode(margin, basis.table_of(coefficients))

    def error_of(self, margin: Margin) -> CellErrors | WeightedErrors:
        """Return the law of a cell as a weighted sum of draws; where all attributes are binary it is exact."""
        named = self.encoding.margin(margin)
        noises = {}
        for s in self._subsets(margin):
            position = self._positions[s]
            noises[s] = self.parts[position].noise if position < len(self.parts) else None
        law = contrast_errors(named, self.encoding.measured_domain.shape_of(named), noises)
        return self.encoding.decode_law(margin, law).without(self.domain.impossible(margin))

    @cached_property
    def variances(self) -> Mapping[Margin, float]:
        """σ² of the residuals. Rows of a contrast differ in length: σ² P_R has the trace of the covariance.

        Noise of variance v on a coefficient with row b gives v/‖b‖² along b, and the rows of R span what P_R keeps.
        """
        if self.encoding.pads:
            return super().variances
        found = {}
        for s in self.covered:
            position, shape = self._positions[s], self.domain.shape_of(s)
            rows = basis.squared_norms(shape)[(slice(1, None),) * len(s)]
            noise = self.noise_variances[position] if position < len(self.parts) else 0.0
            found[s] = noise * float((1 / rows).mean()) if rows.size else 0.0
        return found

    def _subsets(self, margin: Margin) -> Iterable[Margin]:
        named = self.encoding.margin(margin)
        return (s for k in range(len(named) + 1) for s in combinations(named, k))

    @cached_property
    def _positions(self) -> dict[Margin, int]:
        sets = (*(part.margin for part in self.parts), *self.exact)
        return {s: position for position, s in enumerate(sets)}


@dataclass(frozen=True)
class Contrasts(Query):
    """The coefficients of a table that vary on exactly the attributes of the margin; of no attributes, the total.

    >>> Contrasts(("sex", "age")).name, Contrasts(("sex",)).name, Contrasts(()).name
    ('sex by age, interaction', 'sex, differences between levels', 'total')
    """

    kind: ClassVar[str] = "contrasts"
    estimator: ClassVar[type[Estimator]] = ContrastsEstimator
    reconstructions: ClassVar[tuple[str, ...]] = (*Query.reconstructions, "shift")
    protects_some: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """What contrasts say of some attributes, which is not the table on them."""
        what = ("", ", differences between levels", ", interaction")[min(len(self.margin), 2)]
        return f"{table_name(self.margin)}{what}"

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """Return one less than the levels of each attribute."""
        return tuple(levels - 1 for levels in domain.shape_of(self.margin))

    def values(self, table: Integers) -> Integers:
        """Return the coefficients."""
        return basis.contrasts(table)[(slice(1, None),) * table.ndim]

    def growth(self, domain: Domain) -> int:
        """Return the largest entry of a row of the basis, or of the transform of fewer attributes."""
        return math.prod(max(levels - 1, 1) for levels in domain.shape_of(self.margin))

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
        """Return the sensitivity of all these coefficients (`core.contrast_sensitivity`)."""
        sets = [query.margin for query in queries]
        return contrast_sensitivity(domain, sets, neighbours, scales=scales, squared_scales=squared_scales)

    @classmethod
    def linear_map(cls, queries: Sequence[Self], named: Margin, domain: Domain) -> "ContrastMap":
        """Return the map from a full table to these coefficients of it."""
        axes = tuple(tuple(named.index(a) for a in query.margin) for query in queries)
        return ContrastMap(domain.shape_of(named), axes)

    @classmethod
    def all_values(cls, queries: Iterable[Self], tables: Mapping[Margin, Integers]) -> list[Integers]:
        """Return the exact coefficients, with one transform of each table."""
        margins = list(tables)
        index = MarginIndex(margins)
        transformed = {margin: basis.contrasts(table) for margin, table in tables.items()}
        sources = ((query.margin, margins[index.first(query.margin)]) for query in queries)
        return [np.array(transformed[source][block(source, s)]) for s, source in sources]


@dataclass(frozen=True)
class ContrastMap(LinearMap):
    """A table to its coefficients that vary on exactly each of `sets`: tuples of axes, in this order.

    The coefficients of one set are in the order of `basis.contrasts` of its margin, entry 0 of each axis left
    out; those of the empty set are the total.
    """

    sets: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return sum(basis.coefficients(self._sides(s)) for s in self.sets)

    def forward(self, table: Floats) -> Floats:
        """Return the coefficients of a full table."""
        return basis.contrasts(table).reshape(-1)[self._positions]

    def adjoint(self, values: Floats) -> Floats:
        """Return Σ value·row as a full table."""
        scattered = np.zeros(math.prod(self.shape))
        scattered[self._positions] = values
        return basis.adjoint(scattered.reshape(self.shape))

    @property
    def orthogonal(self) -> bool:
        """Rows of the basis are orthogonal."""
        return True

    def squared_norms(self) -> Floats:
        """Return the squared length of every row on the full table."""
        cells = float(math.prod(self.shape))
        return np.concatenate(
            [
                basis.squared_norms(sides)[(slice(1, None),) * len(s)].reshape(-1) * cells / math.prod(sides)
                for s, sides in ((s, self._sides(s)) for s in self.sets)
            ]
        )

    def covering(self, scales: Floats) -> Floats | None:
        """Return one on the total, in which every cell is counted once, if it is measured."""
        if () not in self.sets:
            return None
        found = np.zeros(self.size)
        found[ContrastMap(self.shape, self.sets[: self.sets.index(())]).size] = 1.0
        return found

    def fast(self) -> LinearMap:
        """Return the map with the compiled transform if that is worth loading a compiler for."""
        if set(self.shape) == {2} and len(self.shape) > _MANY_AXES:
            from tabulary.planning.queries.hadamard import HadamardMap

            return HadamardMap(self.shape, self.sets)
        return self

    def columns_at(self, levels: NDArray[np.intp]) -> Floats:
        """Return the products of the columns of the basis."""
        found = []
        for s in self.sets:
            factors = [
                basis.contrast_matrix(self.shape[axis])[1:, levels[axis]].astype(np.float64)
                for axis in sorted(s)
            ]
            found.append(product_columns(factors, levels.shape[1]))
        return np.concatenate(found)

    def _sides(self, s: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in sorted(s))

    @cached_property
    def _positions(self) -> NDArray[np.intp]:
        places = np.arange(math.prod(self.shape)).reshape(self.shape)
        axes = range(len(self.shape))
        return np.concatenate(
            [
                places[tuple(slice(1, None) if axis in s else 0 for axis in axes)].reshape(-1)
                for s in self.sets
            ]
        )
