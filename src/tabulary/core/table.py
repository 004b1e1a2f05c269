"""A table: one number per cell of a domain, with labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.arrays import sum_onto, with_last_places
from tabulary.core.domain import Domain
from tabulary.core.long_form import TableForm, installed, long_columns, ordered_axes, value_name
from tabulary.errors import InvalidTable

if TYPE_CHECKING:
    import xarray

CellCounts = NDArray[np.int64] | NDArray[np.float64]

# Sums of counts below this are exact in 64 bits.
_LARGEST_TOTAL = 2.0**62


@dataclass(frozen=True, init=False, eq=False)
class Table(TableForm):
    """A domain and a read-only array of its shape.

    A `Table` says nothing about privacy: it may be published or still unprotected. A result of a mechanism is a
    `ReleasedTable`.

    >>> table = Table(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), [[1, 2], [3, 4]])
    >>> table["F", "paid"]
    2
    >>> table.project("sex").counts.tolist()
    [3, 7]
    >>> table.slice(job="paid").counts.tolist()
    [2, 4]
    """

    domain: Domain
    counts: CellCounts

    def __init__(self, domain: Domain, counts: ArrayLike) -> None:
        try:
            array = np.array(counts)
        except ValueError:
            raise InvalidTable(
                "a table must be one array of numbers, but these rows have different lengths."
            ) from None
        if array.shape != domain.shape:
            raise InvalidTable(
                f"the domain's shape is {domain.shape} but the array's is {array.shape}. "
                "The axes of the array are the attributes, in order."
            )
        if array.dtype.kind in "iu":
            if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
                raise InvalidTable("a count does not fit in 64 bits.")
            array = array.astype(np.int64)
        elif array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array = array.astype(np.float64)
            if not np.isfinite(array).all():
                raise InvalidTable("a table must contain only numbers, but a cell is NaN or infinite.")
        else:
            raise InvalidTable(f"a table must contain whole or real numbers, not {array.dtype}.")
        if np.abs(array).sum(dtype=np.float64) >= _LARGEST_TOTAL:
            raise InvalidTable("the counts are so large that their sums would not fit in 64 bits.")
        if domain.structural_zeros and np.any(array[domain.impossible(domain.attributes)]):
            raise InvalidTable("a cell that the domain declares impossible is not zero.")
        array.flags.writeable = False
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "counts", array)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each attribute."""
        return self.domain.shape

    @property
    def total(self) -> int | float:
        """The sum of all cells."""
        total: int | float = self.counts.sum().item()
        return total

    def project(self, *margin: str | Iterable[str]) -> "Table":
        """Return the margin on the named attributes, in the order in which they are named.

        >>> table = Table(Domain({"a": "xy", "b": "xyz"}), [[1, 2, 3], [4, 5, 6]])
        >>> table.project("b", "a").counts.tolist()
        [[1, 4], [2, 5], [3, 6]]
        """
        named = _names(margin)
        kept = self.domain.margin(named)
        array = sum_onto(self.counts, self.domain.attributes, kept)
        return Table(self.domain.project(kept), array).transpose(named)

    def transpose(self, attributes: Sequence[str]) -> "Table":
        """Return the same table with its attributes in another order."""
        order = [self.domain.position(a) for a in attributes]
        if sorted(order) != list(range(len(self.domain.attributes))):
            raise InvalidTable("a transposition must name every attribute of the table once.")
        levels = {a: self.domain.levels_of(a) for a in attributes}
        zeros = [dict(zero) for zero in self.domain.structural_zeros]
        return Table(Domain(levels, zeros), self.counts.transpose(order))

    def slice(self, levels: Mapping[str, str | int] | None = None, **named: str | int) -> "Table":
        """Return the table of those in the given levels, on the remaining attributes."""
        wanted = {**(levels or {}), **named}
        kept = [a for a in self.domain.attributes if a not in wanted]
        index = self.index(wanted)
        domain = Domain({a: self.domain.levels_of(a) for a in kept})
        if self.domain.structural_zeros:
            domain = with_zeros(domain, self.domain.impossible(self.domain.attributes)[index])
        return Table(domain, np.asarray(self.counts[index]))

    def select(self, levels: Mapping[str, Iterable[str | int]]) -> "Table":
        """Return the part of the table with some levels of some attributes, in the given order.

        >>> table = Table(Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]}), [[1, 2, 3], [4, 5, 6]])
        >>> table.select({"age": ["65+", "0-14"]}).counts.tolist()
        [[3, 1], [6, 4]]
        """
        index = self.box(levels)
        chosen = [axis.reshape(-1).tolist() for axis in index]
        kept = {
            a: [labels[i] for i in codes]
            for a, labels, codes in zip(self.domain.attributes, self.domain.levels, chosen, strict=True)
        }
        domain = Domain(kept)
        if self.domain.structural_zeros:
            domain = with_zeros(domain, self.domain.impossible(self.domain.attributes)[index])
        return Table(domain, self.counts[index])

    def __getitem__(self, labels: str | int | tuple[str | int, ...]) -> int | float:
        """Return one cell by its labels, in the order of the attributes."""
        given = labels if isinstance(labels, tuple) else (labels,)
        if len(given) != len(self.domain.attributes):
            raise InvalidTable(
                f"a cell of this table has {len(self.domain.attributes)} labels, one for each of "
                f"{list(self.domain.attributes)}, not {len(given)}. For fewer labels use slice()."
            )
        index = self.index(dict(zip(self.domain.attributes, given, strict=True)))
        cell: int | float = self.counts[index].item()
        return cell

    def with_totals(self) -> NDArray[Any]:
        """Return the array with a total appended along every axis.

        >>> Table(Domain({"a": "xy", "b": "xy"}), [[1, 2], [3, 4]]).with_totals().tolist()
        [[1, 2, 3], [3, 4, 7], [4, 6, 10]]
        """
        axes = range(self.counts.ndim)
        return with_last_places(self.shape, lambda kept: sum_onto(self.counts, axes, np.flatnonzero(kept)))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the table in long form: one column of labels per attribute, then `count`; one row per cell."""
        return long_columns(self.domain, {value_name("count", self.domain.attributes): self.counts})

    def to_xarray(self) -> "xarray.DataArray":
        """Return the table as a labelled xarray array; its coordinates keep the order of the levels."""
        array: xarray.DataArray = installed("xarray").DataArray(
            self.counts, dims=self.domain.attributes, coords=ordered_axes(self.domain), name="count"
        )
        return array

    def __repr__(self) -> str:
        named = " × ".join(f"{a} {len(self.domain.levels_of(a))}" for a in self.domain.attributes)
        return f"<Table {named or 'total'}>"

    def index(self, wanted: Mapping[str, str | int]) -> tuple[Any, ...]:
        """Return the numpy index of the cells in the given levels."""
        codes = {a: self.domain.code(a, level) for a, level in wanted.items()}
        return tuple(codes.get(a, np.s_[:]) for a in self.domain.attributes)

    def box(self, levels: Mapping[str, Iterable[str | int]]) -> tuple[NDArray[np.intp], ...]:
        """Return the numpy index of the cells with some levels of some attributes, and with all of the others."""
        self.domain.margin(levels)
        codes = {a: [self.domain.code(a, level) for level in chosen] for a, chosen in levels.items()}
        every = zip(self.domain.attributes, self.domain.shape, strict=True)
        return np.ix_(*(np.array(codes.get(a, range(size)), dtype=np.intp) for a, size in every))


def with_zeros(domain: Domain, impossible: NDArray[np.bool_]) -> Domain:
    """Return the domain with these cells impossible, one by one."""
    if not domain.attributes or impossible.all():
        # Nothing is possible, and no domain says so: all cells are zero.
        return domain
    zeros = [
        {a: labels[i] for a, labels, i in zip(domain.attributes, domain.levels, cell, strict=True)}
        for cell in np.argwhere(impossible).tolist()
    ]
    return Domain(dict(zip(domain.attributes, domain.levels, strict=True)), zeros)


def _names(margin: tuple[str | Iterable[str], ...]) -> tuple[str, ...]:
    return tuple(a for part in margin for a in ((part,) if isinstance(part, str) else part))
