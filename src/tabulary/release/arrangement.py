"""A table as people read it: its attributes in blocks, rows and columns, and its totals behind the levels they sum."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin
from tabulary.release.publication import Numbers, Publication
from tabulary.release.totals import TOTAL

# A table with more columns reads better with another attribute across.
_COMFORTABLE_COLUMNS = 8


@dataclass(frozen=True)
class Arrangement:
    """Which attribute of a table goes down, which across, and which ones divide the table into blocks.

    The last attribute goes across, as it was asked for; if it has many levels, that with the fewest. Of the others,
    that with the most levels goes down, because a page has room there. The rest makes blocks below each other.

    >>> domain = Domain({"sex": ["F", "M"], "age": ["young", "mid", "old"], "job": ["none", "paid"]})
    >>> Arrangement.of(domain.project(("sex", "age")))
    Arrangement(blocks=(), rows=('sex',), columns=('age',))
    >>> Arrangement.of(domain)
    Arrangement(blocks=('sex',), rows=('age',), columns=('job',))
    """

    blocks: Margin
    rows: Margin
    columns: Margin

    @classmethod
    def of(cls, domain: Domain, *, most_columns: int | None = None) -> "Arrangement":
        """Return the arrangement of a table. It reads levels only, never a count.

        Where every attribute has more levels than `most_columns`, none goes across.
        """
        names = domain.attributes
        if len(names) < 2:
            return cls((), names, ())
        sizes = {a: len(domain.levels_of(a)) for a in names}
        # Ties go to the later attribute, which keeps the order that was asked for.
        across = names[-1]
        if sizes[across] > _COMFORTABLE_COLUMNS:
            across = min(reversed(names), key=lambda a: sizes[a])
        columns = (across,) if most_columns is None or sizes[across] <= most_columns else ()
        others = [a for a in names if a not in columns]
        down = max(reversed(others), key=lambda a: sizes[a])
        return cls(tuple(a for a in others if a != down), (down,), columns)

    @property
    def order(self) -> Margin:
        """All attributes, from the outermost to the innermost."""
        return (*self.blocks, *self.rows, *self.columns)


@dataclass(frozen=True)
class TableLine:
    """A row of numbers: its label, its place in the arrays, and whether it holds totals."""

    label: str
    place: tuple[int, ...]
    total: bool


@dataclass(frozen=True, eq=False)
class ArrangedTable:
    """The numbers of a publication in the order of its arrangement, a total behind the levels that it sums.

    A publication with totals has them along every attribute. A reader sees them along the rows, along the columns, and
    in one last block. `half_widths` is None where errors are unknown.
    """

    published: Publication
    arrangement: Arrangement
    levels: tuple[tuple[str, ...], ...]
    counts: Numbers
    half_widths: Numbers | None
    status: NDArray[np.str_]

    @classmethod
    def of(cls, published: Publication, *, most_columns: int | None = None) -> "ArrangedTable":
        """Return a publication with its attributes arranged for readers."""
        # A total is a column too, but not a level to choose by.
        extra = int(published.has_totals)
        own = Domain(
            {a: published.domain.levels_of(a)[: -extra or None] for a in published.domain.attributes}
        )
        arrangement = Arrangement.of(own, most_columns=most_columns)
        axes, cut, levels = [], [], []
        for attribute in arrangement.order:
            named = published.domain.levels_of(attribute)
            # The total over a single level is that level again.
            without = published.has_totals and len(named) == 2
            axes.append(published.domain.position(attribute))
            cut.append(slice(len(named) - without))
            levels.append(tuple(named[: len(named) - without]))

        def arranged(numbers: Numbers) -> Numbers:
            return np.asarray(np.transpose(numbers, axes)[tuple(cut)])

        halves = published.half_widths
        return cls(
            published,
            arrangement,
            tuple(levels),
            arranged(published.counts),
            None if halves is None else arranged(halves),
            arranged(np.reshape(published.marks(), published.domain.shape)),
        )

    def labels(self, attribute: str) -> list[str]:
        """Return the labels along an attribute."""
        levels = self.levels[self.arrangement.order.index(attribute)]
        return [self.published.level_label(attribute, level) for level in levels]

    def has_totals(self, attribute: str) -> bool:
        """Return whether the last place along an attribute is its total."""
        levels = self.levels[self.arrangement.order.index(attribute)]
        return self.published.has_totals and levels[-1] == TOTAL

    @property
    def width(self) -> int:
        """The number of columns of numbers."""
        return len(self.levels[-1]) if self.arrangement.columns else 1

    def blocks(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the label of each block with its place, the total last; one empty label where there are no blocks."""
        named = {a: self.labels(a) for a in self.arrangement.blocks}
        own = [range(len(labels) - self.has_totals(a)) for a, labels in named.items()]
        last = [tuple(len(labels) - 1 for labels in named.values())]
        for place in chain(product(*own), last if any(map(self.has_totals, named)) else []):
            levels = zip(named.items(), place, strict=True)
            yield ", ".join(f"{self.published.label(a)}: {labels[i]}" for (a, labels), i in levels), place

    def lines(self) -> Iterator[TableLine]:
        """Yield the rows of a block, which all blocks have alike."""
        if not self.arrangement.rows:
            yield TableLine("", (), False)
        for attribute in self.arrangement.rows:
            labels = self.labels(attribute)
            last = len(labels) - 1 if self.has_totals(attribute) else -1
            yield from (TableLine(label, (place,), place == last) for place, label in enumerate(labels))
