r"""Additive margins: perturbed tables adjusted to each other by weighted least squares.

The tables y of a list are all sums of one full table, y = A w + noise, each with the variance v of its own noise.
The fit minimises Σ (y - A w)² / v over all w, negative ones too, that are zero in impossible cells: by Gauss and
Markov no linear unbiased estimate of any of these tables has a smaller variance in any cell. The fitted tables are
margins of one table, so they agree wherever they overlap, and a cell of a margin is the sum of its cells.

Post-processing: reads no data and spends no budget. Unbiased. The fitted numbers are real, and some may be negative.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Domain, Margin
from tabulary.core.residuals import component
from tabulary.errors import TooManyCells
from tabulary.noise import DiscreteLaplace, Truncated
from tabulary.planning import WeightedErrors
from tabulary.planning.allocation import margin_variance, residual_variances
from tabulary.planning.queries.residuals import table_of
from tabulary.planning.residual_errors import TailWeights, part_variance, subsets

Noises = Mapping[Margin, DiscreteLaplace | Truncated]

MOST_CELLS = 1_500
"""With structural zeros, the largest number of possible cells of all tables: each is compared with every other."""

# Noise that is almost always zero has a variance too small to divide by.
_SMALLEST_VARIANCE = 1e-60


class Fit(Protocol):
    """A weighted least squares fit of the tables of a list, made before there are any."""

    def tables(self, published: Mapping[Margin, NDArray[np.int64]]) -> dict[Margin, Floats]:
        """Return the fitted tables."""
        ...

    def errors(self, margin: Margin) -> WeightedErrors:
        """Return the law of the errors of a fitted table."""
        ...


def fit_of(domain: Domain, noises: Noises) -> Fit:
    """Return the fit of the tables on these margins, each with its noise.

    Without structural zeros all is in closed form, residual by residual, and no full table is made.

    >>> domain = Domain({"a": "xy", "b": "xyz"})
    >>> fit = fit_of(domain, {("a", "b"): DiscreteLaplace(2), ("a",): DiscreteLaplace(2)})
    >>> fitted = fit.tables({("a", "b"): np.array([[5, 1, 3], [0, 2, 4]]), ("a",): np.array([13, 6])})
    >>> fitted["a", "b"].sum(axis=1), fitted["a",]
    (array([12.,  6.]), array([12.,  6.]))
    """
    return Projected(domain, noises) if domain.structural_zeros else ByResiduals(domain, noises)


@dataclass(frozen=True, eq=False)
class ByResiduals:
    """The fit if every cell is possible: each residual is the mean of what the tables say about it.

    A table on S knows the residual of every R in S with variance v·Π of the levels that are summed, and those of
    different sets are uncorrelated (`core.residuals`), so each has its own weighted mean.
    """

    domain: Domain
    noises: Noises

    def tables(self, published: Mapping[Margin, NDArray[np.int64]]) -> dict[Margin, Floats]:
        """Return the fitted tables."""
        residuals: dict[Margin, Floats] = {}
        for margin, table in published.items():
            shape = self.domain.shape_of(margin)
            for r in subsets(margin):
                told = component(table, shape, (), [i for i, a in enumerate(margin) if a in r])
                share = self._share(margin, r)
                residuals[r] = residuals[r] + share * told if r in residuals else share * told
        return {margin: table_of(residuals, margin, self.domain.shape_of(margin)) for margin in published}

    def errors(self, margin: Margin) -> WeightedErrors:
        """Return the law of the errors of a fitted table: the same in every cell."""
        variance = margin_variance(self.domain, self._variances, margin)
        kurtosis = self._tails.kurtosis(margin, variance)
        shape = self.domain.shape_of(margin)
        return WeightedErrors(np.full(shape, variance**0.5), np.full(shape, kurtosis))

    def _share(self, margin: Margin, r: Margin) -> float:
        levels = dict(zip(self.domain.attributes, self.domain.shape, strict=True))
        return self._variances[r] / part_variance(levels, margin, (), r, _variance(self.noises[margin]))

    @cached_property
    def _variances(self) -> dict[Margin, float]:
        return residual_variances(
            self.domain, {(m, ()): _variance(noise) for m, noise in self.noises.items()}
        )

    @cached_property
    def _tails(self) -> TailWeights:
        return TailWeights(self.domain, [(m, (), noise) for m, noise in self.noises.items()], self._variances)


@dataclass(frozen=True, eq=False)
class Projected:
    r"""The fit if some cells are impossible: the orthogonal projection of all possible cells at once.

    In units of standard deviations, B = A/√v. The fitted values are H y with H the projection onto the columns of B,
    found from the eigenvectors of B Bᵀ, whose entries count the possible full cells that two published cells
    share. The covariance of the fit is H too, so a standard deviation shrinks by the root of the diagonal of H.
    """

    domain: Domain
    noises: Noises

    def __post_init__(self) -> None:
        if self._deviations.size > MOST_CELLS:
            raise TooManyCells(
                f"these tables have {self._deviations.size:,} possible cells together, but with structural "
                f"zeros additive margins can be restored for at most {MOST_CELLS:,}. Nothing was perturbed. "
                "Use margins = 'free', or a plan with reconstruct = 'least-squares'."
            )

    def tables(self, published: Mapping[Margin, NDArray[np.int64]]) -> dict[Margin, Floats]:
        """Return the fitted tables, impossible cells zero."""
        values = np.concatenate([published[m][self._possible[m]] for m in self.noises])
        fitted = self._deviations * (self._projection @ (values / self._deviations))
        return {margin: self._placed(margin, fitted) for margin in self.noises}

    def errors(self, margin: Margin) -> WeightedErrors:
        """Return the law of the errors of a fitted table; that of an impossible cell is zero."""
        deviations = self._deviations * np.sqrt(self._shares)
        return WeightedErrors(self._placed(margin, deviations), self._placed(margin, self._kurtosis))

    def _placed(self, margin: Margin, values: Floats) -> Floats:
        table = np.zeros(self.domain.shape_of(margin))
        table[self._possible[margin]] = values[self._places[margin]]
        return table

    @cached_property
    def _possible(self) -> dict[Margin, NDArray[np.bool_]]:
        return {margin: ~self.domain.impossible(margin) for margin in self.noises}

    @cached_property
    def _places(self) -> dict[Margin, slice]:
        ends = np.cumsum([0, *(int(possible.sum()) for possible in self._possible.values())]).tolist()
        return {m: slice(*ends[i : i + 2]) for i, m in enumerate(self._possible)}

    @cached_property
    def _deviations(self) -> Floats:
        each = [_variance(noise) ** 0.5 for noise in self.noises.values()]
        return np.repeat(each, [int(possible.sum()) for possible in self._possible.values()])

    @cached_property
    def _shares(self) -> Floats:
        """The share of its variance that each cell keeps."""
        return np.maximum(np.diag(self._projection), 0.0)

    @cached_property
    def _kurtosis(self) -> Floats:
        each = [noise.fourth_cumulant / _variance(noise) ** 2 for noise in self.noises.values()]
        excess = np.repeat(each, [place.stop - place.start for place in self._places.values()])
        # The weight of the draw k in the cell j is √v_j H_jk / √v_k.
        return np.asarray(
            np.square(np.square(self._projection)) @ excess / np.maximum(self._shares, 1e-300) ** 2
        )

    @cached_property
    def _projection(self) -> Floats:
        named = self.domain.project({a for margin in self.noises for a in margin})
        shared = np.empty((self._deviations.size, self._deviations.size))
        for one, rows in self._places.items():
            for other, columns in self._places.items():
                shared[rows, columns] = self._shared(named, one, other)
        gram = shared / np.outer(self._deviations, self._deviations)
        eigenvalues, vectors = np.linalg.eigh(gram)
        kept = vectors[:, eigenvalues > eigenvalues[-1] * gram.shape[0] * np.finfo(np.float64).eps]
        return np.asarray(kept @ kept.T)

    def _shared(self, named: Domain, one: Margin, other: Margin) -> Floats:
        """Return how many possible cells of the table on all named attributes two cells have in common."""
        union = named.margin({*one, *other})
        named.check_cells(union)
        together = named.multiplicity(union)
        sides = list(zip(union, together.shape, strict=True))
        rows, columns = (
            np.arange(named.cells(margin)).reshape([k if a in margin else 1 for a, k in sides])
            for margin in (one, other)
        )
        shared = np.zeros((named.cells(one), named.cells(other)))
        shared[rows, columns] = together
        return shared[np.ix_(self._possible[one].reshape(-1), self._possible[other].reshape(-1))]


def _variance(noise: DiscreteLaplace | Truncated) -> float:
    return max(noise.variance, _SMALLEST_VARIANCE)
