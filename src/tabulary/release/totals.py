"""A table with its totals: along every attribute a last level `_T`, each total with its own error."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import with_last_places
from tabulary.core.domain import Domain, Margin
from tabulary.core.labels import Labels
from tabulary.core.table import CellCounts
from tabulary.errors import InvalidArgument
from tabulary.release.table import CONFIDENCE, ReleasedTable

if TYPE_CHECKING:
    from tabulary.release.release import Release

TOTAL = "_T"
"""The code of a total in place of a level, by the SDMX content-oriented guidelines."""

# Totals of a table on j attributes take 2**j tables.
_MOST_ATTRIBUTES = 6


@dataclass(frozen=True, eq=False)
class TotalledTable:
    """A released table with its totals: every attribute has the further level `_T`, the last one.

    A total is a number of a smaller table of the same release, and has the error of that number: it is not
    the sum of the errors of its cells. `parts` holds the smaller tables by the attributes that each keeps,
    in the table's order; the whole table is one of them, and the grand total is `parts[()]`. `labels` has the label of
    `_T` in each attribute.

    All arrays have one more place along each axis than the table itself: `counts[..., -1]` are totals over the last
    attribute.

    >>> from tabulary.core.table import Table
    >>> from tabulary.noise import DiscreteLaplace
    >>> from tabulary.planning import CellErrors
    >>> law = DiscreteLaplace(3)
    >>> sex = ReleasedTable(Table(Domain({"sex": ["F", "M"]}), [120, 90]), CellErrors(law, np.array([1, 1])))
    >>> everyone = ReleasedTable(Table(Domain({}), 210), CellErrors(law, np.array(1)))
    >>> totalled = TotalledTable({("sex",): sex, (): everyone}, labelled_totals(Labels(), ["sex"]))
    >>> totalled.domain.levels_of("sex"), totalled.counts.tolist(), totalled.half_widths().tolist()
    (('F', 'M', '_T'), [120, 90, 210], [9, 9, 9])
    """

    parts: Mapping[Margin, ReleasedTable]
    labels: Labels

    @property
    def table(self) -> ReleasedTable:
        """The table without its totals."""
        return self.parts[max(self.parts, key=len)]

    @property
    def margin(self) -> Margin:
        """The attributes of this table, in its own order."""
        return self.table.margin

    @cached_property
    def domain(self) -> Domain:
        """The attributes with their levels, `_T` last; a total over impossible cells only is impossible too."""
        own = self.table.domain
        for attribute in own.attributes:
            if TOTAL in own.levels_of(attribute):
                raise InvalidArgument(
                    f"the attribute {attribute!r} has a level {TOTAL!r}, the code of totals. Ask for the table without "
                    "totals."
                )
        zeros = [
            {**dict(zero), **{a: TOTAL for a in own.attributes if a not in part}}
            for part, table in self.parts.items()
            for zero in table.domain.structural_zeros
        ]
        return Domain({a: [*own.levels_of(a), TOTAL] for a in own.attributes}, zeros)

    @property
    def counts(self) -> CellCounts:
        """The published counts with their totals."""
        return self._assembled(lambda table: table.counts)

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """The standard error of each count and each total."""
        return self._assembled(lambda table: table.standard_errors)

    def half_widths(self, confidence: float = CONFIDENCE) -> NDArray[Any]:
        """Return how far each number may be from the truth with this probability."""
        return self._assembled(lambda table: table.half_widths(confidence))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[CellCounts, CellCounts]:
        """Return the lower and upper end of each number's interval."""
        return (
            self._assembled(lambda table: table.interval(confidence)[0]),
            self._assembled(lambda table: table.interval(confidence)[1]),
        )

    @property
    def impossible(self) -> NDArray[np.bool_]:
        """The cells that are exactly zero, because their combination cannot occur."""
        return self._assembled(lambda table: np.asarray(table.domain.impossible(table.margin)))

    def _assembled(self, numbers: Callable[[ReleasedTable], NDArray[Any]]) -> NDArray[Any]:
        attributes = self.table.margin

        def block(kept: tuple[bool, ...]) -> NDArray[Any]:
            margin = tuple(a for a, keep in zip(attributes, kept, strict=True) if keep)
            return np.asarray(numbers(self.parts[margin]))

        return with_last_places(self.table.shape, block)


def can_have_totals(domain: Domain) -> bool:
    """Return whether a reader can be shown a table with totals: on a few attributes, none of which has a level `_T`.

    >>> can_have_totals(Domain({"sex": ["F", "M"]})), can_have_totals(Domain({"sex": ["F", "_T"]}))
    (True, False)
    """
    few = len(domain.attributes) <= _MOST_ATTRIBUTES
    return few and not any(TOTAL in levels for levels in domain.levels)


def with_totals(
    release: "Release", attributes: str | Sequence[str], *, labels: Labels | None = None
) -> TotalledTable:
    """Return the table on these attributes, in this order, with a total along each of them.

    Every total is `release[...]` of fewer attributes, so it has its own error. Post-processing: reads no data. A table
    on j attributes asks the release for 2**j tables. `labels` are the words, by default those of the release in its
    default language; `_T` has the label `labels.total`.
    """
    named = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    subsets = product((True, False), repeat=len(named))
    margins = [tuple(a for a, keep in zip(named, kept, strict=True) if keep) for kept in subsets]
    given = labels if labels is not None else release.labels
    return TotalledTable({margin: release[margin] for margin in margins}, labelled_totals(given, named))


def labelled_totals(labels: Labels, attributes: Sequence[str]) -> Labels:
    """Return the words of a table with totals: the level `_T` of each attribute has a label."""
    found = dict(labels.variables)
    for attribute in attributes:
        variable = labels.variable(attribute)
        found[attribute] = replace(variable, levels={**variable.levels, TOTAL: labels.total})
    return replace(labels, variables=found)
