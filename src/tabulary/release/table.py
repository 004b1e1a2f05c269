"""A released table: noisy counts, and the law of the error of each of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin
from tabulary.core.long_form import LongForm, TableForm, installed, long_columns, ordered_axes, value_name
from tabulary.core.table import CellCounts, Table
from tabulary.errors import InvalidTable
from tabulary.planning import ErrorLaw
from tabulary.planning.covariance import CellCovariance

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray

CONFIDENCE = 0.95
"""The probability with which a published interval holds the true count."""

VALUE_COLUMNS = ("count", "standard_error", "lower_95", "upper_95")
"""The columns that follow the attributes in every published table."""


@dataclass(frozen=True, eq=False)
class ReleasedTable(TableForm):
    """Counts that a mechanism released, with the known facts about their errors: a table with two faces.

    The published face is `counts`, as accurate as can be. The unbiased face is `unbiased`: the linear estimates from
    the same measurements, with the exact law of their noise, for tests and for sums of many cells; `linear` holds it
    where it is not the published face itself.

    An interval contains the true count with the stated probability, for each cell, not for all cells at once. It
    never reaches below zero: no count does. A structural zero is exact: its count, its standard error and both ends
    of its interval are zero.

    >>> from tabulary.noise import DiscreteLaplace
    >>> from tabulary.planning import CellErrors
    >>> table = Table(Domain({"sex": ["F", "M"]}), [120, -2])
    >>> released = ReleasedTable(table, CellErrors(DiscreteLaplace(3), np.array([1, 1])))
    >>> released
    <ReleasedTable sex 2>
    >>> released["F"], released.standard_errors.round(2).tolist()
    (120, [4.22, 4.22])
    >>> lower, upper = released.interval(0.95)
    >>> lower.tolist(), upper.tolist()
    ([111, 0], [129, 7])
    >>> official = ReleasedTable(Table(table.domain, [120, 0]), released.errors, released)
    >>> official.counts.tolist(), official.estimate.tolist()
    ([120, 0], [120, -2])
    """

    table: Table
    errors: ErrorLaw
    linear: "ReleasedTable | None" = None

    def __post_init__(self) -> None:
        if self.linear is not None and self.linear.domain != self.domain:
            raise InvalidTable("the two faces of a table must have the same attributes and levels.")
        described = self.errors.standard_errors.shape
        if described != self.table.shape:
            raise InvalidTable(
                f"the errors have shape {described} and the counts {self.table.shape}: "
                "they do not describe the same cells."
            )

    @property
    def domain(self) -> Domain:
        """The attributes of this table and their levels."""
        return self.table.domain

    @property
    def margin(self) -> Margin:
        """The attributes of this table, in its own order."""
        return self.table.domain.attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each attribute."""
        return self.table.shape

    @property
    def counts(self) -> CellCounts:
        """The published counts. As linear estimates they may be negative, since the noise does not depend on them."""
        return self.table.counts

    @property
    def unbiased(self) -> "ReleasedTable":
        """The same table as linear estimates: unbiased, with the exact law of their noise, possibly negative.

        The table itself where its published face is that, and for a perturbation, which has one face only.
        """
        return self if self.linear is None else self.linear

    @property
    def estimate(self) -> CellCounts:
        """The unbiased estimates of the counts."""
        return self.unbiased.counts

    @property
    def total(self) -> int | float:
        """The sum of the noisy counts; its error is larger than that of a total measured directly."""
        return self.table.total

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """The standard deviation of the error of each cell, known from the plan alone."""
        return np.asarray(self.errors.standard_errors)

    @property
    def covariance(self) -> CellCovariance | None:
        """The covariance of the errors of the published counts, known from the plan alone.

        None where the plan does not give it: for a face that was made non-negative, rounded or shrunk (its `unbiased`
        face has one), and for a perturbation that depends on the count.

        >>> from tabulary.noise import DiscreteLaplace
        >>> from tabulary.planning import CellErrors
        >>> table = Table(Domain({"sex": ["F", "M"]}), [120, -2])
        >>> released = ReleasedTable(table, CellErrors(DiscreteLaplace(3), np.array([1, 1])))
        >>> released.covariance.dense().round(2).tolist()
        [[17.83, 0.0], [0.0, 17.83]]
        """
        found: CellCovariance | None = getattr(self.errors, "covariance", None)
        return found

    def half_widths(self, confidence: float = CONFIDENCE) -> NDArray[Any]:
        """Return how far each count may be from the truth with this probability."""
        return self.errors.half_widths(confidence)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[CellCounts, CellCounts]:
        """Return the lower and upper end of each cell's interval; both ends belong to it, and none is negative."""
        widths = self.half_widths(confidence)
        return np.maximum(self.counts - widths, 0), np.maximum(self.counts + widths, 0)

    def transpose(self, attributes: Sequence[str]) -> "ReleasedTable":
        """Return the same table with its attributes in another order."""
        order = [self.domain.position(attribute) for attribute in attributes]
        return ReleasedTable(
            self.table.transpose(attributes),
            self.errors.transpose(order),
            self.linear and self.linear.transpose(attributes),
        )

    def slice(self, levels: Mapping[str, str | int] | None = None, **named: str | int) -> "ReleasedTable":
        """Return the table of the records in the given levels, on the remaining attributes."""
        chosen = {**(levels or {}), **named}
        return ReleasedTable(
            self.table.slice(chosen),
            self.errors.at(self.table.index(chosen)),
            self.linear and self.linear.slice(chosen),
        )

    def select(self, levels: Mapping[str, Iterable[str | int]]) -> "ReleasedTable":
        """Return the part of the table with some levels of some attributes, in the given order.

        >>> from tabulary.noise import DiscreteLaplace
        >>> from tabulary.planning import CellErrors
        >>> table = Table(Domain({"age": ["0-14", "15-64", "65+"]}), [120, 405, 88])
        >>> released = ReleasedTable(table, CellErrors(DiscreteLaplace(3), np.array([1, 1, 1])))
        >>> released.select({"age": ["0-14", "65+"]}).counts.tolist()
        [120, 88]
        """
        kept = {attribute: tuple(chosen) for attribute, chosen in levels.items()}
        return ReleasedTable(
            self.table.select(kept),
            self.errors.at(self.table.box(kept)),
            self.linear and self.linear.select(kept),
        )

    def __getitem__(self, labels: str | int | tuple[str | int, ...]) -> int | float:
        """Return one noisy count by its labels, in the order of the attributes."""
        return self.table[labels]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the table in long form: the attributes, then the values under the names of `column_names`."""
        return long_columns(self.domain, self._values())

    def to_arrow(self) -> "pa.Table":
        """Return the table in long form as an Arrow table, its labels as ordered dictionaries."""
        import pyarrow as pa

        return pa.table(
            arrow_labels(self) | {name: array.reshape(-1) for name, array in self._values().items()}
        )

    def to_xarray(self) -> "xarray.Dataset":
        """Return the table as an xarray dataset: an array for each of `column_names`, the levels in their order."""
        values = {name: (self.margin, array) for name, array in self._values().items()}
        dataset: xarray.Dataset = installed("xarray").Dataset(values, coords=ordered_axes(self.domain))
        return dataset

    def __repr__(self) -> str:
        return f"<Released{repr(self.table)[1:]}"

    def _values(self) -> dict[str, NDArray[Any]]:
        lower, upper = self.interval()
        values = (self.counts, self.standard_errors, lower, upper)
        return dict(zip(column_names(self.margin), values, strict=True))


def arrow_labels(form: LongForm) -> "dict[str, pa.DictionaryArray]":
    """Return the columns of labels in an order as ordered dictionaries of Arrow."""
    import pyarrow as pa

    return {
        name: pa.DictionaryArray.from_arrays(codes, pa.array(levels, pa.string()), ordered=True)
        for name, (levels, codes) in form.ordered_columns().items()
    }


def column_names(attributes: Margin) -> tuple[str, str, str, str]:
    """Return the names of the value columns; a name that an attribute already has gets an underscore.

    >>> column_names(("sex", "count"))
    ('count_', 'standard_error', 'lower_95', 'upper_95')
    """
    count, error, lower, upper = (value_name(name, attributes) for name in VALUE_COLUMNS)
    return count, error, lower, upper
