"""How wrong a released number can be: known before any budget is spent."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Margin
from tabulary.core.table import frame_of
from tabulary.core.workload import show_margin
from tabulary.noise import IntegerNoise

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class CellErrors:
    """The law of the error of each cell of one table: a sum of independent draws of one noise.

    `terms` counts the draws in each cell; a structural zero has none and is exact.
    """

    noise: IntegerNoise
    terms: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.terms.flags.writeable = False

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """The standard deviation of the error of each cell."""
        deviations: NDArray[np.float64] = np.sqrt(self.terms * self.noise.variance)
        return deviations

    def half_widths(self, confidence: float) -> NDArray[np.int64]:
        """Return the smallest h for each cell such that the error is within ±h with this probability."""
        different, where = np.unique(self.terms, return_inverse=True)
        widths = [self.noise.half_width(confidence, terms=int(t)) if t else 0 for t in different]
        return np.array(widths, dtype=np.int64)[where].reshape(self.terms.shape)

    def transpose(self, order: list[int]) -> "CellErrors":
        """Return the same law with the axes in another order."""
        return CellErrors(self.noise, self.terms.transpose(order))


@dataclass(frozen=True)
class ExpectedError:
    """What to expect of the cells of one table.

    `cells` counts the possible ones; `standard_error` is the root mean square over them; `half_width` is the
    largest of their half-widths. All cells of a table have the same unless structural zeros make some of
    them sums of fewer draws.
    """

    margin: Margin
    cells: int
    standard_error: float
    half_width: int


@dataclass(frozen=True)
class ExpectedErrors:
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
            f"{show_margin(r.margin):<{width}} {r.cells:>10,} {r.standard_error:>12,.1f} {r.half_width:>10,}"
            for r in self.rows
        ]
        return "\n".join([head, *lines])

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the rows as a pandas frame."""
        columns = {
            "margin": np.array([show_margin(row.margin) for row in self.rows], dtype=object),
            "cells": np.array([row.cells for row in self.rows]),
            "standard_error": np.array([row.standard_error for row in self.rows]),
            "half_width": np.array([row.half_width for row in self.rows]),
        }
        frame: pandas.DataFrame = frame_of("pandas", columns)
        return frame


def expected_error(margin: Margin, errors: CellErrors, confidence: float) -> ExpectedError:
    """Return the summary of one table's errors over its possible cells."""
    noisy = errors.terms > 0
    cells = int(noisy.sum())
    mean_terms = float(errors.terms.sum(dtype=np.float64)) / cells if cells else 0.0
    return ExpectedError(
        margin=margin,
        cells=cells,
        standard_error=float(np.sqrt(mean_terms * errors.noise.variance)),
        half_width=int(errors.half_widths(confidence).max()),
    )
