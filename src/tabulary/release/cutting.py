"""The part of a published table that answers a question: a slice, in the asked order, with some of the levels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, Self, TypeVar

from tabulary.core.domain import Margin


class Sliceable(Protocol):
    """A published table that a part can be cut from: a `ReleasedTable` or a `CellKeyTable`."""

    @property
    def margin(self) -> Margin:
        """The attributes of this table, in its own order."""
        ...

    def slice(self, levels: Mapping[str, str | int]) -> Self:
        """Return the table of the records in the given levels, on the remaining attributes."""
        ...

    def transpose(self, attributes: Sequence[str]) -> Self:
        """Return the same table with its attributes in another order."""
        ...

    def select(self, levels: Mapping[str, Iterable[str | int]]) -> Self:
        """Return the part of the table with some levels of some attributes."""
        ...


Published = TypeVar("Published", bound=Sliceable)


def cut(
    table: Published, by: Sequence[str], where: Mapping[str, str | int], keep: Mapping[str, Iterable[str]]
) -> Published:
    """Return the table by the attributes `by`, in this order, of records in the levels `where`, cut to `keep`.

    The server and the reader of an answer cut in the same way, so both know the same errors.
    """
    sliced = table.slice(where) if where else table
    ordered = sliced if sliced.margin == tuple(by) else sliced.transpose(by)
    return ordered.select(keep) if keep else ordered
