"""A table on a page: rows of headers with what they span, and rows of cells. The one model of every page."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, Literal, NamedTuple, TypeVar

Content = TypeVar("Content", covariant=True)
Scope = Literal["", "col", "row", "rowgroup"]


class Header(NamedTuple):
    """A header cell and its span; without a scope it is the empty corner, which is no header.

    A scope is "col" or "row" even where several are spanned: a header is that of every column or row that it covers.
    A "rowgroup" is the heading of the rows below it. `kind` is its class in the style sheet. `code` is what programs
    call it, where that is not its label.
    """

    label: str
    scope: Scope
    colspan: int = 1
    rowspan: int = 1
    kind: str = ""
    code: str = ""


@dataclass(frozen=True)
class PageRow(Generic[Content]):
    """A row of the body: the headers that begin in it, then its cells. `total` says that it holds sums."""

    heads: tuple[Header, ...]
    cells: tuple[Content, ...]
    total: bool = False


@dataclass(frozen=True)
class PageTable(Generic[Content]):
    """The rows of headers above a table, and the rows of its body."""

    head: tuple[tuple[Header, ...], ...]
    body: tuple[PageRow[Content], ...]


def cross_head(
    stub: Sequence[str], across: str | None, columns: Sequence[Header]
) -> tuple[tuple[Header, ...], ...]:
    """Return the headers of a table: the attributes of its rows, then its columns, under `across` if there is one.

    >>> columns = [Header("young", "col"), Header("old", "col")]
    >>> [[header.label for header in row] for row in cross_head(["sex"], "age", columns)]
    [['sex', 'age'], ['young', 'old']]
    """
    down = tuple(Header(name, "col", rowspan=2 if across else 1, kind="stub") for name in stub)
    if not across:
        return ((*down, *columns),)
    return ((*down, Header(across, "col", colspan=len(columns), kind="across")), tuple(columns))


def row_heads(labels: Sequence[tuple[str, ...]], row: int) -> tuple[Header, ...]:
    """Return the headers that begin in a row, each with the number of shown rows that it heads.

    >>> row_heads([("F", "young"), ("F", "old"), ("M", "young")], 0)[0]
    Header(label='F', scope='row', colspan=1, rowspan=2, kind='', code='')
    """
    found = []
    for depth, label in enumerate(labels[row]):
        head = labels[row][: depth + 1]
        if row and labels[row - 1][: depth + 1] == head:
            continue
        same = next(groupby(each[: depth + 1] for each in labels[row:]))[1]
        found.append(Header(label, "row", rowspan=sum(1 for _ in same)))
    return tuple(found)
