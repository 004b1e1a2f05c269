"""The mechanism `cells`: noise on every cell of one detailed table."""

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

from tabulary.core.privacy import Loss
from tabulary.planning.mechanism import Mechanism
from tabulary.planning.plan import Plan
from tabulary.planning.queries.counts import Counts
from tabulary.planning.queries.query import Query
from tabulary.planning.request import Request


class CellsMechanism(Mechanism):
    """Measures every interior cell once; the wanted tables are sums of noisy cells."""

    name: ClassVar[str] = "cells"
    query: ClassVar[type[Query]] = Counts
    rank: ClassVar[int] = 10
    measures_full_table: ClassVar[bool] = True
    refused: ClassVar[Mapping[str, str]] = {
        "lp": "on cells alone the linear program bounds the worst cell and leaves all others free below it, so its "
        "sums are far too low. Use reconstruct = 'least-squares', or the mechanism 'margins'."
    }

    def plan(self, request: Request, loss: Loss) -> Plan:
        """Return the plan that measures the table on all attributes that the workload names.

        Other attributes would only add cells. One record stands in one cell of it, so the sensitivity is that of a
        single histogram: 1 (L1 and L2) for add-remove, 2 (L1) and √2 (L2) for replace. A margin's cell sums one
        draw for each possible interior cell below it, so its variance grows with what was summed over. All margins
        agree with each other.
        """
        request.check_cells(request.attributes)
        return request.planned(self.name, loss, [Counts(request.attributes)], [Fraction(1)])

    def words(self, plan: Plan) -> str:
        """Return what was measured."""
        return (
            "Every possible cell of one detailed table was measured once, and the published tables are "
            "sums of these noisy cells. They therefore agree with each other exactly, and a count that "
            "sums many cells carries the noise of all of them."
        )

    def burden(self, *, values: int, parts: int, tables: int) -> str:
        """Return what it costs to add up noisy cells."""
        return f"each of its tables sums up the same {values:,} noisy cells, and carries the noise of all"


CELLS = CellsMechanism()
