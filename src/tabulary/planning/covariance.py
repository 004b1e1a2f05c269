r"""How the errors of the cells of one table are correlated: their covariance, and the draws behind any sum of them.

The errors of a linear estimate are fixed combinations of independent draws, so those of its cells share draws. In
the contrast basis (`core.basis`) the covariance is diagonal, Σ = B' diag(d) B, whether contrasts or residuals were
measured: noise of variance v on a coefficient with row b gives d = v/‖b‖⁴, and a residual of R that is known with
covariance σ² P_R gives d = σ²/(‖b‖² Π_{A\R} k) on the rows that vary on R, for P = Σ b b'/‖b‖² over the rows after
the first. So w'Σw takes one transform of the weights, and Σ itself is made only when it is asked for.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core import basis
from tabulary.core.arrays import Floats
from tabulary.core.domain import Margin
from tabulary.core.interruption import checkpoint
from tabulary.errors import InvalidTable, TooManyCells
from tabulary.noise import IntegerNoise

MOST_CELLS = 4_096
"""The most cells of a covariance that is written out: the square of this fills 128 MB."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Independent draws of one noise, each times its weight; each weight is met by `copies` of them."""

    noise: IntegerNoise
    weights: Floats
    copies: int = 1

    @property
    def variance(self) -> float:
        """The variance of their weighted sum."""
        return self.copies * self.noise.variance * float(np.sum(self.weights**2))


class SharedNoise(Protocol):
    """The errors of all cells of a table, as combinations of independent draws."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""
        ...

    def covariances(self, weights: Floats) -> Floats:
        """Return Σw: the covariance of each cell's error with the weighted sum of all of them."""
        ...

    def draws(self, weights: Floats) -> Iterator[Draws]:
        """Yield the draws whose weighted sum is the weighted sum of the errors."""
        ...


@dataclass(frozen=True, eq=False)
class CellCovariance:
    """The covariance of the errors of the cells of a table, a part of it, or the same in another order.

    `places` says where each cell stands in the table of `source`, counted with the last attribute fastest; -1 is
    a cell without an error. None stands for all of them as they are.

    >>> from tabulary.noise import DiscreteGaussian
    >>> noise = DiscreteGaussian.from_sigma(10)
    >>> shared = CellCovariance(ContrastNoise(("age",), (3,), {(): noise, ("age",): noise}))
    >>> shared.dense().round(1).tolist()
    [[38.9, -11.1, 5.6], [-11.1, 38.9, 5.6], [5.6, 5.6, 22.2]]
    >>> round(shared.variance_of([1, 1, 1]), 6)
    100.0
    """

    source: SharedNoise
    places: NDArray[np.intp] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table that this describes."""
        return self.source.shape if self.places is None else self.places.shape

    @property
    def cells(self) -> int:
        """The number of cells that this describes."""
        return math.prod(self.shape)

    def covariances(self, weights: ArrayLike) -> Floats:
        """Return the covariance of each cell's error with the weighted sum of all of them, without forming Σ."""
        found = self.source.covariances(self._within(weights))
        if self.places is None:
            return found
        return np.where(self.places >= 0, found.reshape(-1)[self.places], 0.0)

    def variance_of(self, weights: ArrayLike) -> float:
        """Return w'Σw, the variance of the weighted sum of the errors, without forming Σ."""
        return max(0.0, float(np.sum(self._checked(weights) * self.covariances(weights))))

    def draws_of(self, weights: ArrayLike) -> list[Draws]:
        """Return the independent draws whose weighted sum is the weighted sum of the errors: its whole law.

        The same draws in the same order whatever the weights are, so that those of two sums can be compared.
        """
        return list(self.source.draws(self._within(weights)))

    def dense(self) -> Floats:
        """Return Σ, cells in order with the last attribute fastest; refused above `MOST_CELLS` cells."""
        cells = self.cells
        if cells > MOST_CELLS:
            raise TooManyCells(
                f"the covariance of {cells:,} cells has {cells**2:,} numbers, and it is written out for at most "
                f"{MOST_CELLS:,} cells. Ask for the variance of the sums that you need, or for a smaller table."
            )
        found = np.empty((cells, cells))
        unit = np.zeros(cells)
        for cell in range(cells):
            checkpoint()
            unit[cell] = 1.0
            found[cell] = self.covariances(unit.reshape(self.shape)).reshape(-1)
            unit[cell] = 0.0
        return np.asarray((found + found.T) / 2)

    def at(self, index: Any) -> "CellCovariance":
        """Return the covariance of the cells at a numpy index."""
        return self._viewed(lambda places: places[index])

    def transpose(self, order: list[int]) -> "CellCovariance":
        """Return the same covariance with the axes in another order."""
        return self._viewed(lambda places: places.transpose(order))

    def reshape(self, sides: list[int]) -> "CellCovariance":
        """Return the same covariance for the same cells in another shape."""
        return self._viewed(lambda places: places.reshape(sides))

    def without(self, impossible: NDArray[np.bool_]) -> "CellCovariance":
        """Return the same covariance with impossible cells exact."""
        if not impossible.any():
            return self
        return self._viewed(lambda places: np.where(impossible, -1, places))

    def _viewed(self, view: Callable[[NDArray[np.intp]], Any]) -> "CellCovariance":
        places = self.places
        if places is None:
            places = np.arange(self.cells, dtype=np.intp).reshape(self.shape)
        return CellCovariance(self.source, np.asarray(view(places)))

    def _checked(self, weights: ArrayLike) -> Floats:
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != self.shape or not np.isfinite(given).all():
            raise InvalidTable(
                f"a weighted sum of the cells of a table of shape {self.shape} takes one finite weight for each, "
                f"not weights of shape {given.shape}."
            )
        return given

    def _within(self, weights: ArrayLike) -> Floats:
        """Return the weights of the cells of the source."""
        given = self._checked(weights)
        if self.places is None:
            return given
        inside = self.places >= 0
        size = math.prod(self.source.shape)
        summed = np.bincount(self.places[inside], given[inside], size)
        return summed.astype(np.float64, copy=False).reshape(self.source.shape)


@dataclass(frozen=True, eq=False)
class CountNoise:
    """Noise that is added to every cell by itself: `terms` draws of it."""

    noise: IntegerNoise
    terms: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""
        return self.terms.shape

    def covariances(self, weights: Floats) -> Floats:
        """Return each cell's variance times its weight."""
        return np.asarray(self.terms * self.noise.variance * weights)

    def draws(self, weights: Floats) -> Iterator[Draws]:
        """Yield the draws in cells that hold equally many of them."""
        for count in np.unique(self.terms[self.terms > 0]).tolist():
            yield Draws(self.noise, weights[self.terms == count], count)


@dataclass(frozen=True, eq=False)
class ContrastNoise:
    """Noise on the contrast coefficients of a margin, by the sets on which they vary; None where they are exact."""

    margin: Margin
    shape: tuple[int, ...]
    noises: Mapping[Margin, IntegerNoise | None]

    def covariances(self, weights: Floats) -> Floats:
        """Return Σw by two transforms."""
        return filtered(self._spectrum, weights)

    def draws(self, weights: Floats) -> Iterator[Draws]:
        """Yield the draws on all coefficients that share a law."""
        coefficients = basis.contrasts(weights) / basis.squared_norms(self.shape)
        by_law: dict[IntegerNoise, list[Floats]] = {}
        for s, noise in self.noises.items():
            if noise is not None:
                by_law.setdefault(noise, []).append(coefficients[block(self.margin, s)].reshape(-1))
        for law, found in by_law.items():
            yield Draws(law, np.concatenate(found))

    @cached_property
    def _spectrum(self) -> Floats:
        variances = {s: noise.variance if noise else 0.0 for s, noise in self.noises.items()}
        return by_block(self.margin, self.shape, variances) / basis.squared_norms(self.shape) ** 2


def filtered(spectrum: Floats, weights: Floats) -> Floats:
    """Return B' diag(spectrum) B w."""
    return np.asarray(basis.adjoint(spectrum * basis.contrasts(weights)))


def block(margin: Margin, s: Margin) -> tuple[Any, ...]:
    """Return where the coefficients of a margin stand that vary on exactly the set s."""
    return tuple(slice(1, None) if attribute in s else 0 for attribute in margin)


def by_block(margin: Margin, shape: tuple[int, ...], values: Mapping[Margin, float]) -> Floats:
    """Return an array of coefficients that holds, for each set, its value."""
    found = np.zeros(shape)
    for s, value in values.items():
        found[block(margin, s)] = value
    return found
