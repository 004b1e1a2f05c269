"""Exact counts on demand: each margin is counted once, and kept while the cache has room."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.records import Records
from tabulary.confidential.tally import Tally
from tabulary.confidential.weights import Weights
from tabulary.core.arrays import sum_onto
from tabulary.core.cache import ENTRY_BYTES, Cache, CacheSection
from tabulary.core.domain import Domain, Margin
from tabulary.core.uncopyable import Uncopyable
from tabulary.core.workload import maximal_margins

if TYPE_CHECKING:
    from tabulary.core.progress import Progress

_CELL_BYTES = 8


class TallyCache(Uncopyable):
    """The exact counts of any margin, in a section of its own of the cache that it is given. Confidential.

    A margin is counted once, however many threads ask for it together; one inside a margin that is held is summed from
    it. What it prints is the domain, never a count, and it cannot be copied or pickled: `exact` is the one way in. The
    cache itself keeps a `Tally` for each margin, a type that no public answer has.

    >>> import pyarrow
    >>> domain = Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
    >>> people = pyarrow.table({"sex": ["F", "M", "F"], "job": ["paid", "paid", "none"]})
    >>> with Records.from_arrow(people, domain) as records:
    ...     tallies = TallyCache(records)
    ...     tallies.exact(("sex",)).tolist()
    ...     print(tallies)
    [2, 1]
    <TallyCache of sex 2 × job 2>
    """

    def __init__(self, records: Records, cache: Cache | None = None) -> None:
        self._records = records
        self._held: CacheSection[Margin, Tally] = CacheSection(
            Cache() if cache is None else cache, bytes_of=lambda tally: _CELL_BYTES * tally.cells
        )

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        return self._records.domain

    @property
    def weights(self) -> Weights | None:
        """The weights that are summed; None if every record counts one, with a sensitivity of one."""
        return self._records.weights

    @property
    def drops(self) -> tuple[str, ...]:
        """The attributes for which a record with an unknown value was left out: see `confidential.dropping`."""
        return self._records.drops

    def exact(self, margin: Margin) -> NDArray[np.int64]:
        """Return the exact counts of one margin, read-only, its attributes in the domain's order.

        Confidential: for a mechanism, which adds noise before anything leaves.
        """
        named = self.domain.margin(margin)
        return self._held.get(named, lambda: self._made(named)).exact(named)

    def prepare(self, margins: Iterable[Margin], *, progress: "Progress | None" = None) -> None:
        """Count many margins in one pass over the records: those that no held margin contains.

        The first ones first, until they fill half of the cache: answers need room too.
        """
        held = self._held.held()
        missing: list[Margin] = []
        room = self._held.cache.most_bytes // 2
        for margin in maximal_margins(map(self.domain.margin, margins)):
            room -= _CELL_BYTES * self.domain.cells(margin) + ENTRY_BYTES
            if room < 0:
                break
            if not any(set(margin) <= set(larger) for larger in held):
                missing.append(margin)
        if missing:
            tally = self._records.tally(missing, progress=progress)
            for margin in missing:
                self._held.put(margin, self._tally(margin, tally.exact(margin)))

    def close(self) -> None:
        """Forget the counts; the caller who opened the records closes them."""
        self._held.clear()

    def __repr__(self) -> str:
        return f"<TallyCache of {repr(self._records).removeprefix('<Records of ')}"

    def _made(self, margin: Margin) -> Tally:
        """Return the counts, summed from the smallest cached table that contains them, or counted."""
        own = set(margin)
        larger = [(other, tally) for other, tally in self._held.held().items() if own <= set(other)]
        if not larger:
            return self._records.tally([margin])
        other, tally = min(larger, key=lambda found: found[1].cells)
        summed = sum_onto(tally.exact(other), other, own)
        return self._tally(margin, np.asarray(summed))

    def _tally(self, margin: Margin, counts: NDArray[np.int64]) -> Tally:
        return Tally(self.domain, {margin: counts}, weights=self.weights, drops=self.drops)
