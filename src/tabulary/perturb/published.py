"""What a perturbation publishes: a table, its law and its promise."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.privacy import ApproxDP, PureDP
from tabulary.core.table import Table
from tabulary.errors import InvalidNoise, InvalidTable
from tabulary.noise import ExactSampler, Sampler
from tabulary.noise.checks import check_half_width
from tabulary.perturb.perturbation import Perturbation
from tabulary.planning import ErrorLaw
from tabulary.release import ReleasedTable


@dataclass(frozen=True, eq=False, repr=False)
class PerturbedTable(ReleasedTable):
    """A released table whose counts were perturbed one by one.

    Impossible cells are exact and were not perturbed. `minimum` is the value that replaces smaller ones; None if
    negative values were kept.
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
        """Return the average difference between a published count and the original one."""
        return self.law.bias(original, minimum=self.minimum)


@dataclass(frozen=True, eq=False, repr=False)
class PerturbationErrors:
    """The errors of perturbed counts, as far as they can be known without the original ones.

    Where rows differ, a published count tells no more than which original ones it may have been. Its interval
    holds each of those that are no farther from it than they stray with the stated probability, so that every
    original count is held as often as stated; its standard error is the largest of theirs. Rows that never
    settle have no end of such counts: there the row of the published count stands for that of the original one,
    and an interval is approximate. A minimum pulls a count towards the truth, or at most `minimum` away from it,
    so a half-width holds after it too.
    """

    law: Perturbation
    published: NDArray[np.int64]
    possible: NDArray[np.bool_]
    minimum: int | None = None

    @property
    def standard_errors(self) -> Floats:
        """The standard deviation of what was added, zero for an impossible cell."""
        _, originals, places = self._originals()
        deviations = self._of_rows(originals, lambda count: self.law.variance(count) ** 0.5)
        return np.where(self.possible, deviations.max(axis=1)[places], 0.0)

    def half_widths(self, confidence: float) -> NDArray[Any]:
        """Return the largest distance of each published count from the original one, with this probability."""
        check_half_width(confidence, 1)
        values, originals, places = self._originals()
        strays = self._of_rows(originals, lambda count: _half_width(self.law, count, confidence))
        distances = np.abs(originals - values[:, None])
        held = np.where(distances <= strays, distances, 0).max(axis=1)
        # No original count may be near; the interval is then as wide as that of its own row.
        widths = np.maximum(held, strays[:, strays.shape[1] // 2])[places].astype(np.int64)
        if self.minimum is not None:
            raised = self.published <= self.minimum
            widths = np.where(raised, np.maximum(widths, self.minimum), widths)
        return np.where(self.possible, widths, 0)

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

    def _originals(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
        """Return the distinct published values, what each may have been (itself amid), and each cell's place."""
        law = self.law
        reach = max(law.bound, self.minimum or 0) if law.settled and law.bound is not None else 0
        # Beyond this all rows are one, and so is what is known.
        published = self.published if law.settled is None else np.minimum(self.published, law.settled + reach)
        values, places = np.unique(published, return_inverse=True)
        originals = np.maximum(values[:, None] + np.arange(-reach, reach + 1), 0)
        return values, originals, places.reshape(published.shape)

    def _of_rows(self, originals: NDArray[np.int64], of: Callable[[int], float]) -> Floats:
        counts, places = np.unique(np.clip(originals, 0, self.law.settled), return_inverse=True)
        return np.array([of(int(count)) for count in counts])[places].reshape(originals.shape)


def perturb(
    table: Table, law: Perturbation, *, minimum: int | None = None, sampler: Sampler | None = None
) -> PerturbedTable:
    """Return the table with every possible cell perturbed separately.

    One person is in one cell, so the whole table is as private as one cell: neighbouring tables differ in one count
    by at most the law's sensitivity, and the other cells are perturbed independently with the same laws. Zero cells
    are perturbed like any other: it is a fact about people that nobody is in a cell. A value below `minimum` is
    published as `minimum`, which is post-processing, costs no privacy and biases small counts upward.

    >>> from tabulary import datasets
    >>> from tabulary.perturb import Laplace
    >>> published = perturb(datasets.load("uk-census"), Laplace(1.5, bound=7))
    >>> published, published.privacy.epsilon
    (<PerturbedTable age 12 × occupation 11>, Fraction(3, 2))
    """
    if minimum is not None and (isinstance(minimum, bool) or not isinstance(minimum, int) or minimum < 0):
        raise InvalidNoise(f"The minimum published value must be a whole number, 0 or more, not {minimum!r}.")
    if table.counts.dtype.kind != "i" or np.any(table.counts < 0):
        raise InvalidTable("a perturbation needs a table of counts: whole numbers that are not negative.")
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
