"""The published tables of a list: the tables, how they were made, their promise and their bias."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Margin
from tabulary.core.privacy import ApproxDP, PureDP
from tabulary.core.table import Table
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidDomain, UnknownMargin
from tabulary.perturb.published import PerturbedTable
from tabulary.planning import ErrorLaw
from tabulary.release import ReleasedTable

if TYPE_CHECKING:
    from tabulary.perturb.tables import Margins, Tables


@dataclass(frozen=True, eq=False, repr=False)
class PerturbedTables:
    """The published tables of a list, each with its errors.

    A `PerturbedTable` where cells were perturbed one by one and count people; a `ReleasedTable` where margins were
    restored or weights summed, since no law of one count speaks for a cell then. What one table says of its privacy is
    said of that table by itself; `privacy` is that of all. `minimum` is in whole units.

    >>> from tabulary import datasets
    >>> from tabulary.perturb.tables import Tables
    >>> table = datasets.load("rochdale")
    >>> published = Tables(table.domain, "[AB][A]", epsilon=1).apply(table, minimum=0)
    >>> published, published["A"]
    (<PerturbedTables [AB][A] at ε = 1>, <PerturbedTable A 2>)
    >>> round(published.bias("A", 0), 2), round(published.bias("A", 10), 4)
    (0.96, 0.0065)
    """

    design: "Tables"
    tables: Mapping[Margin, ReleasedTable]
    minimum: int | None
    margins: "Margins"

    @classmethod
    def of(
        cls,
        design: "Tables",
        perturbed: Mapping[Margin, PerturbedTable],
        *,
        minimum: int | None,
        margins: "Margins",
    ) -> "PerturbedTables":
        """Return the published form of perturbed tables: restored if requested, and in their unit."""
        found: dict[Margin, ReleasedTable] = dict(perturbed)
        if margins == "restored":
            fit = design.fit
            fitted = fit.tables(
                {m: np.asarray(table.counts, dtype=np.int64) for m, table in perturbed.items()}
            )
            found = {
                m: ReleasedTable(Table(perturbed[m].domain, fitted[m]), fit.errors(m)) for m in perturbed
            }
        if design.unit is not None:
            worth = design.unit
            found = {
                m: ReleasedTable(
                    # Multiplied and divided by whole numbers, so that 0.01 has no rounding error.
                    Table(each.domain, each.counts * worth.numerator / worth.denominator),
                    InUnits(each.errors, float(worth)),
                )
                for m, each in found.items()
            }
        return cls(design, found, minimum, margins)

    @property
    def privacy(self) -> PureDP | ApproxDP:
        """What is promised for all tables together."""
        return self.design.privacy()

    def bias(self, margin: Iterable[str], original: int) -> float:
        """Return the average difference between a published number of one table and the original one.

        The original number of weighted tables is in whole units, as the original table is. Zero unless small
        numbers were raised to a minimum: noise is symmetric, and restoring margins is linear.
        """
        law = self.design.law(margin)
        return self.design.worth * law.bias(original, minimum=self.minimum)

    def statement(self) -> str:
        """Return what is promised and how the numbers were changed, in plain words.

        >>> from tabulary import datasets
        >>> from tabulary.perturb.tables import Tables
        >>> table = datasets.load("rochdale")
        >>> print(Tables(table.domain, "[AB][A]", epsilon=1).apply(table).statement())
        These 2 tables together are ε-differentially private with ε = 1. The promise compares the data with and
        without one person's record, which is in one cell of each table. Every cell was perturbed separately:
        tables need not agree with each other. Numbers are unbiased, and some may be negative.
        """
        return f"{self.design.statement()} {self._processing()}"

    def describe(self) -> dict[str, object]:
        """Return the list, the options and the promise as plain data; the numbers are in the tables."""
        return self.design.describe() | {
            "margins": self.margins,
            "minimum": None if self.minimum is None else str(self.minimum * (self.design.unit or 1)),
            "statement": self.statement(),
        }

    def __getitem__(self, attributes: str | tuple[str, ...]) -> ReleasedTable:
        """Return the table on these attributes, in this order."""
        named = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        try:
            found = self.tables[self.design.domain.margin(named)]
        except (InvalidDomain, KeyError):
            raise UnknownMargin(
                f"the list {self.design.workload} has no table on {show_margin(tuple(map(str, named)))}."
            ) from None
        return found if named == found.margin else found.transpose(named)

    def __iter__(self) -> Iterator[ReleasedTable]:
        return iter(self.tables.values())

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        return f"<PerturbedTables {self.design.workload} at {self.privacy}>"

    def _processing(self) -> str:
        if self.margins == "restored":
            return (
                "Every cell was perturbed separately. Then all tables were adjusted to each other by "
                "weighted least squares: they agree, and a margin is the sum of its cells. Numbers are "
                "unbiased, not whole, and some may be negative."
            )
        alone = "Every cell was perturbed separately: tables need not agree with each other."
        if self.minimum is None:
            return f"{alone} Numbers are unbiased, and some may be negative."
        largest = max(self.bias(margin, 0) for margin in self.design.margins)
        what = (
            "Negative numbers were"
            if self.minimum == 0
            else f"Numbers below {self.minimum * self.design.worth:g} were"
        )
        raised = "zero" if self.minimum == 0 else "that"
        return (
            f"{alone} {what} then published as {raised}. This raises small numbers: an original zero by up "
            f"to {largest:.3g} on average, large numbers hardly, and sums of many cells by all of it."
        )


@dataclass(frozen=True, eq=False)
class InUnits:
    """The law of errors of numbers that were counted in whole units, and are published times the unit."""

    errors: ErrorLaw
    unit: float

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """The root mean squared error of each cell."""
        return np.asarray(self.unit * self.errors.standard_errors)

    def half_widths(self, confidence: float) -> NDArray[Any]:
        """Return the largest distance of each cell from the truth, with this probability."""
        return np.asarray(self.unit * self.errors.half_widths(confidence))

    def at(self, index: Any) -> "InUnits":
        """Return the law of the cells at a numpy index."""
        return replace(self, errors=self.errors.at(index))

    def transpose(self, order: list[int]) -> "InUnits":
        """Return the same law with the axes in another order."""
        return replace(self, errors=self.errors.transpose(order))
