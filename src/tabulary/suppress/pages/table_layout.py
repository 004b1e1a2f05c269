"""A table as it is laid out for reading: one line for the levels of the first attributes, and sums at the ends."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from tabulary.core.domain import Margin
from tabulary.core.suppressed_table import SuppressedTable

TOTAL = "total"
"""The label in place of a level, for a number that is a sum over its attribute."""


@dataclass(frozen=True)
class LayoutEntry:
    """A cell or a sum of a table: its attributes and the place of a level of each, its labels, and its value or NaN.

    `labels` has one for every attribute of the table, `total` where it is summed over. `people` is how many stand
    there, where that is public.
    """

    margin: Margin
    index: tuple[int, ...]
    labels: tuple[str, ...]
    value: float
    people: int | None

    @property
    def suppressed(self) -> bool:
        """Whether it is left out."""
        return bool(np.isnan(self.value))

    @property
    def is_sum(self) -> bool:
        """Whether it is a sum of cells."""
        return len(self.margin) < len(self.labels)


@dataclass(frozen=True, eq=False)
class TableLayout:
    """The lines of a table: the last of several attributes goes across, the others downward.

    >>> from tabulary.core.domain import Domain
    >>> domain = Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]})
    >>> table = SuppressedTable(domain, np.array([[6, np.nan], [np.nan, 9]]), {("eye",): np.array([14, 17])})
    >>> grid = TableLayout(table)
    >>> grid.columns, [line[0].labels[:-1] for line in grid.lines]
    (('fair', 'dark', 'total'), [('blue',), ('brown',)])
    """

    table: SuppressedTable

    @property
    def stub(self) -> Margin:
        """The attributes that go downward."""
        return self.table.domain.attributes[:-1] if self.across else self.table.domain.attributes

    @property
    def across(self) -> str | None:
        """The attribute that goes across; None where there is only one."""
        attributes = self.table.domain.attributes
        return attributes[-1] if len(attributes) > 1 else None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The labels of the columns, `total` among them where a sum over the last attribute is there."""
        if self.across is None:
            return ("",)
        summed = any(self.across not in margin for margin in self.table.sums)
        return (*self.table.domain.levels_of(self.across), *([TOTAL] if summed else []))

    @cached_property
    def lines(self) -> tuple[tuple[LayoutEntry, ...], ...]:
        """The entries line by line; a line of sums that are not there is left out."""
        shape = self.table.domain.shape
        places = [range(levels + 1) for levels in (shape[:-1] if self.across else shape)]
        last = range(len(self.columns)) if self.across else [None]
        lines = []
        for downward in product(*places):
            found = [self._entry((*downward, place) if place is not None else downward) for place in last]
            line = tuple(entry for entry in found if entry is not None)
            if line:
                lines.append(line)
        return tuple(lines)

    def _entry(self, places: tuple[int, ...]) -> LayoutEntry | None:
        domain = self.table.domain
        summed = [place == levels for place, levels in zip(places, domain.shape, strict=True)]
        margin = tuple(a for a, over in zip(domain.attributes, summed, strict=True) if not over)
        if any(summed) and margin not in self.table.sums:
            return None
        values = self.table.sums[margin] if any(summed) else self.table.counts
        index = tuple(place for place, over in zip(places, summed, strict=True) if not over)
        labels = tuple(
            TOTAL if over else levels[place]
            for place, over, levels in zip(places, summed, domain.levels, strict=True)
        )
        cells = tuple(slice(None) if over else place for place, over in zip(places, summed, strict=True))
        people = None if self.table.people is None else int(np.sum(self.table.people[cells]))
        return LayoutEntry(margin, index, labels, float(values[index]), people)
