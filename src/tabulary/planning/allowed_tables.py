"""The tables that a table builder allows, by rules that read no data."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

from tabulary.core.domain import Domain, Margin
from tabulary.core.workload import MarginIndex, Workload, maximal_margins, show_margin
from tabulary.errors import InvalidArgument, TableRefused, TooManyCells

MOST_CELLS = 100_000
"""The most cells of one table, unless the custodian says otherwise."""

MOST_TABLES = 100_000
"""The most tables that may be allowed: a plan for more takes longer than a custodian waits."""

MOST_PARTS = 1_000_000
"""The most tables that may be parts of the tables of a release, which need no plan."""


@dataclass(frozen=True, init=False)
class AllowedTables:
    """All tables of up to `order` attributes, without the forbidden combinations and those with too many cells.

    What may be asked depends on these public rules alone, so that a refusal tells nothing about a record. With a table
    its sums are allowed too: whatever is made of fewer attributes has fewer cells and no forbidden combination.

    `within` holds the largest tables of a release, from which all others are made; None if there are no such tables.

    >>> domain = Domain({"sex": ["F", "M"], "age": ["young", "old"], "faith": list("abc")})
    >>> allowed = AllowedTables(domain, order=2, forbidden=[("sex", "faith")])
    >>> print(allowed.workload())
    [][sex][age][faith][sex age][age faith]
    >>> allowed.refuse(("sex", "faith"))
    Traceback (most recent call last):
    ...
    tabulary.errors.TableRefused: the custodian allows no table with 'sex' and 'faith' together. Nothing was counted.
    """

    domain: Domain
    order: int
    forbidden: tuple[Margin, ...]
    max_cells: int
    within: tuple[Margin, ...] | None

    def __init__(
        self,
        domain: Domain,
        *,
        order: int,
        forbidden: Iterable[Iterable[str]] = (),
        max_cells: int = MOST_CELLS,
        within: Iterable[Iterable[str]] | None = None,
    ) -> None:
        if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= len(domain.attributes):
            raise InvalidArgument(
                f"the order of the largest tables is a whole number from 1 to {len(domain.attributes)}, the number of "
                f"attributes, not {order!r}."
            )
        if isinstance(max_cells, bool) or not isinstance(max_cells, int) or max_cells < 1:
            raise InvalidArgument(f"the most cells of a table is a positive whole number, not {max_cells!r}.")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "forbidden", tuple(domain.margin(tuple(f)) for f in forbidden))
        object.__setattr__(self, "max_cells", max_cells)
        largest = None if within is None else maximal_margins(domain.margin(tuple(each)) for each in within)
        object.__setattr__(self, "within", None if largest is None else tuple(largest))
        if not all(self.forbidden):
            raise InvalidArgument("a forbidden combination names at least one attribute.")
        if largest is None:
            tables, most = sum(math.comb(len(domain.attributes), k) for k in range(order + 1)), MOST_TABLES
        else:
            tables, most = sum(2 ** len(each) for each in largest), MOST_PARTS
        if tables > most:
            raise InvalidArgument(
                f"these rules would allow up to {tables:,} tables, and {most:,} is the most. Lower the order, "
                "or leave out attributes."
            )

    def refuse(self, margin: Margin) -> None:
        """Raise TableRefused or TooManyCells unless the table on `margin` may be asked for. Reads no data."""
        if len(margin) > self.order:
            raise TableRefused(
                f"a table may have at most {self.order} attributes, filters included, and {show_margin(margin)} has "
                f"{len(margin)}. Nothing was counted."
            )
        for combination in self.forbidden:
            if set(combination) <= set(margin):
                named = " and ".join(repr(a) for a in combination)
                together = " together" if len(combination) > 1 else ""
                raise TableRefused(
                    f"the custodian allows no table with {named}{together}. Nothing was counted."
                )
        if self.within is not None and not self._index.count(margin):
            raise TableRefused(
                f"the release has no table with {show_margin(margin)} together. Every table is a part of one of "
                f"{_shown(self.within)}. Nothing was counted. Choose attributes of one of them."
            )
        cells = self.domain.cells(margin)
        if cells > self.max_cells:
            raise TooManyCells(
                f"the table {show_margin(margin)} has {cells:,} cells, filters included, and the most is "
                f"{self.max_cells:,}. Nothing was counted. Leave out an attribute."
            )

    @cached_property
    def _index(self) -> MarginIndex:
        return MarginIndex(list(self.within or ()))

    def allows(self, margin: Margin) -> bool:
        """Return whether the table on `margin` may be asked for."""
        try:
            self.refuse(margin)
        except (TableRefused, TooManyCells):
            return False
        return True

    @cached_property
    def margins(self) -> tuple[Margin, ...]:
        """Every table that may be asked for, the total first, in the domain's order."""
        places = (self.domain.attributes,) if self.within is None else self.within
        found = {m for place in places for k in range(self.order + 1) for m in combinations(place, k)}
        number = {attribute: i for i, attribute in enumerate(self.domain.attributes)}
        ordered = sorted(found, key=lambda margin: (len(margin), [number[a] for a in margin]))
        return tuple(margin for margin in ordered if self.allows(margin))

    def workload(self) -> Workload:
        """Return the tables as a workload in which each counts alike, however many cells it has."""
        weights = [Fraction(1, self.domain.cells(margin)) for margin in self.margins]
        return Workload(self.domain, self.margins, weights)

    def describe(self) -> dict[str, object]:
        """Return the rules as plain data."""
        return {
            "order": self.order,
            "forbidden": [list(combination) for combination in self.forbidden],
            "max_cells": self.max_cells,
            "within": None if self.within is None else [list(margin) for margin in self.within],
        }


def _shown(margins: tuple[Margin, ...]) -> str:
    """Return margins for a sentence, the first dozen of them."""
    more = f" and {len(margins) - 12:,} more" if len(margins) > 12 else ""
    return "".join(map(show_margin, margins[:12])) + more
