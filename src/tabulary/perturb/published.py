"""What a perturbation publishes: a table, the law that made it and what it promises."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.privacy import ApproxDP, PureDP
from tabulary.core.table import Table
from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.noise import ExactSampler, Sampler
from tabulary.perturb.law import Floats, Perturbation
from tabulary.planning import ErrorLaw
from tabulary.release import ReleasedTable


@dataclass(frozen=True, eq=False, repr=False)
class PerturbedTable(ReleasedTable):
    """A released table whose counts were perturbed one by one.

    Impossible cells are exact and were not perturbed. `minimum` is the value that smaller ones were published
    as; None if negative values were kept.
    """

    law: Perturbation = field(kw_only=True)
    minimum: int | None = field(default=None, kw_only=True)

    @property
    def privacy(self) -> PureDP | ApproxDP:
        """What is promised, for one person more or less."""
        return self.law.privacy()

    def __repr__(self) -> str:
        return f"<Perturbed{repr(self.table)[1:]}"

    def bias(self, original: int) -> float:
        """Return by how much a published count exceeds an original one, on average."""
        return self.law.bias(original, minimum=self.minimum)


@dataclass(frozen=True, eq=False, repr=False)
class PerturbationErrors:
    """The errors of perturbed counts, as far as they can be known without the original ones.

    The law of an additive perturbation is the same for every count. Of any other, the row of the published
    count stands for that of the original one. A minimum pulls a count towards the truth, or at most `minimum`
    away from it, so a half-width holds after it too.
    """

    law: Perturbation
    published: NDArray[np.int64]
    possible: NDArray[np.bool_]
    minimum: int | None = None

    @property
    def standard_errors(self) -> Floats:
        """The standard deviation of what was added, zero for an impossible cell."""
        return self._of_rows(lambda count: self.law.variance(count) ** 0.5)

    def half_widths(self, confidence: float) -> NDArray[Any]:
        """Return how far each published count may be from the original one with this probability."""
        widths = self._of_rows(lambda count: _half_width(self.law, count, confidence)).astype(np.int64)
        if self.minimum is None:
            return widths
        raised = self.possible & (self.published <= self.minimum)
        return np.where(raised, np.maximum(widths, self.minimum), widths)

    def at(self, index: Any) -> "PerturbationErrors":
        """Return the law of the cells at a numpy index."""
        return PerturbationErrors(
            self.law, np.asarray(self.published[index]), np.asarray(self.possible[index]), self.minimum
        )

    def transpose(self, order: list[int]) -> "PerturbationErrors":
        """Return the same law with the axes in another order."""
        return PerturbationErrors(
            self.law, self.published.transpose(order), self.possible.transpose(order), self.minimum
        )

    def _of_rows(self, of: Callable[[int], float]) -> Floats:
        rows = np.clip(self.published, 0, self.law.settled)
        counts, places = np.unique(rows, return_inverse=True)
        found = np.array([of(int(count)) for count in counts])[places].reshape(rows.shape)
        return np.where(self.possible, found, 0.0)


def perturb(
    table: Table, law: Perturbation, *, minimum: int | None = None, sampler: Sampler | None = None
) -> PerturbedTable:
    """Return the table with every possible cell perturbed by itself.

    One person is in one cell, so the whole table is as private as one cell: neighbouring tables differ in one
    count by at most the law's sensitivity, and the other cells are perturbed alike and independently. Zero
    cells are perturbed as any other: that nobody is in a cell is a fact about people. What becomes smaller
    than `minimum` is published as `minimum`, which is post-processing, costs no privacy and biases small
    counts upward.

    >>> from tabulary import datasets
    >>> from tabulary.perturb import Laplace
    >>> published = perturb(datasets.load("uk-census"), Laplace(1.5, bound=7))
    >>> published, published.privacy.epsilon
    (<PerturbedTable age 12 × occupation 11>, Fraction(3, 2))
    """
    if minimum is not None and (isinstance(minimum, bool) or not isinstance(minimum, int) or minimum < 0):
        raise InvalidNoise(f"The minimum published value is a whole number, 0 or more, not {minimum!r}.")
    if table.counts.dtype.kind != "i" or np.any(table.counts < 0):
        raise InvalidTable("a perturbation needs a table of counts: whole numbers, none of them negative.")
    possible = ~table.domain.impossible(table.domain.attributes)
    published = table.counts.astype(np.int64, copy=True)
    published[possible] += draw(law, published[possible], sampler or ExactSampler())
    if minimum is not None:
        published[possible] = np.maximum(published[possible], minimum)
    errors: ErrorLaw = PerturbationErrors(law, published, possible, minimum)
    return PerturbedTable(Table(table.domain, published), errors, law=law, minimum=minimum)


def draw(law: Perturbation, counts: NDArray[np.int64], sampler: Sampler) -> NDArray[np.int64]:
    """Return what is added to each of these original counts, drawn independently."""
    rows = np.clip(counts, 0, law.settled)
    added = np.empty_like(counts)
    for original in np.unique(rows):
        here = rows == original
        added[here] = sampler.draw(law.drawn(int(original)), int(here.sum()))
    return added


def _half_width(law: Perturbation, count: int, confidence: float) -> int:
    row = law.row(count)
    distances = np.abs(row.values - count)
    order = np.argsort(distances, kind="stable")
    held = np.cumsum(row.probabilities[order])
    place = int(np.searchsorted(held, confidence))
    return int(distances[order][min(place, distances.size - 1)])
