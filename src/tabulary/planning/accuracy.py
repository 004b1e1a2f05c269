"""How wrong a released number can be: known before any budget is spent."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Margin
from tabulary.core.long_form import LongForm
from tabulary.core.workload import show_margin
from tabulary.noise import IntegerNoise
from tabulary.noise.checks import check_confidence
from tabulary.planning.covariance import CellCovariance, CountNoise

SMALLEST_VARIANCE = 1e-60
"""A smaller variance is too small to divide by. Such noise is hardly ever drawn, and has no tails that anyone sees."""


class ErrorLaw(Protocol):
    """What is known of the errors of the cells of one table. A cell with standard error zero is exact."""

    @property
    def standard_errors(self) -> Floats:
        """The root mean squared error of each cell."""
        ...

    def half_widths(self, confidence: float) -> NDArray[Any]:
        """Return how far each cell may be from the truth with this probability."""
        ...

    def at(self, index: Any) -> "ErrorLaw":
        """Return the law of the cells at a numpy index."""
        ...

    def transpose(self, order: list[int]) -> "ErrorLaw":
        """Return the same law with the axes in another order."""
        ...


@dataclass(frozen=True, eq=False)
class CellErrors:
    """The law of a scaled sum of independent draws of one noise.

    `terms` counts the draws in each cell; a structural zero has none and is exact. `scale` multiplies the
    sum: one where whole numbers are added up, 2⁻ʲ for a margin of j bits made of Fourier coefficients. Cells
    with a scale of one have draws of their own; others share them, and `shared` tells how.
    """

    noise: IntegerNoise
    terms: NDArray[np.int64]
    scale: float = 1.0
    shared: CellCovariance | None = None

    def __post_init__(self) -> None:
        self.terms.flags.writeable = False

    @property
    def standard_errors(self) -> Floats:
        """The standard deviation of the error of each cell."""
        deviations: Floats = self.scale * np.sqrt(self.terms * self.noise.variance)
        return deviations

    @property
    def covariance(self) -> CellCovariance | None:
        """How the errors of the cells are correlated; None if that is not known."""
        if self.shared is not None or self.scale != 1:
            return self.shared
        return CellCovariance(CountNoise(self.noise, self.terms))

    def half_widths(self, confidence: float) -> NDArray[Any]:
        """Return the smallest h for each cell such that the error is within ±h with this probability."""
        different, where = np.unique(self.terms, return_inverse=True)
        # Every law is a frozen dataclass, which its protocol cannot say.
        law: Any = self.noise
        widths = [_half_width(law, confidence, int(t)) if t else 0 for t in different]
        whole = np.array(widths, dtype=np.int64)[where].reshape(self.terms.shape)
        return whole if self.scale == 1 else self.scale * whole

    def at(self, index: Any) -> "CellErrors":
        """Return the law of the cells at a numpy index."""
        shared = self.shared and self.shared.at(index)
        return CellErrors(self.noise, np.array(self.terms[index]), self.scale, shared)

    def transpose(self, order: list[int]) -> "CellErrors":
        """Return the same law with the axes in another order."""
        shared = self.shared and self.shared.transpose(order)
        return CellErrors(self.noise, self.terms.transpose(order), self.scale, shared)

    def reshape(self, sides: list[int]) -> "CellErrors":
        """Return the same law for the same cells in another shape."""
        shared = self.shared and self.shared.reshape(sides)
        return CellErrors(self.noise, self.terms.reshape(sides), self.scale, shared)

    def without(self, impossible: NDArray[np.bool_]) -> "CellErrors":
        """Return the same law with impossible cells exact."""
        shared = self.shared and self.shared.without(impossible)
        return CellErrors(self.noise, np.where(impossible, 0, self.terms), self.scale, shared)


@dataclass(frozen=True, eq=False)
class WeightedErrors:
    """The law of a weighted sum of independent draws: its standard deviation and its excess kurtosis.

    Half-widths are the normal ones corrected for the kurtosis (Cornish and Fisher): a sum of many symmetric
    draws is nearly normal, with tails a little heavier, and the correction errs to the wide side at 95 %.
    `covariance` says how the errors of the cells are correlated; None if that is not known.
    """

    standard_errors: Floats
    kurtosis: Floats
    covariance: CellCovariance | None = None

    def __post_init__(self) -> None:
        self.standard_errors.flags.writeable = False
        self.kurtosis.flags.writeable = False

    def half_widths(self, confidence: float) -> Floats:
        """Return h for each cell such that the error is within ±h with about this probability."""
        corrected: Floats = heavy_quantile(confidence, self.kurtosis)
        return corrected * self.standard_errors

    def at(self, index: Any) -> "WeightedErrors":
        """Return the law of the cells at a numpy index."""
        shared = self.covariance and self.covariance.at(index)
        return WeightedErrors(np.array(self.standard_errors[index]), np.array(self.kurtosis[index]), shared)

    def transpose(self, order: list[int]) -> "WeightedErrors":
        """Return the same law with the axes in another order."""
        shared = self.covariance and self.covariance.transpose(order)
        return WeightedErrors(self.standard_errors.transpose(order), self.kurtosis.transpose(order), shared)

    def reshape(self, sides: list[int]) -> "WeightedErrors":
        """Return the same law for the same cells in another shape."""
        shared = self.covariance and self.covariance.reshape(sides)
        return WeightedErrors(self.standard_errors.reshape(sides), self.kurtosis.reshape(sides), shared)

    def without(self, impossible: NDArray[np.bool_]) -> "WeightedErrors":
        """Return the same law with impossible cells exact."""
        shared = self.covariance and self.covariance.without(impossible)
        return WeightedErrors(np.where(impossible, 0.0, self.standard_errors), self.kurtosis, shared)


@dataclass(frozen=True, eq=False)
class StatedErrors:
    """Errors that are stated cell by cell, as a file of a table states them; `ErrorCurve` is what a face states.

    `widths` hold the error with the probability `confidence`; at other probabilities they are stretched as
    normal ones would be.
    """

    standard_errors: Floats
    widths: Floats
    confidence: float = 0.95

    def __post_init__(self) -> None:
        self.standard_errors.flags.writeable = False
        self.widths.flags.writeable = False

    def half_widths(self, confidence: float) -> Floats:
        """Return h for each cell such that the error is within ±h with about this probability."""
        stretch = normal_quantile(confidence) / normal_quantile(self.confidence)
        stretched: Floats = self.widths * stretch
        return stretched

    def at(self, index: Any) -> "StatedErrors":
        """Return the law of the cells at a numpy index."""
        return StatedErrors(
            np.array(self.standard_errors[index]), np.array(self.widths[index]), self.confidence
        )

    def transpose(self, order: list[int]) -> "StatedErrors":
        """Return the same law with the axes in another order."""
        return StatedErrors(
            self.standard_errors.transpose(order), self.widths.transpose(order), self.confidence
        )


@lru_cache(maxsize=4096)
def _half_width(noise: IntegerNoise, confidence: float, terms: int) -> int:
    # The law of a sum is a Fourier series of thousands of terms, and thousands of tables share a few laws.
    return noise.half_width(confidence, terms=terms)


def normal_quantile(confidence: float) -> float:
    """Return z for which a standard normal is within ±z with this probability."""
    check_confidence(confidence)
    return NormalDist().inv_cdf((1 + confidence) / 2)


def heavy_quantile(confidence: float, kurtosis: Any) -> Any:
    """Return z for which a law of variance one and this excess kurtosis is within ±z with about this probability.

    The first term of Cornish and Fisher. Between the normal law and Laplace's it is within 0.005 of the
    probability from 90 % to 99 %, on the wide side from 95 % on. Noise of a very large ε is nearly always zero, and
    its kurtosis so large that this term is far too large. So z is at most 1/√(1 - confidence), the bound of Chebyshev,
    which holds for every law.

    >>> heavy_quantile(0.95, [0.0, 3.0, 1e8]).round(3).tolist()
    [1.96, 2.166, 4.472]
    """
    normal = normal_quantile(confidence)
    corrected = normal + (normal**3 - 3 * normal) / 24 * np.asarray(kurtosis)
    return np.clip(corrected, 0.0, 1 / math.sqrt(1 - confidence))


@dataclass(frozen=True)
class ExpectedError:
    """What to expect of the cells of one table.

    `cells` counts the possible ones; `standard_error` is the root mean square over them; `half_width` is the
    largest of their half-widths. All cells of a table have the same unless structural zeros or contrasts of
    more than two levels make some of them sums of other draws.
    """

    margin: Margin
    cells: int
    standard_error: float
    half_width: float


@dataclass(frozen=True)
class ExpectedErrors(LongForm):
    """What to expect of every table of a plan, before any budget is spent."""

    rows: tuple[ExpectedError, ...]
    confidence: float

    def __iter__(self) -> Iterator[ExpectedError]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, margin: Margin) -> ExpectedError:
        return next(row for row in self.rows if row.margin == margin)

    def __str__(self) -> str:
        width = max(6, *(len(show_margin(row.margin)) for row in self.rows))
        head = f"{'margin':<{width}} {'cells':>10} {'std. error':>12} {f'±{self.confidence:.0%}':>10}"
        lines = [
            f"{show_margin(r.margin):<{width}} {r.cells:>10,} {r.standard_error:>12,.1f} "
            f"{show_width(r.half_width):>10}"
            for r in self.rows
        ]
        return "\n".join([head, *lines])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the rows as columns: the margin, its cells, their standard error and half-width."""
        return {
            "margin": np.array([show_margin(row.margin) for row in self.rows], dtype=object),
            "cells": np.array([row.cells for row in self.rows]),
            "standard_error": np.array([row.standard_error for row in self.rows]),
            "half_width": np.array([row.half_width for row in self.rows]),
        }


def show_width(width: float) -> str:
    """Return a half-width, or a count, for a reader: whole where it is whole, with one decimal where not.

    >>> show_width(1200), show_width(3.25)
    ('1,200', '3.2')
    """
    return f"{int(width):,}" if float(width).is_integer() else f"{width:,.1f}"


def expected_error(margin: Margin, errors: ErrorLaw, confidence: float) -> ExpectedError:
    """Return the summary of one table's errors over its possible cells."""
    deviations = errors.standard_errors
    cells = int((deviations > 0).sum())
    squared = float((deviations**2).sum())
    return ExpectedError(
        margin=margin,
        cells=cells,
        standard_error=float(np.sqrt(squared / cells)) if cells else 0.0,
        half_width=errors.half_widths(confidence).max().item(),
    )
