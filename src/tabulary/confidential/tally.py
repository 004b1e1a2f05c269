"""The tally: exact counts, only for mechanisms."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.weights import Weights
from tabulary.core.arrays import sum_onto
from tabulary.core.domain import MAX_CELLS, Domain, Margin
from tabulary.core.table import Table
from tabulary.core.uncopyable import Uncopyable
from tabulary.core.workload import Workload, show_margin
from tabulary.errors import InvalidTable, InvalidWorkload

# A float is exact for every whole number up to this, so below it a whole float is a count and not a rounded one.
_LAST_EXACT = 2.0**53


class Tally(Uncopyable):
    """Exact counts on some margins of a domain, or exact sums of weights in their unit. Confidential.

    The printed form shows the shape, never a count. A tally cannot be copied, pickled, iterated or turned into an
    array by accident: `exact` is the only access.

    >>> table = Table(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), [[1, 2], [3, 4]])
    >>> tally = Tally.from_table(table, [["sex"], ["sex", "job"]])
    >>> tally
    <Tally of 2 margins, 6 cells: [sex][sex job]>
    >>> tally.exact(["sex"]).tolist()
    [3, 7]
    """

    __slots__ = ("__weakref__", "_counts", "_domain", "_drops", "_weights")

    def __init__(
        self,
        domain: Domain,
        counts: Mapping[Margin, NDArray[np.int64]],
        *,
        weights: Weights | None = None,
        drops: tuple[str, ...] = (),
    ) -> None:
        held: dict[Margin, NDArray[np.int64]] = {}
        for margin, cells in counts.items():
            array = np.array(cells, dtype=np.int64)
            if array.shape != domain.shape_of(margin) or domain.margin(margin) != margin:
                raise InvalidTable(f"the counts of {show_margin(margin)} do not have the margin's shape.")
            array.flags.writeable = False
            held[margin] = array
        self._domain = domain
        self._counts = held
        self._weights = weights
        self._drops = drops

    @classmethod
    def from_table(
        cls, table: Table, margins: Workload | Iterable[Iterable[str]], *, max_cells: int = MAX_CELLS
    ) -> "Tally":
        """Return the counts of a table of people, on its margins.

        The table must hold whole numbers that are not negative.
        """
        wanted = margins_of(table.domain, margins)
        counts = table.counts
        if counts.dtype.kind == "f":
            whole = bool(np.all(counts == np.floor(counts)) and np.all(np.abs(counts) <= _LAST_EXACT))
            if not whole:
                raise InvalidTable("the table does not contain counts: a cell is not a whole number.")
        if np.any(counts < 0):
            raise InvalidTable("the table does not contain counts: a cell is negative.")
        if counts.sum(dtype=np.float64) >= float(np.iinfo(np.int64).max):
            raise InvalidTable("the table does not contain counts: its total does not fit in 64 bits.")
        exact = counts.astype(np.int64)
        held: dict[Margin, NDArray[np.int64]] = {}
        for margin in wanted:
            table.domain.check_cells(margin, max_cells)
            held[margin] = sum_onto(exact, table.domain.attributes, margin)
        return cls(table.domain, held)

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        return self._domain

    @property
    def weights(self) -> Weights | None:
        """The weights that were summed; None if every record counts one, with a sensitivity of one."""
        return self._weights

    @property
    def drops(self) -> tuple[str, ...]:
        """The attributes for which a record with an unknown value was left out: see `confidential.dropping`."""
        return self._drops

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The margins that were counted, in the order of the request."""
        return tuple(self._counts)

    @property
    def cells(self) -> int:
        """How many cells its margins have together."""
        return sum(map(self._domain.cells, self._counts))

    def exact(self, margin: Iterable[str]) -> NDArray[np.int64]:
        """Return the exact counts of one margin, read-only, its attributes in the domain's order.

        Confidential: for a mechanism, which adds noise before anything leaves.
        """
        named = self._domain.margin(margin)
        if named not in self._counts:
            raise InvalidWorkload(
                f"the margin {show_margin(named)} was not counted. The counted margins are "
                f"{''.join(map(show_margin, self.margins[:12])) or 'none'}."
            )
        return self._counts[named]

    def __repr__(self) -> str:
        shown = "".join(map(show_margin, self.margins[:6])) + ("…" if len(self._counts) > 6 else "")
        weighted = f", {self._weights}" if self._weights else ""
        return f"<Tally of {len(self._counts):,} margins, {self.cells:,} cells{weighted}: {shown}>"


def margins_of(domain: Domain, margins: Workload | Iterable[Iterable[str]]) -> tuple[Margin, ...]:
    """Return the wanted margins in the domain's order; refuse one named twice, or of another domain."""
    if isinstance(margins, Workload) and margins.domain != domain:
        raise InvalidWorkload("the workload was made for another domain than the records.")
    return margins.margins if isinstance(margins, Workload) else Workload(domain, margins).margins
